"""What an image costs, by each provider's rule: data classes with one method, from its size and its ``detail``.

A rule answers for any size, however large, in constant time, and never with more than for an unknown size (None),
whose answer is the cap: what the most expensive image costs. Width and height may change places.
Read and measured in 2026; where the guide and reported usage differ, each rule says what it follows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

__all__ = [
    "CLAUDE",
    "CLAUDE_HIGH",
    "GEMINI_2",
    "GEMINI_3",
    "GPT_4O",
    "GPT_4O_MINI",
    "GPT_4_1_MINI",
    "GPT_4_1_NANO",
    "GPT_5",
    "GPT_5_2",
    "GPT_5_4",
    "GPT_5_MINI",
    "GPT_5_NANO",
    "O4_MINI",
    "O_SERIES",
    "UNKNOWN",
    "GridRule",
    "ImageRule",
    "LevelRule",
    "PatchRule",
    "PixelTileRule",
    "TileRule",
    "UnknownRule",
]

Size = tuple[int, int]


class ImageRule(Protocol):
    """Prices one image."""

    def tokens(self, size: Size | None, detail: str) -> int:
        """Return the tokens of one image; of the most expensive there is where ``size`` is None."""


@dataclass(frozen=True, slots=True)
class TileRule:
    """Images by tiles of 512 pixels, after fitting into 2,048 and the short side into 768 (vision guide, 2026)."""

    base: int
    tile: int

    def tokens(self, size: Size | None, detail: str) -> int:
        """Return the tokens of one image; of the largest there is where ``size`` is None."""
        if detail == "low":
            return self.base
        return self.base + self.tile * (_tiles(*size) if size else 8)


@dataclass(frozen=True, slots=True)
class PatchRule:
    """Images by patches of 32 pixels, at most ``cap``, times a model's factor (same guide).

    An image of more patches is first made smaller, so that whole patches fill the cap nearly; the guide's example:
    1,800 x 2,400 comes to 33 x 44. Reported usage is one more than the guide's number (3 recordings). ``detail``
    changes nothing, but that ``original`` lifts the cap where a model knows it.
    """

    factor: float
    cap: int = 1_536
    original_cap: int = 0

    def tokens(self, size: Size | None, detail: str) -> int:
        """Return the tokens of one image; of the largest there is where ``size`` is None."""
        cap = max(self.cap, self.original_cap) if detail == "original" else self.cap
        patches = _patches(*size, cap) if size else cap
        return math.ceil(round(patches * self.factor, 6)) + 1


@dataclass(frozen=True, slots=True)
class GridRule:
    """Claude's images: patches of 28 pixels, after the long edge is fitted (Anthropic's vision guide, 2026).

    Recorded usage is up to 3 more: 1001 x 1001 1,297-1,299 against 1,296, 540 x 360 263 against 260.
    ``detail`` is none of Claude's words.
    """

    edge: int
    cap: int
    extra: int = 3

    def tokens(self, size: Size | None, detail: str) -> int:
        """Return the tokens of one image; the cap where ``size`` is None."""
        if size is None:
            return self.cap + self.extra
        width, height = _fitted(*size, self.edge)
        return min(self.cap, -(-width // 28) * -(-height // 28)) + self.extra


@dataclass(frozen=True, slots=True)
class PixelTileRule:
    """Gemini 2's images: 258 up to 384 pixels a side, else 258 a tile and 258 more (Google's token page, 2026).

    A tile's side is the short side divided by 1.5, but 256 to 768 pixels. Recorded: 3008 x 2000 comes to 13 x 258.
    Larger images than 3,072 pixels a side are made smaller first (same page).
    """

    tile: int = 258

    def tokens(self, size: Size | None, detail: str) -> int:
        """Return the tokens of one image; of the most tiles there can be, a panorama's, where ``size`` is None."""
        if size is None:
            return self.tile * 25
        if max(size) <= 384:
            return self.tile
        width, height = _fitted(*size, 3_072)
        side = min(768, max(256, min(width, height) * 2 // 3))
        return self.tile * (-(-width // side) * -(-height // side) + 1)


_LEVELS = {
    "media_resolution_low": 280,
    "media_resolution_medium": 560,
    "media_resolution_high": 1_120,
    "media_resolution_ultra_high": 2_240,
    "ultra_high": 2_240,
}


@dataclass(frozen=True, slots=True)
class LevelRule:
    """Gemini 3's images: one price by ``media_resolution``, whatever the size (Google's page on it, 2026).

    Only Gemini's own words lower the price: that OpenAI's ``detail: low`` is heeded is nowhere promised.
    """

    default: int = 1_120

    def tokens(self, size: Size | None, detail: str) -> int:
        """Return the tokens of one image."""
        return _LEVELS.get(detail, self.default)


@dataclass(frozen=True, slots=True)
class UnknownRule:
    """Images of a provider that nobody knows: Claude's patches, at least Gemini 3's price, up to a cap."""

    floor: int = 1_120
    cap: int = 4_800

    def tokens(self, size: Size | None, detail: str) -> int:
        """Return the tokens of one image; the cap where ``size`` is None."""
        if size is None:
            return self.cap
        return min(self.cap, max(self.floor, -(-size[0] // 28) * -(-size[1] // 28) + 3))


GPT_4O = TileRule(85, 170)
"""gpt-4o, gpt-4.1, gpt-4.5 (published; a recording of 3008 x 2000, 1,105, is exact)."""
GPT_4O_MINI = TileRule(2_833, 5_667)
"""Published."""
O_SERIES = TileRule(75, 150)
"""o1, o3 (published)."""
GPT_5 = TileRule(70, 140)
"""gpt-5, gpt-5-chat, gpt-5.1 (published)."""
GPT_4_1_MINI, GPT_4_1_NANO, O4_MINI = PatchRule(1.62), PatchRule(2.46), PatchRule(1.72)
"""Published; on nano a recording of 540 x 360, 503, is exact."""
GPT_5_MINI, GPT_5_NANO = PatchRule(1.62), PatchRule(2.46)
"""Published. Users measured 1.2 and 1.5 (community threads 1344040 and 1377015, two recordings on mini exact with
1.2): the larger of the two is the safe one."""
GPT_5_2 = PatchRule(1.62)
"""gpt-5.2 and 5.3, measured 1.2 by users: bounded as gpt-5-mini."""
GPT_5_4 = PatchRule(1.62, 2_500, 10_000)
"""gpt-5.4 and later: 2,500 patches, 10,000 with ``detail: original`` (published)."""
CLAUDE = GridRule(1_568, 1_600)
"""Up to 4.6: 1,568 pixels and about 1,600 tokens (published)."""
CLAUDE_HIGH = GridRule(2_576, 4_797)
"""From 4.7: 2,576 pixels, about three times the tokens (published); with the extra 4,800, as the estimate says."""
GEMINI_2, GEMINI_3 = PixelTileRule(), LevelRule()
UNKNOWN = UnknownRule()
"""The same as `contextshift.estimate.estimate_image`; under it is gpt-4o-mini alone, and Gemini 2 on large images."""


def _fitted(width: int, height: int, edge: int) -> Size:
    """Return the size made smaller until its long side is ``edge``; each side rounded up."""
    longest = max(width, height)
    if longest <= edge:
        return width, height
    return max(1, -(-width * edge // longest)), max(1, -(-height * edge // longest))


def _tiles(width: int, height: int) -> int:
    width, height = _fitted(max(1, width), max(1, height), 2_048)
    short = min(width, height)
    up, down = (768, short) if short > 768 else (1, 1)
    return -(-width * up // (down * 512)) * -(-height * up // (down * 512))


def _patches(width: int, height: int, cap: int) -> int:
    patches = -(-width // 32) * -(-height // 32)
    if patches <= cap:
        return patches
    shrink = math.sqrt(32 * 32 * cap / (width * height))
    across, down = width * shrink / 32, height * shrink / 32
    if min(across, down) < 1:  # thinner than a patch when shrunk: the guide has no word for it
        return cap
    shrink = min(math.floor(across) / across, math.floor(down) / down)
    return min(cap, math.ceil(round(across * shrink, 6)) * math.ceil(round(down * shrink, 6)))
