"""Accounts, keys, settings, overlays of the catalogue and calibration in SQLite."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from bastion.stores.rows import object_of, readable, strings_of, written
from bastion.stores.sqlite.database import SqliteDatabase
from contextshift.calibration import Calibration, day_of
from contextshift.ports import Access, Clock, KeyRecord, OverlayRecord, SettingsRecord

__all__ = ["SqliteAccounts"]

_PUT_KEY = """
INSERT INTO keys (hash, id, account, scopes, expires, off, label, created_at, updated_at)
VALUES (:hash, :id, :account, :scopes, :expires, :off, :label, :created_at, :now)
ON CONFLICT (hash) DO UPDATE SET id = :id, account = :account, scopes = :scopes, expires = :expires, off = :off,
    label = :label, created_at = :created_at, updated_at = :now
"""
_FIRST_SETTINGS = """
INSERT INTO settings (account, "values", version, updated_at, updated_by)
VALUES (:account, :values, :version, :updated_at, :updated_by) ON CONFLICT DO NOTHING
"""
_NEXT_SETTINGS = """
UPDATE settings SET "values" = :values, version = :version, updated_at = :updated_at, updated_by = :updated_by
WHERE account = :account AND version = :expected
"""
_FIRST_OVERLAY = """
INSERT INTO overlays (account, models, version, updated_at, updated_by)
VALUES (:account, :models, :version, :updated_at, :updated_by) ON CONFLICT DO NOTHING
"""
_NEXT_OVERLAY = """
UPDATE overlays SET models = :models, version = :version, updated_at = :updated_at, updated_by = :updated_by
WHERE account = :account AND version = :expected
"""
_EVERYONE = ""
"""Stands for an account where the deployment's own overlay is kept; no account has an empty name."""
_NOTHING = "{}"
_MORE_SAMPLES = """
INSERT INTO calibration (account, day, name, step, samples, created_at, updated_at)
VALUES (:account, :day, :name, :step, :samples, :now, :now)
ON CONFLICT (account, day, name, step) DO UPDATE SET samples = samples + :samples, updated_at = :now
"""

_EXPIRE_KEY = "UPDATE keys SET expires = :expires, updated_at = :now WHERE hash = :hash"


