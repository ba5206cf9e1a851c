"""The raw body: what is vouched for leaves byte-true, the rest is refused with a reason and a path."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextshift.body import Edits, parse_body
from contextshift.errors import InvalidBody

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
spaces = st.sampled_from(["", " ", "\n", "\t ", "\r\n  "])
keys = st.sampled_from(["temperature", "stop", "user", "x", "é", "模型", 'a"b', "n"])


@st.composite
def bodies(draw: st.DrawFn) -> tuple[str, list[str], bool]:
    """A body's text, its messages' texts, and whether it has routing."""

    def written(value: object) -> str:
        return json.dumps(value, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, None, 1])))

    gap = lambda: draw(spaces)  # noqa: E731
    messages = [written({"role": "user", "content": draw(st.text())}) for _ in range(draw(st.integers(0, 5)))]
    listed = "[" + ",".join(gap() + message + gap() for message in messages) + "]"
    members = [f'"model"{gap()}:{gap()}"m"', f'"messages"{gap()}:{gap()}{listed}']
    members += [f"{written(key)}:{written(draw(json_values))}" for key in draw(st.sets(keys, max_size=3))]
    routed = draw(st.booleans())
    if routed:
        members.append(f'"routing"{gap()}:{gap()}{{"context_swapping":{gap()}true}}')
    members = draw(st.permutations(members))
    text = gap() + "{" + ",".join(gap() + member + gap() for member in members) + "}" + gap()
    return text, messages, routed


def surrogate_free(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@given(bodies())
def test_a_body_without_routing_leaves_as_the_very_bytes_that_came(body):
    text, _, routed = body
    raw = text.encode()
    sent = parse_body(raw).spliced("m")
    if routed:
        assert "routing" not in json.loads(sent)
        assert {**json.loads(sent), "routing": {"context_swapping": True}} == json.loads(raw)
    else:
        assert sent is raw or sent == raw


@given(bodies(), st.data())
def test_a_cut_removes_elements_of_messages_and_nothing_else(body, data):
    text, messages, _ = body
    dropped = data.draw(st.sets(st.integers(0, len(messages) - 1))) if messages else set()
    sent = parse_body(text.encode()).spliced(None, Edits(dropped))
    kept = [message for index, message in enumerate(messages) if index not in dropped]
    expected = {**json.loads(text), "messages": [json.loads(message) for message in kept]}
    expected.pop("routing", None)
    assert json.loads(sent) == expected
    position = 0
    for message in kept:  # each kept element's bytes, in order
        position = sent.index(message.encode(), position) + len(message.encode())


@given(bodies(), st.text(min_size=1).filter(surrogate_free))
def test_another_model_changes_the_value_of_model_alone(body, name):
    sent = parse_body(body[0].encode()).spliced(name)
    expected = {**json.loads(body[0]), "model": name}
    expected.pop("routing", None)
    assert json.loads(sent) == expected


@given(st.binary(max_size=40) | st.text(max_size=40).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_whatever_comes_is_read_or_refused_and_never_a_crash(raw):
    try:
        body = parse_body(raw)
    except InvalidBody as error:
        assert error.reason
        return
    assert dict(body.value) == json.loads(raw)


def deep(levels: int) -> bytes:
    return b'{"x": ' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}"


@pytest.mark.parametrize(
    ("raw", "reason", "path"),
    [
        (b"", "invalid_json", None),
        (b"{", "invalid_json", None),
        (b"{}x", "invalid_json", None),
        (b'{"a": 1,}', "invalid_json", None),
        (b'{"a" 1}', "invalid_json", None),
        (b"{a: 1}", "invalid_json", None),
        (b'{"a": "\n"}', "invalid_json", None),
        (b'{"messages": [1,]}', "invalid_json", None),
        (b'{"messages": [1 2]}', "invalid_json", None),
        (b"\xef\xbb\xbf{}", "invalid_json", None),
        (b'{"a": "\xff"}', "invalid_utf8", None),
        (b'{"a": "\xed\xa0\x80"}', "invalid_utf8", None),
        (b"[]", "invalid_type", None),
        (b"null", "invalid_type", None),
        (b'{"a": 1, "a": 2}', "repeated_key", "a"),
        (b'{"a": 1, "\\u0061": 2}', "repeated_key", "a"),
        (b'{"messages": [{"role": "user", "role": "system"}]}', "repeated_key", "messages[0]"),
        (b'{"routing": {"headroom": 0, "headroom": 1}}', "repeated_key", "routing"),
        (b'{"Messages": []}', "ambiguous_key", "Messages"),
        (b'{"MODEL": "x"}', "ambiguous_key", "MODEL"),
        (b'{"temperature": NaN}', "invalid_number", "temperature"),
        (b'{"messages": [{"x": -Infinity}]}', "invalid_number", "messages[0]"),
        (b'{"seed": ' + b"1" * 1001 + b"}", "invalid_number", "seed"),
        (b'{"seed": 0.' + b"1" * 1001 + b"}", "invalid_number", "seed"),
        (deep(101), "too_deep", None),
        (deep(100_000), "too_deep", None),
        (b'{"messages": [{"content": "a\\ud800b"}]}', "lone_surrogate", "messages[0].content"),
        (b'{"metadata": {"\\udfff": 1}}', "lone_surrogate", "metadata"),
    ],
)
def test_what_cannot_be_vouched_for_is_refused_by_reason_and_path(raw, reason, path):
    with pytest.raises(InvalidBody) as caught:
        parse_body(raw)
    assert (caught.value.reason, caught.value.path) == (reason, path)


@pytest.mark.parametrize(
    "raw",
    [b'{"seed": ' + b"1" * 1000 + b"}", deep(100), b'{"a": "\\ud83d\\ude00"}', b'{"x": {"a": 1, "a": 2}}', b" {} "],
)
def test_what_is_odd_but_clear_passes_untouched(raw):
    assert parse_body(raw).spliced() == raw


def test_no_message_of_an_error_repeats_the_body():
    with pytest.raises(InvalidBody) as caught:
        parse_body(b'{"secret prompt": "secret prompt" "x"}')
    assert "secret" not in str(caught.value)
