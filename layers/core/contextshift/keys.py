"""API keys: made here, shown once, kept as SHA-256.

A key reads ``bst-<account>-<secret><check>``: a recognisable prefix (so that secret scanners find a
leaked one), the account it opens (so that one read fetches key, account and settings together), 160
random bits in Crockford-like base 32, and six characters of checksum that catch a mistyped key
without a read. The hash is plain SHA-256: a secret of 160 bits needs no slow hash.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable

__all__ = ["KEY_PREFIX", "SCOPES", "account_hint", "check_account_id", "hash_key", "new_key"]

KEY_PREFIX = "bst"
SCOPES = ("call", "audit", "preview", "admin")
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_SECRET = 32
_CHECK = 6
_ID = "[a-z0-9](?:[a-z0-9_]{0,62}[a-z0-9])?"
_ACCOUNT = re.compile(rf"{_ID}\Z")
_KEY = re.compile(rf"{KEY_PREFIX}-(?P<account>{_ID})-(?P<body>[{_ALPHABET}]{{{_SECRET + _CHECK}}})\Z")


def check_account_id(account: str) -> str:
    """Return ``account`` if it may name one (lower-case letters, digits, ``_``; up to 64), else raise ValueError."""
    if not _ACCOUNT.match(account):
        raise ValueError("an account id is 1-64 of a-z, 0-9 and _, and neither starts nor ends with _")
    return account


def new_key(account: str, random_bytes: Callable[[int], bytes]) -> str:
    """Make a key of ``account`` from 20 bytes of ``random_bytes``, such as `secrets.token_bytes`."""
    number = int.from_bytes(random_bytes(20), "big")
    secret = "".join(_ALPHABET[(number >> shift) & 31] for shift in range(155, -1, -5))
    stem = f"{KEY_PREFIX}-{check_account_id(account)}-{secret}"
    return stem + _checksum(stem)


def hash_key(key: str) -> str:
    """Return the SHA-256 under which a key is stored, in hex."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def account_hint(key: str) -> str | None:
    """Return the account a well-formed generated key names, None for any other text.

    A hint only: what a key opens is decided by its stored record.
    """
    match = _KEY.match(key)
    if match is None or _checksum(key[:-_CHECK]) != key[-_CHECK:]:
        return None
    return match["account"]


def _checksum(stem: str) -> str:
    number = int.from_bytes(hashlib.sha256(stem.encode()).digest()[:4], "big")
    return "".join(_ALPHABET[(number >> shift) & 31] for shift in range(25, -1, -5))
