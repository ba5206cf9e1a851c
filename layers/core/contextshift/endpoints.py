"""An account's own endpoints: where its calls of a provider go instead, and the account's key that opens them.

Pure: what a name resolves to, and whether that may be connected to, is judged where connections are made.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["EXPECTED_ENDPOINTS", "Endpoint", "is_base_url", "is_endpoints"]

_MOST_ENDPOINTS = 20
_LONGEST = 2_048
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
    def keyed(self) -> bool:
        """Whether a call may go there without a caller's key."""
        return self.api_key_secret is not None or self.api_key_parameter is not None


def is_base_url(value: object) -> bool:
    """Whether this can be an account's own address: https and nothing but host, port and path.

    >>> is_base_url("https://llm.example.com/v1"), is_base_url("https://user@llm.example.com")
    (True, False)
    """
    if not isinstance(value, str) or len(value) > _LONGEST:
        return False
    found = _BASE_URL.match(value)
    return found is not None and (found["port"] is None or 0 < int(found["port"]) < 65_536)


def is_endpoints(value: object) -> bool:
    """Whether this is what the account's setting ``endpoints`` may say: see `EXPECTED_ENDPOINTS`."""
    return (
        isinstance(value, Mapping)
        and len(value) <= _MOST_ENDPOINTS
        and all(isinstance(name, str) and name and _is_endpoint(table) for name, table in value.items())
    )


def _is_endpoint(table: object) -> bool:
    if not isinstance(table, Mapping) or not is_base_url(table.get("base_url")):
        return False
    names = [table[name] for name in ("api_key_secret", "api_key_parameter") if name in table]
    return len(table) == 1 + len(names) <= 2 and all(
        isinstance(name, str) and 0 < len(name) <= _LONGEST for name in names
    )
