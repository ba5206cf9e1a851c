"""The configuration file: providers, models, plans and accounts, as TOML, over the shipped catalogue where it says so.

A file that is wrong stops the start, with the path of the key at fault: a misspelt limit must not pass for
an unset one.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bastion.shipped import shipped_tables
from contextshift.catalogue import Catalogue, Model
from contextshift.endpoints import SecretPlace
from contextshift.errors import InvalidSetting
from contextshift.keys import check_account_id
from contextshift.model_table import model_of
from contextshift.settings import Overrides, Plan, check_account_settings

__all__ = ["AccountConfig", "ConfigError", "FileConfig", "ProviderConfig", "read_file"]


class ConfigError(Exception):
    """Raise when the configuration cannot be used; the message names the key."""


@dataclass(frozen=True, slots=True)
class ProviderConfig:
    """An upstream, and its credential: from the environment, or where it stands in AWS."""

    name: str
    kind: str
    """``openai`` (any compatible endpoint) or ``echo``, the built-in demo."""
    base_url: str = ""
    api_key: str | None = field(default=None, repr=False)
    """As `bastion.providers.keys.parse_key` reads it; None: see ``secret``."""
    api_key_env: str | None = None
    """The variable that holds its key, for a provider that needs one."""
    secret: SecretPlace | None = None
    auth: str = "bearer"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: Mapping[str, str] = field(default_factory=dict, repr=False)
    patterns: tuple[str, ...] = ()

    @property
    def available(self) -> bool:
        """Whether it can be called: it has its key, or is told where it stands, or needs none."""
        return self.api_key is not None or self.secret is not None or self.api_key_env is None


@dataclass(frozen=True, slots=True)
class AccountConfig:
    """An account kept in the file itself, for local use."""

    name: str
    plan: str
    models: tuple[str, ...] | None = None
    keys: Mapping[str, frozenset[str]] = field(default_factory=dict, repr=False)
    """Scopes by key."""
    security: Overrides = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FileConfig:
    """What a file says."""

    providers: Mapping[str, ProviderConfig]
    catalogue: Catalogue
    """What is offered: the models of providers that are available."""
    whole: Catalogue
    """All that is configured, whether there is a key for it or not."""
    plans: Mapping[str, Plan]
    accounts: Mapping[str, AccountConfig]
    embeddings: str | None = None
    """The model of the catalogue that rates relevance, where there is one and its provider is available."""

    @property
    def unavailable(self) -> dict[str, str]:
        """Providers that lack their key, with the variable that should hold it."""
        return {one.name: one.api_key_env or "" for one in self.providers.values() if not one.available}


_TEXT = (str,)
_NUMBER = (int, float)
_WHOLE = (int,)
_LIST = (list,)
_TABLE = (dict,)

_PROVIDER_KEYS: dict[str, tuple[type, ...]] = {
    "kind": _TEXT,
    "base_url": _TEXT,
    "api_key_env": _TEXT,
    "api_key_secret": _TEXT,
    "api_key_parameter": _TEXT,
    "api_key_field": _TEXT,
    "auth": _TEXT,
    "headers": _TABLE,
    "query": _TABLE,
    "models": _LIST,
}
_ACCOUNT_KEYS: dict[str, tuple[type, ...]] = {
    "plan": _TEXT,
    "models": _LIST,
    "api_keys": _LIST,
    "admin_keys": _LIST,
    "preview_keys": _LIST,
    "security": _TABLE,
}
_SCOPES = {
    "api_keys": frozenset(("call", "audit", "preview")),
    "admin_keys": frozenset(("admin",)),
    "preview_keys": frozenset(("preview",)),
}
_SECTIONS = ("providers", "models", "plans", "accounts")


def read_file(path: Path, environ: Mapping[str, str]) -> FileConfig:
    """Read a file; credentials come from ``environ`` by the names it gives. Raises ConfigError."""
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {error}") from error
    for name in document:
        if name not in (*_SECTIONS, "relevance", "catalogue"):
            raise ConfigError(f"{name}: unknown section; known: {', '.join(_SECTIONS)}")
    tables = {name: _tables(document, name) for name in _SECTIONS}
    for section, shipped in _shipped(document).items():
        tables[section] = shipped | tables[section]
    providers = {name: _provider(name, table, environ) for name, table in tables["providers"].items()}
    whole = _catalogue(tables["models"], providers)
    offered = whole.of_providers(name for name, provider in providers.items() if provider.available)
    plans = {name: _plan(name, table) for name, table in tables["plans"].items()}
    accounts = {name: _account(name, table, plans) for name, table in tables["accounts"].items()}
    _check_keys(accounts)
    return FileConfig(providers, offered, whole, plans, accounts, _embeddings(document, whole, offered))


def _tables(document: Mapping[str, Any], section: str) -> dict[str, dict[str, Any]]:
    tables = document.get(section, {})
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise ConfigError(f"{section}: must hold tables, as [{section}.name]")
    return tables


def _shipped(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the tables that stand under the file's own, where it asks for the shipped catalogue."""
    match document.get("catalogue"):
        case None:
            return {}
        case "shipped":
            return dict(zip(("providers", "models"), shipped_tables(), strict=True))
        case _:
            raise ConfigError('catalogue: must be "shipped"')


