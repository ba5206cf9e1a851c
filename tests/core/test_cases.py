"""Faults seen in other systems, as inputs to the library, each with its whole kind."""

from __future__ import annotations

import pytest

from contextshift import Budget, Reason, TokenBudgetExceeded, WordCounter, group_messages, shift_context
from core.talk import A, C, Msg, S, T, U, words

count = WordCounter()


def kept(talk: list[Msg], budget: int, **options) -> list[int]:
    result = shift_context(talk, count, budget, **options)
    ids = [id(message) for message in result.kept]
    return [index for index, message in enumerate(talk) if id(message) in ids]


PARALLEL = [S(1), U(5), C("a", "b"), T("a", 50), T("b", 5), U(3)]


def test_b01_parallel_results_leave_with_their_call_under_one_group_and_reason():
    result = shift_context(PARALLEL, count, 25)
    assert [message["role"] for message in result.kept] == ["system", "user"]
    tool = [item for item in result.excluded if item.index in (2, 3, 4)]
    assert len(tool) == 3
    assert {(item.group, item.reason) for item in tool} == {(2, Reason.CONTEXT_SHIFT)}


def test_b02_what_fits_passes_unchanged_and_in_order():
    assert kept(PARALLEL, 1000) == list(range(6))


def test_b03_a_result_leaves_with_its_call_and_never_leads():
    talk = [S(2), U(40), C("a", arguments=20), T("a", 10), A(3), U(2)]
    assert kept(talk, 35) == [0, 4, 5]
    result = shift_context(talk, count, 35, rules=["user_first"])
    assert [message["role"] for message in result.kept] == ["system", "user"]
    assert result.excluded[-1].reason is Reason.TURN_ALIGNMENT


def test_b06_reused_ids_make_separate_groups_and_only_the_oldest_round_leaves():
    talk = [S(1)]
    for _ in range(3):
        talk += [U(2), C("call_0"), T("call_0", 10)]
    talk += [U(2)]
    assert group_messages(talk).members == {2: [2, 3], 5: [5, 6], 8: [8, 9]}
    assert kept(talk, 30) == [0, 4, 5, 6, 7, 8, 9, 10]


@pytest.mark.parametrize("budget", range(12))
def test_b08_the_same_id_twice_in_one_message_is_one_group(budget):
    talk = [U(3), C("x", "x"), T("x", 1), T("x", 2), U(1)]
    assert group_messages(talk).members == {1: [1, 2, 3]}
    if budget >= 1:
        left = set(kept(talk, budget))
        assert left & {1, 2, 3} in (set(), {1, 2, 3})


@pytest.mark.parametrize("budget", [1000, 2])
def test_b10_an_unanswered_call_is_a_removable_group_of_one_and_is_reported(budget):
    talk = [S(1), U(3), C("a"), U(1)]
    result = shift_context(talk, count, budget)
    assert {"code": "unanswered-call", "indices": [2]} in result.diagnostics
    assert group_messages(talk).group(2) == (2,)
    assert len(result.kept) == (4 if budget == 1000 else 3)


def test_b12_the_task_and_the_newest_round_stay_while_older_rounds_are_history():
    def agent(size: int) -> list[Msg]:
        return [S(2), U("do the task"), C("a"), T("a", 5), C("b"), T("b", size)]

    assert kept(agent(26), 35) == [0, 1, 4, 5]
    with pytest.raises(TokenBudgetExceeded):
        shift_context(agent(60), count, 35)


def test_b12_a_tool_result_dressed_as_a_user_message_is_not_the_users_question():
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]}
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]}
    talk = [U("the question"), A(9), call, result]
    assert kept(talk, sum(map(count, talk)) - 1) == [0, 2, 3]


def test_b13_nulls_count_nothing_and_lose_nobody():
    talk = [C("a"), T("a"), {"role": "assistant", "content": "hi", "tool_calls": None}, U(1)]
    assert kept(talk, 1000) == [0, 1, 2, 3]
    assert group_messages(talk).members == {0: [0, 1]}


def test_b18_a_system_prompt_larger_than_the_budget_is_an_error_and_nothing_less():
    with pytest.raises(TokenBudgetExceeded) as caught:
        shift_context([S(100), U(10)], count, Budget(window=60, reserve=10))
    assert caught.value.breakdown == {
        "system": 100,
        "tools": 0,
        "history": 0,
        "current_turn": 10,
        "reserve": 10,
        "over_by": 60,
    }


