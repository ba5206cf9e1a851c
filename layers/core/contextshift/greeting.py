"""How a chat with a character begins: its opening message, one of those that its card offers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from contextshift.casting import Cast
from contextshift.errors import InvalidInput
from contextshift.lore.macros import MacroContext, expand
from contextshift.swipes import showing
from contextshift.voices import user_name

__all__ = ["greeting_message"]


def greeting_message(
    chat: Mapping[str, Any], cast: Cast, index: int | None, *, chat_id: str, now: float
) -> dict[str, Any] | None:
    """Return the opening message of a new chat, None where no character has one.

    All greetings that say something are its swipes, the one at ``index`` is shown. ``index`` counts as the card does:
    0 is ``first_mes``, 1 the first alternate, an empty one keeps its number. None and 0 mean the first that says
    something. Raises InvalidInput for an index beyond the card's greetings, and for an empty alternate.
    """
    speaker = next((one for one in chat.get("participants") or () if one.get("kind") == "character"), None)
    character = cast.character(speaker.get("character_id")) if speaker and speaker.get("character_id") else None
    offered = character.card.greetings if character else ()
    greetings = {number: text for number, text in enumerate(offered) if text.strip()}
    if index and index >= len(offered):
        raise InvalidInput(f"there are {len(offered)} greetings", "greeting", "invalid_index")
    if index and index not in greetings:
        raise InvalidInput("this greeting is empty", "greeting", "invalid_index")
    if not greetings or character is None or speaker is None:
        return None
    card = character.card
    persona = cast.persona
    context = MacroContext(
        char=card.char,
        user=user_name(chat, cast),
        description=card.description,
        personality=card.personality,
        scenario=card.scenario,
        persona=persona.description if persona else "",
        variables=chat.get("variables") or {},
        now=now,
        seed=f"{chat_id}/greeting",
        chat_seed=chat_id,
    )
    swipes = [
        {
            "content": expand(text, context, place=f"greeting:{number}").text,
            "reasoning": None,
            "generation_id": None,
            "greeting": number,
        }
        for number, text in greetings.items()
    ]
    shown = list(greetings).index(index) if index in greetings else 0
    return showing({"role": "assistant", "speaker_id": speaker["id"], "swipes": swipes}, shown)
