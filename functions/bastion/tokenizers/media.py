"""What audio, video and files cost, by each provider's published rates; safe bounds where a rule is a range."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bastion.tokenizers.images import CLAUDE, CLAUDE_HIGH, GPT_4O, ImageRule
from contextshift.estimate import estimate_text
from contextshift.media import media_kind, media_pages, media_seconds, plain_text

__all__ = [
    "CLAUDE_HIGH_MEDIA",
    "CLAUDE_MEDIA",
    "GEMINI_2_MEDIA",
    "GEMINI_3_MEDIA",
    "OPENAI_MEDIA",
    "UNKNOWN_MEDIA",
    "MediaRule",
]

PAGE = (1_240, 1_754)
"""Pixels of a page as a picture: A4 at 150 dpi. No provider publishes its own."""


@dataclass(frozen=True, slots=True)
class MediaRule:
    """Prices one audio, video or file part, never by its base64 as text."""

    audio: float = 32
    """Tokens a second."""
    video: float = 263
    """Tokens a second."""
    page: int = 3_000
    """Tokens of a page's text, or of the page where no picture of it is priced beside it."""
    pictures: ImageRule | None = None
    """By which rule each page is priced as a picture as well."""
    page_size: tuple[int, int] | None = PAGE

    def tokens(self, part: Mapping[str, Any], count_text: Callable[[str], int] = estimate_text) -> int:
        """Return the tokens of a part; at least one, and a bound where its header tells no more than its size.

        ``count_text`` prices what a file of plain text says.
        """
        kind = media_kind(part)
        if kind == "file":
            return media_pages(part) * self._page()
        if kind == "text":
            text = plain_text(part)
            return self.page if text is None else max(1, count_text(text))
        return max(1, math.ceil(media_seconds(part) * (self.audio if kind == "audio" else self.video)))

    def _page(self) -> int:
        return self.page + (self.pictures.tokens(self.page_size, "high") if self.pictures else 0)


OPENAI_MEDIA = MediaRule(audio=10, page=1_500, pictures=GPT_4O)
"""Audio 10 tokens a second; a PDF's text and a picture of each page (OpenAI's audio and file guides, 2026). A page
of close print is 1,500 tokens at most by Anthropic's lower bound. For another model replace ``pictures`` by its rule.
Video is not taken."""
CLAUDE_MEDIA = MediaRule(pictures=CLAUDE)
"""1,500-3,000 tokens of text a page and a picture of it (Anthropic's PDF guide, 2026); no audio, no video."""
CLAUDE_HIGH_MEDIA = MediaRule(pictures=CLAUDE_HIGH)
"""The same from 4.7."""
GEMINI_2_MEDIA = MediaRule(page=258)
"""32 tokens a second of audio, 263 of video, 258 a page (Google's token page, 2026; 5 pages = 1,290 recorded)."""
GEMINI_3_MEDIA = MediaRule(page=1_120)
"""A page as an image by ``media_resolution``, medium by default; high is its bound (Google's page on it, 2026). Its
70 tokens a frame are less than 263 a second at one frame a second."""
UNKNOWN_MEDIA = MediaRule()
"""As `contextshift.media.media_tokens`."""
