"""Plug-ins: found by name, run apart, and never able to get anything past the host."""

from __future__ import annotations

import copy
import threading
from importlib.metadata import EntryPoint

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextshift import (
    ContextStrategyRegistry,
    InvalidInput,
    Proposal,
    Reason,
    TokenBudgetExceeded,
    WordCounter,
    group_messages,
    shift_context,
)
from contextshift.budget import Budget
from contextshift.fakes import HostileInterceptor, HostileStrategy, hostile_interceptors, hostile_strategies
from contextshift.guard import Guard
from contextshift.interceptors import Block, intercept
from contextshift.protection import protect
from contextshift.shift import ShiftResult, count_messages, shift_situation, situate
from contextshift.strategies import Truncate
from core.talk import A, C, Msg, S, T, U, any_conversation, budgets

count = WordCounter()
PATIENCE = 0.3
"""Seconds that the sleepers sleep: three times what the guards of these tests wait."""


def registry() -> ContextStrategyRegistry:
    return ContextStrategyRegistry(guard=Guard(seconds=PATIENCE / 3))


def check_laws(talk: list[Msg], before: list[Msg], result: ShiftResult, budget: int) -> None:
    groups = group_messages(talk)
    protected = protect(talk, groups).reasons
    gone = {item.index for item in result.excluded}
    assert talk == before
    assert sum(map(count, result.kept)) == result.tokens <= budget
    assert not gone & protected.keys()
    origins = [origin for origin in result.origins if origin is not None]
    assert origins == sorted(set(origins))
    assert sorted([*origins, *gone]) == list(range(len(talk)))
    for members in groups.members.values():
        assert len(gone & set(members)) in (0, len(members))
    for message, origin in zip(result.kept, result.origins, strict=True):
        if origin in protected:
            assert message is talk[origin]


@pytest.mark.parametrize(
    "hostile", [one for one in hostile_strategies(PATIENCE) if one.id != "sleeps"], ids=lambda h: h.id
)
def test_no_hostile_strategy_gets_past_the_host(hostile: HostileStrategy):
    guarded = registry()

    @given(any_conversation, budgets)
    def check(talk: list[Msg], budget: int) -> None:
        before = copy.deepcopy(talk)
        try:
            result = shift_context(talk, count, budget, strategy=hostile, registry=guarded)
        except TokenBudgetExceeded:
            return
        check_laws(talk, before, result, budget)

    check()


@pytest.mark.parametrize(
    "hostile", [one for one in hostile_interceptors(PATIENCE) if one.id != "sleeps"], ids=lambda h: h.id
)
def test_no_hostile_interceptor_gets_past_the_host(hostile: HostileInterceptor):
    guard = Guard(seconds=PATIENCE)

    @given(any_conversation, budgets)
    def check(talk: list[Msg], budget: int) -> None:
        before = copy.deepcopy(talk)
        result = intercepted(talk, budget, [hostile], guard)
        if result is None:
            return
        check_laws(talk, before, result, budget)
        users = [place for place, message in enumerate(result.kept) if message.get("role") == "user"]
        situation_current = protect(talk, group_messages(talk)).current
        if users and situation_current is not None and talk[situation_current].get("role") == "user":
            assert result.origins[users[-1]] is not None
        for message, origin in zip(result.kept, result.origins, strict=True):
            if origin is None:
                assert message["meta"]["source"] == "interceptor"
                assert not {"pinned", "required"} & message["meta"].keys()
                assert "pinned" not in message

    check()


def intercepted(
    talk: list[Msg], budget: int, interceptors: list[HostileInterceptor], guard: Guard
) -> ShiftResult | None:
    situation = situate(talk, count_messages(talk, count), Budget(budget), count)
    try:
        result = shift_situation(situation, Truncate(), guard)
    except TokenBudgetExceeded:
        return None
    return intercept(situation, result, interceptors, guard)


TALK = [S(1), U(5), C("a"), T("a", 3), A(2), U(1)]


