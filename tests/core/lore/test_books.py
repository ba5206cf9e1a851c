"""One entry, three spellings: every field of the contract's table, read from each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextshift.errors import InvalidInput
from contextshift.lore.books import canonical_book, read_book
from contextshift.lore.imports import import_document
from contextshift.lore.model import Book, Entry, Place, SecondaryLogic
from contextshift.lore.notices import MAX_NOTICES, NoticeCode
from core.lore import lore_files as files

PLAIN = Entry(id="0", content="Full.", keys=("moon",))


def entry_of(document: dict[str, Any]) -> Entry:
    (entry,) = read_book(document, id="b").entries
    return entry


def warned(document: object) -> list[tuple[str, str]]:
    return [(notice.path, str(notice.code)) for notice in import_document(document).warnings]


# -- spellings -----------------------------------------------------------------------------------------

SAME_IN_THREE_SPELLINGS = [
    ({"keys": ["sun"]}, {"key": ["sun"]}, {"keys": ("sun",)}),
    ({"constant": True}, {"constant": True}, {"constant": True}),
    ({"enabled": False}, {"disable": True}, {"enabled": False}),
    ({"insertion_order": 7}, {"order": 7}, {"insertion_order": 7}),
    ({"secondary_keys": ["a"], "selective": True}, {"keysecondary": ["a"], "selective": True},
     {"secondary_keys": ("a",)}),
    ({"secondary_keys": ["a"], "selective": False}, {"keysecondary": ["a"], "selective": False}, {}),
    ({"secondary_keys": ["a"]}, {"keysecondary": ["a"]}, {}),
    ({"case_sensitive": True}, {"caseSensitive": True}, {"case_sensitive": True}),
    ({"extensions": {"case_sensitive": False}}, {"caseSensitive": False}, {"case_sensitive": False}),
    ({"extensions": {"match_whole_words": True}}, {"matchWholeWords": True}, {"match_whole_words": True}),
    ({"extensions": {"exclude_recursion": True}}, {"excludeRecursion": True}, {"exclude_recursion": True}),
    ({"extensions": {"prevent_recursion": True}}, {"preventRecursion": True}, {"prevent_recursion": True}),
    ({"extensions": {"delay_until_recursion": True}}, {"delayUntilRecursion": True}, {"delay_until_recursion": 1}),
    ({"extensions": {"delay_until_recursion": 3}}, {"delayUntilRecursion": 3}, {"delay_until_recursion": 3}),
    ({"extensions": {"probability": 40}}, {"probability": 40}, {"probability": 40}),
    (
        {"extensions": {"probability": 40, "useProbability": False}},
        {"probability": 40, "useProbability": False},
        {"probability": 100},
    ),
    ({"extensions": {"sticky": 2}}, {"sticky": 2}, {"sticky": 2}),
    ({"extensions": {"cooldown": 2}}, {"cooldown": 2}, {"cooldown": 2}),
    ({"extensions": {"delay": 2}}, {"delay": 2}, {"delay": 2}),
    ({"extensions": {"group": "a, b"}}, {"group": "a, b"}, {"groups": ("a", "b")}),
    ({"extensions": {"group_override": True}}, {"groupOverride": True}, {"group_override": True}),
    ({"extensions": {"group_weight": 9}}, {"groupWeight": 9}, {"group_weight": 9}),
    ({"extensions": {"ignore_budget": True}}, {"ignoreBudget": True}, {"ignore_budget": True}),
    ({"extensions": {"scan_depth": 0}}, {"scanDepth": 0}, {"scan_depth": 0}),
    ({"extensions": {"scan_depth": None}}, {"scanDepth": None}, {"scan_depth": None}),
    ({"extensions": {"selectiveLogic": 3}}, {"selectiveLogic": 3}, {"secondary_logic": SecondaryLogic.AND_ALL}),
    ({"extensions": {"position": 4, "depth": 2, "role": 1}}, {"position": 4, "depth": 2, "role": 1},
     {"place": Place.AT_DEPTH, "depth": 2, "role": "user"}),
    ({"extensions": {"position": 7, "outlet_name": "x"}}, {"position": 7, "outletName": "x"},
     {"place": Place.OUTLET, "outlet": "x"}),
]  # fmt: skip


@pytest.mark.parametrize(("card", "world_info", "expected"), SAME_IN_THREE_SPELLINGS)
def test_a_field_reads_the_same_in_every_spelling(card, world_info, expected):
    expected = replace(PLAIN, **expected)
    camel = {(_camel(name)): value for name, value in card.get("extensions", {}).items()}
    assert entry_of(files.lorebook(**card)) == expected
    assert entry_of(files.lorebook(**{**card, "extensions": camel})) == expected
    assert entry_of(files.world_info(**{"content": "Full.", **world_info})) == expected
    assert entry_of(canonical_book(files.world_info(**{"content": "Full.", **world_info}))) == expected


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(map(str.capitalize, rest))


@given(files.full_world_info_entries)
def test_a_full_world_info_entry_means_what_its_fields_say(entry):
    read = entry_of(canonical_book({"entries": {"3": entry}}))
    places = [Place.BEFORE_CHAR, Place.AFTER_CHAR, Place.BEFORE_NOTE, Place.AFTER_NOTE, Place.AT_DEPTH]
    places += [Place.BEFORE_EXAMPLES, Place.AFTER_EXAMPLES, Place.OUTLET]
    logics = [SecondaryLogic.AND_ANY, SecondaryLogic.NOT_ALL, SecondaryLogic.NOT_ANY, SecondaryLogic.AND_ALL]
    assert read == Entry(
        id=str(entry["uid"]),
        content=entry["content"],
        keys=tuple(key for key in entry["key"] if key.strip()),
        secondary_keys=tuple(key for key in entry["keysecondary"] if key.strip()) if entry["selective"] else (),
        secondary_logic=logics[entry["selectiveLogic"]],
        constant=entry["constant"],
        enabled=not entry["disable"],
        case_sensitive=entry["caseSensitive"],
        match_whole_words=entry["matchWholeWords"],
        place=places[entry["position"]],
        depth=entry["depth"],
        role=("system", "user", "assistant")[entry["role"] or 0],
        outlet=entry["outletName"] or None,
        insertion_order=entry["order"],
        exclude_recursion=entry["excludeRecursion"],
        prevent_recursion=entry["preventRecursion"],
        delay_until_recursion=int(entry["delayUntilRecursion"]),
        probability=entry["probability"] if entry["useProbability"] else 100,
        sticky=entry["sticky"] or 0,
        cooldown=entry["cooldown"] or 0,
        delay=entry["delay"] or 0,
        groups=tuple(part.strip() for part in entry["group"].split(",") if part.strip()),
        group_override=entry["groupOverride"],
        group_weight=entry["groupWeight"],
        ignore_budget=entry["ignoreBudget"],
        scan_depth=entry["scanDepth"],
    )


@pytest.mark.parametrize(
    ("entry", "place"),
    [
        ({}, Place.AFTER_CHAR),
        ({"position": "before_char"}, Place.BEFORE_CHAR),
        ({"position": "after_char"}, Place.AFTER_CHAR),
        ({"position": ""}, Place.AFTER_CHAR),
        ({"position": "before_char", "extensions": {"position": 1}}, Place.AFTER_CHAR),
        ({"position": "before_char", "extensions": {"position": None}}, Place.BEFORE_CHAR),
        ({"position": "before_char", "extensions": {"position": 99}}, Place.BEFORE_CHAR),
        ({"position": "before_char", "extensions": {"position": {}}}, Place.BEFORE_CHAR),
    ],
)
def test_the_number_in_extensions_is_the_place_and_v3s_word_is_the_next(entry, place):
    assert entry_of(files.lorebook(**entry)).place is place


def test_sillytaverns_use_regex_does_not_make_plain_keys_patterns():
    assert entry_of(files.lorebook(use_regex=True)).use_regex
    exported = {"use_regex": True, "extensions": {"useProbability": True, "selectiveLogic": 0}}
    assert not entry_of(files.lorebook(**exported)).use_regex


def test_priority_is_the_order_of_leaving_where_there_is_one():
    assert entry_of(files.lorebook(insertion_order=5, priority=1)).rank == 1
    assert entry_of(files.lorebook(insertion_order=5)).rank == 5


def test_empty_keys_are_none():
    assert entry_of(files.lorebook(keys=["", " ", "moon"])).keys == ("moon",)


def test_a_decorator_stays_in_the_content():
    assert entry_of(files.lorebook(content="@@depth 4\nFull.")).content == "@@depth 4\nFull."


# -- ids -----------------------------------------------------------------------------------------------


@given(st.lists(st.none() | st.integers(0, 4) | st.sampled_from(["", "1", "3-1", "x", "y" * 101, {}, True, 2.0, 1.5])))
def test_every_entry_has_an_id_of_its_own(ids):
    book = read_book({"entries": [{"id": id, "keys": [], "content": ""} for id in ids]}, id="b")
    read = [entry.id for entry in book.entries]
    assert len(set(read)) == len(ids)
    assert all(0 < len(id) <= 100 for id in read)
    for own, id in zip(ids, read, strict=True):
        if isinstance(own, int) and not isinstance(own, bool) and [str(i) for i in ids].count(str(own)) == 1:
            assert id == str(own) or own == 2


def test_a_world_info_entry_without_a_uid_is_named_by_its_key():
    assert entry_of({"entries": {"17": {"key": ["a"], "content": "b"}}}).id == "17"


# -- books ---------------------------------------------------------------------------------------------


def test_a_book_reads_its_settings():
    book = {
        "name": "Moons",
        "scan_depth": 3,
        "token_budget": 500,
        "recursive_scanning": True,
        "extensions": {"recursion_limit": 2, "stop_at_budget": True, "match_whole_words": True},
        "entries": [],
    }
    expected = Book("b", (), "Moons", 3, 500, True, 2, True, True)
    assert read_book(book, id="b") == expected
    assert read_book({"spec": "lorebook_v3", "data": book}, id="b") == expected
    assert read_book({**book, "entries": {}}, id="b") == expected
    assert read_book(canonical_book({**book, "entries": {}}), id="b") == expected


# -- warnings ------------------------------------------------------------------------------------------

NOT_HONOURED = [
    ("vectorized", True, "vectorized"),
    ("automationId", "go", "automation_id"),
    ("useGroupScoring", True, "use_group_scoring"),
    ("triggers", ["normal"], "triggers"),
    ("characterFilter", {"names": ["Ada"]}, "character_filter"),
    ("matchPersonaDescription", True, "match_persona_description"),
    ("x_of_tomorrow", 0, "x_of_tomorrow"),
]


@pytest.mark.parametrize(("name", "value", "home"), NOT_HONOURED)
def test_what_is_kept_and_not_acted_on_is_said_by_its_path(name, value, home):
    assert warned(files.world_info(**{name: value})) == [(f"entries.0.{name}", "not-honoured")]
    kept = import_document(files.world_info(**{name: value})).document
    assert kept["data"]["entries"][0]["extensions"][home] == value
    assert warned(kept) == [(f"data.entries[0].extensions.{home}", "not-honoured")]


@given(st.fixed_dictionaries({name: st.sampled_from([None, False, "", [], {}]) for name, _, _ in NOT_HONOURED}))
def test_what_says_nothing_is_not_warned_of(entry):
    assert warned(files.world_info(**entry)) == []


def test_an_ordinary_world_info_file_warns_of_nothing():
    template = {
        "comment": "The moon", "constant": False, "vectorized": False, "selective": True, "selectiveLogic": 0,
        "addMemo": True, "order": 100, "position": 0, "disable": False, "ignoreBudget": False, "displayIndex": 3,
        "excludeRecursion": False, "preventRecursion": False, "delayUntilRecursion": False, "probability": 100,
        "useProbability": True, "depth": 4, "outletName": "", "group": "", "groupOverride": False, "groupWeight": 100,
        "scanDepth": None, "caseSensitive": None, "matchWholeWords": None, "useGroupScoring": None, "automationId": "",
        "role": None, "sticky": 0, "cooldown": 0, "delay": 0, "triggers": [], "keysecondary": [],
        "characterFilter": {"isExclude": False, "names": [], "tags": []},
    }  # fmt: skip
    assert warned({**files.world_info(**template), "originalData": {"entries": [1]}}) == []


@pytest.mark.parametrize(
    ("entry", "read"),
    [
        ({"insertion_order": "7"}, {"insertion_order": 7}),
        ({"secondary_keys": "a, b,", "selective": True}, {"secondary_keys": ("a", "b")}),
        ({"keys": "moon"}, {}),
    ],
)
def test_numbers_and_lists_written_as_text_are_read_and_said(entry, read):
    assert entry_of(files.lorebook(**entry)) == replace(PLAIN, **read)
    (path,) = {f"data.entries[0].{name}" for name in entry if name != "selective"}
    assert warned(files.lorebook(**entry)) == [(path, "converted")]


@pytest.mark.parametrize("value", [{}, [1], "soon", True, 10**30])
def test_extensions_are_everybodys_so_an_odd_value_there_is_passed_over_and_said(value):
    document = files.lorebook(extensions={"sticky": value})
    assert entry_of(document).sticky == 0
    assert warned(document) == [("data.entries[0].extensions.sticky", "invalid-value")]
    assert import_document(document).document == document


def test_warnings_end_with_a_word_that_there_were_more():
    entries = {str(number): {"key": [], "content": "", "vectorized": True} for number in range(MAX_NOTICES + 5)}
    found = warned({"entries": entries})
    assert len(found) == MAX_NOTICES + 1
    assert found[-1] == ("", str(NoticeCode.MORE))


def test_a_path_does_not_repeat_all_of_a_long_name():
    ((path, _),) = warned(files.lorebook(**{"x" * 5000: 1}))
    assert len(path) < 150


# -- refusals ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "path"),
    [
        (files.lorebook(keys=[1]), "data.entries[0].keys[0]"),
        (files.lorebook(keys=5), "data.entries[0].keys"),
        (files.lorebook(content=["a"]), "data.entries[0].content"),
        (files.lorebook(enabled="yes"), "data.entries[0].enabled"),
        (files.lorebook(insertion_order=True), "data.entries[0].insertion_order"),
        (files.lorebook(insertion_order=10**20), "data.entries[0].insertion_order"),
        (files.lorebook(extensions=[]), "data.entries[0].extensions"),
        (files.lorebook(position={}), "data.entries[0].position"),
        ({"spec": "lorebook_v3", "data": {"entries": 3}}, "data.entries"),
        ({"spec": "lorebook_v3", "data": {"entries": [3]}}, "data.entries[0]"),
        ({"spec": "lorebook_v3", "data": {"entries": [], "scan_depth": 1.5}}, "data.scan_depth"),
        ({"spec": "lorebook_v3", "data": {"entries": [], "token_budget": "many"}}, "data.token_budget"),
        ({"spec": "lorebook_v3", "data": []}, "data"),
        ({"spec": "lorebook_v3"}, "data"),
        (files.world_info(key={}), "entries.0.key"),
        (files.world_info(excludeRecursion="no"), "entries.0.excludeRecursion"),
        (files.world_info(depth=[]), "entries.0.depth"),
        (files.world_info(probability={}), "entries.0.probability"),
        ({"entries": {"0": None}}, "entries.0"),
    ],
)
def test_a_wrong_kind_of_value_is_refused_with_its_path(document, path):
    with pytest.raises(InvalidInput) as caught:
        import_document(document)
    assert caught.value.path == path


@pytest.mark.parametrize(
    "document",
    [
        {"lorebookVersion": 6, "entries": [{"text": "a", "keys": []}]},
        {"kind": "memory", "entries": [{"entry": "a", "keywords": []}]},
        {"type": "risu", "data": [], "entries": []},
    ],
)
def test_other_applications_own_formats_are_refused_rather_than_read_as_empty(document):
    with pytest.raises(InvalidInput) as caught:
        import_document(document)
    assert caught.value.reason == "unknown_format"
