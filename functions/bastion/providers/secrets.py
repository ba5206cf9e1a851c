"""Keys in AWS: Secrets Manager and the Parameter Store, through boto3 in a thread.

Nothing is imported, connected or read before the first call that needs a key: importing boto3 takes longer than all
the rest of a start.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from bastion.providers.keys import CachedKey, ProviderKey, parse_key
from contextshift.endpoints import SecretPlace
from contextshift.errors import ProviderKeyMissing, ProviderKeyUnavailable
from contextshift.ports import Clock

__all__ = ["AwsSecrets", "SecretKeys"]

_CONNECT_SECONDS = 1.0
_READ_SECONDS = 3.0
_TRIES = 2
_REMEMBERED = 256
_CLIENTS = 4
"""Clients that are kept, about 11 MB each: accounts name the regions."""
_PASSING = ("Throttl", "TooManyRequests", "RequestLimitExceeded", "InternalService", "InternalServer", "Unavailable")
"""Beginnings, or parts, of the error codes that repeating may cure."""


class AwsSecrets:
    """Reads texts from Secrets Manager and the Parameter Store; ``endpoint`` is for emulators."""

    def __init__(self, endpoint: str | None = None) -> None:
        self._endpoint = endpoint
        self._clients: OrderedDict[tuple[str, str | None], Any] = OrderedDict()
        self._making = threading.Lock()

    async def read(self, place: SecretPlace) -> str:
        """Return what stands in a place. Raises ProviderKeyMissing, ProviderKeyUnavailable."""
        return await asyncio.to_thread(self._read, place)

    def _read(self, place: SecretPlace) -> str:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            text = _VERBS[place.service](self._client(place), place.name)
        except ClientError as error:
            raise _translated(place.service, error.response) from error
        except BotoCoreError as error:
            raise ProviderKeyUnavailable(f"the provider's key cannot be read: {type(error).__name__}") from error
        if not isinstance(text, str):
            raise ProviderKeyMissing("the secret holds no text")
        return text

    def _client(self, place: SecretPlace) -> Any:
        """Return the client of a service in the region that an ARN names, else in our own."""
        which = place.service, _region_of(place.name)
        with self._making:
            client = self._clients.pop(which, None) or self._made(*which)
            self._clients[which] = client
            while len(self._clients) > _CLIENTS:
                self._clients.popitem(last=False)
            return client

    def _made(self, service: str, region: str | None) -> Any:
        import boto3
        from botocore.config import Config

        config = Config(
            connect_timeout=_CONNECT_SECONDS,
            read_timeout=_READ_SECONDS,
            retries={"mode": "standard", "total_max_attempts": _TRIES},
        )
        # The default session is not safe to share between threads while it makes clients.
        return boto3.Session().client(service, endpoint_url=self._endpoint, region_name=region, config=config)


def _region_of(name: str) -> str | None:
    parts = name.split(":")
    return parts[3] or None if parts[0] == "arn" and len(parts) > 5 else None


def _secret(client: Any, name: str) -> object:
    answer = client.get_secret_value(SecretId=name)
    binary = answer.get("SecretBinary")
    return answer.get("SecretString") if binary is None else binary.decode("utf-8", "replace")


def _parameter(client: Any, name: str) -> object:
    return client.get_parameter(Name=name, WithDecryption=True)["Parameter"].get("Value")


_VERBS: dict[str, Callable[[Any, str], object]] = {"secretsmanager": _secret, "ssm": _parameter}


def _translated(service: str, response: Any) -> ProviderKeyMissing | ProviderKeyUnavailable:
    code = str(response.get("Error", {}).get("Code", "unknown"))
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    passing = status >= 500 or any(part in code for part in _PASSING)
    kind = ProviderKeyUnavailable if passing else ProviderKeyMissing
    # The code only: the service's message names accounts and roles.
    return kind(f"the provider's key cannot be read: {service} {code}")


class SecretKeys:
    """Keys by where they stand: one `CachedKey` each, those used longest ago forgotten."""

    def __init__(self, secrets: AwsSecrets, clock: Clock) -> None:
        self._secrets = secrets
        self._clock = clock
        self._keys: OrderedDict[SecretPlace, CachedKey] = OrderedDict()

    def source(self, place: SecretPlace) -> CachedKey:
        """Return the key that stands in a place; nothing is read yet."""
        if place not in self._keys:
            self._keys[place] = CachedKey(lambda: self._read(place), self._clock)
        self._keys.move_to_end(place)
        while len(self._keys) > _REMEMBERED:
            self._keys.popitem(last=False)
        return self._keys[place]

    async def aclose(self) -> None:
        """Stop what is being read."""
        for key in self._keys.values():
            await key.aclose()

    async def _read(self, place: SecretPlace) -> ProviderKey:
        return parse_key(await self._secrets.read(place), place.field)
