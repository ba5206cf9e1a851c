"""Error to status and body: one table, for both faces of the API.

``/v1`` speaks OpenAI (``{"error": {"message", "type", "param", "code"}}``), so that its SDKs raise their own
classes; ``/api/v2`` speaks ``{"error": {"code", "message", "path"?, "details"?}}``.

======================  ======  =========================  ==========================
error                   status  code on ``/v1``            class in OpenAI's SDKs
======================  ======  =========================  ==========================
InvalidInput            400     its reason                 BadRequestError
TokenBudgetExceeded     400     context_length_exceeded    BadRequestError
UpstreamOverflow        400     context_length_exceeded    BadRequestError
ReplyLimitTooLarge      400     max_tokens_too_large       BadRequestError
KeyRefused              401     invalid_api_key            AuthenticationError
ModelNotAllowed         403     model_not_allowed          PermissionDeniedError
StrategyNotInPlan       403     STRATEGY_NOT_IN_PLAN       PermissionDeniedError
ProviderKeyNotAllowed   403     provider_key_not_allowed   PermissionDeniedError
ProviderKeyRequired     403     provider_key_required      PermissionDeniedError
EndpointNotAllowed      403     endpoint_not_allowed       PermissionDeniedError
ScopeMissing            403     scope_missing              PermissionDeniedError
ModelNotFound           404     model_not_found            NotFoundError
ChatNotFound            404     chat_not_found             NotFoundError
NotInLibrary            404     not_found                  NotFoundError
RouteNotFound           404     unknown_url                NotFoundError
StatefulRoute           404     stateful_not_supported     NotFoundError
MethodNotAllowed        405     method_not_allowed         APIStatusError
Conflict                409     conflict                   ConflictError
IdempotencyConflict     409     idempotency_conflict       ConflictError
UploadTooLarge          413     upload_too_large           APIStatusError
BodyTooLarge            413     request_too_large          APIStatusError
CounterFault            500     internal_error             InternalServerError
ProviderUnreachable     502     upstream_unreachable       InternalServerError
ProviderBroken          502     upstream_broken            InternalServerError
UpstreamRefused         502     upstream_refused           InternalServerError
ProviderKeyMissing      502     provider_key_missing       InternalServerError
ProviderKeyOrigin       502     provider_key_origin        InternalServerError
ProviderKeyQuoted       502     provider_key_quoted        InternalServerError
ProviderKeyUnavailable  503     provider_key_unavailable   InternalServerError
StoreUnavailable        503     store_unavailable          InternalServerError
ProviderTimeout         504     upstream_timeout           InternalServerError
======================  ======  =========================  ==========================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bastion.auth import KeyRefused, ScopeMissing
from bastion.wire.relayed import StatefulRoute
from contextshift.course import CallFailed
from contextshift.errors import (
    ChatDeleted,
    ChatNotFound,
    Conflict,
    ContextShiftError,
    EndpointNotAllowed,
    IdempotencyConflict,
    InvalidInput,
    ModelNotAllowed,
    ModelNotFound,
    NotInLibrary,
    ProviderBroken,
    ProviderError,
    ProviderKeyMissing,
    ProviderKeyNotAllowed,
    ProviderKeyOrigin,
    ProviderKeyQuoted,
    ProviderKeyRequired,
    ProviderKeyUnavailable,
    ProviderTimeout,
    ProviderUnreachable,
    ReplyLimitTooLarge,
    StoreUnavailable,
    StrategyNotInPlan,
    TokenBudgetExceeded,
    UploadTooLarge,
    UpstreamOverflow,
    UpstreamRefused,
)
from contextshift.fit import Decision

__all__ = ["BodyTooLarge", "EndedBefore", "MethodNotAllowed", "Problem", "RouteNotFound", "problem_of"]


class BodyTooLarge(ContextShiftError):
    """Raise when a request's body is over the stated size."""

    code = "BODY_TOO_LARGE"


class RouteNotFound(ContextShiftError):
    """Raise when there is no such route."""

    code = "NOT_FOUND"


