"""Staging: from what a chat holds to the question that the decision flow answers. No I/O, and no randomness of its own.

``macros → character and persona → lorebook → memory → history``: a preview and its generation stage alike, since the
clock and the chances come in from outside, and what lore remembers between turns stands with the messages.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from contextshift.assembly import assemble, sendable, switched_off
from contextshift.blocks import lore_block, memory_block, outside_entries, scanned_text
from contextshift.budget import requested_reply
from contextshift.casting import Cast, Wanted
from contextshift.catalogue import Model, check_allowed, model_budget, reserve_for
from contextshift.chat_settings import check_chat_settings, check_params
from contextshift.chats import MessageRecord
from contextshift.errors import InvalidInput
from contextshift.fit import Decision
from contextshift.lore.activation import Activation, activate
from contextshift.lore.activation_ports import LoreSettings, Search
from contextshift.lore.model import Place
from contextshift.measuring import Question
from contextshift.planner import Planner
from contextshift.ports import Access
from contextshift.scene import (
    AuthorNote,
    LoreBlock,
    Scene,
    Spoken,
    read_layout,
)
from contextshift.settings import Level, Settings
from contextshift.turning import split_history, turn_of
from contextshift.voices import Voices

__all__ = ["Staged", "Staging", "sent_messages"]

_IMPERSONATE = "Write the next message as {{user}}, in the style of what {{user}} has said so far. Write nothing else."
_LEVELS = (Level.REQUEST, Level.CHAT, Level.ACCOUNT, Level.PLAN)


@dataclass(frozen=True, slots=True)
class Staged:
    """A question, and what its answer is saved with."""

    question: Question
    params: Mapping[str, Any]
    speaker_id: str | None
    target: MessageRecord | None
    """The message that is continued, replaced or swiped."""
    lore_state: Mapping[str, Any]
    prefill: str = ""
    """How the reply begins, as it is sent."""

    def request(self, upstream_name: str, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the request to send: always streamed, so that what there is of an answer can be kept."""
        return {
            **self.params,
            "model": upstream_name,
            "messages": list(messages),
            "stream": True,
            "stream_options": {"include_usage": True},
        }


