"""Encodings count as plain tiktoken does, and answer where plain tiktoken would not."""

from __future__ import annotations

import random
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bastion.tokenizers import whitespace
from bastion.tokenizers.encodings import CountMemo, LazyEncoding, shared_encoding
from bastion.tokenizers.tiktoken_engine import _NEVER, TiktokenEncoding
from bastion.tokenizers.vocab import load_ranks
from gateway.tokenizers.oracle import NAMES, VOCABULARIES, Oracle

TEXTS = [
    "",
    " ",
    "Hello, world! It's 12345 o'clock.",
    "L'été à Besançon, où l'on s'ennuie.",
    "漢字とかな交じりの文章。",
    "Привет, мир! Как дела?",
    "مرحبا بالعالم",
    "नमस्ते दुनिया",
    "def f(x):\n\treturn x ** 2  # square\n\n\n",
    '{"a": [1, 2, {"b": null}], "c": "d\\n"}',
    "👩‍💻👍🏽🇫🇷 ❤️",
    "trailing spaces   \n\n   \t\r\n",
    "<|endoftext|> <|im_start|>user<|im_sep|>hi<|im_end|><|endofprompt|>",
    "X1Y2Z3" * 50,
]
TEXT = st.text(st.characters(), max_size=120)
PROSE = st.text(st.sampled_from("ab cé漢👍\u200d\U0001f3fd\u0301\n 1'.s"), max_size=200)
LIMIT = st.integers(0, 40)
slow = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def encoding(name: str) -> LazyEncoding:
    return shared_encoding(name, (VOCABULARIES,))


@cache
def tiktoken_encoding(name: str) -> TiktokenEncoding:
    return TiktokenEncoding(name, load_ranks(name, [VOCABULARIES]))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", TEXTS)
def test_it_counts_as_tiktoken_does(name: str, text: str, oracle: Oracle) -> None:
    assert encoding(name).count(text) == len(oracle(name).encode_ordinary(text))


@pytest.mark.parametrize("name", NAMES)
@slow
@given(text=TEXT)
def test_it_counts_any_text_as_tiktoken_does_within_the_bytes(name: str, text: str, oracle: Oracle) -> None:
    tokens = encoding(name).count(text)
    assert tokens == len(oracle(name).encode_ordinary(text))
    assert tokens <= len(text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("name", NAMES)
@slow
@given(text=PROSE | TEXT, limit=LIMIT)
def test_a_cut_is_a_prefix_of_whole_characters_and_never_over(name: str, text: str, limit: int) -> None:
    short = encoding(name).cut(text, limit)
    assert text.startswith(short)
    assert encoding(name).count(short) <= limit
    if encoding(name).count(text) <= limit:
        assert short == text


@pytest.mark.parametrize("name", NAMES)
def test_a_cut_loses_little(name: str) -> None:
    text = "The quick brown fox jumps over the lazy dog. 漢字とかな。 " * 200
    for limit in (1, 10, 100, 1_000):
        assert encoding(name).count(encoding(name).cut(text, limit)) >= limit - 3 - limit // 20


@pytest.mark.parametrize("name", NAMES)
def test_a_cut_keeps_accents_and_joined_emoji_with_what_they_modify(name: str) -> None:
    text = "x" + "\U0001f469\u200d\U0001f4bb" * 20
    for limit in range(1, 60):
        assert len(encoding(name).cut(text, limit)) % 3 in (0, 1)
        assert not encoding(name).cut(text, limit).endswith("\u200d")


@pytest.mark.parametrize(
    "text",
    [
        "a" * 1_000_000,
        "^" * 100_000,
        " " * 1_000_000,
        "x" + " " * 1_000_000 + "x",
        "\t" * 1_000_000,
        "\n" * 1_000_000 + "x",
    ],
    ids=["letters", "carets", "spaces", "spaces-inside", "tabs", "newlines"],
)
@pytest.mark.parametrize("name", NAMES)
def test_long_repeats_are_counted_and_cut(name: str, text: str) -> None:
    """How fast is the benchmark's to say; a quadratic step would not end here."""
    fresh = encoding(name)
    tokens = fresh.count(text)
    short = fresh.cut(text, 1_000)
    assert 0 < tokens < len(text)
    assert fresh.count(short) <= 1_000


@pytest.mark.parametrize("name", NAMES)
def test_a_whitespace_run_in_pieces_counts_nearly_as_a_whole(name: str, oracle: Oracle) -> None:
    text = "a" + " " * 350_000 + "b"
    whole = len(oracle(name).encode_ordinary(text))
    assert whole <= encoding(name).count(text) <= whole + 2 * 3


@pytest.mark.parametrize("run", [99_999, 100_000, 100_001, 150_000, 200_001])
@pytest.mark.parametrize("before", [0, 1, 49_999, 50_000, 75_000])
def test_long_whitespace_is_found_wherever_it_lies(run: int, before: int) -> None:
    text = "a" * before + " " * run + "b" * 10
    pieces = list(whitespace.pieces(text))
    assert "".join(pieces) == text
    assert len(pieces) == -(-run // whitespace.PIECE)


def test_lone_surrogates_count_as_replacement_characters(oracle: Oracle) -> None:
    assert encoding("o200k_base").count("a\ud800b") == len(oracle("o200k_base").encode_ordinary("a\ufffdb"))
    assert encoding("o200k_base").cut("\ud800" * 100, 5).count("\ud800") > 0


def test_a_pattern_that_gives_up_is_asked_for_less() -> None:
    class PanicException(BaseException):
        pass

    class Engine:
        def encode_ordinary(self, text: str) -> list[int]:
            if len(text) > 10:
                raise PanicException
            return [0] * len(text)

    real = TiktokenEncoding("cl100k_base", load_ranks("cl100k_base", [VOCABULARIES]))
    real._engine = Engine()  # type: ignore[assignment]
    assert real.count("x" * 1_000) == 1_000


@pytest.mark.parametrize(
    ("text", "limit", "kept"),
    [
        ("It was one thing. Another thing goes on.", 7, "It was one thing."),
        ("No sentence ends in these words that go on", 4, "No sentence ends in"),
        ("你好。今天天气很好，我们去公园吧", 4, "你好。"),
        ("first line\nsecond line goes on", 5, "first line\n"),
        ("a" * 400, 10, "a" * 80),
    ],
)
def test_a_cut_ends_with_a_sentence_or_a_word_where_one_is_near(text: str, limit: int, kept: str) -> None:
    assert encoding("o200k_base").cut(text, limit) == kept


def test_many_threads_make_one_encoding_and_agree() -> None:
    made = []
    barrier = threading.Barrier(8)

    def make() -> TiktokenEncoding:
        made.append(1)
        return TiktokenEncoding("cl100k_base", load_ranks("cl100k_base", [VOCABULARIES]))

    lazy = LazyEncoding("cl100k_base", make)

    def work(number: int) -> list[int]:
        barrier.wait()
        return [lazy.count(text * 40) for text in TEXTS]

    assert made == []
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(work, range(8)))
    assert len(made) == 1
    assert all(answer == answers[0] for answer in answers)


def test_the_encoding_of_a_vocabulary_is_shared() -> None:
    assert encoding("o200k_base") is encoding("o200k_base")
    assert encoding("o200k_base") is not encoding("cl100k_base")


def test_the_memo_counts_a_long_text_once_and_stays_small() -> None:
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text)

    memo = CountMemo(size=2, least=3)
    for text in ["ab", "ab", "long", "long", "other", "more", "other", "long"]:
        assert memo.count(text, count) == len(text)
    assert counted == ["ab", "ab", "long", "other", "more", "long"]
    assert len(memo) == 2


