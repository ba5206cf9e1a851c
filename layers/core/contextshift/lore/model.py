"""Cards, books and entries as the engine reads them: one model for three spellings.

What is stored and exported is the Character Card V3 JSON with every field that nobody here knows; these
classes are the typed view of it that activation and assembly work on. Text in them is data: macros and
patterns in it are interpreted by our own code, and nothing is ever executed or fetched.

Sources: Character Card V2 and V3 (github.com/malfoyslastname/character-card-spec-v2 and
github.com/kwaroran/character-card-spec-v3)
and the World Info page of SillyTavern's documentation.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Book", "Card", "Entry", "Place", "SecondaryLogic"]


class Place(StrEnum):
    """Where an activated entry stands in the prompt."""

    BEFORE_CHAR = "before_char"
    AFTER_CHAR = "after_char"
    BEFORE_NOTE = "before_note"
    AFTER_NOTE = "after_note"
    AT_DEPTH = "at_depth"
    """``depth`` messages before the end of the history, with ``role``."""
    REVERSE_DEPTH = "reverse_depth"
    """``depth`` messages after the start of the history, with ``role``."""
    BEFORE_EXAMPLES = "before_examples"
    AFTER_EXAMPLES = "after_examples"
    PERSONALITY = "personality"
    """Appended to the character's personality (V3 decorator ``@@position personality``)."""
    SCENARIO = "scenario"
    OUTLET = "outlet"
    """Nowhere by itself: where ``{{outlet::name}}`` stands."""


class SecondaryLogic(StrEnum):
    """How secondary keys decide once a primary key matched (World Info ``selectiveLogic`` 0 to 3)."""

    AND_ANY = "and-any"
    NOT_ALL = "not-all"
    NOT_ANY = "not-any"
    AND_ALL = "and-all"


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a book. Its decorators still stand at the head of ``content``; activation reads them."""

    id: str
    """Unique in its book: the entry's own id where it has one, else its place in the list."""
    content: str
    keys: tuple[str, ...] = ()
    """Any of them wakes the entry; ``/…/flags`` is a pattern."""
    secondary_keys: tuple[str, ...] = ()
    """Considered only where the entry is selective: empty otherwise."""
    secondary_logic: SecondaryLogic = SecondaryLogic.AND_ANY
    constant: bool = False
    enabled: bool = True
    use_regex: bool = False
    """Whether every key is a pattern, also one that is not written ``/…/flags``."""
    case_sensitive: bool | None = None
    match_whole_words: bool | None = None
    """None: as the book says; text matches without regard to case."""
    place: Place = Place.AFTER_CHAR
    depth: int = 4
    role: str = "system"
    outlet: str | None = None
    insertion_order: float = 100
    """Lower stands earlier in its place."""
    priority: float | None = None
    """Lower leaves first under the lore budget; None means ``insertion_order``."""
    exclude_recursion: bool = False
    """Never woken by other entries."""
    prevent_recursion: bool = False
    """Wakes no other entries."""
    delay_until_recursion: int = 0
    """0: in the first scan; n: only in recursion, from its n-th step on."""
    probability: float = 100
    """Percent."""
    sticky: int = 0
    """Turns it stays active once woken."""
    cooldown: int = 0
    """Turns it cannot be woken after it was active."""
    delay: int = 0
    """Messages there must be before it can be woken."""
    groups: tuple[str, ...] = ()
    """Inclusion groups: of each, one active entry wins."""
    group_override: bool = False
    """Among the active of a group, one with this wins by order and not by chance."""
    group_weight: float = 100
    ignore_budget: bool = False
    scan_depth: int | None = None
    """Newest messages to scan; None: the book's; 0: keys never match."""

    @property
    def rank(self) -> float:
        """The order of leaving under the lore budget: lower first."""
        return self.insertion_order if self.priority is None else self.priority


@dataclass(frozen=True, slots=True)
class Book:
    """A lorebook."""

    id: str
    entries: tuple[Entry, ...]
    name: str = ""
    scan_depth: int | None = None
    token_budget: int | None = None
    """Tokens its entries may take together; None: only the account's share of the context limits them."""
    recursive_scanning: bool = False
    recursion_limit: int | None = None
    """Steps of recursion at most; None: until nothing new wakes."""
    stop_at_budget: bool = False
    """SillyTavern's way, as a compatibility mode: the first entry over the budget ends the list."""
    match_whole_words: bool = False


@dataclass(frozen=True, slots=True)
class Card:
    """A character, as the prompt needs it."""

    name: str
    nickname: str = ""
    description: str = ""
    personality: str = ""
    scenario: str = ""
    first_mes: str = ""
    alternate_greetings: tuple[str, ...] = ()
    group_only_greetings: tuple[str, ...] = ()
    """Kept; no chat offers them."""
    mes_example: str = ""
    system_prompt: str = ""
    post_history_instructions: str = ""
    depth_prompt: str = ""
    """The character's note (``extensions.depth_prompt``): a block at ``depth_prompt_depth`` with its role."""
    depth_prompt_depth: int = 4
    depth_prompt_role: str = "system"
    book: Book | None = None

    @property
    def char(self) -> str:
        """What ``{{char}}`` becomes: the nickname where there is one (V3)."""
        return self.nickname or self.name

    @property
    def greetings(self) -> tuple[str, ...]:
        """Opening messages by index: ``first_mes``, then the alternates."""
        return (self.first_mes, *self.alternate_greetings)
