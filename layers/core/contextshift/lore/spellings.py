"""One entry, three spellings: where each of its fields may stand, and the typed entry they make.

Card V2 and V3 name an entry's fields themselves and leave the rest to ``extensions``; SillyTavern's World Info
names all of them in camel case, and in the ``extensions`` of a card it writes them in snake case, but for two. So a
field is looked for in its World Info name, then in ``extensions``, then in its other spellings; the first that is
not null counts.
"""

from __future__ import annotations

from typing import Any, TypeVar

from contextshift.lore.fields import Fields, Spot, Unreadable, flag, number, text, texts, whole
from contextshift.lore.model import Entry, Place, SecondaryLogic

__all__ = ["IN_EXTENSIONS", "RENAMED", "own_id", "read_entry", "role"]

T = TypeVar("T")

RENAMED = {
    "key": "keys",
    "keysecondary": "secondary_keys",
    "order": "insertion_order",
    "uid": "id",
    "caseSensitive": "case_sensitive",
}
"""World Info names of fields that V3 has a name of its own for."""

_HONOURED = (
    "delay_until_recursion",
    "exclude_recursion",
    "prevent_recursion",
    "probability",
    "use_probability",
    "sticky",
    "cooldown",
    "delay",
    "group",
    "group_override",
    "group_weight",
    "ignore_budget",
    "scan_depth",
    "depth",
    "role",
    "selective_logic",
    "outlet_name",
    "match_whole_words",
)
_KEPT = (
    "display_index",
    "use_group_scoring",
    "automation_id",
    "vectorized",
    "match_persona_description",
    "match_character_description",
    "match_character_personality",
    "match_character_depth_prompt",
    "match_scenario",
    "match_creator_notes",
    "triggers",
    "character_filter",
)
_CAMEL_IN_EXTENSIONS = {"use_probability", "selective_logic"}
_MAX_ID = 100

_PLACES = (
    Place.BEFORE_CHAR,
    Place.AFTER_CHAR,
    Place.BEFORE_NOTE,
    Place.AFTER_NOTE,
    Place.AT_DEPTH,
    Place.BEFORE_EXAMPLES,
    Place.AFTER_EXAMPLES,
    Place.OUTLET,
)
"""By World Info's number."""
_LOGICS = (SecondaryLogic.AND_ANY, SecondaryLogic.NOT_ALL, SecondaryLogic.NOT_ANY, SecondaryLogic.AND_ALL)
_ROLES = ("system", "user", "assistant")


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


IN_EXTENSIONS = {_camel(name): _camel(name) if name in _CAMEL_IN_EXTENSIONS else name for name in (*_HONOURED, *_KEPT)}
"""World Info names of fields that V3 has no name for, and what SillyTavern calls them in ``extensions``."""


def _spots(name: str, strict: bool) -> tuple[Spot, ...]:
    camel = _camel(name)
    kept_as = IN_EXTENSIONS.get(camel, name)
    spots: dict[tuple[str, bool], Spot] = {}
    for spot in (
        Spot(camel, strict=strict),
        Spot(kept_as, extension=True),
        Spot(name, strict=False),
        Spot(camel, extension=True),
        Spot(name, extension=True),
    ):
        spots.setdefault((spot.name, spot.extension), spot)
    return tuple(spots.values())


_SPOTS = {(name, strict): _spots(name, strict) for name in _HONOURED for strict in (False, True)}
_KNOWN_EXTENSIONS = frozenset(
    {"position", "case_sensitive", "caseSensitive", "display_index", "displayIndex", "addMemo"}
    | set(_HONOURED)
    | set(map(_camel, _HONOURED))
)
_KNOWN = frozenset(
    {"content", "name", "comment", "constant", "selective", "enabled", "disable", "priority", "use_regex"}
    | set(RENAMED)
    | set(RENAMED.values())
    | _KNOWN_EXTENSIONS
)
_SILLYTAVERN_MARKS = ("useProbability", "selectiveLogic")


def own_id(data: Any, key: str | None) -> str | None:
    """Return the id that an entry brings, of a length that can be shown; ``key`` is World Info's, of the entry."""
    for value in (data.get("id"), data.get("uid"), key) if isinstance(data, dict) else ():
        if isinstance(value, str) and 0 < len(value) <= _MAX_ID:
            return value
        if (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and value == value // 1
            and abs(value) < 2**53
        ):
            return str(int(value))
    return None


