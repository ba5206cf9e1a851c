"""What the use cases need from the outside, as the smallest verbs: stores, provider, clock, random.

Over 350 lines because all ports stand in one place: who writes an adapter, or asks what is asked of one, reads this.

Everything that does I/O is async. Adapters translate their driver's errors into `errors`, so none of
a driver's types crosses a port. `contextshift.fakes` ships an in-memory implementation of each.

Times are seconds since the epoch, as the injected clock tells them; they order nothing: which
generation is newest is decided by the store's own counter (``seq``).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from contextshift.audit import AuditStatus
from contextshift.calibration import Calibration
from contextshift.endpoints import Endpoint

__all__ = [
    "Access",
    "AccountAdmin",
    "AccountStore",
    "AuditEnd",
    "AuditReader",
    "AuditRecord",
    "AuditStore",
    "AuditWriter",
    "CalibrationStore",
    "Clock",
    "Commit",
    "EventLog",
    "KeyRecord",
    "OverlayRecord",
    "Provider",
    "ProviderAnswer",
    "ProviderCall",
    "Random",
    "Relevance",
    "SettingsRecord",
    "SettingsStore",
    "StoredAudit",
    "Ticket",
]


class Clock(Protocol):
    """Tells the time, so that tests can."""

    def now(self) -> float:
        """Return seconds since the epoch."""


class Random(Protocol):
    """Makes identifiers and secrets, so that tests can foretell them."""

    def token(self, size: int) -> bytes:
        """Return ``size`` unpredictable bytes."""


class EventLog(Protocol):
    """Takes one structured event a call; it never holds prompt text, keys or secrets."""

    def emit(self, event: Mapping[str, Any]) -> None:
        """Write an event. Never raises, never blocks for long."""


# -- accounts ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """An API key as stored: never the key itself."""

    hash: str
    """SHA-256 of the key, hex (`keys.hash_key`)."""
    id: str
    """Short public name of the key for logs and lists, e.g. the hash's first 12 digits."""
    account: str
    scopes: frozenset[str]
    expires: int | None = None
    """Epoch seconds from which the key is dead; filtered when read, since TTL deletion is late."""
    off: bool = False
    """Revoked."""
    created_at: float = 0.0
    label: str = ""


@dataclass(frozen=True, slots=True)
class SettingsRecord:
    """An account's settings (item ``security``) with their history in one line."""

    values: Mapping[str, Any] = field(default_factory=dict)
    version: int = 0
    updated_at: float = 0.0
    updated_by: str = ""


@dataclass(frozen=True, slots=True)
class OverlayRecord:
    """An account's overlay of the catalogue, or the deployment's, with its history in one line."""

    models: Mapping[str, Any] = field(default_factory=dict)
    """As `overlay` describes it."""
    version: int = 0
    updated_at: float = 0.0
    updated_by: str = ""


@dataclass(frozen=True, slots=True)
class Access:
    """What one read of the control table says about a call: who, on which plan, under which settings."""

    key: KeyRecord
    account: str
    plan: str
    settings: SettingsRecord
    models: tuple[str, ...] | None = None
    """The models the account may use; None means all of the catalogue."""
    calibration: Calibration = field(default_factory=Calibration)
    """What providers reported to this account today and yesterday."""
    overlays: tuple[str, ...] = ()
    """What stands over the catalogue for this account, as JSON: the deployment's, then its own; see `overlay`."""


class CalibrationStore(Protocol):
    """Keeps an account's samples by day, for all instances together."""

    async def merge_calibration(self, account: str, day: int, more: Calibration) -> None:
        """Add ``more`` to the samples of a day (`calibration.day_of`); concurrent calls lose nothing.

        Where an answer was lost or a call failed half-way, some may count twice. Raises StoreUnavailable.
        """

    async def calibration(self, account: str) -> Calibration:
        """Return the samples of today and yesterday. Raises StoreUnavailable."""


class AccountStore(CalibrationStore, Protocol):
    """Reads what a call needs to know about its caller, and writes calibration only."""

    async def access(self, key_hash: str, account_hint: str | None) -> Access | None:
        """Return the access a key gives, None where the key is unknown.

        One round trip when ``account_hint`` (from `keys.account_hint`) is given and right; the record
        decides, never the hint. Revoked and expired keys are returned as they stand: the caller judges.
        Calibration and overlays come with the same read. Raises StoreUnavailable.
        """

    async def overlays(self, account: str) -> tuple[str, ...]:
        """Return what stands over the catalogue for an account, as `Access.overlays`. Raises StoreUnavailable."""


class SettingsStore(Protocol):
    """Keeps the accounts' settings. Every method raises StoreUnavailable."""

    async def settings(self, account: str) -> SettingsRecord:
        """Return the account's settings; version 0 and empty where none were written."""

    async def put_settings(self, account: str, settings: SettingsRecord, expected_version: int) -> bool:
        """Store ``settings`` if the stored version still is ``expected_version`` (0: none), else False."""


class AccountAdmin(AccountStore, SettingsStore, Protocol):
    """What ``bastion-admin`` may do beside reading. Every method raises StoreUnavailable."""

    async def create_account(self, account: str, plan: str, models: Sequence[str] | None = None) -> bool:
        """Create it; False where it exists."""

    async def account(self, account: str) -> tuple[str, tuple[str, ...] | None] | None:
        """Return (plan, models), None where there is no such account."""

    async def update_account(self, account: str, plan: str, models: Sequence[str] | None) -> bool:
        """Change plan and models; False where there is no such account."""

    async def put_key(self, key: KeyRecord) -> None:
        """Create or replace a key's record (creation, expiry and revocation alike)."""

    async def expire_key(self, key_hash: str, expires: int | None) -> bool:
        """Change when a key ends, and nothing else of it; False where there is none."""

    async def keys(self, account: str) -> list[KeyRecord]:
        """Return the account's keys, oldest first."""

    async def overlay(self, account: str | None) -> OverlayRecord:
        """Return an account's overlay, None standing for the deployment's; version 0 where there is none."""

    async def put_overlay(self, account: str | None, overlay: OverlayRecord, expected_version: int) -> bool:
        """Store ``overlay`` if the stored version still is ``expected_version`` (0: none), else False."""


