"""What the head of an entry's content says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextshift.lore.decorators import Decorators, read_decorators
from contextshift.lore.model import Place

lines = st.sampled_from(
    ["@@depth 3", "@@@depth 4", "@@depth x", "@@nobody", "@@@nobody 1", "@@role user", "@@activate", "", "text", "@@ x"]
)


def said(content: str) -> Decorators:
    return read_decorators(content)[0]


@given(st.lists(lines).map("\n".join))
def test_what_is_left_has_no_decorators_at_its_head(content):
    _, body, _ = read_decorators(content)
    assert content.endswith(body)
    assert read_decorators(body)[:2] == (Decorators(), body)


@given(st.text())
def test_any_text_can_be_read(content):
    _, body, _ = read_decorators(content)
    assert content.endswith(body)


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("activate", "activate", True),
        ("activate true", "activate", True),
        ("activate false", "activate", False),
        ("dont_activate", "dont_activate", True),
        ("activate_only_after 3", "activate_only_after", 3),
        ("activate_only_every 2", "activate_only_every", 2),
        ("keep_activate_after_match", "keep_activate_after_match", True),
        ("dont_activate_after_match", "dont_activate_after_match", True),
        ("depth 0", "depth", 0),
        ("depth -3", "depth", 0),
        ("reverse_depth 2", "reverse_depth", 2),
        ("role assistant", "role", "assistant"),
        ("scan_depth 9", "scan_depth", 9),
        ("position before_desc", "position", Place.BEFORE_CHAR),
        ("position after_desc", "position", Place.AFTER_CHAR),
        ("position personality", "position", Place.PERSONALITY),
        ("position scenario", "position", Place.SCENARIO),
        (r"additional_keys a, b\, c,,d", "additional_keys", ("a", "b, c", "d")),
        ("exclude_keys x", "exclude_keys", ("x",)),
        ("is_greeting 0", "is_greeting", 0),
        ("ignore_on_max_context", "ignore_on_max_context", True),
    ],
)
def test_every_decorator_is_read(line, field, value):
    found, body, ignored = read_decorators(f"@@{line}\r\n\r\nThe lore.")
    assert getattr(found, field) == value
    assert (body, ignored) == ("The lore.", ())


@pytest.mark.parametrize(
    "line",
    [
        "depth",
        "depth x",
        "role king",
        "position moon",
        "activate_only_every 0",
        "scan_depth -1",
        "additional_keys ,",
        "activate maybe",
        "instruct_depth 3",
        "is_greeting x",
    ],
)
def test_one_that_says_nothing_is_ignored_and_its_fallbacks_tried_in_turn(line):
    assert read_decorators(f"@@{line}\nx") == (Decorators(), "x", (line.split()[0],))
    found, body, ignored = read_decorators(f"@@{line}\n@@@nobody\n@@@role user\n@@@role assistant\nx")
    assert (found, body, ignored) == (Decorators(role="user"), "x", ())


def test_a_fallback_of_one_that_counts_is_not_tried():
    assert said("@@depth 2\n@@@role user\nx") == Decorators(depth=2)


def test_of_two_of_one_name_the_first_counts():
    assert said("@@depth 2\n@@depth 3\nx").depth == 2


def test_only_the_head_is_read():
    assert read_decorators("Text.\n@@depth 2") == (Decorators(), "Text.\n@@depth 2", ())
    assert read_decorators("@@ no name\nx")[1] == "@@ no name\nx"
