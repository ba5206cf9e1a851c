"""``/api/v2/chats``: chats, their messages and branches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET
from starlette.requests import Request

from bastion.auth import Authenticator
from bastion.endpoints.paging import read_paging, read_queries, read_query
from bastion.endpoints.reading import read_json
from bastion.respond import Reply
from bastion.wire import chats as wire
from bastion.wire.openai_chat import check_parameters
from bastion.wire.shapes import read, write
from contextshift import swipes
from contextshift.audit import timestamp
from contextshift.casting import Shelf, load_cast
from contextshift.chat_settings import check_chat_settings, check_params
from contextshift.chats import (
    MAIN,
    BranchRecord,
    ChatRecord,
    ChatStore,
    LibraryStore,
    MessageRecord,
    message_id,
    place_of,
)
from contextshift.errors import ChatNotFound, Conflict, InvalidInput, NotInLibrary
from contextshift.greeting import greeting_message
from contextshift.messages import KNOWN_ROLES, Role
from contextshift.planner import Planner
from contextshift.ports import Access, AuditStore, Clock, Random
from contextshift.settings import CHAT_ID

__all__ = ["Chats", "chat_id_of", "shown_message"]

_TRIES = 20
"""Of a change that names no version: what others change meanwhile is no conflict with it."""


def chat_id_of(request: Request) -> str:
    """Return the chat that a path names. Raises ChatNotFound for what can be no chat's id."""
    chat_id: str = request.path_params["chat_id"]
    if not CHAT_ID.match(chat_id):
        raise ChatNotFound("no such chat")
    return chat_id


