"""Pattern keys: bounded whatever they say (cases/B73), read as JavaScript reads them, with Unicode words."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bastion.patterns import RegexPatterns, _compiled
from contextshift.fakes import TrustingPatterns
from contextshift.lore.patterns import (
    PatternBudget,
    PatternEngine,
    PatternInvalid,
    PatternTimeout,
    check,
    parse_key,
)

ENDLESS = "(a|a)*b|c"
"""`regex` sees through `(a+)+$`, but not through this."""
TEXT = "a" * 40 + "!"
PARTS = st.sampled_from([*"ab(){}[]|*+?^$\\.,:=!<>-19 ßж", "(?", "(?<", "\\k<n>", "\\u{", "\\p{L}", "[^]", "{1,9}"])
SOURCES = st.one_of(st.text(max_size=60), st.lists(PARTS, max_size=30).map("".join))
GENEROUS = PatternBudget(key_seconds=30, request_seconds=60)


def search(source: str, text: str, flags: str = "") -> bool:
    return RegexPatterns(GENEROUS).session().search(source, flags, text)


class Ticking:
    """A clock that moves by ``step`` seconds whenever it is read."""

    def __init__(self, step: float) -> None:
        self._now, self._step = 0.0, step

    def __call__(self) -> float:
        self._now += self._step
        return self._now


def test_a_pattern_that_would_take_for_ever_is_stopped():
    with pytest.raises(PatternTimeout) as stopped:
        RegexPatterns().session().search(ENDLESS, "", TEXT * 10)
    assert stopped.value.reason == "regex-timeout"
    assert TEXT not in str(stopped.value)


def test_the_pattern_of_b73_is_bounded():
    """Exponential in a backtracking engine; here it either answers within its budget or is stopped."""
    source, flags = parse_key("/(a+)+$/") or ("", "")
    session = RegexPatterns().session()
    try:
        assert session.search(source, flags, TEXT) is False
    except PatternTimeout:
        pass


def test_the_broken_pattern_of_b73_is_invalid():
    source, flags = parse_key("/[/") or ("", "")
    assert source == "["
    for engine in (RegexPatterns(), TrustingPatterns()):
        with pytest.raises(PatternInvalid) as refused:
            engine.session().search(source, flags, TEXT)
        assert refused.value.reason == "regex-invalid"


def test_a_key_that_overran_stays_out_and_others_go_on():
    session = RegexPatterns(PatternBudget(key_seconds=0.02, request_seconds=60)).session()
    for text in (TEXT * 10, "c"):
        with pytest.raises(PatternTimeout):
            session.search(ENDLESS, "", text)
    assert session.search("a!", "", TEXT)


def test_a_key_has_its_time_for_all_texts_together():
    session = RegexPatterns(PatternBudget(key_seconds=2.5, request_seconds=1000), Ticking(1.0)).session()
    assert [session.search("a", "", TEXT) for _ in range(3)] == [True] * 3
    with pytest.raises(PatternTimeout):
        session.search("a", "", TEXT)
    assert session.search("b", "", TEXT) is False


def test_a_request_has_its_time_for_all_keys_together():
    engine = RegexPatterns(PatternBudget(key_seconds=100, request_seconds=6), Ticking(1.0))
    session = engine.session()
    assert session.search("a", "", TEXT)
    assert session.search("!", "", TEXT)
    with pytest.raises(PatternTimeout):
        session.search("b", "", TEXT)
    assert engine.session().search("a", "", TEXT)


def test_a_pattern_that_is_too_long_is_never_compiled():
    check("a" * 1000, "", PatternBudget())
    before = _compiled.cache_info().misses
    with pytest.raises(PatternInvalid):
        RegexPatterns().session().search("a" * 1001, "", TEXT)
    assert _compiled.cache_info().misses == before


@given(SOURCES, st.text("dgimsuvy", max_size=3), st.text(max_size=50))
@example("(" * 500 + ")" * 500, "", "")
@example("(?<=" * 200 + "a" + ")" * 200, "", "")
@example("\\L<x>", "", "")
@example("a{99999999999999999999}", "", "")
@example("((((a{1,9999}){1,9999}){1,9999}){1,9999})", "i", TEXT)
@example("(?R)", "", TEXT)
@example("\\u{FFFFFFFF}[\\u{FFFFFFFF}]", "", TEXT)
def test_any_pattern_answers_or_says_what_is_wrong(source, flags, text):
    try:
        answer = RegexPatterns(PatternBudget(key_seconds=0.01)).session().search(source, flags, text)
    except (PatternInvalid, PatternTimeout):
        return
    assert answer in (True, False)


@pytest.mark.parametrize("flags", ["x", "a", "gg", "uv", "I", " "])
@pytest.mark.parametrize("engine", [RegexPatterns(), TrustingPatterns()])
def test_flags_that_javascript_refuses_are_invalid(engine: PatternEngine, flags):
    with pytest.raises(PatternInvalid):
        engine.session().search("a", flags, TEXT)


@pytest.mark.parametrize("engine", [RegexPatterns(GENEROUS), TrustingPatterns()])
@pytest.mark.parametrize(
    ("source", "flags", "text", "right"),
    [
        ("gate", "", "The Gate", False),
        ("gate", "i", "The Gate", True),
        ("gate", "gyd", "a gate", True),
        ("a.b", "", "a\nb", False),
        ("a.b", "s", "a\nb", True),
        ("^b$", "", "a\nb", False),
        ("^b$", "m", "a\nb\nc", True),
        (r"a\/b", "u", "a/b", True),
        (r"\bкот\b", "i", "Мой КОТ!", True),
        (r"\bкот\b", "i", "котёл", False),
        (r"^\w+$", "", "naïveté", True),
    ],
)
def test_patterns_match(engine, source, flags, text, right):
    assert engine.session().search(source, flags, text) is right


@pytest.mark.parametrize(
    ("source", "flags", "text", "right"),
    [
        ("a$", "", "a\n", False),
        ("[$]", "", "$", True),
        (r"a\$", "", "a$", True),
        ("[^]b", "", "\nb", True),
        ("a[]|b", "", "a", False),
        (r"(?<n>a|b)\k<n>", "", "bb", True),
        (r"\u{1F600}", "u", "😀", True),
        (r"[\u{1F600}-\u{1F602}]", "v", "😁", True),
        ("a{e<=1}", "", "b", False),
        ("a{e<=1}", "", "a{e<=1}", True),
        ("^a{2,3}$", "", "aaa", True),
        ("^[[:alpha:]$", "", "[", True),
        (r"\X\K", "", "XK", True),
        (r"\p{Script=Greek}", "u", "α", True),
        (r"[\p{Lu}\d]", "u", "ä", False),
        (r"\P{L}", "u", "1", True),
    ],
)
def test_what_javascript_reads_differently_is_read_as_there(source, flags, text, right):
    assert search(source, text, flags) is right


@pytest.mark.parametrize(
    ("key", "right"),
    [
        ("/gate/", ("gate", "")),
        ("/gate/gi", ("gate", "gi")),
        (r"/a\/b/i", (r"a\/b", "i")),
        ("/[/]/", ("[/]", "")),
        ("/[/", ("[", "")),
        ("/a\nb/s", ("a\nb", "s")),
        ("gate", None),
        ("//", None),
        ("/", None),
        ("/etc/passwd", None),
        ("/a/b/i", None),
        ("/a\\/", None),
        (" /a/", None),
    ],
)
def test_a_pattern_is_told_from_a_text(key, right):
    assert parse_key(key) == right


@given(st.text())
def test_any_key_is_a_pattern_or_a_text(key):
    found = parse_key(key)
    assert found is None or f"/{found[0]}/{found[1]}" == key


def test_the_fake_runs_out_of_time_where_told():
    with pytest.raises(PatternTimeout):
        TrustingPatterns(endless=[ENDLESS]).session().search(ENDLESS, "", "c")


def test_the_engine_is_loaded_on_first_use_only():
    code = "import sys, bastion.patterns; bastion.patterns.RegexPatterns().session(); assert 'regex' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})
