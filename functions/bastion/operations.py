"""Every operation of the API as data: what `/openapi.json` is made of, and what a test compares the routes with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bastion.wire import chats, documents, library
from bastion.wire.shapes import Shape

__all__ = ["OPERATIONS", "Operation"]


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path."""

    method: str
    path: str
    summary: str
    scopes: tuple[str, ...] = ("call",)
    request: type[Shape] | None = None
    response: type[Shape] | None = None
    status: int = 200
    free_body: bool = False
    """Whether the request is JSON whose fields are the provider's to know."""
    bytes_body: bool = False
    """Whether the request may be a file."""
    free_answer: str | None = None
    """The content type of an answer that no type of ours describes."""
    streams: bool = False
    """Whether the answer may be a stream of events."""
    query: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """A stable id: the method and the path's words."""
        words = [part.strip("{}").replace("-", "_") for part in self.path.split("/") if part not in ("", "api", "v2")]
        return "_".join([self.method.lower(), *words]).replace(".", "_")


def _collection(path: str, singular: str, new: type[Shape], one: type[Shape], page: type[Shape]) -> list[Operation]:
    """Return create, list, read, replace and delete of a library's kind."""
    item = f"{path}/{{{singular}_id}}"
    return [
        Operation("POST", path, f"Create a {singular}", request=new, response=one, status=201),
        Operation("GET", path, f"List {singular}s", response=page, query=("limit", "cursor")),
        Operation("GET", item, f"Read a {singular}", response=one),
        Operation("PUT", item, f"Replace a {singular}", request=new, response=one),
        Operation("DELETE", item, f"Delete a {singular}", status=204),
    ]


def _files(path: str, singular: str, one: type[Shape]) -> list[Operation]:
    """Return import and export of a kind that has files."""
    return [
        Operation("POST", f"{path}/import", f"Import a {singular}", bytes_body=True, response=one, status=201),
        Operation(
            "GET",
            f"{path}/{{{singular}_id}}/export",
            f"Export a {singular}",
            free_answer="application/json",
            query=("format",),
        ),
    ]


_V2 = "/api/v2"
_CHAT = f"{_V2}/chats/{{chat_id}}"
_PAGE = ("limit", "cursor")
_RELAYED = ("responses", "completions", "embeddings", "moderations", "images/{rest}", "audio/{rest}")
_JSON: dict[str, Any] = {"free_body": True, "free_answer": "application/json", "streams": True}

OPERATIONS: tuple[Operation, ...] = (
    Operation("POST", "/v1/chat/completions", "Complete a chat; the prompt is made to fit", **_JSON),
    Operation(
        "POST",
        "/v1/chat/completions/count",
        "Count a prompt exactly",
        ("call", "preview"),
        free_body=True,
        response=documents.TokenCount,
    ),
    *(
        Operation("POST", f"/v1/{path}", "Relay, uncounted", bytes_body="{" in path, **_JSON)  # forms go to these
        for path in _RELAYED
    ),
    Operation("GET", "/v1/models", "List models", ("call", "preview"), response=documents.ModelList),
    Operation("GET", "/v1/models/{model}", "Show a model", ("call", "preview"), response=documents.Model),
    Operation(
        "POST",
        f"{_V2}/context-preview",
        "Show what would be sent and why; nothing is kept or sent",
        ("preview", "call"),
        free_body=True,
        response=documents.ContextDocument,
        query=("include",),
    ),
    Operation("POST", f"{_V2}/chats", "Create a chat", request=chats.NewChat, response=chats.Chat, status=201),
    Operation("GET", f"{_V2}/chats", "List chats", response=chats.ChatPage, query=(*_PAGE, "user_id")),
    Operation("GET", _CHAT, "Read a chat", response=chats.Chat),
    Operation("PATCH", _CHAT, "Change a chat", request=chats.ChatChange, response=chats.Chat),
    Operation("DELETE", _CHAT, "Delete a chat, its messages and its audit, for good", status=204),
    Operation(
        "GET",
        f"{_CHAT}/context-audit",
        "Show the newest audit",
        ("audit",),
        response=documents.ContextAudit,
        query=("include",),
    ),
    Operation(
        "POST",
        f"{_CHAT}/messages",
        "Add a message",
        request=chats.NewMessage,
        response=chats.Message,
        status=201,
        query=("branch",),
    ),
    Operation(
        "GET",
        f"{_CHAT}/messages",
        "List a branch's messages",
        response=chats.MessagePage,
        query=(*_PAGE, "branch", "order"),
    ),
    Operation("GET", f"{_CHAT}/messages/{{message_id}}", "Read a message", response=chats.Message),
    Operation(
        "PATCH",
        f"{_CHAT}/messages/{{message_id}}",
        "Change a message",
        request=chats.MessageChange,
        response=chats.Message,
    ),
    Operation("DELETE", f"{_CHAT}/messages/{{message_id}}", "Delete a message", status=204),
    Operation(
        "POST", f"{_CHAT}/branches", "Fork at a message", request=chats.NewBranch, response=chats.Branch, status=201
    ),
    Operation("GET", f"{_CHAT}/branches", "List branches", response=chats.BranchPage),
    Operation(
        "POST",
        f"{_CHAT}/generations",
        "Generate, stream and save",
        request=chats.GenerationStart,
        response=chats.Generation,
        streams=True,
    ),
    Operation("GET", f"{_CHAT}/generations/{{generation_id}}", "Read a generation", response=chats.Generation),
    Operation(
        "POST",
        f"{_CHAT}/generations/{{generation_id}}/cancel",
        "Stop a generation",
        response=chats.Generation,
        status=202,
    ),
    *_collection(f"{_V2}/characters", "character", library.NewCharacter, library.Character, library.CharacterPage),
    *_files(f"{_V2}/characters", "character", library.Character),
    *_collection(f"{_V2}/personas", "persona", library.NewPersona, library.Persona, library.PersonaPage),
    *_collection(f"{_V2}/lorebooks", "lorebook", library.NewLorebook, library.Lorebook, library.LorebookPage),
    *_files(f"{_V2}/lorebooks", "lorebook", library.Lorebook),
    *_collection(f"{_V2}/memories", "memory", library.NewMemory, library.Memory, library.MemoryPage),
    Operation(
        "GET", f"{_V2}/settings", "Read the account's settings", ("call", "admin"), response=documents.AccountSettings
    ),
    Operation(
        "PUT",
        f"{_V2}/settings",
        "Replace the account's settings",
        ("admin",),
        request=documents.NewSettings,
        response=documents.AccountSettings,
    ),
    Operation("GET", "/health", "Liveness", (), response=documents.Health),
    Operation("GET", "/openapi.json", "This document", (), free_answer="application/json"),
)
