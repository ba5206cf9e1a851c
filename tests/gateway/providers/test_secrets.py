"""Keys in AWS, read through boto3 over real HTTP."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from bastion.providers.secrets import AwsSecrets, SecretKeys
from contextshift.endpoints import SecretPlace
from contextshift.errors import ProviderKeyMissing, ProviderKeyUnavailable
from contextshift.fakes import FixedClock
from gateway.emulators import CREDENTIALS
from gateway.providers.aws import Aws, aws

ROOT = Path(__file__).parents[3]
ARN = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:keys-AbCdEf"


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Aws, AwsSecrets]]:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    with aws() as (service, url):
        yield service, AwsSecrets(url)


def read(secrets: AwsSecrets, service: str, name: str, field: str | None = None) -> str:
    return asyncio.run(SecretKeys(secrets, FixedClock()).source(SecretPlace(service, name, field)).get()).text


def test_a_secret_is_read_by_name_and_by_arn_in_the_region_that_the_arn_names(held):
    service, secrets = held
    service.secrets = {"bastion/openai": "sk-1", ARN: '{"OPENAI_API_KEY": "sk-2", "OTHER": "sk-3"}', "bin": b"sk-4"}
    assert read(secrets, "secretsmanager", "bastion/openai") == "sk-1"
    assert read(secrets, "secretsmanager", ARN, "OPENAI_API_KEY") == "sk-2"
    assert read(secrets, "secretsmanager", "bin") == "sk-4"
    assert [scope.split("/")[2] for scope in service.signed_for] == ["us-east-1", "eu-west-1", "us-east-1"]


def test_a_parameter_is_read_decrypted(held):
    service, secrets = held
    service.parameters = {"/bastion/openai": "sk-1"}
    assert read(secrets, "ssm", "/bastion/openai") == "sk-1"
    assert service.asked == [("AmazonSSM.GetParameter", {"Name": "/bastion/openai", "WithDecryption": True})]


@pytest.mark.parametrize("service", ["secretsmanager", "ssm"])
def test_what_is_not_there_or_not_allowed_is_missing(held, service):
    world, secrets = held
    with pytest.raises(ProviderKeyMissing):
        read(secrets, service, "nothing")
    world.failing = (400, "AccessDeniedException")
    with pytest.raises(ProviderKeyMissing) as refused:
        read(secrets, service, "nothing")
    assert "AccessDeniedException" in str(refused.value)
    assert "arn:" not in str(refused.value)


@pytest.mark.parametrize("failure", [(500, "InternalServiceError"), (400, "ThrottlingException"), (503, "x")])
def test_what_repeating_may_cure_is_unavailable_after_two_tries(held, failure):
    service, secrets = held
    service.failing = failure
    with pytest.raises(ProviderKeyUnavailable):
        read(secrets, "secretsmanager", "s")
    assert len(service.asked) == 2


def test_a_service_that_cannot_be_reached_is_unavailable(held):
    with pytest.raises(ProviderKeyUnavailable):
        read(AwsSecrets("http://127.0.0.1:9"), "ssm", "s")


def test_many_calls_at_once_read_once_and_the_client_is_kept(held):
    service, secrets = held
    service.secrets = {"s": "sk-1"}

    async def inside() -> list[str]:
        keys = SecretKeys(secrets, FixedClock())
        found = await asyncio.gather(*(keys.source(SecretPlace("secretsmanager", "s")).get() for _ in range(30)))
        return [key.text for key in found]

    assert asyncio.run(inside()) == ["sk-1"] * 30
    assert len(service.asked) == 1


def test_no_more_keys_are_remembered_than_a_few_hundred():
    keys = SecretKeys(AwsSecrets(), FixedClock())
    first = keys.source(SecretPlace("ssm", "0"))
    for number in range(1, 300):
        keys.source(SecretPlace("ssm", str(number)))
    assert keys.source(SecretPlace("ssm", "299")) is keys.source(SecretPlace("ssm", "299"))
    assert keys.source(SecretPlace("ssm", "0")) is not first


def test_a_start_imports_no_boto3_for_keys_that_stand_in_aws(tmp_path):
    config = tmp_path / "bastion.toml"
    config.write_text('[providers.main]\nbase_url = "https://a.example/v1"\napi_key_secret = "s"\n', "utf-8")
    code = (
        "import sys; sys.path[:0] = ['layers/core', 'functions']\n"
        "from bastion.bootstrap import bootstrap; from bastion.config import Config\n"
        f"bootstrap(Config.from_environ({{'BASTION_CONFIG': {str(config)!r}, 'BASTION_DATA': {str(tmp_path)!r}}}))\n"
        "print('boto3' in sys.modules or 'botocore' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_whatever_regions_accounts_name_few_clients_are_kept():
    class Client:
        def get_parameter(self, **request: object) -> object:
            return {"Parameter": {"Value": "sk-1"}}

    made: list[weakref.ref[Client]] = []

    class Counting(AwsSecrets):
        def _made(self, service: str, region: str | None) -> Client:
            client = Client()
            made.append(weakref.ref(client))
            return client

    secrets = Counting()
    places = [f"arn:aws:ssm:xx-{n}:1:parameter/k" for n in range(30)]
    assert {read(secrets, "ssm", place) for place in places} == {"sk-1"}
    gc.collect()
    assert len(made) == 30
    assert sum(one() is not None for one in made) <= 4
    read(secrets, "ssm", places[-1])
    assert len(made) == 30
