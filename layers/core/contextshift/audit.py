"""The context audit: what one generation sent, and why each block stayed or left."""
from __future__ import annotations

from enum import Enum

__all__ = ["AuditStatus"]


class AuditStatus(Enum):
    """Where an audit stands. Legal moves: ``prepared`` to any of the others, once."""

    PREPARED = "prepared"
    """Written before the network call; the only status that may change."""
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def terminal(self) -> bool:
        """Whether the audit has ended and will not change again."""
        return self is not AuditStatus.PREPARED
