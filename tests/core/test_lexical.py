"""Sentences, words and relevance: laws over any text first, then languages, then growth."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

import contextshift.lexical as lexical
from contextshift.lexical import LONGEST_SENTENCE, bm25, fold, sentences, terms, word_lines
from core.counting import steps

any_text = st.text(st.characters(exclude_categories=()), max_size=300) | st.text(" .!?\n-`a1漢。;…", max_size=300)


@given(any_text)
def test_sentences_are_verbatim_stripped_parts_in_order_and_lose_no_letter(text):
    place = 0
    found = sentences(text)
    for sentence in found:
        assert sentence
        assert sentence == sentence.strip()
        place = text.index(sentence, place) + len(sentence) if "```" not in text else place
    if "`" not in text:
        assert [c for c in "".join(found) if c.isalnum()] == [c for c in text if c.isalnum()]


@given(st.text(st.characters(exclude_categories=()), min_size=300, max_size=2000))
def test_no_sentence_is_longer_than_the_longest_outside_code(text):
    if "```" not in text:
        assert all(len(sentence) <= LONGEST_SENTENCE for sentence in sentences(text))


@given(any_text)
def test_each_line_has_its_words_and_no_word_has_a_space(text):
    lines = word_lines(text)
    assert len(lines) == text.count("\n") + 1
    assert all(word and not any(map(str.isspace, word)) for words in lines for word in words)
    assert all(terms(text))


@given(any_text)
def test_folding_twice_is_folding_once_but_for_marks_that_the_cut_lays_bare(text):
    once = fold(text)
    assert fold(once.strip(".:'’-_/#")) == once.strip(".:'’-_/#") or not once.isascii()


@given(any_text, st.lists(any_text, max_size=8))
def test_relevance_is_between_0_and_1_for_each_document_and_does_not_depend_on_their_order(query, documents):
    scores = bm25(query, documents)
    assert len(scores) == len(documents)
    assert all(0.0 <= score <= 1.0 for score in scores)
    assert bm25(query, documents[::-1])[::-1] == scores
    wanted = set(terms(query))
    for score, document in zip(scores, documents, strict=True):
        assert (score > 0) == bool(wanted & set(terms(document)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Dr. Wu pays 3.14 EUR. Why? Fine!", ["Dr. Wu pays 3.14 EUR.", "Why?", "Fine!"]),
        ("We met, e.g. in May. See v2.3.1 of main.py.", ["We met, e.g. in May.", "See v2.3.1 of main.py."]),
        ("Go to https://x.org/a.b?c=d now. Done.", ["Go to https://x.org/a.b?c=d now.", "Done."]),
        ('He said "Really?" Then he left.', ['He said "Really?"', "Then he left."]),
        ("Am 14. März kommt z. B. Frau Müller. Gut!", ["Am 14. März kommt z. B. Frau Müller.", "Gut!"]),
        ("Well... maybe. ok then. we go", ["Well... maybe.", "ok then.", "we go"]),
        ("Цена 3,5 руб. за штуку. Дорого?", ["Цена 3,5 руб. за штуку.", "Дорого?"]),
        ("Τι ώρα είναι; Δεν ξέρω.", ["Τι ώρα είναι;", "Δεν ξέρω."]),
        ("this; that. And so on.", ["this; that.", "And so on."]),
        ("هل تأتي غدا؟ نعم.", ["هل تأتي غدا؟", "نعم."]),
        ("מתי? מחר.", ["מתי?", "מחר."]),
        ("मैं ठीक हूँ। आप कैसे हैं?", ["मैं ठीक हूँ।", "आप कैसे हैं?"]),
        ("好的。明天见！几点？", ["好的。", "明天见！", "几点？"]),
        ("「本当？」と言った。次は？", ["「本当？」", "と言った。", "次は？"]),
        ("- milk\n- eggs\n1. Call Ana. Now.\n\n# Plan\nGo", ["milk", "eggs", "1. Call Ana.", "Now.", "Plan", "Go"]),
        ("Run:\n```sh\nmake a. b\n```\nDone.", ["Run:", "```sh\nmake a. b\n```", "Done."]),
        (
            "this line is long enough that an editor has wrapped\nit here. Then",
            ["this line is long enough that an editor has wrapped\nit here.", "Then"],
        ),
        ("", []),
        ("  \n ", []),
    ],
)
def test_sentences_of_many_languages(text, expected):
    assert sentences(text) == expected


def test_a_long_unpunctuated_text_is_divided_at_clauses_and_spaces():
    parts = sentences("and then we went on, " * 60)
    assert all(60 < len(part) <= 241 for part in parts[:-1])
    assert all(part.endswith(",") for part in parts)


def test_scripts_without_spaces_are_read_in_pairs():
    assert word_lines("東京都に行く v2") == [["東京", "京都", "都に", "に行", "行く", "v2"]]
    assert word_lines("ฉันรัก")[0][:2] == ["ฉั", "ัน"]


def test_relevance_prefers_the_rare_word_and_the_shorter_text():
    documents = ["the key to the door", "the lost key", "the weather", "the lost key " + "and more " * 50]
    scores = bm25("the lost key", documents)
    assert scores.index(max(scores)) == 1
    assert scores[1] > scores[3] > scores[2]
    assert bm25("Решение о ключах", ["решения приняты", "погода"])[0] > 0
    assert bm25("钥匙在哪里", ["备用钥匙在花盆底下", "今天天气"])[1] == 0
    assert bm25("nothing", documents) == [0.0] * 4


def test_the_one_best_document_for_every_word_scores_1():
    assert bm25("lost key", ["lost key", "weather", "nothing here"])[0] == pytest.approx(1)


@pytest.mark.parametrize("unit", ["Ana pays 40. ", "漢字。", "a", "- b\n", "!", "… ", "```", "and so on, "])
def test_splitting_grows_linearly(unit):
    small, large = (steps(lambda size=size: [sentences(unit * size), terms(unit * size)]) for size in (300, 3000))
    assert large <= small * 10 * 1.2 + 50


def test_relevance_grows_linearly():
    small, large = (
        steps(lambda size=size: bm25("a key", [f"key number {index} in a box" for index in range(size)]))
        for size in (100, 1000)
    )
    assert large <= small * 10 * 1.2


def test_a_million_characters_without_a_space_are_no_trouble():
    for unit in ("!", "x", "漢", "\ud800", "`", "\n- ", "…", "a."):
        assert isinstance(sentences(unit * (1_000_000 // len(unit))), list)


def test_the_examples_of_the_documentation_are_true():
    assert doctest.testmod(lexical).failed == 0
