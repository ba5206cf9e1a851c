"""Every error the library raises, as one tree: catch the root, or the branch you care for.

::

    ContextShiftError
    ├── InvalidInput                 the caller's fault, names the field         4xx
    │   ├── InvalidMessage           a message that cannot be read
    │   ├── InvalidBody              a request body we cannot vouch for
    │   ├── InvalidSetting           an unknown switch, or a wrong type
    │   └── UploadTooLarge           a file over the stated size, or that inflates over it
    ├── TokenBudgetExceeded          protected context alone is over the budget  400
    ├── UpstreamOverflow             the provider itself says the prompt is too large  400
    ├── ReplyLimitTooLarge           the reply limit is at fault, not the history 400
    ├── ModelNotFound                no catalogue entry, alias or pattern        404
    ├── ModelNotAllowed              the account's compliance rules say no       403
    ├── StrategyNotInPlan            the plan does not list the strategy         403
    ├── ProviderKeyNotAllowed        the account may not bring a provider's key  403
    ├── ProviderKeyRequired          its own endpoint needs a key of its own     403
    ├── CounterFault                 a token counter raised or returned nonsense
    ├── Conflict                     somebody else changed it meanwhile           409
    ├── IdempotencyConflict          the key was used for another request         409
    ├── StoreError
    │   ├── StoreUnavailable         cannot be read or written now               503
    │   ├── ChatNotFound             no such chat in this account                404
    │   ├── NotInLibrary             no such character, persona, lorebook, memory 404
    │   └── ChatDeleted              deleted while we worked
    └── ProviderError
        ├── ProviderUnreachable      no connection                               502
        ├── ProviderTimeout          the deadline came first                     504
        ├── ProviderBroken           the answer stopped or made no sense         502
        ├── EndpointNotAllowed       an account's endpoint that is not public    403
        ├── ProviderKeyMissing       no such secret, no access, or unreadable    502
        ├── ProviderKeyOrigin        the key belongs to another origin           502
        ├── ProviderKeyUnavailable   the key cannot be read now                  503
        ├── ProviderKeyQuoted        the error answer quotes the key it was sent 502
        └── UpstreamRefused          the provider answered with an error          502

Each class carries one stable ``code``, upper snake case. ``bastion.problems`` maps the tree to HTTP.
The module has many lines because the tree is one, and is found in one place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

__all__ = [
    "ChatDeleted",
    "ChatNotFound",
    "Conflict",
    "ContextShiftError",
    "CounterFault",
    "EndpointNotAllowed",
    "IdempotencyConflict",
    "InvalidBody",
    "InvalidInput",
    "InvalidMessage",
    "InvalidSetting",
    "ModelNotAllowed",
    "ModelNotFound",
    "NotInLibrary",
    "ProviderBroken",
    "ProviderError",
    "ProviderKeyMissing",
    "ProviderKeyNotAllowed",
    "ProviderKeyOrigin",
    "ProviderKeyQuoted",
    "ProviderKeyRequired",
    "ProviderKeyUnavailable",
    "ProviderTimeout",
    "ProviderUnreachable",
    "ReplyLimitTooLarge",
    "StoreError",
    "StoreUnavailable",
    "StrategyNotInPlan",
    "TokenBudgetExceeded",
    "UploadTooLarge",
    "UpstreamOverflow",
    "UpstreamRefused",
]


class ContextShiftError(Exception):
    """Root of everything raised on purpose."""

    code: ClassVar[str] = "CONTEXT_SHIFT_ERROR"


class InvalidInput(ContextShiftError):
    """Raise when something the caller gave is wrong. ``path`` names the field, as ``messages[3].content``."""

    code = "INVALID_INPUT"

    def __init__(self, message: str, path: str | None = None, reason: str = "invalid_value") -> None:
        super().__init__(message)
        self.path = path
        self.reason = reason
        """Stable lower-snake detail, such as ``invalid_json`` or ``unknown_setting``."""


class InvalidMessage(InvalidInput):
    """Raise when the message at ``index`` cannot be read; ``field`` is the key at fault, if any."""

    code = "INVALID_MESSAGE"

    def __init__(self, message: str, index: int, field: str | None = None, reason: str = "invalid_value") -> None:
        super().__init__(message, f"messages[{index}]" + (f".{field}" if field else ""), reason)
        self.index = index
        self.field = field


class InvalidBody(InvalidInput):
    """Raise when a raw request body is not JSON that we can vouch for byte by byte."""

    code = "INVALID_BODY"


class InvalidSetting(InvalidInput):
    """Raise when ``routing`` holds an unknown switch or a value of the wrong type."""

    code = "INVALID_SETTING"


class UploadTooLarge(InvalidInput):
    """Raise when an uploaded file, or what it inflates to, is over ``limit`` bytes."""

    code = "UPLOAD_TOO_LARGE"

    def __init__(self, message: str, limit: int, path: str | None = None) -> None:
        super().__init__(message, path, "upload_too_large")
        self.limit = limit


class TokenBudgetExceeded(ContextShiftError):
    """Raise when protected blocks and fixed costs alone exceed the budget.

    ``breakdown`` says what takes the room, in tokens: ``system``, ``tools``, ``history``,
    ``current_turn``, ``reserve`` and ``over_by``.
    """

    code = "TOKEN_BUDGET_EXCEEDED"

    def __init__(self, breakdown: Mapping[str, int]) -> None:
        super().__init__(f"protected context exceeds the token budget by {breakdown['over_by']} tokens")
        self.breakdown = dict(breakdown)


class UpstreamOverflow(ContextShiftError):
    """Raise when a provider refuses a prompt as too large: the same trouble as TokenBudgetExceeded, seen late.

    ``kind`` is ``context_length`` (the model's limit) or ``request_too_large`` (an allowance that waiting cannot
    raise); ``limit`` and ``requested`` are tokens where the provider says them.
    """

    code = "TOKEN_BUDGET_EXCEEDED"

    def __init__(self, kind: str, limit: int | None = None, requested: int | None = None) -> None:
        said = "The provider refused the prompt as too large."
        if limit is not None and requested is not None:
            said = (
                f"This model's maximum context length is {limit} tokens. However, your messages resulted in "
                f"{requested} tokens."
            )
        super().__init__(f"{said} (context_length_exceeded)")
        self.kind = str(kind)
        self.limit = limit
        self.requested = requested


class ReplyLimitTooLarge(ContextShiftError):
    """Raise when the prompt fits the window but the reply limit asked for does not leave it room."""

    code = "REPLY_LIMIT_TOO_LARGE"

    def __init__(self, requested: int, largest: int) -> None:
        super().__init__(f"the reply limit of {requested} tokens is too large: at most {largest} fit")
        self.requested = requested
        self.largest = largest


class ModelNotFound(ContextShiftError):
    """Raise when a name resolves to no model of the catalogue and no provider's pattern."""

    code = "MODEL_NOT_FOUND"

    def __init__(self, name: str) -> None:
        super().__init__("the model does not exist or you do not have access to it")
        self.name = name


