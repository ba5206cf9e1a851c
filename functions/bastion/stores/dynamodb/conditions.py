"""Every change of one item, with the condition under which it may happen, clause by clause.

An attribute is written ``#name`` throughout, which keeps clear of DynamoDB's reserved words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from bastion.stores.dynamodb.items import SCHEMA, Attribute, Item, number, text
from contextshift.audit import AuditStatus
from contextshift.ports import Ticket

__all__ = [
    "ABSENT",
    "Change",
    "becomes_newest",
    "ends_life",
    "forgets_lives",
    "is_version",
    "more_of",
    "names_in",
    "next_place",
    "once_ended",
    "still_prepared",
]

_NAME = re.compile(r"#(\w+)")

# Nothing is stored under the key.
ABSENT = "attribute_not_exists(#pk)"


@dataclass(frozen=True, slots=True)
class Change:
    """An update of one item, and the condition it is made under; None: whatever is stored."""

    update: str
    values: Mapping[str, Attribute]
    condition: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    """What names stand for that do not stand for themselves."""


def names_in(*expressions: str | None) -> dict[str, str]:
    """Return what the ``#name`` of expressions stand for: themselves."""
    return {f"#{name}": name for text_ in expressions if text_ for name in _NAME.findall(text_)}


def next_place(fresh_epoch: str, now: float, expires: int | None) -> Change:
    """Take the next place in a chat's order. Unconditional: it makes the chat, or its next life, where needed.

    A deletion removes ``epoch``, so the same update that counts on in a living chat starts a new life in a
    deleted one. Done twice because an answer was lost, it skips a place, which nobody minds.
    """
    fields = [
        "#state = :live",
        "#epoch = if_not_exists(#epoch, :fresh)",
        "#kind = if_not_exists(#kind, :proxy)",
        "#created_at = if_not_exists(#created_at, :now)",
        *_TOUCHED,
    ]
    values = {":live": text("live"), ":fresh": text(fresh_epoch), ":proxy": text("proxy"), ":one": number(1)}
    if expires is None:
        return Change(f"SET {', '.join(fields)} REMOVE #expires ADD #seq :one", values | _touched(now))
    fields.append("#expires = :expires")
    values[":expires"] = number(expires)
    return Change(f"SET {', '.join(fields)} ADD #seq :one", values | _touched(now))


def becomes_newest(ticket: Ticket, now: float) -> Change:
    """Make a prepared audit the chat's newest: the one conditional write that replaces."""
    same_life = "#epoch = :epoch"  # the chat was not deleted since we began, nor deleted and begun anew
    first = "attribute_not_exists(#cur)"  # nothing was committed in this life so far
    later = "#cur < :seq"  # what was committed began before us
    return Change(
        _set("#cur = :seq"),
        {":epoch": text(ticket.epoch), ":seq": number(ticket.seq)} | _touched(now),
        f"{same_life} AND ({first} OR {later})",
    )


def once_ended(ticket: Ticket, end: Item, now: float) -> Change:
    """End an audit: ``end`` are the attributes that say how. Never touches the head."""
    condition, values = still_prepared(ticket)
    fields = ", ".join(f"#{name} = :{name}" for name in end)
    ends = {f":{name}": attribute for name, attribute in end.items()}
    return Change(_set(fields), values | ends | _touched(now), condition)


def still_prepared(ticket: Ticket) -> tuple[str, dict[str, Attribute]]:
    """Return the condition that a record is there, is this generation's, and has not ended, with its values."""
    not_ended = "#status = :prepared"  # a terminal status never changes again
    mine = "#gid = :gid"  # the place is ours, not one of a chat that was restored from a backup
    values = {":prepared": text(AuditStatus.PREPARED.value), ":gid": text(ticket.generation_id)}
    return f"{not_ended} AND {mine}", values


def ends_life(epoch: str, now: float, expires: int, purge_after: int) -> Change:
    """Delete a chat: from here on it reads as absent and no commit of this life can win.

    The tombstone remembers which lives are to be purged, and from when on a purge is the last one needed.
    """
    same_life = "#epoch = :epoch"  # nobody deleted it, or deleted it and began anew, since we looked
    update = _set("#state = :deleted, #expires = :expires, #purge_after = :purge_after")
    values = {
        ":deleted": text("deleted"),
        ":expires": number(expires),
        ":purge_after": number(purge_after),
        ":buried": {"SS": [epoch]},
        ":epoch": text(epoch),
    }
    return Change(f"{update} REMOVE #epoch, #cur, #kind ADD #buried :buried", values | _touched(now), same_life)


def forgets_lives(epochs: tuple[str, ...], now: float) -> Change:
    """Take lives whose purge is complete off the head's list."""
    still_there = "attribute_exists(#pk)"  # an update would make a head that TTL has deleted meanwhile
    return Change(f"{_set()} DELETE #buried :buried", {":buried": {"SS": list(epochs)}} | _touched(now), still_there)


def is_version(version: int) -> tuple[str, dict[str, Attribute]]:
    """Return the condition that settings are still at ``version`` (0: never written), with its values."""
    if version == 0:
        return ABSENT, {}
    return "#version = :version", {":version": number(version)}


def more_of(counts: Mapping[str, int], now: float, expires: int) -> Change:
    """Add to number attributes, whatever they are called, making them and the item where there are none."""
    numbered = list(enumerate(counts.items()))
    added = ", ".join(f"#n{index} :n{index}" for index, _ in numbered)
    update = _set("#created_at = if_not_exists(#created_at, :now), #expires = :expires")
    return Change(
        f"{update} ADD {added}",
        {f":n{index}": number(many) for index, (_, many) in numbered} | {":expires": number(expires)} | _touched(now),
        names={f"#n{index}": name for index, (name, _) in numbered},
    )


_TOUCHED = ("#schema = :schema", "#updated_at = :now")


def _touched(now: float) -> dict[str, Attribute]:
    return {":schema": number(SCHEMA), ":now": number(now)}


def _set(*fields: str) -> str:
    return "SET " + ", ".join((*fields, *_TOUCHED))
