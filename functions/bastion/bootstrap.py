"""`bootstrap`: the one place that names concrete classes. Tests pass fakes through its arguments."""

from __future__ import annotations

import logging
import os
import secrets
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import httpx
from starlette.types import ASGIApp

from bastion.app import Services, create_app
from bastion.config import Config
from bastion.config_file import AccountConfig, ConfigError, ProviderConfig
from bastion.patterns import RegexPatterns
from bastion.providers.accounts import AccountEndpoints
from bastion.providers.echo import EchoProvider
from bastion.providers.embeddings import EmbeddingRelevance
from bastion.providers.http import HttpProvider, Upstream
from bastion.providers.keys import FixedKey, KeySource, parse_key
from bastion.providers.secrets import AwsSecrets, SecretKeys
from bastion.providers.transports import new_transport
from bastion.stores.configured import ConfiguredAccounts
from bastion.telemetry import JsonEventLog
from bastion.tokenizers.registry import TOKENIZERS, counter_for, family_of
from contextshift.calibrating import Calibrator
from contextshift.catalogue import Catalogue, Model
from contextshift.chats import ChatStore, LibraryStore
from contextshift.errors import ModelNotFound, ProviderKeyMissing
from contextshift.exchange import Exchange
from contextshift.interceptors import Interceptor
from contextshift.keys import hash_key
from contextshift.planner import Planner
from contextshift.ports import (
    Access,
    AccountAdmin,
    AuditStore,
    Clock,
    KeyRecord,
    Provider,
    Random,
    SettingsRecord,
)
from contextshift.registry import INTERCEPTORS, ContextStrategyRegistry, load_plugins
from contextshift.relevance import Rater
from contextshift.tokens import TokenCounter

__all__ = ["Ports", "SystemClock", "SystemRandom", "bootstrap", "lambda_app"]


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        """Return seconds since the epoch."""
        return time.time()


class SystemRandom:
    """The operating system's randomness."""

    def token(self, size: int) -> bytes:
        """Return ``size`` unpredictable bytes."""
        return secrets.token_bytes(size)


@dataclass(frozen=True, slots=True)
class Ports:
    """What may be put in the place of a concrete class; None means the real one."""

    clock: Clock = field(default_factory=SystemClock)
    random: Random = field(default_factory=SystemRandom)
    accounts: AccountAdmin | None = None
    audits: AuditStore | None = None
    chats: ChatStore | None = None
    library: LibraryStore | None = None
    interceptors: Sequence[Interceptor] = ()
    providers: Mapping[str, Provider] | None = None
    account_transport: Callable[[], httpx.AsyncBaseTransport] | None = None
    """Makes the transport of accounts' own endpoints."""
    log: JsonEventLog = field(default_factory=JsonEventLog)


def bootstrap(config: Config, ports: Ports | None = None) -> Services:
    """Make the services that a configuration asks for. Nothing here does I/O."""
    ports = ports or Ports()
    _check_tokenizers(config.file.whole)
    counter = _counters(config)
    closing = AsyncExitStack()
    stores = _stores(config, ports, closing)
    providers = ports.providers or _providers(config, ports, counter, closing)
    registry = ContextStrategyRegistry()
    registry.load(config.strategies)
    planner = Planner(
        config.file.catalogue, config.file.plans, counter, registry, _rater(config, providers), ports.clock
    )
    known = ConfiguredAccounts(
        _configured(config.file.accounts),
        stores.accounts,
        ports.clock,
        stores.accounts,
        seconds=5.0 if config.embedded_store else 0.0,
    )
    calibrator = Calibrator(known, ports.clock, ports.log)
    closing.push_async_callback(calibrator.aclose)
    exchange = Exchange(
        planner,
        providers,
        stores.audits,
        ports.clock,
        ports.random,
        ports.log,
        timeout=config.timeout,
        calibrator=calibrator,
        first_byte=config.first_byte,
    )
    return Services(
        exchange=exchange,
        accounts=known,
        audits=stores.audits,
        chats=stores.chats,
        library=stores.library,
        settings=known,
        patterns=RegexPatterns(),
        interceptors=[*ports.interceptors, *(found for _, found in load_plugins(INTERCEPTORS, config.interceptors))]
        if config.interceptors
        else list(ports.interceptors),
        clock=ports.clock,
        random=ports.random,
        log=ports.log,
        max_body=config.max_body,
        cors_origins=config.cors_origins,
        close=closing.aclose,
    )


def lambda_app() -> ASGIApp:
    """Make the app of a Lambda function from its environment."""
    log_to_stdout()
    return create_app(bootstrap(Config.from_environ(os.environ)))


def log_to_stdout() -> None:
    """Write the service's events as bare lines; a host that already has a root handler keeps it out of this."""
    logger = logging.getLogger("bastion")
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger.handlers[:] = [handler]
    logger.setLevel(logging.INFO)
    logger.propagate = False


def _check_tokenizers(catalogue: Catalogue) -> None:
    for model in catalogue.models.values():
        if model.tokenizer is not None and model.tokenizer not in TOKENIZERS:
            raise ConfigError(f"models.{model.name}.tokenizer: must be one of {', '.join(TOKENIZERS)}")


