"""What ``bastion-admin models`` does: overlays of the catalogue, for an account or for everyone, without a deployment.

An overlay is checked before it is stored, as a configuration file is before a start: against the catalogue that the
service's own configuration makes, with the path of the key at fault.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from bastion.admin_commands import Refused, Report, assignment, existing_account
from contextshift.catalogue import Catalogue
from contextshift.errors import InvalidSetting
from contextshift.overlay import overlay_models
from contextshift.ports import AccountAdmin, OverlayRecord

__all__ = ["Ground", "models_hide", "models_list", "models_put", "models_remove"]

_LARGEST = 100_000
"""Characters of an overlay: the read that lets a call in carries all of it."""
_LONGEST_NAME = 200

Tables = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ground:
    """What an overlay is laid over, and what it and accounts may name."""

    catalogue: Catalogue
    providers: frozenset[str]
    tokenizers: frozenset[str]
    plans: frozenset[str] = frozenset()


async def models_list(accounts: AccountAdmin, arguments: argparse.Namespace) -> Report:
    """List what is laid over the catalogue for an account, or for everyone."""
    whose = [None] if arguments.account is None else [None, arguments.account]
    if arguments.account is not None:
        await existing_account(accounts, arguments.account)
    overlays = [(account, await accounts.overlay(account)) for account in whose]
    return [
        {"model": name, "for": account or "everyone", "keys": "hidden" if table is None else table}
        for account, overlay in overlays
        for name, table in sorted(overlay.models.items())
    ]


async def models_put(accounts: AccountAdmin, arguments: argparse.Namespace) -> Report:
    """Change some keys of a model, or add one."""
    given = dict(assignment(text) for text in arguments.assignment)

    def change(tables: Tables) -> Tables:
        return {**tables, arguments.name: {**(tables.get(arguments.name) or {}), **given}}

    return await _changed(accounts, arguments, change)


async def models_hide(accounts: AccountAdmin, arguments: argparse.Namespace) -> Report:
    """Take a model off the catalogue, with its aliases and snapshots."""
    return await _changed(accounts, arguments, lambda tables: {**tables, arguments.name: None})


async def models_remove(accounts: AccountAdmin, arguments: argparse.Namespace) -> Report:
    """Take what is laid over a model away again: all of it, or the keys that are named."""

    def change(tables: Tables) -> Tables:
        if arguments.name not in tables:
            raise Refused(f"nothing is laid over {arguments.name} here")
        kept = {key: value for key, value in (tables[arguments.name] or {}).items() if key not in arguments.key}
        rest = {name: table for name, table in tables.items() if name != arguments.name}
        return {**rest, arguments.name: kept} if kept and arguments.key else rest

    return await _changed(accounts, arguments, change)


async def _changed(accounts: AccountAdmin, arguments: argparse.Namespace, change: Callable[[Tables], Tables]) -> Report:
    """Change what is stored, unless somebody else has done so since it was read."""
    account, name = arguments.account, _checked_name(arguments.name)
    if account is not None:
        await existing_account(accounts, account)
    stored = await accounts.overlay(account)
    tables = change(dict(stored.models))
    _check(await _ground_of(accounts, arguments), name, tables)
    overlay = OverlayRecord(tables, stored.version + 1, time.time(), arguments.by)
    if not await accounts.put_overlay(account, overlay, stored.version):
        raise Refused("the overlay was changed meanwhile: look at it and try again")
    return await models_list(accounts, arguments)


async def _ground_of(accounts: AccountAdmin, arguments: argparse.Namespace) -> Ground:
    """Return what the overlay stands over: the configured catalogue, for an account under the deployment's overlay."""
    ground: Ground = arguments.ground()
    if arguments.account is None:
        return ground
    deployment = await accounts.overlay(None)
    catalogue = ground.catalogue.overlaid(overlay_models(ground.catalogue, deployment.models, "models"))
    return replace(ground, catalogue=catalogue)


def _check(ground: Ground, name: str, tables: Mapping[str, Any]) -> None:
    if len(json.dumps(tables)) > _LARGEST:
        raise Refused(f"the overlay would be larger than {_LARGEST} characters")
    if tables.get(name) is None:
        return
    model = overlay_models(ground.catalogue, {name: tables[name]}, "models")[name]
    path = f"models.{name}"
    if model is None or model.provider not in ground.providers:
        raise InvalidSetting(
            f"must name one of the providers: {', '.join(sorted(ground.providers))}", f"{path}.provider"
        )
    if model.tokenizer is not None and model.tokenizer not in ground.tokenizers:
        raise InvalidSetting(f"must be one of {', '.join(sorted(ground.tokenizers))}", f"{path}.tokenizer")


def _checked_name(name: str) -> str:
    if not 0 < len(name) <= _LONGEST_NAME or not name.isprintable() or any(map(str.isspace, name)):
        raise InvalidSetting(f"a model's name is up to {_LONGEST_NAME} characters without spaces", "name")
    return name
