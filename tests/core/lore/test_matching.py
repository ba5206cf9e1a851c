"""Keys in texts of every script."""

from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextshift.lore.matching import KeyIndex, ScanText, finds, text_key

texts = st.text(st.sampled_from("aAbéeßİ́кот东京กา +:)-❤\ufe0f™1\n"), max_size=24) | st.text(max_size=12)
some = st.text(st.sampled_from("ab е東+ "), max_size=8) | texts
flags = st.booleans()


def found(key: str, text: str, *, whole: bool = False, case: bool = False) -> bool:
    ready = text_key(key, case_sensitive=case, whole_words=whole)
    return ready is not None and finds(ready, ScanText(text))


@given(texts, texts, flags, flags)
def test_composed_and_decomposed_spellings_are_one(key, text, whole, case):
    answers = {
        found(normalize(a, key), normalize(b, text), whole=whole, case=case)
        for a in ("NFC", "NFD")
        for b in ("NFC", "NFD")
    }
    assert len(answers) == 1


@given(st.lists(some, max_size=8), some, flags, flags)
def test_the_index_finds_what_each_key_alone_finds(keys, text, whole, case):
    ready = [text_key(key, case_sensitive=case, whole_words=whole) for key in keys]
    index = KeyIndex([(key, number) for number, key in enumerate(ready) if key])
    scan = ScanText(text)
    assert sorted(index.found(scan, lambda number: True)) == [
        n for n, key in enumerate(ready) if key and finds(key, ScanText(text))
    ]


@given(texts, texts, flags)
def test_a_whole_word_is_found_only_where_the_text_is(key, text, case):
    assert found(key, text, case=case) or not found(key, text, whole=True, case=case)


@given(texts, flags, flags)
def test_a_key_alone_on_its_line_is_found(key, whole, case):
    blank = text_key(key, case_sensitive=case, whole_words=whole) is None
    assert blank or found(key, f"one\n{key}\ntwo", whole=whole, case=case)


@pytest.mark.parametrize(
    ("key", "text", "right"),
    [
        ("кот", "мой кот спит", True),
        ("кот", "Который", False),
        ("cole", "l'école", False),
        ("école", normalize("NFD", "l'école"), True),
        ("l", "l'école", True),
        ("cat", "concatenate", False),
        ("cat", "a cat_fish", True),
        ("king", "kings and a KING.", True),
        ("東京", "私は東京都に住む", True),
        ("แมว", "ฉันรักแมวมาก", True),
        ("ai", "AIは賢い", True),
        ("हिन्दी", "मैं हिन्दी बोलता हूँ", True),
        ("हिन्द", "मैं हिन्दी बोलता हूँ", False),
        ("c++", "I like C++, too", True),
        ("c++", "I like Mac++", False),
        (":)", "fine:)now", True),
        ("❤️", "I ❤ you", True),
        ("❤", "I ❤️ you", True),
        ("love", "❤️love", True),
        ("™", "atm", False),
        ("ｆｕｌｌ", "the full text", True),
        ("straße", "STRASSE", True),
        ("dark tower", "a Dark Tower stands", True),
        ("dark tower", "a dark towering wall", False),
        ("  cat ", "the cat", True),
    ],
)
def test_whole_words_of_every_script(key, text, right):
    assert found(key, text, whole=True) is right


def test_case_counts_only_where_it_is_asked_for():
    assert found("Rose", "a rose")
    assert not found("Rose", "a rose", case=True)
    assert found("Rose", "a Rose", case=True)


def test_without_whole_words_a_part_is_enough():
    assert found("cat", "concatenate")


@pytest.mark.parametrize("key", ["", "  ", "\ufe0f", "\u00ad"])
def test_a_blank_key_wakes_nothing(key):
    assert text_key(key, case_sensitive=False, whole_words=False) is None
