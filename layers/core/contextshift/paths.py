"""Pages of a branch: which numbers of which branches are still to be read, given where the last page ended.

A cursor is the id of the last message that was delivered. It holds whatever is appended or removed meanwhile: no
message comes twice, and none that stays is passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from contextshift.chats import BranchRecord, place_of
from contextshift.errors import InvalidInput

__all__ = ["LAST_N", "Stretch", "stretches", "stretches_after"]

LAST_N = 999_999_999
"""The highest number a message can have."""
Stretch = tuple[str, int, int]
"""(branch, first n, last n), both included."""


def stretches(branch: BranchRecord) -> list[Stretch]:
    """Return what a branch's path is made of, oldest first.

    >>> stretches(BranchRecord("b", (("main", 4),)))
    [('main', 1, 4), ('b', 5, 999999999)]
    """
    return [stretch for stretch in _stretches(branch) if stretch[1] <= stretch[2]]


def stretches_after(branch: BranchRecord, cursor: str | None, *, newest_first: bool) -> Sequence[Stretch]:
    """Return what is left of a branch's path behind a cursor, in the order of reading.

    Raises InvalidInput for a cursor that is no place on this path.

    >>> stretches_after(BranchRecord("b", (("main", 4),)), "main.2", newest_first=False)
    [('main', 3, 4), ('b', 5, 999999999)]
    """
    path = stretches(branch)
    if cursor is not None:
        path = _behind(path, cursor, newest_first=newest_first)
    return path[::-1] if newest_first else path


def _stretches(branch: BranchRecord) -> Iterator[Stretch]:
    first = 1
    for owner, last in branch.path:
        yield owner, first, LAST_N if last is None else last
        first = max(first, (last or 0) + 1)


def _behind(path: list[Stretch], cursor: str, *, newest_first: bool) -> list[Stretch]:
    place = place_of(cursor)
    for index, (owner, first, last) in enumerate(path):
        if place is not None and owner == place[0] and first <= place[1] <= last:
            n = place[1]
            kept = (
                [*path[:index], (owner, first, n - 1)] if newest_first else [(owner, n + 1, last), *path[index + 1 :]]
            )
            return [stretch for stretch in kept if stretch[1] <= stretch[2]]
    raise InvalidInput("no cursor of this list", "cursor", "invalid_cursor")
