"""Accounts, keys, settings, overlays of the catalogue and calibration over the table ``control``.

::

    access             1 BatchGetItem with the right hint; 2 round trips with a wrong one or none
    put_key            2 PutItem: that the account has it, then the key, so that no key is ever unlisted
    keys               1 Query, and 1 BatchGetItem for each 100 keys
    merge_calibration  1 UpdateItem for each 100 steps

All reads are strongly consistent: a key revoked, or a setting changed, holds for the next call.

All that an account lays over the catalogue is one item, because a BatchGetItem must know its keys: one more in the
read that lets a call in (0.5 to 1 unit up to 4 KB), where an item a model would need a Query, a round trip more. The
deployment's own overlay comes with the same read, once in 5 seconds a process: it is the one item that all accounts
share, and reading it with every call would make it the table's hot spot and each call a unit dearer.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from bastion.stores.dynamodb.actions import put
from bastion.stores.dynamodb.client import ConditionFailed, DynamoClient, Meter, Table
from bastion.stores.dynamodb.conditions import ABSENT, Change, ends_key, is_version, more_of, settles
from bastion.stores.dynamodb.items import (
    SCHEMA,
    Item,
    Key,
    account_key,
    account_partition,
    calibration_key,
    check_schema,
    expiring,
    flag,
    integer_of,
    integer_or_none,
    key_index_key,
    key_key,
    number,
    number_of,
    overlay_key,
    settings_key,
    stamps,
    text,
    text_of,
    texts,
    texts_of,
)
from bastion.stores.rows import object_of, readable, written
from contextshift.calibration import Calibration, day_of
from contextshift.ports import Access, Clock, KeyRecord, OverlayRecord, Random, SettingsRecord

__all__ = ["DynamoAccounts"]

_WRITE_BYTES = 10
_SAMPLES = "samples:"
_STEPS_AT_ONCE = 100
"""DynamoDB takes expressions of up to 4 KB."""
_CALIBRATION_SECONDS = 3 * 86_400
_DEPLOYMENT_SECONDS = 5.0
"""How old the deployment's overlay may be."""
_NOTHING = "{}"


