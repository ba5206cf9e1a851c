"""``/api/v2/settings``: the account's settings, with their version, who wrote them, and when."""

from __future__ import annotations

from starlette.requests import Request

from bastion.auth import Authenticator
from bastion.endpoints.reading import read_json
from bastion.respond import Reply
from bastion.wire.documents import NewSettings
from bastion.wire.shapes import read
from contextshift.audit import timestamp
from contextshift.errors import Conflict
from contextshift.planner import Planner
from contextshift.ports import Clock, SettingsRecord, SettingsStore
from contextshift.settings import check_account_settings, check_stored_size

__all__ = ["SettingsEndpoint"]


class SettingsEndpoint:
    """Shows and replaces settings."""

    def __init__(
        self, authenticate: Authenticator, planner: Planner, settings: SettingsStore, clock: Clock, max_body: int
    ) -> None:
        self._authenticate = authenticate
        self._planner = planner
        self._settings = settings
        self._clock = clock
        self._max_body = max_body

    async def show(self, request: Request) -> Reply:
        """Show the account's settings."""
        access = await self._authenticate(request, "admin", "call")
        return Reply.json(_shown(await self._settings.settings(access.account)))

    async def replace(self, request: Request) -> Reply:
        """Replace the account's settings; they hold for the next call.

        Raises InvalidSetting, Conflict, and what a strategy raises that there is not or that the plan does not list.
        """
        access = await self._authenticate(request, "admin")
        new = read(NewSettings, (await read_json(request, self._max_body)).value)
        values = check_account_settings(new.settings)
        check_stored_size(values)
        if "context_strategy" in values:
            self._planner.check_strategy(access, values["context_strategy"], "settings.context_strategy")
        present = await self._settings.settings(access.account)
        expected = present.version if new.version is None else new.version
        record = SettingsRecord(values, expected + 1, self._clock.now(), access.key.id)
        if not await self._settings.put_settings(access.account, record, expected):
            raise Conflict("the settings have changed")
        return Reply.json(_shown(record))


def _shown(record: SettingsRecord) -> dict[str, object]:
    return {
        "settings": dict(record.values),
        "version": record.version,
        "updated_at": timestamp(record.updated_at) if record.version else None,
        "updated_by": record.updated_by or None,
    }