# -- audits ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ticket:
    """A begun generation: its place in the order of its chat's present life."""

    account: str
    chat_id: str
    epoch: str
    """Names one life of the chat; a deleted chat's next life has another."""
    seq: int
    """The begin order, as the store serialised it: the counter that decides which audit is newest."""
    generation_id: str


@dataclass(frozen=True, slots=True)
class AuditEnd:
    """How a generation ended: the only part of an audit that is written after it was prepared."""

    status: AuditStatus
    finished_at: float
    usage: Mapping[str, Any] | None = None
    error_code: str | None = None
    actual_usd: float | None = None
    diagnostics: tuple[Mapping[str, Any], ...] = ()
    """What only the answer could tell, such as ``silent-cut`` on a stream."""


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """The small, changing part of a stored audit."""

    generation_id: str
    status: AuditStatus
    created_at: float
    deadline: float
    """Epoch seconds after which a ``prepared`` audit is lost (a minute of grace is the reader's)."""
    parts: int
    sha: str
    """SHA-256 (hex) of the joined parts."""
    attempt: int = 1
    end: AuditEnd | None = None


@dataclass(frozen=True, slots=True)
class StoredAudit:
    """The newest committed audit of a chat: its record, and its document as the bytes that were prepared."""

    record: AuditRecord
    document: bytes


class Commit(Enum):
    """What became of a commit."""

    COMMITTED = "committed"
    """It is the newest audit now (also when an earlier, lost answer already made it so)."""
    SUPERSEDED = "superseded"
    """A generation that began later is already committed; the call goes on, the parts are gone."""
    DELETED = "deleted"
    """The chat's life ended meanwhile; nothing of this generation is kept."""


class AuditReader(Protocol):
    """Reads the newest audit of a chat."""

    async def read(self, account: str, chat_id: str) -> StoredAudit | None:
        """Return the newest committed audit, None where there is none. At most two round trips, as a rule.

        A missing part or a wrong hash means that a newer audit replaced it meanwhile: read again.
        Expired ones are filtered. Raises StoreUnavailable.
        """


class AuditWriter(Protocol):
    """Writes the life of an audit: begin, prepare, commit, finish; sweep what it replaced."""

    async def begin(self, account: str, chat_id: str, generation_id: str, *, now: float, expires: int | None) -> Ticket:
        """Take the next place in the order of this chat, making the chat (a new life) where there is none.

        The ticket's generation id is ``<seq>-<generation_id>``. Raises StoreUnavailable.
        """

    async def prepare(
        self, ticket: Ticket, record: AuditRecord, parts: Sequence[bytes], *, expires: int | None
    ) -> None:
        """Write parts and record under keys of this generation's own; nobody can read them yet.

        A record that has its ``end`` already (a request refused for its size) is written as ended.
        """

    async def commit(self, ticket: Ticket) -> Commit:
        """Make the prepared audit the newest, unless a later one already is, or the chat is gone."""

    async def finish(self, ticket: Ticket, end: AuditEnd) -> bool:
        """End a ``prepared`` audit once; a repeat of the same end is success, another end is refused (False)."""

    async def sweep(self, ticket: Ticket) -> None:
        """Remove the parts and records that this generation replaced."""


class AuditStore(AuditReader, AuditWriter, Protocol):
    """The whole life of audits, deletion included."""

    async def delete(self, account: str, chat_id: str) -> bool:
        """End the chat's life and purge it; False where there was none. A repeated call resumes the purge.

        From its first write on the chat reads as absent and no commit of that life can win.
        """


class Relevance(Protocol):
    """Says how much texts have to do with a question."""

    async def rate(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return a number from 0 to 1 for each text. Raises a ProviderError."""


# -- providers ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProviderCall:
    """One HTTP request to a provider: path below its base URL, the caller's bytes, allow-listed headers."""

    path: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    method: str = "POST"
    deadline: float | None = None
    """Epoch seconds by which the whole answer must have come; None means the provider's own limits."""
    account: str = ""
    """Whose call this is."""
    key: str | None = field(default=None, repr=False)
    """The caller's own key for this provider, to be sent instead of the deployment's; to its origin and no other."""
    endpoint: Endpoint | None = None
    """The account's own address in the place of the provider's; only ever opened by a key of that account."""
    query: str = ""
    """The caller's query, encoded as it came; what is configured for the provider takes the place of its names."""


class ProviderAnswer(Protocol):
    """An answer whose head has arrived; its body comes as it is sent."""

    @property
    def status(self) -> int:
        """HTTP status."""

    @property
    def headers(self) -> Sequence[tuple[str, str]]:
        """All headers as they came, repeated ones repeated, names in lower case."""

    def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body's bytes as they arrive. Raises ProviderBroken or ProviderTimeout."""

    async def aclose(self) -> None:
        """Let go of the connection; safe to call twice, and before the body has ended."""


class Provider(Protocol):
    """Sends bytes to one upstream."""

    async def send(self, call: ProviderCall) -> ProviderAnswer:
        """Send, and return once the head of the answer is there. Raises a ProviderError; 4xx and 5xx are answers."""
