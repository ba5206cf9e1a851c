"""``/api/v2/characters``, ``personas``, ``lorebooks``, ``memories``: an account's library, with import and export."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from bastion.auth import Authenticator
from bastion.endpoints.paging import read_paging, read_queries, read_query
from bastion.endpoints.reading import read_body, read_json
from bastion.problems import BodyTooLarge
from bastion.respond import Reply
from bastion.wire import library as wire
from bastion.wire.shapes import Shape, read, write
from contextshift.audit import timestamp
from contextshift.chats import LibraryRecord, LibraryStore
from contextshift.errors import Conflict, InvalidInput, NotInLibrary, UploadTooLarge
from contextshift.lore.exports import export_json, export_png
from contextshift.lore.imports import MAX_UPLOAD, Imported, Kind, import_document, import_file
from contextshift.lore.notices import NoticeCode
from contextshift.ports import Random

__all__ = ["Collection", "collections"]

Warnings = Sequence[Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class _Kind:
    """What one kind of thing is made of."""

    name: str
    new: type[Shape]
    document: Callable[[Any], tuple[dict[str, Any], Warnings]]
    """The stored document of a request, and its warnings."""
    shown: Callable[[Mapping[str, Any]], dict[str, Any]]
    """What is shown of a stored document."""
    imports: Kind | None = None


class Collection:
    """One kind of an account's library."""

    def __init__(
        self, kind: _Kind, authenticate: Authenticator, library: LibraryStore, random: Random, max_body: int
    ) -> None:
        self._kind = kind
        self._authenticate = authenticate
        self._library = library
        self._random = random
        self._max_body = max_body

    @property
    def name(self) -> str:
        """What one of them is called."""
        return self._kind.name

    @property
    def imports(self) -> bool:
        """Whether there are files of this kind."""
        return self._kind.imports is not None

    async def create(self, request: Request) -> Reply:
        """Create one, under an id of the caller's or one of ours. Raises Conflict where the id is taken."""
        access = await self._authenticate(request, "call")
        new: Any = read(self._kind.new, (await read_json(request, self._max_body)).value)
        document, warnings = self._kind.document(new)
        return await self._stored(access.account, new.id or self._fresh(), document, 0, warnings, 201)

    async def replace(self, request: Request) -> Reply:
        """Replace one. Raises NotInLibrary, and Conflict where ``version`` is not the stored one."""
        access = await self._authenticate(request, "call")
        new: Any = read(self._kind.new, (await read_json(request, self._max_body)).value)
        present = await self._found(access.account, request)
        if new.id not in (None, present.id):
            raise InvalidInput("an id does not change", "id", "invalid_value")
        document, warnings = self._kind.document(new)
        expected = present.version if new.version is None else new.version
        return await self._stored(access.account, present.id, document, expected, warnings, 200)

    async def list(self, request: Request) -> Reply:
        """List them by id."""
        access = await self._authenticate(request, "call")
        paging = read_paging(read_queries(request, "limit", "cursor"), access, self._kind.name)
        page = await self._library.list(access.account, self._kind.name, paging.limit, paging.cursor)
        return Reply.json(paging.shown([self._shown(one) for one in page.items], page.cursor))

    async def show(self, request: Request) -> Reply:
        """Show one. Raises NotInLibrary."""
        access = await self._authenticate(request, "call")
        return Reply.json(self._shown(await self._found(access.account, request)))

    async def delete(self, request: Request) -> Reply:
        """Delete one. Raises NotInLibrary."""
        access = await self._authenticate(request, "call")
        if not await self._library.remove(access.account, self._kind.name, self._id(request)):
            raise NotInLibrary(f"no such {self._kind.name}")
        return Reply(b"", 204)

    async def import_(self, request: Request) -> Reply:
        """Import a file: JSON, PNG or charx, whatever its name. Raises InvalidInput, UploadTooLarge."""
        access = await self._authenticate(request, "call")
        try:
            imported = import_file(await read_body(request, min(self._max_body, MAX_UPLOAD)))
        except BodyTooLarge:
            raise UploadTooLarge(f"the file is over {MAX_UPLOAD} bytes", MAX_UPLOAD) from None
        document, warnings = _of_import(imported, self._kind.imports, None)
        return await self._stored(access.account, self._fresh(), document, 0, warnings, 201)

    async def export(self, request: Request) -> Reply:
        """Export one as V3 JSON, a character also as PNG. Raises NotInLibrary."""
        access = await self._authenticate(request, "call")
        formats = ("json", "png") if self._kind.imports is Kind.CARD else ("json",)
        wanted = read_query(request.query_params, "format", formats, "json")
        found = await self._found(access.account, request)
        if wanted == "png":
            return Reply(export_png(found.document), headers=[("content-type", "image/png")])
        return Reply(export_json(found.document), headers=[("content-type", "application/json")])

    async def _stored(
        self,
        account: str,
        id: str,
        document: Mapping[str, Any],
        expected: int,
        warnings: Warnings,
        status: int,
    ) -> Reply:
        record = LibraryRecord(id, document, index={"name": self._kind.shown(document).get("name", "")})
        stored = await self._library.put(account, self._kind.name, record, expected)
        if stored is None:
            raise Conflict(f"the {self._kind.name} is there already, or has changed")
        shown = self._shown(stored)
        return Reply.json({**shown, "warnings": warnings} if "warnings" in shown else shown, status)

    async def _found(self, account: str, request: Request) -> LibraryRecord:
        found = await self._library.get(account, self._kind.name, [self._id(request)])
        if not found:
            raise NotInLibrary(f"no such {self._kind.name}")
        return found[0]

    def _id(self, request: Request) -> str:
        id: str = request.path_params["id"]
        if not wire.ID.match(id):
            raise NotInLibrary(f"no such {self._kind.name}")
        return id

    def _fresh(self) -> str:
        return f"{self._kind.name[:4]}_{self._random.token(10).hex()}"

    def _shown(self, record: LibraryRecord) -> dict[str, Any]:
        return {
            "id": record.id,
            "version": record.version,
            "created_at": timestamp(record.created_at),
            "updated_at": timestamp(record.updated_at),
            **self._kind.shown(record.document),
        }


