"""What a chat format adds to its texts, in tokens: one record of numbers, and OpenAI's own three.

Published: OpenAI's cookbook, `How_to_count_tokens_with_tiktoken.ipynb` (commit c81359c, read in 2026): three
tokens a message, one a name, three to prime the reply. Measured: every other constant here, on public test
recordings that hold a request and the usage OpenAI reported for it (2024-2026); each says on how many.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["CLASSIC", "GPT5", "REASONING", "ChatCosts", "ToolRule"]

ToolRule = Literal["typescript", "declaration", "whole"]
"""How a model reads tools: as a TypeScript namespace, or as JSON, without or with what is around ``function``."""


@dataclass(frozen=True, slots=True)
class ChatCosts:
    """What differs between chat formats, in tokens."""

    priming: int
    """Once a request."""
    call: int
    """A message's only call, beside its name, ``functions.`` with its name, and its arguments as compact JSON."""
    parallel_call: int = 13
    """Each of several calls in one message, likewise; never under on 31 recordings of OpenAI's tool history."""
    frame: int = 3
    """Role and boundaries of a message, beside the role's own name (OpenAI: cookbook)."""
    frames: Mapping[str, int] = field(default_factory=dict)
    """The same, with the role's name, for the roles where it is another number."""
    named_roles: bool = True
    """Whether the role's name is text of its own."""
    name: int = 1
    """A message's ``name``, beside its text (OpenAI: cookbook)."""
    no_system: int = 0
    """Once a request without a system message, where the format then puts one of its own."""
    effort: int = 0
    """Once a request that says how much to think (``reasoning_effort``, ``reasoning``, ``thinking``)."""
    no_effort: int = 0
    """The same where it says not to."""
    tool_rule: ToolRule = "typescript"
    tools: int = 9
    """Once a request with tools."""
    tools_after_system: int = 5
    """The same where they are appended to a system or developer message, beside the blank line between."""
    tool: int = 0
    """Each tool, beside its text."""
    first_described: int = 0
    """Once where the first tool has a description."""
    tool_slack: int = 0
    """What the count of each tool may be under by."""
    undescribed: int = 1
    """Saved for each tool that has properties, none of them described."""
    reads_all: bool = False
    """Whether titles and descriptions within properties are read too: openai-harmony prints them."""
    response_format: int = 8
    """Over the compact JSON of a reply's schema: never under on 12 recordings of OpenAI's, over by 0-55.

    The section that openai-harmony prints, without ``additionalProperties: false``, is nearer (over by 0-8 on nine of
    ten), but was under on another of them (2026-11), so it is not taken."""
    json_object: int = 0
    """Once a request for JSON without a schema."""
    least_margin: int = 0
    """Held back of every prompt: what hosts and snapshots put around the same messages differs by this at the most."""


_OPENAI_MARGIN = 6
"""Half as much again as the 4 tokens by which the same models on the Responses API, which gateways may call for a chat
completion, were reported over the rule (2 of 37 recordings; of chat completions at OpenAI itself none, 2026-11)."""
CLASSIC = ChatCosts(priming=3, call=4, least_margin=_OPENAI_MARGIN)
"""gpt-3.5, gpt-4, gpt-4o, gpt-4.1, gpt-4.5 (34 recordings with tools or calls, 31 exact, none under)."""
REASONING = ChatCosts(
    priming=2, call=11, tools=90, tools_after_system=90, first_described=1, undescribed=0, least_margin=12
)
"""The o-series. No recording of its tools is public: they are bounded by gpt-5's. Of its texts o1-mini's was 8 more
than the rule says, so half as much again is held back (2026-11)."""
GPT5 = ChatCosts(priming=2, call=10, tools=90, tools_after_system=90, first_described=1, least_margin=_OPENAI_MARGIN)
"""gpt-5 and later, whose tools come with a preamble that no document shows (13 recordings, all exact)."""