class Staging:
    """Stages one prompt of a chat."""

    def __init__(
        self,
        planner: Planner,
        access: Access,
        chat: Mapping[str, Any],
        messages: Sequence[MessageRecord],
        cast: Cast,
        wanted: Wanted,
        *,
        seed: str,
        now: float,
        search: Search,
    ) -> None:
        self._planner = planner
        self._access = access
        self._chat = chat
        self._cast = cast
        self._wanted = wanted
        self._seed = f"{seed}/{len(messages)}"
        self._chat_seed = seed
        self._now = now
        self._search = search
        self._history, self._target = split_history(messages, wanted.type)

    def stage(self) -> Staged:
        """Stage it. Raises InvalidInput, ModelNotFound, ModelNotAllowed, StrategyNotInPlan."""
        settings = self._settings()
        model = self._model(settings)
        spoken = self._spoken()
        activation = self._activation(settings, model, spoken)
        scene = self._scene(settings, spoken, activation)
        arrange = partial(assemble, scene)
        blocks = arrange(model.message_rules)
        if not blocks:
            raise InvalidInput("there is nothing to send", "messages", "empty_array")
        params = self._params()
        question = self._planner.chat_question(
            self._access,
            model,
            blocks,
            request={**params, "model": model.name, "messages": blocks},
            settings=settings,
            arrange=arrange,
            notes=tuple(self._notes(activation)),
            outside=tuple(outside_entries(activation, blocks, switched_off(scene), self._planner.counter(model))),
        )
        state = activation.state if activation else {}
        prefill = self._voices.expanded(self._wanted.prefill)
        return Staged(question, params, self._speaker_id(), self._target, state, prefill)

    # -- settings, model, parameters ------------------------------------------------------------------------

    def _settings(self) -> Settings:
        chat = dict(check_chat_settings(self._chat.get("settings") or {}))
        if self._chat.get("context_strategy"):
            chat["context_strategy"] = self._chat["context_strategy"]
        return self._planner.settings(self._access, self._wanted.overrides, _LEVELS, chat)

    def _model(self, settings: Settings) -> Model:
        name = self._wanted.model or self._chat.get("model")
        if not name:
            raise InvalidInput("neither the request nor the chat names a model", "model", "missing")
        model = self._planner.catalogue_of(self._access).resolve(name)
        check_allowed(model, settings.compliance, self._access.models)
        return model

    def _params(self) -> Mapping[str, Any]:
        merged = {**(self._chat.get("params") or {}), **self._wanted.params}
        check_params(merged)
        return merged

    # -- who speaks, and what was said ----------------------------------------------------------------------

    def _speaker_id(self) -> str | None:
        """Return the participant whose turn it is: the one named, else the one continued, else the first character."""
        if self._wanted.speaker_id is not None:
            if self._participants() and not self._participant(self._wanted.speaker_id):
                raise InvalidInput("the chat has no such participant", "speaker_id", "unknown_reference")
            return self._wanted.speaker_id
        if self._target is not None and self._target.document.get("speaker_id"):
            return str(self._target.document["speaker_id"])
        return next((one["id"] for one in self._participants() if one.get("kind") == "character"), None)

    def _participants(self) -> Sequence[Mapping[str, Any]]:
        return self._chat.get("participants") or ()

    def _participant(self, id: str | None) -> Mapping[str, Any]:
        return next((one for one in self._participants() if one["id"] == id), {})

    def _name_of(self, speaker: str | None) -> str | None:
        participant = self._participant(speaker)
        if participant.get("name"):
            return str(participant["name"])
        character = self._cast.character(participant.get("character_id")) if participant.get("character_id") else None
        return character.card.char if character else None

    def _spoken(self) -> list[Spoken]:
        spoken = [self._said(message) for message in self._history]
        if self._wanted.user_message is not None:
            spoken.append(Spoken("user_message", {"role": "user", "content": self._wanted.user_message}))
        return spoken

    def _instruction(self) -> str:
        """Return what a quiet or impersonating generation asks for: no message, and so neither scanned nor counted."""
        own = (self._chat.get("settings") or {}).get("impersonation_prompt")
        return {"quiet": self._wanted.prompt or "", "impersonate": str(own or _IMPERSONATE)}.get(self._wanted.type, "")

    def _said(self, message: MessageRecord) -> Spoken:
        document = message.document
        sent = {name: document[name] for name in _SENT if document.get(name) is not None}
        sent["content"] = self._named(document)
        if document.get("reasoning") and self._wanted.include_reasoning:
            sent["reasoning_content"] = document["reasoning"]
        meta = document.get("meta")
        meta = meta if isinstance(meta, Mapping) else {}
        pinned = bool(document.get("pinned") or meta.get("pinned") is True)
        return Spoken(message.id, sent, pinned, meta.get("manualExcluded") is True)

    def _named(self, document: Mapping[str, Any]) -> Any:
        """Return a message's content; where several characters speak, with the speaker's name before it."""
        content = document.get("content")
        wish = (self._chat.get("settings") or {}).get("names", "auto")
        several = len(self._cast.characters) > 1
        name = self._name_of(document.get("speaker_id"))
        if name and isinstance(content, str) and (wish == "prefix" or (wish == "auto" and several)):
            return f"{name}: {content}"
        return content

    # -- macros, lore, memory ---------------------------------------------------------------------------------

    @cached_property
    def _voices(self) -> Voices:
        return Voices(
            self._chat,
            self._cast,
            speaker=self._character_of(self._speaker_id()),
            name=self._name_of(self._speaker_id()) or "Assistant",
            last_message=self._last_message(),
            now=self._now,
            seed=self._seed,
            chat_seed=self._chat_seed,
        )

    def _character_of(self, speaker: str | None) -> str | None:
        """Return the character that a participant plays; of one who plays none the first character of the chat."""
        named = self._participant(speaker).get("character_id")
        character = self._cast.character(named)
        return character.id if character else None

    def _last_message(self) -> str:
        if self._wanted.user_message is not None:
            return self._wanted.user_message
        last = next((one.document.get("content") for one in reversed(self._history)), "")
        return last if isinstance(last, str) else ""

    def _activation(self, settings: Settings, model: Model, spoken: Sequence[Spoken]) -> Activation | None:
        if not self._cast.books:
            return None
        counter = self._planner.counter(model)
        return activate(
            self._cast.books,
            self._scanned(spoken),
            settings=LoreSettings(scan_depth=settings.scan_depth, budget_tokens=self._lore_tokens(settings, model)),
            turn=turn_of(self._history, self._wanted, self._chance),
            count=lambda text: counter({"role": "system", "content": text}),
            search=self._search,
            expand=self._voices.expanded,
            expand_of={
                book: partial(self._voices.expanded, character=owner) for book, owner in self._book_owners.items()
            },
        )

    def _scanned(self, spoken: Sequence[Spoken]) -> list[str]:
        """Return the texts that lore is looked for in; what is continued is read with what it answers."""
        texts = [scanned_text(one.message) for one in spoken]
        if self._wanted.type == "continue":
            texts[-2:] = ["\n".join(texts[-2:])]
        return texts

    @cached_property
    def _book_owners(self) -> Mapping[str, str]:
        """The characters whose own books are in scope, by the books' ids."""
        return {one.card.book.id: one.id for one in self._cast.characters if one.card.book is not None}

    def _lore_tokens(self, settings: Settings, model: Model) -> int | None:
        if model.context_window is None:
            return None
        reserve = reserve_for(model, requested_reply(self._params()), settings.reserve_tokens)
        return int(max(0, model_budget(model, reserve, 0).limit) * settings.lore_share)

    def _chance(self, label: str) -> float:
        digest = hashlib.sha256(f"{self._seed}/{label}".encode()).digest()
        return int.from_bytes(digest[:7], "big") / (1 << 56)

    def _scene(self, settings: Settings, spoken: Sequence[Spoken], activation: Activation | None) -> Scene:
        lore: list[LoreBlock] = []
        outlets: dict[str, list[LoreBlock]] = {}
        for one in activation.entries if activation else ():
            lore.append(lore_block(one, self._book_owners.get(one.book)))
            if one.place is Place.OUTLET and one.entry.outlet:
                outlets.setdefault(one.entry.outlet, []).append(lore[-1])
        self._voices.fill(outlets)
        note = self._chat.get("author_note")
        return Scene(
            history=spoken,
            system_prompt=settings.system_prompt,
            characters=self._cast.characters,
            persona=self._cast.persona,
            lore=lore,
            memories=[memory_block(id, document) for id, document in self._cast.memories],
            author_note=AuthorNote(**note) if note else None,
            prefill=self._wanted.prefill,
            layout=read_layout((self._chat.get("settings") or {}).get("blocks")),
            speaker=self._participant(self._speaker_id()).get("character_id"),
            instruction=self._instruction(),
            expand=self._voices.expanded,
        )

    def _notes(self, activation: Activation | None) -> list[Mapping[str, Any]]:
        notes: list[Mapping[str, Any]] = [{"code": "missing-reference", "ref": ref} for ref in self._cast.missing]
        notes += self._cast.notes
        notes += [{"code": "unknown-macro", "macro": name} for name in self._voices.unknown]
        return [*notes, *(activation.diagnostics if activation else ())]


_SENT = ("role", "name", "tool_calls", "tool_call_id")


def sent_messages(decision: Decision, question: Question) -> list[dict[str, Any]]:
    """Return the messages as they are sent: what stays, as the decision changed it, and the summary in its place."""
    if decision.final is not None:
        return [sendable(message) for _, message in decision.final]
    edits = decision.edits()
    sent: list[dict[str, Any]] = []
    for index, message in enumerate(decision.of(question).messages):
        if edits.added is not None and edits.added[0] == index:
            sent.append(sendable(edits.added[1]))
        if index not in edits.dropped:
            sent.append(sendable(edits.replaced.get(index, message)))
    return sent
