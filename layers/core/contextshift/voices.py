"""Voices: whose words a text of a chat is, and so what its macros stand for.

A card's texts are its own character's, everything else is the speaker's; ``{{user}}`` is who the persona says, else
the name of the participant who is the user.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from contextshift.casting import Cast
from contextshift.lore.macros import MacroContext, expand
from contextshift.lore.model import Card
from contextshift.scene import LoreBlock, Text

__all__ = ["Voices", "user_name"]


def user_name(chat: Mapping[str, Any], cast: Cast) -> str:
    """Return what ``{{user}}`` becomes: the persona's name, else a user participant's, else ``User``."""
    users = (one.get("name") for one in chat.get("participants") or () if one.get("kind") == "user")
    return (cast.persona.name if cast.persona else "") or next((str(name) for name in users if name), "User")


class Voices:
    """Expands the macros of one prompt; two texts draw apart, one text draws alike wherever it stands."""

    def __init__(
        self,
        chat: Mapping[str, Any],
        cast: Cast,
        *,
        speaker: str | None,
        name: str,
        last_message: str,
        now: float,
        seed: str,
        chat_seed: str,
    ) -> None:
        """Prepare them. ``speaker`` is the character that speaks, ``name`` says who does where no character is."""
        persona = cast.persona
        self._cast = cast
        self._speaker = speaker
        self._base = MacroContext(
            char=name,
            user=user_name(chat, cast),
            persona=persona.description if persona else "",
            last_message=last_message,
            variables=chat.get("variables") or {},
            now=now,
            seed=seed,
            chat_seed=chat_seed,
        )
        self._contexts: dict[str | None, MacroContext] = {}
        self._outlets: dict[str, list[LoreBlock]] = {}
        self.unknown: dict[str, None] = {}
        """Macros that nobody knows, as they are written: they stay, and the diagnostics name them."""

    def fill(self, outlets: Mapping[str, Sequence[LoreBlock]]) -> None:
        """Say what stands where ``{{outlet::name}}`` is written, in texts that are expanded from now on."""
        self._outlets = {name: list(lore) for name, lore in outlets.items()}
        texts = {name: "\n".join(one.text for one in lore) for name, lore in self._outlets.items()}
        self._base = replace(self._base, outlets=texts)
        self._contexts.clear()

    def expanded(self, text: str, character: str | None = None) -> Text:
        """Return a text of a character's card with its macros replaced; None: the speaker's, or nobody's."""
        place = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
        expanded = expand(text, self._context(character), place)
        self.unknown.update(dict.fromkeys(expanded.unknown))
        found = Text(expanded.text)
        found.held = tuple(lore for name in expanded.outlets for lore in self._outlets.get(name, ()))
        return found

    def _context(self, character: str | None) -> MacroContext:
        who = self._speaker if character is None else character
        if who not in self._contexts:
            found = self._cast.character(who) if who is not None else None
            self._contexts[who] = _of_card(self._base, found.card) if found else self._base
        return self._contexts[who]


def _of_card(base: MacroContext, card: Card) -> MacroContext:
    return replace(
        base, char=card.char, description=card.description, personality=card.personality, scenario=card.scenario
    )