class SqliteAccounts:
    """An `AccountAdmin` in a SQLite file. Every method raises StoreUnavailable."""

    def __init__(self, database: SqliteDatabase, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def access(self, key_hash: str, account_hint: str | None) -> Access | None:
        """Return the access a key gives, None where the key is unknown; the hint is not needed."""
        today = day_of(self._clock.now())
        return await self._database.read(lambda db: _access(db, key_hash, today))

    async def overlays(self, account: str) -> tuple[str, ...]:
        """Return what stands over the catalogue for an account."""
        return await self._database.read(lambda db: _overlays(db, account))

    async def create_account(self, account: str, plan: str, models: Sequence[str] | None = None) -> bool:
        """Create it; False where it exists."""
        query = "INSERT INTO accounts VALUES (:account, :plan, :models, :now, :now) ON CONFLICT DO NOTHING"
        return await self._changed(query, _account_values(account, plan, models))

    async def account(self, account: str) -> tuple[str, tuple[str, ...] | None] | None:
        """Return (plan, models), None where there is no such account."""
        return await self._database.read(lambda db: _account(db, account))

    async def update_account(self, account: str, plan: str, models: Sequence[str] | None) -> bool:
        """Change plan and models; False where there is no such account."""
        query = "UPDATE accounts SET plan = :plan, models = :models, updated_at = :now WHERE account = :account"
        return await self._changed(query, _account_values(account, plan, models))

    async def put_key(self, key: KeyRecord) -> None:
        """Create or replace a key's record."""
        await self._changed(_PUT_KEY, _key_values(key))

    async def expire_key(self, key_hash: str, expires: int | None) -> bool:
        """Change when a key ends, and nothing else of it; False where there is none."""
        return await self._changed(_EXPIRE_KEY, {"hash": key_hash, "expires": expires})

    async def keys(self, account: str) -> list[KeyRecord]:
        """Return the account's keys, oldest first."""
        query = "SELECT * FROM keys WHERE account = ? ORDER BY created_at, id"
        rows = await self._database.read(lambda db: db.execute(query, (account,)).fetchall())
        return [_key_of(row) for row in rows]

    async def settings(self, account: str) -> SettingsRecord:
        """Return the account's settings; version 0 and empty where none were written."""
        return await self._database.read(lambda db: _settings(db, account))

    async def put_settings(self, account: str, settings: SettingsRecord, expected_version: int) -> bool:
        """Store ``settings`` if the stored version still is ``expected_version`` (0: none), else False."""
        values = {
            "account": account,
            "values": written(dict(settings.values)),
            "version": settings.version,
            "updated_at": settings.updated_at,
            "updated_by": settings.updated_by,
            "expected": expected_version,
        }
        return await self._changed(_NEXT_SETTINGS if expected_version else _FIRST_SETTINGS, values)

    async def overlay(self, account: str | None) -> OverlayRecord:
        """Return an account's overlay, None standing for the deployment's; version 0 where there is none."""
        query, whose = "SELECT * FROM overlays WHERE account = ?", account or _EVERYONE
        row = await self._database.read(lambda db: db.execute(query, (whose,)).fetchone())
        if row is None:
            return OverlayRecord()
        with readable():
            return OverlayRecord(object_of(row["models"]), row["version"], row["updated_at"], row["updated_by"])

    async def put_overlay(self, account: str | None, overlay: OverlayRecord, expected_version: int) -> bool:
        """Store ``overlay`` if the stored version still is ``expected_version`` (0: none), else False."""
        values = {
            "account": account or _EVERYONE,
            "models": json.dumps(dict(overlay.models)),
            "version": overlay.version,
            "updated_at": overlay.updated_at,
            "updated_by": overlay.updated_by,
            "expected": expected_version,
        }
        return await self._changed(_NEXT_OVERLAY if expected_version else _FIRST_OVERLAY, values)

    async def merge_calibration(self, account: str, day: int, more: Calibration) -> None:
        """Add samples to a day's, in one transaction; days that nobody reads any more go."""
        common = {"account": account, "day": day, "now": self._clock.now()}
        samples = [common | {"name": name, "step": step, "samples": many} for name, step, many in more]

        def merge(db: sqlite3.Connection) -> None:
            db.execute("DELETE FROM calibration WHERE account = :account AND day < :day - 1", common)
            db.executemany(_MORE_SAMPLES, samples)

        await self._database.write(merge)

    async def calibration(self, account: str) -> Calibration:
        """Return the samples of today and yesterday."""
        today = day_of(self._clock.now())
        return await self._database.read(lambda db: _calibration(db, account, today))

    async def _changed(self, statement: str, values: dict[str, object]) -> bool:
        """Run one statement as a transaction; say whether it changed a row."""
        values = values | {"now": self._clock.now()}
        return await self._database.write(lambda db: db.execute(statement, values).rowcount == 1)


def _access(db: sqlite3.Connection, key_hash: str, today: int) -> Access | None:
    row = db.execute("SELECT * FROM keys WHERE hash = ?", (key_hash,)).fetchone()
    known = None if row is None else _account(db, row["account"])
    if known is None:
        return None
    key = _key_of(row)
    plan, models = known
    return Access(
        key=key,
        account=key.account,
        plan=plan,
        settings=_settings(db, key.account),
        models=models,
        calibration=_calibration(db, key.account, today),
        overlays=_overlays(db, key.account),
    )


def _overlays(db: sqlite3.Connection, account: str) -> tuple[str, ...]:
    query = "SELECT models FROM overlays WHERE account IN (?, ?) AND models <> ? ORDER BY account"
    return tuple(row[0] for row in db.execute(query, (_EVERYONE, account, _NOTHING)))


def _calibration(db: sqlite3.Connection, account: str, today: int) -> Calibration:
    query = "SELECT name, step, samples FROM calibration WHERE account = ? AND day BETWEEN ? AND ?"
    return Calibration.of((row[0], row[1], row[2]) for row in db.execute(query, (account, today - 1, today)))


def _account(db: sqlite3.Connection, account: str) -> tuple[str, tuple[str, ...] | None] | None:
    row = db.execute("SELECT plan, models FROM accounts WHERE account = ?", (account,)).fetchone()
    if row is None:
        return None
    with readable():
        return row["plan"], None if row["models"] is None else tuple(strings_of(row["models"]))


def _settings(db: sqlite3.Connection, account: str) -> SettingsRecord:
    row = db.execute("SELECT * FROM settings WHERE account = ?", (account,)).fetchone()
    if row is None:
        return SettingsRecord()
    with readable():
        return SettingsRecord(object_of(row["values"]), row["version"], row["updated_at"], row["updated_by"])


def _account_values(account: str, plan: str, models: Sequence[str] | None) -> dict[str, object]:
    return {"account": account, "plan": plan, "models": None if models is None else json.dumps(list(models))}


def _key_values(key: KeyRecord) -> dict[str, object]:
    return {
        "hash": key.hash,
        "id": key.id,
        "account": key.account,
        "scopes": json.dumps(sorted(key.scopes)),
        "expires": key.expires,
        "off": int(key.off),
        "label": key.label,
        "created_at": key.created_at,
    }


def _key_of(row: sqlite3.Row) -> KeyRecord:
    with readable():
        return KeyRecord(
            hash=row["hash"],
            id=row["id"],
            account=row["account"],
            scopes=frozenset(strings_of(row["scopes"])),
            expires=row["expires"],
            off=bool(row["off"]),
            created_at=row["created_at"],
            label=row["label"],
        )