def _catalogue(tables: Mapping[str, Any], providers: Mapping[str, ProviderConfig]) -> Catalogue:
    models = {name: _model(name, table, providers) for name, table in tables.items()}
    patterns = [(provider.name, pattern) for provider in providers.values() for pattern in provider.patterns]
    return Catalogue(models, patterns)


def _embeddings(document: Mapping[str, Any], whole: Catalogue, offered: Catalogue) -> str | None:
    table = document.get("relevance")
    if table is None:
        return None
    if not isinstance(table, dict):
        raise ConfigError("relevance: must be a table")
    _check("relevance", table, {"embeddings": _TEXT})
    name = table.get("embeddings")
    if name is not None and name not in whole.models:
        raise ConfigError("relevance.embeddings: must name one of the models")
    return str(name) if name in offered.models else None


def _check(path: str, table: Mapping[str, Any], known: Mapping[str, tuple[type, ...]]) -> None:
    for key, value in table.items():
        if key not in known:
            raise ConfigError(f"{path}.{key}: unknown key; known: {', '.join(known)}")
        if isinstance(value, bool) or not isinstance(value, known[key]):
            raise ConfigError(f"{path}.{key}: must be a {known[key][0].__name__}")
        if isinstance(value, int | float) and value < 0:
            raise ConfigError(f"{path}.{key}: must not be negative")
        if isinstance(value, list) and not all(isinstance(item, str) for item in value):
            raise ConfigError(f"{path}.{key}: must be a list of strings")


def _provider(name: str, table: Mapping[str, Any], environ: Mapping[str, str]) -> ProviderConfig:
    path = f"providers.{name}"
    _check(path, table, _PROVIDER_KEYS)
    kind, auth = table.get("kind", "openai"), table.get("auth", "bearer")
    if kind not in ("openai", "echo"):
        raise ConfigError(f"{path}.kind: must be openai or echo")
    if kind == "openai" and not str(table.get("base_url", "")).startswith(("http://", "https://")):
        raise ConfigError(f"{path}.base_url: must be an http or https address")
    if auth != "bearer" and not auth.startswith("header:"):
        raise ConfigError(f"{path}.auth: must be bearer or header:NAME")
    api_key = environ.get(table.get("api_key_env", "")) or None
    return ProviderConfig(
        name=name,
        kind=kind,
        base_url=table.get("base_url", ""),
        api_key=api_key,
        api_key_env=table.get("api_key_env"),
        secret=None if api_key else _secret(name, table, environ),
        auth=auth,
        headers={key: str(value) for key, value in table.get("headers", {}).items()},
        query={key: str(value) for key, value in table.get("query", {}).items()},
        patterns=tuple(table.get("models", ())),
    )


