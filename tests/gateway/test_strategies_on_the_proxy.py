"""A strategy that the request itself names, on the proxy: what is shortened or summed up, and what says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.world import World, chat, words, worlds

PREVIEW = "/api/v2/context-preview?include=messages,content"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    yield from worlds(tmp_path)


def story(strategy: str, **fields: Any) -> dict[str, Any]:
    facts = ["Maria signed the lease in Odense on 14 March.", "We decided to move the release to May."]
    turns: list[tuple[str, int | str]] = [("system", "be brief")]
    for turn in range(14):
        turns += [
            ("user", f"{facts[turn % 2]} Then point {turn} came up again."),
            ("assistant", f"Point {turn} is noted."),
        ]
    routing = {"context_strategy": strategy, "chat_id": "c"}
    return chat(*turns, ("user", "what now"), model="large", max_tokens=20, routing=routing, **fields)


def test_a_summary_reaches_the_upstream_as_a_plain_user_message_and_is_an_entry_of_the_audit(world: World):
    request = {**story("summarize"), "max_tokens": 40}
    answer = world.post(request, key="sk-pro")
    assert answer.headers["x-bastion-context-truncated"] == "true"
    sent = world.upstream.last.json["messages"]
    assert sent[-1] == request["messages"][-1]
    assert set(sent[-2]) == {"role", "content"}
    assert sent[-2]["content"].startswith("Earlier in this conversation:")
    audit = world.audit("c", key="sk-pro").json()
    entry = next(entry for entry in audit["entries"] if entry["id"] == "summary")
    assert (entry["source"], entry["reason"], entry["included"]) == ("summary", "summary", True)
    assert (audit["strategy"], audit["action"]) == ("summarize", "shift")
    assert audit["messages"] == sent
    included = sum(entry["tokens"] for entry in audit["entries"] if entry["included"])
    assert included == audit["budget"]["prompt_tokens"]


def test_a_summary_reaches_the_upstream_before_the_call_whose_result_is_the_current_input(world: World):
    request = {**story("summarize"), "max_tokens": 40}
    use = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    answer = {"type": "tool_result", "tool_use_id": "a", "content": "fine"}
    end = [
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [answer, {"type": "text", "text": "what now"}]},
    ]
    request["messages"] = [*request["messages"][:-1], *end]
    assert world.post(request, key="sk-pro").status_code == 200
    sent = world.upstream.last.json["messages"]
    assert sent[-2:] == end
    assert sent[-3]["content"].startswith("Earlier in this conversation:")
    assert world.audit("c", key="sk-pro").json()["messages"] == sent


@pytest.mark.parametrize("strategy", ["truncate", "summarize", "vector-recall", "middle-out", "clear-tool-results"])
def test_a_preview_shows_what_the_upstream_then_receives_whatever_the_strategy(world: World, strategy: str):
    request = story(strategy)
    shown = world.post(request, PREVIEW, key="sk-pro").json()
    world.post(request, key="sk-pro")
    assert shown["messages"] == world.upstream.last.json["messages"]
    assert shown["strategy"] == strategy


def test_what_was_shortened_stands_with_its_reason_and_its_new_text(world: World):
    talk = chat(("user", 100), ("assistant", 90), ("user", 1), model="large", max_tokens=20)
    talk["routing"] = {"context_strategy": "vector-recall", "chat_id": "c"}
    world.post(talk, key="sk-pro")
    audit = world.audit("c", key="sk-pro").json()
    assert [entry["reason"] for entry in audit["entries"]] == ["shortened", "fits", "protected-current-turn"]
    assert [entry.get("tokens_before") for entry in audit["entries"]] == [100, None, None]
    assert sum(entry["tokens"] for entry in audit["entries"]) == audit["budget"]["prompt_tokens"]
    assert audit["messages"] == world.upstream.last.json["messages"]
    assert len(audit["messages"][0]["content"].split()) < 100
    assert "w w" not in world.audit("c", key="sk-pro", query="?include=").text


@pytest.mark.parametrize("strategy", ["vector-recall", "clear-tool-results"])
def test_headers_say_that_texts_were_shortened_though_no_message_left(world: World, strategy: str):
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    long = {"role": "tool", "tool_call_id": "a", "content": words(190)}
    if strategy == "vector-recall":
        long = {"role": "assistant", "content": words(190)}
    talk = chat(("user", "q"), ("user", "now"), model="large", max_tokens=20)
    talk["messages"][1:1] = [{"role": "assistant", "content": None, "tool_calls": [call]}, long]
    talk["routing"] = {"context_strategy": strategy}
    answer = world.post(talk, key="sk-pro")
    assert len(world.upstream.last.json["messages"]) == len(talk["messages"])
    assert answer.headers["x-bastion-context-truncated"] == "true"
    assert "excluded=0, shortened=1" in answer.headers["x-bastion-context-tokens"]


def test_cleared_results_keep_their_ids(world: World):
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    talk = [
        {"role": "user", "content": "w"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": words(190)},
        {"role": "assistant", "content": "w"},
        {"role": "user", "content": "w"},
    ]
    request = {
        "model": "large",
        "messages": talk,
        "max_tokens": 20,
        "routing": {"context_strategy": "clear-tool-results"},
    }
    world.post(request, key="sk-pro")
    expected = [*talk[:2], {**talk[2], "content": "[cleared]"}, *talk[3:]]
    assert world.upstream.last.json["messages"] == expected


def test_a_plan_gives_defaults_and_never_ceilings(world: World):
    answer = world.post(chat(("user", 1), model="small", routing={"max_cost_usd": 5.0}), key="sk-pro")
    assert answer.status_code == 200
    settings = answer.headers["x-bastion-context-settings"]
    assert "max_cost_usd=1.0;level=account" in settings
    assert 'regions=("eu");level=account' in settings


def test_a_strategy_outside_the_plan_is_refused(world: World):
    refused = world.post(story("summarize"))
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "STRATEGY_NOT_IN_PLAN")
    unknown = world.post(story("nonsense"), key="sk-pro")
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (400, "unknown_strategy")
