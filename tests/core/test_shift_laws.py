"""The laws of `shift_context`, over generated conversations.

1 the result fits by the host's own recount, or the error is raised; 2 protected blocks are kept, the very
objects; 3 no group is split; 4 order is preserved; 5 every block is exactly one of kept, shortened, excluded;
6 a result shifted again is unchanged; 7 what fits is returned as it came; 8 a larger budget never keeps fewer
tokens; 9 each block is tokenised at most once; 10 work grows linearly with the number of blocks.
"""

from __future__ import annotations

import copy
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextshift import (
    Budget,
    ContextStrategyRegistry,
    Proposal,
    Reason,
    ShiftResult,
    TokenBudgetExceeded,
    WordCounter,
    group_messages,
    shift_context,
)
from contextshift.messages import HISTORY_SOURCES, is_user_turn, source_of
from contextshift.protection import protect
from contextshift.strategies import Strategy
from core.counting import steps
from core.talk import Msg, S, U, any_conversation, budgets

count = WordCounter()
strategies = st.sampled_from(ContextStrategyRegistry().ids())
headrooms = st.sampled_from([0.0, 0.1, 0.5, 0.9])
rules = st.sampled_from([(), ("user_first",)])


def shifted(
    talk: list[Msg], budget: int, strategy: str | Strategy = "truncate", **options: object
) -> ShiftResult | None:
    try:
        return shift_context(talk, count, budget, strategy=strategy, **options)  # type: ignore[arg-type]
    except TokenBudgetExceeded:
        return None


@given(any_conversation, budgets, strategies, headrooms, rules)
def test_1_the_result_fits_by_a_recount_or_the_error_says_by_how_much_it_does_not(talk, budget, strategy, room, rule):
    result = shifted(talk, budget, strategy, headroom=room, rules=rule)
    if result is None:
        groups = group_messages(talk)
        protected = sum(count(talk[index]) for index in protect(talk, groups).reasons)
        with pytest.raises(TokenBudgetExceeded) as caught:
            shift_context(talk, count, budget, strategy=strategy)
        assert caught.value.breakdown["over_by"] == protected - budget > 0
    else:
        assert sum(map(count, result.kept)) == result.tokens <= budget


@given(any_conversation, budgets, strategies, headrooms, rules)
def test_2_protected_blocks_are_kept_as_the_very_objects_that_came(talk, budget, strategy, room, rule):
    before = copy.deepcopy(talk)
    result = shifted(talk, budget, strategy, headroom=room, rules=rule)
    assert talk == before
    if result is not None:
        kept = {id(message) for message in result.kept}
        assert all(id(talk[index]) in kept for index in protect(talk, group_messages(talk)).reasons)


@given(any_conversation, budgets, strategies, headrooms, rules)
def test_3_no_group_is_split(talk, budget, strategy, room, rule):
    result = shifted(talk, budget, strategy, headroom=room, rules=rule)
    if result is not None:
        gone = {item.index for item in result.excluded}
        for members in group_messages(talk).members.values():
            assert len(gone & set(members)) in (0, len(members))


@given(any_conversation, budgets)
def test_3_a_summary_stands_before_the_current_input_and_inside_no_group(talk, budget):
    sums_up = Smuggler([])
    sums_up.propose = lambda s: Proposal(  # type: ignore[method-assign]
        {i: Reason.CONTEXT_SHIFT for i in range(len(s.messages)) if i not in s.protected}, summary="short"
    )
    result = shifted(talk, budget, sums_up)
    if result is None or result.summary is None:
        return
    groups, place = group_messages(talk), result.origins.index(None)
    before, after = result.origins[:place], result.origins[place + 1 :]
    assert protect(talk, groups).current in after
    for members in groups.members.values():
        assert not (set(members) & set(before) and set(members) & set(after))


@given(any_conversation, budgets, strategies, headrooms, rules)
def test_4_and_5_order_is_preserved_and_every_block_is_accounted_for_once(talk, budget, strategy, room, rule):
    result = shifted(talk, budget, strategy, headroom=room, rules=rule)
    if result is not None:
        gone = [item.index for item in result.excluded]
        shorter = {item.index: item for item in result.truncated}
        given_back = [origin for origin in result.origins if origin is not None]
        assert given_back == sorted(given_back)
        assert sorted([*given_back, *gone]) == list(range(len(talk)))
        assert shorter.keys() <= set(given_back)
        for message, origin in zip(result.kept, result.origins, strict=True):
            if origin is None:
                assert message is result.summary
            elif origin in shorter:
                item = shorter[origin]
                assert (message, item.original) == (item.message, talk[origin])
                assert count(message) == item.tokens_after < item.tokens_before == count(item.original)
            else:
                assert message is talk[origin]
        assert all(item.message is talk[item.index] for item in result.excluded)
        assert all(item.tokens == count(item.message) for item in result.excluded)


@given(any_conversation, budgets, strategies, headrooms)
def test_4_where_something_left_history_begins_with_a_user_or_a_protected_block(talk, budget, strategy, room):
    result = shifted(talk, budget, strategy, headroom=room, rules=["user_first"])
    protected = protect(talk, group_messages(talk)).reasons
    if result is not None and result.excluded:
        for message, origin in zip(result.kept, result.origins, strict=True):
            spoken = origin is not None and source_of(message) in HISTORY_SOURCES
            if spoken and message["role"] not in ("system", "developer"):
                assert is_user_turn(message) or origin in protected
                break


