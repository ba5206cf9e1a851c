"""Providers' keys through the whole service: ours from AWS, the caller's own, an account's own for its own endpoint."""

from __future__ import annotations

import json
import logging
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from bastion.app import create_app
from bastion.bootstrap import Ports, bootstrap
from bastion.config import Config
from bastion.config_file import ConfigError, read_file
from bastion.providers.checked import CheckedBackend, checked_transport
from gateway.emulators import CREDENTIALS
from gateway.providers.aws import Aws, aws
from gateway.providers.scripted import PUBLIC, Loopback, ScriptedResolver
from gateway.world import World, chat
from serving import Upstream, serve

NAME = "llm.acme.example"
OURS, THEIRS, ACCOUNTS = "sk-geheim-deployment", "sk-geheim-caller", "sk-geheim-account"
KEY = "X-Bastion-Provider-Key"

CONFIG = """
[providers.main]
base_url = "{main}/v1"
api_key_secret = "keys"
api_key_field = "MAIN"
[providers.rival]
base_url = "{rival}/v1"
api_key_env = "RIVAL_KEY"

[models.small]
provider = "main"
context_window = 60
max_output = 20
tokenizer = "words"
[models.medium]
provider = "main"
context_window = 120
tokenizer = "words"
input_price = 9.0
output_price = 9.0
[models.large]
provider = "rival"
context_window = 1000
tokenizer = "words"
input_price = 1.0
output_price = 1.0
[models.foreign]
provider = "rival"
context_window = 1000
tokenizer = "words"
regions = ["us"]

[plans.team]
context_swapping = true
smart_truncation = false

[accounts.plain]
plan = "team"
api_keys = ["sk-plain"]
[accounts.bringer]
plan = "team"
api_keys = ["sk-bringer"]
[accounts.bringer.security]
provider_keys = "caller"
[accounts.acme]
plan = "team"
api_keys = ["sk-acme"]
[accounts.acme.security]
provider_keys = "caller"
endpoints.main.base_url = "https://llm.acme.example/own/v1"
[accounts.keyed]
plan = "team"
api_keys = ["sk-keyed"]
[accounts.keyed.security]
endpoints.main.base_url = "https://llm.acme.example/own/v1"
endpoints.main.api_key_parameter = "/keyed/main"
[accounts.inside]
plan = "team"
api_keys = ["sk-inside"]
[accounts.inside.security]
provider_keys = "caller"
endpoints.main.base_url = "https://169.254.169.254/latest"
[accounts.misnamed]
plan = "team"
api_keys = ["sk-misnamed"]
[accounts.misnamed.security]
provider_keys = "caller"
endpoints.main.base_url = "https://llm.misnamed.example/v1"
[accounts.unkeyed]
plan = "team"
api_keys = ["sk-unkeyed"]
[accounts.unkeyed.security]
endpoints.rival.base_url = "https://llm.acme.example/v1"
"""


