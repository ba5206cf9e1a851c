"""Cards V1, V2 and V3: what the prompt gets, what is warned of, what is refused."""

from __future__ import annotations

import pytest

from contextshift.errors import InvalidInput
from contextshift.lore.cards import read_card
from contextshift.lore.imports import Kind, import_document, import_file
from contextshift.lore.model import Card
from core.lore import lore_files as files

FULL = {
    "name": "Ada Lovelace",
    "nickname": "Ada",
    "description": "d",
    "personality": "p",
    "scenario": "s",
    "first_mes": "f",
    "mes_example": "m",
    "creator_notes": "never in a prompt",
    "system_prompt": "sys",
    "post_history_instructions": "post",
    "alternate_greetings": ["g1", "g2"],
    "group_only_greetings": ["all"],
    "tags": ["maths"],
    "creator": "c",
    "character_version": "1",
    "extensions": {"depth_prompt": {"prompt": "note", "depth": 2, "role": "user"}},
    "source": ["https://example.org/a"],
    "creation_date": 1,
    "modification_date": 2,
}


def warned(document: object) -> list[tuple[str, str]]:
    return [(notice.path, str(notice.code)) for notice in import_document(document).warnings]


def test_a_card_reads_every_field_that_a_prompt_uses():
    card = read_card(files.card(**FULL))
    assert card == Card(
        name="Ada Lovelace",
        nickname="Ada",
        description="d",
        personality="p",
        scenario="s",
        first_mes="f",
        alternate_greetings=("g1", "g2"),
        group_only_greetings=("all",),
        mes_example="m",
        system_prompt="sys",
        post_history_instructions="post",
        depth_prompt="note",
        depth_prompt_depth=2,
        depth_prompt_role="user",
    )
    assert card.char == "Ada"
    assert card.greetings == ("f", "g1", "g2")
    assert warned(files.card(**FULL)) == [("data.group_only_greetings", "not-honoured")]


def test_a_cards_book_is_read_with_the_id_it_is_given():
    document = files.card(character_book={"entries": [{"keys": ["a"], "content": "b"}]})
    book = read_card(document, book_id="ada").book
    assert book is not None
    assert (book.id, book.entries[0].keys) == ("ada", ("a",))


def test_null_is_absent_wherever_it_stands():
    nulls = dict.fromkeys([*FULL, "character_book"])
    assert read_card(files.card(**{**nulls, "name": "Ada"})) == Card("Ada")
    assert warned(files.card(**{**nulls, "name": "Ada"})) == []


@pytest.mark.parametrize(("role", "read"), [(0, "system"), (1, "user"), (2, "assistant"), ("assistant", "assistant")])
def test_the_depth_prompts_role_is_a_word_or_a_number(role, read):
    document = files.card(extensions={"depth_prompt": {"prompt": "n", "role": role}})
    assert read_card(document).depth_prompt_role == read


@pytest.mark.parametrize(
    ("data", "path"),
    [
        ({"extensions": {"world": "Moons"}}, "data.extensions.world"),
        ({"extensions": {"regex_scripts": [{"scriptName": "a"}]}}, "data.extensions.regex_scripts"),
        ({"extensions": {"TavernHelper_scripts": [{"type": "script"}]}}, "data.extensions.TavernHelper_scripts"),
        ({"extensions": {"talkativeness": "0.5"}}, "data.extensions.talkativeness"),
        ({"assets": [{"type": "icon", "uri": "https://example.org/i.png"}]}, "data.assets"),
        ({"creator_notes_multilingual": {"ko": "n"}}, "data.creator_notes_multilingual"),
        ({"of_tomorrow": 1}, "data.of_tomorrow"),
        ({"group_only_greetings": ["Hi all."]}, "data.group_only_greetings"),
    ],
)
def test_what_is_kept_and_not_acted_on_is_said_by_its_path(data, path):
    assert warned(files.card(**data)) == [(path, "not-honoured")]
    assert import_document(files.card(**data)).document == files.card(**data)


def test_v1s_copy_beside_data_is_said_only_where_it_differs():
    copy = {"name": "Ada", "description": "old", "avatar": "none", "create_date": "x", "talkativeness": "0.5"}
    document = {**files.card(description="new"), **copy}
    assert warned(document) == [("description", "legacy-differs"), ("talkativeness", "not-honoured")]
    assert read_card(document).description == "new"


@pytest.mark.parametrize(
    ("head", "warning"),
    [
        ({"spec_version": "3.1"}, ("spec_version", "spec-version")),
        ({"spec": "chara_card_v2", "spec_version": "3.0"}, ("spec_version", "spec-version")),
        ({"spec": "chara_card_v4"}, ("spec", "unknown-spec")),
    ],
)
def test_another_version_is_read_and_said(head, warning):
    document = {**files.card(), **head}
    assert warned(document) == [warning]
    assert read_card(document).name == "Ada"


