"""How a chat with a character begins: its opening message, one of those that its card offers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from contextshift.casting import Cast
from contextshift.errors import InvalidInput
from contextshift.lore.macros import MacroContext, expand

__all__ = ["greeting_message"]


def greeting_message(
    chat: Mapping[str, Any], cast: Cast, index: int | None, *, chat_id: str, now: float
) -> dict[str, Any] | None:
    """Return the opening message of a new chat, None where no character has one.

    All greetings are its swipes, the one at ``index`` (the first where None) is shown. Raises InvalidInput for an
    index beyond them.
    """
    speaker = next((one for one in chat.get("participants") or () if one.get("kind") == "character"), None)
    character = cast.character(speaker.get("character_id")) if speaker and speaker.get("character_id") else None
    greetings = [text for text in character.card.greetings if text.strip()] if character else []
    if index is not None and index >= max(1, len(greetings)):
        raise InvalidInput(f"there are {len(greetings)} greetings", "greeting", "invalid_index")
    if not greetings or character is None or speaker is None:
        return None
    persona = cast.persona
    context = MacroContext(
        char=character.card.char,
        user=persona.name if persona else "User",
        persona=persona.description if persona else "",
        variables=chat.get("variables") or {},
        now=now,
        seed=f"{chat_id}/greeting",
        chat_seed=chat_id,
    )
    texts = [expand(text, context, place=f"greeting:{number}").text for number, text in enumerate(greetings)]
    shown = index or 0
    return {
        "role": "assistant",
        "content": texts[shown],
        "speaker_id": speaker["id"],
        "swipes": [{"content": text, "reasoning": None, "generation_id": None} for text in texts],
        "swipe": shown,
        "greeting": shown,
    }
