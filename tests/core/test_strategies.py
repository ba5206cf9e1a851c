"""Each strategy's own laws, and what each says of itself."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextshift import Budget, Reason, ShiftResult, TokenBudgetExceeded, WordCounter, shift_context
from contextshift.strategies.clear_tool_results import PLACEHOLDER
from contextshift.strategies.summarize import HEADING, SHARE
from core.talk import A, C, Msg, S, T, U, any_conversation, budgets, words

count = WordCounter()


def shifted(talk: list[Msg], budget: int, strategy: str, **options: Any) -> ShiftResult | None:
    try:
        return shift_context(talk, count, budget, strategy=strategy, **options)
    except TokenBudgetExceeded:
        return None


# -- summarize -----------------------------------------------------------------------------------------

FACTS = [
    "Maria Jensen signed the lease for the Odense warehouse on 14 March.",
    "We decided to move the release to the second of May.",
    "The budget for the whole project is 48,000 euros.",
    "Who will tell the landlord about the broken window?",
    "The password policy now asks for sixteen characters.",
    "Our new supplier is called Nordlicht and sits in Kiel.",
]


def story(turns: int = 60) -> list[Msg]:
    """A conversation in which now and then something is said that matters."""
    talk: list[Msg] = [S("be brief")]
    for turn in range(turns):
        idle = f"And what about the usual thing number {turn}, should we look at it again?"
        talk.append(U(FACTS[turn // 10 % len(FACTS)] if turn % 10 == 7 else idle))
        talk.append(A(f"I think the usual thing number {turn} is fine as it is for now."))
    return [*talk, U("what did we decide")]


USE = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]}
ANSWER = {
    "role": "user",
    "content": [{"type": "tool_result", "tool_use_id": "a", "content": "fine"}, {"type": "text", "text": "what now"}],
}


@pytest.mark.parametrize("end", [[USE, ANSWER], [C("a"), T("a")], [C("a", "b"), T("b"), T("a")], [U(1)]])
def test_a_summary_never_comes_between_a_call_and_its_result(end: list[Msg]):
    talk = [*(one for one in story() if one["role"] == "assistant"), *end]
    result = shifted(talk, 300, "summarize")
    assert result is not None
    assert result.summary is not None
    assert result.kept[-len(end) - 1 :] == [result.summary, *end]


@given(any_conversation, budgets, st.sampled_from([0.0, 0.3]))
def test_a_summary_keeps_within_its_share_and_is_smaller_than_what_it_replaces(talk, budget, headroom):
    result = shifted(talk, budget, "summarize", headroom=headroom)
    if result is not None and result.summary is not None:
        tokens = count(result.summary)
        protected = sum(count(m) for m in result.kept if m is not result.summary)
        assert tokens * SHARE <= budget
        assert tokens + protected == result.tokens <= budget
        assert tokens < sum(item.tokens for item in result.excluded)
        assert result.summary["role"] == "user"


def test_a_summary_says_in_the_conversations_own_words_what_left_right_before_the_current_input():
    talk = story()
    result = shift_context(talk, count, 600, strategy="summarize")
    assert result.summary is result.kept[-2]
    assert result.kept[-1] is talk[-1]
    text = result.summary["content"]
    assert text.startswith(HEADING)
    left = " ".join(str(item.message["content"]) for item in result.excluded)
    for line in text.removeprefix(HEADING).splitlines():
        speaker, _, said = line.partition(": ")
        assert speaker in ("User", "Assistant")
        for sentence in said.split(". "):
            assert sentence.strip(". ") in left
    assert sum(fact in text for fact in FACTS) >= 3


def test_the_same_history_gives_the_same_summary():
    one, other = (shift_context(story(), count, 600, strategy="summarize") for _ in range(2))
    assert one.summary == other.summary


def test_no_useful_summary_is_plain_truncation_and_a_diagnostic():
    talk = [S(1), U(9), A(9), U(1)]
    result = shift_context(talk, count, 3, strategy="summarize")
    assert result.summary is None
    assert result.kept == shift_context(talk, count, 3).kept
    assert {"code": "no-useful-summary"} in result.diagnostics


def test_an_earlier_summary_is_summed_up_like_the_history_it_stands_for():
    first = shift_context(story(), count, 600, strategy="summarize")
    longer = [*first.kept, A("done"), *story()[1:]]
    again = shift_context(longer, count, 600, strategy="summarize")
    assert again.summary is not None
    assert first.summary not in again.kept


@pytest.mark.parametrize("rules", [(), ("user_first",), ("system_first_only",)])
def test_b60_a_summary_stands_in_a_legal_place_for_every_target(rules):
    talk = [S("be brief"), *story(3)[1:]]
    result = shift_context(talk, count, 55, strategy="summarize", rules=rules)
    roles = [message["role"] for message in result.kept]
    assert roles[0] == "system"
    assert roles.count("system") == 1
    assert roles[-1] == "user"
    if "user_first" in rules:
        assert roles[1] == "user"


# -- vector-recall -------------------------------------------------------------------------------------


def lore(text: str, **meta: Any) -> Msg:
    return {"role": "system", "content": text, "meta": {"source": "lore", **meta}}


def test_memories_and_lore_leave_by_rising_relevance():
    talk = [S(1), lore("a b", relevance=0.9), lore("c d", relevance=0.1), lore("e f", relevance=0.5), U(1)]
    for budget, gone in ((6, [2]), (4, [2, 3]), (2, [2, 3, 1])):
        result = shift_context(talk, count, budget, strategy="vector-recall")
        assert [item.index for item in result.excluded] == gone


def test_without_relevance_on_the_block_words_in_common_with_the_question_decide():
    talk = [S(1), lore("the dragon sleeps in the north"), lore("bread is baked at dawn"), U("where is the dragon")]
    result = shift_context(talk, count, 11, strategy="vector-recall")
    assert [item.index for item in result.excluded] == [2]


@given(any_conversation, budgets)
def test_shortened_text_is_a_beginning_of_what_it_was_and_never_of_calls_or_parts(talk, budget):
    result = shifted(talk, budget, "vector-recall")
    for item in result.truncated if result else ():
        assert isinstance(item.original["content"], str)
        assert item.original["content"].startswith(item.message["content"])
        assert not item.original.get("tool_calls")
        assert {**item.original, "content": ""} == {**item.message, "content": ""}


def test_old_history_is_shortened_before_anything_is_removed():
    talk = [S(1), U(40), A(40), U(1)]
    result = shift_context(talk, count, 50, strategy="vector-recall")
    assert [(item.index, item.tokens_after) for item in result.truncated] == [(1, 10), (2, 38)]
    assert not result.excluded


# -- middle-out and clear-tool-results -----------------------------------------------------------------


def test_middle_out_keeps_the_oldest_quarter_and_lets_the_middle_go_oldest_first():
    talk = [S(1), U(5), A(5), U(10), A(10), U(10), A(10), U(1)]
    result = shift_context(talk, count, 40, strategy="middle-out")
    assert [item.index for item in result.excluded] == [3, 4]
    assert [item.index for item in shift_context(talk, count, 12, strategy="middle-out").excluded] == [1, 2, 3, 4, 5]


@given(any_conversation, budgets)
def test_clearing_leaves_calls_and_ids_and_changes_results_alone(talk, budget):
    result = shifted(talk, budget, "clear-tool-results")
    for item in result.truncated if result else ():
        assert item.original["role"] != "assistant"
        assert {**item.original, "content": None} == {**item.message, "content": None}
        assert PLACEHOLDER in str(item.message["content"])


def test_results_are_cleared_oldest_first_and_only_as_far_as_needed():
    talk = [S(1), U(1), C("a"), T("a", 20), C("b"), T("b", 20), A(1), U(1)]
    result = shift_context(talk, count, 30, strategy="clear-tool-results")
    assert [item.index for item in result.truncated] == [3]
    assert not result.excluded
    assert result.kept[3] == {"role": "tool", "content": PLACEHOLDER, "tool_call_id": "a"}


def test_results_that_are_parts_keep_their_ids():
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]}
    part = {"type": "tool_result", "tool_use_id": "a", "content": words(50)}
    talk = [S(1), U(1), call, {"role": "user", "content": [part]}, A(1), U(1)]
    total = sum(map(count, talk))
    result = shift_context(talk, count, total - 1, strategy="clear-tool-results")
    assert result.kept[3]["content"] == [{**part, "content": PLACEHOLDER}]


def test_what_clearing_cannot_free_is_truncated():
    talk = [S(1), U(30), C("a"), T("a", 20), A(1), U(1)]
    result = shift_context(talk, count, 10, strategy="clear-tool-results")
    assert [item.index for item in result.excluded] == [1]
    assert [item.index for item in result.truncated] == [3]


# -- headroom ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["truncate", "middle-out", "clear-tool-results", "vector-recall", "summarize"])
def test_with_headroom_consecutive_requests_of_a_growing_conversation_keep_one_prefix(strategy):
    def prefix(turns: int) -> list[Msg]:
        talk = [S(1)]
        for turn in range(turns):
            talk += [U(f"question {turn} " + words(6)), C(f"c{turn}"), T(f"c{turn}", 8), A(4)]
        result = shift_context([*talk, U(1)], count, 300, strategy=strategy, headroom=0.3)
        return [message for message in result.kept if message is not result.summary][:4]

    prefixes = [prefix(turns) for turns in range(20, 30)]
    changes = sum(one != other for one, other in itertools.pairwise(prefixes))
    assert changes <= 3


def test_a_message_with_a_cache_breakpoint_leaves_after_its_neighbours_and_losing_it_is_reported():
    marked = {"role": "user", "content": [{"type": "text", "text": words(5), "cache_control": {"type": "ephemeral"}}]}
    talk = [S(1), marked, *(A(7) for _ in range(12)), U(1)]
    result = shift_context(talk, count, 80, headroom=0.25)
    assert [item.index for item in result.excluded] == [2, 3, 4]
    lost = shift_context(talk, count, 60, headroom=0.25)
    assert {"code": "cache-breakpoint-lost", "indices": [1]} in lost.diagnostics


@given(any_conversation, budgets, st.sampled_from([1e-310, 1e-9, 0.001, 0.999999]))
def test_any_headroom_at_all_still_gives_a_result(talk, budget, headroom):
    result = shifted(talk, budget, "truncate", headroom=headroom)
    assert result is None or result.tokens <= budget


def test_a_budget_of_several_limits_works_for_every_strategy():
    for strategy in ("truncate", "middle-out", "clear-tool-results", "vector-recall", "summarize", "manual"):
        result = shift_context(story(), count, Budget(300, 50, 200, 20), strategy=strategy)
        assert result.tokens <= 200


def test_reasons_of_departures_are_stable_words():
    result = shift_context(story(), count, 200, strategy="summarize")
    assert {item.reason for item in result.excluded} == {Reason.CONTEXT_SHIFT}


# -- cache breakpoints and steps -----------------------------------------------------------------------

CACHED = {"cache_control": {"type": "ephemeral"}}


@pytest.mark.parametrize("group", [[C("a"), T("a", 50) | CACHED], [C("a") | CACHED, T("a", 50)], [U(50) | CACHED]])
def test_a_group_with_a_breakpoint_leaves_after_its_neighbours_of_the_same_step(group: list[Msg]):
    """A budget of 200 and a headroom of one half make a step of 100: all three groups begin in the first."""
    talk = [*group, A(40), A(120), U(10)]
    result = shifted(talk, 200, "truncate", headroom=0.5)
    assert result is not None
    assert [item.index for item in result.excluded] == [len(group), len(group) + 1]
    small = shifted([*group, A(100), U(60)], 200, "truncate", headroom=0.1)
    assert small is not None
    assert [item.index for item in small.excluded] == list(range(len(group)))


def test_a_cleared_result_takes_its_breakpoint_along_and_that_is_reported():
    result_parts = {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": words(90), **CACHED}]}
    result = shifted([U(10), C("a"), result_parts, U(10)], 50, "clear-tool-results")
    assert result is not None
    assert not result.excluded
    assert result.diagnostics == [{"code": "cache-breakpoint-lost", "indices": [2]}]


def test_a_marked_message_takes_its_breakpoint_along_and_the_place_is_the_inputs():
    talk = [U(10) | {"meta": {"manualExcluded": True}}, A(10), U(10) | CACHED, A(10), U(10)]
    result = shifted(talk, 25, "manual")
    assert result is not None
    assert [item.index for item in result.excluded] == [0, 1, 2]
    assert result.diagnostics == [{"code": "cache-breakpoint-lost", "indices": [2]}]
    alone = shifted([talk[0] | CACHED, *talk[1:]], 100, "manual")
    assert alone is not None
    assert alone.diagnostics == [{"code": "cache-breakpoint-lost", "indices": [0]}]


def test_what_manual_takes_out_aligns_the_first_turn_too():
    talk = [U(10) | {"meta": {"manualExcluded": True}}, A(10), U(10), A(10), U(10)]
    result = shifted(talk, 100, "manual", rules=["user_first"])
    assert result is not None
    assert [(item.index, item.reason) for item in result.excluded] == [(0, "manual"), (1, "turn-alignment")]


@given(st.lists(st.integers(1, 60), min_size=1, max_size=20), st.integers(20, 300), st.sampled_from([0.0, 0.2, 0.5]))
def test_middle_out_touches_the_beginning_only_where_the_middle_is_not_enough(sizes, budget, headroom):
    talk = [*map(A, sizes), U(1)]
    result = shifted(talk, budget, "middle-out", headroom=headroom)
    if result is None:
        return
    beginning, filled = set(), 0
    for index, size in enumerate(sizes):
        filled += size
        if filled > budget // 4:
            break
        beginning.add(index)
    touched = beginning & {item.index for item in result.excluded}
    assert not touched or sum(sizes[index] for index in beginning) + 1 > budget


def test_middle_out_keeps_a_breakpoint_behind_its_neighbours():
    talk = [U(50), A(100), U(100), A(200) | CACHED, U(200), A(300), U(200)]
    result = shifted(talk, 1000, "middle-out", headroom=0.5)
    assert result is not None
    assert [item.index for item in result.excluded] == [4, 5]
