"""Conversations in shorthand, as the cases write them, and generators of any conversation."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Msg = dict[str, Any]


def words(count: int, word: str = "w") -> str:
    return " ".join([word] * count)


def content(value: int | str) -> str:
    return words(value) if isinstance(value, int) else value


def S(value: int | str) -> Msg:
    return {"role": "system", "content": content(value)}


def U(value: int | str) -> Msg:
    return {"role": "user", "content": content(value)}


def A(value: int | str) -> Msg:
    return {"role": "assistant", "content": content(value)}


def C(*ids: str, arguments: int = 0) -> Msg:
    """An assistant message that makes calls; ``arguments`` words of arguments in the first."""
    calls = [
        {"id": one, "type": "function", "function": {"name": "f", "arguments": words(arguments) if first == 0 else ""}}
        for first, one in enumerate(ids)
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def T(call_id: str | None, value: int | str = 1) -> Msg:
    message = {"role": "tool", "content": content(value)}
    return message if call_id is None else {**message, "tool_call_id": call_id}


_IDS = st.sampled_from(["a", "b", "c", "call_0"])
_TEXT = st.integers(0, 12).map(words)
_META = st.fixed_dictionaries(
    {},
    optional={
        "source": st.sampled_from(
            ["system", "character", "persona", "lore", "memory", "example", "history", "summary", "interceptor", "odd"]
        ),
        "required": st.booleans(),
        "pinned": st.booleans(),
        "manualExcluded": st.booleans(),
        "priority": st.integers(-3, 3),
    },
)
_PART = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "text": _TEXT}),
    st.fixed_dictionaries({"type": st.just("image_url"), "image_url": st.just({"url": "https://e.example/i.png"})}),
    st.fixed_dictionaries({"type": st.just("tool_result"), "tool_use_id": _IDS, "content": _TEXT}),
)
_CONTENT = st.one_of(_TEXT, st.none(), st.lists(_PART, max_size=3))
_CALLS = st.one_of(
    st.none(),
    st.lists(
        st.fixed_dictionaries(
            {"function": st.fixed_dictionaries({"name": st.just("f"), "arguments": _TEXT})},
            optional={"id": _IDS},
        ),
        max_size=3,
    ),
)


@st.composite
def messages(draw: st.DrawFn) -> Msg:
    role = draw(st.sampled_from(["system", "developer", "user", "assistant", "tool", "function", "observer"]))
    message: Msg = {"role": role, "content": draw(_CONTENT)}
    if role == "assistant" and draw(st.booleans()):
        message["tool_calls"] = draw(_CALLS)
    if role == "tool" and draw(st.integers(0, 4)):
        message["tool_call_id"] = draw(_IDS)
    if role in ("assistant", "function") and draw(st.integers(0, 4)) == 0:
        key = "function_call" if role == "assistant" else "name"
        message[key] = {"name": "g", "arguments": "{}"} if role == "assistant" else "g"
    if draw(st.integers(0, 3)) == 0:
        message["meta"] = draw(_META)
    if draw(st.integers(0, 7)) == 0:
        message["pinned"] = draw(st.booleans())
    return message


conversations = st.lists(messages(), max_size=24)
rounds = st.lists(
    st.one_of(
        st.integers(0, 9).map(lambda n: [U(n)]),
        st.integers(0, 9).map(lambda n: [A(n)]),
        st.builds(lambda i, n: [C(i), T(i, n)], _IDS, st.integers(0, 9)),
        st.builds(lambda n, m: [C("x", "y"), T("y", n), T("x", m)], st.integers(0, 9), st.integers(0, 9)),
    ),
    max_size=10,
).map(lambda groups: [S(1), *(message for group in groups for message in group)])
any_conversation = st.one_of(conversations, rounds)
budgets = st.integers(0, 120)
