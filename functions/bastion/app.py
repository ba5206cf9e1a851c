"""`create_app`: the service as three lists: routes, middleware, exception handlers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import cast

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route

from bastion.auth import Authenticator
from bastion.cors import cors
from bastion.endpoints.chat_completions import ChatCompletions
from bastion.endpoints.chats import Chats
from bastion.endpoints.context_audit import ContextAudits
from bastion.endpoints.context_preview import ContextPreview
from bastion.endpoints.generations import GenerationsEndpoint
from bastion.endpoints.health import health
from bastion.endpoints.library import collections
from bastion.endpoints.models import Models
from bastion.endpoints.openapi import openapi
from bastion.endpoints.relayed import RELAYED, STATEFUL, Relayed
from bastion.endpoints.settings import SettingsEndpoint
from bastion.problems import MethodNotAllowed, RouteNotFound
from bastion.respond import problem_reply
from bastion.telemetry import JsonEventLog, Telemetry
from contextshift.chats import ChatStore, LibraryStore
from contextshift.errors import ContextShiftError
from contextshift.exchange import Exchange
from contextshift.generating import Generations
from contextshift.interceptors import Interceptor
from contextshift.lore.patterns import PatternEngine
from contextshift.ports import AccountStore, AuditStore, Clock, Random, SettingsStore
from contextshift.rehearsal import Rehearsal

__all__ = ["Services", "create_app"]

_CHAT = "/api/v2/chats/{chat_id}"
_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]


@dataclass(frozen=True, slots=True)
class Services:
    """What the app needs; `bastion.bootstrap` makes it of concrete classes, tests of fakes."""

    exchange: Exchange
    accounts: AccountStore
    audits: AuditStore
    chats: ChatStore
    library: LibraryStore
    settings: SettingsStore
    patterns: PatternEngine
    interceptors: Sequence[Interceptor]
    clock: Clock
    random: Random
    log: JsonEventLog
    max_body: int = 20_000_000
    cors_origins: Sequence[str] = ()
    close: Callable[[], Awaitable[None]] | None = None
    """Lets go of connections and files, where the host says when it stops."""


def create_app(services: Services) -> Starlette:
    """Put the app together."""
    exchange = services.exchange
    rehearsal = Rehearsal(
        exchange.planner,
        services.chats,
        services.library,
        services.clock,
        lambda: services.patterns.session().search,
        services.interceptors,
    )
    generations = Generations(exchange, services.chats, rehearsal)
    app = Starlette(
        routes=_routes(services, generations, rehearsal),
        middleware=[
            cors(services.cors_origins),
            Middleware(Telemetry, log=services.log),
        ],
        exception_handlers={ContextShiftError: _on_problem, HTTPException: _on_http_exception},
        lifespan=_lifespan(services, generations),
    )
    app.router.redirect_slashes = False  # a redirect would drop the method's meaning, and our error's shape
    return app


def _lifespan(services: Services, generations: Generations) -> Callable[[Starlette], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        yield
        await generations.aclose()
        if services.close is not None:
            await services.close()

    return lifespan


def _routes(services: Services, generations: Generations, rehearsal: Rehearsal) -> list[BaseRoute]:
    authenticate = Authenticator(services.accounts, services.clock)
    planner = services.exchange.planner
    completions = ChatCompletions(authenticate, services.exchange, services.max_body)
    models = Models(authenticate, planner)
    preview = ContextPreview(authenticate, planner, rehearsal, services.max_body)
    audits = ContextAudits(authenticate, services.audits, services.clock)
    settings = SettingsEndpoint(authenticate, planner, services.settings, services.clock, services.max_body)
    relayed = Relayed(authenticate, services.exchange, services.max_body)
    routes: list[BaseRoute] = []
    for prefix in ("/v1", ""):
        routes += [
            Route(f"{prefix}/chat/completions", completions.complete, methods=["POST"]),
            Route(f"{prefix}/chat/completions/count", completions.count, methods=["POST"]),
            Route(f"{prefix}/models", models.list, methods=["GET"]),
            Route(f"{prefix}/models/{{model:path}}", models.show, methods=["GET"]),
        ]
        routes += [Route(prefix + path, relayed.relay, methods=["POST"]) for path in RELAYED]
        routes += [Route(prefix + path, relayed.refuse, methods=_METHODS) for root in STATEFUL for path in _below(root)]
    return [
        *routes,
        Route("/api/v2/context-preview", preview.preview, methods=["POST"]),
        Route(f"{_CHAT}/context-audit", audits.show, methods=["GET"]),
        *_chat_routes(services, authenticate, generations),
        *_library_routes(services, authenticate),
        Route("/api/v2/settings", settings.show, methods=["GET"]),
        Route("/api/v2/settings", settings.replace, methods=["PUT"]),
        Route("/openapi.json", openapi, methods=["GET"]),
        Route("/health", health, methods=["GET"]),
    ]


def _chat_routes(services: Services, authenticate: Authenticator, generations: Generations) -> list[BaseRoute]:
    chats = Chats(
        authenticate,
        services.exchange.planner,
        services.chats,
        services.library,
        services.audits,
        services.clock,
        services.random,
        services.max_body,
    )
    replies = GenerationsEndpoint(authenticate, generations, services.clock, services.max_body)
    message, generation = f"{_CHAT}/messages/{{message_id}}", f"{_CHAT}/generations/{{generation_id}}"
    return [
        Route("/api/v2/chats", chats.create, methods=["POST"]),
        Route("/api/v2/chats", chats.list, methods=["GET"]),
        Route(_CHAT, chats.show, methods=["GET"]),
        Route(_CHAT, chats.change, methods=["PATCH"]),
        Route(_CHAT, chats.delete, methods=["DELETE"]),
        Route(f"{_CHAT}/messages", chats.add_message, methods=["POST"]),
        Route(f"{_CHAT}/messages", chats.messages, methods=["GET"]),
        Route(message, chats.message, methods=["GET"]),
        Route(message, chats.edit_message, methods=["PATCH"]),
        Route(message, chats.delete_message, methods=["DELETE"]),
        Route(f"{_CHAT}/branches", chats.fork, methods=["POST"]),
        Route(f"{_CHAT}/branches", chats.branches, methods=["GET"]),
        Route(f"{_CHAT}/generations", replies.start, methods=["POST"]),
        Route(generation, replies.show, methods=["GET"]),
        Route(f"{generation}/cancel", replies.cancel, methods=["POST"]),
    ]


def _library_routes(services: Services, authenticate: Authenticator) -> list[BaseRoute]:
    routes: list[BaseRoute] = []
    for path, kind in collections(authenticate, services.library, services.random, services.max_body).items():
        root, one = f"/api/v2/{path}", f"/api/v2/{path}/{{id}}"
        if kind.imports:
            routes += [
                Route(f"{root}/import", kind.import_, methods=["POST"]),
                Route(f"{one}/export", kind.export, methods=["GET"]),
            ]
        routes += [
            Route(root, kind.create, methods=["POST"]),
            Route(root, kind.list, methods=["GET"]),
            Route(one, kind.show, methods=["GET"]),
            Route(one, kind.replace, methods=["PUT"]),
            Route(one, kind.delete, methods=["DELETE"]),
        ]
    return routes


def _below(root: str) -> tuple[str, ...]:
    """Return a root's own path and all below it."""
    return (root,) if "{" in root else (root, root + "/{rest:path}")


# Starlette types a handler by Exception and Response; a reply is an ASGI app like a Response, which is all it needs.
async def _on_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, ContextShiftError)
    return cast("Response", problem_reply(error, request.url.path))


async def _on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    path = request.url.path
    if error.status_code != 405:
        return cast("Response", problem_reply(RouteNotFound(f"Unknown request URL: {request.method} {path}"), path))
    reply = problem_reply(MethodNotAllowed(f"{request.method} is not a method of this route"), path)
    reply.headers = [*reply.headers, ("allow", ", ".join(sorted(_allowed(request))))]
    return cast("Response", reply)


def _allowed(request: Request) -> set[str]:
    """Return the methods of a path, of all the routes that it has."""
    matching = [
        route
        for route in request.app.routes
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE
    ]
    return {method for route in matching for method in route.methods or ()}
