"""What goes back to the client: status, headers by an allow-list, and bytes as they came."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from contextshift.ports import ProviderAnswer

__all__ = ["EVENT_STREAM", "Answer", "AnswerStream", "header_of", "holds_events", "readable_type", "returned"]

_RETURNED = frozenset(
    (
        "content-disposition",
        "content-encoding",
        "content-type",
        "openai-processing-ms",
        "openai-version",
        "request-id",
        "retry-after",
        "retry-after-ms",
        "x-request-id",
        "x-should-retry",
    )
)
_RETURNED_PREFIXES = ("x-ratelimit-", "anthropic-ratelimit-")
EVENT_STREAM = "text/event-stream"


class AnswerStream(Protocol):
    """A body that comes as it is made. It must be closed however far it was read: that ends the audit."""

    unfinished_event: bool
    """Whether what was passed on so far ends in the middle of an event."""
    events: bool
    """Whether the body is a stream of events, in which an error can still be said."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Iterate over the chunks. Raises CallFailed where the upstream breaks off or is too late."""

    def seconds_left(self) -> float:
        """Return the time until the deadline of the whole answer."""

    async def aclose(self) -> None:
        """Stop: what was not read to its end was cancelled by its client."""


@dataclass(slots=True)
class Answer:
    """The upstream's status and bytes, its headers by allow-list, and ours."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes | AnswerStream


def header_of(upstream: ProviderAnswer, wanted: str) -> str:
    """Return an answer's first header of a name (in lower case), "" where there is none."""
    return next((value for name, value in upstream.headers if name == wanted), "")


def readable_type(upstream: ProviderAnswer) -> str | None:
    """Return the content type of an answer that can be read, None for a compressed one: it is passed on unread."""
    if header_of(upstream, "content-encoding").lower() not in ("", "identity"):
        return None
    return header_of(upstream, "content-type")


def holds_events(upstream: ProviderAnswer, *passed: str) -> bool:
    """Whether an event of ours can stand behind what came of an answer: not in compressed bytes, nor past a length."""
    return readable_type(upstream) is not None and not (
        "content-length" in passed and header_of(upstream, "content-length")
    )


def returned(headers: Sequence[tuple[str, str]], *more: str) -> list[tuple[str, str]]:
    """Return the headers of an upstream that its client gets, and those named beside."""
    return [
        (name, value)
        for name, value in headers
        if name in _RETURNED or name in more or name.startswith(_RETURNED_PREFIXES)
    ]
