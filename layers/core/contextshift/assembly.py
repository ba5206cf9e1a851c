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

An instruction of the request (a quiet generation's, say) stands behind them all, but before a prefill at the end.

Where several characters take part, each one's texts are expanded as its own, and of the speaker alone the system
prompt and the post-history instructions are used. Lore that stands within a character's text stands in that of the
book's own character, else the speaker's, and where no character takes part behind the place where one would be.

Every block carries in ``meta`` its ``id``, its ``source`` and a ``ref`` to what it was made of; the shift reads the
same ``meta``, and it stays here: `sendable` takes it off. What became no block of its own, since another holds it,
is named in that block's ``meta.held``: an audit lists it too, and what holds something required is required.
`switched_off` makes the blocks that a layout left out.

A target that takes system messages in the first place only gets later ones as the user's (rule
``system_first_only``), one that takes a single one gets the leading ones joined (``one_system_message``); both happen
here, before anything is counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from contextshift.lore.model import Place
from contextshift.messages import Message, Role, Source
from contextshift.scene import BLOCKS, AuthorNote, Character, LoreBlock, Scene, Spoken, Text

__all__ = ["assemble", "sendable", "switched_off"]

_START = re.compile(r"^[ \t]*<START>[ \t]*$", re.IGNORECASE | re.MULTILINE)
_ORIGINAL = re.compile(r"\{\{\s*original\s*\}\}", re.IGNORECASE)
_PARAGRAPH = "\n\n"
_WITHIN = (Place.PERSONALITY, Place.SCENARIO)
"""Places within a character's text."""


def assemble(scene: Scene, rules: Collection[str] = ()) -> list[Message]:
    """Return the blocks of a prompt, for a target with these message rules."""
    scene = _settled(scene)
    order = [*scene.layout.order]
    order.insert(len(order) - (order[-1:] == ["prefill"]), "instruction")
    blocks = [block for name in order for block in _MAKERS[name](scene)]
    if "one_system_message" in rules:
        blocks = _joined(blocks)
    return _system_first_only(blocks) if "system_first_only" in rules else blocks


def switched_off(scene: Scene) -> list[Message]:
    """Return the blocks that there would be, were nothing switched off by the layout."""
    scene = _settled(scene)
    return [block for name in BLOCKS if name not in scene.layout.order for block in _MAKERS[name](scene)]


def sendable(message: Message) -> dict[str, Any]:
    """Return a block as it goes to a provider: without what only we read."""
    return {key: value for key, value in message.items() if key not in ("meta", "pinned")}


def _settled(scene: Scene) -> Scene:
    """Say of lore that stands within a character's text in whose."""
    home = next((one.id for one in _speaking(scene)), None)
    lore = [_at_home(one, home) if one.place in _WITHIN and one.character is None else one for one in scene.lore]
    return replace(scene, lore=lore)


def _at_home(one: LoreBlock, home: str | None) -> LoreBlock:
    return replace(one, place=Place.AFTER_CHAR) if home is None else replace(one, character=home)


def _speaking(scene: Scene) -> Sequence[Character]:
    """Return the character who speaks; all of them where none is said to, none where that one's card is not there."""
    return [one for one in scene.characters if scene.speaker in (None, one.id)]


def _block(
    name: str,
    source: Source,
    text: str,
    role: str = str(Role.SYSTEM),
    ref: tuple[str, str] | None = None,
    held: Sequence[LoreBlock] = (),
    **marks: Any,
) -> Message:
    meta: dict[str, Any] = {"id": name, "source": str(source), **{k: v for k, v in marks.items() if v is not None}}
    if ref is not None:
        meta["ref"] = {"type": ref[0], "id": ref[1]}
    within = {one.id: one for one in (*held, *(text.held if isinstance(text, Text) else ()))}
    if within:
        meta["held"] = [_held(_lore_block(one)) for one in within.values()]
        meta |= {"required": True} if any(one.required for one in within.values()) else {}
    return {"role": role, "content": text, "meta": meta}


def _held(block: Message) -> dict[str, Any]:
    """Return what an audit says of a block that another holds."""
    return {"role": block["role"], **{name: value for name, value in block["meta"].items() if name != "held"}}


def _system(scene: Scene) -> Iterator[Message]:
    """A character's system prompt replaces the account's, and may hold it; of several the first that has one speaks."""
    own = next((one for one in _speaking(scene) if one.card.system_prompt.strip()), None)
    if own is None:
        if text := scene.expand(scene.system_prompt, None):
            yield _block("system", Source.SYSTEM, text)
        return
    text = _with_original(own.card.system_prompt, scene.system_prompt)
    yield _block("system", Source.SYSTEM, scene.expand(text, own.id), ref=("character", own.id))


