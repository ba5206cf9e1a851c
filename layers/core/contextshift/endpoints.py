"""An account's own endpoints: where its calls of a provider go instead, and the account's key that opens them.

Pure: what a name resolves to, and whether that may be connected to, is judged where connections are made.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["EXPECTED_ENDPOINTS", "Endpoint", "SecretPlace", "host_of", "is_endpoints"]

_MOST_ENDPOINTS = 20
_LONGEST, _LONGEST_NAME = 2_048, 128
_BASE_URL = re.compile(
    r"https://(?P<host>\[[0-9a-f:.]{2,45}\]|[a-z0-9.-]{1,253})(?::(?P<port>\d{1,5}))?"
    r"(?:/[\w.~!$&'()*+,;=:@%/-]*)?\Z",
    re.ASCII | re.IGNORECASE,
)
"""No user, query or fragment; a host in other scripts is given in its ASCII form (``xn--…``)."""

EXPECTED_ENDPOINTS = (
    'a table of at most 20 providers, each with "base_url" (https, no user, query or fragment) and at most one of '
    '"api_key_secret" and "api_key_parameter"'
)


@dataclass(frozen=True, slots=True)
class SecretPlace:
    """Where a key stands."""

    service: str
    """``secretsmanager`` or ``ssm``."""
    name: str
    """ARN or name of the secret, or of the parameter."""
    field: str | None = None
    """Of the JSON object in there."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where an account's calls of one provider go, instead of the provider's own address.

    The key is the account's own: the one in the secret or parameter named here, or the caller's.
    """

    base_url: str
    api_key_secret: str | None = None
    """Name or ARN of a secret in Secrets Manager."""
    api_key_parameter: str | None = None
    """Name of a SecureString in the Parameter Store."""

    @property
    def secret(self) -> SecretPlace | None:
        """Where the account's key stands, None where callers bring it."""
        if self.api_key_secret is not None:
            return SecretPlace("secretsmanager", self.api_key_secret)
        return None if self.api_key_parameter is None else SecretPlace("ssm", self.api_key_parameter)


def host_of(base_url: object) -> str | None:
    """Return the host of what can be an account's own address, as it is written: https, and host, port and path only.

    >>> host_of("https://llm.example.com/v1"), host_of("https://[2606:4700::1111]:8443"), host_of("https://me@a.example")
    ('llm.example.com', '[2606:4700::1111]', None)
    """
    if not isinstance(base_url, str) or len(base_url) > _LONGEST:
        return None
    found = _BASE_URL.match(base_url)
    if found is None or not 0 < int(found["port"] or 443) < 65_536:
        return None
    return found["host"]


def is_endpoints(value: object) -> bool:
    """Whether this is what the account's setting ``endpoints`` may say: see `EXPECTED_ENDPOINTS`."""
    return (
        isinstance(value, Mapping)
        and len(value) <= _MOST_ENDPOINTS
        and all(
            isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME and _is_endpoint(table)
            for name, table in value.items()
        )
    )


def _is_endpoint(table: object) -> bool:
    if not isinstance(table, Mapping) or host_of(table.get("base_url")) is None:
        return False
    names = [table[name] for name in ("api_key_secret", "api_key_parameter") if name in table]
    return len(table) == 1 + len(names) <= 2 and all(
        isinstance(name, str) and 0 < len(name) <= _LONGEST for name in names
    )
