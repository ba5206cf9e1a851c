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
    "CHAT",
    "MAKING",
    "PRESENT",
    "Change",
    "becomes_newest",
    "begins_chat",
    "cancels",
    "counts_on",
    "ends_generation",
    "ends_key",
    "ends_life",
    "forgets_lives",
    "is_version",
    "is_write",
    "lives_in",
    "more_of",
    "names_in",
    "next_place",
    "next_place_in_chat",
    "once_ended",
    "opens_chat",
    "progresses",
    "settles",
    "still_prepared",
    "unclaimed",
]

_NAME = re.compile(r"#(\w+)")

# Nothing is stored under the key.
ABSENT = "attribute_not_exists(#pk)"
PRESENT = "attribute_exists(#pk)"
CHAT = "chat"
"""The kind of a stored chat's life."""
MAKING = "making"
"""The kind of one whose first messages are still being written: nobody sees it yet."""


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
    """Take the next place in the order of a chat of the proxy, making the chat, or its next life, where needed.

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
    not_stored = "(attribute_not_exists(#kind) OR #kind = :proxy)"  # a stored chat stays until it is deleted
    if expires is None:
        return Change(f"SET {', '.join(fields)} REMOVE #expires ADD #seq :one", values | _touched(now), not_stored)
    fields.append("#expires = :expires")
    values[":expires"] = number(expires)
    return Change(f"SET {', '.join(fields)} ADD #seq :one", values | _touched(now), not_stored)


def next_place_in_chat(now: float) -> Change:
    """Take the next place in the order of a stored chat."""
    stored = "#kind = :chat"  # there is one, alive
    return Change(f"{_set()} ADD #seq :one", {":chat": text(CHAT), ":one": number(1)} | _touched(now), stored)


def begins_chat(epoch: str, kind: str, now: float) -> Change:
    """Begin the life of a stored chat, of kind `CHAT`, or `MAKING` until `opens_chat`."""
    nobody_lives = "attribute_not_exists(#epoch)"
    update = _set("#state = :live, #epoch = :epoch, #kind = :kind, #created_at = :now")
    values = {":live": text("live"), ":epoch": text(epoch), ":kind": text(kind)}
    return Change(f"{update} REMOVE #expires, #cur", values | _touched(now), nobody_lives)


def opens_chat(epoch: str, now: float) -> Change:
    """Let a chat be seen that is all written."""
    same_life = "#epoch = :epoch"  # nobody deleted it meanwhile
    return Change(_set("#kind = :chat"), {":chat": text(CHAT), ":epoch": text(epoch)} | _touched(now), same_life)


def counts_on(last: int, more: int, now: float) -> Change:
    """Give a branch's next ``more`` numbers."""
    nobody_else = "#last = :last"  # since we looked
    values = {":last": number(last), ":next": number(last + more)}
    return Change(_set("#last = :next"), values | _touched(now), nobody_else)


def ends_generation(end: Item, message: str | None, now: float) -> Change:
    """End a generation that another process may be asking for."""
    not_ended = "#status = :prepared"
    said = end if message is None else end | {"message": text(message)}
    fields = ", ".join(f"#{name} = :{name}" for name in said)
    values = {f":{name}": attribute for name, attribute in said.items()} | {":prepared": text("prepared")}
    return Change(_set(fields), values | _touched(now), not_ended)


def progresses(said: bytes, now: float) -> Change:
    """Keep what a generation has said so far."""
    return Change(_set("#said = :said"), {":said": {"B": said}} | _touched(now), PRESENT)


def cancels(now: float) -> Change:
    """Ask for a generation to be cancelled."""
    not_ended = "#status = :prepared"
    values: dict[str, Attribute] = {":true": {"BOOL": True}, ":prepared": text("prepared")}
    return Change(_set("#cancelled = :true"), values | _touched(now), not_ended)


def lives_in(epoch: str) -> tuple[str, dict[str, Attribute]]:
    """Return the condition that a head still is of this life, with its values."""
    return "#epoch = :epoch", {":epoch": text(epoch)}


def is_write(write: str) -> tuple[str, dict[str, Attribute]]:
    """Return the condition that an item is as one write left it, with its values."""
    return "#write = :write", {":write": text(write)}


def unclaimed(now: float) -> tuple[str, dict[str, Attribute]]:
    """Return the condition that a key is bound to nothing, or that the time of its binding is over."""
    return f"{ABSENT} OR #expires <= :now", {":now": number(now)}


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


def ends_key(expires: int | None, now: float) -> Change:
    """Change when a key ends, whatever else becomes of it meanwhile."""
    if expires is None:
        return Change(f"{_set()} REMOVE #expires", _touched(now), PRESENT)
    return Change(_set("#expires = :expires"), {":expires": number(expires)} | _touched(now), PRESENT)


def is_version(version: int) -> tuple[str, dict[str, Attribute]]:
    """Return the condition that settings are still at ``version`` (0: never written), with its values."""
    if version == 0:
        return ABSENT, {}
    return "#version = :version", {":version": number(version)}


def settles(values: str, version: int, expected: int, by: str, write: str, now: float) -> Change:
    """Replace an account's settings while they still are at ``expected`` (0: never written).

    An update and not a put: who serves calls may change items of accounts, and put none.
    """
    condition, known = is_version(expected)
    changed = {":values": text(values), ":next": number(version), ":by": text(by), ":write": text(write)}
    fields = (
        "#values = :values",
        "#version = :next",
        "#updated_by = :by",
        "#write = :write",
        "#created_at = if_not_exists(#created_at, :now)",
    )
    return Change(_set(*fields), changed | known | _touched(now), condition)


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
