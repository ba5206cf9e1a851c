"""How every JSON answer of ours is written."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["dumps"]


def dumps(value: Any) -> bytes:
    """Write JSON in UTF-8 without spaces; text that is not Unicode becomes replacement characters."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
