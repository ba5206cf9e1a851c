"""What the documentation shows is true: every doctest, and every example of the library's page."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
CORE = ROOT / "layers" / "core"
MODULES = sorted(
    ".".join(path.relative_to(CORE).with_suffix("").parts).removesuffix(".__init__") for path in CORE.rglob("*.py")
)


@pytest.mark.parametrize("name", MODULES)
def test_doctests_hold(name: str):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_the_examples_of_the_librarys_page_run():
    talk: list[dict[str, Any]] = [
        {"role": "system", "content": "a b"},
        {"role": "user", "content": "w " * 9000},
        {"role": "assistant", "content": "w " * 50},
        {"role": "user", "content": "q"},
    ]
    names: dict[str, Any] = {"messages": talk}
    for example in re.findall(r"```python\n(.*?)```", (CORE / "README.md").read_text("utf-8"), re.DOTALL):
        exec(example, names)
    assert len(names["result"].kept) == 3