@pytest.mark.parametrize("role", ["developer", "system"])
def test_b20_a_developer_message_is_protected_like_a_system_message(role):
    talk = [{"role": role, "content": words(5)}, U(40), A(40), U(3)]
    assert kept(talk, 25) == [0, 3]
    assert shift_context(talk, count, 25).kept[0] is talk[0]


def test_b21_a_system_message_in_mid_conversation_stays_where_it_stands():
    talk = [S("A"), U(30), A(30), S("tone: formal"), U(3), A(3), U(3)]
    assert kept(talk, 25) == [0, 3, 4, 5, 6]


def test_b23_the_first_turn_is_the_users_where_the_target_insists():
    talk = [S(1), U(50), A(5), U(5), A(5), U(5)]
    assert kept(talk, 35) == [0, 2, 3, 4, 5]
    assert kept(talk, 35, rules=["user_first"]) == [0, 3, 4, 5]


def test_b24_a_message_of_parts_leaves_whole_and_a_list_stays_a_list():
    picture = {"type": "image_url", "image_url": {"url": "https://e.example/i.png"}}
    system = {"role": "system", "content": [{"type": "text", "text": words(10)}]}
    talk = [system, {"role": "user", "content": [{"type": "text", "text": words(100)}, picture]}, A(5), U(5)]
    result = shift_context(talk, count, 55)
    assert result.kept == [system, talk[2], talk[3]]
    assert isinstance(result.kept[0]["content"], list)


def test_b61_with_headroom_the_cut_stays_where_it_is_for_several_turns():
    def first_kept(turns: int, headroom: float) -> int:
        talk = [S(1), *(U(10) if turn % 2 == 0 else A(10) for turn in range(turns)), U(1)]
        return kept(talk, 100, headroom=headroom)[1]

    brim = [first_kept(turns, 0.0) for turns in range(12, 20)]
    stable = [first_kept(turns, 0.4) for turns in range(12, 20)]
    assert len(set(brim)) == len(brim)
    assert len(set(stable)) <= 3


def test_examples_leave_before_memories_before_lore_before_history():
    def block(source: str, priority: int = 0) -> Msg:
        return {"role": "system", "content": "w", "meta": {"source": source, "priority": priority}}

    talk = [S(1), block("lore", 2), block("lore", 1), block("memory", 5), block("example"), U(1), A(1), U(1)]
    order = [item.index for item in shift_context(talk, count, 2).excluded]
    assert order == [4, 3, 2, 1, 5, 6]


def test_an_orphan_leaves_first_when_anything_must_and_passes_otherwise():
    talk = [S(1), U(2), T("nobody", 1), A(2), U(1)]
    assert shift_context(talk, count, 7).diagnostics == [{"code": "orphan-tool-result", "indices": [2]}]
    result = shift_context(talk, count, 6)
    assert [(item.index, item.reason) for item in result.excluded] == [(2, Reason.ORPHAN_TOOL_RESULT)]


@pytest.mark.parametrize("field", ["tool_call_id", "toolCallId", "callId", "tool_use_id", "call_id"])
def test_every_spelling_of_an_id_links_result_and_call(field):
    talk = [C("a"), {"role": "tool", field: "a", "content": "x"}]
    own = [{"role": "assistant", "content": None, field: "a"}, {"role": "tool", field: "a", "content": "x"}]
    assert group_messages(talk).of == group_messages(own).of == [0, 0]


def test_a_result_without_id_takes_the_oldest_open_call_of_the_nearest_assistant():
    assert group_messages([C("a"), C("b", "c"), T(None), T(None), T(None)]).of == [0, 1, 1, 1, 4]


def test_legacy_functions_pair_by_name_then_by_position():
    def call(name: str) -> Msg:
        return {"role": "assistant", "content": None, "function_call": {"name": name, "arguments": "{}"}}

    def result(name: str) -> Msg:
        return {"role": "function", "name": name, "content": "x"}

    assert group_messages([call("f"), call("g"), result("f"), result("g")]).of == [0, 1, 0, 1]
    assert group_messages([call("f"), result("other")]).of == [0, 0]


def test_one_message_that_answers_two_calls_joins_their_groups():
    both = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": one} for one in ("a", "b")]}
    assert group_messages([C("a"), U(1), C("b"), both]).of == [0, 1, 0, 0]


def test_what_stands_between_a_call_and_its_result_is_judged_on_its_own():
    assert group_messages([C("a"), U(1), T("a")]).of == [0, 1, 0]
    assert kept([S(1), C("a"), U(9), T("a", 9), A(1), U(1)], 12) == [0, 2, 4, 5]
