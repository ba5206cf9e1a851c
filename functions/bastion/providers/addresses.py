"""Which addresses an account's own endpoint may be at: global unicast ones, in whatever form they come.

The tables are ours, since the standard library's change with its versions and hold 6to4 and the transition prefixes
for global. Sources: IANA's IPv4 and IPv6 Special-Purpose Address Registries (2026-11); RFC 6052 and RFC 8215
(NAT64), RFC 4291 section 2.5.5 (mapped), RFC 5214 section 6.1 (ISATAP).
"""

from __future__ import annotations

import ipaddress
import re

__all__ = ["is_public_address", "is_public_host"]

_NOT_GLOBAL_V4 = tuple(
    map(
        ipaddress.IPv4Network,
        (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",  # private
            "100.64.0.0/10",  # carrier-grade NAT; metadata of some clouds
            "127.0.0.0/8",  # loopback
            "168.63.129.16/32",  # a cloud's platform service, on an address that looks global
            "169.254.0.0/16",  # link-local; metadata of most clouds
            "172.16.0.0/12",  # private
            "192.0.0.0/24",  # protocol assignments
            "192.0.2.0/24",  # documentation
            "192.31.196.0/24",  # AS112
            "192.52.193.0/24",  # AMT
            "192.88.99.0/24",  # 6to4 relays, deprecated
            "192.168.0.0/16",  # private
            "192.175.48.0/24",  # AS112
            "198.18.0.0/15",  # benchmarking
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, broadcast
        ),
    )
)
_GLOBAL_V6 = ipaddress.IPv6Network("2000::/3")
"""All of global unicast that IANA has opened; outside of it all is local, multicast, reserved or embedded."""
_NOT_GLOBAL_V6 = tuple(
    map(
        ipaddress.IPv6Network,
        (
            "2001::/23",  # protocol assignments: Teredo, benchmarking, ORCHID
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4: where such a packet goes is for a relay to say
            "2620:4f:8000::/48",  # AS112
            "3ffe::/16",  # 6bone, returned
            "3fff::/20",  # documentation
        ),
    )
)
_MAPPED = ipaddress.IPv6Network("::ffff:0:0/96")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
"""What DNS64 makes of a public IPv4 address: judged by it. The local-use 64:ff9b:1::/48 is outside of 2000::/3."""
_ISATAP = frozenset((0x0000_5EFE, 0x0200_5EFE))
"""The upper half of an interface id whose lower half is an IPv4 address."""

_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\Z", re.ASCII)
_NUMBER = re.compile(r"(?:\d+|0x[0-9a-f]*)\Z", re.ASCII)
"""A host that ends so is an IPv4 address in some spelling (WHATWG URL, "ends in a number")."""


def is_public_address(text: str) -> bool:
    """Whether an address, as a resolver gives it, is global unicast; one with a scope never is.

    >>> is_public_address("8.8.8.8"), is_public_address("::ffff:10.0.0.1"), is_public_address("64:ff9b::8.8.8.8")
    (True, False, True)
    """
    if "%" in text:
        return False
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return _is_global_v4(address) if isinstance(address, ipaddress.IPv4Address) else _is_global_v6(address)


def is_public_host(host: str) -> bool:
    """Whether a URL's host can name something public: a name of two labels or more, or a public address.

    An IPv4 address must stand in its usual form, an IPv6 address in brackets. What a name resolves to is
    another question (`is_public_address`).

    >>> [is_public_host(host) for host in ("llm.example.com", "[2606:4700::1111]", "0x7f.1", "localhost", "a.b.")]
    [True, True, False, False, False]
    """
    host = host.lower()
    if host.startswith("["):
        return host.endswith("]") and ":" in host and is_public_address(host[1:-1])
    labels = host.split(".")
    if _NUMBER.match(labels[-1]):
        return is_public_address(host)
    return len(host) <= 253 and len(labels) > 1 and all(map(_LABEL.match, labels))


def _is_global_v4(address: ipaddress.IPv4Address) -> bool:
    return not any(address in network for network in _NOT_GLOBAL_V4)


def _is_global_v6(address: ipaddress.IPv6Address) -> bool:
    embedded = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    if address in _MAPPED or address in _NAT64:
        return _is_global_v4(embedded)
    if address not in _GLOBAL_V6 or any(address in network for network in _NOT_GLOBAL_V6):
        return False
    isatap = int(address) >> 32 & 0xFFFF_FFFF in _ISATAP
    return not isatap or _is_global_v4(embedded)
