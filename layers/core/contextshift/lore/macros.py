"""Macros: ``{{char}}``, ``{{random:a,b}}`` and their like, in cards, lorebooks and prompts.

A text is read once, from left to right, and macros inside macros are replaced first. What a macro gave is text: it
names no macro and separates no alternatives, so that a name such as ``A, B }}{{char`` stays what it is. Only texts of
the card, the persona, outlets and the prompt that ``{{original}}`` stands for are expanded in their turn.

Every draw derives from a seed, the place in the text and the macro's own text, and the time of day is given: the same
text in the same context always reads the same. The work is linear in the text and in what it may grow by.

Names and forms follow the Character Card V3 specification ("Curly Braced Syntaxes") and SillyTavern's documentation of
macros. Where they are silent: dates are UTC (``2026-05-17``, ``14:05``), an outlet or a variable that nobody filled is
empty, ``{{original}}`` outside of a prompt that replaces another stays as it is, and a bad roll too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Any

from contextshift.lore.macro_values import Value, alternatives, backwards, drawn, rendered, rolled

__all__ = ["MAX_DEPTH", "MAX_GROWTH", "Expanded", "MacroContext", "expand", "hidden_keys"]

MAX_DEPTH = 8
"""Macros within macros, and texts brought in by texts; what is nested deeper stays as it is written."""
MAX_GROWTH = 1_000_000
"""Characters that macros may bring into one text; beyond it they stay as they are written."""
_MAX_UNKNOWN = 100
_MAX_NAME = 80

_TOKEN = re.compile(r"\{\{(?!\{)|\}\}|<(?:user|bot|char)>", re.IGNORECASE | re.ASCII)
_HIDDEN = re.compile(r"\{\{\s*+hidden_key\s*+::?+", re.IGNORECASE | re.ASCII)
_CARD_TEXTS = ("description", "personality", "scenario", "persona", "original")


@dataclass(frozen=True, slots=True)
class MacroContext:
    """What macros stand for, in one turn of one chat.

    ``seed`` names the chat and the turn (``random``, ``roll``), ``chat_seed`` the chat alone (``pick``). ``now`` is in
    seconds since the epoch. ``variables`` are the chat's own, JSON values; ``outlets`` map a name to its lore.
    ``original`` is the prompt that the expanded one replaces, if it does.
    """

    char: str
    user: str
    description: str = ""
    personality: str = ""
    scenario: str = ""
    persona: str = ""
    last_message: str = ""
    variables: Mapping[str, Any] = field(default_factory=dict)
    outlets: Mapping[str, str] = field(default_factory=dict)
    original: str | None = None
    now: float = 0.0
    seed: str = ""
    chat_seed: str = ""


@dataclass(frozen=True, slots=True)
class Expanded:
    """A text whose macros were replaced."""

    text: str
    unknown: tuple[str, ...] = ()
    """Names of macros that were left alone since nobody knows them, each once, as written, cut at 80 characters."""
    limited: bool = False
    """Whether macros were left alone for their depth, their size, or because a text brings in itself."""
    outlets: tuple[str, ...] = ()
    """Names of the outlets whose text it holds, each once."""


def expand(text: str, context: MacroContext, place: str = "") -> Expanded:
    """Return ``text`` with its macros replaced. Never raises.

    ``place`` names where the text stands (a block's id, say), so that two texts which begin alike draw differently.
    ``{{description}}`` draws as the text does at the place ``description``; so do the other texts of the card by their
    names, and outlets at ``outlet:NAME``.

    >>> expand("{{char}} greets <USER>. {{shrug}}", MacroContext("Ada", "Bo"))
    Expanded(text='Ada greets Bo. {{shrug}}', unknown=('shrug',), limited=False, outlets=())
    """
    if "{{" not in text and "<" not in text:
        return Expanded(text)
    expansion = _Expansion(context)
    found = _Reading(expansion, text, place).result()
    return Expanded(found, tuple(expansion.unknown), expansion.limited, tuple(expansion.outlets))


def hidden_keys(text: str) -> str:
    """Return what the ``{{hidden_key:…}}`` of a text hold, one a line: the lore scan reads them, the model does not.

    Macros inside stay as written; expand the answer to replace them.

    >>> hidden_keys("A gate.{{hidden_key:old castle}}")
    'old castle'
    """
    return "\n".join(text[start:end] for start, end in _hidden_spans(text)) if "{{" in text else ""


def _hidden_spans(text: str) -> Iterator[tuple[int, int]]:
    opened: list[int] = []
    closed: dict[int, int] = {}
    for token in _TOKEN.finditer(text):
        if token[0] == "{{":
            opened.append(token.start())
        elif token[0] == "}}" and opened:
            closed[opened.pop()] = token.start()
    reached = 0
    for start in sorted(closed):
        head = _HIDDEN.match(text, start)
        if start >= reached and head:
            reached = closed[start]
            yield head.end(), reached


_TRIM = Value()
"""Takes the line breaks around it along; recognised by identity."""


@dataclass(slots=True)
class _Opened:
    start: int
    """Where its braces stand in the text."""
    index: int
    """Where they stand among the pieces."""
    height: int = 0
    """How deep the macros inside it are nested."""


class _Expansion:
    """What all texts of one expansion share: the room left, the texts under way, and what was found."""

    def __init__(self, context: MacroContext) -> None:
        self.context = context
        self.unknown: dict[str, None] = {}
        self.limited = False
        self.outlets: dict[str, None] = {}
        self._room = MAX_GROWTH
        self._reading: list[str] = []
        self._rendered: dict[str, str] = {}

    def insert(self, value: str) -> Value | None:
        """Return ``value`` to be inserted as it is, if there is room for it."""
        if len(value) > self._room:
            self.limited = True
            return None
        self._room -= len(value)
        return Value(value)

    def bring(self, place: str, value: str) -> Value | None:
        """Return ``value``, expanded as the text at ``place``."""
        if place in self._reading or len(self._reading) >= MAX_DEPTH:
            self.limited = True
            return None
        if self.insert(value) is None:
            return None
        self._reading.append(place)
        found = _Reading(self, value, place).result()
        self._reading.pop()
        return Value(found)

    def note(self, name: str) -> None:
        """Note a name that nobody knows."""
        if name and len(self.unknown) < _MAX_UNKNOWN:
            self.unknown[name[:_MAX_NAME]] = None

    def variable(self, name: str) -> str | None:
        """Return the text of the chat's variable ``name``; its own case goes first."""
        exact = name if name in self.context.variables else self._by_lower_case.get(name.lower())
        if exact is None:
            return None
        if exact not in self._rendered:
            self._rendered[exact] = rendered(self.context.variables[exact])
        return self._rendered[exact]

    @cached_property
    def _by_lower_case(self) -> dict[str, str]:
        return {name.lower(): name for name in reversed(list(self.context.variables))}


class _Reading:
    """One pass over one text. Pieces stand in one flat list, so that braces left alone cost nothing."""

    def __init__(self, expansion: _Expansion, text: str, place: str) -> None:
        self._shared = expansion
        self._context = expansion.context
        self._text = text
        self._place = place
        self._out: list[str] = []
        self._opened: list[_Opened] = []

    def result(self) -> str:
        """Read the text, and return it with its macros replaced."""
        reached = 0
        for token in _TOKEN.finditer(self._text):
            self._literal(self._text[reached : token.start()])
            reached = token.end()
            if token[0] == "{{":
                self._opened.append(_Opened(token.start(), len(self._out)))
                self._out.append("{{")
            elif token[0] != "}}":
                self._out.append(self._bracketed(token[0]))
            elif self._opened:
                self._close(self._opened.pop(), reached)
            else:
                self._out.append("}}")
        self._literal(self._text[reached:])
        return _joined(self._out)

    def _literal(self, text: str) -> None:
        if text:
            self._out.append(text)

    def _bracketed(self, token: str) -> str:
        name = self._context.user if token.lower() == "<user>" else self._context.char
        inserted = self._shared.insert(name)
        return token if inserted is None else inserted

    def _close(self, macro: _Opened, end: int) -> None:
        height = macro.height + 1
        if self._opened:
            self._opened[-1].height = max(self._opened[-1].height, height)
        if height > MAX_DEPTH:
            self._shared.limited = True
            self._out.append("}}")
            return
        body = self._out[macro.index + 1 :]
        found = self._value(body, macro.start, end)
        self._out[macro.index :] = [Value("".join(["{{", *body, "}}"])) if found is None else found]

    def _value(self, body: Sequence[str], start: int, end: int) -> Value | None:
        """Return what a macro stands for; None where it is to be left alone."""
        if not body or isinstance(body[0], Value):
            return None
        if body[0].lstrip().startswith("//"):
            return Value()
        written, colon, rest = body[0].partition(":")
        if not colon:
            return self._plain(written.strip(), start, end) if len(body) == 1 else None
        argument = [rest.removeprefix(":"), *body[1:]]
        return self._with_argument(written.strip(), argument, start, end)

    def _plain(self, name: str, start: int, end: int) -> Value | None:
        lower = name.lower()
        if lower in _CARD_TEXTS:
            text = getattr(self._context, lower)
            if text is not None:
                return self._shared.bring(lower, text)
        if lower == "trim":
            return _TRIM
        if lower.startswith("roll "):
            return self._with_argument("roll", [name[len("roll ") :]], start, end)
        value = self._plain_text(lower)
        if value is None:
            value = self._shared.variable(name)
        if value is None:
            self._shared.note(name)
            return None
        return self._shared.insert(value)

    def _plain_text(self, name: str) -> str | None:
        match name:
            case "char":
                return self._context.char
            case "user":
                return self._context.user
            case "lastmessage":
                return self._context.last_message
            case "newline":
                return "\n"
            case "date":
                return f"{datetime.fromtimestamp(self._context.now, UTC):%Y-%m-%d}"
            case "time":
                return f"{datetime.fromtimestamp(self._context.now, UTC):%H:%M}"
        return None

    def _with_argument(self, written: str, argument: Sequence[str], start: int, end: int) -> Value | None:
        match written.lower():
            case "comment" | "hidden_key":
                return Value()
            case "reverse":
                return Value(backwards("".join(argument)))
            case "random":
                return self._choice(self._context.seed, argument, start, end)
            case "pick":
                return self._choice(self._context.chat_seed, argument, start, end)
            case "getvar":
                return self._shared.insert(self._shared.variable("".join(argument).strip()) or "")
            case "outlet":
                return self._outlet("".join(argument).strip())
            case "roll":
                draw = partial(self._draw, self._context.seed, start, end)
                total = rolled("".join(argument).strip(), draw)
                if total is not None:
                    return Value(total)
        self._shared.note(written)
        return None

    def _outlet(self, name: str) -> Value | None:
        text = self._context.outlets.get(name, "")
        found = self._shared.bring(f"outlet:{name}", text)
        if found is not None and text:
            self._shared.outlets[name] = None
        return found

    def _choice(self, seed: str, argument: Sequence[str], start: int, end: int) -> Value:
        items = alternatives(argument)
        return Value(items[self._draw(seed, start, end)[0] % len(items)])

    def _draw(self, seed: str, start: int, end: int, many: int = 1) -> list[int]:
        return drawn(seed, self._place, start, self._text[start:end], many)


def _joined(pieces: Sequence[str]) -> str:
    """Return the text of ``pieces``, without the line breaks around a ``{{trim}}``."""
    parts: list[list[str]] = [[]]
    for piece in pieces:
        if piece is _TRIM:
            parts.append([])
        else:
            parts[-1].append(piece)
    texts = ["".join(part) for part in parts]
    last = len(texts) - 1
    for index, text in enumerate(texts):
        text = text if index == 0 else text.lstrip("\r\n")
        texts[index] = text if index == last else text.rstrip("\r\n")
    return "".join(texts)
