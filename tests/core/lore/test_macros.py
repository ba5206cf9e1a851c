"""Macros: laws first, then each macro, then what hostile texts cost."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextshift.lore.macros import MAX_DEPTH, MAX_GROWTH, MacroContext, expand, hidden_keys

CONTEXT = MacroContext(
    char="Ada",
    user="Bo",
    description="{{char}} keeps the gate.",
    personality="calm",
    scenario="{{user}} arrives",
    persona="a traveller",
    last_message="{{char}}, open!",
    variables={"HP": 7, "mood": "{{user}}", "tags": ["a"], "none": None, "on": True},
    outlets={"gate": "The gate of {{char}}.", "loop": "{{outlet::loop}}"},
    original="You are {{char}}.",
    now=1_000_000_000.0,
    seed="chat:3",
    chat_seed="chat",
)

WORDS = (
    r"{{ }} { } <USER> < : :: , \, char random pick roll 2d6 // trim reverse description outlet loop hidden_key mood"
)
PIECES = st.sampled_from([*WORDS.split(" "), " ", "\n", "é", "\ud800"])
TEXTS = st.one_of(st.text(), st.lists(PIECES, max_size=40).map("".join))


def read(text: str, **changes: object) -> str:
    return expand(text, replace(CONTEXT, **changes)).text


@given(TEXTS)
def test_any_text_is_expanded_and_always_to_the_same(text):
    assert expand(text, CONTEXT, "here") == expand(text, replace(CONTEXT), "here")
    hidden_keys(text)


@given(st.text())
def test_a_text_without_macros_stays_as_it_is(text):
    plain = text.replace("{{", "{").replace("{{", "").replace("<", "")
    if "{{" not in plain:
        assert expand(plain, CONTEXT).text == plain


@given(TEXTS, TEXTS)
def test_what_a_user_gave_is_never_read_as_macros_or_separators(name, message):
    given_context = replace(CONTEXT, user=name, last_message=message, variables={"v": message})
    assert expand("{{user}}|<USER>|{{lastMessage}}|{{v}}|{{getvar::v}}", given_context).text == "|".join(
        [name, name, message, message, message]
    )
    assert expand("{{random:{{user}}}}", given_context).text == name.strip()
    assert expand("{{random::{{user}}::{{user}}}}", given_context).text == name


@given(st.lists(st.text("abc \n", min_size=1), min_size=1, max_size=5), st.text())
def test_a_choice_is_one_of_its_alternatives(items, seed):
    assert read("{{random:" + ",".join(items) + "}}", seed=seed) in {item.strip() for item in items}
    assert read("{{pick::" + "::".join(["", *items]) + "}}", chat_seed=seed) in {"", *items}


@given(st.integers(1, 100), st.integers(1, 1_000_000_000), st.text())
def test_a_roll_stays_within_its_dice(dice, sides, seed):
    assert dice <= int(read(f"{{{{roll:{dice}d{sides}}}}}", seed=seed)) <= dice * sides
    assert 1 <= int(read(f"{{{{roll:{sides}}}}}", seed=seed)) <= sides


@pytest.mark.parametrize(
    ("written", "right"),
    [
        ("{{char}}{{CHAR}} {{ Char }}<BOT><char>", "AdaAda AdaAdaAda"),
        ("{{user}}<USER><user>", "BoBoBo"),
        ("{{description}} {{personality}}", "Ada keeps the gate. calm"),
        ("{{scenario}}, {{persona}}", "Bo arrives, a traveller"),
        ("{{lastMessage}}", "{{char}}, open!"),
        ("{{random:{{char}},{{char}}}}", "Ada"),
        ("{{random:a\\,b}}", "a,b"),
        ("{{random:}}", ""),
        ("{{roll:1}} {{roll:d1}} {{roll:3d1}} {{roll 2d1}} {{roll:d1+4}}", "1 1 3 2 5"),
        ("a{{// {{char}}: a note }}b{{comment:x}}c{{hidden_key:y}}d", "abcd"),
        ("{{reverse:abc}} {{reverse:e\u0301a}} {{reverse:{{char}}}}", "cba ae\u0301 adA"),
        ("{{date}} {{time}}", "2001-09-09 01:46"),
        ("{{HP}} {{hp}} {{getvar::HP}} {{getvar:: nobody }}", "7 7 7 "),
        ("{{mood}} {{tags}} {{none}} {{on}}", '{{user}} ["a"]  true'),
        ("{{outlet::gate}}{{outlet::nobody}}", "The gate of Ada."),
        ("{{original}}", "You are Ada."),
        ("a{{newline}}b", "a\nb"),
        ("a\n\n{{trim}}\nb", "ab"),
        ("{{{char}}}", "{Ada}"),
        ('{"a":{"b":"{{char}}"}}', '{"a":{"b":"Ada"}}'),
        ("an open {{ and {{char}}", "an open {{ and Ada"),
        ("}} {{}} {{ }} {{:x}}", "}} {{}} {{ }} {{:x}}"),
        ("{{shrug:{{char}}}}", "{{shrug:Ada}}"),
        ("{{{{user}}}}", "{{Bo}}"),
    ],
)
def test_macros_read(written, right):
    assert read(written) == right


def test_a_macro_nobody_knows_is_left_alone_and_named_once():
    found = expand("{{Shrug}} {{wave:at,me}} {{Shrug}} {{roll:d0}} {{roll:101d6}}", CONTEXT)
    assert found.text == "{{Shrug}} {{wave:at,me}} {{Shrug}} {{roll:d0}} {{roll:101d6}}"
    assert found.unknown == ("Shrug", "wave", "roll")
    assert expand("{{original}}", replace(CONTEXT, original=None)).unknown == ("original",)


def test_the_names_of_unknown_macros_are_bounded():
    found = expand("".join(f"{{{{{'x' * 200}{i}}}}}{{{{n{i}}}}}" for i in range(500)), CONTEXT)
    assert len(found.unknown) <= 100
    assert max(map(len, found.unknown)) == 80


def test_a_choice_holds_for_its_turn_and_a_pick_for_its_chat():
    many = ",".join(map(str, range(1000)))
    turns = [{"seed": f"chat:{turn}"} for turn in range(5)]
    assert len({read(f"{{{{random:{many}}}}}", **turn) for turn in turns}) > 1
    assert len({read(f"{{{{pick:{many}}}}}", **turn) for turn in turns}) == 1
    assert len({read(f"{{{{pick:{many}}}}}", chat_seed=f"chat{chat}") for chat in range(5)}) > 1


def test_choices_differ_by_where_they_stand():
    many = "{{random:" + ",".join(map(str, range(1000))) + "}}"
    assert len(set(read(f"{many} {many} {many} {many}").split())) > 1
    assert len({expand(many, CONTEXT, place).text for place in "abcd"}) > 1


def test_every_alternative_comes_up():
    assert {read("{{random:a,b,c}}", seed=str(turn)) for turn in range(100)} == {"a", "b", "c"}
    assert {read("{{roll:2d3}}", seed=str(turn)) for turn in range(200)} == {"2", "3", "4", "5", "6"}


def test_a_text_of_the_card_draws_alike_as_a_block_and_as_a_macro():
    described = replace(CONTEXT, description="{{random:" + ",".join(map(str, range(1000))) + "}}")
    block = expand(described.description, described, "description").text
    assert expand("She: {{description}} {{description}}", described).text == f"She: {block} {block}"


def test_a_text_that_brings_in_itself_stops():
    looped = replace(CONTEXT, description="a {{personality}}", personality="b {{description}}")
    found = expand("{{description}}|{{outlet::loop}}", looped)
    assert found.text == "a b {{description}}|{{outlet::loop}}"
    assert found.limited


def test_what_is_nested_too_deep_stays_as_it_is_written():
    def nested(depth: int) -> str:
        return "{{reverse:" * depth + "ab" + "}}" * depth

    assert read(nested(MAX_DEPTH)) == "ab"
    found = expand(nested(MAX_DEPTH + 1), CONTEXT)
    assert found.text == "{{reverse:ab}}"
    assert found.limited


def test_a_long_chain_of_outlets_stops():
    chain = {str(link): f"{{{{outlet::{link + 1}}}}}" for link in range(10_000)}
    assert expand("{{outlet::0}}", replace(CONTEXT, outlets=chain)).text == f"{{{{outlet::{MAX_DEPTH}}}}}"


HOSTILE = [
    "{{", "}}", "{", "<", "{{ ", "{{random:", "{{hidden_key:", "{{//", "{{char}}", "{{trim}}\n", "{{description}}",
    "{{random:a,b}}", "{{x:{{y}}}}", "{{outlet::loop}}", "{{tags}}", "{{roll:100d6}}",
]  # fmt: skip
SHAPES = [
    *(lambda size, unit=unit: unit * (size // len(unit)) for unit in HOSTILE),
    *(lambda size, unit=unit: unit * (size // (len(unit) + 2)) + "}}" * (size // (len(unit) + 2)) for unit in HOSTILE),
    lambda size: "{{" + " " * size + "}}",
    lambda size: "{{random:" + "," * size + "}}",
    lambda size: "{{reverse:" * MAX_DEPTH + "x" * size + "}}" * MAX_DEPTH,
]


def steps(text: str, context: MacroContext) -> int:
    count = 0

    def trace(*_: object) -> object:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        expand(text, context)
        hidden_keys(text)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("shape", SHAPES)
def test_the_work_grows_with_the_text_and_no_faster(shape):
    small, large = (steps(shape(size), CONTEXT) for size in (2_000, 16_000))
    assert large <= 8 * small * 1.2 + 2_000


@pytest.mark.parametrize("shape", SHAPES)
def test_a_megabyte_of_anything_is_read_and_stays_bounded(shape):
    text = shape(1_000_000 if "roll" not in shape(100) else 50_000)
    assert len(expand(text, CONTEXT).text) <= len(text) + MAX_GROWTH * 2


def test_macros_bring_in_no_more_than_their_room():
    bombed = replace(CONTEXT, persona="{{scenario}}" * 1000, scenario="{{personality}}" * 1000, personality="x" * 1000)
    found = expand("{{persona}} {{user}}" * 10, bombed)
    assert len(found.text) < 2 * MAX_GROWTH
    assert found.limited


def test_a_value_too_large_is_left_out_while_smaller_ones_come_in():
    found = expand("{{user}}{{char}}", replace(CONTEXT, user="x" * (MAX_GROWTH + 1)))
    assert (found.text, found.limited) == ("{{user}}Ada", True)


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("a{{hidden_key:old castle}}b{{HIDDEN_KEY::gate}}", "old castle\ngate"),
        ("{{hidden_key:home of {{char}}}}", "home of {{char}}"),
        ("{{hidden_key:a {{hidden_key:b}}}}", "a {{hidden_key:b}}"),
        ("{{ {{hidden_key:inside}}", "inside"),
        ("{{hidden_key:open", ""),
        ("{{char}} }} none", ""),
    ],
)
def test_hidden_keys_are_given_to_the_scan(text, right):
    assert hidden_keys(text) == right


def test_marks_without_end_and_dice_without_number_stay_cheap():
    """Both took over ten seconds: marks joined one by one, and a hash for every die."""
    marks = "a" + "\u0301" * 300_000
    assert expand("{{reverse:" + marks + "}}", MacroContext("A", "B")).text == marks
    assert len(expand("{{roll:100d6}} " * 20_000, MacroContext("A", "B")).text.split()) == 20_000