@dataclass
class Keys(World):
    """The gateway with two upstreams, AWS, and an endpoint of an account behind TLS."""

    rival: Upstream = field(default_factory=Upstream)
    own: Upstream = field(default_factory=Upstream)
    aws: Aws = field(default_factory=Aws)
    resolver: ScriptedResolver = field(default_factory=lambda: ScriptedResolver([PUBLIC]))
    network: Loopback = field(default_factory=lambda: Loopback(0))
    folder: Path = Path()

    def calls(self) -> list[int]:
        """How many calls each upstream got: ours, the rival, the account's own."""
        return [len(upstream.calls) for upstream in (self.upstream, self.rival, self.own)]

    def error(self, answer: httpx.Response) -> tuple[int, str]:
        assert answer.headers["x-should-retry"] == "false"
        return answer.status_code, answer.json()["error"]["code"]


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A certificate for `NAME`, and its key: made here, so that no private key stands in the repository."""
    folder = tmp_path_factory.mktemp("tls")
    paths = str(folder / "certificate.pem"), str(folder / "key.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}", "-out", paths[0], "-keyout", paths[1]],
        check=True, capture_output=True,
    )  # fmt: skip
    return paths


@dataclass
class Servers:
    """What stands around the gateway, with its addresses; empty again for each test."""

    main: Upstream
    rival: Upstream
    own: Upstream
    aws: Aws
    urls: tuple[str, str, str, str]

    def emptied(self) -> Servers:
        for upstream in (self.main, self.rival, self.own):
            upstream.calls.clear()
        self.aws.secrets, self.aws.parameters, self.aws.failing, self.aws.asked = {}, {}, None, []
        return self


@pytest.fixture(scope="module")
def servers(certificate: tuple[str, str]) -> Iterator[Servers]:
    main, rival, own = Upstream(), Upstream(), Upstream()
    tls = {"ssl_certfile": certificate[0], "ssl_keyfile": certificate[1]}
    with serve(main) as url, serve(rival) as rival_url, serve(own, **tls) as own_url, aws() as (held, aws_url):
        yield Servers(main, rival, own, held, (url, rival_url, own_url, aws_url))


@pytest.fixture
def world(
    tmp_path: Path, servers: Servers, certificate: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Keys]:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    held, (main, rival, own, aws_url) = servers.emptied(), servers.urls
    held.aws.secrets["keys"] = json.dumps({"MAIN": {"api_key": OURS, "origin": main}})
    path = tmp_path / "bastion.toml"
    path.write_text(CONFIG.format(main=main, rival=rival), "utf-8")
    resolver, network = ScriptedResolver([PUBLIC]), Loopback(urlsplit(own).port or 0)
    trusted = ssl.create_default_context(cafile=certificate[0])
    ports = Ports(account_transport=lambda: checked_transport(CheckedBackend(resolver, network), trusted))
    environ = {"BASTION_CONFIG": str(path), "BASTION_DATA": str(tmp_path / "data"), "RIVAL_KEY": "sk-geheim-rival"}
    config = Config.from_environ({**environ, "BASTION_SECRETS_ENDPOINT": aws_url})
    with serve(create_app(bootstrap(config, ports))) as gateway, httpx.Client(timeout=20, trust_env=False) as client:
        yield Keys(gateway, held.main, client, held.rival, held.own, held.aws, resolver, network, tmp_path)


def long(**fields: Any) -> dict[str, Any]:
    return chat(("user", 80), model="small", **fields)


# -- ours, from AWS ----------------------------------------------------------------------------------


def test_a_providers_key_is_read_from_its_secret_when_the_first_call_needs_it(world: Keys):
    assert world.aws.asked == []
    for _ in range(3):
        assert world.post(chat(("user", 2)), key="sk-plain").status_code == 200
    assert {call.headers["authorization"] for call in world.upstream.calls} == {f"Bearer {OURS}"}
    assert len(world.aws.asked) == 1


def test_a_secret_that_is_bound_to_another_origin_opens_nothing(world: Keys, caplog: pytest.LogCaptureFixture):
    world.aws.secrets["keys"] = json.dumps({"MAIN": {"api_key": OURS, "origin": "https://api.provider.example"}})
    with caplog.at_level(logging.INFO, "bastion"):
        assert world.error(world.post(chat(("user", 2)), key="sk-plain")) == (502, "provider_key_origin")
    assert world.calls() == [0, 0, 0]
    assert "provider-refused" in caplog.text
    assert "geheim" not in caplog.text


def test_a_missing_secret_is_told_apart_from_one_that_cannot_be_read_now(world: Keys):
    del world.aws.secrets["keys"]
    assert world.error(world.post(chat(("user", 2)), key="sk-plain")) == (502, "provider_key_missing")


def test_a_secret_that_cannot_be_read_now_may_be_asked_for_again(world: Keys):
    world.aws.failing = (500, "InternalServiceError")
    answer = world.post(chat(("user", 2)), key="sk-plain")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "provider_key_unavailable")
    assert "x-should-retry" not in answer.headers
    assert world.calls() == [0, 0, 0]


# -- the caller's ------------------------------------------------------------------------------------


def test_the_callers_key_is_sent_in_the_place_of_ours_and_kept_nowhere(world: Keys, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.DEBUG):
        body = chat(("user", 2), routing={"chat_id": "c"})
        answer = world.post(body, key="sk-bringer", **{KEY: THEIRS})
    assert answer.status_code == 200
    sent = world.upstream.last
    assert sent.headers["authorization"] == f"Bearer {THEIRS}"
    assert str(sent.headers).count("geheim") == 1
    assert KEY.lower() not in sent.headers
    assert world.aws.asked == []
    ours = "".join(record.getMessage() for record in caplog.records if record.name.startswith("bastion"))
    assert "geheim" not in ours + str(answer.headers) + answer.text + world.audit("c", key="sk-bringer").text
    stored = b"".join(path.read_bytes() for path in (world.folder / "data").iterdir())
    assert THEIRS.encode() not in stored


def test_without_the_header_an_account_that_may_bring_a_key_uses_ours(world: Keys):
    assert world.post(chat(("user", 2)), key="sk-bringer").status_code == 200
    assert world.upstream.last.headers["authorization"] == f"Bearer {OURS}"


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/chat/completions/count"])
def test_an_account_that_may_not_bring_a_key_is_refused_before_anything_is_stored_or_sent(world: Keys, path):
    answer = world.post(chat(("user", 2), routing={"chat_id": "c"}), path, key="sk-plain", **{KEY: THEIRS})
    assert world.error(answer) == (403, "provider_key_not_allowed")
    assert "geheim" not in answer.text
    assert world.calls() == [0, 0, 0]
    assert world.audit("c", key="sk-plain").status_code == 404


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/embeddings"])
@pytest.mark.parametrize("own", [False, True])
def test_an_upstream_s_error_that_quotes_the_key_goes_to_nobody(
    world: Keys, path: str, own: bool, caplog: pytest.LogCaptureFixture
):
    key, brought = (THEIRS, {KEY: THEIRS}) if own else (OURS, {})
    world.upstream.then(json.dumps({"error": {"message": f"Incorrect API key provided: {key}."}}).encode(), 401)
    with caplog.at_level(logging.INFO, "bastion"):
        answer = world.post(chat(("user", 2), routing={"chat_id": "c"}), path, key="sk-bringer", **brought)
    assert world.error(answer) == (502, "provider_key_quoted")
    assert answer.headers["x-bastion-generation-id"]
    assert "geheim" not in answer.text + str(answer.headers) + caplog.text
    events = [json.loads(record.message) for record in caplog.records if record.name == "bastion"]
    called = next(event for event in events if event["event"] == "call")
    assert (called["code"], called["upstream_status"]) == ("PROVIDER_KEY_QUOTED", 401)
    if path == "/v1/chat/completions":
        assert world.audit("c", key="sk-bringer").json()["error_code"] == "PROVIDER_KEY_QUOTED"
    masked = b'{"error": {"message": "Incorrect API key provided: sk-ge***ment."}}'
    world.upstream.then(masked, 401)
    assert world.post(chat(("user", 2)), path, key="sk-bringer", **brought).content == masked


FILE = {"role": "user", "content": [{"type": "file", "file": {"file_id": "file-1"}}, {"type": "text", "text": "w"}]}


def test_only_who_opens_the_provider_himself_may_mean_what_it_keeps(world: Keys):
    response = {"model": "small", "input": "x", "previous_response_id": "resp_1"}
    messages = [FILE, *long()["messages"]]
    for path, body in (("/v1/responses", response), ("/v1/chat/completions", {"model": "small", "messages": [FILE]})):
        assert world.error(world.post(body, path, key="sk-bringer")) == (400, "stateful_not_supported")
        assert world.post(body, path, key="sk-bringer", **{KEY: THEIRS}).status_code == 200
    secret = {"api_key": ACCOUNTS, "origin": f"https://{NAME}", "account": "keyed"}
    world.aws.parameters["/keyed/main"] = json.dumps(secret)
    assert world.post(response, "/v1/responses", key="sk-keyed").status_code == 200
    # What is too long for the model would be swapped to the rival, which has no such file.
    answer = world.post({"model": "small", "messages": messages}, key="sk-keyed")
    assert answer.json().get("error", {}).get("code", "") != "stateful_not_supported"
    assert world.calls()[1] == 0


@pytest.mark.parametrize("given", ["", "Bearer sk-geheim", "sk-geheim-ü", "sk-geheim, sk-other", "x" * 5000])
def test_what_is_no_key_is_a_400_that_does_not_quote_it(world: Keys, given):
    raw = {KEY.encode(): given.encode("latin-1")}
    answer = world.client.post(
        world.url + "/v1/chat/completions",
        content=json.dumps(chat(("user", 2))),
        headers={b"authorization": b"Bearer sk-bringer", **raw},
    )
    assert world.error(answer) == (400, "invalid_provider_key")
    assert answer.json()["error"]["param"] == KEY
    assert "geheim" not in answer.text
    assert world.calls() == [0, 0, 0]


@pytest.mark.parametrize("name", ["provider_keys", "endpoints"])
def test_a_request_cannot_allow_itself_what_only_the_account_may(world: Keys, name):
    answer = world.post(chat(("user", 2), routing={name: "caller"}), key="sk-plain")
    assert world.error(answer) == (400, "unknown_setting")


def test_a_swap_never_takes_a_callers_key_to_another_provider(world: Keys):
    assert world.post(chat(("user", 200), model="small"), key="sk-bringer").status_code == 200
    assert world.calls() == [0, 1, 0]  # with our keys the rival's model is the only one that holds it
    body = chat(("user", 200), model="small", routing={"chat_id": "c"})
    answer = world.post(body, key="sk-bringer", **{KEY: THEIRS})
    assert world.error(answer) == (400, "context_length_exceeded")
    assert world.calls() == [0, 1, 0]
    candidates = world.audit("c", key="sk-bringer").json()["candidates"]
    assert {one["model"]: one["reason"] for one in candidates} == {
        "medium": "window",
        "large": "provider-key",
        "foreign": "provider-key",
    }


def test_a_swap_within_the_provider_takes_the_callers_key_along(world: Keys):
    assert world.post(long(), key="sk-bringer", **{KEY: THEIRS}).status_code == 200
    assert world.calls() == [1, 0, 0]
    assert world.upstream.last.json["model"] == "medium"
    assert world.upstream.last.headers["authorization"] == f"Bearer {THEIRS}"


def test_compliance_is_named_before_the_key(world: Keys):
    body = chat(("user", 200), model="small", routing={"chat_id": "c", "max_retention_days": 3})
    assert world.error(world.post(body, key="sk-bringer", **{KEY: THEIRS}))[0] == 403  # it binds the model asked for
    preview = chat(("user", 200), model="small")
    answer = world.post(preview, "/api/v2/context-preview", key="sk-bringer", **{KEY: THEIRS})
    assert {one["reason"] for one in answer.json()["candidates"]} == {"window", "provider-key"}


# -- an account's own endpoint -----------------------------------------------------------------------


def test_an_accounts_endpoint_is_called_under_its_name_at_the_address_that_was_judged(world: Keys):
    for stream in (False, True):
        answer = world.post(chat(("user", 2), stream=stream), key="sk-acme", **{KEY: THEIRS})
        assert answer.status_code == 200
        assert answer.content == world.own.body
    assert world.calls() == [0, 0, 2]
    assert world.network.connected == [PUBLIC]
    assert world.own.last.path == "/own/v1/chat/completions"
    assert world.own.last.headers["host"] == NAME
    assert world.own.last.headers["authorization"] == f"Bearer {THEIRS}"
    assert world.aws.asked == []


def test_an_accounts_endpoint_is_opened_by_the_accounts_own_secret(world: Keys):
    secret = {"api_key": ACCOUNTS, "origin": f"https://{NAME}", "account": "keyed"}
    world.aws.parameters["/keyed/main"] = json.dumps(secret)
    assert world.post(chat(("user", 2)), key="sk-keyed").status_code == 200
    assert world.own.last.headers["authorization"] == f"Bearer {ACCOUNTS}"
    assert world.calls() == [0, 0, 1]


def test_the_deployments_secret_opens_no_accounts_endpoint(world: Keys):
    world.aws.parameters["/keyed/main"] = json.dumps({"api_key": OURS})
    assert world.error(world.post(chat(("user", 2)), key="sk-keyed")) == (502, "provider_key_origin")
    assert world.calls() == [0, 0, 0]


def test_an_endpoint_without_a_key_of_the_account_is_refused_before_anything_is_sent(world: Keys):
    assert world.error(world.post(chat(("user", 2)), key="sk-acme")) == (403, "provider_key_required")
    assert world.calls() == [0, 0, 0]


def test_a_swap_passes_over_an_endpoint_that_nothing_of_the_accounts_opens(world: Keys):
    body = chat(("user", 200), model="small", routing={"chat_id": "c"})
    assert world.error(world.post(body, key="sk-unkeyed")) == (400, "context_length_exceeded")
    reasons = {one["model"]: one["reason"] for one in world.audit("c", key="sk-unkeyed").json()["candidates"]}
    assert reasons == {"medium": "window", "large": "provider-key", "foreign": "provider-key"}


def test_an_endpoint_inside_is_refused_before_anything_is_connected_to(world: Keys):
    answer = world.post(chat(("user", 2), routing={"chat_id": "c"}), key="sk-inside", **{KEY: THEIRS})
    assert world.error(answer) == (403, "endpoint_not_allowed")
    assert world.resolver.asked == []
    assert world.network.connected == []
    ended = world.audit("c", key="sk-inside").json()
    assert (ended["status"], ended["error_code"]) == ("failed", "ENDPOINT_NOT_ALLOWED")


def test_a_name_that_turns_private_is_refused_when_it_is_connected_to(world: Keys):
    world.resolver._answers = [["10.0.0.1"]]
    answer = world.post(chat(("user", 2)), key="sk-acme", **{KEY: THEIRS})
    assert world.error(answer) == (403, "endpoint_not_allowed")
    assert "10.0.0.1" not in answer.text
    assert world.network.connected == []


def test_a_server_without_the_names_certificate_gets_no_key(world: Keys):
    answer = world.post(chat(("user", 2)), key="sk-misnamed", **{KEY: THEIRS})
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_unreachable")
    assert world.calls() == [0, 0, 0]


# -- the configuration -------------------------------------------------------------------------------

PROVIDER = '[providers.main]\nbase_url = "https://a.example/v1"\n'


@pytest.mark.parametrize(
    ("lines", "environ", "place"),
    [
        ('api_key_secret = "s"', {}, ("secretsmanager", "s", None)),
        ('api_key_parameter = "/p"\napi_key_field = "F"', {}, ("ssm", "/p", "F")),
        ('api_key_env = "E"', {"BASTION_PROVIDER_KEYS_SECRET": "s"}, ("secretsmanager", "s", "E")),
        ('api_key_env = "E"', {"BASTION_PROVIDER_KEYS_PARAMETER": "/p"}, ("ssm", "/p", "E")),
        ('api_key_env = "E"', {"BASTION_PROVIDER_KEYS_SECRET": "s", "E": "k"}, None),
        ('api_key_env = "E"', {}, None),
        ("", {"BASTION_PROVIDER_KEYS_SECRET": "s"}, None),
    ],
)
def test_where_a_providers_key_stands(tmp_path: Path, lines: str, environ: dict[str, str], place: object):
    path = tmp_path / "c.toml"
    path.write_text(PROVIDER + lines, "utf-8")
    provider = read_file(path, environ).providers["main"]
    found = provider.secret
    assert (None if found is None else (found.service, found.name, found.field)) == place
    assert provider.api_key == environ.get("E")


@pytest.mark.parametrize(
    "lines",
    [
        'api_key_env = "E"\napi_key_secret = "s"',
        'api_key_secret = "s"\napi_key_parameter = "/p"',
        'api_key_field = "F"',
        'api_key_env = "E"\napi_key_field = "F"',
    ],
)
def test_a_key_stands_in_one_place(tmp_path: Path, lines: str):
    path = tmp_path / "c.toml"
    path.write_text(PROVIDER + lines, "utf-8")
    with pytest.raises(ConfigError, match=r"providers\.main"):
        read_file(path, {})


def test_a_configuration_shows_no_key(tmp_path: Path):
    path = tmp_path / "c.toml"
    path.write_text(PROVIDER + 'api_key_env = "E"\nheaders = { x = "geheim" }\nquery = { k = "geheim" }\n', "utf-8")
    assert "geheim" not in repr(read_file(path, {"E": "geheim"}))


def test_a_key_that_cannot_be_sent_stops_the_start_without_being_quoted(tmp_path: Path):
    path = tmp_path / "c.toml"
    path.write_text(PROVIDER + 'api_key_env = "E"\n', "utf-8")
    environ = {"BASTION_CONFIG": str(path), "BASTION_DATA": str(tmp_path), "E": "geheim und geheim"}
    with pytest.raises(ConfigError, match=r"providers\.main\.api_key_env") as stopped:
        bootstrap(Config.from_environ(environ))
    assert "geheim" not in str(stopped.value)