_KEYS_OF_THE_DEPLOYMENT = {
    "secretsmanager": "BASTION_PROVIDER_KEYS_SECRET",
    "ssm": "BASTION_PROVIDER_KEYS_PARAMETER",
}
"""Where, by service, one JSON object holds the providers' keys under the names of their ``api_key_env``."""


def _secret(name: str, table: Mapping[str, Any], environ: Mapping[str, str]) -> SecretPlace | None:
    """Return where a provider's key stands, None where it needs none.

    The one secret of a deployment holds the keys of the providers that ``BASTION_PROVIDERS`` names, of all where it
    is unset: it is not read to find out.
    """
    path = f"providers.{name}"
    own = {"secretsmanager": table.get("api_key_secret"), "ssm": table.get("api_key_parameter")}
    places = [SecretPlace(service, at, table.get("api_key_field")) for service, at in own.items() if at]
    if len(places) + ("api_key_env" in table) > 1:
        raise ConfigError(f"{path}: give one of api_key_env, api_key_secret and api_key_parameter")
    if "api_key_field" in table and not places:
        raise ConfigError(f"{path}.api_key_field: is for api_key_secret and api_key_parameter")
    held = [one.strip() for one in environ.get("BASTION_PROVIDERS", "").split(",") if one.strip()]
    if "api_key_env" in table and (not held or name in held):
        shared = ((service, environ.get(variable)) for service, variable in _KEYS_OF_THE_DEPLOYMENT.items())
        places = [SecretPlace(service, at, table["api_key_env"]) for service, at in shared if at]
    return places[0] if places else None


def _model(name: str, table: Mapping[str, Any], providers: Mapping[str, ProviderConfig]) -> Model:
    path = f"models.{name}"
    try:
        model = model_of(name, table, path)
    except InvalidSetting as error:
        raise ConfigError(f"{error.path}: {error}") from error
    if model.provider not in providers:
        raise ConfigError(f"{path}.provider: must name one of the providers")
    return model


def _plan(name: str, table: Mapping[str, Any]) -> Plan:
    path = f"plans.{name}"
    rest = {key: value for key, value in table.items() if key not in ("strategies", "audit_days")}
    _check(path, {k: v for k, v in table.items() if k not in rest}, {"strategies": _LIST, "audit_days": _WHOLE})
    strategies = table.get("strategies")
    return Plan(
        name,
        _settings(rest, path),
        None if strategies is None else frozenset(strategies),
        table.get("audit_days", 7),
    )


def _account(name: str, table: Mapping[str, Any], plans: Mapping[str, Plan]) -> AccountConfig:
    path = f"accounts.{name}"
    _check(path, table, _ACCOUNT_KEYS)
    if table.get("plan") not in plans:
        raise ConfigError(f"{path}.plan: must name one of the plans")
    try:
        check_account_id(name)
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from error
    keys: dict[str, frozenset[str]] = {}
    for field_name, scopes in _SCOPES.items():  # a key in several lists may do what each of them says
        keys |= {key: keys.get(key, frozenset()) | scopes for key in table.get(field_name, ())}
    models = table.get("models")
    return AccountConfig(
        name,
        table["plan"],
        None if models is None else tuple(models),
        keys,
        _settings(table.get("security", {}), f"{path}.security"),
    )


def _check_keys(accounts: Mapping[str, AccountConfig]) -> None:
    """Raise ConfigError where one key would open two accounts; it is not told which key."""
    owners: dict[str, str] = {}
    for name, account in accounts.items():
        for key in account.keys:
            if owners.setdefault(key, name) != name:
                raise ConfigError(f"accounts.{name}: one of its keys is a key of accounts.{owners[key]} too")


def _settings(table: Mapping[str, Any], path: str) -> Overrides:
    try:
        return check_account_settings(table, path)
    except InvalidSetting as error:
        raise ConfigError(f"{error.path}: {error}") from error
