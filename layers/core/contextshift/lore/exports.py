"""Cards and lorebooks as files that other applications read: the stored V3 document, nothing added, nothing lost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from contextshift.lore import png

__all__ = ["export_json", "export_png"]


def export_json(document: Mapping[str, Any]) -> bytes:
    """Return a stored document (`Imported.document`) as a JSON file, UTF-8.

    >>> export_json({"spec": "lorebook_v3", "data": {"entries": []}})
    b'{"spec": "lorebook_v3", "data": {"entries": []}}'
    """
    return json.dumps(document, ensure_ascii=False, allow_nan=False).encode()


def export_png(document: Mapping[str, Any], picture: bytes | None = None) -> bytes:
    """Return ``picture``, a PNG or APNG, or else a blank one, that carries the card in its ``ccv3`` chunk.

    Cards that the picture carried before are replaced, all its other bytes are kept. ``chara`` is not written: what it
    could tell older applications is not all of the card. Raises InvalidInput where ``picture`` is no whole PNG.
    """
    return png.embed(export_json(document), picture)
