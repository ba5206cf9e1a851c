"""What ``bastion-admin`` does: one coroutine a command, from stores and arguments to what is reported."""

from __future__ import annotations

import argparse
import json
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from contextshift.errors import ContextShiftError
from contextshift.keys import check_account_id, hash_key, new_key
from contextshift.ports import AccountAdmin, KeyRecord, SettingsRecord
from contextshift.settings import check_account_settings, check_stored_size

__all__ = [
    "Command",
    "Refused",
    "Report",
    "account_create",
    "account_show",
    "account_update",
    "assignment",
    "existing_account",
    "key_create",
    "key_expire",
    "key_list",
    "key_revoke",
    "key_rotate",
    "settings_set",
    "settings_show",
    "settings_unset",
]

_KEY_ID_DIGITS = 12
_DURATION = re.compile(r"(\d+)([smhd])\Z")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}

Report = Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""What is printed: named values, or a list of such."""
Command = Callable[[AccountAdmin, argparse.Namespace], Awaitable[Report]]
"""A command: raises Refused, InvalidInput, ValueError or a StoreError."""


class Refused(ContextShiftError):
    """Raise when what is asked cannot be done as things are."""

    code = "REFUSED"


# -- accounts ----------------------------------------------------------------------------------------


async def account_create(accounts: AccountAdmin, arguments: argparse.Namespace) -> Report:
    """Create an account."""
    account = check_account_id(arguments.account)
    _check_plan(arguments)
    if not await accounts.create_account(account, arguments.plan, arguments.model):
        raise Refused(f"the account {account} exists already")
    return await account_show(accounts, arguments)


async def account_show(accounts: AccountAdmin, arguments: argparse.Namespace) -> Report:
    """Show an account."""
    plan, models = await existing_account(accounts, arguments.account)
    return {"account": arguments.account, "plan": plan, "models": "all" if models is None else list(models)}


async def account_update(accounts: AccountAdmin, arguments: argparse.Namespace) -> Report:
    """Change an account's plan, its models, or both."""
    _check_plan(arguments)
    plan, models = await existing_account(accounts, arguments.account)
    if arguments.all_models:
        models = None
    elif arguments.model is not None:
        models = tuple(arguments.model)
    await accounts.update_account(arguments.account, arguments.plan or plan, models)
    return await account_show(accounts, arguments)


def _check_plan(arguments: argparse.Namespace) -> None:
    """Raise Refused for a plan that the service would not know: every call of such an account would fail."""
    plans: frozenset[str] = arguments.ground().plans
    if arguments.plan is not None and arguments.plan not in plans:
        raise Refused(f"there is no plan {arguments.plan}: known are {', '.join(sorted(plans))} (see --config)")


async def existing_account(accounts: AccountAdmin, account: str) -> tuple[str, tuple[str, ...] | None]:
    """Return an account's plan and models. Raises Refused where there is none."""
    known = await accounts.account(account)
    if known is None:
        raise Refused(f"there is no account {account}")
    return known


# -- keys --------------------------------------------------------------------------------------------


async def key_create(accounts: AccountAdmin, arguments: argparse.Namespace) -> Report:
    """Make a key, and return it for the only time."""
    await existing_account(accounts, arguments.account)
    scopes = frozenset(arguments.scope or ("call",))
    return await _made(accounts, arguments.account, scopes, _instant(arguments.expires), arguments.label)


async def key_rotate(accounts: AccountAdmin, arguments: argparse.Namespace) -> Report:
    """Make a key like the old one, with as long a life, and let the old one live on for the overlap."""
    old = await _key(accounts, arguments)
    if old.off:
        raise Refused(f"the key {old.id} is revoked")
    now = int(time.time())
    end = now + _duration(arguments.overlap)
    expires = None if old.expires is None else now + max(0, old.expires - int(old.created_at))
    made = await _made(accounts, old.account, old.scopes, expires, old.label)
    # Nothing else of the old key is written back: somebody may revoke it at this moment.
    await accounts.expire_key(old.hash, end if old.expires is None else min(end, old.expires))
    return made


async def key_expire(accounts: AccountAdmin, arguments: argparse.Namespace) -> Report:
    """Change when a key ends."""
    key = await _key(accounts, arguments)
    await accounts.expire_key(key.hash, _instant(arguments.at))
    return _shown(await _key(accounts, arguments))