class ModelNotAllowed(ContextShiftError):
    """Raise when compliance forbids a model. ``rule`` is the stable reason, as ``compliance-region``."""

    code = "MODEL_NOT_ALLOWED"

    def __init__(self, name: str, rule: str) -> None:
        super().__init__(f"this account may not use the model: {rule}")
        self.name = name
        self.rule = rule


class StrategyNotInPlan(ContextShiftError):
    """Raise when a context strategy is named that the account's plan does not list."""

    code = "STRATEGY_NOT_IN_PLAN"

    def __init__(self, strategy: str) -> None:
        super().__init__(f"the plan does not include the context strategy {strategy!r}")
        self.strategy = strategy
        self.path: str | None = None
        """The field that names it, where it is known."""


class ProviderKeyNotAllowed(ContextShiftError):
    """Raise when a call brings a provider's key and the account's settings do not allow that."""

    code = "PROVIDER_KEY_NOT_ALLOWED"

    def __init__(self) -> None:
        super().__init__("this account may not bring its own provider key (setting provider_keys)")


class ProviderKeyRequired(ContextShiftError):
    """Raise when the account has its own endpoint for a provider, and no key of its own for it."""

    code = "PROVIDER_KEY_REQUIRED"

    def __init__(self) -> None:
        super().__init__("the account's own endpoint is only used with the account's own key")


