"""The description of the API is true: it names every route and no other, and what comes back is what it says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance
from starlette.routing import Route

from bastion.app import create_app
from bastion.bootstrap import bootstrap
from bastion.openapi import openapi_document
from bastion.operations import OPERATIONS
from gateway.test_chats import Api, cast
from gateway.world import World, worlds
from serving import completion, config

NAMES = re.compile(r"\{[^}]*\}")
KEPT_AT_PROVIDERS = re.compile(r"/v1/(?!chat|models|completions|embeddings|moderations|images|audio|responses\Z)")
"""Routes that are there to be refused by name."""
HEADERS = {"authorization": "Bearer sk-acme"}
CHECKS = [not_a_server_error, response_schema_conformance, status_code_conformance]
HEALTH = list(HealthCheck)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    for one in worlds(tmp_path_factory.mktemp("openapi")):
        one.upstream.body = completion()
        yield one


def test_every_route_is_described_and_nothing_else(tmp_path: Path):
    app = create_app(bootstrap(config(tmp_path, "http://127.0.0.1:9")))
    served = {
        (method, NAMES.sub("{}", route.path))
        for route in app.routes
        if isinstance(route, Route) and route.path.startswith(("/v1/", "/api/", "/health", "/openapi"))
        for method in route.methods or ()
        if method != "HEAD"
    }
    refused = {one for one in served if KEPT_AT_PROVIDERS.match(one[1])}
    assert served - refused == {(one.method, NAMES.sub("{}", one.path)) for one in OPERATIONS}


def test_the_document_is_valid_and_its_names_are_unique(world: World):
    document = world.client.get(world.url + "/openapi.json").json()
    assert document == openapi_document("0.1.0")
    assert document["openapi"].startswith("3.1")
    schemathesis.openapi.from_dict(document)
    ids = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    assert len(set(ids)) == len(ids)


def things(api: Api) -> dict[str, str]:
    """Return ids of things that there are: a request for what is not there would test nothing but its 404."""
    chat = cast(api, model="large")["id"]
    generation = api("POST", f"chats/{chat}/generations", {"user_message": "hi", "stream": False})
    return {
        "chat_id": chat,
        "message_id": "main.1",
        "generation_id": generation["id"],
        "character_id": api("GET", "characters")["data"][0]["id"],
        "persona_id": api("GET", "personas")["data"][0]["id"],
        "lorebook_id": api("POST", "lorebooks", {"book": {"entries": []}}, 201)["id"],
        "memory_id": api("POST", "memories", {"text": "x"}, 201)["id"],
        "model": "small",
    }


@pytest.mark.parametrize("name", [one.name for one in OPERATIONS])
def test_whatever_is_sent_no_answer_is_a_500_or_other_than_described(world: World, name: str):
    schema = schemathesis.openapi.from_dict(openapi_document("0.1.0")).include(operation_id=name)
    (operation,) = [result.ok() for result in schema.get_all_operations()]
    known = things(Api(world))

    @settings(max_examples=25, deadline=None, phases=[Phase.generate], derandomize=True, suppress_health_check=HEALTH)
    @given(case=operation.as_strategy())
    def holds(case: schemathesis.Case) -> None:
        case.path_parameters = {name: known.get(name, value) for name, value in case.path_parameters.items()}
        case.call_and_validate(base_url=world.url, headers=HEADERS, checks=CHECKS)

    holds()