def test_a_strategy_that_overruns_is_dropped_and_never_called_again():
    calls = []
    done = threading.Event()

    def sleep(_situation):
        calls.append(1)
        done.wait(10)
        return Proposal({5: Reason.MANUAL})

    guarded = registry()
    slow = HostileStrategy("slow", sleep, when_fitting=False)
    faults = []
    for _ in range(3):
        result = shift_context(TALK, count, 8, strategy=slow, registry=guarded)
        assert result.kept == shift_context(TALK, count, 8).kept
        faults += [item["fault"] for item in result.diagnostics if item["code"] == "strategy-failed"]
    done.set()
    assert (faults, len(calls)) == (["timeout", "overran-before", "overran-before"], 1)


def test_a_refused_proposal_names_the_promise_it_breaks():
    promises = {
        "drops-protected": "protection",
        "edits-protected": "protection",
        "drops-half-a-group": "groups",
        "drops-what-is-not-there": "identity",
        "edits-what-leaves": "identity",
    }
    for hostile in hostile_strategies(0):
        if hostile.id in promises:
            result = shift_context(TALK, count, 8, strategy=hostile, registry=registry())
            refused = [item["promise"] for item in result.diagnostics if item["code"] == "proposal-refused"]
            assert refused == [promises[hostile.id]]


def test_an_error_of_a_plug_in_is_named_by_its_type_alone():
    result = shift_context(TALK, count, 8, strategy=HostileStrategy("bad", lambda _: 1 / 0), registry=registry())
    failed = {"code": "strategy-failed", "strategy": "bad", "fault": "error", "error": "ZeroDivisionError"}
    assert failed in result.diagnostics


def test_a_good_plug_in_is_followed():
    newest_first = HostileStrategy("newest", lambda s: Proposal({4: Reason.CONTEXT_SHIFT}, {1: "w"}), when_fitting=True)
    result = shift_context(TALK, count, 100, strategy=newest_first, registry=registry())
    assert [item.index for item in result.excluded] == [4]
    assert [(item.index, item.tokens_after) for item in result.truncated] == [(1, 1)]


def test_registering_returns_the_undo():
    one, other = (HostileStrategy("mine", lambda s: Proposal()) for _ in range(2))
    known = registry()
    undo_one = known.register(one)
    undo_other = known.register(other)
    assert known.get("mine") is other
    undo_one()
    assert known.get("mine") is other
    undo_other()
    assert known.get("mine") is one
    undo_other()
    undo_one()
    assert "mine" not in known.ids()


def test_replacing_a_built_in_is_undone_too():
    known = registry()
    before = known.get("truncate")
    undo = known.register(HostileStrategy("truncate", lambda s: Proposal()))
    undo()
    assert known.get("truncate") is before


def test_a_strategy_needs_a_name():
    with pytest.raises(InvalidInput):
        registry().register(HostileStrategy("", lambda s: Proposal()))


class Shipped(Truncate):
    """A strategy as an installed package would offer it."""

    id = "shipped"


def points(*names: str) -> list[EntryPoint]:
    return [EntryPoint(name, f"{__name__}:Shipped", "contextshift.strategies") for name in names]


def test_entry_points_are_loaded_only_by_name_and_can_be_taken_back():
    known = registry()
    found = [EntryPoint("shipped", "contextshift.strategies.truncate:Truncate", "contextshift.strategies")]
    assert "shipped" not in known.ids()
    before = known.get("truncate")
    undo = known.load(["shipped"], found)
    assert known.get("truncate") is not before
    undo()
    assert known.get("truncate") is before


@pytest.mark.parametrize(
    ("names", "offered"),
    [(["absent"], points("shipped")), (["twice"], points("twice", "twice")), (["truncate"], points("truncate"))],
)
def test_an_entry_point_that_is_missing_offered_twice_or_taken_is_refused(names, offered):
    with pytest.raises(InvalidInput):
        registry().load(names, offered)


# -- interceptors --------------------------------------------------------------------------------------


def journal(*interceptors: HostileInterceptor, budget: int = 100) -> list[tuple[str, str]]:
    result = intercepted(TALK, budget, list(interceptors), Guard(seconds=PATIENCE / 3))
    assert result is not None
    return [(item["interceptor"], item["code"]) for item in result.diagnostics]


