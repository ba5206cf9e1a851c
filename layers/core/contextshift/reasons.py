"""Every stable reason, in one place: why a block stayed or left, why a model was passed over.

These words are an interface: they stand in audits, previews and headers, and tests of other people
match on them. Add to the list; never rename.
"""

from __future__ import annotations

from enum import StrEnum

__all__ = ["ALL_REASONS", "LEAVING", "Lore", "Passed", "Reason"]


class Reason(StrEnum):
    """Why a block is in the prompt, or is not."""

    FITS = "fits"
    """Stayed: nothing had to leave, or it was not this block's turn."""
    SYSTEM = "protected-system"
    """Stayed: system, developer, character, persona."""
    REQUIRED = "protected-required"
    """Stayed: required or constant, such as essential lore."""
    PINNED = "protected-pinned"
    """Stayed: pinned by its owner or by the request."""
    CURRENT_TURN = "protected-current-turn"
    """Stayed: the last user message, the newest round, or what follows it."""
    UNKNOWN_ROLE = "protected-unknown-role"
    """Stayed: nobody knows what this role means to its provider."""
    GROUP = "protected-group"
    """Stayed: a call or result whose group holds a protected block."""

    SHORTENED = "shortened"
    """Stayed, with less text than it came with."""
    SUMMARY = "summary"
    """Stayed: made on the way, in the place of what left."""
    ADDED = "added"
    """Stayed: an interceptor put it there."""
    EDITED = "edited"
    """Stayed, with a text that an interceptor changed."""

    REFUSED = "refused"
    """Not sent, nor anything else: the request was refused, and this block was not protected."""

    BLOCK_DISABLED = "block-disabled"
    """Not sent: the chat's settings switch off the part of the prompt where it would stand."""

    CONTEXT_SHIFT = "context-shift"
    """Left: the least important block when room was needed."""
    ORPHAN_TOOL_RESULT = "orphan-tool-result"
    """Left: a tool result whose call is not in the conversation."""
    MANUAL = "manual"
    """Left: its owner marked it for exclusion."""
    TURN_ALIGNMENT = "turn-alignment"
    """Left: the target wants history to start with a user message."""
    INTERCEPTOR = "interceptor"
    """Left: an interceptor took it out."""


LEAVING = frozenset((Reason.CONTEXT_SHIFT, Reason.ORPHAN_TOOL_RESULT, Reason.MANUAL, Reason.TURN_ALIGNMENT))
"""Why a strategy may let a block go."""


class Passed(StrEnum):
    """Why a candidate model was passed over, or that it was taken.

    ``capability-…`` and ``parameter-…`` are completed with what is missing: see `Passed.capability`.
    """

    ACCEPTED = "accepted"
    WINDOW = "window"
    MAX_INPUT = "max-input"
    MAX_OUTPUT = "max-output"
    REGION = "compliance-region"
    CERTIFICATION = "compliance-certification"
    RETENTION = "compliance-retention"
    NOT_ALLOWED = "compliance-model"
    PROVIDER_KEY = "provider-key"
    """Its provider is not the one that the caller's key is for, or has no key that this call may use."""
    COST = "cost"
    SHUTDOWN = "shutdown"
    """Its provider has announced its end for today or before."""
    NOT_PREFERRED = "not-preferred"
    NOT_EVALUATED = "not-evaluated"

    @staticmethod
    def capability(name: str) -> str:
        """Return the reason for a capability the request uses and the model lacks: ``capability-vision``."""
        return f"capability-{name}"

    @staticmethod
    def parameter(name: str) -> str:
        """Return the reason for a parameter the model does not take: ``parameter-logit_bias``."""
        return f"parameter-{name}"


class Lore(StrEnum):
    """Why an entry of a lorebook is active, or is not."""

    KEY = "key"
    """In: one of its keys stands in the newest messages."""
    CONSTANT = "constant"
    """In: always active."""
    RECURSION = "recursion"
    """In: one of its keys stands in another active entry."""
    DECORATOR = "decorator"
    """In: its content says so (``@@activate``, or ``@@keep_activate_after_match`` and an earlier match)."""
    STICKY = "sticky"
    """In: woken in an earlier turn, and it stays for some."""

    DISABLED = "disabled"
    NO_KEY_MATCH = "no-key-match"
    SECONDARY_KEYS = "secondary-keys"
    """Out: a key matched, but its secondary, additional or excluded keys say no."""
    PROBABILITY = "probability"
    """Out: by chance."""
    GROUP = "group"
    """Out: another entry of its inclusion group won."""
    COOLDOWN = "cooldown"
    """Out: it was active not long ago."""
    DELAY = "delay"
    """Out: the chat is not long enough yet."""
    LORE_BUDGET = "lore-budget"
    """Out: it did not fit what was left of the book's or the account's budget."""
    REGEX_TIMEOUT = "regex-timeout"
    """Out: one of its patterns took too long."""
    REGEX_INVALID = "regex-invalid"
    """Out: one of its patterns does not compile."""
    DECORATOR_OFF = "decorator-off"
    """Out: its content says so (``@@dont_activate``, ``@@is_greeting``, ``@@activate_only_…``)."""
    RECURSION_ONLY = "recursion-only"
    """Out: it waits for a step of recursion that did not come."""
    EMPTY = "empty"
    """Out: active, but with no text for a prompt."""
    OUTLET_UNUSED = "outlet-unused"
    """Out: active, but no text of the prompt names its outlet."""


ALL_REASONS: tuple[str, ...] = (
    *Reason,
    *Passed,
    *Lore,
    "capability-*",
    "parameter-*",
)
"""The one public list; a trailing ``*`` stands for a name."""
