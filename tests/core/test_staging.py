"""Prompts of chats: what a model would be sent, and what the audit says of it."""

from __future__ import annotations

from typing import Any

import pytest

from contextshift.fit import Action
from contextshift.lore.model import Card
from contextshift.words import WordCounter
from core.staged import ANN, Table, audit, cast, entries, model, said, sent

TALK = said(
    ("system", "S"), ("user", "a " * 60), ("assistant", "b " * 20), ("system", "TONE formal"), ("user", "the question")
)
CHAT = {"participants": [ANN], "author_note": {"text": "note", "depth": 1}, "settings": {"context_swapping": True}}
CAST = cast(Card("Ann", description="Flies.", system_prompt="Be brief."))


@pytest.mark.parametrize("rules", [(), ("system_first_only",), ("one_system_message", "system_first_only")], ids=str)
@pytest.mark.parametrize("asked_rules", [(), ("one_system_message", "system_first_only")], ids=str)
def test_a_model_swapped_to_gets_what_it_would_get_if_it_were_asked(rules: Any, asked_rules: Any):
    small, large = model("small", 40, message_rules=asked_rules), model("large", 400, message_rules=rules)
    swapped = Table(small, large).planned(TALK, CAST, CHAT)
    direct = Table(large).planned(TALK, CAST, CHAT)
    assert (swapped.decision.action, direct.decision.action) == (Action.SWAP, Action.NONE)
    assert sent(swapped) == sent(direct) == audit(swapped)["messages"]
    assert audit(swapped)["entries"] == audit(direct)["entries"]
    assert audit(swapped)["budget"]["prompt_tokens"] == sum(map(WordCounter(), sent(swapped)))


def test_what_a_request_says_of_messages_by_index_holds_after_a_swap_too():
    rules = ("one_system_message", "system_first_only")
    small, large = model("small", 40), model("large", 400, message_rules=rules)
    there = list(entries(Table(small).planned(TALK, CAST, CHAT, model="small")))
    gone = {"exclude": (there.index("main.3"),), "context_strategy": "manual"}
    planned = Table(small, large).planned(TALK, CAST, CHAT, overrides=gone)
    assert planned.decision.action is Action.SWAP
    shown = entries(planned)
    assert [name for name, one in shown.items() if not one["included"]] == ["main.3"]
    assert shown["main.3"]["reason"] == "manual"
    assert [one["role"] for one in sent(planned)] == ["system", "user", "user", "user", "user"]
    again = Table(small, large).planner.decide(planned.question)
    assert sent(again) == sent(planned)


def test_an_instruction_that_a_target_takes_as_the_user_s_is_protected_and_nobody_s_turn():
    strict = Table(model(window=40, message_rules=("system_first_only",)))
    chat = {"settings": {"reserve_tokens": 5}}
    shown = entries(strict.planned(TALK, None, chat, type="quiet", prompt="Sum it up."))
    assert {name: one["reason"] for name, one in shown.items()} == {
        "main.1": "protected-system",
        "main.2": "context-shift",
        "main.3": "fits",
        "main.4": "protected-system",
        "main.5": "protected-current-turn",
        "instruction": "protected-system",
    }
    assert [one["role"] for one in shown.values()] == ["system", "user", "assistant", "user", "user", "user"]
