"""What goes into one prompt: characters, persona, lore, memories, notes, the conversation, and their layout.

`contextshift.assembly` makes blocks of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from contextshift.errors import InvalidInput
from contextshift.lore.model import Card, Place
from contextshift.messages import Message, Role

__all__ = [
    "BLOCKS",
    "AuthorNote",
    "Character",
    "Layout",
    "LoreBlock",
    "MemoryBlock",
    "Persona",
    "Scene",
    "Spoken",
    "Text",
    "read_layout",
]

BLOCKS = (
    "system",
    "lore_before",
    "character",
    "lore_after",
    "persona",
    "memory",
    "examples",
    "history",
    "post_history",
    "prefill",
)
"""The blocks in their order, as a chat's settings name them; `contextshift.assembly` says what each holds."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Which blocks there are, in which order."""

    order: tuple[str, ...] = BLOCKS


def read_layout(given: object, path: str = "settings.blocks") -> Layout:
    """Read a layout: names in their order, or objects ``{"name", "enabled"}``; unnamed blocks keep their places.

    Raises InvalidInput for an unknown or repeated name, and for a history switched off.

    >>> read_layout([{"name": "persona", "enabled": False}, "memory", "system"]).order[:3]
    ('memory', 'system', 'lore_before')
    """
    if given is None:
        return Layout()
    if not isinstance(given, list | tuple):
        raise InvalidInput("blocks must be a list", path, "invalid_type")
    named: dict[str, bool] = {}
    for index, item in enumerate(given):
        name, enabled = (item.get("name"), item.get("enabled", True)) if isinstance(item, Mapping) else (item, True)
        here = f"{path}[{index}]"
        if name not in BLOCKS:
            raise InvalidInput(f"there is no such block; there are {', '.join(BLOCKS)}", here, "unknown_block")
        if name in named or not isinstance(enabled, bool):
            raise InvalidInput("a block is named once, enabled is true or false", here, "invalid_value")
        if name == "history" and not enabled:
            raise InvalidInput("the history cannot be switched off", here, "invalid_value")
        named[name] = enabled
    first = [name for name, enabled in named.items() if enabled]
    return Layout((*first, *(name for name in BLOCKS if name not in named)))


@dataclass(frozen=True, slots=True)
class Character:
    """A character that takes part."""

    id: str
    card: Card


@dataclass(frozen=True, slots=True)
class Persona:
    """Who the user plays."""

    id: str
    name: str
    description: str


@dataclass(frozen=True, slots=True)
class AuthorNote:
    """A note that stands in the history, ``depth`` messages before its end."""

    text: str
    depth: int = 4
    role: str = str(Role.SYSTEM)


@dataclass(frozen=True, slots=True)
class MemoryBlock:
    """Something that is remembered."""

    id: str
    text: str
    required: bool = False
    relevance: float | None = None
    priority: float | None = None


@dataclass(frozen=True, slots=True)
class LoreBlock:
    """An entry that was woken, and where it stands."""

    id: str
    """Of the book and the entry, as the audit refers to it."""
    text: str
    place: Place
    depth: int = 4
    role: str = str(Role.SYSTEM)
    required: bool = False
    relevance: float | None = None
    priority: float | None = None
    cause: str | None = None
    """What woke it, a word of `contextshift.reasons.Lore`."""
    detail: str | None = None
    """The key that was found, or the entry that holds it."""
    character: str | None = None
    """The character whose own book it is of; None: of a lorebook."""


class Text(str):
    """A text whose macros were replaced, with the lore that they brought into it (``{{outlet::…}}``)."""

    held: tuple[LoreBlock, ...] = ()


@dataclass(frozen=True, slots=True)
class Spoken:
    """A message of the conversation: what is sent of it, and what its owner says of it."""

    id: str
    message: Message
    pinned: bool = False
    excluded: bool = False


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything that goes into one prompt. Lore comes sorted: within a place, blocks keep their order."""

    history: Sequence[Spoken]
    system_prompt: str = ""
    """The account's; a character's own takes its place, and may name it as ``{{original}}``."""
    characters: Sequence[Character] = ()
    persona: Persona | None = None
    lore: Sequence[LoreBlock] = ()
    memories: Sequence[MemoryBlock] = ()
    author_note: AuthorNote | None = None
    prefill: str = ""
    layout: Layout = field(default_factory=Layout)
    speaker: str | None = None
    """The character who speaks next, whose system prompt and post-history instructions alone are used; None: all's."""
    instruction: str = ""
    """What is asked for beside the conversation: it stands at the end, and is nobody's turn."""
    expand: Callable[[str, str | None], str] = lambda text, character: text
    """Expands macros, in everything but what was said: those of the card of a character, None: of the speaker's."""
