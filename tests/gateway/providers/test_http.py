"""Whose key goes where: each key to its own origin, under its own account, and to nobody else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from bastion.providers.accounts import AccountEndpoints
from bastion.providers.http import HttpProvider, Upstream
from bastion.providers.keys import CachedKey, FixedKey, KeySource, ProviderKey, parse_key
from bastion.providers.secrets import AwsSecrets, SecretKeys
from contextshift.endpoints import Endpoint, SecretPlace
from contextshift.errors import (
    ContextShiftError,
    EndpointNotAllowed,
    ProviderBroken,
    ProviderKeyMissing,
    ProviderKeyOrigin,
    ProviderKeyRequired,
    ProviderUnreachable,
)
from contextshift.fakes import FixedClock, ListLog
from contextshift.ports import ProviderCall

OURS, THEIRS, ACCOUNTS = "sk-deployment-geheim", "sk-caller-geheim", "sk-account-geheim"
BASE = "https://api.provider.example/v1"
OWN = "https://llm.acme.example/v1"


class Secrets(AwsSecrets):
    """Holds texts by name, and says what it was asked for."""

    def __init__(self, **texts: str) -> None:
        super().__init__()
        self.texts = texts
        self.asked: list[str] = []

    async def read(self, place: SecretPlace) -> str:
        self.asked.append(place.name)
        if place.name not in self.texts:
            raise ProviderKeyMissing("nothing there")
        return self.texts[place.name]


@dataclass
class Bench:
    """A provider over two recorded clients: the deployment's own, and that of accounts' endpoints."""

    upstream: Upstream = field(default_factory=lambda: Upstream("main", BASE))
    keys: KeySource = field(default_factory=lambda: FixedKey(ProviderKey(OURS)))
    secrets: Secrets = field(default_factory=Secrets)
    answer: Callable[[httpx.Request], httpx.Response] = lambda _: httpx.Response(200, json={})
    main: list[httpx.Request] = field(default_factory=list)
    checked: list[httpx.Request] = field(default_factory=list)
    log: ListLog = field(default_factory=ListLog)

    def send(self, **call: Any) -> int:
        return asyncio.run(self._send(ProviderCall("/chat/completions", b"{}", **call)))

    async def _send(self, call: ProviderCall) -> int:
        accounts = AccountEndpoints(SecretKeys(self.secrets, FixedClock()), lambda: self._transport(self.checked))
        transport = self._transport(self.main)
        provider = HttpProvider(transport, self.upstream, self.keys, accounts, self.log, jitter=lambda: -0.5)
        answer = await provider.send(call)
        await answer.aclose()
        await transport.aclose()
        await accounts.aclose()
        return answer.status

    def _transport(self, requests: list[httpx.Request]) -> httpx.AsyncBaseTransport:
        def handle(request: httpx.Request) -> httpx.Response:
            requests.append(request)
            return self.answer(request)

        return httpx.MockTransport(handle)

    def refused(self, kind: type[ContextShiftError], **call: Any) -> ContextShiftError:
        """Send what must be refused before anything leaves, without a word about any key."""
        with pytest.raises(kind) as refused:
            self.send(**call)
        assert self.main == self.checked == []
        assert "geheim" not in str(refused.value)
        assert "geheim" not in json.dumps(self.log.events)
        return refused.value


def sent(request: httpx.Request) -> str:
    return "\n".join(f"{name}: {value}" for name, value in request.headers.items()) + str(request.url)


# -- the deployment's key ----------------------------------------------------------------------------


def test_the_deployments_key_goes_to_the_providers_address():
    bench = Bench()
    assert bench.send() == 200
    (request,) = bench.main
    assert request.headers["authorization"] == f"Bearer {OURS}"
    assert str(request.url) == f"{BASE}/chat/completions"


def test_a_key_may_stand_in_a_header_of_its_own_and_replaces_whatever_is_configured_there():
    bench = Bench(Upstream("main", BASE, "header:Api-Key", {"API-KEY": "old", "X-Extra": "1"}, {"api-version": "7"}))
    bench.send()
    (request,) = bench.main
    assert request.headers.get_list("api-key") == [OURS]
    assert "authorization" not in request.headers
    assert (request.headers["x-extra"], request.url.params["api-version"]) == ("1", "7")


def test_a_provider_without_a_key_is_called_without_one():
    bench = Bench(keys=FixedKey(None))
    bench.send()
    assert "authorization" not in bench.main[0].headers


def test_a_base_url_that_was_changed_without_its_keys_binding_gets_no_key():
    bound = parse_key(json.dumps({"api_key": OURS, "origin": BASE}))
    assert Bench(keys=FixedKey(bound)).send() == 200
    for changed in ("https://api.provider.example.evil.example/v1", "http://api.provider.example/v1", f"{OWN}:444"):
        bench = Bench(Upstream("main", changed), keys=FixedKey(bound))
        bench.refused(ProviderKeyOrigin)
        (event,) = bench.log.events
        assert (event["event"], event["code"], event["provider"]) == ("provider-refused", "PROVIDER_KEY_ORIGIN", "main")


def test_an_accounts_key_is_never_used_as_the_deployments():
    Bench(keys=FixedKey(ProviderKey(ACCOUNTS, "https://api.provider.example", "acme"))).refused(ProviderKeyOrigin)


def test_a_key_that_is_refused_is_looked_up_again_and_a_callers_is_not():
    class Noted(FixedKey):
        refusals = 0

        def refused(self, key: ProviderKey) -> None:
            assert key.text == OURS
            self.refusals += 1

    noted = Noted(ProviderKey(OURS))
    bench = Bench(keys=noted, answer=lambda _: httpx.Response(401, stream=httpx.ByteStream(b"")))
    assert bench.send() == 401
    assert noted.refusals == 1
    assert bench.send(key=THEIRS) == 401
    assert noted.refusals == 1
    bench.answer = lambda _: httpx.Response(403, stream=httpx.ByteStream(b""))
    bench.send()
    assert noted.refusals == 1


def test_a_key_that_was_replaced_is_found_by_the_next_call():
    secrets, clock = Secrets(main=OURS), FixedClock()

    async def inside() -> list[str]:
        seen: list[str] = []

        def answer(request: httpx.Request) -> httpx.Response:
            seen.append(request.headers["authorization"])
            return httpx.Response(200 if seen[-1].endswith("new") else 401, stream=httpx.ByteStream(b""))

        keys = SecretKeys(secrets, clock)
        provider = HttpProvider(
            httpx.MockTransport(answer), Upstream("main", BASE), keys.source(SecretPlace("ssm", "main"))
        )
        for pause in (0, 60, 0):
            clock.advance(pause)
            await provider.send(ProviderCall("/x", b"{}"))
            secrets.texts["main"] = "sk-new"
        return seen

    assert asyncio.run(inside()) == [f"Bearer {OURS}", "Bearer sk-new", "Bearer sk-new"]


def test_a_missing_secret_leaves_an_event_and_sends_nothing():
    async def read() -> ProviderKey:
        raise ProviderKeyMissing("nothing there")

    bench = Bench(keys=CachedKey(read, FixedClock()))
    bench.refused(ProviderKeyMissing, account="acme")
    assert bench.log.events[0]["account"] == "acme"


# -- the caller's key --------------------------------------------------------------------------------


def test_a_callers_key_is_sent_instead_of_ours_and_without_what_says_who_we_are():
    headers = {"X-Extra": "1", "OpenAI-Organization": "org-geheim", "Cookie": "geheim", "Authorization": "geheim"}
    bench = Bench(Upstream("main", BASE, "header:api-key", headers, {"api-version": "7"}))
    bench.send(key=THEIRS, account="acme")
    (request,) = bench.main
    assert request.headers["api-key"] == THEIRS
    assert (request.headers["x-extra"], request.url.params["api-version"]) == ("1", "7")
    assert sent(request).count("geheim") == 1


def test_a_callers_key_shows_in_no_representation():
    assert "geheim" not in repr(ProviderCall("/x", b"", key=THEIRS))


# -- the account's own endpoint ----------------------------------------------------------------------


def test_an_accounts_endpoint_gets_the_callers_key_and_nothing_of_the_deployments():
    upstream = Upstream("main", BASE, headers={"x-secret": "geheim", "authorization": "geheim"}, query={"k": "geheim"})
    bench = Bench(upstream)
    bench.send(key=THEIRS, account="acme", endpoint=Endpoint(OWN + "/"))
    (request,) = bench.checked
    assert bench.main == []
    assert str(request.url) == f"{OWN}/chat/completions"
    assert request.headers["authorization"] == f"Bearer {THEIRS}"
    assert sent(request).count("geheim") == 1


def account_secret(**fields: str | None) -> str:
    known = {"api_key": ACCOUNTS, "origin": "https://llm.acme.example", "account": "acme", **fields}
    return json.dumps({name: value for name, value in known.items() if value is not None})


def test_an_accounts_endpoint_is_opened_by_the_accounts_secret():
    for endpoint in (Endpoint(OWN, api_key_secret="own"), Endpoint(OWN, api_key_parameter="own")):
        bench = Bench(secrets=Secrets(own=account_secret()))
        bench.send(account="acme", endpoint=endpoint)
        assert bench.checked[0].headers["authorization"] == f"Bearer {ACCOUNTS}"
        assert bench.main == []


@pytest.mark.parametrize(
    "text",
    [
        OURS,
        account_secret(account=None),
        account_secret(origin=None),
        account_secret(account="other"),
        account_secret(origin="https://api.openai.com"),
        account_secret(origin="http://llm.acme.example"),
    ],
)
def test_a_secret_that_is_not_the_accounts_for_this_origin_opens_nothing(text):
    bench = Bench(secrets=Secrets(own=text))
    bench.refused(ProviderKeyOrigin, account="acme", endpoint=Endpoint(OWN, api_key_secret="own"))


def test_an_endpoint_without_a_key_of_the_account_is_not_called():
    Bench().refused(ProviderKeyRequired, account="acme", endpoint=Endpoint(OWN))
    Bench().refused(ProviderKeyMissing, account="acme", endpoint=Endpoint(OWN, api_key_secret="nothing"))


@pytest.mark.parametrize(
    "base_url",
    [
        "http://llm.acme.example/v1", "https://user:pw@llm.acme.example", "https://llm.acme.example@10.0.0.1",
        "https://10.0.0.1", "https://127.1", "https://2130706433", "https://0x7f000001", "https://0177.0.0.1",
        "https://[::1]", "https://[::ffff:10.0.0.1]", "https://[64:ff9b::a00:1]", "https://[fe80::1%25eth0]",
        "https://localhost", "https://llm.acme.example.", "https://bücher.example", "https://llm.acme.example:0",
        "https://llm.acme.example:65536", "https://llm.acme.example?x", "https://llm.acme.example#x",
        "https://llm.acme.example\\@10.0.0.1", "https://llm.acme.example\n", " https://llm.acme.example", "https://",
        "https:///v1", "https://xn--0.example", "https://[8.8.8.8]", "https://８.8.8.8", "", "ftp://llm.acme.example",
    ],
)  # fmt: skip
def test_an_address_that_cannot_be_public_is_refused_before_a_secret_is_read(base_url):
    bench = Bench(secrets=Secrets(own=account_secret()))
    bench.refused(EndpointNotAllowed, account="acme", endpoint=Endpoint(base_url, api_key_secret="own"))
    assert bench.secrets.asked == []
    bench.refused(EndpointNotAllowed, account="acme", endpoint=Endpoint(base_url), key=THEIRS)


@pytest.mark.parametrize(
    "base_url", ["https://XN--BCHER-KVA.example/v1", "https://1.1.1.1:8443", "https://[2606:4700:4700::1111]/v1"]
)
def test_other_public_addresses_are_called_as_they_are_written(base_url):
    bench = Bench()
    assert bench.send(account="acme", endpoint=Endpoint(base_url), key=THEIRS) == 200
    assert str(bench.checked[0].url).lower().startswith(base_url.lower())


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_an_answer_and_no_key_follows_it(status):
    moved = httpx.Response(status, headers={"location": "https://evil.example/"})
    for call in ({}, {"key": THEIRS}, {"key": THEIRS, "account": "acme", "endpoint": Endpoint(OWN)}):
        bench = Bench(answer=lambda _: moved)
        assert bench.send(**call) == status
        assert len(bench.main) + len(bench.checked) == 1


# -- connections -------------------------------------------------------------------------------------


def failing(times: int, error: type[httpx.TransportError]) -> Callable[[httpx.Request], httpx.Response]:
    left = [times]

    def answer(request: httpx.Request) -> httpx.Response:
        left[0] -= 1
        if left[0] >= 0:
            raise error("no", request=request)
        return httpx.Response(200)

    return answer


@pytest.mark.parametrize("error", [httpx.ConnectError, httpx.ConnectTimeout])
def test_a_connection_that_could_not_be_made_is_tried_twice_more(error):
    bench = Bench(answer=failing(2, error))
    assert bench.send() == 200
    assert len(bench.main) == 3
    bench = Bench(answer=failing(3, error))
    with pytest.raises(ProviderUnreachable):
        bench.send()
    assert len(bench.main) == 3


@pytest.mark.parametrize("error", [httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError])
def test_what_was_perhaps_sent_is_not_sent_again(error):
    bench = Bench(answer=failing(1, error))
    with pytest.raises(ProviderBroken):
        bench.send()
    assert len(bench.main) == 1


def test_an_address_that_is_not_allowed_is_not_tried_again():
    def refuse(request: httpx.Request) -> httpx.Response:
        raise EndpointNotAllowed

    bench = Bench(answer=refuse)
    with pytest.raises(EndpointNotAllowed):
        bench.send(account="acme", endpoint=Endpoint(OWN), key=THEIRS)
    assert len(bench.checked) == 1
    assert bench.log.events[0]["code"] == "ENDPOINT_NOT_ALLOWED"
