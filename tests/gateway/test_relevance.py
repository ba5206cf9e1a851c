"""Relevance by embeddings: fetched before the shift, remembered, bound by compliance, and never in the way."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bastion.providers.embeddings import EmbeddingRelevance
from contextshift.catalogue import Catalogue, Model
from contextshift.errors import ProviderBroken, ProviderTimeout
from contextshift.fakes import ScriptedAnswer, ScriptedProvider
from contextshift.measuring import Question
from contextshift.planner import Planner
from contextshift.ports import ProviderAnswer, ProviderCall
from contextshift.relevance import Rater
from contextshift.settings import Compliance, Settings
from contextshift.words import WordCounter

pytestmark = pytest.mark.anyio

WORDS = ("dragon", "bread", "sea")


class Embedder(ScriptedProvider):
    """Embeds a text as how often it holds each of three words."""

    async def send(self, call: ProviderCall) -> ProviderAnswer:
        self.calls.append(call)
        texts = json.loads(call.body)["input"]
        rows = [{"index": n, "embedding": [text.count(word) for word in WORDS]} for n, text in enumerate(texts)]
        return ScriptedAnswer(json.dumps({"data": rows[::-1]}).encode())


def lore(text: str, **meta: Any) -> dict[str, Any]:
    return {"role": "system", "content": text, "meta": {"source": "lore", **meta}}


MODEL = Model("chat", "main", "chat", context_window=12)
EMBED = Model("embed", "main", "text-embed", regions=frozenset({"us"}))
TALK = [
    {"role": "system", "content": "w"},
    lore("bread bread is baked"),
    lore("the dragon dragon sleeps"),
    lore("pinned by hand", relevance=1.0),
    {"role": "user", "content": "where is the dragon"},
]


def planner(provider: ScriptedProvider) -> Planner:
    rater = Rater(EMBED, EmbeddingRelevance(provider, EMBED.upstream_name))
    return Planner(Catalogue({"chat": MODEL}), {}, lambda _: WordCounter(), rater=rater)


def question(strategy: str = "vector-recall", regions: frozenset[str] | None = None) -> Question:
    compliance = Compliance(regions=regions)
    settings = Settings(smart_truncation=True, context_strategy=strategy, reserve_tokens=0, compliance=compliance)
    return Question(MODEL, TALK, {}, settings)


async def test_the_least_relevant_leaves_and_the_messages_stay_as_they_came():
    provider = Embedder()
    one = planner(provider)
    planned = one.decide(await one.rated(question()))
    assert planned.decision.dropped == frozenset({1})
    assert planned.question.messages == TALK
    assert planned.question.relevance == {1: 0.0, 2: 1.0}
    assert json.loads(provider.calls[0].body)["model"] == "text-embed"


async def test_texts_are_embedded_once_and_rated_ones_never():
    provider = Embedder()
    one = planner(provider)
    for _ in range(2):
        await one.rated(question())
    sent = [text for call in provider.calls for text in json.loads(call.body)["input"]]
    assert sorted(sent) == sorted(["where is the dragon", "bread bread is baked", "the dragon dragon sleeps"])


async def test_other_strategies_ask_nobody():
    provider = Embedder()
    await planner(provider).rated(question("truncate"))
    assert provider.calls == []


async def test_a_model_outside_the_accounts_regions_is_sent_nothing():
    provider = Embedder()
    one = planner(provider)
    rated = await one.rated(question(regions=frozenset({"eu"})))
    assert provider.calls == []
    assert rated.notes == ({"code": "relevance-unavailable", "why": "compliance-region"},)


@pytest.mark.parametrize(
    "answer",
    [
        ScriptedAnswer(b"nonsense"),
        ScriptedAnswer(b'{"data": []}'),
        ScriptedAnswer(b'{"data": [{"index": 0, "embedding": ["x"]}]}'),
        ScriptedAnswer(b"{}", status=500),
        ProviderTimeout("late"),
    ],
)
async def test_an_embedder_that_fails_leaves_the_lexical_scorer_and_a_diagnostic(answer: Any):
    one = planner(ScriptedProvider(answer))
    planned = one.decide(await one.rated(question()))
    assert planned.decision.dropped == frozenset({1})
    assert planned.decision.diagnostics[0]["code"] == "relevance-unavailable"


async def test_what_is_remembered_is_bounded():
    relevance = EmbeddingRelevance(Embedder(), "m", remembered=3)
    await relevance.rate("dragon", [f"sea {number}" for number in range(9)])
    assert len(relevance._vectors) == 3
    with pytest.raises(ProviderBroken):
        await EmbeddingRelevance(ScriptedProvider(ScriptedAnswer(b"[]")), "m").rate("a", ["b"])
