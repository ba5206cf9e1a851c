"""``bastion-admin``: accounts, keys, settings and overlays of the catalogue, over the same stores as the service.

::

    bastion-admin account create acme --plan pro
    bastion-admin key create acme --scope call --scope audit --expires 90d
    bastion-admin key rotate acme 3f9a0c12d4e5 --overlap 24h
    bastion-admin settings set acme context_swapping=true 'regions=["eu"]'
    bastion-admin models put gpt-5.5 input_price=4.5
    bastion-admin models put house-7b provider=openai context_window=32768 --account acme

Where they are is ``--store``, as ``sqlite:PATH`` or ``dynamodb:CONTROL,CHATS[@ENDPOINT]``; else it is where the
service with the same environment keeps them: the tables of BASTION_CONTROL_TABLE and BASTION_CHATS_TABLE, or a
file in BASTION_DATA. Models are checked against the catalogue of ``--config``, else of BASTION_CONFIG, else of the
shipped deployment (tables) or the demo (a file). A key is printed once, by the command that made it, and nowhere else.

Ends with 0; 1 where the request is refused (no such account, changed meanwhile), 2 where it is not
understood, 3 where the store cannot be reached.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bastion import admin_commands as commands
from bastion import admin_models
from bastion.admin_commands import Command, Refused, Report
from bastion.config import DEPLOYMENT, Config
from bastion.config_file import ConfigError
from contextshift.errors import InvalidInput, StoreError
from contextshift.keys import SCOPES
from contextshift.ports import AccountAdmin

__all__ = ["main"]


def main(argv: Sequence[str] | None = None, environ: Mapping[str, str] | None = None) -> int:
    """Run one command and return its exit status; the arguments default to those of the process."""
    environ = os.environ if environ is None else environ
    arguments = _parser(environ).parse_args(argv)
    arguments.ground = lambda: _ground(arguments, environ)
    try:
        with _opened(arguments.store, environ) as accounts:
            report = asyncio.run(arguments.command(accounts, arguments))
    except (InvalidInput, ConfigError, ValueError) as error:
        return _complain(_explained(error), 2)
    except StoreError as error:
        return _complain(str(error), 3)
    except Refused as error:
        return _complain(str(error), 1)
    print(json.dumps(report, indent=2) if arguments.json else _readable(report))
    return 0


# -- stores ------------------------------------------------------------------------------------------


class _System:
    """The machine's clock and random source."""

    def now(self) -> float:
        return time.time()

    def token(self, size: int) -> bytes:
        return secrets.token_bytes(size)


def _store_of_the_service(environ: Mapping[str, str]) -> str:
    """Say where `bastion.bootstrap` keeps accounts under the same environment."""
    tables = [environ.get(f"BASTION_{name}_TABLE") for name in ("CONTROL", "CHATS")]
    if all(tables):
        endpoint = environ.get("BASTION_DYNAMODB_ENDPOINT")
        return "dynamodb:" + ",".join(filter(None, tables)) + (f"@{endpoint}" if endpoint else "")
    return f"sqlite:{Path(environ.get('BASTION_DATA', '.bastion')) / 'bastion.sqlite3'}"


@contextmanager
def _opened(store: str, environ: Mapping[str, str]) -> Iterator[AccountAdmin]:
    """Open the accounts of a ``--store``; only the driver that is used is imported."""
    kind, _, place = store.partition(":")
    system = _System()
    if kind == "sqlite" and place:
        from bastion.stores.sqlite import SqliteAccounts, SqliteDatabase

        database = SqliteDatabase(place)
        try:
            yield SqliteAccounts(database, clock=system)
        finally:
            database.close()
    elif kind == "dynamodb" and place:
        from bastion.stores.dynamodb import DynamoAccounts, dynamodb_client

        tables, _, endpoint = place.partition("@")
        region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")
        client = dynamodb_client(endpoint=endpoint or None, region=region)
        yield DynamoAccounts(client, tables.split(",")[0], clock=system, random=system)
    else:
        raise ValueError("a store is sqlite:PATH or dynamodb:CONTROL,CHATS[@ENDPOINT]")


def _ground(arguments: argparse.Namespace, environ: Mapping[str, str]) -> admin_models.Ground:
    """Read what overlays and accounts may name from the service's configuration, keys or no keys."""
    from bastion.tokenizers.registry import TOKENIZERS

    shipped = str(DEPLOYMENT) if arguments.store.startswith("dynamodb:") else ""
    path = arguments.config or environ.get("BASTION_CONFIG") or shipped
    file = Config.from_environ({**environ, "BASTION_CONFIG": path}).file
    plans = frozenset(file.plans)
    return admin_models.Ground(file.whole, frozenset(file.providers), frozenset(TOKENIZERS), plans)


