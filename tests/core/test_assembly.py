"""The order of a prompt: laws over generated scenes, then what each block is made of."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextshift.assembly import assemble, sendable, switched_off
from contextshift.errors import InvalidInput
from contextshift.groups import group_messages
from contextshift.lore.model import Card, Place
from contextshift.protection import protect
from contextshift.scene import (
    BLOCKS,
    AuthorNote,
    Character,
    Layout,
    LoreBlock,
    MemoryBlock,
    Persona,
    Scene,
    Spoken,
    read_layout,
)

TEXTS = st.text("ab c", max_size=12)
ROLES = st.sampled_from(["user", "assistant", "system"])


@st.composite
def scenes(draw: Any) -> Scene:
    cards = st.builds(
        Card,
        name=st.just("Ann"),
        description=TEXTS,
        personality=TEXTS,
        scenario=TEXTS,
        mes_example=st.sampled_from(["", "<START>\na\n<start>\nb", "c"]),
        system_prompt=TEXTS,
        post_history_instructions=TEXTS,
        depth_prompt=TEXTS,
        depth_prompt_depth=st.integers(0, 5),
    )
    characters = [Character(f"c{n}", card) for n, card in enumerate(draw(st.lists(cards, max_size=2)))]
    lore = [
        LoreBlock(f"b/{n}", f"lore {n}", place, depth, role)
        for n, (place, depth, role) in enumerate(
            draw(st.lists(st.tuples(st.sampled_from(Place), st.integers(0, 9), ROLES), max_size=6))
        )
    ]
    talk = draw(st.lists(st.tuples(ROLES, TEXTS, st.booleans(), st.booleans()), max_size=6))
    history = [
        Spoken(f"m{n}", {"role": role, "content": text, "x": n}, pinned, excluded)
        for n, (role, text, pinned, excluded) in enumerate(talk)
    ]
    order = draw(st.permutations(BLOCKS))
    off = draw(st.sets(st.sampled_from([name for name in BLOCKS if name != "history"])))
    return Scene(
        history,
        draw(TEXTS),
        characters,
        draw(st.none() | st.builds(Persona, st.just("p"), st.just("Me"), TEXTS)),
        lore,
        draw(st.lists(st.builds(MemoryBlock, st.uuids().map(str), TEXTS), max_size=3)),
        draw(st.none() | st.builds(AuthorNote, TEXTS, st.integers(0, 9))),
        draw(TEXTS),
        Layout(tuple(name for name in order if name not in off)),
    )


@given(scenes())
def test_what_was_said_stays_as_it_was_in_its_order(scene: Scene):
    said = [sendable(block) for block in assemble(scene) if block["meta"].get("ref", {}).get("type") == "message"]
    assert said == [dict(one.message) for one in scene.history]


@given(scenes(), st.sets(st.sampled_from(["system_first_only", "one_system_message"])))
def test_every_block_has_an_id_of_its_own_and_a_source(scene: Scene, rules: set[str]):
    blocks = assemble(scene, rules)
    ids = [block["meta"]["id"] for block in blocks]
    assert len(set(ids)) == len(ids)
    assert all(block["meta"]["source"] and isinstance(block["content"], str) for block in blocks)
    assert assemble(scene, rules) == blocks


@given(scenes())
def test_the_blocks_follow_the_layout(scene: Scene):
    prefixes = {"character": "character:", "persona": "persona:", "memory": "memory:", "prefill": "prefill"}
    found = [block["meta"]["id"] for block in assemble(scene)]
    places = [
        [index for index, name in enumerate(found) if name.startswith(prefixes[block])]
        for block in scene.layout.order
        if block in prefixes
    ]
    flat = [index for indices in places for index in indices]
    assert flat == sorted(flat)


@given(scenes())
def test_a_block_switched_off_is_not_there(scene: Scene):
    for name in {"persona", "memory"} - set(scene.layout.order):
        assert not [block for block in assemble(scene) if block["meta"]["source"] == name]


@given(scenes())
def test_a_target_of_leading_system_messages_gets_no_later_one_and_the_same_texts(scene: Scene):
    plain, fitted = assemble(scene), assemble(scene, {"system_first_only"})
    roles = [block["role"] for block in fitted]
    leading = next((n for n, role in enumerate(roles) if role != "system"), len(roles))
    assert "system" not in roles[leading:]
    assert [block["content"] for block in fitted] == [block["content"] for block in plain]


@given(scenes())
def test_a_target_of_one_system_message_gets_their_texts_joined(scene: Scene):
    plain, joined = assemble(scene), assemble(scene, {"one_system_message"})
    parts = [name for block in joined for name in block["meta"].get("parts", [block["meta"]["id"]])]
    held = [one["id"] for block in joined for one in block["meta"].get("held", ())]
    assert set(held) >= {name for block in joined for name in block["meta"].get("parts", ())}
    assert parts == [block["meta"]["id"] for block in plain]


def test_the_documented_order():
    card = Card(
        "Ann", description="D", personality="P", scenario="S", mes_example="<START>\ne1\n<START>\ne2",
        system_prompt="own {{ORIGINAL}}", post_history_instructions="after", depth_prompt="note", depth_prompt_depth=1,
    )  # fmt: skip
    lore = [LoreBlock(str(place), str(place), place, depth=0) for place in Place]
    said = [Spoken("m1", {"role": "user", "content": "hi"}), Spoken("m2", {"role": "assistant", "content": "yes"})]
    scene = Scene(
        said, "base", [Character("c", card)], Persona("p", "Me", "I"), lore, [MemoryBlock("x", "remember")],
        AuthorNote("style", 1), "Well",
    )  # fmt: skip
    assert [block["content"] for block in assemble(scene)] == [
        "own base", "before_char", "D\n\nP\n\npersonality\n\nS\n\nscenario", "after_char", "I", "remember",
        "before_examples", "e1", "e2", "after_examples",
        "reverse_depth", "hi", "note", "before_note", "style", "after_note", "yes", "at_depth",
        "after", "Well",
    ]  # fmt: skip


def test_macros_are_expanded_in_everything_but_what_was_said():
    scene = Scene(
        [Spoken("m", {"role": "user", "content": "x"})], "x", prefill="x", expand=lambda text, _: text.upper()
    )
    assert [block["content"] for block in assemble(scene)] == ["X", "x", "X"]


def test_a_depth_beyond_the_history_is_its_other_end():
    lore = [LoreBlock("a", "first", Place.AT_DEPTH, 99), LoreBlock("b", "last", Place.REVERSE_DEPTH, 99)]
    scene = Scene([Spoken("m", {"role": "user", "content": "hi"})], lore=lore)
    assert [block["content"] for block in assemble(scene)] == ["first", "hi", "last"]


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("system", "settings.blocks"),
        (["nobody"], "settings.blocks[0]"),
        (["system", "system"], "settings.blocks[1]"),
        ([{"name": "history", "enabled": False}], "settings.blocks[0]"),
        ([{"name": "system", "enabled": 1}], "settings.blocks[0]"),
        ([7], "settings.blocks[0]"),
    ],
)
def test_a_layout_that_makes_no_sense_is_refused_by_its_path(given: object, path: str):
    with pytest.raises(InvalidInput) as refused:
        read_layout(given)
    assert refused.value.path == path


@given(scenes())
def test_what_a_target_s_rules_change_is_protected_as_it_would_be_without_them(scene: Scene):
    """Role alone decides nothing then: an instruction stays one, and is never the user's turn."""
    plain, fitted = assemble(scene), assemble(scene, {"system_first_only"})
    before, after = (protect(blocks, group_messages(blocks)) for blocks in (plain, fitted))
    assert after == before
    assert all("meta" not in sendable(block) for block in fitted)


@given(scenes(), st.sets(st.sampled_from(["system_first_only", "one_system_message"])))
def test_lore_stands_in_one_block_or_in_what_is_switched_off(scene: Scene, rules: set[str]):
    """All but that of outlets, which only a text brings in."""
    blocks = [*assemble(scene, rules), *switched_off(scene)]
    names = [
        one for block in blocks for one in (block["meta"]["id"], *(h["id"] for h in block["meta"].get("held", ())))
    ]
    assert len(set(names)) == len(names)
    lore = {f"lore:{one.id}" for one in scene.lore if one.place is not Place.OUTLET}
    assert {name for name in names if name.startswith("lore:")} == lore
    text = "\n".join(block["content"] for block in blocks)
    assert all(text.count(one.text) == 1 for one in scene.lore if one.place is not Place.OUTLET)
