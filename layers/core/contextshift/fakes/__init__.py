"""In-memory implementations of every port: public, for our tests and for yours."""

from __future__ import annotations

from contextshift.fakes.adversaries import (
    HostileInterceptor,
    HostileStrategy,
    hostile_interceptors,
    hostile_strategies,
)
from contextshift.fakes.chats import MemoryChats, MemoryLibrary
from contextshift.fakes.patterns import TrustingPatterns
from contextshift.fakes.provider import CountingRandom, FixedClock, ListLog, ScriptedAnswer, ScriptedProvider
from contextshift.fakes.stores import MemoryAccounts, MemoryAuditStore

__all__ = [
    "CountingRandom",
    "FixedClock",
    "HostileInterceptor",
    "HostileStrategy",
    "ListLog",
    "MemoryAccounts",
    "MemoryAuditStore",
    "MemoryChats",
    "MemoryLibrary",
    "ScriptedAnswer",
    "ScriptedProvider",
    "TrustingPatterns",
    "hostile_interceptors",
    "hostile_strategies",
]
