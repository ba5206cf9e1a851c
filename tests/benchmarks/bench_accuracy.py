"""Our counts against the prompt tokens that providers reported, by family: on data that constants were set on, and not.

Reads ``BASTION_RECORDINGS``, else ``../shared/data/token-ground-truth.jsonl`` beside the repository: a JSON object
a line with ``api``, ``model``, ``request``, ``prompt_tokens`` and ``split`` (``fit`` or ``held-out``). Constants may be
set by ``fit`` alone. ``BASTION_SPLITS=fit`` prints only that.

A recording is *set apart* where no text, tool or image of the request can explain what the provider counted: a
text-only request reported at over 50 tokens more than we count is one whose host added a prompt of its own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bastion.tokenizers.costs import GPT5, REASONING, ChatCosts
from bastion.tokenizers.openai_chat import OpenAIChatCounter
from bastion.tokenizers.registry import counter_for, family_of
from contextshift.tokens import TokenCounter

DEFAULT = Path(__file__).resolve().parents[3] / "shared" / "data" / "token-ground-truth.jsonl"
SPLITS = ("fit", "held-out")
HIDDEN = 50
OPENAI = frozenset({"o200k_base", "cl100k_base"})
PUBLIC = frozenset(
    {"deepseek_v3", "gemma3", "glm4", "kimi_k2", "llama3", "mistral_v1", "o200k_harmony", "qwen3", "tekken"}
)
HEADINGS = ("n", "exact", "<=1 %", "<=2 %", "<=3+1 %", "under", "apart", "mean excess")


@dataclass(frozen=True, slots=True)
class Compared:
    """One recording's two numbers."""

    group: str
    reported: int
    counted: int
    kind: str
    """``text``, ``tools`` or ``schema``."""

    @property
    def apart(self) -> bool:
        """Whether the host added a prompt of its own."""
        return self.kind == "text" and self.reported - self.counted > HIDDEN


def main() -> None:
    """Print a table for each split."""
    path = Path(os.environ.get("BASTION_RECORDINGS", DEFAULT))
    if not path.is_file():
        print(f"no recordings: neither BASTION_RECORDINGS nor {DEFAULT.name} in ../shared/data is a file")
        return
    wanted = os.environ.get("BASTION_SPLITS", ",".join(SPLITS)).split(",")
    for split in wanted:
        report(split, [compared(line) for line in lines(path) if line.get("split", "fit") == split])


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the recordings."""
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def report(split: str, found: list[Compared]) -> None:
    """Print one table: a line a group, then the sums."""
    print(f"\n{split:<28}" + "".join(f"{heading:>12}" for heading in HEADINGS))
    for group in sorted({item.group for item in found}):
        row(group, [item for item in found if item.group == group])
    row(
        "public vocabularies, text", [item for item in found if item.group.startswith("public") and item.kind == "text"]
    )
    row("all", found)


def row(name: str, found: list[Compared]) -> None:
    """Print one line."""
    kept = [item for item in found if not item.apart]
    excesses = [item.counted - item.reported for item in kept]
    shares = (
        share(item.counted == item.reported for item in kept),
        share(abs(item.counted - item.reported) <= 0.01 * item.reported for item in kept),
        share(abs(item.counted - item.reported) <= 0.02 * item.reported for item in kept),
        share(abs(item.counted - item.reported) <= 3 + 0.01 * item.reported for item in kept),
        share(item.counted < item.reported for item in kept),
    )
    mean = sum(excesses) / len(excesses) if excesses else 0.0
    print(f"{name:<28}{len(kept):>12}" + "".join(shares) + f"{len(found) - len(kept):>12}{mean:>12.1f}")


def share(answers: Iterable[bool]) -> str:
    """Return how many are true, in per cent."""
    known = list(answers)
    return f"{100 * sum(known) / len(known):>11.1f}%" if known else f"{'-':>12}"


def compared(line: Mapping[str, Any]) -> Compared:
    """Count one recording's request."""
    request, count = adapted(line["request"]), counter(line["api"], line["model"])
    counted = sum(map(count, request["messages"])) + count.fixed(request)
    kind = "tools" if request.get("tools") else "schema" if request.get("response_format") else "text"
    return Compared(group_of(line, count, kind), line["prompt_tokens"], counted, kind)


def group_of(line: Mapping[str, Any], count: TokenCounter, kind: str) -> str:
    """Return what a recording is reported under."""
    name = count.profile.name
    if name in OPENAI and line["api"].split(":")[0] in ("chat.completions", "responses"):
        own = line["api"] in ("chat.completions", "responses")
        return f"OpenAI {line['api'] if own else 'elsewhere'} {kind}"
    return f"{'public' if name in PUBLIC else 'closed'}: {name} {kind}"


def counter(api: str, model: str) -> TokenCounter:
    """Return the service's counter, but on the Responses API, which it does not speak, with that one's costs."""
    family = family_of(model)
    count = counter_for(None, model)
    if api.startswith("responses") and family and family.profile in OPENAI and isinstance(count, OpenAIChatCounter):
        return OpenAIChatCounter(count._encoding, responses(family.costs), family.images)
    return count


def responses(costs: ChatCosts) -> ChatCosts:
    """Return the costs of tools on the Responses API, a bound: 3 tokens or 12, from gpt-5 on 9 or 14 (2026-11)."""
    bound = 14 if costs in (GPT5, REASONING) else 12
    return replace(costs, tools=bound, tools_after_system=bound, first_described=0)


def adapted(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request of any API as one of chat completions."""
    chat = {**request, "messages": [message(item) for item in request["messages"]]}
    schema = chat.pop("text_format", None)
    if schema is not None:
        named = {key: value for key, value in schema.items() if key != "type"}
        chat["response_format"] = {"type": schema.get("type"), "json_schema": named}
    return chat


def message(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message with chat completions' roles; a list of texts keeps its parts."""
    content = item.get("content")
    if isinstance(content, list):
        content = [{"type": "text", "text": part} if isinstance(part, str) else part for part in content]
    role = "assistant" if item.get("role") == "model" else item.get("role")
    return {**item, "role": role, "content": content}


if __name__ == "__main__":
    main()
