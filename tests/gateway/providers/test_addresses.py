"""Addresses: what is not global unicast is refused in every form in which it can be written."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bastion.providers.addresses import is_public_address, is_public_host

v4 = st.ip_addresses(v=4)
v6 = st.ip_addresses(v=6)
SPECIAL_V4 = [
    "0.0.0.0", "10.1.2.3", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254", "168.63.129.16",
    "169.254.169.254", "169.254.170.2", "172.31.255.255", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.1.1",
    "198.19.0.1", "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
]  # fmt: skip
PUBLIC_V4 = ["8.8.8.8", "1.1.1.1", "172.15.255.255", "172.32.0.1", "100.63.255.255", "100.128.0.1", "223.255.255.255"]


def embedded_v6(address: ipaddress.IPv4Address) -> list[ipaddress.IPv6Address]:
    """Every IPv6 form that carries an IPv4 address."""
    low = int(address)
    prefixes = {
        "compatible": 0,
        "mapped": 0xFFFF << 32,
        "translated": 0xFFFF << 48,
        "nat64": 0x64FF9B << 96,
        "isatap": (0x2606_4700 << 96) | (0x5EFE << 32),
        "isatap, universal": (0x2606_4700 << 96) | (0x0200_5EFE << 32),
        "isatap, local": (0xFE80 << 112) | (0x5EFE << 32),
    }
    forms = [ipaddress.IPv6Address(prefix | low) for prefix in prefixes.values()]
    forms.append(ipaddress.IPv6Address((0x2002 << 112) | (low << 80) | 1))  # 6to4
    forms.append(ipaddress.IPv6Address((0x2001 << 112) | (0x4136E378 << 64) | (low ^ 0xFFFF_FFFF)))  # Teredo
    forms.append(ipaddress.IPv6Address((0x2001 << 112) | (low << 64)))  # Teredo, as its server
    forms.append(ipaddress.IPv6Address((0x0064FF9B0001 << 80) | low))  # NAT64, local use
    return forms


def spellings(address: ipaddress.IPv4Address) -> list[str]:
    """How else the address can be written, as inet_aton reads it."""
    number, (a, b, c, d) = int(address), address.packed
    return [
        str(number), hex(number), oct(number).replace("o", ""), f"0{a:o}.{b}.{c}.{d}", f"0x{a:x}.{b}.{c}.{d}",
        f"{a}.{b}.{c << 8 | d}", f"{a}.{b << 16 | c << 8 | d}", f"{address}.", f"{a}.{b}.{c}.0x{d:x}",
        f"{a:03}.{b:03}.{c:03}.{d:03}",
    ]  # fmt: skip


@given(v4)
@example(ipaddress.IPv4Address("192.88.99.1"))
def test_every_ipv4_that_is_not_global_is_refused_in_all_its_ipv6_forms(address):
    if is_public_address(str(address)):
        return
    for form in embedded_v6(address):
        assert not is_public_address(str(form)), form
        assert not is_public_host(f"[{form}]")


@pytest.mark.parametrize("text", SPECIAL_V4)
def test_special_ipv4_is_refused_in_every_spelling(text):
    address = ipaddress.IPv4Address(text)
    assert not is_public_address(text)
    assert not is_public_host(text)
    for form in embedded_v6(address):
        assert not is_public_address(str(form)), form
    for spelling in spellings(address):
        assert not is_public_host(spelling), spelling


@given(v4)
def test_we_are_never_laxer_than_the_standard_library(address):
    if not address.is_global or address.is_multicast:
        assert not is_public_address(str(address))


@given(v6)
@example(ipaddress.IPv6Address("2002:7f00:1::"))
@example(ipaddress.IPv6Address("fec0::1"))
@example(ipaddress.IPv6Address("4000::1"))
def test_an_ipv6_address_outside_of_what_is_assigned_is_refused_unless_it_carries_a_public_ipv4(address):
    public = is_public_address(str(address))
    if not address.is_global or address.is_multicast or address.is_site_local or address.is_reserved:
        carried = address.ipv4_mapped or address in ipaddress.IPv6Network("64:ff9b::/96")
        assert not public or carried


@given(v4)
def test_a_number_is_never_a_name(address):
    for spelling in spellings(address):
        if spelling != str(address):  # three digits each is the usual form of some
            assert not is_public_host(spelling), spelling


@pytest.mark.parametrize("text", PUBLIC_V4)
def test_public_ipv4_is_allowed_plain_mapped_and_as_dns64_makes_it(text):
    low = int(ipaddress.IPv4Address(text))
    for form in (text, f"::ffff:{text}", str(ipaddress.IPv6Address((0x64FF9B << 96) | low))):
        assert is_public_address(form), form
    assert is_public_host(text)


@pytest.mark.parametrize("text", ["2606:4700:4700::1111", "2001:4860:4860::8888", "2a00:1450:4001:81b::200e"])
def test_public_ipv6_is_allowed(text):
    assert is_public_address(text)
    assert is_public_host(f"[{text}]")


@pytest.mark.parametrize(
    "text",
    ["::", "::1", "fe80::1", "fe80::1%eth0", "2606:4700::1%1", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1",
     "2001:db8::1", "3fff::1", "100::1", "5f00::1", "4000::1", "64:ff9b:1::808:808", "2001::1", "2001:20::1", "", "x"],
)  # fmt: skip
def test_special_ipv6_is_refused(text):
    assert not is_public_address(text)
    assert not is_public_host(f"[{text}]")


@pytest.mark.parametrize("host", ["api.openai.com", "XN--BCHER-KVA.example", "a-b.c2.example", "1.example"])
def test_names_of_two_labels_or_more_may_be_asked_for(host):
    assert is_public_host(host)


@pytest.mark.parametrize(
    "host",
    ["localhost", "metadata", "example.com.", ".example.com", "a..b", "bücher.example", "a_b.example", "-a.example",
     "a b.example", "a.0x", "a.1", "", ".", "[8.8.8.8]", "[::1", "2606:4700::1", "１２７.0.0.1", "127。0。0。1",
     "x" * 64 + ".example", ".".join(["a" * 60] * 5)],
)  # fmt: skip
def test_what_is_no_such_name_is_refused(host):
    assert not is_public_host(host)
