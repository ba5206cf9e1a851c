"""The JSON of chats, their messages, branches and generations."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from bastion.wire.shapes import Shape, write

__all__ = [
    "MESSAGE_DEFAULTS",
    "STAMPS",
    "AuthorNote",
    "Branch",
    "BranchPage",
    "Chat",
    "ChatChange",
    "ChatPage",
    "Generation",
    "GenerationStart",
    "Message",
    "MessageChange",
    "MessagePage",
    "NewBranch",
    "NewChat",
    "NewMessage",
    "Participant",
    "Swipe",
]

Id = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._:-]{1,128}$", description="1-128 of A-Z a-z 0-9 . _ : -")]
Title = Annotated[str, Meta(max_length=500)]
Name = Annotated[str, Meta(max_length=200)]
Depth = Annotated[int, Meta(ge=0, le=10_000)]
Role = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=64,
        description="system, developer, user, assistant, tool or function; any other passes through, protected.",
    ),
]
Content = str | list[dict[str, Any]] | None
Index = Annotated[int, Meta(ge=0, le=10_000)]
Version = Annotated[int, Meta(ge=1, le=2**53)]
Settings = Annotated[
    dict[str, Any],
    Meta(description="The switches of `routing`, as this chat's level; `blocks`: the order of the prompt's blocks."),
]
Params = Annotated[dict[str, Any], Meta(description="Passed to the provider with each generation.")]
Variables = dict[Annotated[str, Meta(max_length=100)], str | int | float | bool | None]


class Participant(Shape, kw_only=True):
    """Who takes part."""

    id: Id
    kind: Literal["user", "character"]
    character_id: Id | None = None
    persona_id: Id | None = None
    name: Name | None = None


class AuthorNote(Shape, kw_only=True):
    """A note that stands in the history, `depth` messages before its end."""

    text: str
    depth: Depth = 4
    role: Literal["system", "user", "assistant"] = "system"


class _Described(Shape, kw_only=True):
    """What a chat is, as its owner says."""

    title: Title = ""
    model: Annotated[str, Meta(max_length=256)] | None = None
    participants: list[Participant] = []
    persona: Id | None = None
    lorebooks: list[Id] = []
    variables: Variables = {}
    context_strategy: Name | None = None
    settings: Settings = {}
    params: Params = {}
    author_note: AuthorNote | None = None
    user_id: Id | None = None
    metadata: dict[str, Any] = {}


class NewChat(_Described, kw_only=True):
    """A chat to be made."""

    id: Id | None = None
    greeting: (
        Annotated[int, Meta(ge=0, le=1_000, description="Which opening message of the first character.")] | None
    ) = None


class ChatChange(Shape, kw_only=True):
    """What changes of a chat; what is left out stays. With `version`, only if that is still the stored one."""

    version: Version | UnsetType = UNSET
    title: Title | UnsetType = UNSET
    model: Annotated[str, Meta(max_length=256)] | UnsetType | None = UNSET
    participants: list[Participant] | UnsetType = UNSET
    persona: Id | UnsetType | None = UNSET
    lorebooks: list[Id] | UnsetType = UNSET
    variables: Variables | UnsetType = UNSET
    context_strategy: Name | UnsetType | None = UNSET
    settings: Settings | UnsetType = UNSET
    params: Params | UnsetType = UNSET
    author_note: AuthorNote | UnsetType | None = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET


class Chat(_Described, kw_only=True):
    """A chat as it is stored."""

    id: str
    version: int
    created_at: str
    updated_at: str


class ChatPage(Shape, kw_only=True):
    """Some chats, the newest first."""

    data: list[Chat]
    next_cursor: str | None = None


class Swipe(Shape, kw_only=True):
    """One of the answers that were made in a message's place."""

    content: Content = None
    reasoning: str | None = None
    tool_calls: list[dict[str, Any]] | None = None
    generation_id: str | None = None
    partial: bool = False


