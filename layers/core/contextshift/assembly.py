"""Assembly: everything a chat brings, as blocks in one documented order. One block is one message as sent.

The order, of which a chat's settings may change or switch off every block but the history (`scene.Layout`)::

    system         the system prompt: the character's own, else the account's
    lore_before    lore placed before the character
    character      description, personality and scenario, one block a character
    lore_after     lore placed after the character
    persona        who the user plays
    memory         what is remembered
    examples       example dialogues, with the lore placed around them
    history        the conversation; in it, by depth: the author's note, characters' notes, lore
    post_history   what the character says after the history
    prefill        how the reply begins

Every block carries in ``meta`` its ``id``, its ``source`` and a ``ref`` to what it was made of; the shift reads the
same ``meta``, and it stays here: `sendable` takes it off. A target that takes system messages in the first place only
gets later ones as the user's (rule ``system_first_only``), one that takes a single one gets the leading ones joined
(``one_system_message``); both happen here, before anything is counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from contextshift.lore.model import Place
from contextshift.messages import Message, Role, Source
from contextshift.scene import AuthorNote, LoreBlock, Scene, Spoken

__all__ = ["assemble", "sendable"]

_START = re.compile(r"^[ \t]*<START>[ \t]*$", re.IGNORECASE | re.MULTILINE)
_PARAGRAPH = "\n\n"


def assemble(scene: Scene, rules: Collection[str] = ()) -> list[Message]:
    """Return the blocks of a prompt, for a target with these message rules."""
    makers: dict[str, Callable[[Scene], Iterator[Message]]] = {
        "system": _system,
        "lore_before": lambda scene: _lore(scene, Place.BEFORE_CHAR),
        "character": _characters,
        "lore_after": lambda scene: _lore(scene, Place.AFTER_CHAR),
        "persona": _persona,
        "memory": _memories,
        "examples": _examples,
        "history": _history,
        "post_history": _post_history,
        "prefill": _prefill,
    }
    blocks = [block for name in scene.layout.order for block in makers[name](scene)]
    if "one_system_message" in rules:
        blocks = _joined(blocks)
    return _system_first_only(blocks) if "system_first_only" in rules else blocks


def sendable(message: Message) -> dict[str, Any]:
    """Return a block as it goes to a provider: without what only we read."""
    return {key: value for key, value in message.items() if key not in ("meta", "pinned")}


def _block(
    name: str,
    source: Source,
    text: str,
    role: str = str(Role.SYSTEM),
    ref: tuple[str, str] | None = None,
    **marks: Any,
) -> Message:
    meta: dict[str, Any] = {"id": name, "source": str(source), **{k: v for k, v in marks.items() if v is not None}}
    if ref is not None:
        meta["ref"] = {"type": ref[0], "id": ref[1]}
    return {"role": role, "content": text, "meta": meta}


def _system(scene: Scene) -> Iterator[Message]:
    """A character's system prompt replaces the account's, and may hold it; the first that has one speaks."""
    own = next((one for one in scene.characters if one.card.system_prompt.strip()), None)
    if own is None:
        if text := scene.expand(scene.system_prompt):
            yield _block("system", Source.SYSTEM, text)
        return
    text = _with_original(own.card.system_prompt, scene.system_prompt)
    yield _block("system", Source.SYSTEM, scene.expand(text), ref=("character", own.id))


def _with_original(text: str, original: str) -> str:
    return re.sub(r"\{\{original\}\}", lambda _: original, text, flags=re.IGNORECASE)


def _characters(scene: Scene) -> Iterator[Message]:
    for one in scene.characters:
        card = one.card
        added = {place: _texts(scene, place) for place in (Place.PERSONALITY, Place.SCENARIO)}
        parts = [
            card.description,
            _PARAGRAPH.join(filter(None, [card.personality, *added[Place.PERSONALITY]])),
            _PARAGRAPH.join(filter(None, [card.scenario, *added[Place.SCENARIO]])),
        ]
        text = scene.expand(_PARAGRAPH.join(part.strip() for part in parts if part.strip()))
        if text:
            yield _block(f"character:{one.id}", Source.CHARACTER, text, ref=("character", one.id))


def _texts(scene: Scene, place: Place) -> list[str]:
    return [one.text for one in scene.lore if one.place is place]


def _persona(scene: Scene) -> Iterator[Message]:
    persona = scene.persona
    if persona is not None and (text := scene.expand(persona.description)):
        yield _block(f"persona:{persona.id}", Source.PERSONA, text, ref=("persona", persona.id))


def _lore(scene: Scene, *places: Place) -> Iterator[Message]:
    return (_lore_block(one) for place in places for one in scene.lore if one.place is place)


def _lore_block(one: LoreBlock) -> Message:
    return _block(
        f"lore:{one.id}",
        Source.LORE,
        one.text,
        one.role,
        ("lore", one.id),
        required=one.required or None,
        relevance=one.relevance,
        priority=one.priority,
    )


def _memories(scene: Scene) -> Iterator[Message]:
    for one in scene.memories:
        yield _block(
            f"memory:{one.id}",
            Source.MEMORY,
            scene.expand(one.text),
            ref=("memory", one.id),
            required=one.required or None,
            relevance=one.relevance,
            priority=one.priority,
        )


def _examples(scene: Scene) -> Iterator[Message]:
    yield from _lore(scene, Place.BEFORE_EXAMPLES)
    for one in scene.characters:
        dialogues = [text.strip() for text in _START.split(one.card.mes_example)]
        for number, text in enumerate(filter(None, dialogues)):
            name = f"example:{one.id}:{number}"
            yield _block(name, Source.EXAMPLE, scene.expand(text), ref=("character", one.id))
    yield from _lore(scene, Place.AFTER_EXAMPLES)


def _post_history(scene: Scene) -> Iterator[Message]:
    for one in scene.characters:
        if one.card.post_history_instructions.strip():
            text = scene.expand(_with_original(one.card.post_history_instructions, ""))
            yield _block(f"post_history:{one.id}", Source.SYSTEM, text, ref=("character", one.id))


def _prefill(scene: Scene) -> Iterator[Message]:
    if scene.prefill:
        yield _block("prefill", Source.HISTORY, scene.prefill, str(Role.ASSISTANT), pinned=True)


# -- the history, and what stands in it by depth ------------------------------------------------------------


def _history(scene: Scene) -> Iterator[Message]:
    """Yield what was said, and before each message what stands at its depth (0 is after the last one)."""
    count = len(scene.history)
    inserted: dict[int, list[Message]] = {}
    for depth, block in _from_the_end(scene):
        inserted.setdefault(max(0, count - depth), []).append(block)
    for one in scene.lore:
        if one.place is Place.REVERSE_DEPTH:
            inserted.setdefault(min(count, one.depth), []).append(_lore_block(one))
    for index, spoken in enumerate(scene.history):
        yield from inserted.get(index, ())
        yield _spoken_block(spoken)
    yield from inserted.get(count, ())


def _from_the_end(scene: Scene) -> Iterator[tuple[int, Message]]:
    """Yield (depth, block) of notes and lore; within one depth lore first, then notes: the nearest to the reply."""
    for one in scene.lore:
        if one.place is Place.AT_DEPTH:
            yield one.depth, _lore_block(one)
    for character in scene.characters:
        card = character.card
        if card.depth_prompt.strip():
            name, ref = f"character_note:{character.id}", ("character", character.id)
            text = scene.expand(card.depth_prompt)
            yield card.depth_prompt_depth, _block(name, Source.CHARACTER, text, card.depth_prompt_role, ref)
    note = scene.author_note
    depth = note.depth if note else AuthorNote("").depth
    for block in _lore(scene, Place.BEFORE_NOTE):
        yield depth, block
    if note is not None and note.text.strip():
        yield depth, _block("author_note", Source.SYSTEM, scene.expand(note.text), note.role)
    for block in _lore(scene, Place.AFTER_NOTE):
        yield depth, block


def _spoken_block(spoken: Spoken) -> Message:
    meta: dict[str, Any] = {
        "id": spoken.id,
        "source": str(Source.HISTORY),
        "ref": {"type": "message", "id": spoken.id},
    }
    if spoken.pinned:
        meta["pinned"] = True
    if spoken.excluded:
        meta["manualExcluded"] = True
    return {**spoken.message, "meta": meta}


# -- what a target insists on ---------------------------------------------------------------------------------


def _joined(blocks: Sequence[Message]) -> list[Message]:
    """Join the leading protected system blocks into one; what may leave stays a block of its own."""
    leading = 0
    while leading < len(blocks) and _is_fixed_system(blocks[leading]):
        leading += 1
    if leading < 2:
        return list(blocks)
    first = blocks[0]
    text = _PARAGRAPH.join(str(block["content"]) for block in blocks[:leading])
    parts = [block["meta"]["id"] for block in blocks[:leading]]
    return [
        {**first, "content": text, "meta": {**first["meta"], "id": "system_message", "parts": parts}},
        *blocks[leading:],
    ]


def _is_fixed_system(block: Message) -> bool:
    sources = (Source.SYSTEM, Source.CHARACTER, Source.PERSONA)
    return block["role"] == Role.SYSTEM and (block["meta"]["source"] in sources or bool(block["meta"].get("required")))


def _system_first_only(blocks: Sequence[Message]) -> list[Message]:
    """Let system blocks that follow anything else speak as the user.

    They stay what they are, protected and nobody's turn: their ``meta`` says which role they were given.
    """
    leading, shown = True, []
    for block in blocks:
        leading = leading and block["role"] == Role.SYSTEM
        shown.append(block if leading or block["role"] != Role.SYSTEM else _as_user(block))
    return shown


def _as_user(block: Message) -> Message:
    return {**block, "role": str(Role.USER), "meta": {**block["meta"], "givenRole": block["role"]}}
