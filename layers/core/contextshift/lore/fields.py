"""Reading fields that may stand in several places and spellings, each with its kind and its path.

A field of the format itself with a wrong kind of value is refused. ``extensions`` belong to everybody: a value there
that we cannot read is passed over with a notice, as is the same name where the format does not define it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from contextshift.errors import InvalidInput
from contextshift.lore.notices import NoticeCode, Notices, inner

__all__ = [
    "EXTENSIONS",
    "Fields",
    "Spot",
    "Unreadable",
    "flag",
    "is_inert",
    "mapping",
    "number",
    "text",
    "texts",
    "whole",
]

T = TypeVar("T")
D = TypeVar("D")

EXTENSIONS = "extensions"
_LARGEST = 2.0**53
"""Beyond it readers of JSON disagree about integers (RFC 8259, section 6)."""


@dataclass(frozen=True, slots=True)
class Spot:
    """One place where a field may stand."""

    name: str
    extension: bool = False
    strict: bool = True
    """Whether a wrong kind of value there is refused."""


class Unreadable(Exception):
    """Raise from a reader of a kind: the value is not what was ``expected``.

    ``suffix`` leads from the field's path to the part at fault. ``tolerated``: of the right kind, but not a
    value anybody here knows, so that it is passed over also where the format defines the field.
    """

    def __init__(
        self, expected: str, reason: str = "invalid_type", suffix: str = "", *, tolerated: bool = False
    ) -> None:
        super().__init__(expected)
        self.expected = expected
        self.reason = reason
        self.suffix = suffix
        self.tolerated = tolerated


@dataclass(frozen=True, slots=True)
class Fields:
    """A JSON object at ``path``, whose fields are taken by kind."""

    data: Mapping[str, Any]
    path: str
    notices: Notices

    @classmethod
    def of(cls, value: object, path: str, notices: Notices) -> Fields:
        """Return the fields of an object. Raises InvalidInput where ``value`` is none."""
        if not isinstance(value, dict):
            raise InvalidInput("must be an object", path or None, "invalid_type")
        if not isinstance(value.get(EXTENSIONS, {}), dict | None):
            raise InvalidInput("must be an object", inner(path, EXTENSIONS), "invalid_type")
        return cls(value, path, notices)

    def take(self, read: Callable[[Any], T], default: D, *spots: Spot | str) -> T | D:
        """Return the first value there is among ``spots``, read by kind. Null is absent.

        Raises InvalidInput, with the path of the field, for a wrong kind at a strict spot.
        """
        for spot in spots:
            where = spot if isinstance(spot, Spot) else Spot(spot)
            value = self._at(where)
            if value is None:
                continue
            try:
                found = read(value)
            except Unreadable as wrong:
                self._refuse(where, wrong)
                continue
            if isinstance(value, str) and not isinstance(found, str):
                self.notices.add(self.path_of(where), NoticeCode.CONVERTED)
            return found
        return default

    def path_of(self, spot: Spot) -> str:
        """Return the full path of ``spot``."""
        return inner(inner(self.path, EXTENSIONS) if spot.extension else self.path, spot.name)

    def note(self, name: str, code: NoticeCode) -> None:
        """Add a notice about the field ``name``."""
        self.notices.add(inner(self.path, name), code)

    def extensions(self) -> Mapping[str, Any]:
        """Return what ``extensions`` hold; nothing where they are no object."""
        found = self.data.get(EXTENSIONS)
        return found if isinstance(found, dict) else {}

    def unhonoured(self, known: frozenset[str], known_extensions: frozenset[str]) -> None:
        """Add a notice for every field that says something and that nobody here acts on."""
        for spot in self._spots():
            names = known_extensions if spot.extension else known
            if spot.name not in names and not is_inert(self._at(spot)):
                self.notices.add(self.path_of(spot), NoticeCode.NOT_HONOURED)

    def _spots(self) -> Iterator[Spot]:
        yield from (Spot(name) for name in self.data if name != EXTENSIONS)
        yield from (Spot(name, extension=True) for name in self.extensions())

    def _at(self, spot: Spot) -> Any:
        return (self.extensions() if spot.extension else self.data).get(spot.name)

    def _refuse(self, spot: Spot, wrong: Unreadable) -> None:
        path = self.path_of(spot) + wrong.suffix
        if spot.strict and not spot.extension and not wrong.tolerated:
            raise InvalidInput(f"must be {wrong.expected}", path, wrong.reason) from None
        self.notices.add(path, NoticeCode.INVALID_VALUE)


def text(value: object) -> str:
    """Read text."""
    if not isinstance(value, str):
        raise Unreadable("text")
    return value


def flag(value: object) -> bool:
    """Read true or false; 0 and 1 will do."""
    if isinstance(value, bool) or (isinstance(value, int) and value in (0, 1)):
        return bool(value)
    raise Unreadable("true or false")


def number(value: object) -> float:
    """Read a number, also one written as text, of a size that all readers of JSON agree on."""
    if isinstance(value, str):
        try:
            value = float(value) if len(value) < 40 else value
        except ValueError:
            raise Unreadable("a number") from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unreadable("a number")
    if not -_LARGEST <= value <= _LARGEST:
        raise Unreadable("a number between -2^53 and 2^53", "invalid_number")
    return value


def whole(value: object) -> int:
    """Read a whole number that is not negative; negative ones are read as 0, as SillyTavern does."""
    found = number(value)
    if found != int(found):
        raise Unreadable("a whole number", "invalid_number")
    return max(0, int(found))


def texts(value: object) -> tuple[str, ...]:
    """Read a list of texts; one text is split at its commas. Null elements are left out."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if not isinstance(value, list):
        raise Unreadable("a list of texts")
    for index, item in enumerate(value):
        if not isinstance(item, str | None):
            raise Unreadable("text", suffix=f"[{index}]")
    return tuple(item for item in value if item is not None)


def mapping(value: object) -> Mapping[str, Any]:
    """Read an object."""
    if not isinstance(value, dict):
        raise Unreadable("an object")
    return value


def is_inert(value: object) -> bool:
    """Whether a field says nothing: null, false, empty, or holding only what says nothing."""
    if isinstance(value, dict):
        return all(map(is_inert, value.values()))
    if isinstance(value, list):
        return all(map(is_inert, value))
    return value is None or value is False or value == ""
