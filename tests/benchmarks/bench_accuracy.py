"""Our counts against the prompt tokens that providers reported, by family: on data that constants were set on, and not.

Reads ``BASTION_RECORDINGS``, else ``../shared/data/token-ground-truth.jsonl`` beside the repository: a JSON object
a line with ``api``, ``model``, ``request``, ``prompt_tokens`` and ``split`` (``fit`` or ``held-out``). Constants may be
set by ``fit`` alone. ``BASTION_SPLITS=fit`` prints only that.

Two numbers stand beside what was reported: the *count*, and the *bound* that decides whether a prompt fits, which is
the count, the profile's margin and the slack of the request's tools. ``under`` is the share of counts below what was
reported, ``bound under`` of bounds, ``mean margin`` what the bound adds.

A recording is *set apart* where nothing of the request can explain what the provider counted: a text-only request
reported at over 50 tokens more than we count, or another at over 50 more than the bound, is one whose host added a
prompt of its own. They are listed by model and host.

With ``BASTION_COUNT_ENDPOINT`` (``anthropic``, ``gemini`` or ``openai-responses``), ``BASTION_COUNT_MODEL`` and the
provider's key in ``ANTHROPIC_API_KEY``, ``GEMINI_API_KEY`` or ``OPENAI_API_KEY``, each request of the file is sent to
that provider's count endpoint, for that model, and its answer takes the place of the recorded number. Then a line of
the file may also be a bare request of chat completions. ``BASTION_COUNT_URL`` names another base than the provider's::

    BASTION_COUNT_ENDPOINT=anthropic BASTION_COUNT_MODEL=claude-sonnet-4-6 BASTION_RECORDINGS=requests.jsonl \\
        make bench ONLY=accuracy
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bastion.tokenizers.costs import GPT5, REASONING, ChatCosts
from bastion.tokenizers.openai_chat import OpenAIChatCounter
from bastion.tokenizers.registry import counter_for, family_of
from benchmarks.endpoints import ENDPOINTS, Refused, Unsendable, ask
from contextshift.tokens import TokenCounter, TokenizerProfile, slack_of

DEFAULT = Path(__file__).resolve().parents[3] / "shared" / "data" / "token-ground-truth.jsonl"
SPLITS = ("fit", "held-out")
HIDDEN = 50
OPENAI = frozenset({"o200k_base", "cl100k_base"})
PUBLIC = frozenset(
    {"deepseek_v3", "gemma3", "glm4", "kimi_k2", "llama3", "mistral_v1", "o200k_harmony", "qwen3", "tekken"}
)
HEADINGS = ("n", "exact", "<=1 %", "<=2 %", "<=3+1 %", "under", "bound under", "apart", "mean excess", "mean margin")


@dataclass(frozen=True, slots=True)
class Compared:
    """One recording's two numbers."""

    group: str
    reported: int
    counted: int
    bound: int
    kind: str
    """``text``, ``tools`` or ``schema``."""
    model: str = ""
    api: str = ""

    @property
    def apart(self) -> bool:
        """Whether the host added a prompt of its own."""
        return self.reported - (self.counted if self.kind == "text" else self.bound) > HIDDEN


def main() -> None:
    """Print a table for each split."""
    path = Path(os.environ.get("BASTION_RECORDINGS", DEFAULT))
    if not path.is_file():
        print(f"no recordings: neither BASTION_RECORDINGS nor {DEFAULT.name} in ../shared/data is a file")
        return
    wanted = os.environ.get("BASTION_SPLITS", ",".join(SPLITS)).split(",")
    recorded = [line for line in lines(path) if line.get("split", "fit") in wanted]
    if os.environ.get("BASTION_COUNT_ENDPOINT"):
        recorded = list(counted_there(recorded, os.environ))
    for split in wanted:
        report(split, [compared(line) for line in recorded if line.get("split", "fit") == split])


def counted_there(recorded: Iterable[Mapping[str, Any]], environ: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Yield each request with what the provider's endpoint counts now; print how many it did not count, and why."""
    endpoint = ENDPOINTS.get(environ["BASTION_COUNT_ENDPOINT"])
    if endpoint is None:
        raise SystemExit(f"BASTION_COUNT_ENDPOINT is none of {', '.join(ENDPOINTS)}")
    model, key = (environ.get(name, "") for name in ("BASTION_COUNT_MODEL", endpoint.key_name))
    if not model or not key:
        raise SystemExit(f"BASTION_COUNT_MODEL and {endpoint.key_name} are needed")
    missing: Counter[str] = Counter()
    for line in recorded:
        request = adapted(line.get("request", line))
        try:
            counted = ask(endpoint, model, request, key, environ.get("BASTION_COUNT_URL", ""))
        except Unsendable as error:
            missing[f"not sent, {error}"] += 1
        except Refused as error:
            missing[f"refused, {error}"] += 1
        else:
            yield {**line, "request": request, "api": endpoint.api, "model": model, "prompt_tokens": counted}
    for reason, many in missing.most_common():
        print(f"  {many} {reason}")


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the recordings."""
    with path.open(encoding="utf-8") as file:
        yield from (json.loads(line) for line in file if line.strip())


def report(split: str, found: list[Compared]) -> None:
    """Print one table: a line a group, then the sums."""
    print(f"\n{split:<28}" + "".join(f"{heading:>12}" for heading in HEADINGS))
    for group in sorted({item.group for item in found}):
        row(group, [item for item in found if item.group == group])
    row(
        "public vocabularies, text", [item for item in found if item.group.startswith("public") and item.kind == "text"]
    )
    row("all", found)
    for item in found:
        if item.apart:
            print(
                f"  set apart: {item.model} on {item.api}, {item.kind}: {item.reported - item.counted} over the count"
            )


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
        share(item.bound < item.reported for item in kept),
    )
    means = (mean(excesses), mean([item.bound - item.counted for item in kept]))
    print(
        f"{name:<28}{len(kept):>12}"
        + "".join(shares)
        + f"{len(found) - len(kept):>12}{means[0]:>12.1f}{means[1]:>12.1f}"
    )


def mean(numbers: list[int]) -> float:
    """Return the mean, 0 of nothing."""
    return sum(numbers) / len(numbers) if numbers else 0.0


def share(answers: Iterable[bool]) -> str:
    """Return how many are true, in per cent."""
    known = list(answers)
    return f"{100 * sum(known) / len(known):>11.1f}%" if known else f"{'-':>12}"


def compared(line: Mapping[str, Any]) -> Compared:
    """Count one recording's request."""
    request, count = adapted(line["request"]), counter(line["api"], line["model"])
    counted = sum(map(count, request["messages"])) + count.fixed(request)
    kind = "tools" if request.get("tools") else "schema" if request.get("response_format") else "text"
    bound = counted + count.profile.margin_tokens(counted) + slack_of(count, request)
    return Compared(
        group_of(line, count, kind), line["prompt_tokens"], counted, bound, kind, line["model"], line["api"]
    )


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
        costs = responses(family.costs)
        profile = TokenizerProfile(family.profile, least_margin=costs.least_margin)
        return OpenAIChatCounter(count._encoding, costs, family.images, profile=profile)
    return count


def responses(costs: ChatCosts) -> ChatCosts:
    """Return the costs of tools on the Responses API: 3 tokens or 12, from gpt-5 on 9 or 14 (2026-11).

    A request of four tools was reported at 11 more than that, so half as much again is the slack of each.
    """
    tools = 14 if costs in (GPT5, REASONING) else 12
    return replace(costs, tools=tools, tools_after_system=tools, first_described=0, tool_slack=4)


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