def test_the_memo_is_bounded_in_number_and_keeps_no_text() -> None:
    memo = CountMemo(size=100, least=0)
    texts = [f"{number} " * 5_000 for number in range(300)]
    for text in texts:
        assert memo.count(text, len) == memo.count_rewritten(text, str.upper, len) == len(text)
    assert len(memo) <= 100
    assert sum(map(sys.getsizeof, (memo._young, memo._old))) < 16_384
    assert {type(kept) for pair in (*memo._young.items(), *memo._old.items()) for kept in pair} == {int}


def test_a_growing_conversation_is_encoded_once() -> None:
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text)

    memo, texts = CountMemo(size=1_000), [f"this is message number {number}" for number in range(400)]
    for end in range(0, len(texts) + 1, 20):
        for text in texts[:end]:
            assert memo.count("".join(list(text)), count) == len(text)
    assert counted == texts


def test_a_text_and_the_same_text_rewritten_are_two_counts() -> None:
    memo = CountMemo(least=0)
    for _ in range(2):
        assert memo.count("a long text", len) == 11
        assert memo.count_rewritten("a long text", lambda text: text[:3], len) == 3


def test_the_memo_is_right_from_many_threads_while_it_forgets() -> None:
    memo, texts = CountMemo(size=64, least=0), ["x" * number for number in range(200)]

    def work(seed: int) -> bool:
        order = random.Random(seed).choices(texts, k=5_000)
        return all(memo.count(text, len) == len(text) for text in order)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))
    assert len(memo) <= 64 + 16


@pytest.mark.parametrize("name", NAMES)
@slow
@given(
    parts=st.lists(PROSE | TEXT | st.sampled_from([_NEVER, _NEVER[:-1], "\ud800"]), max_size=12),
    times=st.integers(1, 9),
)
def test_long_texts_count_as_by_tiktokens_list(name: str, parts: list[str], times: int, oracle: Oracle) -> None:
    text = "".join(parts) * times
    assert encoding(name).count(text) == len(oracle(name).encode_ordinary(text))
    assert tiktoken_encoding(name).count(text) == len(oracle(name).encode_ordinary(text))


def test_a_tiktoken_without_its_buffer_still_counts() -> None:
    real = TiktokenEncoding("cl100k_base", load_ranks("cl100k_base", [VOCABULARIES]))
    text = "The committee met on Tuesday. " * 100
    expected = real.count(text)

    class Engine:
        encode_ordinary = staticmethod(real._engine.encode_ordinary)

    real._engine = Engine()  # type: ignore[assignment]
    assert real.count(text) == expected
