"""Header values are ASCII structured fields, whatever they say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from contextshift.headers import Token, sf_dictionary, sf_item, sf_list


@given(st.text())
def test_any_text_becomes_ascii_that_a_parser_can_read_back(text):
    written = sf_item(text)
    assert written.isascii()
    assert written.isprintable()
    assert decoded(written) == text.encode("utf-8", "replace").decode()


def decoded(item: str) -> str:
    """RFC 9651, sections 4.2.5 and 4.2.10, for well-formed items."""
    if item.startswith("%"):
        raw, inside = bytearray(), item[2:-1]
        while inside:
            size = 3 if inside[0] == "%" else 1
            raw += bytes.fromhex(inside[1:3]) if size == 3 else inside[:1].encode()
            inside = inside[size:]
        return raw.decode()
    return item[1:-1].replace('\\"', '"').replace("\\\\", "\\")


def test_the_spelling_of_the_contract():
    swapped = {"from": "demo-small", "to": "demo-large", "needed": 9120, "limit": 8192}
    assert sf_list([(Token("swapped"), swapped), (Token("estimated"), {})]) == (
        'swapped;from="demo-small";to="demo-large";needed=9120;limit=8192, estimated'
    )
    assert sf_dictionary({"prompt": 900, "approximate": False, "share": 0.25, "whole": 5.0}) == (
        "prompt=900, approximate=?0, share=0.25, whole=5.0"
    )
    assert sf_dictionary({"context_swapping": (False, {"level": Token("request")})}) == (
        "context_swapping=?0;level=request"
    )
    assert sf_dictionary({"regions": (("eu", "us"), {"level": Token("account")})}) == (
        'regions=("eu" "us");level=account'
    )


def test_b74_names_that_are_not_ascii_become_display_strings():
    assert sf_item("模型é") == '%"%e6%a8%a1%e5%9e%8b%c3%a9"'
    assert sf_item('a"b\\c') == '"a\\"b\\\\c"'
