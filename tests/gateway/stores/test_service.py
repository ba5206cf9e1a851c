"""The whole service over DynamoDB: a chat from its making to its deletion, through HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest

from bastion.bootstrap import Ports
from gateway.stores.conftest import Server
from gateway.stores.faults import Rounds
from gateway.stores.life import MovableClock
from gateway.test_chats import Api, cast, texts
from gateway.test_generations import events, generate, replies
from gateway.world import worlds


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")


def test_a_chat_lives_and_dies_over_dynamodb(tmp_path: Path, ministack_tables: Server):
    environ = {
        "BASTION_CONTROL_TABLE": ministack_tables.control,
        "BASTION_CHATS_TABLE": ministack_tables.chats,
        "BASTION_DYNAMODB_ENDPOINT": ministack_tables.endpoint,
    }
    for world in worlds(tmp_path, **environ):
        replies(world.upstream, "Yes", ", Bob.")
        api = Api(world)
        chat = cast(api)["id"]
        told = events(api("POST", f"chats/{chat}/generations", {"user_message": "Are you there?"}))
        assert [name for name, _ in told][-2:] == ["message", "done"]
        replies(world.upstream, "No.")
        assert generate(api, chat, type="swipe")["message"]["swipe"] == 1
        api("POST", f"chats/{chat}/branches", {"from_message": "main.1", "id": "alt"}, 201)
        generate(api, chat, branch="alt", user_message="Elsewhere?")
        assert texts(api, chat) == ["Hello Bob.", "Are you there?", "No."]
        assert texts(api, chat, "?branch=alt") == ["Hello Bob.", "Elsewhere?", "No."]
        audit = api("GET", f"chats/{chat}/context-audit")
        assert (audit["status"], audit["usage"]["prompt_tokens"]) == ("completed", 20)
        assert [one["id"] for one in api("GET", "chats")["data"]] == [chat]
        api("DELETE", f"chats/{chat}", status=204)
        api("GET", f"chats/{chat}/messages", status=404)
        assert api("GET", "chats")["data"] == []


def test_settings_written_over_dynamodb_hold_at_once(tmp_path: Path, ministack_tables: Server):
    environ = {
        "BASTION_CONTROL_TABLE": ministack_tables.control,
        "BASTION_CHATS_TABLE": ministack_tables.chats,
        "BASTION_DYNAMODB_ENDPOINT": ministack_tables.endpoint,
    }
    for world in worlds(tmp_path, **environ):
        admin = Api(world, "sk-acme-admin")
        before = admin("GET", "settings")["version"]
        written = admin("PUT", "settings", {"settings": {"headroom": 0.25}, "version": before})
        assert admin("GET", "settings") == written
        admin("PUT", "settings", {"settings": {}, "version": before}, 409)
        admin("PUT", "settings", {"settings": {}})


@pytest.mark.parametrize("fork", [False, True])
def test_a_generation_takes_the_round_trips_of_the_design(tmp_path: Path, ministack_tables: Server, fork: bool):
    clock = MovableClock()
    rounds = Rounds(ministack_tables.client)
    ports = Ports(
        accounts=ministack_tables.accounts(clock, rounds),
        audits=ministack_tables.audits(clock, rounds),
        chats=ministack_tables.stored(clock, rounds),
        library=ministack_tables.library(clock, rounds),
    )
    book = {"entries": [{"keys": ["moon"], "content": "rust", "enabled": True, "insertion_order": 1}]}
    for world in worlds(tmp_path, ports=ports):
        api = Api(world)
        chat = cast(api, lorebooks=[api("POST", "lorebooks", {"book": book}, 201)["id"]])["id"]
        api("POST", f"chats/{chat}/branches", {"from_message": "main.1", "id": "alt"}, 201)
        rounds.seen.clear()
        wished = {"user_message": "Is the moon up?", "branch": "alt" if fork else "main"}
        api("POST", f"chats/{chat}/generations", wished)
        opened = next(i for i, trip in enumerate(rounds.seen) if "transact_write_items" in trip)
        before = [sorted(trip) for trip in rounds.seen[: opened + 1]]
        reading = [["batch_get_item", "query"], *([["query"]] if fork else [])]
        cast_of_it = ["batch_get_item", "batch_get_item", "batch_get_item", "query"]
        assert before == [["update_item"], *reading, cast_of_it, ["transact_write_items"]]  # and authentication's one
