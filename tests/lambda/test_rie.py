"""ApiFunction as built, under AWS's own Runtime Interface Emulator, with the events of events/."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from provider import ANSWER
from rie import Emulator, api_function
from sample_events import load_event
from world import World

HEALTH = ["rest-health", "rest-health-staged", "http-health", "http-health-staged"]
CHAT = [f"{kind}-chat-completions{variant}" for kind in ("rest", "http") for variant in ("", "-base64", "-staged")]


@pytest.fixture(scope="module")
def function(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """Without tables: what needs no account answers all the same."""
    with api_function(tmp_path_factory.mktemp("rie") / "log") as running:
        yield running


@pytest.fixture(scope="module")
def deployed(shared_world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """With tables, an account and a provider."""
    with api_function(tmp_path_factory.mktemp("rie") / "log", **shared_world.environment) as running:
        yield running


def test_every_event_of_the_folder_is_tried() -> None:
    names = {path.stem for path in (Path(__file__).parents[2] / "events").glob("*.json")}
    assert names == {*HEALTH, *CHAT, "scheduled-ping"}


@pytest.mark.parametrize("name", HEALTH)
def test_health_answers_whatever_the_event_version_and_the_stage(name: str, function: Emulator) -> None:
    answer = function.invoke(load_event(name))
    assert answer["statusCode"] == 200
    assert json.loads(answer["body"])["status"] == "ok"
    assert answer["isBase64Encoded"] is False


def test_the_ping_is_answered(function: Emulator) -> None:
    assert function.invoke(load_event("scheduled-ping")) == {"status": "ok"}


@pytest.mark.parametrize("event", [{"Records": [{"body": "secret"}]}, [], "secret", None])
def test_an_unknown_event_is_a_clear_error_and_the_next_one_is_served(event: Any, function: Emulator) -> None:
    answer = function.invoke(event)
    assert answer["errorType"] == "UnknownEvent"
    assert answer["errorMessage"].startswith("expected an API Gateway request or a scheduled ping")
    assert "secret" not in answer["errorMessage"]
    assert function.invoke(load_event("rest-health"))["statusCode"] == 200


@pytest.mark.parametrize("host", ["[::1]:8080", "::1"])
@pytest.mark.parametrize("name", ["rest-health", "http-health"])
def test_an_ipv6_host_is_no_failure(name: str, host: str, function: Emulator) -> None:
    event = load_event(name)
    event["headers"] = {"Host": host}
    event["multiValueHeaders"] = {"Host": [host]}
    assert function.invoke(event)["statusCode"] == 200


@pytest.mark.parametrize("name", ["rest-health", "http-health"])
def test_null_headers_and_no_address_are_no_failure(name: str, function: Emulator) -> None:
    event = load_event(name)
    event["headers"] = event["multiValueHeaders"] = None
    event["requestContext"].pop("identity", None)
    event["requestContext"].get("http", {}).pop("sourceIp", None)
    assert function.invoke(event)["statusCode"] == 200


def test_a_path_that_only_begins_like_the_stage_is_not_stripped(function: Emulator) -> None:
    event = load_event("http-health-staged")
    event["rawPath"] = event["requestContext"]["http"]["path"] = "/prodhealth"
    assert function.invoke(event)["statusCode"] == 404


@pytest.mark.parametrize("name", CHAT)
def test_a_call_without_a_valid_key_is_refused_in_openais_shape(name: str, function: Emulator) -> None:
    event = load_event(name)
    for headers in (event["headers"], event.get("multiValueHeaders") or {}):
        for header in [h for h in headers if h.lower() == "authorization"]:
            del headers[header]
    answer = function.invoke(event)
    assert answer["statusCode"] == 401
    assert json.loads(answer["body"])["error"].keys() >= {"message", "type", "param", "code"}


@pytest.mark.parametrize("name", CHAT)
def test_a_call_reaches_the_provider_and_its_answer_the_client(name: str, deployed: Emulator, world: World) -> None:
    answer = deployed.invoke(world.signed(load_event(name)))
    assert answer["statusCode"] == 200, answer
    assert json.loads(answer["body"]) == ANSWER
    assert answer["headers"]["x-bastion-context-tokens"].isascii()
    assert [body.decode() for body in world.provider.bodies] == [load_event("rest-chat-completions")["body"]]


def test_a_named_chat_can_be_audited_afterwards(deployed: Emulator, world: World) -> None:
    routing = json.dumps({"chat_id": "from-rie"})
    called = deployed.invoke(world.signed(load_event("rest-chat-completions"), **{"x-bastion-routing": routing}))
    assert called["statusCode"] == 200, called
    event = world.signed(load_event("http-health"))
    event["rawPath"] = event["requestContext"]["http"]["path"] = "/api/v2/chats/from-rie/context-audit"
    audit = json.loads(deployed.invoke(event)["body"])
    assert (audit["status"], audit["model"]["used"]) == ("completed", "gpt-4o")


def test_a_provider_that_is_too_slow_is_a_504_of_ours_before_lambda_ends(world: World, tmp_path: Path) -> None:
    world.provider.gate.clear()
    with api_function(tmp_path / "log", timeout=4, **world.environment) as function:
        answer = function.invoke(world.signed(load_event("rest-chat-completions")))
    assert answer.get("statusCode") == 504, answer
    assert json.loads(answer["body"])["error"]["code"] == "upstream_timeout"
