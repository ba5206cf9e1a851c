"""The raw request body, spliced; bytes in, bytes out.

A request that fits leaves as the bytes that came, less ``routing``. A cut removes elements of
``messages`` and nothing else: every kept element keeps its bytes. So the body is never re-serialised;
the places of its top-level members, and of the elements of ``messages``, are remembered and text is cut
out between them. UTF-8 is decoded strictly, and strict decoding has one inverse, so working on the text is
working on the bytes. What cannot be vouched for is refused: `contextshift.vouching`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from contextshift.errors import InvalidBody
from contextshift.vouching import ROUTING, Span, scan

__all__ = ["Edits", "JsonBody", "parse_body"]


@dataclass(frozen=True, slots=True)
class Edits:
    """What becomes of the elements of ``messages``, by index."""

    dropped: Collection[int] = ()
    replaced: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    added: tuple[int, Mapping[str, Any]] | None = None
    """A message, and the index of the one it stands before (which is not dropped)."""


@dataclass(frozen=True, slots=True)
class JsonBody:
    """A JSON object as it came, as its values, and as the places of its parts."""

    raw: bytes
    text: str
    value: Mapping[str, Any]
    members: Mapping[str, Span]
    model: Span | None
    """Of the value of ``model``."""
    elements: Sequence[Span]
    """Of the elements of ``messages``."""

    def spliced(self, model: str | None = None, edits: Edits | None = None) -> bytes:
        """Return the bytes to send: without ``routing``, with its messages edited, for another ``model``.

        ``model`` None, or equal to what the body says, leaves it alone.

        >>> parse_body(b'{"model": "a", "routing": {}, "messages": [1, 2]}').spliced("b", Edits({0}))
        b'{"model": "b", "messages": [2]}'
        """
        changes: list[tuple[int, int, str]] = []
        if ROUTING in self.members:
            names = list(self.members)
            cuts = _cuts(list(self.members.values()), {names.index(ROUTING)})
            changes += [(start, end, "") for start, end in cuts]
        if edits is not None:
            changes += self._message_changes(edits)
        if model is not None and self.model is not None and self.value.get("model") != model:
            changes.append((self.model.start, self.model.end, _dumps(model)))
        return self._edited(sorted(changes)) if changes else self.raw

    def _message_changes(self, edits: Edits) -> Iterator[tuple[int, int, str]]:
        for start, end in _cuts(self.elements, edits.dropped):
            yield start, end, ""
        for index, message in edits.replaced.items():
            yield self.elements[index].start, self.elements[index].end, _dumps(message)
        if edits.added is not None:
            before, message = edits.added
            start = self.elements[before].start
            yield start, start, _dumps(message) + ", "

    def _edited(self, edits: Sequence[tuple[int, int, str]]) -> bytes:
        pieces: list[str] = []
        position = 0
        for start, end, replacement in edits:
            pieces += (self.text[position:start], replacement)
            position = end
        pieces.append(self.text[position:])
        return "".join(pieces).encode()


def parse_body(raw: bytes) -> JsonBody:
    """Read a request body. Raises InvalidBody, with a stable ``reason`` and the path of what is at fault."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidBody(f"the body is not UTF-8 (byte {error.start})", None, "invalid_utf8") from None
    found = scan(text)
    return JsonBody(raw, text, found.value, found.members, found.model, found.elements)


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _cuts(spans: Sequence[Span], dropped: Collection[int]) -> Iterator[tuple[int, int]]:
    """Yield what to cut out so that ``dropped`` items go, each with the comma on its one side."""
    index, count = 0, len(spans)
    while index < count:
        if index not in dropped:
            index += 1
            continue
        first = index
        while index < count and index in dropped:
            index += 1
        if index < count:
            yield spans[first].start, spans[index].start
        else:
            yield (spans[first - 1].end if first else spans[0].start), spans[-1].end