def _counters(config: Config) -> Callable[[Model], TokenCounter]:
    """Return the counter of a model; models of one family and tokenizer share one, and with it its counts."""
    folders = (config.vocab,)

    @cache  # bounded by the families and tokenizers there are
    def counter(tokenizer: str | None, family: str) -> TokenCounter:
        return counter_for(tokenizer, family, folders)

    def of(model: Model) -> TokenCounter:
        family = family_of(model.upstream_name)
        # An overlay may name a tokenizer that only a later version has.
        known = model.tokenizer is None or model.tokenizer in TOKENIZERS
        return counter(model.tokenizer if known else "estimate", family.prefix if family else "")

    return of


@dataclass(frozen=True, slots=True)
class _Stores:
    """One kind of store for everything, so that a deletion takes all that belongs together."""

    accounts: AccountAdmin
    audits: AuditStore
    chats: ChatStore
    library: LibraryStore


def _stores(config: Config, ports: Ports, closing: AsyncExitStack) -> _Stores:
    """Return the ports given, in memory what is missing beside them; else what the configuration names."""
    if ports.accounts is not None and ports.audits is not None:
        return _given_stores(ports, ports.accounts, ports.audits)
    if config.control_table is not None and config.chats_table is not None:
        # Importing boto3 takes longer than all the rest: only who uses it pays.
        from bastion.stores import dynamodb

        client = dynamodb.dynamodb_client(endpoint=config.dynamodb_endpoint)
        own: dict[str, Any] = {"clock": ports.clock, "random": ports.random}
        return _Stores(
            dynamodb.DynamoAccounts(client, config.control_table, **own),
            dynamodb.DynamoAuditStore(client, config.chats_table, **own),
            dynamodb.DynamoChats(client, config.chats_table, **own),
            dynamodb.DynamoLibrary(client, config.chats_table, **own),
        )
    if not config.embedded_store:
        raise ConfigError("BASTION_CONTROL_TABLE and BASTION_CHATS_TABLE must name the tables")
    from bastion.stores import sqlite

    database = sqlite.SqliteDatabase(config.data / "bastion.sqlite3")
    closing.callback(database.close)
    return _Stores(
        sqlite.SqliteAccounts(database, clock=ports.clock),
        sqlite.SqliteAuditStore(database, clock=ports.clock, random=ports.random),
        sqlite.SqliteChats(database, clock=ports.clock, random=ports.random),
        sqlite.SqliteLibrary(database, clock=ports.clock),
    )


def _given_stores(ports: Ports, accounts: AccountAdmin, audits: AuditStore) -> _Stores:
    from contextshift.fakes import MemoryAuditStore, MemoryChats, MemoryLibrary

    lives = audits if isinstance(audits, MemoryAuditStore) else MemoryAuditStore(ports.clock)
    return _Stores(
        accounts,
        audits,
        ports.chats or MemoryChats(lives, ports.clock),
        ports.library or MemoryLibrary(ports.clock),
    )


def _providers(
    config: Config, ports: Ports, counter: Callable[[Model], TokenCounter], closing: AsyncExitStack
) -> dict[str, Provider]:
    transport = new_transport()
    secrets = SecretKeys(AwsSecrets(config.secrets_endpoint), ports.clock)
    accounts = AccountEndpoints(secrets, ports.account_transport)
    for close in (transport.aclose, secrets.aclose, accounts.aclose):
        closing.push_async_callback(close)

    def made(provider: ProviderConfig) -> Provider:
        if provider.kind == "echo":
            return _echo(config.file.catalogue, ports.clock, counter)
        upstream = Upstream(provider.name, provider.base_url, provider.auth, provider.headers, provider.query)
        return HttpProvider(transport, upstream, _key(provider, secrets), accounts, ports.log)

    return {name: made(provider) for name, provider in config.file.providers.items()}


def _key(provider: ProviderConfig, secrets: SecretKeys) -> KeySource:
    """Return where a provider's key comes from. Raises ConfigError where it is given and makes no sense."""
    if provider.secret is not None:
        return secrets.source(provider.secret)
    try:
        return FixedKey(parse_key(provider.api_key) if provider.api_key else None)
    except ProviderKeyMissing as error:
        raise ConfigError(f"providers.{provider.name}.api_key_env: {error}") from error


def _echo(catalogue: Catalogue, clock: Clock, counter: Callable[[Model], TokenCounter]) -> EchoProvider:
    def count_prompt(request: Mapping[str, Any]) -> int:
        try:
            model = catalogue.resolve(request["model"])
        except ModelNotFound:  # a store's overlay may know more
            model = Model(request["model"], "", request["model"])
        count = counter(model)
        return sum(map(count, request["messages"])) + count.fixed(request)

    return EchoProvider(clock, count_prompt)


def _rater(config: Config, providers: Mapping[str, Provider]) -> Rater | None:
    """Return who rates relevance; without a model for it, the strategy's own lexical scorer does."""
    if config.file.embeddings is None:
        return None
    model = config.file.catalogue.models[config.file.embeddings]
    return Rater(model, EmbeddingRelevance(providers[model.provider], model.upstream_name))


def _configured(accounts: Mapping[str, AccountConfig]) -> dict[str, Access]:
    return {
        hash_key(key): Access(
            key=KeyRecord(hash_key(key), hash_key(key)[:12], account.name, scopes),
            account=account.name,
            plan=account.plan,
            settings=SettingsRecord(account.security),
            models=account.models,
        )
        for account in accounts.values()
        for key, scopes in account.keys.items()
    }