class MethodNotAllowed(ContextShiftError):
    """Raise when the route does not take the method."""

    code = "METHOD_NOT_ALLOWED"


class EndedBefore(ContextShiftError):
    """Raise to repeat the failure of a generation that an earlier request began, by the code that it ended with."""

    code = "ENDED_BEFORE"

    def __init__(self, ended: str) -> None:
        super().__init__("the generation that an earlier request began ended in this error")
        self.kind = _kind_of(ended)
        self.shown = ended if self.kind is ContextShiftError else self.kind.code
        """The code that is shown as this one's: the error's then, or what was kept where that was no error of ours."""


@dataclass(frozen=True, slots=True)
class _Row:
    status: int
    code: str
    type: str
    retry: bool = False
    """Whether repeating the call may cure it and cannot do its work twice."""


_REQUEST = "invalid_request_error"
_SERVER = "server_error"
_TABLE: dict[type[ContextShiftError], _Row] = {
    InvalidInput: _Row(400, "invalid_value", _REQUEST),
    TokenBudgetExceeded: _Row(400, "context_length_exceeded", _REQUEST),
    UpstreamOverflow: _Row(400, "context_length_exceeded", _REQUEST),
    ReplyLimitTooLarge: _Row(400, "max_tokens_too_large", _REQUEST),
    KeyRefused: _Row(401, "invalid_api_key", "authentication_error"),
    ModelNotAllowed: _Row(403, "model_not_allowed", "permission_error"),
    StrategyNotInPlan: _Row(403, "STRATEGY_NOT_IN_PLAN", "permission_error"),
    ProviderKeyNotAllowed: _Row(403, "provider_key_not_allowed", "permission_error"),
    ProviderKeyRequired: _Row(403, "provider_key_required", "permission_error"),
    EndpointNotAllowed: _Row(403, "endpoint_not_allowed", "permission_error"),
    ScopeMissing: _Row(403, "scope_missing", "permission_error"),
    ModelNotFound: _Row(404, "model_not_found", _REQUEST),
    ChatNotFound: _Row(404, "chat_not_found", _REQUEST),
    NotInLibrary: _Row(404, "not_found", _REQUEST),
    ChatDeleted: _Row(404, "chat_not_found", _REQUEST),
    StatefulRoute: _Row(404, "stateful_not_supported", _REQUEST),
    RouteNotFound: _Row(404, "unknown_url", _REQUEST),
    MethodNotAllowed: _Row(405, "method_not_allowed", _REQUEST),
    Conflict: _Row(409, "conflict", _REQUEST),
    IdempotencyConflict: _Row(409, "idempotency_conflict", _REQUEST),
    UploadTooLarge: _Row(413, "upload_too_large", _REQUEST),
    BodyTooLarge: _Row(413, "request_too_large", _REQUEST),
    ProviderUnreachable: _Row(502, "upstream_unreachable", _SERVER, retry=True),
    ProviderBroken: _Row(502, "upstream_broken", _SERVER),
    UpstreamRefused: _Row(502, "upstream_refused", _SERVER),
    ProviderKeyMissing: _Row(502, "provider_key_missing", _SERVER),
    ProviderKeyOrigin: _Row(502, "provider_key_origin", _SERVER),
    ProviderKeyQuoted: _Row(502, "provider_key_quoted", _SERVER),
    ProviderKeyUnavailable: _Row(503, "provider_key_unavailable", _SERVER, retry=True),
    ProviderTimeout: _Row(504, "upstream_timeout", _SERVER),
    ProviderError: _Row(502, "upstream_error", _SERVER),
    StoreUnavailable: _Row(503, "store_unavailable", _SERVER, retry=True),
    ContextShiftError: _Row(500, "internal_error", _SERVER),
}


@dataclass(frozen=True, slots=True)
class Problem:
    """An error as a client will see it."""

    status: int
    headers: list[tuple[str, str]]
    openai: dict[str, Any]
    bastion: dict[str, Any]

    def body(self, path: str) -> dict[str, Any]:
        """Return the body in the shape of the API that ``path`` belongs to."""
        return self.bastion if path.startswith("/api/") else self.openai


