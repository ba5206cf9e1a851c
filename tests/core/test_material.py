"""What is read of a conversation, and the memory of it: quicker, bounded, and never another answer."""

import doctest
import tracemalloc
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextshift import extract, material
from contextshift.extract import Said, summarise
from contextshift.lexical import sentences
from contextshift.material import Material, Readings

SENTENCES = st.sampled_from(
    [
        "Ana pays 40 EUR for the lamp. ",
        "Who feeds Rex on Monday? ",
        "We decided to sell the red boat!\n",
        "备用钥匙放在蓝色花盆底下。",
        "Ключ лежит под синим горшком. ",
        "- one two three\n",
        "```\nx = 1\n```\n",
        "... -- ",
        "may May MAY be 3.14. ",
    ]
)
TEXTS = st.lists(st.lists(SENTENCES, max_size=4).map("".join), max_size=12)


def talk(texts: list[str]) -> list[Said]:
    return [Said(("User", "Assistant")[turn % 2], text) for turn, text in enumerate(texts)]


def as_read(texts: list[str]) -> dict[str, object]:
    return contents(Material().extended(texts))


def contents(read: Material) -> dict[str, object]:
    return {part.name: getattr(read, part.name) for part in fields(read)}


@given(TEXTS, st.data())
def test_a_conversation_read_in_two_goes_is_the_same_as_in_one_and_the_first_stays_as_it_was(texts, data):
    cut = data.draw(st.integers(0, len(texts)))
    first = Material().extended(texts[:cut])
    assert contents(first.extended(texts[cut:])) == as_read(texts)
    assert contents(first) == as_read(texts[:cut])


@given(st.lists(TEXTS, min_size=1, max_size=4), st.integers(1, 3), st.sampled_from([0, 2_000, 1 << 20]), st.data())
def test_with_and_without_a_memory_the_summaries_are_equal(conversations, most, size, data):
    readings = Readings(most, size)
    for _ in range(8):
        texts = data.draw(st.sampled_from(conversations))
        said = talk(texts[: data.draw(st.integers(0, len(texts)))])
        limit = data.draw(st.integers(1, 200))
        assert summarise(said, limit, len, readings) == summarise(said, limit, len)


def test_a_conversation_that_grew_is_read_from_where_it_was(monkeypatch):
    read: list[str] = []
    monkeypatch.setattr(material, "sentences", lambda text: read.append(text) or sentences(text))
    readings = Readings()
    texts = [f"Ana pays bill number {index}." for index in range(50)]
    readings.material(texts[:48])
    read.clear()
    readings.material(texts)
    assert read == texts[48:]
    readings.material(texts)
    assert read == texts[48:]
    assert len(readings) == 1


def test_a_text_that_changed_is_read_anew():
    readings = Readings()
    readings.material(["Ana pays.", "Rex sleeps."])
    assert readings.material(["Ana pays.", "Rex runs."]).sentences == ["Ana pays.", "Rex runs."]


def test_no_more_conversations_are_kept_than_agreed():
    readings = Readings(conversations=3)
    for index in range(10):
        readings.material([f"Conversation number {index}."])
    assert len(readings) == 3


@pytest.mark.parametrize("unit", ["Ana pays bill number {}. ", "w{} ", "漢{}字"])
def test_no_more_bytes_are_kept_than_agreed(unit):
    readings = Readings(conversations=100, bytes_=1 << 20)
    for index in range(40):
        readings.material(["".join(unit.format(number + index * 400) for number in range(400))])
    assert 0 < len(readings) < 40


@pytest.mark.parametrize(
    "texts",
    [
        [f"Ana pays bill {index} of {index * 7} euros. Rex sleeps." for index in range(300)],
        [" ".join(f"w{index}x{line}" for index in range(400)) for line in range(5)],
        ["thanks"] * 5_000,
        ["备用钥匙放在蓝色花盆底下。" + chr(0x4E00 + index) for index in range(500)],
    ],
)
def test_the_size_that_bounds_the_memory_is_near_what_is_taken_or_above(texts):
    Material().extended(texts[:2])
    tracemalloc.start()
    read = Material().extended(texts)
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert taken / 1.25 <= read.size


def test_what_is_too_large_is_summarised_and_not_kept():
    readings = Readings(bytes_=10_000)
    assert (
        summarise(talk(["Ana pays the bill. " + " ".join(f"word{index}" for index in range(1_000))]), 40, len, readings)
        is not None
    )
    assert len(readings) == 0


def test_no_text_of_the_caller_is_held():
    texts = ["Ana pays the whole bill", "Rex sleeps in the hall."]
    read = Material().extended(texts)
    held = {id(item) for part in fields(read) if part.name != "size" for item in getattr(read, part.name)}
    assert not held & set(map(id, texts))


def test_the_examples_of_the_documentation_are_true():
    assert doctest.testmod(material).failed == 0
    assert doctest.testmod(extract).failed == 0