class Chats:
    """Keeps chats."""

    def __init__(
        self,
        authenticate: Authenticator,
        planner: Planner,
        chats: ChatStore,
        library: LibraryStore,
        audits: AuditStore,
        clock: Clock,
        random: Random,
        max_body: int,
    ) -> None:
        self._authenticate = authenticate
        self._planner = planner
        self._chats = chats
        self._library = library
        self._audits = audits
        self._clock = clock
        self._random = random
        self._max_body = max_body

    # -- chats ------------------------------------------------------------------------------------------------

    async def create(self, request: Request) -> Reply:
        """Create a chat, with the greeting asked for. Raises Conflict where the id is taken, and InvalidInput."""
        access = await self._authenticate(request, "call")
        new = read(wire.NewChat, (await read_json(request, self._max_body)).value)
        document = {name: value for name, value in write(new).items() if name not in ("id", "greeting", "user_id")}
        self._check(access, document)
        chat_id = new.id or f"chat_{self._random.token(12).hex()}"
        described = {**document, "user_id": new.user_id}
        cast = await load_cast(self._library, access.account, chat_id, described, Shelf())
        if cast.missing:
            kind, _, name = cast.missing[0].partition(":")
            raise InvalidInput(f"the account has no {kind} {name}", _path_of(document, kind, name), "unknown_reference")
        now = self._clock.now()
        first = greeting_message(document, cast, new.greeting, chat_id=chat_id, now=now)
        record = ChatRecord(chat_id, document, new.user_id)
        created = await self._chats.create(access.account, record, [first] if first else [])
        if created is None:
            raise Conflict("the account has a chat of this id")
        return Reply.json(_shown_chat(created), 201)

    async def list(self, request: Request) -> Reply:
        """List the account's chats, or one user's, the newest first."""
        access = await self._authenticate(request, "call")
        queries = read_queries(request, "limit", "cursor", "user_id")
        user_id = queries.get("user_id")
        if user_id is not None and not CHAT_ID.match(user_id):
            raise InvalidInput("a user's id is 1-128 of A-Z a-z 0-9 . _ : -", "user_id", "invalid_value")
        paging = read_paging(queries, access, "chats", user_id or "")
        page = await self._chats.chats(access.account, user_id, paging.limit, paging.cursor)
        return Reply.json(paging.shown([_shown_chat(one) for one in page.items], page.cursor))

    async def show(self, request: Request) -> Reply:
        """Show a chat. Raises ChatNotFound."""
        access = await self._authenticate(request, "call")
        return Reply.json(_shown_chat(await self._chats.chat(access.account, chat_id_of(request))))

    async def change(self, request: Request) -> Reply:
        """Change what is named of a chat. Raises ChatNotFound, Conflict."""
        access = await self._authenticate(request, "call")
        changes = write(read(wire.ChatChange, (await read_json(request, self._max_body)).value))
        asked = changes.pop("version", None)
        for _ in range(_TRIES if asked is None else 1):
            present = await self._chats.chat(access.account, chat_id_of(request))
            document = {**present.document, **changes}
            self._check(access, document)
            changed = await self._chats.change(access.account, present.id, document, asked or present.version)
            if changed is not None:
                return Reply.json(_shown_chat(changed))
        raise Conflict("the chat has changed")

    async def delete(self, request: Request) -> Reply:
        """Delete a chat, its messages and its audit; nothing can undo it. Raises ChatNotFound."""
        access = await self._authenticate(request, "call")
        if not await self._audits.delete(access.account, chat_id_of(request)):
            raise ChatNotFound("no such chat")
        return Reply(b"", 204)

    def _check(self, access: Access, document: Mapping[str, Any]) -> None:
        """Raise InvalidInput for what a generation would stumble over later."""
        switches = check_chat_settings(document["settings"])
        if "context_strategy" in switches:
            self._planner.check_strategy(access, switches["context_strategy"], "settings.context_strategy")
        check_params(document["params"])
        check_parameters(document["params"], "params.")
        if document["context_strategy"] is not None:
            self._planner.check_strategy(access, document["context_strategy"])
        ids = [one["id"] for one in document["participants"]]
        for position, id in enumerate(ids):
            if id in ids[:position]:
                raise InvalidInput("a participant's id is used once", f"participants[{position}].id", "repeated_id")

    # -- messages ---------------------------------------------------------------------------------------------

    async def add_message(self, request: Request) -> Reply:
        """Add a message at a branch's end. Raises ChatNotFound."""
        access = await self._authenticate(request, "call")
        document = _new_message(read(wire.NewMessage, (await read_json(request, self._max_body)).value))
        branch = _branch(read_queries(request, "branch"))
        added = await self._chats.append(access.account, chat_id_of(request), branch, [document])
        if added is None:
            raise ChatNotFound("the chat has no such branch")
        return Reply.json(shown_message(added[0]), 201)

    async def messages(self, request: Request) -> Reply:
        """List a branch's messages. Raises ChatNotFound."""
        access = await self._authenticate(request, "call")
        chat_id, queries = chat_id_of(request), read_queries(request, "limit", "cursor", "branch", "order")
        branch, order = _branch(queries), read_query(queries, "order", ("asc", "desc"), "asc")
        paging = read_paging(queries, access, "messages", chat_id, branch, order)
        page = await self._chats.messages(
            access.account, chat_id, branch, paging.limit, paging.cursor, newest_first=order == "desc"
        )
        if page is None:
            raise ChatNotFound("the chat has no such branch")
        return Reply.json(paging.shown([shown_message(one) for one in page.items], page.cursor))

    async def message(self, request: Request) -> Reply:
        """Show a message. Raises ChatNotFound, NotInLibrary."""
        access = await self._authenticate(request, "call")
        return Reply.json(shown_message(await self._message(access, request)))

    async def edit_message(self, request: Request) -> Reply:
        """Change what is named of a message. Raises ChatNotFound, Conflict."""
        access = await self._authenticate(request, "call")
        changes = write(read(wire.MessageChange, (await read_json(request, self._max_body)).value))
        asked, chat_id = changes.pop("version", None), chat_id_of(request)
        for _ in range(_TRIES if asked is None else 1):
            present = await self._message(access, request)
            document = swipes.changed(present.document, changes)
            changed = await self._chats.edit(access.account, chat_id, present.id, document, asked or present.version)
            if changed is not None:
                return Reply.json(shown_message(changed))
        raise Conflict("the message has changed")

    async def delete_message(self, request: Request) -> Reply:
        """Delete a message from every branch that shares it. Raises ChatNotFound."""
        access = await self._authenticate(request, "call")
        if not await self._chats.remove(access.account, chat_id_of(request), request.path_params["message_id"]):
            raise NotInLibrary("no such message")
        return Reply(b"", 204)

    async def _message(self, access: Access, request: Request) -> MessageRecord:
        found = await self._chats.message(access.account, chat_id_of(request), request.path_params["message_id"])
        if found is None:
            raise NotInLibrary("no such message")
        return found

    # -- branches ---------------------------------------------------------------------------------------------

    async def fork(self, request: Request) -> Reply:
        """Fork a branch after one of its messages. Raises ChatNotFound, Conflict where the id is taken."""
        access = await self._authenticate(request, "call")
        new = read(wire.NewBranch, (await read_json(request, self._max_body)).value)
        chat_id = chat_id_of(request)
        known = {one.id: one for one in await self._chats.branches(access.account, chat_id)}
        if new.branch not in known:
            raise ChatNotFound("the chat has no such branch")
        place = place_of(new.from_message)
        message = None if place is None else await self._chats.message(access.account, chat_id, new.from_message)
        lineage = None if message is None else known[new.branch].forked_at(message.branch, message.n)
        if lineage is None:
            raise InvalidInput("the branch holds no such message", "from_message", "unknown_reference")
        branch = BranchRecord(new.id or f"b{self._random.token(6).hex()}", lineage, new.name)
        if not await self._chats.fork(access.account, chat_id, branch):
            raise Conflict("the chat has a branch of this id")
        made = next(one for one in await self._chats.branches(access.account, chat_id) if one.id == branch.id)
        return Reply.json(_shown_branch(made), 201)

    async def branches(self, request: Request) -> Reply:
        """List a chat's branches. Raises ChatNotFound."""
        access = await self._authenticate(request, "call")
        found = await self._chats.branches(access.account, chat_id_of(request))
        return Reply.json({"data": [_shown_branch(one) for one in found], "next_cursor": None})


