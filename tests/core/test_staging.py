"""Prompts of chats: what a model would be sent, and what the audit says of it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from contextshift.chats import MessageRecord
from contextshift.errors import InvalidInput
from contextshift.fit import Action
from contextshift.lore.model import Book, Card, Entry, Place
from contextshift.ports import SettingsRecord
from contextshift.reasons import ALL_REASONS
from contextshift.scene import BLOCKS
from contextshift.staging import Staged
from contextshift.words import WordCounter
from core.staged import ANN, BEN, ME, Table, audit, cast, entries, model, said, sent

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


# -- every entry of every book, once -------------------------------------------------------------------------

HI = said(("user", "hi there"))
PLACED = {
    "personality": Entry("1", "@@position personality\nSHY", constant=True),
    "scenario": Entry("1", "@@position scenario\nRAIN", constant=True),
    "outlet": Entry("1", "GOLD", constant=True, place=Place.OUTLET, outlet="box"),
    "before": Entry("1", "ELDER", constant=True, place=Place.BEFORE_CHAR),
    "key": Entry("1", "NEW", keys=("hi",)),
    "asleep": Entry("1", "NEVER", keys=("nobody",)),
}
ANN_CARD = Card("Ann", description="Flies. {{outlet::box}}")
EVERYTHING = {"participants": [ANN, ME], "author_note": {"text": "{{outlet::box}}", "depth": 0}}


@pytest.mark.parametrize("rules", [(), ("one_system_message",), ("one_system_message", "system_first_only")], ids=str)
@pytest.mark.parametrize("people", [[], [ANN_CARD]], ids=["nobody", "ann"])
@pytest.mark.parametrize("off", [[], [*(name for name in BLOCKS if name != "history")]], ids=["all", "history"])
def test_every_entry_memory_and_character_is_in_the_audit_once(rules: Any, people: list[Card], off: list[str]):
    books = [Book(name, (entry,)) for name, entry in PLACED.items()]
    everyone = cast(*people, books=books, persona="Bo", memories=[("m", {"text": "fell", "pinned": True})])
    chat = {**EVERYTHING, "settings": {"blocks": [{"name": name, "enabled": False} for name in off]}}
    table = Table(model(message_rules=rules))
    planned = table.planned(HI, everyone, chat, prefill="Well")
    shown = entries(planned)
    wanted = {f"lore:{name}/1" for name in PLACED} | {"memory:m", "main.1", "prefill"}
    wanted |= {f"character:{one.name.lower()}" for one in people}
    assert wanted <= shown.keys()
    held = {name: one for name, one in shown.items() if "within" in one}
    assert all(shown[one["within"]]["included"] and one["included"] and not one["tokens"] for one in held.values())
    rendered = audit(planned)["messages"]
    assert rendered == sent(planned)
    assert sum(one["tokens"] for one in shown.values() if one["included"]) == planned.decision.used.prompt
    text = "\n".join(str(one["content"]) for one in sent(planned))
    for name, entry in PLACED.items():
        assert shown[f"lore:{name}/1"]["ref"] == {"type": "lore", "id": f"{name}/1"}
        assert shown[f"lore:{name}/1"]["included"] == (entry.content.split("\n")[-1] in text)


def test_what_a_block_switched_off_would_hold_is_out_for_that():
    books = [Book(name, (entry,)) for name, entry in PLACED.items()]
    chat = {"participants": [ANN], "settings": {"blocks": [{"name": "character", "enabled": False}]}}
    shown = entries(Table().planned(HI, cast(ANN_CARD, books=books), chat))
    reasons = {name: one["reason"] for name, one in shown.items() if not one["included"]}
    assert reasons == {
        "lore:personality/1": "block-disabled",
        "lore:scenario/1": "block-disabled",
        "lore:outlet/1": "block-disabled",
        "lore:asleep/1": "no-key-match",
        "character:ann": "block-disabled",
    }
    assert shown["character:ann"]["tokens"] == 4
    assert set(reasons.values()) <= set(ALL_REASONS)


def test_lore_of_an_outlet_that_no_text_names_is_out_for_that():
    shown = entries(Table().planned(HI, cast(books=[Book("b", (PLACED["outlet"],))])))
    assert shown["lore:b/1"]["reason"] == "outlet-unused"


@pytest.mark.parametrize(
    "wish", [{"type": "quiet", "prompt": "{{outlet::box}}"}, {"prefill": "{{outlet::box}}"}], ids=str
)
def test_lore_of_an_outlet_stands_in_whatever_names_it(wish: dict[str, str]):
    planned = Table().planned(HI, cast(books=[Book("b", (PLACED["outlet"],))]), **wish)
    assert entries(planned)["lore:b/1"]["within"] == ("instruction" if "type" in wish else "prefill")
    assert sent(planned)[-1]["content"] == "GOLD"


def test_what_a_block_holds_leaves_with_it():
    long = ("outlet", {"text": "long " * 40 + "{{outlet::box}}"})
    lore = Entry("1", "GOLD", keys=("hi",), place=Place.OUTLET, outlet="box")
    everyone = cast(books=[Book("b", (lore,))], memories=[long])
    shown = entries(Table(model(window=40)).planned(HI, everyone, {"settings": {"reserve_tokens": 5}}))
    assert (shown["lore:b/1"]["within"], shown["lore:b/1"]["included"]) == ("memory:outlet", False)
    assert shown["lore:b/1"]["reason"] == shown["memory:outlet"]["reason"] == "context-shift"
    note = {"settings": {"reserve_tokens": 5}, "author_note": {"text": "{{outlet::box}}"}}
    shown = entries(Table(model(window=40)).planned(HI, everyone, note))
    assert (shown["lore:b/1"]["within"], shown["lore:b/1"]["included"]) == ("author_note", True)


def test_what_holds_a_constant_entry_stays_as_that_would():
    everyone = cast(books=[Book("b", (PLACED["outlet"],))], memories=[("m", {"text": "{{outlet::box}}"})])
    shown = entries(Table().planned(HI, everyone))
    assert shown["memory:m"]["reason"] == shown["lore:b/1"]["reason"] == "protected-required"


def test_the_audit_says_what_woke_an_entry():
    book = Book(
        "b",
        (
            Entry("key", "A tower.", keys=("hi",)),
            Entry("constant", "Ever.", constant=True),
            Entry("recursion", "A bell.", keys=("tower",)),
            Entry("decorator", "@@activate\nDone."),
            Entry("hidden", "Oak.{{hidden_key:root}}", keys=("hi",)),
            Entry("root", "Deep.", keys=("root",)),
            Entry("within", "@@position personality\nShy.", keys=("hi",)),
        ),
        recursive_scanning=True,
    )
    shown = entries(Table().planned(HI, cast(Card("Ann", description="x"), books=[book]), {"participants": [ANN]}))
    told = {name[7:]: (one.get("cause"), one.get("detail")) for name, one in shown.items() if one["source"] == "lore"}
    assert told == {
        "key": ("key", "hi"),
        "constant": ("constant", None),
        "recursion": ("recursion", "b/key"),
        "decorator": ("decorator", None),
        "hidden": ("key", "hi"),
        "root": ("recursion", "b/hidden"),
        "within": ("key", "hi"),
    }


# -- several characters --------------------------------------------------------------------------------------


def group() -> Any:
    def card(name: str, **fields: str) -> Card:
        lore = Entry("1", "{{char}} of {{description}}", keys=("{{char}}",))
        shy = Entry("2", f"@@position personality\nshy {name}", constant=True)
        texts = {"description": f"{{{{char}}}} is {name}.", "mes_example": "{{char}}: yes", "depth_prompt": "{{char}}!"}
        return Card(name, **texts, **fields, book=Book(f"own {name}", (lore, shy)))

    ann = card("Ann", nickname="Annie", system_prompt="Be {{char}}.", post_history_instructions="Stay {{char}}.")
    ben = card("Ben", post_history_instructions="Stay {{char}}, {{ original }}")
    return cast(ann, ben, books=[Book("shared", (Entry("1", "@@position scenario\nfor {{char}}", constant=True),))])


@pytest.mark.parametrize(("speaker", "name", "prompt"), [("ann", "Annie", "Be Annie."), ("ben", "Ben", "House rules.")])
def test_each_card_s_texts_are_its_own_and_the_speaker_s_prompt_is_used(speaker: str, name: str, prompt: str):
    talk = said(("user", "Annie and Ben, hi"))
    table = Table()
    table.access = replace(table.access, settings=SettingsRecord({"system_prompt": "House rules."}))
    planned = table.planned(talk, group(), {"participants": [ANN, BEN, ME]}, speaker_id=speaker)
    texts = {one["id"]: one["content"] for one in audit(planned)["entries"]}
    assert texts["system"] == prompt
    shared = {"ann": "", "ben": ""} | {speaker: f"\n\nfor {name}"}
    assert texts["character:ann"] == f"Annie is Ann.\n\nshy Ann{shared['ann']}"
    assert texts["character:ben"] == f"Ben is Ben.\n\nshy Ben{shared['ben']}"
    assert (texts["example:ann:0"], texts["example:ben:0"]) == ("Annie: yes", "Ben: yes")
    assert (texts["character_note:ann"], texts["character_note:ben"]) == ("Annie!", "Ben!")
    assert (texts["lore:own Ann/1"], texts["lore:own Ben/1"]) == ("Annie of Annie is Ann.", "Ben of Ben is Ben.")
    posts = {one: text for one, text in texts.items() if one.startswith("post_history")}
    assert posts == {f"post_history:{speaker}": f"Stay {name}." if speaker == "ann" else "Stay Ben, "}


def test_the_user_is_named_by_the_persona_else_by_the_participant_and_a_prefill_has_macros_too():
    me = {**ME, "name": "Zoe"}
    named = Table().staged(HI, None, {"participants": [me]}, prefill="Well {{user}},")
    assert named.prefill == named.question.messages[-1]["content"] == "Well Zoe,"
    played = Table().staged(HI, cast(persona="Bob"), {"participants": [me]}, prefill="Well {{user}},")
    assert played.prefill == "Well Bob,"
    assert Table().staged(HI, None, {}, prefill="Well {{user}},").prefill == "Well User,"


# -- instructions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wish", [{"type": "quiet", "prompt": "Tell of style."}, {"type": "impersonate"}], ids=str)
def test_an_instruction_is_no_message(wish: dict[str, str]):
    book = Book("b", (Entry("1", "S", keys=("style",)), Entry("2", "H", keys=("hi",))), scan_depth=1)
    card = Card("Ann", post_history_instructions="After.")
    chat = {"participants": [ANN], "author_note": {"text": "note", "depth": 0}}
    planned = Table().planned(HI, cast(card, books=[book]), chat, prefill="Well", **wish)
    shown = entries(planned)
    assert (shown["lore:b/1"]["reason"], shown["lore:b/2"]["included"]) == ("no-key-match", True)
    order = [one["content"] for one in sent(planned)]
    assert order[:4] == ["H", "hi there", "note", "After."]
    assert order[5:] == ["Well"]
    assert [name for name in shown if name in ("instruction", "prefill")] == ["instruction", "prefill"]
    assert shown["main.1"]["reason"] == "protected-current-turn"


# -- turns ----------------------------------------------------------------------------------------------------


def conversation(table: Table, everyone: Any, *turns: str) -> tuple[list[MessageRecord], list[set[str]]]:
    """Have a talk; return its messages and, of each turn, the lore that was in."""
    messages: list[MessageRecord] = []
    woken: list[set[str]] = []
    for text in turns:
        staged = table.staged(messages, everyone, user_message=text)
        woken.append(active(table, staged))
        n = len(messages)
        messages.append(MessageRecord("main", n + 1, {"role": "user", "content": text}))
        reply = {"role": "assistant", "content": "ok", "lore_state": json.loads(json.dumps(staged.lore_state))}
        messages.append(MessageRecord("main", n + 2, reply))
    return messages, woken


def active(table: Table, staged: Staged) -> set[str]:
    shown = entries(table.planner.decide(staged.question))
    return {name.rpartition("/")[2] for name, one in shown.items() if one["source"] == "lore" and one["included"]}


def lore(*book: Entry, **fields: Any) -> Any:
    return cast(books=[Book("b", book, **fields)])


def test_a_message_on_its_way_counts_like_one_that_was_posted_before():
    everyone = lore(Entry("delay", "D", keys=("dragon",), delay=1), Entry("last", "L {{lastMessage}}", constant=True))
    for staged in (
        Table().staged([], everyone, user_message="a dragon"),
        Table().staged(said(("user", "a dragon")), everyone),
    ):
        assert active(Table(), staged) == {"delay", "last"}
        assert "L a dragon" in [one["content"] for one in staged.question.messages]


def test_a_generation_and_its_regeneration_are_the_same_turn():
    entry = Entry("1", "D", keys=("dragon",), cooldown=2)
    everyone = lore(entry, scan_depth=1)
    table = Table()
    messages, woken = conversation(table, everyone, "a dragon", "a dragon")
    assert woken == [{"1"}, set()]
    assert active(table, table.staged(messages[:2], everyone, type="regenerate")) == {"1"}
    assert active(table, table.staged(messages, everyone, type="swipe")) == set()


@pytest.mark.parametrize(("replies", "is_in"), [(0, False), (1, False), (2, True), (3, False), (4, True)])
def test_v3_counts_replies(replies: int, is_in: bool):
    entry = Entry("1", "@@activate_only_after 2\n@@activate_only_every 2\nD", keys=("hi",))
    talk = said(*[("user", "x"), ("user", "hi"), ("assistant", "ok")] * replies)
    staged = Table().staged(talk, lore(entry), user_message="hi")
    assert (active(Table(), staged) == {"1"}) is is_in


@pytest.mark.parametrize("greeting", [0, 2, -1])
def test_the_greeting_in_use_is_the_one_that_is_shown(greeting: int):
    """The first message says which greeting of the card it shows; another answer in its place is none."""
    book = [Entry(str(n), f"@@is_greeting {n}\nD", constant=True) for n in range(4)]
    first = {"role": "assistant", "content": "x", "greeting": greeting}
    staged = Table().staged(said(first), lore(*book), user_message="hi")
    assert active(Table(), staged) == ({str(greeting)} if greeting in (0, 2) else set())


REMEMBERING = (
    Entry("sticky", "S", keys=("dragon",), sticky=9),
    Entry("cooldown", "C", keys=("dragon",), cooldown=9),
    Entry("kept", "@@keep_activate_after_match\nK", keys=("dragon",)),
)


@pytest.mark.parametrize("gone", range(4))
def test_what_lore_remembers_outlasts_the_deletion_of_older_messages(gone: int):
    everyone = lore(*REMEMBERING, scan_depth=1)
    messages, woken = conversation(Table(), everyone, "x", "a dragon", "y", "z")
    assert woken == [set(), {"sticky", "cooldown", "kept"}, {"sticky", "kept"}, {"sticky", "kept"}]
    left = messages[gone:]
    assert active(Table(), Table().staged(left, everyone, user_message="a dragon")) == {"sticky", "kept"}


def test_a_chat_that_was_taken_back_forgets():
    everyone = lore(*REMEMBERING, scan_depth=1)
    messages, _ = conversation(Table(), everyone, "x", "a dragon")
    assert active(Table(), Table().staged(messages[:2], everyone, user_message="y")) == set()


def test_what_is_continued_belongs_to_the_turn_that_made_it():
    everyone = lore(Entry("1", "S", keys=("dragon",), sticky=1), scan_depth=1)
    messages, woken = conversation(Table(), everyone, "a dragon", "y", "z")
    assert woken == [{"1"}, {"1"}, set()]
    assert active(Table(), Table().staged(messages[:4], everyone, type="continue")) == {"1"}
    assert active(Table(), Table().staged(messages[:2], everyone, type="continue")) == {"1"}
    assert active(Table(), Table().staged(messages[:4], everyone)) == set()


# -- parameters -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["MODEL", "Messages", "Stream", "MAX_TOKENS", "Temperature"])
@pytest.mark.parametrize("where", ["chat", "wanted"])
def test_a_parameter_that_is_a_known_one_but_for_case_is_refused(name: str, where: str):
    params = {"params": {name: 1}}
    with pytest.raises(InvalidInput) as refused:
        Table().staged(HI, None, params if where == "chat" else {}, **(params if where == "wanted" else {}))
    assert refused.value.path == f"params.{name}"
    assert refused.value.reason in ("ambiguous_key", "reserved_parameter")


@pytest.mark.parametrize(
    "params",
    [{"max_tokens": 950}, {"max_completion_tokens": 950}, {"max_tokens": 5, "max_completion_tokens": 950}],
    ids=str,
)
def test_the_lore_budget_is_a_share_of_what_the_reply_leaves(params: dict[str, int]):
    everyone = lore(Entry("1", "w " * 20, keys=("hi",)))
    table = Table(model(window=1000))
    assert entries(table.planned(HI, everyone))["lore:b/1"]["included"]
    shown = entries(table.planned(HI, everyone, params=params))
    assert shown["lore:b/1"]["reason"] == "lore-budget"
