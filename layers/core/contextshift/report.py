"""What a decision looks like from outside: the audit's document, and the response headers.

Preview and audit are the same document, made here from the same decision; nothing is counted or decided
again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from contextshift import headers
from contextshift.assembly import sendable
from contextshift.audit import Entry, kept_message
from contextshift.catalogue import request_cost
from contextshift.fit import Action, Decision
from contextshift.headers import Bare, Token, Warning_, sf_dictionary, sf_list
from contextshift.measuring import Measure, Question
from contextshift.messages import HISTORY_SOURCES, Message, Source, source_of
from contextshift.reasons import Reason
from contextshift.settings import Settings
from contextshift.strategies import Situation

__all__ = ["audit_document", "context_headers", "decision_warnings"]


def audit_document(decision: Decision, question: Question) -> dict[str, Any]:
    """Return everything an audit says but how the generation ended; texts as ``audit_content`` allows."""
    asked, used, settings = decision.asked, decision.used, question.settings
    question = decision.of(question)
    refused = decision.action is Action.REFUSE
    entries = _entries(decision, question)
    return {
        "model": {
            "requested": asked.model.name,
            "used": None if refused else used.model.name,
            "provider": None if refused else used.model.provider,
        },
        "action": str(decision.action),
        "strategy": decision.strategy,
        "tokenizer": tokenizer(used),
        "budget": budget(used),
        "entries": [entry.document(settings.audit_content) for entry in entries],
        "messages": _sent(decision, entries, question),
        "settings": settings.shown(),
        "candidates": [
            {
                "model": candidate.model.name,
                "provider": candidate.model.provider,
                "accepted": candidate.accepted,
                "reason": candidate.reason,
            }
            for candidate in decision.candidates
        ],
        "diagnostics": [dict(item) for item in decision.diagnostics],
        "cost": {"estimated_usd": None if refused else request_cost(used.model, used.prompt, used.reserve)},
    }


def tokenizer(measured: Measure) -> dict[str, Any]:
    """Return whose numbers these are."""
    profile = measured.counter.profile
    shown = {"profile": profile.name, "approximate": profile.approximate, "margin": measured.margin}
    return shown if profile.ratio == 1.0 else {**shown, "ratio": profile.ratio, "version": profile.version}


def budget(measured: Measure) -> dict[str, Any]:
    """Return the room there was, in tokens; ``limit`` is null where the window is unknown."""
    room = measured.budget
    return {
        "window": measured.model.context_window,
        "max_input": measured.model.max_input,
        "reserve": measured.reserve,
        "limit": None if room is None else room.limit,
        "prompt_tokens": measured.prompt,
        "fixed_tokens": measured.fixed,
    }


def decision_warnings(decision: Decision) -> list[Warning_]:
    """Return what a client must be told about a decision."""
    warnings: list[Warning_] = []
    asked, used = decision.asked, decision.used
    if decision.swapped:
        room = asked.budget
        limit = room.limit if room else 0
        needed = asked.prompt + asked.margin
        parameters: dict[str, Bare] = {
            "from": asked.model.name,
            "to": used.model.name,
            "needed": needed,
            "limit": limit,
        }
        warnings.append((Token("swapped"), parameters))
    if used.model.context_window is None:
        warnings.append((Token("unknown-window"), {"model": used.model.name}))
    if used.counter.profile.approximate:
        warnings.append((Token("estimated"), {"profile": used.counter.profile.name}))
    return warnings


def context_headers(
    decision: Decision, settings: Settings, warnings: Sequence[Warning_], generation_id: str | None = None
) -> list[tuple[str, str]]:
    """Return the ``X-Bastion-*`` headers of an answer whose prompt was measured."""
    shown: list[tuple[str, str]] = []
    if warnings:
        shown.append((headers.WARNING, sf_list(warnings)))
    if decision.dropped or decision.shortened:
        shown.append((headers.TRUNCATED, "true"))
    shown.append((headers.TOKENS, _tokens_header(decision)))
    shown.append((headers.SETTINGS, _settings_header(settings)))
    if generation_id is not None:
        shown.append((headers.GENERATION_ID, generation_id))
    return shown


def _tokens_header(decision: Decision) -> str:
    used = decision.used
    room = used.budget
    members: dict[str, Any] = {"prompt": used.prompt}
    if room is not None:
        members["budget"] = room.limit
    members |= {
        "reserve": used.reserve,
        "margin": used.margin,
        "excluded": len(decision.dropped),
        **({"shortened": len(decision.shortened)} if decision.shortened else {}),
        "approximate": used.counter.profile.approximate,
    }
    if used.bound:
        members["bound"] = True
    return sf_dictionary(members)


def _settings_header(settings: Settings) -> str:
    return sf_dictionary(
        {
            name: (_brief(name, setting["value"]), {"level": Token(setting["level"])})
            for name, setting in settings.shown().items()
            if setting["value"] is not None
        }
    )


def _brief(name: str, value: Any) -> Bare:
    """Return a setting's value as a header shows it; of message indices, how many."""
    shown: Bare = len(value) if name in ("pin", "exclude") else value
    return shown