def test_a_v1_card_becomes_v3():
    imported = import_document({"name": "Ada", "first_mes": "Hello.", "avatar": "none"})
    assert imported.kind is Kind.CARD
    assert imported.document["data"]["first_mes"] == "Hello."
    assert imported.document["data"]["group_only_greetings"] == []
    assert imported.warnings == ()


def test_a_v2_book_gets_what_v3_requires():
    document = {"spec": "chara_card_v2", "spec_version": "2.0", "data": {"name": "A"}}
    document["data"]["character_book"] = {"entries": [{"keys": ["a"], "content": "b"}]}
    book = import_document(document).document["data"]["character_book"]
    assert book == {"extensions": {}, "entries": [{"keys": ["a"], "content": "b", "use_regex": False}]}


@pytest.mark.parametrize(
    ("data", "path"),
    [
        ({"name": 5}, "data.name"),
        ({"name": None}, "data.name"),
        ({"description": ["d"]}, "data.description"),
        ({"alternate_greetings": [{}]}, "data.alternate_greetings[0]"),
        ({"alternate_greetings": 5}, "data.alternate_greetings"),
        ({"tags": {}}, "data.tags"),
        ({"creator_notes": 5}, "data.creator_notes"),
        ({"extensions": "x"}, "data.extensions"),
        ({"character_book": []}, "data.character_book"),
        ({"character_book": {"entries": [{"keys": [[]]}]}}, "data.character_book.entries[0].keys[0]"),
        ({"character_book": {"entries": {"7": {"key": 5}}}}, "data.character_book.entries.7.key"),
    ],
)
def test_a_wrong_kind_of_value_is_refused_with_its_path(data, path):
    with pytest.raises(InvalidInput) as caught:
        import_document(files.card(**data))
    assert caught.value.path == path
    assert "Ada" not in str(caught.value)


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({"spec": "chara_card_v3"}, "data"),
        ({"spec": "chara_card_v3", "data": []}, "data"),
        ({"spec": "something_else", "data": {}}, "spec"),
        ({}, None),
        ([], None),
        (None, None),
        ("text", None),
        ({"name": "only a name"}, None),
    ],
)
def test_what_is_neither_card_nor_lorebook_is_refused(document, path):
    with pytest.raises(InvalidInput) as caught:
        import_document(document)
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("text", "reason", "path"),
    [
        (b"", "invalid_json", None),
        (b"{", "invalid_json", None),
        (b"\xff\xfe{}", "invalid_utf8", None),
        (b'{"name": "A", "first_mes": NaN}', "invalid_number", None),
        (b'{"name": "A", "first_mes": "", "x": 1e999}', "invalid_number", "x"),
        (b'{"name": "A", "first_mes": "", "x": 1' + b"0" * 2000 + b"}", "invalid_number", "x"),
        (b'{"name": "A", "first_mes": "", "x": 1' + b"0" * 9000 + b"}", "invalid_number", None),
        (b'{"name": "A", "first_mes": "\\ud800"}', "lone_surrogate", "first_mes"),
        (b'{"name": "A", "first_mes": "", "x": {"\\udfff": 1}}', "lone_surrogate", "x"),
        (b'{"name": "A", "first_mes": "", "x": ' + b"[" * 101 + b"]" * 101 + b"}", "too_deep", "x"),
        (b"[" * 500_000, "too_deep", None),
        (b"[" + b"[]," * 1_000_000 + b"[]]", "too_many_values", None),
        (b"\xff\xd8\xff\xe0", "unknown_format", None),
    ],
)
def test_json_that_not_every_reader_could_store_is_refused(text, reason, path):
    with pytest.raises(InvalidInput) as caught:
        import_file(text)
    assert caught.value.reason == reason
    assert (caught.value.path or "").partition("[")[0] == (path or "")


def test_nesting_up_to_the_limit_is_kept():
    deep: object = 1
    for _ in range(97):
        deep = [deep]
    assert import_document(files.card(deep=deep)).document["data"]["deep"] == deep


def test_a_repeated_key_counts_as_its_last_and_is_said():
    imported = import_file(b'{"name": "A", "name": "B", "first_mes": ""}')
    assert imported.document["data"]["name"] == "B"
    assert [notice.as_dict() for notice in imported.warnings] == [{"path": "", "code": "repeated-key"}]


def test_a_byte_order_mark_is_forgiven():
    assert import_file(b"\xef\xbb\xbf" + files.as_json(files.card())).document == files.card()