class _Said(Shape, kw_only=True):
    """What a message says beside its content."""

    role: Role
    speaker_id: Id | None = None
    name: Name | None = None
    swipes: list[Swipe] = []
    swipe: Index = 0
    reasoning: str | None = None
    pinned: bool = False
    meta: dict[str, Any] = {}
    partial: bool = False
    tool_calls: list[dict[str, Any]] | None = None
    tool_call_id: str | None = None


class NewMessage(_Said, kw_only=True):
    """A message to be added at the end of a branch.

    With swipes it says what the one at `swipe` says; content, reasoning, tool_calls and partial beside them are an edit
    of that one.
    """

    content: Annotated[
        Content | UnsetType, Meta(description="May be missing on an assistant's message, and beside swipes.")
    ] = UNSET


class MessageChange(Shape, kw_only=True):
    """What changes of a message; what is left out stays. With `version`, only if that is still the stored one."""

    version: Version | UnsetType = UNSET
    content: Content | UnsetType = UNSET
    speaker_id: Id | UnsetType | None = UNSET
    swipe: Index | UnsetType = UNSET
    reasoning: str | UnsetType | None = UNSET
    pinned: bool | UnsetType = UNSET
    meta: dict[str, Any] | UnsetType = UNSET
    partial: bool | UnsetType = UNSET


class Message(_Said, kw_only=True):
    """A message as it is stored: what it says is what the swipe shown says."""

    content: Content = None
    id: str
    branch: str
    generation_id: str | None = None
    version: int
    created_at: str
    updated_at: str


STAMPS = ("id", "branch", "version", "created_at", "updated_at")
"""What a message's place and its store say of it; the rest is its document."""
MESSAGE_DEFAULTS: dict[str, Any] = {name: value for name, value in write(_Said(role="user")).items() if name != "role"}


class MessagePage(Shape, kw_only=True):
    """Some messages of a branch, in the order asked for."""

    data: list[Message]
    next_cursor: str | None = None


class NewBranch(Shape, kw_only=True):
    """A branch to be forked."""

    id: Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{1,64}$")] | None = None
    from_message: Annotated[Id, Meta(description="The last message that the new branch shares.")]
    branch: Annotated[Id, Meta(description="The branch that it is read from.")] = "main"
    name: Name | None = None


class Branch(Shape, kw_only=True):
    """A branch: a path through the chat's one tree."""

    id: str
    name: str | None = None
    parent: str | None = None
    from_message: str | None = None
    created_at: str


class BranchPage(Shape, kw_only=True):
    """All branches of a chat."""

    data: list[Branch]
    next_cursor: str | None = None


class GenerationStart(Shape, kw_only=True):
    """What is to be generated."""

    type: Literal["normal", "continue", "regenerate", "swipe", "impersonate", "quiet"] = "normal"
    branch: Annotated[
        Id,
        Meta(
            description="continue, regenerate and swipe change its last message, which must be its own: where a fork "
            "ends in a message that it shares, fork it after the message before."
        ),
    ] = "main"
    user_message: Annotated[str, Meta(description="Saved as the user's before generating (not for quiet).")] | None = (
        None
    )
    model: Annotated[str, Meta(max_length=256)] | None = None
    context_strategy: Name | None = None
    routing: dict[str, Any] | None = None
    params: Params = {}
    prefill: str = ""
    speaker_id: Annotated[Id, Meta(description="The participant who speaks.")] | None = None
    prompt: Annotated[str, Meta(description="Of a quiet generation: the instruction at its end.")] | None = None
    include_reasoning: bool = False
    stream: bool = True
    on_disconnect: Literal["continue", "cancel"] = "continue"


class Generation(Shape, kw_only=True):
    """A generation: how it stands, and its text so far."""

    id: str
    chat_id: str
    branch: str | None = None
    type: str | None = None
    status: Literal["prepared", "completed", "failed", "cancelled"]
    text: str = ""
    reasoning: str | None = None
    message: Message | None = None
    usage: dict[str, Any] | None = None
    error_code: str | None = None
    created_at: str
    finished_at: str | None = None