def collections(
    authenticate: Authenticator, library: LibraryStore, random: Random, max_body: int
) -> dict[str, Collection]:
    """Return the collections by the names their paths have."""
    kinds = {
        "characters": _Kind("character", wire.NewCharacter, _card, _shown_card, Kind.CARD),
        "personas": _Kind("persona", wire.NewPersona, _plain, dict),
        "lorebooks": _Kind("lorebook", wire.NewLorebook, _book, _shown_book, Kind.LOREBOOK),
        "memories": _Kind("memory", wire.NewMemory, _memory, _shown_memory),
    }
    return {path: Collection(kind, authenticate, library, random, max_body) for path, kind in kinds.items()}


def _plain(new: Any) -> tuple[dict[str, Any], Warnings]:
    return {name: value for name, value in write(new).items() if name not in ("id", "version")}, []


def _memory(new: wire.NewMemory) -> tuple[dict[str, Any], Warnings]:
    """Return a memory's document; it is remembered wherever its scope says, whatever its keys are."""
    unread = [{"path": "keys", "code": str(NoticeCode.NOT_HONOURED)}] if new.keys else []
    return _plain(new)[0], unread


def _card(new: wire.NewCharacter) -> tuple[dict[str, Any], Warnings]:
    return _of_import(import_document(new.card, "card"), Kind.CARD, "card")


def _book(new: wire.NewLorebook) -> tuple[dict[str, Any], Warnings]:
    return _of_import(import_document(new.book, "book"), Kind.LOREBOOK, "book")


def _of_import(imported: Imported, wanted: Kind | None, path: str | None) -> tuple[dict[str, Any], Warnings]:
    if imported.kind is not wanted:
        raise InvalidInput(f"this holds a {imported.kind}, not a {wanted}", path, "wrong_kind")
    return imported.document, [notice.as_dict() for notice in imported.warnings]


def _shown_memory(document: Mapping[str, Any]) -> dict[str, Any]:
    return {**document, "warnings": []}


def _shown_card(document: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": _name(document), "card": document, "warnings": []}


def _shown_book(document: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": _name(document), "book": document, "warnings": []}


def _name(document: Mapping[str, Any]) -> str:
    data = document.get("data")
    name = data.get("name") if isinstance(data, Mapping) else None
    return name if isinstance(name, str) else ""
