"""`sam deploy` of the built artefact into an AWS of our own, driven over HTTP afterwards.

ministack runs the functions on a real Python with their layers. It does not know response streaming, so calls go
to a stack with Streaming=false, which is an update of one that was made with it. What it does not apply (TTL, IAM,
the streaming integration) is asserted on the translated template.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import artefact
import boto3
import pytest
from openai import OpenAI
from provider import running_provider
from world import new_key, write_config

from gateway import emulators

STACK = "bastion"
SERVICES = "apigateway,cloudformation,cloudwatch,dynamodb,events,iam,lambda,logs,s3,sts"


@dataclass(frozen=True)
class Cloud:
    """The emulator, and the commands that a person would type."""

    url: str

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": os.environ.get("HOME", "/tmp"),
            "SAM_CLI_TELEMETRY": "0",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_ENDPOINT_URL": self.url,
        }

    def deploy(self, *parameters: str) -> str:
        done = subprocess.run(
            [
                artefact.ROOT / ".venv-sam/bin/sam",
                "deploy",
                "--stack-name",
                STACK,
                "--no-confirm-changeset",
                *(["--parameter-overrides", *parameters] if parameters else []),
            ],
            cwd=artefact.ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    def client(self, service: str) -> Any:
        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )

    def stack(self) -> dict[str, Any]:
        (stack,) = self.client("cloudformation").describe_stacks(StackName=STACK)["Stacks"]
        return dict(stack)

    def outputs(self) -> dict[str, str]:
        return {output["OutputKey"]: output["OutputValue"] for output in self.stack()["Outputs"]}

    @property
    def api_url(self) -> str:
        """The stage's address, as the emulator has it."""
        return f"{self.url}/_aws/execute-api/{self.outputs()['ApiId']}/prod"

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """A request to the deployed API."""
        url = self.api_url + path
        data = None if body is None else json.dumps(body).encode()
        request = Request(url, data, {"Content-Type": "application/json", **headers}, method=method)
        try:
            with urlopen(request, timeout=60) as response:
                return response.status, json.load(response)
        except HTTPError as refused:
            with refused:
                return refused.code, json.load(refused)


@pytest.fixture(scope="module")
def cloud() -> Iterator[Cloud]:
    # It runs the functions on the python3 that it finds, and knows no empty list of services.
    path = f"{artefact.PYTHON.parent}{os.pathsep}{os.environ['PATH']}"
    with emulators.ministack(SERVICES, {"PATH": path, "AWS_EC2_METADATA_DISABLED": "true"}) as url:
        running = Cloud(url)
        running.deploy()
        yield running


def functions(cloud: Cloud) -> dict[str, dict[str, Any]]:
    """The deployed functions by their logical names."""
    found = cloud.client("lambda").list_functions()["Functions"]
    return {f["FunctionName"].split("-")[1]: f for f in found if f["FunctionName"].startswith(f"{STACK}-")}


def test_the_stack_is_made_whole(cloud: Cloud) -> None:
    assert cloud.stack()["StackStatus"] in ("CREATE_COMPLETE", "UPDATE_COMPLETE")
    assert cloud.outputs().keys() == {"BaseUrl", "ApiId", "ControlTable", "ChatsTable"}
    assert functions(cloud)["ApiFunction"]["Runtime"] == "python3.13"
    assert len(functions(cloud)["ApiFunction"]["Layers"]) == 3


def test_its_tables_have_the_keys_that_the_code_writes(cloud: Cloud) -> None:
    for output in ("ControlTable", "ChatsTable"):
        table = cloud.client("dynamodb").describe_table(TableName=cloud.outputs()[output])["Table"]
        keys = [(key["AttributeName"], key["KeyType"]) for key in table["KeySchema"]]
        assert keys == [("pk", "HASH"), ("sk", "RANGE")]


def test_the_functions_are_given_the_tables_names(cloud: Cloud) -> None:
    variables = functions(cloud)["ApiFunction"]["Environment"]["Variables"]
    assert variables["BASTION_CONTROL_TABLE"] == cloud.outputs()["ControlTable"]
    assert variables["BASTION_CHATS_TABLE"] == cloud.outputs()["ChatsTable"]


def test_health_answers_at_the_deployed_address(cloud: Cloud) -> None:
    status, body = cloud.call("GET", "/health")
    assert (status, body["status"]) == (200, "ok")


@pytest.fixture(scope="module")
def client(cloud: Cloud, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenAI]:
    """An account's SDK, on a stack updated to answer everything through ApiFunction and to know a provider."""
    with running_provider() as provider:
        config = write_config(tmp_path_factory.mktemp("deploy") / "bastion.toml", provider)
        cloud.deploy("Streaming=false", f"ConfigFile={config}")
        outputs = cloud.outputs()
        key = new_key(f"dynamodb:{outputs['ControlTable']},{outputs['ChatsTable']}@{cloud.url}")
        with OpenAI(base_url=f"{cloud.api_url}/v1", api_key=key, max_retries=0) as client:
            yield client


def test_an_update_without_streaming_removes_the_stream_function(cloud: Cloud, client: OpenAI) -> None:
    assert cloud.stack()["StackStatus"] == "UPDATE_COMPLETE"
    assert functions(cloud).keys() == {"ApiFunction"}


@pytest.mark.parametrize("prefix", ["/v1", ""])
def test_a_call_without_a_key_is_refused_in_openais_shape(prefix: str, cloud: Cloud, client: OpenAI) -> None:
    status, body = cloud.call("POST", f"{prefix}/chat/completions", {"model": "gpt-4o", "messages": []})
    assert (status, body["error"]["code"]) == (401, "invalid_api_key")


def test_the_real_client_gets_the_providers_answer(client: OpenAI) -> None:
    answer = client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "Hello"}])
    assert answer.choices[0].message.content == "Hello 你好"


def test_the_real_client_reads_a_stream_even_where_it_comes_in_one_piece(client: OpenAI) -> None:
    stream = client.chat.completions.create(
        model="gpt-4o", messages=[{"role": "user", "content": "Hello"}], stream=True
    )
    assert [chunk.choices[0].delta.content for chunk in stream] == ["one", "two"]


def test_what_was_done_stands_in_the_deployed_table(cloud: Cloud, client: OpenAI) -> None:
    client.chat.completions.create(
        model="gpt-4o",
        messages=[{"role": "user", "content": "Hello"}],
        extra_body={"routing": {"chat_id": "deployed"}},
    )
    path = "/api/v2/chats/deployed/context-audit"
    status, audit = cloud.call("GET", path, Authorization=f"Bearer {client.api_key}")
    assert (status, audit["status"]) == (200, "completed")
    items = cloud.client("dynamodb").scan(TableName=cloud.outputs()["ChatsTable"])["Items"]
    assert [item for item in items if "deployed" in item["pk"]["S"]]
