"""Providers' keys: bound to one origin, and where they stand in a secret, read late and kept for a while.

A key is written as it is, or as JSON that says what it is for::

    sk-…
    {"api_key": "sk-…"}
    {"api_key": "sk-…", "origin": "https://api.openai.com"}
    {"api_key": "sk-…", "origin": "https://llm.acme.example", "account": "acme"}

A JSON object of another single field is read as that field. Where a field is named (``api_key_field``, and the names
in a deployment's one object of keys), the field holds any of the forms above.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from bastion.providers.origins import origin_of
from contextshift.errors import ProviderError, ProviderKeyMissing, ProviderKeyOrigin
from contextshift.ports import Clock

__all__ = ["CachedKey", "FixedKey", "KeySource", "ProviderKey", "parse_key"]

REFRESH_AFTER = 240.0
"""Seconds after which a key in use is read again, beside the calls that use it."""
USABLE_FOR = 3_600.0
"""Seconds for which a key may be used while it cannot be read again."""
TRY_AGAIN_AFTER = 5.0
"""Seconds between two readings: a secret that is missing, or a key that is refused, is not asked for at every call."""
_KEY = re.compile(r"[\x21-\x7e]{1,4096}\Z")


@dataclass(frozen=True, slots=True)
class ProviderKey:
    """A key, and what it may be used for."""

    text: str = field(repr=False)
    origin: str | None = None
    """The one origin it may be sent to; None until it is bound to its provider's."""
    account: str | None = None
    """The one account whose calls may use it; None: the deployment's."""

    def for_origin(self, origin: str) -> ProviderKey:
        """Return the key as bound to an origin. Raises ProviderKeyOrigin where it belongs to another."""
        if self.origin not in (None, origin):
            raise ProviderKeyOrigin("the provider's key is bound to another origin than the provider's address")
        return replace(self, origin=origin)


class KeySource(Protocol):
    """Where a provider's key comes from."""

    async def get(self) -> ProviderKey | None:
        """Return the key, None where calls go without one. Raises a ProviderError."""

    def refused(self, key: ProviderKey) -> None:
        """Take note that the provider did not take the key."""


class FixedKey:
    """A key that is known from the start, or none."""

    def __init__(self, key: ProviderKey | None) -> None:
        self._key = key

    async def get(self) -> ProviderKey | None:
        """Return it."""
        return self._key

    def refused(self, key: ProviderKey) -> None:
        """There is no other."""


def parse_key(text: str, name: str | None = None) -> ProviderKey:
    """Read a key as it is written (see the module); ``name`` selects a field of a JSON object of keys.

    Raises ProviderKeyMissing, which never quotes what was read.

    >>> parse_key('{"api_key": "sk-1", "origin": "https://api.example.com/"}').origin
    'https://api.example.com'
    """
    value = _json_object(text)
    if name is not None:
        if value is None or name not in value:
            raise ProviderKeyMissing("the secret has no such field")
        inner = value[name]
        value = inner if isinstance(inner, dict) else _json_object(inner) if isinstance(inner, str) else None
        text = inner if isinstance(inner, str) else ""
    if value is None:
        return ProviderKey(_checked(text.strip()))
    return _described(value)


def _json_object(text: str) -> dict[str, Any] | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise ProviderKeyMissing("the secret is no JSON") from None
    return value if isinstance(value, dict) else None


def _described(value: Mapping[str, Any]) -> ProviderKey:
    if len(value) == 1 and "api_key" not in value:
        return ProviderKey(_checked(next(iter(value.values()))))
    unknown = value.keys() - {"api_key", "origin", "account"}
    origin, account = value.get("origin"), value.get("account")
    if unknown or not isinstance(origin, str | None) or not isinstance(account, str | None):
        raise ProviderKeyMissing("the secret holds something else than api_key, origin and account")
    try:
        bound = None if origin is None else origin_of(origin)
    except ValueError:
        raise ProviderKeyMissing("the origin in the secret is none") from None
    return ProviderKey(_checked(value.get("api_key")), bound, account)


def _checked(key: object) -> str:
    if not isinstance(key, str) or not _KEY.match(key):
        raise ProviderKeyMissing("the secret holds no key that can be sent")
    return key


class CachedKey:
    """A key that is read when it is first needed, kept, and read again beside its use.

    ::

        0 s          REFRESH_AFTER            USABLE_FOR
        |--- as it is ---|--- as it is, read ---|--- read first; a failure is the call's ---
                               again beside

    One reading at a time, however many calls wait for it. A key that its provider refuses is read again by the next
    call, since it may have been replaced; where that fails, the old one is used as before.
    """

    def __init__(self, read: Callable[[], Awaitable[ProviderKey]], clock: Clock) -> None:
        self._read = read
        self._clock = clock
        self._key: ProviderKey | None = None
        self._doubted = False
        self._read_at = self._tried_at = float("-inf")
        self._failure: ProviderError | None = None
        self._reading: asyncio.Task[None] | None = None

    async def get(self) -> ProviderKey:
        """Return the key. Raises what reading it raises, where there is none that may still be used."""
        age = self._clock.now() - self._read_at
        if self._key is not None and age < USABLE_FOR and not self._doubted:
            if age >= REFRESH_AFTER:
                self._start()
            return self._key
        reading = self._start()
        if reading is not None:
            await asyncio.shield(reading)
        if self._key is not None and self._clock.now() - self._read_at < USABLE_FOR:
            return self._key
        raise self._failure or ProviderKeyMissing("the provider's key was not read")

    def refused(self, key: ProviderKey) -> None:
        """Have the key read again before it is next used, unless that has been done meanwhile."""
        if self._key is not None and self._key.text == key.text:
            self._doubted = True

    async def aclose(self) -> None:
        """Stop a reading that is on its way."""
        if self._reading is not None:
            self._reading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reading

    def _start(self) -> asyncio.Task[None] | None:
        """Return the reading that is on its way, a new one, or None where the last one was a moment ago."""
        if self._reading is not None and not self._reading.done():
            return self._reading
        if self._clock.now() - self._tried_at < TRY_AGAIN_AFTER:
            return None
        self._tried_at = self._clock.now()
        self._reading = asyncio.create_task(self._refresh())
        return self._reading

    async def _refresh(self) -> None:
        try:
            self._key = await self._read()
        except ProviderError as error:
            self._failure = error
        else:
            self._failure, self._read_at = None, self._clock.now()
        self._doubted = False