@given(any_conversation, budgets, strategies, headrooms, st.sets(st.integers(0, 23)))
def test_5_a_cache_breakpoint_is_kept_or_its_loss_is_reported_by_its_place(talk, budget, strategy, room, places):
    marked = [one | {"cache_control": {"type": "ephemeral"}} if at in places else one for at, one in enumerate(talk)]
    result = shifted(marked, budget, strategy, headroom=room)
    if result is not None:
        told = [item["indices"] for item in result.diagnostics if item["code"] == "cache-breakpoint-lost"]
        lost = [index for indices in told for index in indices]
        assert lost == sorted(item.index for item in result.excluded if item.index in places)


@given(any_conversation, budgets, strategies, rules)
def test_6_a_result_shifted_again_is_unchanged(talk, budget, strategy, rule):
    result = shifted(talk, budget, strategy, rules=rule)
    if result is not None:
        again = shift_context(result.kept, count, budget, strategy=strategy, rules=rule)
        assert again.kept == result.kept
        assert not again.excluded


@given(any_conversation)
def test_7_what_fits_is_returned_as_it_came(talk):
    result = shift_context(talk, count, sum(map(count, talk)))
    assert [id(message) for message in result.kept] == [id(message) for message in talk]
    assert not result.excluded


@given(any_conversation)
def test_7_manual_returns_what_remains_after_the_marked_groups(talk):
    result = shifted(talk, sum(map(count, talk)), "manual")
    assert result is not None
    assert {item.reason for item in result.excluded} <= {Reason.MANUAL}


@given(any_conversation, budgets, budgets)
def test_8_a_larger_budget_never_keeps_fewer_tokens(talk, one, other):
    small, large = shifted(talk, min(one, other)), shifted(talk, max(one, other))
    if small is not None:
        assert large is not None
        assert large.tokens >= small.tokens


@given(any_conversation, budgets, strategies, headrooms)
def test_9_each_block_is_tokenised_at_most_once(talk, budget, strategy, room):
    seen: Counter[int] = Counter()

    def counting(message):
        seen[id(message)] += 1
        return count(message)

    distinct = [dict(message) for message in talk]
    try:
        shift_context(distinct, counting, budget, strategy=strategy, headroom=room)
    except TokenBudgetExceeded:
        pass
    assert all(seen[id(message)] <= 1 for message in distinct)


def shift_steps(talk: list[Msg], budget: int) -> int:
    return steps(lambda: shift_context(talk, len, budget))


def long_talk(length: int) -> list[Msg]:
    """Every kind of history at once: turns, rounds, parallel calls, orphans, reused ids, memories, examples."""
    from core.talk import A, C, T

    unit = [U(3), C("a", "b"), T("b", 2), T("a", 2), A(1), T("orphan"), C("call_0"), T("call_0")]
    unit += [{**A(1), "meta": {"source": "memory", "priority": 2}}, {**U(1), "meta": {"source": "example"}}]
    return [S(1), *(unit * (length // len(unit))), U(1)]


def test_10_work_grows_linearly_with_the_number_of_blocks():
    small, large = long_talk(200), long_talk(2000)
    ratio = shift_steps(large, len(large)) / shift_steps(small, len(small))
    assert ratio < len(large) / len(small) * 1.2


def test_10_one_assistant_message_with_many_parallel_calls_is_linear_too():
    from core.talk import C, T

    def fan(width: int) -> list[Msg]:
        ids = [f"c{number}" for number in range(width)]
        return [S(1), C(*ids), *(T(one) for one in ids), U(1)]

    assert shift_steps(fan(2000), 4) / shift_steps(fan(200), 4) < 10 * 1.2


class Smuggler:
    """A strategy that proposes what it must not."""

    id = "smuggler"
    acts_when_fitting = True

    def __init__(self, indices: list[int]) -> None:
        self.indices = indices

    def propose(self, situation):
        return Proposal(dict.fromkeys(self.indices, Reason.CONTEXT_SHIFT))


@given(any_conversation, budgets, st.lists(st.integers(-2, 26), max_size=8))
def test_no_proposal_gets_past_the_host(talk, budget, indices):
    result = None
    try:
        result = shift_context(talk, count, budget, strategy=Smuggler(indices))
    except TokenBudgetExceeded:
        return
    groups = group_messages(talk)
    gone = {item.index for item in result.excluded}
    assert result.tokens <= budget
    assert not gone & protect(talk, groups).reasons.keys()
    for members in groups.members.values():
        assert len(gone & set(members)) in (0, len(members))
    assert len(result.kept) + len(result.excluded) == len(talk)
    assert not result.truncated


@given(any_conversation, st.integers(0, 60), st.integers(0, 60), st.integers(0, 20))
def test_fixed_costs_and_max_input_come_out_of_the_same_budget(talk, window, max_input, fixed):
    try:
        result = shift_context(talk, count, Budget(window, 0, max_input, fixed))
    except TokenBudgetExceeded as error:
        assert error.breakdown["tools"] == fixed
        return
    assert result.tokens <= min(window, max_input)
    assert result.tokens == sum(map(count, result.kept)) + fixed
