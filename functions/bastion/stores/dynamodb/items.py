"""DynamoDB's attribute format, and the key of every item.

====================  ==========================  ===========================================================
table, partition      sort key                    item
====================  ==========================  ===========================================================
control K#<hash>      KEY                         a key
control A#<acct>      ACCOUNT                     an account
control A#<acct>      KEY#<hash>                  that the account has this key
control A#<acct>      SET#security                its settings
control A#<acct>      MODEL#all                   its overlay of the catalogue
control G#catalogue   MODEL#all                   the deployment's overlay of the catalogue
control A#<acct>      CAL#<date>                  its calibration: samples of one day, an attribute for each step
chats C#<acct>#<id>   H                           a chat's head, under 1 KB
chats …#<epoch>       A#<seq>                     an audit's record: small, the only part that changes
chats …#<epoch>       A#<seq>#<attempt>#<i>       its parts: immutable, up to 380 KB each
====================  ==========================  ===========================================================

``#`` cannot stand in an account or a chat id, so no two of them share a key. Every item has ``schema``,
``created_at`` and ``updated_at``; what ends by itself has ``expires`` (the TTL attribute), which readers
check themselves because the table's own deletion comes late.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

from contextshift.errors import StoreUnavailable
from contextshift.ports import Ticket

__all__ = [
    "SCHEMA",
    "Attribute",
    "Item",
    "Key",
    "account_key",
    "account_partition",
    "calibration_key",
    "check_schema",
    "expired",
    "expiring",
    "flag",
    "head_key",
    "integer_of",
    "integer_or_none",
    "key_index_key",
    "key_key",
    "key_of",
    "life_partition",
    "number",
    "number_of",
    "overlay_key",
    "part_sk",
    "record_sk",
    "settings_key",
    "stamps",
    "text",
    "text_of",
    "text_or_none",
    "texts",
    "texts_of",
    "ticket_partition",
]

SCHEMA = 1
_SEQ_DIGITS = 12
_PART_DIGITS = 4
_EPOCH = date(1970, 1, 1).toordinal()

Attribute = dict[str, Any]
Item = dict[str, Attribute]
Key = dict[str, Attribute]


# -- where items live --------------------------------------------------------------------------------


def key_key(key_hash: str) -> Key:
    """Return where the record of a key is."""
    return _key(f"K#{key_hash}", "KEY")


def account_partition(account: str) -> str:
    """Return the partition of all that an account is."""
    return f"A#{account}"


def account_key(account: str) -> Key:
    """Return where an account's plan is."""
    return _key(account_partition(account), "ACCOUNT")


def settings_key(account: str) -> Key:
    """Return where an account's settings are."""
    return _key(account_partition(account), "SET#security")


def overlay_key(account: str | None) -> Key:
    """Return where an account's overlay of the catalogue is, None standing for the deployment's."""
    return _key("G#catalogue" if account is None else account_partition(account), "MODEL#all")


def calibration_key(account: str, day: int) -> Key:
    """Return where an account's samples of a day, counted from the epoch, are."""
    return _key(account_partition(account), f"CAL#{date.fromordinal(_EPOCH + day).isoformat()}")


def key_index_key(account: str, key_hash: str) -> Key:
    """Return where it is noted that an account has a key."""
    return _key(account_partition(account), f"KEY#{key_hash}")


def head_key(account: str, chat_id: str) -> Key:
    """Return where a chat's head is."""
    return _key(f"C#{account}#{chat_id}", "H")


def life_partition(account: str, chat_id: str, epoch: str) -> str:
    """Return the partition of what one life of a chat owns."""
    return f"C#{account}#{chat_id}#{epoch}"


def record_sk(seq: int) -> str:
    """Return the sort key of an audit's record; it stands right before its parts."""
    return f"A#{seq:0{_SEQ_DIGITS}d}"


def part_sk(seq: int, attempt: int, index: int) -> str:
    """Return the sort key of one part."""
    return f"{record_sk(seq)}#{attempt:02d}#{index:0{_PART_DIGITS}d}"


def key_of(item: Item) -> Key:
    """Return an item's key."""
    return {"pk": item["pk"], "sk": item["sk"]}


def _key(partition: str, sort: str) -> Key:
    return {"pk": text(partition), "sk": text(sort)}


# -- writing attributes ------------------------------------------------------------------------------


def text(value: str) -> Attribute:
    """Return a string attribute."""
    return {"S": value}


def number(value: float) -> Attribute:
    """Return a number attribute; a float comes back exactly, 17 digits being fewer than 38."""
    return {"N": repr(value)}


def flag(value: bool) -> Attribute:
    """Return a boolean attribute."""
    return {"BOOL": value}


def texts(values: Iterable[str]) -> Attribute:
    """Return a list of strings: ordered and, unlike a set, possibly empty."""
    return {"L": [text(value) for value in values]}


def expiring(expires: int | None) -> Item:
    """Return the TTL attribute, or nothing for what stays."""
    return {} if expires is None else {"expires": number(expires)}


def stamps(now: float, created_at: float | None = None) -> Item:
    """Return what every item has: its schema and when it was made and changed."""
    made = now if created_at is None else created_at
    return {"schema": number(SCHEMA), "created_at": number(made), "updated_at": number(now)}


# -- reading attributes ------------------------------------------------------------------------------


def check_schema(item: Item) -> Item:
    """Return an item of this schema or the one before; raise StoreUnavailable for one we would misread."""
    if integer_of(item, "schema") not in (SCHEMA - 1, SCHEMA):
        raise StoreUnavailable("an item has a schema this version cannot read")
    return item


def expired(item: Item, now: float) -> bool:
    """Say whether the item's time is over, however late the table deletes it."""
    expires = integer_or_none(item, "expires")
    return expires is not None and expires <= now


def text_of(item: Item, name: str) -> str:
    """Return a string attribute, empty where there is none."""
    return text_or_none(item, name) or ""


def text_or_none(item: Item, name: str) -> str | None:
    """Return a string attribute, None where there is none."""
    return item[name]["S"] if name in item else None


def number_of(item: Item, name: str) -> float:
    """Return a number attribute, 0 where there is none."""
    return float(item[name]["N"]) if name in item else 0.0


def integer_of(item: Item, name: str) -> int:
    """Return a whole number, 0 where there is none."""
    return integer_or_none(item, name) or 0


def integer_or_none(item: Item, name: str) -> int | None:
    """Return a whole number, None where there is none."""
    return int(item[name]["N"]) if name in item else None


def texts_of(item: Mapping[str, Attribute], name: str) -> tuple[str, ...]:
    """Return a list or a set of strings, empty where there is none."""
    attribute = item.get(name, {})
    return tuple(attribute["SS"]) if "SS" in attribute else tuple(entry["S"] for entry in attribute.get("L", ()))


def ticket_partition(ticket: Ticket) -> str:
    """Return the partition of the life a ticket was taken in."""
    return life_partition(ticket.account, ticket.chat_id, ticket.epoch)
