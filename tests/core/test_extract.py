"""The summary's laws over any conversation, then what it favours, then growth.

1 never over the limit; 2 None or a text that says something; 3 sentences stand word for word, in their order, under
the one who said them; 4 deterministic; 5 no text raises; 6 work grows linearly.
"""

from __future__ import annotations

import doctest
import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import contextshift.extract as extract
from contextshift.extract import Said, summarise
from core.counting import steps
from core.test_lexical import any_text

counters = st.sampled_from([len, lambda text: len(text.split()), lambda text: len(text) // 4 + 1, lambda text: 3])
speakers = st.sampled_from(["User", "Assistant", "用户", ""])
conversations = st.lists(st.builds(Said, speakers, any_text), max_size=12)
limits = st.integers(-2, 200)

WORDS = [
    "river",
    "stone",
    "Anna",
    "pays",
    "decide",
    "14",
    "March",
    "why",
    "budget",
    "Решение",
    "ключ",
    "Straße",
    "moved",
]
lines = st.lists(st.lists(st.sampled_from(WORDS), max_size=12), max_size=5)
told = st.lists(st.tuples(st.sampled_from(["User", "Assistant"]), lines), max_size=10)


def count(text: str) -> int:
    return len(text.split())


@given(conversations, limits, counters)
def test_1_2_4_5_any_text_gives_none_or_a_text_within_the_limit_and_the_same_again(said, limit, counter):
    summary = summarise(said, limit, counter)
    assert summary is None or (summary.strip() and counter(summary) <= limit)
    assert summarise(said, limit, counter) == summary


@given(told, st.integers(1, 150))
def test_3_sentences_stand_word_for_word_in_their_order_under_the_one_who_said_them(talk, limit):
    numbers = itertools.count()
    spoken = [(who, [f"Nr{next(numbers)}x {' '.join(words)}." for words in parts]) for who, parts in talk]
    summary = summarise([Said(who, " ".join(parts)) for who, parts in spoken], limit, count)
    if summary is None:
        return
    kept = [(who, part) for who, parts in spoken for part in parts if part in summary]
    runs = itertools.groupby(kept, key=lambda one: one[0])
    assert summary == "\n".join(f"{who}: {' '.join(part for _, part in run)}" for who, run in runs)


def test_4_it_does_not_depend_on_the_seed_of_hashes():
    program = (
        "from contextshift.extract import Said, summarise\n"
        "said = [Said('User', f'Ana{i % 7} moves box {i * i} to room {i % 11}. Why now?') for i in range(300)]\n"
        "print(summarise(said, 400, len))"
    )
    core = str(Path(extract.__file__).parents[1])
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": core},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(outputs) == 1


@pytest.mark.parametrize("limit", [0, -1, 1, 3])
def test_a_limit_too_small_for_one_sentence_gives_none(limit):
    assert summarise([Said("User", "The lease ends on 14 March.")], limit, count) is None


def test_nothing_said_and_nothing_meaningful_give_none():
    blob = "QUJD" * 20_000
    for text in ("", "ok", "Hi! Thanks.", "!!!", blob, "```\n" + "x = 1\n" * 200 + "```"):
        assert summarise([Said("User", text)], 100, count) is None
    assert summarise([], 100, count) is None


CHAT = [
    "Thanks, that was nice of you.", "How was your weekend at the lake?", "It was nice, thanks for asking.",
    "The weather was nice at the lake.", "I was at the lake with the dog.", "Was the dog nice to you at the lake?",
    "Let me know if you need anything else!", "That was nice, let me know how it was.",
]  # fmt: skip


def talk(*facts: str) -> list[Said]:
    """Chat about the same things over and over, with a fact here and there."""
    texts = [CHAT[(3 * turn + turn // 8) % len(CHAT)] + " " + CHAT[turn % 5] for turn in range(80)]
    for number, fact in enumerate(facts):
        place = 7 + number * 60 // len(facts)
        texts[place] = f"{CHAT[number]} {fact} {CHAT[-1]}"
    return [Said(("User", "Assistant")[turn % 2], text) for turn, text in enumerate(texts)]


def test_names_numbers_decisions_and_questions_are_kept():
    facts = [
        "Priya signs the lease on Harbour Street.", "The rent is 1,250 euros a month.",
        "We decided to drop the mobile app.", "Who tells the landlord about the leak?",
    ]  # fmt: skip
    summary = summarise(talk(*facts), 50, count)
    assert summary is not None
    assert all(fact in summary for fact in facts)


@pytest.mark.parametrize(
    "fact",
    [
        "Der Ersatzschlüssel liegt unter dem Blumentopf.",
        "Запасной ключ лежит под синим горшком.",
        "备用钥匙放在蓝色花盆底下。",
        "المفتاح الاحتياطي تحت أصيص الزهور الأزرق.",
        "合鍵は青い植木鉢の下にあります。",
        "अतिरिक्त चाबी नीले गमले के नीचे है।",
        "Το εφεδρικό κλειδί είναι κάτω από τη γλάστρα.",
        "המפתח הרזרבי מתחת לעציץ הכחול.",
    ],
)
def test_a_fact_is_found_in_any_language(fact):
    summary = summarise(talk(fact), 60, len)
    assert summary is not None
    assert fact in summary


def test_what_was_said_twice_is_summarised_once():
    said = [
        Said("User", "Ana moves to Lyon in May."),
        Said("Assistant", "Ana moves to Lyon in May. Rex sleeps in the hall."),
    ]
    summary = summarise(said, 100, count)
    assert summary == "User: Ana moves to Lyon in May.\nAssistant: Rex sleeps in the hall."


def test_items_of_a_list_are_told_apart():
    assert summarise([Said("User", "- buy two red lamps\n- call Ana at noon")], 20, count) == (
        "User: buy two red lamps; call Ana at noon"
    )


def test_the_limit_is_used():
    said = [
        Said("User", f"Box number {index} holds the {word} from {index * 7}.") for index, word in enumerate(WORDS * 20)
    ]
    for limit in (50, 200, 1000):
        summary = summarise(said, limit, count)
        assert summary is not None
        assert count(summary) > 0.75 * limit


def test_only_a_few_texts_are_counted_and_they_are_short():
    counted: list[int] = []

    def counting(text: str) -> int:
        counted.append(count(text))
        return counted[-1]

    summarise([Said("User", f"Box number {index} holds item {index * 7}.") for index in range(2000)], 300, counting)
    assert len(counted) <= 14
    assert sum(counted) < 300 * 8


def long_talk(length: int) -> list[Said]:
    words = [f"word{index}" for index in range(40)]
    return [
        Said(
            "User" if turn % 3 else "Assistant",
            f"Talk of {words[turn % 37]} and {words[turn % 11]} by Nr{turn % 101}. Why?",
        )
        for turn in range(length)
    ]


@pytest.mark.parametrize("share", [0.02, 0.3])
def test_6_work_grows_linearly_with_the_conversation(share):
    small, large = (
        steps(lambda size=size: summarise(long_talk(size), int(size * 8 * share), count)) for size in (400, 4000)
    )
    assert large <= small * 10 * 1.2


@pytest.mark.parametrize("unit", ["Ana pays 40 euros for the blue lamp. ", "x", "蓝色花盆底下有钥匙，", "!", "word "])
def test_6_work_grows_linearly_with_one_huge_message(unit):
    small, large = (steps(lambda size=size: summarise([Said("User", unit * size)], 200, len)) for size in (3000, 30000))
    assert large <= small * 10 * 1.2 + 50


def test_a_hundred_thousand_identical_messages_and_a_million_characters_are_no_trouble():
    same = [Said("User", "Thanks, the blue lamp is here.")] * 100_000
    assert summarise(same, 100, count) == "User: Thanks, the blue lamp is here."
    for unit in ("x", "漢", "\ud800", "word ", "!?"):
        summary = summarise([Said("User", unit * (1_000_000 // len(unit)))], 300, len)
        assert summary is None or len(summary) <= 300


def test_the_examples_of_the_documentation_are_true():
    assert doctest.testmod(extract).failed == 0