class DynamoAccounts:
    """An `AccountAdmin` over DynamoDB. Every method raises StoreUnavailable when two tries have failed."""

    def __init__(
        self, client: DynamoClient, table: str, *, clock: Clock, random: Random, meter: Meter | None = None
    ) -> None:
        self._table = Table(client, table, meter)
        self._clock = clock
        self._random = random
        self._deployment = _NOTHING
        self._deployment_until = -math.inf

    async def access(self, key_hash: str, account_hint: str | None) -> Access | None:
        """Return the access a key gives; see `AccountStore.access`. The record decides, never the hint."""
        today = day_of(self._clock.now())
        keys = [key_key(key_hash)] + ([] if account_hint is None else _of_account(account_hint, today))
        found = await self._found(keys)
        stored = found.get(_place(key_key(key_hash)))
        if stored is None:
            return None
        key = _key_of(stored)
        if key.account != account_hint:
            found = _by_key(await self._table.get_all(_of_account(key.account, today)))
        return _access(key, found, today, self._deployment)

    async def overlays(self, account: str) -> tuple[str, ...]:
        """Return what stands over the catalogue for an account."""
        found = await self._found([overlay_key(account)])
        return _documents(self._deployment, found.get(_place(overlay_key(account))))

    async def _found(self, keys: list[Key]) -> dict[tuple[str, str], Item]:
        """Read items, and the deployment's overlay with them where ours is old."""
        now, shared = self._clock.now(), overlay_key(None)
        due = now >= self._deployment_until
        found = _by_key(await self._table.get_all([*keys, shared] if due else keys))
        if due:
            self._deployment = _document(found.get(_place(shared)))
            self._deployment_until = now + _DEPLOYMENT_SECONDS
        return found

    async def create_account(self, account: str, plan: str, models: Sequence[str] | None = None) -> bool:
        """Create it; False where it exists."""
        item = account_key(account) | {"plan": text(plan)} | stamps(self._clock.now())
        return await self._put_once(item | ({} if models is None else {"models": texts(models)}), ABSENT, {})

    async def account(self, account: str) -> tuple[str, tuple[str, ...] | None] | None:
        """Return (plan, models), None where there is no such account."""
        item = await self._table.get(account_key(account))
        return None if item is None else _plan_of(item)

    async def update_account(self, account: str, plan: str, models: Sequence[str] | None) -> bool:
        """Change plan and models; False where there is no such account."""
        try:
            await self._table.update(account_key(account), _new_plan(plan, models, self._clock.now()))
        except ConditionFailed:
            return False
        return True

    async def put_key(self, key: KeyRecord) -> None:
        """Create or replace a key's record, once it is noted that the account has it."""
        common = stamps(self._clock.now(), key.created_at) | expiring(key.expires)
        note = key_index_key(key.account, key.hash) | common
        await self._table.write_all([put(note)])
        await self._table.write_all([put(key_key(key.hash) | common | _key_item(key))])

    async def expire_key(self, key_hash: str, expires: int | None) -> bool:
        """Change when a key ends, and nothing else of it; False where there is none."""
        now = self._clock.now()
        try:
            item = await self._table.update(key_key(key_hash), ends_key(expires, now))
            await self._table.update(key_index_key(text_of(item, "account"), key_hash), ends_key(expires, now))
        except ConditionFailed:
            return False
        return True

    async def keys(self, account: str) -> list[KeyRecord]:
        """Return the account's keys, oldest first. TTL may have taken expired ones."""
        notes = await self._table.query(account_partition(account), "KEY#", "KEY#~", only=("sk",))
        places = [key_key(text_of(note, "sk").removeprefix("KEY#")) for note in notes]
        found = [_key_of(item) for item in await self._table.get_all(places)]
        return sorted(found, key=lambda key: (key.created_at, key.id))

    async def settings(self, account: str) -> SettingsRecord:
        """Return the account's settings; version 0 and empty where none were written."""
        return _settings_of(await self._table.get(settings_key(account)))

    async def put_settings(self, account: str, settings: SettingsRecord, expected_version: int) -> bool:
        """Store ``settings`` if the stored version still is ``expected_version`` (0: none), else False."""
        write = self._random.token(_WRITE_BYTES).hex()
        values = written(dict(settings.values))
        change = settles(values, settings.version, expected_version, settings.updated_by, write, settings.updated_at)
        try:
            await self._table.update(settings_key(account), change)
        except ConditionFailed as refused:
            stored = refused.item or await self._table.get(settings_key(account))
            return stored is not None and text_of(stored, "write") == write
        return True

    async def overlay(self, account: str | None) -> OverlayRecord:
        """Return an account's overlay, None standing for the deployment's; version 0 where there is none."""
        item = await self._table.get(overlay_key(account))
        if item is None:
            return OverlayRecord()
        with readable():
            return OverlayRecord(
                models=object_of(_document(item)),
                version=integer_of(item, "version"),
                updated_at=number_of(item, "updated_at"),
                updated_by=text_of(item, "updated_by"),
            )

    async def put_overlay(self, account: str | None, overlay: OverlayRecord, expected_version: int) -> bool:
        """Store ``overlay`` if the stored version still is ``expected_version`` (0: none), else False."""
        item = (
            overlay_key(account)
            | stamps(overlay.updated_at)
            | {
                "models": text(json.dumps(dict(overlay.models))),
                "version": number(overlay.version),
                "updated_by": text(overlay.updated_by),
            }
        )
        done = await self._put_once(item, *is_version(expected_version))
        self._deployment_until = -math.inf
        return done

    async def merge_calibration(self, account: str, day: int, more: Calibration) -> None:
        """Add samples to a day's item; each update is atomic, and may be made twice where its answer is lost."""
        counts = [(f"{_SAMPLES}{name}:{step}", many) for name, step, many in more]
        now = self._clock.now()
        for start in range(0, len(counts), _STEPS_AT_ONCE):
            change = more_of(dict(counts[start : start + _STEPS_AT_ONCE]), now, int(now) + _CALIBRATION_SECONDS)
            await self._table.update(calibration_key(account, day), change)

    async def calibration(self, account: str) -> Calibration:
        """Return the samples of today and yesterday."""
        return _calibration_of(await self._table.get_all(_calibration_keys(account, day_of(self._clock.now()))))

    async def _put_once(self, item: Item, condition: str, values: Item) -> bool:
        """Put an item under a condition. Its ``write`` tells our own lost answer from somebody else's item."""
        write = text(self._random.token(_WRITE_BYTES).hex())
        try:
            await self._table.put(item | {"write": write}, condition, values)
        except ConditionFailed as refused:
            stored = refused.item or await self._table.get({"pk": item["pk"], "sk": item["sk"]})
            return stored is not None and stored.get("write") == write
        return True