def problem_of(error: ContextShiftError) -> Problem:
    """Look an error up, along its class's ancestry, and say it in both shapes."""
    decision = error.decision if isinstance(error, CallFailed) else None
    shown = error.headers if isinstance(error, CallFailed) else []
    cause = error.cause if isinstance(error, CallFailed) else error
    row = _row(cause.kind if isinstance(cause, EndedBefore) else type(cause))
    code = cause.reason if isinstance(cause, InvalidInput) and row.status == 400 else row.code
    details = _details(cause, decision)
    path = _path(cause)
    openai: dict[str, Any] = {"message": _message(cause, decision), "type": row.type, "param": path, "code": code}
    bastion: dict[str, Any] = {"code": cause.shown if isinstance(cause, EndedBefore) else cause.code}
    bastion["message"] = str(cause)
    if path is not None:
        bastion["path"] = path
    if details:
        openai["details"] = bastion["details"] = details
    retry = [] if row.retry else [("x-should-retry", "false")]
    return Problem(row.status, [*shown, *retry], {"error": openai}, {"error": bastion})


def _row(kind: type) -> _Row:
    return next(_TABLE[one] for one in kind.__mro__ if one in _TABLE)


def _kind_of(code: str) -> type[ContextShiftError]:
    """Return the error of a code that was stored; one that no error has is a fault of ours.

    What a provider refused with is stored by its status, as ``UPSTREAM_429``.
    """
    if code.startswith("UPSTREAM_"):
        return UpstreamRefused
    kinds: list[type[ContextShiftError]] = [ContextShiftError]
    for kind in kinds:
        if kind.code == code:
            return kind
        kinds += kind.__subclasses__()
    return ContextShiftError


def _message(error: ContextShiftError, decision: Decision | None) -> str:
    if not isinstance(error, TokenBudgetExceeded) or decision is None:
        return str(error)
    asked, budget = decision.asked, decision.asked.budget
    bound = _bound(decision)
    length = asked.model.max_input if bound == "max_input" else asked.model.context_window
    said = (
        f"This model's maximum context length is {length} tokens. However, your messages resulted in "
        f"{asked.prompt} tokens. (context_length_exceeded)"
    )
    if bound == "window" and budget is not None and asked.reserve:
        said += f" {asked.reserve} tokens are kept for the reply, which leaves {budget.limit} for the prompt."
    return said


def _bound(decision: Decision) -> str:
    """Return which limit is the one that binds."""
    model, reserve = decision.asked.model, decision.asked.reserve
    if model.max_input is not None and model.max_input < (model.context_window or 0) - reserve:
        return "max_input"
    return "window"


def _details(error: ContextShiftError, decision: Decision | None) -> dict[str, Any]:
    if isinstance(error, ReplyLimitTooLarge):
        return {"requested": error.requested, "largest": error.largest}
    if isinstance(error, ModelNotAllowed):
        return {"model": error.name, "rule": error.rule}
    if isinstance(error, UpstreamOverflow):
        return {"kind": error.kind, "limit": error.limit, "requested": error.requested, "reported_by": "provider"}
    if not isinstance(error, TokenBudgetExceeded):
        return {}
    details: dict[str, Any] = {"breakdown": error.breakdown}
    if decision is not None and decision.asked.budget is not None:
        asked, budget = decision.asked, decision.asked.budget
        details |= {
            "bound": _bound(decision),
            "limit": budget.limit,
            "prompt_tokens": asked.prompt,
            "window": budget.window,
            "max_input": budget.max_input,
            "reserve": budget.reserve,
        }
    return details


def _path(error: ContextShiftError) -> str | None:
    if isinstance(error, InvalidInput | StrategyNotInPlan):
        return error.path
    if isinstance(error, TokenBudgetExceeded | UpstreamOverflow):
        return "messages"
    if isinstance(error, ReplyLimitTooLarge):
        return "max_tokens"
    if isinstance(error, ModelNotFound | ModelNotAllowed):
        return "model"
    return None