def _branch(queries: Mapping[str, str]) -> str:
    """Return the branch that a query names. Raises ChatNotFound for what can be no branch's id."""
    branch = queries.get("branch", MAIN)
    if place_of(message_id(branch, 1)) is None:
        raise ChatNotFound("the chat has no such branch")
    return branch


def _path_of(document: Mapping[str, Any], kind: str, name: str) -> str:
    """Return the field that refers to something which is not there."""
    for position, one in enumerate(document["participants"]):
        if one.get(f"{kind}_id") == name:
            return f"participants[{position}].{kind}_id"
    return f"lorebooks[{document['lorebooks'].index(name)}]" if kind == "lorebook" else kind


def _new_message(new: wire.NewMessage) -> dict[str, Any]:
    """Return a new message's document. Raises InvalidInput for what may not be missing, and an index of no swipe."""
    if new.content is UNSET and not new.swipes and new.role in KNOWN_ROLES and new.role != Role.ASSISTANT:
        raise InvalidInput("content may be missing on an assistant message only", "content", "missing")
    return swipes.added({"content": None, **write(new)})


def _shown_chat(record: ChatRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        **record.document,
        "user_id": record.user_id,
        "version": record.version,
        "created_at": timestamp(record.created_at),
        "updated_at": timestamp(record.updated_at),
    }


_MESSAGE_FIELDS = tuple(name for name in wire.Message.__struct_fields__ if name not in wire.STAMPS)
_SWIPE_FIELDS = wire.Swipe.__struct_fields__


def shown_message(record: MessageRecord) -> dict[str, Any]:
    """Return a message as the API shows it; what the pipeline keeps with it for itself stays hidden."""
    shown = {name: record.document.get(name, wire.MESSAGE_DEFAULTS.get(name)) for name in _MESSAGE_FIELDS}
    answers = [{name: one[name] for name in _SWIPE_FIELDS if name in one} for one in shown["swipes"] or ()]
    return {
        **shown,
        "swipes": answers,
        "id": record.id,
        "branch": record.branch,
        "version": record.version,
        "created_at": timestamp(record.created_at),
        "updated_at": timestamp(record.updated_at),
    }


def _shown_branch(record: BranchRecord) -> dict[str, Any]:
    parent = record.lineage[-1] if record.lineage else None
    return {
        "id": record.id,
        "name": record.name,
        "parent": parent[0] if parent else None,
        "from_message": f"{parent[0]}.{parent[1]}" if parent else None,
        "created_at": timestamp(record.created_at),
    }