def _with_original(text: str, original: str) -> str:
    return _ORIGINAL.sub(lambda _: original, text)


def _characters(scene: Scene) -> Iterator[Message]:
    for one in scene.characters:
        card = one.card
        held = [lore for lore in scene.lore if lore.place in _WITHIN and lore.character == one.id]
        added = {place: [lore.text for lore in held if lore.place is place] for place in _WITHIN}
        parts = [
            card.description,
            _PARAGRAPH.join(filter(None, [card.personality, *added[Place.PERSONALITY]])),
            _PARAGRAPH.join(filter(None, [card.scenario, *added[Place.SCENARIO]])),
        ]
        text = scene.expand(_PARAGRAPH.join(part.strip() for part in parts if part.strip()), one.id)
        if text:
            yield _block(f"character:{one.id}", Source.CHARACTER, text, ref=("character", one.id), held=held)


def _persona(scene: Scene) -> Iterator[Message]:
    persona = scene.persona
    if persona is not None and (text := scene.expand(persona.description, None)):
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
        cause=one.cause,
        detail=one.detail,
    )


def _memories(scene: Scene) -> Iterator[Message]:
    for one in scene.memories:
        yield _block(
            f"memory:{one.id}",
            Source.MEMORY,
            scene.expand(one.text, None),
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
            yield _block(name, Source.EXAMPLE, scene.expand(text, one.id), ref=("character", one.id))
    yield from _lore(scene, Place.AFTER_EXAMPLES)


def _post_history(scene: Scene) -> Iterator[Message]:
    for one in _speaking(scene):
        text = scene.expand(_with_original(one.card.post_history_instructions, ""), one.id)
        if text.strip():
            yield _block(f"post_history:{one.id}", Source.SYSTEM, text, ref=("character", one.id))


def _prefill(scene: Scene) -> Iterator[Message]:
    if text := scene.expand(scene.prefill, None):
        yield _block("prefill", Source.HISTORY, text, str(Role.ASSISTANT), pinned=True)


def _instruction(scene: Scene) -> Iterator[Message]:
    if text := scene.expand(scene.instruction, None):
        yield _block("instruction", Source.HISTORY, text, ref=("message", "instruction"))


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
            text = scene.expand(card.depth_prompt, character.id)
            yield card.depth_prompt_depth, _block(name, Source.CHARACTER, text, card.depth_prompt_role, ref)
    note = scene.author_note
    depth = note.depth if note else AuthorNote("").depth
    for block in _lore(scene, Place.BEFORE_NOTE):
        yield depth, block
    if note is not None and note.text.strip():
        yield depth, _block("author_note", Source.SYSTEM, scene.expand(note.text, None), note.role)
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


_MAKERS: dict[str, Callable[[Scene], Iterator[Message]]] = {
    "system": _system,
    "lore_before": lambda scene: _lore(scene, Place.BEFORE_CHAR),
    "character": _characters,
    "lore_after": lambda scene: _lore(scene, Place.AFTER_CHAR),
    "persona": _persona,
    "memory": _memories,
    "examples": _examples,
    "history": _history,
    "post_history": _post_history,
    "instruction": _instruction,
    "prefill": _prefill,
}


# -- what a target insists on ---------------------------------------------------------------------------------


def _joined(blocks: Sequence[Message]) -> list[Message]:
    """Join the leading protected system blocks into one; what may leave stays a block of its own."""
    leading = 0
    while leading < len(blocks) and _is_fixed_system(blocks[leading]):
        leading += 1
    if leading < 2:
        return list(blocks)
    text = _PARAGRAPH.join(str(block["content"]) for block in blocks[:leading])
    held = [one for block in blocks[:leading] for one in (_held(block), *block["meta"].get("held", ()))]
    meta = {"id": "system_message", "source": str(Source.SYSTEM), "held": held}
    meta["parts"] = [block["meta"]["id"] for block in blocks[:leading]]
    return [{"role": str(Role.SYSTEM), "content": text, "meta": meta}, *blocks[leading:]]


def _is_fixed_system(block: Message) -> bool:
    sources = (Source.SYSTEM, Source.CHARACTER, Source.PERSONA, Source.HISTORY)
    stays = block["meta"]["source"] in sources or bool(block["meta"].get("required"))
    return stays and block["role"] == Role.SYSTEM and isinstance(block["content"], str)


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
