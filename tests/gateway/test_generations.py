"""Generations: what is sent is what was previewed, the reply is saved with its end, and each ends once."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from bastion.bootstrap import Ports
from contextshift.fakes import FixedClock, MemoryAccounts, MemoryAuditStore, MemoryChats, MemoryLibrary
from contextshift.interceptors import Block
from gateway.test_chats import CARD, Api, cast, texts
from gateway.test_streaming import stream
from gateway.world import World, worlds
from serving import Upstream

USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":2,"total_tokens":22}}\n\n'
DONE = b"data: [DONE]\n\n"


def delta(text: str, **more: Any) -> bytes:
    chunk = {"id": "c", "choices": [{"index": 0, "delta": {"content": text, **more}, "finish_reason": None}]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def replies(upstream: Upstream, *texts_: str) -> None:
    upstream.headers = [("content-type", "text/event-stream")]
    upstream.body = stream(*map(delta, texts_), USAGE, DONE)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    for one in worlds(tmp_path):
        replies(one.upstream, "Yes", ", Bob.")
        yield one


@pytest.fixture
def api(world: World) -> Api:
    return Api(world)


def generate(api: Api, chat: str, status: int = 200, headers: dict[str, str] | None = None, **body: Any) -> Any:
    return api("POST", f"chats/{chat}/generations", {"stream": False, **body}, status, **(headers or {}))


def events(answer: httpx.Response) -> list[tuple[str, Any]]:
    found = []
    for number, block in enumerate(answer.text.strip().split("\n\n"), 1):
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        assert fields["id"] == str(number)
        found.append((fields["event"], json.loads(fields["data"])))
    return found


def ended(api: Api, chat: str, gid: str) -> Any:
    for _ in range(100):
        found = api("GET", f"chats/{chat}/generations/{gid}")
        if found["status"] != "prepared":
            return found
        time.sleep(0.05)
    raise AssertionError(found)


def test_a_generation_is_told_in_events_and_saved(api: Api, world: World):
    chat = cast(api)["id"]
    answer = api("POST", f"chats/{chat}/generations", {"user_message": "Are you there?"})
    told = events(answer)
    names = [name for name, _ in told]
    assert names == ["generation", "delta", "delta", "delta", "message", "done"]
    started, message = told[0][1], told[-2][1]
    assert (started["action"], started["user_message"], started["type"]) == ("none", "main.2", "normal")
    assert started["budget"]["window"] == 1000
    assert (message["content"], message["speaker_id"], message["id"]) == ("Yes, Bob.", "ann", "main.3")
    assert message["generation_id"] == started["id"] == answer.headers["x-bastion-generation-id"]
    assert texts(api, chat) == ["Hello Bob.", "Are you there?", "Yes, Bob."]
    found = api("GET", f"chats/{chat}/generations/{started['id']}")
    assert (found["status"], found["text"], found["message"]["id"]) == ("completed", "Yes, Bob.", "main.3")
    audit = api("GET", f"chats/{chat}/context-audit")
    assert (audit["status"], audit["generation_id"], audit["usage"]["prompt_tokens"]) == (
        "completed",
        started["id"],
        20,
    )


@pytest.mark.parametrize(
    "wish",
    [
        {"user_message": "And the moon?"},
        {"type": "swipe"},
        {"type": "continue"},
        {"type": "impersonate"},
        {"type": "quiet", "prompt": "Sum up for {{user}}."},
        {"user_message": "{{random:a,b}} " + "w " * 900, "context_strategy": "truncate"},
        {"user_message": "x", "prefill": "Well,", "params": {"temperature": 0.3}},
    ],
    ids=lambda wish: wish.get("type", "normal"),
)
def test_what_is_sent_is_what_the_preview_showed(api: Api, world: World, wish: dict[str, Any]):
    book = {"entries": [{"keys": ["moon"], "content": "{{roll:20}} rust", "enabled": True, "insertion_order": 1}]}
    lore = api("POST", "lorebooks", {"book": book}, 201)["id"]
    api("POST", "memories", {"text": "{{user}} fell off a ladder."}, 201)
    note = {"text": "{{random:rain,snow}}", "depth": 1}
    chat = cast(api, lorebooks=[lore], author_note=note, settings={"smart_truncation": True})["id"]
    generate(api, chat, user_message="Tell me of the moon. " + "w " * 60)
    shown = api("POST", "context-preview?include=messages", {"chat_id": chat, **wish})
    if shown["action"] == "refuse":
        generate(api, chat, 400, **wish)
        return
    generate(api, chat, **wish)
    assert world.upstream.last.json["messages"] == shown["messages"]
    assert world.upstream.last.json["stream"] is True


def test_a_preview_writes_nothing(tmp_path: Path):
    clock = FixedClock(time.time())
    audits = MemoryAuditStore(clock)
    chats, library = MemoryChats(audits, clock), MemoryLibrary(clock)
    ports = Ports(accounts=MemoryAccounts(), audits=audits, chats=chats, library=library)
    for world in worlds(tmp_path, ports=ports):
        api = Api(world)
        chat = cast(api)["id"]
        chats.failing |= {"create", "change", "append", "edit", "remove", "fork", "begin_generation"}
        chats.failing |= {"open_generation", "progress", "end_generation", "cancel"}
        audits.failing |= {"begin", "prepare", "commit", "finish", "sweep", "delete"}
        library.failing |= {"put", "remove"}
        shown = api("POST", "context-preview", {"chat_id": chat, "user_message": "hi", "models": ["plain", "small"]})
        assert [one["model"] for one in shown["models"]] == ["plain", "small"]
        inline = {"model": "plain", "character": CARD, "messages": [{"role": "user", "content": "hi"}]}
        assert api("POST", "context-preview", inline)["action"] == "none"
        assert not world.upstream.calls


def test_types_of_generation_change_the_conversation_as_they_say(api: Api, world: World):
    chat = cast(api)["id"]
    generate(api, chat, user_message="Well?")
    replies(world.upstream, "No.")
    swiped = generate(api, chat, type="swipe")["message"]
    assert ([one["content"] for one in swiped["swipes"]], swiped["swipe"]) == (["Yes, Bob.", "No."], 1)
    assert [one["content"] for one in world.upstream.last.json["messages"]][-1] == "Well?"
    replies(world.upstream, " Never.")
    continued = generate(api, chat, type="continue")["message"]
    assert (continued["content"], continued["swipes"][1]["content"]) == ("No. Never.", "No. Never.")
    assert world.upstream.last.json["messages"][-1]["content"] == "No."
    replies(world.upstream, "Maybe.")
    again = generate(api, chat, type="regenerate")["message"]
    assert (again["content"], len(again["swipes"])) == ("Maybe.", 1)
    for kind in ({"type": "impersonate"}, {"type": "quiet", "prompt": "Sum up."}):
        made = generate(api, chat, **kind)
        assert (made["text"], made["message"]) == ("Maybe.", None)
    assert texts(api, chat) == ["Hello Bob.", "Well?", "Maybe."]


def test_reasoning_is_kept_and_not_sent_again_unless_asked_for(api: Api, world: World):
    chat = cast(api)["id"]
    world.upstream.body = stream(delta("", reasoning_content="hm"), delta("Yes"), DONE)
    assert generate(api, chat, user_message="a")["message"]["reasoning"] == "hm"
    generate(api, chat, user_message="b")
    assert not any("reasoning_content" in one for one in world.upstream.last.json["messages"])
    generate(api, chat, user_message="c", include_reasoning=True)
    assert any(one.get("reasoning_content") == "hm" for one in world.upstream.last.json["messages"])


def test_pins_exclusions_and_branches_are_minded(api: Api, world: World):
    chat = cast(api, settings={"context_strategy": "manual"})["id"]
    out = {"role": "user", "content": "secret", "meta": {"manualExcluded": True}}
    api("POST", f"chats/{chat}/messages", out, 201)
    api("POST", f"chats/{chat}/branches", {"from_message": "main.1", "id": "alt"}, 201)
    Api(world, "sk-acme-admin")("PUT", "settings", {"settings": {}})
    generate(api, chat, user_message="hi")
    assert "secret" not in json.dumps(world.upstream.last.json)
    made = generate(api, chat, branch="alt", user_message="elsewhere")
    assert made["message"]["branch"] == "alt"
    assert texts(api, chat, "?branch=alt") == ["Hello Bob.", "elsewhere", "Yes, Bob."]
    assert texts(api, chat) == ["Hello Bob.", "secret", "hi", "Yes, Bob."]


def test_lore_stands_in_the_audit_in_or_out_with_its_reason(api: Api, world: World):
    entries = [
        {"keys": ["moon"], "content": "Rust.", "enabled": True, "insertion_order": 1, "id": 7},
        {"keys": ["sun"], "content": "Cold.", "enabled": True, "insertion_order": 2, "id": 8},
        {"keys": ["moon"], "content": "Off.", "enabled": False, "insertion_order": 3, "id": 9},
    ]
    lore = api("POST", "lorebooks", {"id": "sky", "book": {"entries": entries}}, 201)["id"]
    chat = cast(api, lorebooks=[lore])["id"]
    generate(api, chat, user_message="The moon?")
    listed = {one["id"]: one for one in api("GET", f"chats/{chat}/context-audit")["entries"]}
    reasons = {id: (one["included"], one["reason"]) for id, one in listed.items() if one["source"] == "lore"}
    assert reasons == {
        "lore:sky/7": (True, "fits"),
        "lore:sky/8": (False, "no-key-match"),
        "lore:sky/9": (False, "disabled"),
    }
    assert listed["lore:sky/7"]["ref"] == {"type": "lore", "id": "sky/7"}


def test_a_prompt_that_cannot_fit_is_refused_kept_as_failed_and_nothing_is_said(api: Api, world: World):
    chat = cast(api, model="small", settings={"smart_truncation": True})["id"]
    error = generate(api, chat, 400, user_message="w " * 200)["error"]
    assert error["code"] == "TOKEN_BUDGET_EXCEEDED"
    assert not world.upstream.calls
    audit = api("GET", f"chats/{chat}/context-audit")
    assert (audit["status"], audit["action"], audit["model"]["used"]) == ("failed", "refuse", None)
    assert texts(api, chat) == ["Hello Bob."]


def test_a_long_chat_is_cut_and_says_so(api: Api, world: World):
    chat = cast(api, model="large", settings={"smart_truncation": True})["id"]
    for n in range(6):
        api("POST", f"chats/{chat}/messages", {"role": "user", "content": f"{n} " + "w " * 60}, 201)
    told = events(api("POST", f"chats/{chat}/generations", {"user_message": "So?"}))
    assert told[0][1]["action"] == "shift"
    sent = [one["content"] for one in world.upstream.last.json["messages"]]
    assert sent[-1] == "So?"
    assert len(sent) < 9


def test_an_idempotency_key_generates_once(api: Api, world: World):
    chat = cast(api)["id"]
    key = {"idempotency-key": "k1"}
    first = generate(api, chat, headers=key, user_message="Well?")
    again = generate(api, chat, headers=key, user_message="Well?")
    assert again == first
    assert len(world.upstream.calls) == 1
    assert texts(api, chat) == ["Hello Bob.", "Well?", "Yes, Bob."]
    assert generate(api, chat, 409, headers=key, user_message="Other?")["error"]["code"] == "IDEMPOTENCY_CONFLICT"


def test_a_generation_is_cancelled_by_another_request_and_its_text_is_kept_as_partial(api: Api, world: World):
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield delta("on ")
            await asyncio.sleep(0.05)

    world.upstream.body = endless
    chat = cast(api)["id"]
    url = f"{world.url}/api/v2/chats/{chat}/generations"
    body = {"user_message": "Go on."}
    headers = {"authorization": "Bearer sk-acme"}
    with world.client.stream("POST", url, json=body, headers=headers) as answer:
        gid = answer.headers["x-bastion-generation-id"]
        lines = answer.iter_lines()
        next(line for line in lines if line == "event: delta")
        asked = time.monotonic()
        api("POST", f"chats/{chat}/generations/{gid}/cancel", status=202)
        names = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
        assert time.monotonic() - asked < 10
    assert names[-2:] == ["message", "done"]
    found = api("GET", f"chats/{chat}/generations/{gid}")
    assert (found["status"], found["message"]["partial"]) == ("cancelled", True)
    assert found["message"]["content"].startswith("on on")
    assert api("GET", f"chats/{chat}/context-audit")["status"] == "cancelled"
    assert world.upstream.disconnected.wait(10)


@pytest.mark.parametrize("cancels", [False, True])
def test_a_lost_connection_ends_a_generation_only_where_it_says_so(api: Api, world: World, cancels: bool):
    async def slowly() -> AsyncIterator[bytes]:
        for _ in range(30):
            yield delta("on ")
            await asyncio.sleep(0.05)
        yield DONE

    world.upstream.body = slowly
    chat = cast(api)["id"]
    body = {"user_message": "Go.", "on_disconnect": "cancel" if cancels else "continue"}
    headers = {"authorization": "Bearer sk-acme"}
    url = f"{world.url}/api/v2/chats/{chat}/generations"
    with httpx.Client(trust_env=False) as client, client.stream("POST", url, json=body, headers=headers) as answer:
        gid = answer.headers["x-bastion-generation-id"]
        next(line for line in answer.iter_lines() if line == "event: delta")
    found = ended(api, chat, gid)
    assert found["status"] == ("cancelled" if cancels else "completed")
    assert found["message"]["partial"] is cancels
    assert (found["text"] == "on " * 30) is not cancels


@pytest.mark.parametrize(
    ("status", "body", "code", "error"),
    [
        (500, b"{}", 502, "UPSTREAM_REFUSED"),
        (200, b"<html>", 502, "PROVIDER_BROKEN"),
        (400, b'{"error":{"message":"prompt is too long: 9 tokens > 8 maximum"}}', 400, "TOKEN_BUDGET_EXCEEDED"),
    ],
)
def test_a_failed_provider_is_a_failed_generation(
    api: Api, world: World, status: int, body: bytes, code: int, error: str
):
    world.upstream.status, world.upstream.body = status, body
    world.upstream.headers = [("content-type", "application/json")]
    chat = cast(api)["id"]
    assert generate(api, chat, code, user_message="x")["error"]["code"] == error
    told = events(api("POST", f"chats/{chat}/generations", {"user_message": "x"}))
    assert [name for name, _ in told][-2:] == ["error", "done"]
    assert told[-2][1]["error"]["code"] == error
    assert api("GET", f"chats/{chat}/context-audit")["status"] == "failed"


def test_a_stream_that_breaks_off_keeps_what_came(api: Api, world: World):
    world.upstream.body = stream(delta("Half"), RuntimeError("reset"))
    chat = cast(api)["id"]
    told = events(api("POST", f"chats/{chat}/generations", {"user_message": "x"}))
    assert [name for name, _ in told] == ["generation", "delta", "error", "message", "done"]
    assert (told[3][1]["content"], told[3][1]["partial"]) == ("Half", True)


def test_an_upstream_that_cuts_silently_is_found_out_in_the_audit(api: Api, world: World):
    chat = cast(api)["id"]
    generate(api, chat, user_message="w " * 90)
    found = api("GET", f"chats/{chat}/context-audit")["diagnostics"]
    assert {"code": "silent-cut", "counted": 96, "reported": 20} in found


def test_a_macro_that_nobody_knows_stays_and_is_told(api: Api, world: World):
    chat = cast(api, author_note={"text": "{{frobnicate}} {{char}}", "depth": 0})["id"]
    shown = api("POST", "context-preview?include=messages", {"chat_id": chat, "user_message": "x"})
    assert {"code": "unknown-macro", "macro": "frobnicate"} in shown["diagnostics"]
    assert "{{frobnicate}} Ann" in [one["content"] for one in shown["messages"]]


def test_an_answer_in_one_piece_is_a_reply_too(api: Api, world: World):
    world.upstream.headers = [("content-type", "application/json")]
    world.upstream.body = json.dumps({"choices": [{"message": {"role": "assistant", "content": "Whole."}}]}).encode()
    assert generate(api, cast(api)["id"], user_message="x")["message"]["content"] == "Whole."


def test_calls_of_tools_are_put_together(api: Api, world: World):
    parts = [
        {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{"}},
        {"index": 0, "function": {"arguments": "}"}},
    ]
    world.upstream.body = stream(*(delta("", tool_calls=[part]) for part in parts), DONE)
    message = generate(api, cast(api)["id"], user_message="x")["message"]
    assert message["tool_calls"] == [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"type": "sing"}, "type"),
        ({"type": "quiet"}, "prompt"),
        ({"type": "swipe", "user_message": "x"}, "user_message"),
        ({"user_message": "x", "routing": {"pin": [0]}}, "routing.pin"),
        ({"user_message": "x", "routing": {"nope": 0}}, "routing.nope"),
        ({"user_message": "x", "params": {"messages": []}}, "params.messages"),
        ({"user_message": "x", "unknown": 1}, "unknown"),
        ({"user_message": "x", "context_strategy": "none-such"}, None),
    ],
)
def test_a_wish_that_makes_no_sense_is_refused_before_anything_is_stored(
    api: Api, world: World, body: Any, path: str | None
):
    chat = cast(api)["id"]
    answer = world.client.post(
        f"{world.url}/api/v2/chats/{chat}/generations", json=body, headers={"authorization": "Bearer sk-acme"}
    )
    assert answer.status_code in (400, 403)
    if path is not None:
        assert answer.json()["error"]["path"] == path
    assert texts(api, chat) == ["Hello Bob."]
    api("GET", f"chats/{chat}/context-audit", status=404)
    assert not world.upstream.calls


def test_an_inline_conversation_is_previewed_by_a_key_that_may_only_preview(world: World, api: Api):
    preview = Api(world, "sk-acme-preview")
    book = {"entries": [{"keys": ["moon"], "content": "Rust.", "enabled": True, "insertion_order": 1}]}
    body = {
        "model": "plain",
        "character": CARD,
        "persona": {"name": "Bob", "description": "Mends."},
        "lorebooks": [book],
        "memories": ["A ladder."],
        "messages": [{"role": "user", "content": "The moon?"}],
    }
    shown = preview("POST", "context-preview?include=messages", body)
    assert [one["content"] for one in shown["messages"]] == ["Ann flies.", "Rust.", "Mends.", "A ladder.", "The moon?"]
    chat = cast(api)["id"]
    preview("POST", "context-preview", {"chat_id": chat, "user_message": "x"}, 403)
    bad = preview("POST", "context-preview", {**body, "lorebooks": [{"x": 1}]}, 400)
    assert bad["error"]["code"] == "INVALID_INPUT"


def test_several_models_are_compared_for_one_prompt(api: Api):
    said = [{"role": "user", "content": "w " * 150}]
    shown = api("POST", "context-preview", {"messages": said, "max_tokens": 5, "models": ["small", "large", "nobody"]})
    assert shown["model"]["requested"] == "small"
    fits = {one["model"]: (one["fits"], one["action"], one["error_code"]) for one in shown["models"]}
    assert fits == {
        "small": (False, "refuse", "TOKEN_BUDGET_EXCEEDED"),
        "large": (True, "none", None),
        "nobody": (False, "refuse", "MODEL_NOT_FOUND"),
    }


def test_what_models_are_compared_for_is_the_chat_s_own_prompt(api: Api):
    chat = cast(api)["id"]
    shown = api("POST", "context-preview", {"chat_id": chat, "user_message": "x", "models": ["nobody", "small"]})
    assert shown["model"]["requested"] == "plain"
    assert [(one["model"], one["error_code"]) for one in shown["models"]] == [
        ("nobody", "MODEL_NOT_FOUND"),
        ("small", None),
    ]
    shown = api("POST", "context-preview", {"chat_id": chat, "model": "large", "models": ["small"]})
    assert shown["model"]["requested"] == "large"


@pytest.mark.parametrize("more", [{}, {"character": CARD}], ids=["proxy", "inline"])
def test_where_none_is_named_the_first_model_that_may_be_used_is_shown(api: Api, more: dict[str, Any]):
    said = {"messages": [{"role": "user", "content": "x"}], **more}
    shown = api("POST", "context-preview", {**said, "models": ["nobody", "small", "plain"]})
    assert (shown["model"]["requested"], shown["models"][0]["error_code"]) == ("small", "MODEL_NOT_FOUND")
    assert api("POST", "context-preview", {**said, "models": ["nobody"]}, 404)["error"]["code"] == "MODEL_NOT_FOUND"
    assert api("POST", "context-preview", said | ({} if more else {"routing": {}}), 400)["error"]["path"] == "model"
    bad = api("POST", "context-preview", {**said, "messages": 5, "models": ["small"]}, 400)
    assert bad["error"]["path"] == "messages"


def test_the_models_of_a_chat_that_names_none_stand_in(api: Api):
    chat = api("POST", "chats", {}, 201)["id"]
    wish = {"chat_id": chat, "user_message": "x"}
    assert api("POST", "context-preview", wish, 400)["error"]["path"] == "model"
    assert api("POST", "context-preview", {**wish, "models": ["small"]})["model"]["requested"] == "small"


@pytest.mark.parametrize("kind", ["regenerate", "swipe", "continue"])
def test_a_fork_does_not_change_a_message_that_it_shares(api: Api, world: World, kind: str):
    chat = cast(api)["id"]
    generate(api, chat, user_message="Well?")
    generate(api, chat, user_message="And?")
    before = api("GET", f"chats/{chat}/messages")
    api("POST", f"chats/{chat}/branches", {"from_message": "main.3", "id": "alt"}, 201)
    calls = len(world.upstream.calls)
    error = generate(api, chat, 400, branch="alt", type=kind)["error"]
    assert error["path"] == "branch"
    assert api("POST", "context-preview", {"chat_id": chat, "branch": "alt", "type": kind}, 400)["error"] == error
    assert api("GET", f"chats/{chat}/messages") == before
    assert len(world.upstream.calls) == calls
    api("POST", f"chats/{chat}/branches", {"from_message": "main.2", "id": "before"}, 201)
    generate(api, chat, branch="before")
    own = generate(api, chat, branch="before", type=kind)
    assert (own["status"], own["message"]["branch"]) == ("completed", "before")
    assert api("GET", f"chats/{chat}/messages") == before


@pytest.mark.parametrize("kind", ["regenerate", "swipe"])
def test_lore_of_a_greeting_leaves_with_it_and_comes_back(api: Api, kind: str):
    entry = {"keys": [], "constant": True, "content": "@@is_greeting 0\nOf the first.", "enabled": True}
    lore = api("POST", "lorebooks", {"book": {"entries": [entry]}}, 201)["id"]
    chat = cast(api, lorebooks=[lore])["id"]

    def told() -> bool:
        shown = api("POST", "context-preview?include=messages", {"chat_id": chat, "user_message": "x"})
        return "Of the first." in [one["content"] for one in shown["messages"]]

    assert told()
    generate(api, chat, type=kind)
    assert not told()
    if kind == "swipe":
        api("PATCH", f"chats/{chat}/messages/main.1", {"swipe": 0})
        assert told()


def test_an_answer_that_a_fork_goes_on_from_is_not_lost_to_a_regeneration(api: Api, world: World):
    chat = cast(api)["id"]
    generate(api, chat, user_message="Well?")
    api("POST", f"chats/{chat}/branches", {"from_message": "main.2", "id": "before"}, 201)
    replies(world.upstream, "Anew.")
    assert len(generate(api, chat, type="regenerate")["message"]["swipes"]) == 1
    api("POST", f"chats/{chat}/branches", {"from_message": "main.3", "id": "alt"}, 201)
    replies(world.upstream, "Again.")
    message = generate(api, chat, type="regenerate")["message"]
    assert ([one["content"] for one in message["swipes"]], message["content"]) == (["Anew.", "Again."], "Again.")


class Meddler:
    """Adds a note, edits the oldest of the history, and tries to take out the character."""

    id = "meddler"
    priority = 1

    def intercept(self, blocks: list[Block]) -> list[Block]:
        kept = [block for block in blocks if "flies" not in block.message["content"]]
        for block in kept:
            if block.message["content"] == "Hello Bob.":
                block.message["content"] = "Hello, Bob."
        return [Block({"role": "system", "content": "noted"}), *kept]


def test_interceptors_have_the_last_look_at_a_chat_s_prompt_and_the_host_the_last_word(tmp_path: Path):
    for world in worlds(tmp_path, ports=Ports(interceptors=[Meddler()])):
        replies(world.upstream, "Yes.")
        api = Api(world)
        chat = cast(api)["id"]
        shown = api("POST", "context-preview?include=messages", {"chat_id": chat, "user_message": "hi"})
        generate(api, chat, user_message="hi")
        sent = world.upstream.last.json["messages"]
        assert sent == shown["messages"]
        contents = [one["content"] for one in sent]
        assert contents == ["noted", "Ann flies.", "Mends engines.", "Hello, Bob.", "hi"]
        audit = api("GET", f"chats/{chat}/context-audit")
        added = next(one for one in audit["entries"] if one["id"] == "added:0")
        assert (added["source"], added["reason"], added["content"]) == ("interceptor", "added", "noted")
        did = [one["code"] for one in audit["diagnostics"]]
        assert did == ["interceptor-restored", "interceptor-added", "interceptor-edited"]
        world.post({"model": "plain", "messages": [{"role": "user", "content": "hi"}]})
        assert world.upstream.last.json["messages"] == [{"role": "user", "content": "hi"}]


# -- what reviewers broke ------------------------------------------------------------------------------------------


def test_a_refused_generation_has_ended_and_its_repeat_is_told_so(api: Api, world: World):
    chat = cast(api, model="small")["id"]
    key = {"idempotency-key": "k"}
    generate(api, chat, 400, headers=key, user_message="w " * 300)
    gid = api("GET", f"chats/{chat}/context-audit")["generation_id"]
    found = api("GET", f"chats/{chat}/generations/{gid}")
    assert (found["status"], found["error_code"], found["message"]) == ("failed", "TOKEN_BUDGET_EXCEEDED", None)
    again = generate(api, chat, 400, headers=key, user_message="w " * 300)
    assert again["error"]["code"] == "TOKEN_BUDGET_EXCEEDED"
    for _ in range(2):
        streamed = api(
            "POST", f"chats/{chat}/generations", {"user_message": "w " * 400}, 400, **{"idempotency-key": "s"}
        )
        assert streamed["error"]["code"] == "TOKEN_BUDGET_EXCEEDED"


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (500, b"{}", 502),
        (200, b"<html>", 502),
        (400, b'{"error":{"message":"prompt is too long: 9 tokens > 8 maximum"}}', 400),
        (200, stream(delta("Half"), RuntimeError("reset")), 502),
    ],
)
def test_the_repeat_of_a_failure_is_the_same_failure(api: Api, world: World, status: int, body: Any, code: int):
    world.upstream.status, world.upstream.body = status, body
    if isinstance(body, bytes):
        world.upstream.headers = [("content-type", "application/json")]
    chat = cast(api)["id"]
    answers = [generate(api, chat, code, {"idempotency-key": "k"}, user_message="x")["error"] for _ in range(2)]
    assert answers[0]["code"] == answers[1]["code"]
    wish, key = {"user_message": "y"}, {"idempotency-key": "s"}
    first, again = [events(api("POST", f"chats/{chat}/generations", wish, **key)) for _ in range(2)]
    assert [name for name, _ in first] == [name for name, _ in again]
    said = [next(data for name, data in told if name == "error")["error"]["code"] for told in (first, again)]
    assert said == [answers[0]["code"]] * 2
    assert len(world.upstream.calls) == 2


def raw(delta_: str) -> bytes:
    return f'data: {{"choices":[{{"index":0,"delta":{delta_}}}]}}\n\n'.encode()


def test_half_a_surrogate_pair_waits_for_its_other_half(api: Api, world: World):
    halves = raw('{"content":"\\ud83d"}'), raw('{"content":"\\ude00!"}'), raw('{"content":"\\ud800"}')
    world.upstream.body = stream(delta("Hi "), *halves, DONE)
    made = generate(api, cast(api)["id"], user_message="x")
    assert (made["status"], made["message"]["content"]) == ("completed", "Hi \U0001f600!\ufffd")


@pytest.mark.parametrize(
    "odd",
    [
        b'data: {"choices":["x"]}\n\n',
        b'data: {"choices":[{"delta":"x"}]}\n\n',
        raw('{"tool_calls":["x"]}'),
        raw('{"tool_calls":{"a":1}}'),
        raw('{"tool_calls":[{"index":[1],"function":"f"}]}'),
        raw('{"tool_calls":[{"index":null,"id":"a"},{"index":0,"id":"b"}]}'),
        raw('{"content":[1]}'),
    ],
)
def test_chunks_that_make_no_sense_lose_nothing_of_the_reply(api: Api, world: World, odd: bytes):
    world.upstream.body = stream(delta("Yes"), odd, delta("."), DONE)
    made = generate(api, cast(api)["id"], user_message="x")
    assert (made["status"], made["message"]["content"]) == ("completed", "Yes.")


def test_what_is_continued_keeps_its_parts_and_its_reasoning(api: Api, world: World):
    chat = api("POST", "chats", {"model": "plain"}, 201)["id"]
    parts = [{"type": "text", "text": "Once"}]
    api("POST", f"chats/{chat}/messages", {"role": "assistant", "content": parts, "reasoning": "a"}, 201)
    world.upstream.body = stream(delta(" upon", reasoning_content="b"), DONE)
    message = generate(api, chat, type="continue")["message"]
    assert (message["content"], message["reasoning"]) == ([*parts, {"type": "text", "text": " upon"}], "ab")


@pytest.mark.parametrize("kind", ["regenerate", "swipe"])
def test_another_answer_does_not_keep_the_calls_of_the_old_one(api: Api, world: World, kind: str):
    chat = cast(api)["id"]
    calls = [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    old = {"role": "assistant", "content": None, "tool_calls": calls}
    said = api("POST", f"chats/{chat}/messages", old, 201)
    message = generate(api, chat, type=kind)["message"]
    assert (message["content"], message["tool_calls"]) == ("Yes, Bob.", None)
    if kind == "swipe":
        back = api("PATCH", f"chats/{chat}/messages/{said['id']}", {"swipe": 0})
        assert (back["content"], back["tool_calls"]) == (None, calls)


def test_a_regeneration_that_breaks_off_leaves_the_whole_answer_beside_it(api: Api, world: World):
    chat = cast(api)["id"]
    generate(api, chat, user_message="x")
    world.upstream.body = stream(delta("Frag"), RuntimeError("reset"))
    api("POST", f"chats/{chat}/generations", {"type": "regenerate"})
    message = api("GET", f"chats/{chat}/messages/main.3")
    assert [one["content"] for one in message["swipes"]] == ["Yes, Bob.", "Frag"]
    assert (message["swipe"], message["partial"]) == (1, True)


def test_swipes_at_the_same_time_are_all_kept(api: Api, world: World):
    chat = cast(api)["id"]
    generate(api, chat, user_message="x")
    with ThreadPoolExecutor(3) as pool:
        made = list(pool.map(lambda _: generate(api, chat, type="swipe"), range(3)))
    assert {one["status"] for one in made} == {"completed"}
    assert [one["message"]["id"] for one in made] == ["main.3"] * 3
    assert len(api("GET", f"chats/{chat}/messages/main.3")["swipes"]) == 4
    for one in made:
        assert api("GET", f"chats/{chat}/generations/{one['id']}")["message"]["id"] == "main.3"


MOON = {
    "entries": [
        {"id": 1, "keys": ["moon"], "content": "Rust.", "enabled": True, "extensions": {"sticky": 3}},
        {"id": 2, "keys": ["sun"], "content": "Cold.", "enabled": True, "extensions": {"sticky": 3}},
    ]
}


def woken(api: Api, chat: str) -> set[str]:
    """Return which of `MOON` the next turn would hold without a word of theirs."""
    for n in range(4):  # beyond what is scanned
        api("POST", f"chats/{chat}/messages", {"role": "user", "content": f"{n}"}, 201)
    shown = api("POST", "context-preview?include=messages", {"chat_id": chat})
    for _ in range(4):
        last = api("GET", f"chats/{chat}/messages?order=desc&limit=1")["data"][0]["id"]
        api("DELETE", f"chats/{chat}/messages/{last}", status=204)
    return {one["content"] for one in shown["messages"]} & {"Rust.", "Cold."}


@pytest.mark.parametrize("kind", ["regenerate", "swipe"])
def test_what_lore_remembers_is_of_the_answer_shown(tmp_path: Path, kind: str):
    for world in worlds(tmp_path):
        api = Api(world)
        replies(world.upstream, "Yes.")
        lore = api("POST", "lorebooks", {"book": MOON}, 201)["id"]
        chat = cast(api, lorebooks=[lore])["id"]
        generate(api, chat, user_message="The moon?")
        assert woken(api, chat) == {"Rust."}
        api("PATCH", f"chats/{chat}/messages/main.2", {"content": "The sun?"})
        message = generate(api, chat, type=kind)["message"]
        assert woken(api, chat) == {"Cold."}
        assert not {"lore_state", "greeting", "speaker_id"} & set(message["swipes"][0])
        if kind == "swipe":
            api("PATCH", f"chats/{chat}/messages/{message['id']}", {"swipe": 0})
            assert woken(api, chat) == {"Rust."}


def test_a_continuation_lengthens_the_answer_it_was_made_for(api: Api, world: World):
    chat = api("POST", "chats", {"model": "plain"}, 201)["id"]
    answers = {"role": "assistant", "swipes": [{"content": "alpha"}, {"content": "BETA"}], "swipe": 0}
    api("POST", f"chats/{chat}/messages", answers, 201)

    async def while_the_other_is_shown() -> AsyncIterator[bytes]:
        yield delta(" goes on")
        await asyncio.to_thread(api, "PATCH", f"chats/{chat}/messages/main.1", {"swipe": 1})
        yield DONE

    world.upstream.body = while_the_other_is_shown
    message = generate(api, chat, type="continue")["message"]
    assert [one["content"] for one in message["swipes"]] == ["alpha goes on", "BETA"]
    assert (message["content"], message["swipe"], message["generation_id"]) == ("BETA", 1, None)
    assert message["swipes"][0]["generation_id"] is not None


def test_a_continuation_of_what_was_regenerated_meanwhile_stands_beside_it(api: Api, world: World):
    chat = cast(api)["id"]
    generate(api, chat, user_message="x")

    async def while_it_is_made_anew() -> AsyncIterator[bytes]:
        yield delta(" And on.")
        replies(world.upstream, "Anew.")
        await asyncio.to_thread(generate, api, chat, type="regenerate")
        yield DONE

    world.upstream.body = while_it_is_made_anew
    message = generate(api, chat, type="continue")["message"]
    assert [one["content"] for one in message["swipes"]] == ["Anew.", "Yes, Bob. And on."]
    assert (message["content"], message["swipe"]) == ("Yes, Bob. And on.", 1)


def test_a_reply_to_a_message_that_was_removed_meanwhile_is_the_generation_s_own(api: Api, world: World):
    chat = cast(api)["id"]
    generate(api, chat, user_message="x")

    async def while_it_is_removed() -> AsyncIterator[bytes]:
        yield delta("Late.")
        await asyncio.to_thread(api, "DELETE", f"chats/{chat}/messages/main.3", None, 204)
        yield DONE

    world.upstream.body = while_it_is_removed
    made = generate(api, chat, type="swipe")
    assert (made["status"], made["message"], made["text"]) == ("completed", None, "Late.")
    assert texts(api, chat) == ["Hello Bob.", "x"]


def test_a_prefill_is_how_the_saved_reply_begins(api: Api, world: World):
    message = generate(api, cast(api)["id"], user_message="x", prefill="Well: ")["message"]
    assert message["content"] == "Well: Yes, Bob."


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"chatId": "none", "userMessage": "x"}, 404),
        ({"model": "plain", "messages": [{"role": "user", "content": "x", "meta": "y"}], "memories": ["m"]}, 200),
        (
            {
                "model": "plain",
                "messages": [{"role": "user", "content": "x", "lore_state": True, "greeting": []}],
                "lorebooks": [{"entries": [{"keys": ["x"], "content": "L"}]}],
            },
            200,
        ),
        ({"model": "plain", "messages": [{"role": "user", "content": "x"}], "contextStrategy": "summarize"}, 403),
    ],
)
def test_previews_of_odd_requests(api: Api, body: dict[str, Any], status: int):
    answer = api("POST", "context-preview", body, status)
    assert ("action" in answer) is (status == 200)


def test_an_unknown_speaker_and_numbers_beyond_reason_are_refused(world: World, api: Api):
    chat = cast(api)["id"]
    assert generate(api, chat, 400, user_message="x", speaker_id="ghost")["error"]["path"] == "speaker_id"
    for limit in ("0" * 5 + "1999999", "1" * 5000, "1001"):
        assert api("GET", f"chats?limit={limit}", status=400)["error"]["path"] == "limit"
    admin = Api(world, "sk-acme-admin")
    assert admin("PUT", "settings", {"settings": {}, "version": 10**30}, 400)["error"]["path"] == "version"


def test_a_file_that_a_provider_keeps_is_no_part_of_a_stored_chat_under_a_shared_key(api: Api, world: World):
    chat = cast(api)["id"]
    part = {"type": "file", "file": {"file_id": "file-1"}}
    api("POST", f"chats/{chat}/messages", {"role": "user", "content": [part]}, 201)
    error = generate(api, chat, 400)["error"]
    assert (error["code"], error["path"].endswith("content[0].file.file_id")) == ("INVALID_INPUT", True)
    assert not world.upstream.calls
