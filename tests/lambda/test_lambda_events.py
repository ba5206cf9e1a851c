"""Events as they come, also the odd ones, become requests that Mangum can read."""

import copy
from typing import Any

import pytest
from mangum.handlers import APIGateway, HTTPGateway
from sample_events import load_event

from bastion.lambda_events import UnknownEvent, is_ping, normalised, without_stage


def scope_of(event: dict[str, Any]) -> dict[str, Any]:
    gateway = HTTPGateway if event.get("version") == "2.0" else APIGateway
    config: Any = {"api_gateway_base_path": "/", "text_mime_types": [], "exclude_headers": []}
    context: Any = None
    request = gateway(normalised(event), context, config)
    assert isinstance(request.body, bytes)
    return dict(request.scope)


@pytest.mark.parametrize(
    ("path", "stage", "expected"),
    [
        ("/prod/v1/models", "prod", "/v1/models"),
        ("/prod", "prod", "/"),
        ("/prod/", "prod", "/"),
        ("/product/7", "prod", "/product/7"),
        ("/v1/prod/x", "prod", "/v1/prod/x"),
        ("/v1/models", "$default", "/v1/models"),
        ("/v1/models", None, "/v1/models"),
        ("/prod/prod/x", "prod", "/prod/x"),
    ],
)
def test_only_a_whole_first_segment_is_a_stage(path: str, stage: str | None, expected: str) -> None:
    assert without_stage(path, stage) == expected


@pytest.mark.parametrize("name", ["rest-health", "rest-health-staged", "http-health", "http-health-staged"])
def test_the_stage_never_stays_in_the_path(name: str) -> None:
    assert scope_of(load_event(name))["path"] == "/health"


def test_a_rest_path_that_begins_like_the_stage_is_kept() -> None:
    event = load_event("rest-health")
    event["path"] = "/prod/health"
    event["requestContext"]["path"] = "/prod/prod/health"
    assert scope_of(event)["path"] == "/prod/health"


@pytest.mark.parametrize("name", ["rest-health", "http-health"])
@pytest.mark.parametrize("host", ["[::1]:8080", "::1", "[2001:db8::1]", "host:port", "a:1:2", ""])
def test_a_host_that_cannot_be_taken_apart_is_the_apis_own(name: str, host: str) -> None:
    event = load_event(name)
    for headers, value in ((event["headers"], host), (event.get("multiValueHeaders") or {}, [host])):
        for key in list(headers):
            if key.lower() == "host":
                headers[key] = value
    assert scope_of(event)["server"][0] == event["requestContext"]["domainName"]


@pytest.mark.parametrize("name", ["rest-chat-completions", "http-chat-completions"])
@pytest.mark.parametrize("member", ["headers", "multiValueHeaders", "body", "queryStringParameters", "cookies"])
@pytest.mark.parametrize("absent", [True, False], ids=["absent", "null"])
def test_null_and_missing_members_are_no_failure(name: str, member: str, absent: bool) -> None:
    event = load_event(name)
    if absent:
        event.pop(member, None)
    else:
        event[member] = None
    assert scope_of(event)["path"] == "/v1/chat/completions"


@pytest.mark.parametrize("identity", [None, {}, {"sourceIp": None}, {"sourceIp": "2001:db8::1"}])
def test_a_missing_address_is_no_failure(identity: dict[str, Any] | None) -> None:
    rest, http = load_event("rest-health"), load_event("http-health")
    rest["requestContext"]["identity"] = identity
    http["requestContext"]["http"].pop("sourceIp")
    http["requestContext"]["http"].update(identity or {})
    expected = ((identity or {}).get("sourceIp") or "", 0)
    assert scope_of(rest)["client"] == scope_of(http)["client"] == expected


@pytest.mark.parametrize("port", ["https", "9" * 5_000, "²", ""])
def test_an_odd_port_and_null_header_values_are_left_out(port: str) -> None:
    event = load_event("http-health")
    event["headers"] |= {"x-forwarded-port": port, "host": f"api.example:{port}", "x-null": None, "x-number": 7}
    headers = {name.decode(): value.decode() for name, value in scope_of(event)["headers"]}
    assert headers["x-number"] == "7"
    assert not {"x-forwarded-port", "x-null"} & headers.keys()


@pytest.mark.parametrize("name", ["rest-chat-completions-staged", "http-chat-completions-staged"])
def test_the_event_itself_is_left_as_it_was(name: str) -> None:
    event = load_event(name)
    before = copy.deepcopy(event)
    normalised(event)
    assert event == before


@pytest.mark.parametrize(
    "event",
    [
        None,
        "text",
        [],
        {},
        {"Records": []},
        {"requestContext": None, "httpMethod": "GET"},
        {"requestContext": {}},
        {"version": "2.0", "requestContext": {}},
        {"version": "2.0", "requestContext": {"http": None}},
    ],
)
def test_what_is_no_request_is_refused_by_its_shape_alone(event: Any) -> None:
    with pytest.raises(UnknownEvent, match="expected an API Gateway request or a scheduled ping"):
        normalised(event)
    assert not is_ping(event)


def test_the_error_names_keys_and_no_values() -> None:
    assert str(UnknownEvent({"Records": "secret", "b": 1})).endswith("with keys ['Records', 'b']")


def test_the_schedule_is_a_ping() -> None:
    assert is_ping(load_event("scheduled-ping"))
    assert not is_ping(load_event("rest-health"))