def _entries(decision: Decision, question: Question) -> list[Entry]:
    """Return every block in its real order, a summary where it stands; then what stands within these blocks, and what
    never came into the prompt."""
    messages = question.messages
    situation, tokens = decision.situation, decision.used.tokens
    if situation is None:
        raise ValueError("a decision made by bytes alone has no blocks to list")
    reasons, changed = _reasons(decision), _changed(decision)
    entries = [
        _entry(
            _id(index, message, question),
            message,
            source=_source(message, index, situation),
            tokens=changed.get(index, tokens[index]),
            before=tokens[index] if index in changed else None,
            included=index not in decision.dropped and decision.action is not Action.REFUSE,
            reason=reasons.get(index) or situation.protected.get(index) or _staying(decision),
            group=f"g{situation.groups.of[index]}",
            assembled=question.assembled,
        )
        for index, message in enumerate(messages)
    ]
    held = _held(entries, messages) if question.assembled else []
    added = decision.edits().added
    if added is not None:
        before, summary = added
        cost = decision.used.counter(summary)
        source = str(Source.SUMMARY)
        entry = _entry("summary", summary, source, cost, included=True, reason=Reason.SUMMARY, group="summary")
        entries.insert(before, entry)
    for after, entry in _additions(decision, question):
        places = [one.id for one in entries]
        entries.insert(places.index(after) + 1 if after in places else 0, entry)
    return [replace(entry, order=order) for order, entry in enumerate((*entries, *held, *question.outside))]


def _held(entries: Sequence[Entry], messages: Sequence[Message]) -> list[Entry]:
    """Return the entries of what other blocks hold, each once: of two that hold it, with one that is sent."""
    found: dict[str, Entry] = {}
    for holder, message in zip(entries, messages, strict=True):
        for one in message["meta"].get("held", ()):
            if one["id"] not in found or not found[one["id"]].included:
                found[one["id"]] = replace(
                    holder,
                    id=one["id"],
                    source=one["source"],
                    role=one["role"],
                    tokens=0,
                    content=None,
                    fields={},
                    ref=one.get("ref"),
                    within=holder.id,
                    cause=one.get("cause"),
                    detail=one.get("detail"),
                )
    return list(found.values())


def _additions(decision: Decision, question: Question) -> Iterator[tuple[str, Entry]]:
    """Yield what interceptors put into the prompt, each with the id of the block that it follows."""
    summary = decision.shift.summary if decision.shift else None
    before, number = "", 0
    for origin, message in decision.final or ():
        if origin is not None:
            before = _id(origin, question.messages[origin], question)
        elif message is summary:
            before = "summary"
        else:
            name, cost = f"added:{number}", decision.used.counter(message)
            source = str(Source.INTERCEPTOR)
            entry = _entry(name, message, source, cost, included=True, reason=Reason.ADDED, group=name)
            yield before, replace(entry, fields={k: v for k, v in entry.fields.items() if k != "meta"})
            before, number = name, number + 1


def _id(index: int, message: Message, question: Question) -> str:
    """Return a block's id: its own where assembly gave it one, else its place."""
    return str(message["meta"]["id"]) if question.assembled else f"m{index}"


def _entry(
    name: str,
    message: Message,
    source: str,
    tokens: int,
    *,
    included: bool,
    reason: Reason,
    group: str,
    before: int | None = None,
    assembled: bool = False,
) -> Entry:
    ours = ("role", "content", "meta", "pinned") if assembled else ("role", "content")
    meta = message["meta"] if assembled else {}
    return Entry(
        id=name,
        source=source,
        role=str(message.get("role")),
        order=0,
        tokens=tokens,
        included=included,
        reason=str(reason),
        group=group,
        content=message.get("content"),
        fields={key: value for key, value in message.items() if key not in ours},
        ref=meta.get("ref"),
        cause=meta.get("cause"),
        detail=meta.get("detail"),
        tokens_before=before,
    )


def _reasons(decision: Decision) -> dict[int, Reason]:
    """Return the reasons of the blocks that something was done to."""
    if decision.shift is None:
        return {}
    left = {item.index: item.reason for item in decision.shift.excluded}
    edited = {item.index: Reason.EDITED for item in decision.shift.edited}
    return {**left, **{item.index: Reason.SHORTENED for item in decision.shift.truncated}, **edited}


def _changed(decision: Decision) -> dict[int, int]:
    """Return the tokens of the blocks that are sent with another text, as the model that is called counts them."""
    count = decision.used.counter
    return {index: count(message) for index, message in decision.edits().replaced.items()}


def _sent(decision: Decision, entries: Sequence[Entry], question: Question) -> list[dict[str, Any]]:
    """Return the messages as sent: a reference where an entry is the same, the message itself where it is not."""
    shown = sendable if question.assembled else dict
    replaced = {
        _id(index, question.messages[index], question): shown(message)
        for index, message in decision.edits().replaced.items()
    }
    content = question.settings.audit_content
    return [
        kept_message(replaced[entry.id], content) if entry.id in replaced else {"entry": entry.id}
        for entry in entries
        if entry.included and entry.within is None
    ]


def _staying(decision: Decision) -> Reason:
    return Reason.REFUSED if decision.action is Action.REFUSE else Reason.FITS


def _source(message: Mapping[str, Any], index: int, situation: Situation) -> str:
    source = source_of(message)
    if source in HISTORY_SOURCES and situation.protected.get(index) is Reason.SYSTEM:
        return str(Source.SYSTEM)
    return source or str(Source.HISTORY)