class CounterFault(ContextShiftError):
    """Raise when a token counter raises, or returns something that is not a count, for message ``index``.

    ``index`` is None for a text made of several messages, or of a part of one: a summary, or a prefix on trial.
    """

    code = "COUNTER_FAULT"

    def __init__(self, message: str, index: int | None = None) -> None:
        super().__init__(message)
        self.index = index
        self.path = None if index is None else f"messages[{index}]"


class Conflict(ContextShiftError):
    """Raise when what was to be changed is not as its changer saw it: read it again, and decide again."""

    code = "CONFLICT"


class IdempotencyConflict(ContextShiftError):
    """Raise when an idempotency key comes with another request than before."""

    code = "IDEMPOTENCY_CONFLICT"


class StoreError(ContextShiftError):
    """Root of what stores raise; adapters translate their driver's errors into this branch."""

    code = "STORE_ERROR"


class StoreUnavailable(StoreError):
    """Raise when a store cannot be read or written now, after the adapter's own retries."""

    code = "STORE_UNAVAILABLE"


class ChatNotFound(StoreError):
    """Raise when the account has no live chat of this id (foreign ids included)."""

    code = "CHAT_NOT_FOUND"


class NotInLibrary(StoreError):
    """Raise where an account has no such character, persona, lorebook or memory."""

    code = "NOT_FOUND"


class MessageChanged(StoreError):
    """Raise when the message that a generation's end is to change was changed or removed meanwhile."""

    code = "MESSAGE_CHANGED"


class ChatDeleted(StoreError):
    """Raise when the chat's life that a generation began in has ended meanwhile."""

    code = "CHAT_DELETED"


class ProviderError(ContextShiftError):
    """Root of what providers raise when there is no HTTP answer to hand back."""

    code = "PROVIDER_ERROR"

    upstream_status: int | None = None
    """The status of the answer that is not handed back, where there was one."""


class ProviderUnreachable(ProviderError):
    """Raise when no connection could be made: nothing was sent."""

    code = "PROVIDER_UNREACHABLE"


class ProviderTimeout(ProviderError):
    """Raise when the deadline passed before the answer was complete."""

    code = "PROVIDER_TIMEOUT"


class ProviderBroken(ProviderError):
    """Raise when an answer broke off or made no sense as HTTP."""

    code = "PROVIDER_BROKEN"


class ProviderKeyQuoted(ProviderError):
    """Raise when a provider's error answer quotes the key that it was sent: nobody gets to see that answer."""

    code = "PROVIDER_KEY_QUOTED"

    def __init__(self, status: int) -> None:
        super().__init__(f"the provider answered with an error (status {status}) that cannot be passed on")
        self.upstream_status = status


class UpstreamRefused(ProviderError):
    """Raise when a generation's provider answered with an error of its own; its body is not kept."""

    code = "UPSTREAM_REFUSED"

    def __init__(self, status: int) -> None:
        super().__init__(f"the provider answered with an error (status {status})")
        self.status = status


class EndpointNotAllowed(ProviderError):
    """Raise when an account's own endpoint is no public address: nothing was sent, nor connected to."""

    code = "ENDPOINT_NOT_ALLOWED"

    def __init__(self) -> None:
        # Not which address: a refusal must tell nobody what a name resolves to inside.
        super().__init__("the account's own endpoint is not at a public address")


class ProviderKeyMissing(ProviderError):
    """Raise when the provider's key is not where the configuration says, or makes no sense there."""

    code = "PROVIDER_KEY_MISSING"


class ProviderKeyOrigin(ProviderError):
    """Raise when a key is bound to another origin, or another account, than the call would be sent for."""

    code = "PROVIDER_KEY_ORIGIN"


class ProviderKeyUnavailable(ProviderError):
    """Raise when the provider's key cannot be read now: nothing was sent."""

    code = "PROVIDER_KEY_UNAVAILABLE"
