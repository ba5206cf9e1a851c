"""Accounts' endpoints: what is connected to is what was judged, and every address of a name is judged."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from bastion.providers.checked import CheckedBackend, SystemResolver, checked_transport
from contextshift.errors import EndpointNotAllowed
from gateway.providers.scripted import OTHER_PUBLIC, PUBLIC, ScriptedNetwork, ScriptedResolver

URL = "https://llm.acme.example/v1/chat/completions"


def run(
    work: Callable[[httpx.AsyncBaseTransport], Awaitable[Any]], resolver: ScriptedResolver, network: ScriptedNetwork
) -> Any:
    async def inside() -> Any:
        async with checked_transport(CheckedBackend(resolver, network)) as transport:
            return await work(transport)

    return asyncio.run(inside())


async def post(transport: httpx.AsyncBaseTransport, url: str = URL, connect: float = 5.0) -> httpx.Response:
    """Post as a provider does, and read the answer."""
    request = httpx.Request("POST", url, content=b"{}", extensions={"timeout": {"connect": connect}})
    response = await transport.handle_async_request(request)
    await response.aread()
    return response


def test_a_name_is_resolved_once_and_the_address_that_was_judged_is_connected_to_under_the_name():
    resolver, network = ScriptedResolver([PUBLIC]), ScriptedNetwork()
    assert run(post, resolver, network).status_code == 200
    assert resolver.asked == [("llm.acme.example", 443)]
    assert network.connected == [(PUBLIC, 443)]
    assert network.names == ["llm.acme.example"]
    assert b"\r\nHost: llm.acme.example\r\n" in network.written[0]


PRIVATE = [
    "10.0.0.1", "127.0.0.1", "169.254.169.254", "100.64.0.1", "::1", "fe80::1%2", "fd00:ec2::254", "::ffff:10.0.0.1",
    "64:ff9b::a9fe:a9fe", "2002:a00:1::", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2606:4700::5efe:10.0.0.1", "0.0.0.0",
]  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE)
@pytest.mark.parametrize("beside", [[], [PUBLIC], [PUBLIC, OTHER_PUBLIC]])
def test_one_address_that_is_not_public_refuses_the_name_before_anything_is_connected_to(address, beside):
    for answer in ([address, *beside], [*beside, address]):
        network = ScriptedNetwork()
        with pytest.raises(EndpointNotAllowed) as refused:
            run(post, ScriptedResolver(answer), network)
        assert network.connected == []
        assert address not in str(refused.value)


def test_a_name_that_resolves_to_something_private_a_moment_later_gets_no_second_connection():
    resolver = ScriptedResolver([PUBLIC], ["169.254.169.254"])
    network = ScriptedNetwork(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}")

    async def twice(transport: httpx.AsyncBaseTransport) -> None:
        assert (await post(transport)).status_code == 200
        with pytest.raises(EndpointNotAllowed):
            await post(transport)

    run(twice, resolver, network)
    assert network.connected == [(PUBLIC, 443)]


def test_a_connection_that_was_made_is_kept_and_asks_no_resolver_again():
    resolver, network = ScriptedResolver([PUBLIC], ["10.0.0.1"]), ScriptedNetwork()

    async def twice(transport: httpx.AsyncBaseTransport) -> list[int]:
        return [(await post(transport)).status_code for _ in range(2)]

    assert run(twice, resolver, network) == [200, 200]
    assert network.connected == [(PUBLIC, 443)]


def test_two_names_at_one_address_never_share_a_connection():
    network = ScriptedNetwork()

    async def both(transport: httpx.AsyncBaseTransport) -> None:
        await post(transport)
        await post(transport, "https://llm.other.example/v1/chat/completions")

    run(both, ScriptedResolver([PUBLIC]), network)
    assert network.names == ["llm.acme.example", "llm.other.example"]


def test_an_address_that_does_not_answer_is_followed_by_the_next_that_was_judged():
    resolver, network = ScriptedResolver([PUBLIC, OTHER_PUBLIC]), ScriptedNetwork(dead=[PUBLIC])
    assert run(post, resolver, network).status_code == 200
    assert [host for host, _ in network.connected] == [PUBLIC, OTHER_PUBLIC]
    assert len(resolver.asked) == 1


@pytest.mark.parametrize("answer", [[], socket.gaierror(8, "unknown"), UnicodeError("label too long")])
def test_a_name_without_an_address_is_a_connect_error(answer):
    network = ScriptedNetwork()
    with pytest.raises(httpx.ConnectError):
        run(post, ScriptedResolver(answer), network)
    assert network.connected == []


def test_a_literal_address_is_judged_where_it_is_connected_to_as_well():
    async def literal(transport: httpx.AsyncBaseTransport) -> None:
        await post(transport, "https://127.0.0.1/v1")

    network = ScriptedNetwork()
    with pytest.raises(EndpointNotAllowed):
        run(literal, ScriptedResolver(["127.0.0.1"]), network)
    assert network.connected == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_comes_back_as_it_is_and_is_not_followed(status):
    head = f"HTTP/1.1 {status} Moved\r\nlocation: https://169.254.169.254/latest\r\ncontent-length: 4\r\n\r\ngone"
    network = ScriptedNetwork(head.encode())
    answer = run(post, ScriptedResolver([PUBLIC]), network)
    assert (answer.status_code, answer.content) == (status, b"gone")
    assert len(network.connected) == 1


def test_a_cookie_of_one_answer_goes_out_with_no_other_call():
    network = ScriptedNetwork(b"HTTP/1.1 200 OK\r\nset-cookie: a=1; Secure\r\ncontent-length: 2\r\n\r\n{}")

    async def twice(transport: httpx.AsyncBaseTransport) -> None:
        await post(transport)
        await post(transport)

    run(twice, ScriptedResolver([PUBLIC]), network)
    assert not any(b"cookie" in written.lower() for written in network.written)


def test_a_resolver_that_never_answers_costs_the_connect_timeout_and_no_more():
    async def inside() -> None:
        async def never(host: str, port: int) -> list[str]:
            await asyncio.Event().wait()
            return []

        with pytest.raises(httpx.ConnectTimeout):
            async with checked_transport(CheckedBackend(never, ScriptedNetwork())) as transport:
                await post(transport, connect=0.01)

    asyncio.run(inside())


def test_the_systems_resolver_works_on_threads_of_its_own():
    async def inside() -> tuple[set[str], set[str]]:
        before = {thread.name for thread in threading.enumerate()}
        resolver = SystemResolver()
        found = await resolver("127.0.0.1", 443)
        return set(found), {thread.name for thread in threading.enumerate()} - before

    found, started = asyncio.run(inside())
    assert found == {"127.0.0.1"}
    assert all(name.startswith("resolver") for name in started)
