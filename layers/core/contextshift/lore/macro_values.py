"""What macros draw, turn round and write out: plain functions of text and seeds."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Sequence

__all__ = ["Value", "alternatives", "backwards", "drawn", "rendered", "rolled"]

_MAX_DICE = 100
_MAX_SIDES = 1_000_000_000
_COMMA = re.compile(r"(\\,|,)")
_ROLL = re.compile(r"(?:([0-9]{0,3})d)?([0-9]{1,10})(?:\s*([+-])\s*([0-9]{1,9}))?", re.IGNORECASE | re.ASCII)
_JOINERS = "\u200d\ufe0e\ufe0f"


class Value(str):
    """What a macro gave: read neither for names nor for separators."""

    __slots__ = ()


def drawn(seed: str, place: str, start: int, macro: str, many: int = 1) -> list[int]:
    """Return ``many`` times 64 random bits that belong to a seed, a place and a macro as it is written (SHAKE-256)."""
    written = json.dumps((seed, place, start, macro)).encode()
    bits = hashlib.shake_256(written).digest(8 * many)
    return [int.from_bytes(bits[at : at + 8]) for at in range(0, 8 * many, 8)]


def rolled(formula: str, draw: Callable[[int], Sequence[int]]) -> int | None:
    """Return a roll of ``20``, ``d6`` or ``2d6+1``; ``draw`` gives the random bits of so many dice.

    None for what is no roll, and for more than a hundred dice or a billion sides.
    """
    read = _ROLL.fullmatch(formula)
    if not read:
        return None
    dice, sides = int(read[1] or 1), int(read[2])
    if not (1 <= dice <= _MAX_DICE and 1 <= sides <= _MAX_SIDES):
        return None
    return sum(bits % sides + 1 for bits in draw(dice)) + int(f"{read[3] or ''}{read[4] or 0}")


def alternatives(argument: Sequence[str]) -> list[str]:
    """Return what is written between ``::``, else between commas (without the spaces around them; ``\\,`` is none)."""
    doubled = any("::" in piece for piece in argument if not isinstance(piece, Value))
    items: list[list[str]] = [[]]
    for piece in argument:
        if isinstance(piece, Value):
            items[-1].append(piece)
            continue
        for part in re.split("(::)", piece) if doubled else _COMMA.split(piece):
            if part == ("::" if doubled else ","):
                items.append([])
            else:
                items[-1].append("," if part == "\\," and not doubled else part)
    texts = ["".join(item) for item in items]
    return texts if doubled else [text.strip() for text in texts]


def backwards(text: str) -> str:
    """Return ``text`` backwards; marks stay on their letters."""
    clusters: list[list[str]] = []
    for char in text:
        if clusters and (unicodedata.combining(char) or char in _JOINERS):
            clusters[-1].append(char)
        else:
            clusters.append([char])
    return "".join(char for cluster in reversed(clusters) for char in cluster)


def rendered(value: object) -> str:
    """Return a variable's JSON value as text: text as it is, null as nothing."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool | dict | list):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)