# -- the command line --------------------------------------------------------------------------------


def _parser(environ: Mapping[str, str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("bastion-admin", description="Accounts, keys and settings of Bastion.")
    parser.add_argument("--store", default=_store_of_the_service(environ), help="sqlite:PATH or dynamodb:…")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--by", default=_user(environ), help="who changes settings (default: the user)")
    parser.add_argument("--config", help="the service's file, with the providers, models and plans that may be named")
    things = parser.add_subparsers(required=True, metavar="account|key|settings|models")
    _add_account(things.add_parser("account", help="create, show, update"))
    _add_key(things.add_parser("key", help="create, rotate, expire, revoke, list"))
    _add_settings(things.add_parser("settings", help="show, set, unset"))
    _add_models(things.add_parser("models", help="list, put, hide, remove"))
    return parser


def _add_account(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(required=True, metavar="create|show|update")
    create = _verb(verbs, "create", commands.account_create)
    create.add_argument("--plan", required=True)
    create.add_argument("--model", action="append", help="a model it may use (repeat; default: all)")
    _verb(verbs, "show", commands.account_show)
    update = _verb(verbs, "update", commands.account_update)
    update.add_argument("--plan")
    models = update.add_mutually_exclusive_group()
    models.add_argument("--model", action="append", help="a model it may use (repeat)")
    models.add_argument("--all-models", action="store_true", help="let it use every model")


def _add_key(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(required=True, metavar="create|rotate|expire|revoke|list")
    create = _verb(verbs, "create", commands.key_create)
    create.add_argument("--scope", action="append", choices=SCOPES, help="what it may do (repeat; default: call)")
    create.add_argument("--expires", default="never", help="90d, an ISO date, or never")
    create.add_argument("--label", default="")
    for name, command in (
        ("rotate", commands.key_rotate),
        ("expire", commands.key_expire),
        ("revoke", commands.key_revoke),
    ):
        verb = _verb(verbs, name, command)
        verb.add_argument("id", help="the key's id, as `key list` shows it")
        if name == "rotate":
            verb.add_argument("--overlap", default="24h", help="how long the old key lives on")
        if name == "expire":
            verb.add_argument("--at", default="now", help="24h, an ISO date, now or never")
    _verb(verbs, "list", commands.key_list)


def _add_settings(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(required=True, metavar="show|set|unset")
    _verb(verbs, "show", commands.settings_show)
    change = _verb(verbs, "set", commands.settings_set)
    change.add_argument("assignment", nargs="+", metavar="NAME=VALUE", help="the value is JSON, else text")
    unset = _verb(verbs, "unset", commands.settings_unset)
    unset.add_argument("name", nargs="+")
    for verb in (change, unset):
        verb.add_argument("--version", type=int, help="only if the settings still have this version")


def _add_models(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(required=True, metavar="list|put|hide|remove")
    for name, command, keys in (
        ("list", admin_models.models_list, None),
        ("put", admin_models.models_put, ("assignment", "+", "KEY=VALUE", "the value is JSON, else text")),
        ("hide", admin_models.models_hide, None),
        ("remove", admin_models.models_remove, ("key", "*", "KEY", "a key to leave to the catalogue (default: all)")),
    ):
        verb = verbs.add_parser(name)
        verb.set_defaults(command=command)
        verb.add_argument("--account", help="for this account only (default: for everyone)")
        if name != "list":
            verb.add_argument("name", help="the model's")
        if keys is not None:
            argument, many, metavar, text = keys
            verb.add_argument(argument, nargs=many, metavar=metavar, help=text)


def _verb(verbs: Any, name: str, command: Command) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(name)
    parser.add_argument("account")
    parser.set_defaults(command=command)
    return parser


def _user(environ: Mapping[str, str]) -> str:
    return environ.get("LOGNAME") or environ.get("USER") or f"uid {os.getuid()}"


def _explained(error: Exception) -> str:
    path = getattr(error, "path", None)
    return f"{path}: {error}" if path else str(error)


def _complain(text: str, status: int) -> int:
    print(f"bastion-admin: {text}", file=sys.stderr)
    return status


def _readable(report: Report) -> str:
    if isinstance(report, Mapping):
        return "\n".join(f"{name}: {_plain(value)}" for name, value in report.items())
    return "\n\n".join(_readable(entry) for entry in report) or "none"


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    sys.exit(main())
