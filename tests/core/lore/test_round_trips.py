"""Laws of import and export: nothing a file says is lost, whichever spelling and container it came in.

- V3 in, V3 out: deep equality, through JSON and through PNG.
- V1 and V2 in: every field they had is in the V3 document.
- World Info in: every value it had is in the V3 document, and both read as the same typed book.
- A document stored is a fixed point: importing its export changes nothing.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextshift.lore.books import canonical_book, read_book
from contextshift.lore.cards import read_card
from contextshift.lore.exports import export_json, export_png
from contextshift.lore.imports import Kind, import_document, import_file
from core.lore import lore_files as files

any_document = files.cards_v1 | files.cards_v2 | files.cards_v3 | files.lorebooks_v3 | files.world_infos | files.books


@given(files.cards_v3 | files.lorebooks_v3)
def test_v3_comes_out_as_it_went_in(document):
    imported = import_file(files.as_json(document))
    assert imported.document == document
    assert json.loads(export_json(imported.document)) == document


@given(files.cards_v2)
def test_every_field_of_v2_is_in_the_v3_document(document):
    made = import_file(files.as_json(document)).document
    assert made["spec"] == "chara_card_v3"
    assert made["spec_version"] == "3.0"
    assert contains(made["data"], document["data"])
    assert {**made, "spec": 0, "spec_version": 0, "data": 0} == {**document, "spec": 0, "spec_version": 0, "data": 0}


@given(files.cards_v1)
def test_every_field_of_v1_is_in_the_v3_document(document):
    made = import_file(files.as_json(document)).document
    assert contains(made["data"], document)


@given(any_document)
def test_a_stored_document_is_a_fixed_point(document):
    once = import_file(files.as_json(document))
    again = import_file(export_json(once.document))
    assert again.document == once.document
    assert again.kind == once.kind


@given(files.cards_v1 | files.cards_v2 | files.cards_v3)
def test_a_card_reads_the_same_in_its_own_version_and_stored(document):
    assert read_card(import_document(document).document) == read_card(document)


@given(files.world_infos)
def test_world_info_reads_the_same_as_it_came_and_as_v3(document):
    imported = import_file(files.as_json(document))
    assert imported.kind is Kind.LOREBOOK
    assert read_book(imported.document, id="b") == read_book(document, id="b")


@given(files.world_infos)
def test_every_value_of_world_info_is_in_the_v3_document(document):
    made = import_document(document).document["data"]
    assert len(made["entries"]) == len(document["entries"])
    for entry, source in zip(made["entries"], document["entries"].values(), strict=True):
        held = [*entry.values(), *entry["extensions"].values()]
        for name, value in source.items():
            if name in ("disable", "enabled"):
                continue
            if name == "extensions":
                assert contains(entry["extensions"], value or {})
            elif value is not None and name not in ("id", "uid"):
                assert value in held, name


@given(
    files.cards_v3,
    st.lists(st.tuples(st.sampled_from([b"tEXt", b"eXIf", b"acTL"]), st.binary(max_size=20)), max_size=3),
)
def test_a_picture_carries_the_card_and_keeps_its_other_bytes(document, others):
    chunks = [files.chunk(kind, b"other\0" + data) for kind, data in others]
    picture = files.png(*chunks)
    carried = export_png(document, picture)
    assert import_file(carried).document == document
    assert carried.startswith(picture[: -len(files.END)])
    assert carried.endswith(files.END)
    again = export_png(document, carried)
    assert again == carried, "a card that it carried before is replaced"


@given(files.cards_v3)
def test_a_picture_is_made_where_none_is_given(document):
    assert import_file(export_png(document)).document == document


@pytest.mark.parametrize("container", [files.charx, lambda card: files.png(files.card_chunk("ccv3", card))])
@given(document=files.cards_v3)
def test_every_container_holds_the_same_card(container, document):
    imported = import_file(container(document))
    assert imported.document == document
    assert imported.kind is Kind.CARD


def test_bytes_after_the_end_of_a_picture_stay():
    carried = export_png(files.card(), files.png() + b"trailing")
    assert carried.endswith(files.END + b"trailing")
    assert import_file(carried).document == files.card()


def test_a_book_without_a_wrapper_is_wrapped():
    book = {"name": "Moons", "entries": [{"keys": ["a"], "content": "b"}]}
    assert canonical_book(book) == {"spec": "lorebook_v3", "data": book}


def contains(outer: Any, inner: Any) -> bool:
    """Whether ``outer`` has everything that ``inner`` says; null says nothing."""
    if isinstance(inner, dict):
        return all(inner[name] is None or (name in outer and contains(outer[name], inner[name])) for name in inner)
    if isinstance(inner, list) and isinstance(outer, list):
        return len(inner) == len(outer) and all(map(contains, outer, inner))
    return outer == inner
