"""The JSON of what is only ever answered: errors, models, counts, audits, previews, settings."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from bastion.wire.shapes import Shape

__all__ = [
    "AccountSettings",
    "ContextAudit",
    "ContextDocument",
    "Health",
    "Model",
    "ModelList",
    "NewSettings",
    "OpenAIProblem",
    "Problem",
    "TokenCount",
]


class OpenAIError(Shape, kw_only=True):
    """An error as OpenAI's SDKs read it."""

    message: str
    type: str
    param: str | None
    code: str
    details: dict[str, Any] | UnsetType = UNSET


class OpenAIProblem(Shape, kw_only=True):
    """An error of `/v1`."""

    error: OpenAIError


class Error(Shape, kw_only=True):
    """An error by its stable code; `path` names the field at fault."""

    code: str
    message: str
    path: str | UnsetType = UNSET
    details: dict[str, Any] | UnsetType = UNSET


class Problem(Shape, kw_only=True):
    """An error of `/api/v2`."""

    error: Error


class Health(Shape, kw_only=True):
    """That the service is alive."""

    status: str
    version: str


class Pricing(Shape, kw_only=True):
    """USD per million tokens."""

    input: float | None
    cached_input: float | None
    cache_write: float | None
    output: float | None
    tiers: list[dict[str, Any]]


class Model(Shape, kw_only=True):
    """A model that the account may use."""

    id: str
    object: str
    created: int
    owned_by: str
    context_length: int | None
    max_model_len: int | None
    max_input_tokens: int | None
    max_completion_tokens: int | None
    pricing: Pricing
    supported_parameters: list[str]
    parameter_limits: dict[str, Any]
    capabilities: list[str]
    regions: list[str] | None
    tokenizer: str | None
    shutdown_date: str | None
    successor: str | None


class ModelList(Shape, kw_only=True):
    """All models that the account may use."""

    object: str
    data: list[Model]


class Tokenizer(Shape, kw_only=True):
    """Whose numbers these are."""

    profile: str
    approximate: bool
    margin: int
    ratio: float | UnsetType = UNSET
    version: int | UnsetType = UNSET


class Budget(Shape, kw_only=True):
    """The room there was, in tokens."""

    window: int | None
    max_input: int | None
    reserve: int
    limit: int | None
    prompt_tokens: int
    fixed_tokens: int


class TokenCount(Shape, kw_only=True):
    """An exact count of a chat completion's prompt."""

    object: str
    model: str
    prompt_tokens: int
    fits: bool
    tokenizer: Tokenizer
    budget: Budget
    messages: list[int]


class Reference(Shape, kw_only=True):
    """What a block was made of."""

    type: str
    id: str | None = None


class Entry(Shape, kw_only=True):
    """One block of the prompt, whether it was sent or not."""

    id: str
    source: str
    role: str
    order: int
    tokens: int
    included: bool
    reason: str
    group: str
    content: Any | UnsetType = UNSET
    fields: Any | UnsetType = UNSET
    ref: Reference | UnsetType = UNSET
    within: str | UnsetType = UNSET
    cause: str | UnsetType = UNSET
    detail: Any | UnsetType = UNSET
    tokens_before: int | UnsetType = UNSET


class UsedModel(Shape, kw_only=True):
    """The model asked for, and the one that is called."""

    requested: str
    used: str | None
    provider: str | None


class Setting(Shape, kw_only=True):
    """A setting's value, and the level that decided it."""

    value: Any
    level: str


class Candidate(Shape, kw_only=True):
    """A model that was looked at for a swap."""

    model: str
    provider: str
    accepted: bool
    reason: str


class Cost(Shape, kw_only=True):
    """USD at list prices."""

    estimated_usd: float | None
    actual_usd: float | UnsetType = UNSET


class ComparedModel(Shape, kw_only=True):
    """How one model would take the same prompt."""

    model: str
    fits: bool
    action: str
    prompt_tokens: int | None
    limit: int | None
    excluded: int
    estimated_usd: float | None
    error_code: str | None = None


class ContextDocument(Shape, kw_only=True):
    """What would be sent and why."""

    model: UsedModel
    action: str
    strategy: str
    tokenizer: Tokenizer
    budget: Budget
    entries: list[Entry]
    messages: list[dict[str, Any]]
    settings: dict[str, Setting]
    candidates: list[Candidate]
    diagnostics: list[dict[str, Any]]
    cost: Cost
    models: list[ComparedModel] | UnsetType = UNSET


class ContextAudit(ContextDocument, kw_only=True):
    """What was sent and why, and how it ended."""

    generation_id: str
    chat_id: str
    status: str
    created_at: str
    finished_at: str | None
    usage: dict[str, Any] | None
    error_code: str | None


class AccountSettings(Shape, kw_only=True):
    """The account's settings, who wrote them, and when."""

    settings: dict[str, Any]
    version: int
    updated_at: str | None
    updated_by: str | None


class NewSettings(Shape, kw_only=True):
    """Settings to take the place of the account's. With `version`, only if that is still the stored one."""

    settings: dict[str, Any]
    version: Annotated[int, Meta(ge=0, le=2**53)] | None = None