def _of_account(account: str, today: int) -> list[Key]:
    return [account_key(account), settings_key(account), overlay_key(account), *_calibration_keys(account, today)]


def _calibration_keys(account: str, today: int) -> list[Key]:
    return [calibration_key(account, today), calibration_key(account, today - 1)]


def _place(item: Item) -> tuple[str, str]:
    return text_of(item, "pk"), text_of(item, "sk")


def _by_key(items: Sequence[Item]) -> dict[tuple[str, str], Item]:
    return {_place(item): item for item in items}


def _access(key: KeyRecord, found: dict[tuple[str, str], Item], today: int, deployment: str) -> Access | None:
    """Put together what a key gives; a key whose account is gone opens nothing."""
    account = found.get(_place(account_key(key.account)))
    if account is None:
        return None
    plan, models = _plan_of(account)
    settings = _settings_of(found.get(_place(settings_key(key.account))))
    days = [found[place] for place in map(_place, _calibration_keys(key.account, today)) if place in found]
    overlays = _documents(deployment, found.get(_place(overlay_key(key.account))))
    return Access(key, key.account, plan, settings, models, _calibration_of(days), overlays)


def _documents(deployment: str, own: Item | None) -> tuple[str, ...]:
    return tuple(document for document in (deployment, _document(own)) if document != _NOTHING)


def _document(item: Item | None) -> str:
    return _NOTHING if item is None else text_of(check_schema(item), "models")


def _calibration_of(days: Sequence[Item]) -> Calibration:
    """Put days together. One of a later schema is passed over: it is no reason to turn a caller away."""
    return Calibration.of(
        (*_step_of(name), int(float(attribute["N"])))
        for item in days
        if integer_of(item, "schema") <= SCHEMA
        for name, attribute in item.items()
        if name.startswith(_SAMPLES)
    )


def _step_of(attribute: str) -> tuple[str, int]:
    name, _, step = attribute.removeprefix(_SAMPLES).rpartition(":")
    return name, int(step)


def _plan_of(item: Item) -> tuple[str, tuple[str, ...] | None]:
    check_schema(item)
    with readable():
        return text_of(item, "plan"), texts_of(item, "models") if "models" in item else None


def _new_plan(plan: str, models: Sequence[str] | None, now: float) -> Change:
    exists = "attribute_exists(#pk)"  # an update would make the account
    update = "SET #plan = :plan, #updated_at = :now, #schema = :schema"
    values = {":plan": text(plan), ":now": number(now), ":schema": number(SCHEMA)}
    if models is None:
        return Change(f"{update} REMOVE #models", values, exists)
    return Change(f"{update}, #models = :models", values | {":models": texts(models)}, exists)


def _key_item(key: KeyRecord) -> Item:
    return {
        "id": text(key.id),
        "account": text(key.account),
        "scopes": texts(sorted(key.scopes)),
        "off": flag(key.off),
        "label": text(key.label),
    }


def _key_of(item: Item) -> KeyRecord:
    check_schema(item)
    with readable():
        return KeyRecord(
            hash=text_of(item, "pk").removeprefix("K#"),
            id=text_of(item, "id"),
            account=text_of(item, "account"),
            scopes=frozenset(texts_of(item, "scopes")),
            expires=integer_or_none(item, "expires"),
            off=bool(item["off"]["BOOL"]),
            created_at=number_of(item, "created_at"),
            label=text_of(item, "label"),
        )


def _settings_of(item: Item | None) -> SettingsRecord:
    if item is None:
        return SettingsRecord()
    check_schema(item)
    with readable():
        return SettingsRecord(
            values=object_of(text_of(item, "values")),
            version=integer_of(item, "version"),
            updated_at=number_of(item, "updated_at"),
            updated_by=text_of(item, "updated_by"),
        )