def read_entry(fields: Fields, id: str, *, world_info: bool) -> Entry:
    """Return the typed view of one entry. ``world_info``: its camel-case fields are the format's own.

    Raises InvalidInput for a field of a wrong kind. Notes what is kept but not acted on.

    ``use_regex`` as SillyTavern exports it, true for all entries, means no more there than that keys *may* be
    written as patterns; so where its marks stand in ``extensions`` it does not make plain keys patterns.
    """
    fields.unhonoured(_KNOWN, _KNOWN_EXTENSIONS)

    def take(read: Any, default: Any, name: str) -> Any:
        return fields.take(read, default, *_SPOTS[name, world_info])

    entry_off = fields.take(flag, False, Spot("disable", strict=world_info))
    in_chance = take(flag, True, "use_probability")
    return Entry(
        id=id,
        content=fields.take(text, "", "content"),
        keys=fields.take(_keys, (), "keys", Spot("key", strict=world_info)),
        secondary_keys=_secondary_keys(fields, world_info),
        secondary_logic=take(_logic, SecondaryLogic.AND_ANY, "selective_logic"),
        constant=fields.take(flag, False, "constant"),
        enabled=fields.take(flag, True, "enabled") and not entry_off,
        use_regex=fields.take(flag, False, "use_regex") and not _by_sillytavern(fields),
        case_sensitive=fields.take(flag, None, "case_sensitive", *_spots("case_sensitive", world_info)),
        match_whole_words=take(flag, None, "match_whole_words"),
        place=_place(fields),
        depth=take(whole, 4, "depth"),
        role=take(role, "system", "role"),
        outlet=take(text, "", "outlet_name") or None,
        insertion_order=fields.take(number, 100, "insertion_order", Spot("order", strict=world_info)),
        priority=fields.take(number, None, "priority"),
        exclude_recursion=take(flag, False, "exclude_recursion"),
        prevent_recursion=take(flag, False, "prevent_recursion"),
        delay_until_recursion=take(_steps, 0, "delay_until_recursion"),
        probability=take(_percent, 100, "probability") if in_chance else 100,
        sticky=take(whole, 0, "sticky"),
        cooldown=take(whole, 0, "cooldown"),
        delay=take(whole, 0, "delay"),
        groups=tuple(part.strip() for part in take(text, "", "group").split(",") if part.strip()),
        group_override=take(flag, False, "group_override"),
        group_weight=max(0, take(number, 100, "group_weight")),
        ignore_budget=take(flag, False, "ignore_budget"),
        scan_depth=take(whole, None, "scan_depth"),
    )


def _secondary_keys(fields: Fields, world_info: bool) -> tuple[str, ...]:
    found = fields.take(_keys, (), "secondary_keys", Spot("keysecondary", strict=world_info))
    return found if fields.take(flag, False, "selective") else ()


def _keys(value: object) -> tuple[str, ...]:
    """Read keys; an empty one, which every text contains, is none."""
    return tuple(key for key in texts(value) if key.strip())


def _by_sillytavern(fields: Fields) -> bool:
    return any(mark in fields.extensions() for mark in _SILLYTAVERN_MARKS)


def _place(fields: Fields) -> Place:
    """Read the place: World Info's number says more than V3's two words, wherever it stands."""
    spots = [Spot("position", extension=True), Spot("position")]
    top = fields.data.get("position")
    if isinstance(top, int | float):
        spots.reverse()
    return fields.take(_place_kind, Place.AFTER_CHAR, *spots)


def _place_kind(value: object) -> Place:
    if isinstance(value, str) and value in Place.__members__.values():
        return Place(value)
    return _numbered(value, _PLACES)


def _logic(value: object) -> SecondaryLogic:
    if isinstance(value, str) and value in SecondaryLogic.__members__.values():
        return SecondaryLogic(value)
    return _numbered(value, _LOGICS)


def role(value: object) -> str:
    """Read a role: its name, or SillyTavern's number (0 system, 1 user, 2 assistant)."""
    if isinstance(value, str) and value in _ROLES:
        return value
    return _numbered(value, _ROLES)


def _numbered(value: object, choices: tuple[T, ...]) -> T:
    """Read a choice by its number. Of the right kind but unknown, it is tolerated as absent."""
    if isinstance(value, str) and not value.strip().isdecimal():
        raise Unreadable(f"one of {len(choices)} choices", "invalid_value", tolerated=True)
    found = number(value)
    if found not in range(len(choices)):
        raise Unreadable(f"one of {len(choices)} choices", "invalid_value", tolerated=True)
    return choices[int(found)]


def _steps(value: object) -> int:
    return int(value) if isinstance(value, bool) else whole(value)


def _percent(value: object) -> float:
    return min(max(number(value), 0), 100)