def test_interceptors_run_by_priority_and_each_sees_what_the_one_before_left():
    seen = []

    def looks(blocks: list[Block]) -> list[Block]:
        seen.append(len(blocks))
        return [block for block in blocks if block.message["content"] != "w w"]

    late = HostileInterceptor("late", looks, priority=200)
    early = HostileInterceptor("early", looks, priority=1)
    assert journal(late, early) == [("early", "interceptor-removed")]
    assert seen == [6, 5]


def test_the_journal_says_what_was_done_and_what_was_undone():
    assert ("drops", "interceptor-restored") in journal(HostileInterceptor("drops", lambda blocks: blocks[:-1]))
    assert ("edits", "interceptor-edit-refused") in journal(
        HostileInterceptor("edits", lambda blocks: [Block({**b.message, "role": "user"}, b.id) for b in blocks])
    )
    assert ("adds", "interceptor-added") in journal(
        HostileInterceptor("adds", lambda blocks: [*blocks, Block({"role": "user", "content": "w"})])
    )
    assert ("turns", "interceptor-reordered") in journal(HostileInterceptor("turns", lambda blocks: blocks[::-1]))


def test_an_addition_is_the_first_to_leave_when_it_does_not_fit():
    adds = HostileInterceptor("adds", lambda blocks: [Block({"role": "user", "content": "w w w"}), *blocks])
    total = sum(map(count, TALK))
    result = intercepted(TALK, total + 2, [adds], Guard())
    assert result is not None
    assert result.kept == TALK
    assert {"code": "final-truncation", "interceptor": "adds", "tokens": 3} in result.diagnostics


def test_an_edit_that_grows_pushes_out_the_oldest_and_never_the_protected():
    def grows(blocks: list[Block]) -> list[Block]:
        blocks[4].message["content"] = "w " * 9
        return blocks

    total = sum(map(count, TALK))
    result = intercepted(TALK, total, [HostileInterceptor("grows", grows)], Guard())
    assert result is not None
    assert [item.index for item in result.excluded] == [1, 2, 3]
    assert result.tokens <= total


def test_a_slow_interceptor_is_dropped_and_not_called_again():
    guard = Guard(seconds=PATIENCE / 3)
    slow = next(one for one in hostile_interceptors(PATIENCE) if one.id == "sleeps")
    faults = []
    for _ in range(2):
        result = intercepted(TALK, 100, [slow], guard)
        assert result is not None
        assert result.kept == TALK
        faults += [item["fault"] for item in result.diagnostics]
    assert faults == ["timeout", "overran-before"]


def test_without_a_change_the_result_is_the_same_object():
    situation = situate(TALK, count_messages(TALK, count), Budget(100), count)
    result = shift_situation(situation, Truncate(), Guard())
    assert intercept(situation, result, [HostileInterceptor("calm", lambda blocks: blocks)], Guard()) is result
    assert intercept(situation, result, [], Guard()) is result


@given(any_conversation, st.integers(0, 60))
def test_all_hostile_interceptors_together_get_nothing_past_the_host(talk, budget):
    hostile = [one for one in hostile_interceptors(0) if one.id != "sleeps"]
    before = copy.deepcopy(talk)
    result = intercepted(talk, budget, hostile, Guard(seconds=PATIENCE))
    if result is not None:
        check_laws(talk, before, result, budget)


def test_an_addition_never_draws_a_protected_result_into_its_group():
    """Groups are decided once: a copy of a call, put before a protected result without id, is not its call."""
    call = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": "w w"}}]}
    result = {"role": "tool", "content": None, "meta": {"source": "system"}}
    talk: list[Msg] = [U(""), result, call]
    duplicates = next(one for one in hostile_interceptors(0) if one.id == "duplicates")
    shifted = intercepted(talk, 2, [duplicates], Guard())
    assert shifted is not None
    check_laws(talk, copy.deepcopy(talk), shifted, 2)
