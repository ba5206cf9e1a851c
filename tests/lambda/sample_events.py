"""The events of events/, which `sam local invoke` takes as well."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "events"


def load_event(name: str) -> Any:
    """A fresh copy, to be changed at will."""
    return json.loads((FOLDER / f"{name}.json").read_text())