async def key_revoke(accounts: AccountAdmin, arguments: argparse.Namespace) -> Report:
    """End a key now and for good."""
    key = replace(await _key(accounts, arguments), off=True)
    await accounts.put_key(key)
    return _shown(key)


async def key_list(accounts: AccountAdmin, arguments: argparse.Namespace) -> Report:
    """List an account's keys, oldest first, without the keys themselves."""
    await existing_account(accounts, arguments.account)
    return [_shown(key) for key in await accounts.keys(arguments.account)]


async def _key(accounts: AccountAdmin, arguments: argparse.Namespace) -> KeyRecord:
    for key in await accounts.keys(arguments.account):
        if key.id == arguments.id:
            return key
    raise Refused(f"the account {arguments.account} has no key {arguments.id}")


async def _made(
    accounts: AccountAdmin, account: str, scopes: frozenset[str], expires: int | None, label: str
) -> Mapping[str, Any]:
    """Make and store a key. What is returned is the only place where the key itself ever stands."""
    secret = new_key(account, secrets.token_bytes)
    digest = hash_key(secret)
    key = KeyRecord(
        hash=digest,
        id=digest[:_KEY_ID_DIGITS],
        account=account,
        scopes=scopes,
        expires=expires,
        created_at=time.time(),
        label=label,
    )
    await accounts.put_key(key)
    return {"key": secret, **_shown(key)}


def _shown(key: KeyRecord) -> Mapping[str, Any]:
    return {
        "id": key.id,
        "account": key.account,
        "scopes": sorted(key.scopes),
        "state": _state(key),
        "created": _date(key.created_at),
        "expires": "never" if key.expires is None else _date(key.expires),
        "label": key.label,
    }


def _state(key: KeyRecord) -> str:
    if key.off:
        return "revoked"
    return "expired" if key.expires is not None and key.expires <= time.time() else "live"


# -- settings ----------------------------------------------------------------------------------------


async def settings_show(accounts: AccountAdmin, arguments: argparse.Namespace) -> Report:
    """Show an account's settings with who changed them last."""
    await existing_account(accounts, arguments.account)
    stored = await accounts.settings(arguments.account)
    changed = {"updated": _date(stored.updated_at), "by": stored.updated_by} if stored.version else {}
    return {"account": arguments.account, "version": stored.version, **changed, "values": dict(stored.values)}


async def settings_set(accounts: AccountAdmin, arguments: argparse.Namespace) -> Report:
    """Set some of an account's settings."""
    given = dict(assignment(text) for text in arguments.assignment)
    return await _settings_change(accounts, arguments, lambda values: {**values, **given})


async def settings_unset(accounts: AccountAdmin, arguments: argparse.Namespace) -> Report:
    """Take settings back to what the plan says."""
    gone = arguments.name
    check_account_settings(dict.fromkeys(gone))  # refuses unknown names
    return await _settings_change(
        accounts, arguments, lambda values: {name: value for name, value in values.items() if name not in gone}
    )


async def _settings_change(
    accounts: AccountAdmin,
    arguments: argparse.Namespace,
    change: Callable[[Mapping[str, Any]], Mapping[str, Any]],
) -> Report:
    """Change what is stored, unless somebody else has done so since it was read (or since ``--version``)."""
    await existing_account(accounts, arguments.account)
    stored = await accounts.settings(arguments.account)
    expected = stored.version if arguments.version is None else arguments.version
    values = check_account_settings(change(stored.values))
    check_stored_size(values)
    changed = SettingsRecord(values, expected + 1, time.time(), arguments.by)
    if stored.version != expected or not await accounts.put_settings(arguments.account, changed, expected):
        raise Refused("the settings were changed meanwhile: look at them and try again")
    return await settings_show(accounts, arguments)


def assignment(text: str) -> tuple[str, Any]:
    """Read ``name=value``; a value that is not JSON is taken as text."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"{text!r} is not name=value")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


# -- times -------------------------------------------------------------------------------------------


def _duration(text: str) -> int:
    match = _DURATION.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not a duration such as 90s, 30m, 24h or 7d")
    return int(match[1]) * _SECONDS[match[2]]


def _instant(text: str) -> int | None:
    """Read ``never``, ``now``, a duration from now, or a date in ISO form (UTC where it says nothing)."""
    if text == "never":
        return None
    if text == "now":
        return int(time.time())
    if _DURATION.match(text):
        return int(time.time()) + _duration(text)
    date = datetime.fromisoformat(text)
    return int((date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp())


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).isoformat().replace("+00:00", "Z")
