"""What an import says about a file it took: fields kept but not acted on, and damage it put up with."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

__all__ = ["MAX_NOTICES", "Notice", "NoticeCode", "Notices", "inner"]

MAX_NOTICES = 1000
"""Notices of one import; further ones are summed up in one ``more``."""
_MAX_NAME = 80


class NoticeCode(StrEnum):
    """Why a notice stands in ``warnings``. Stable."""

    NOT_HONOURED = "not-honoured"
    """Kept and exported, but nothing here acts on it."""
    INVALID_VALUE = "invalid-value"
    """Kept, but of a kind that this field cannot have; read as if it were absent."""
    CONVERTED = "converted"
    """A number or a list written as text; read as meant."""
    MISSING_FIELD = "missing-field"
    """The format requires it; its default stands in."""
    LEGACY_DIFFERS = "legacy-differs"
    """A V1 copy beside ``data`` says something else; ``data`` counts."""
    SPEC_VERSION = "spec-version"
    """Not the version that its ``spec`` names."""
    UNKNOWN_SPEC = "unknown-spec"
    """Read as the newest known version of its kind."""
    REPEATED_KEY = "repeated-key"
    """A key is given twice in one JSON object; the last counts, as in every reader."""
    BAD_CRC = "bad-crc"
    TRUNCATED = "truncated"
    """The picture ends before its last chunk does."""
    NOT_BASE64 = "not-base64"
    """The chunk holds JSON as it is."""
    REPEATED_CHUNK = "repeated-chunk"
    """Two chunks of one name; the first readable one counts."""
    UNREADABLE_CHUNK = "unreadable-chunk"
    """Passed over, since another chunk holds the card."""
    CHARA_DIFFERS = "chara-differs"
    """``chara`` tells another character than ``ccv3``; ``ccv3`` counts."""
    ASSETS_NOT_KEPT = "assets-not-kept"
    """Pictures and other files beside the card are not stored."""
    MORE = "more"
    """There were more notices than are listed."""


@dataclass(frozen=True, slots=True)
class Notice:
    """One warning: the field in the uploaded file's own spelling, as ``data.extensions.world``, and a code."""

    path: str
    code: NoticeCode

    def as_dict(self) -> dict[str, str]:
        """Return the element of ``warnings``."""
        return {"path": self.path, "code": str(self.code)}


@dataclass(slots=True)
class Notices:
    """Collects notices: each once, in order, and never more than ``MAX_NOTICES`` and a word that there were more."""

    _found: dict[Notice, None] = field(default_factory=dict)

    def add(self, path: str, code: NoticeCode) -> None:
        """Note ``code`` at ``path``."""
        if len(self._found) < MAX_NOTICES:
            self._found[Notice(path, code)] = None
        else:
            self._found[Notice("", NoticeCode.MORE)] = None

    def listed(self) -> tuple[Notice, ...]:
        """Return the notices in the order they were found."""
        return tuple(self._found)


def inner(path: str, name: str | int) -> str:
    """Return the path of a member; names that a file brings are cut short.

    >>> inner(inner("data", "entries"), 3)
    'data.entries[3]'
    """
    if isinstance(name, int):
        return f"{path}[{name}]"
    name = name if len(name) <= _MAX_NAME else name[:_MAX_NAME] + "…"
    return f"{path}.{name}" if path else name
