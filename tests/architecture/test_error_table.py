"""The table of errors is published where its users look, and is the table that the code uses."""

from __future__ import annotations

from pathlib import Path

import pytest

from bastion import problems

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
ROWS = problems._TABLE


@pytest.mark.parametrize("kind", ROWS, ids=lambda kind: kind.__name__)
def test_every_code_of_the_table_is_published_with_its_status(kind: type):
    row = ROWS[kind]
    if row.code == "invalid_value":
        return  # a field's own reason stands in its place
    lines = [line for line in README.splitlines() if line.startswith(f"| {row.status} |")]
    assert any(f"`{row.code}`" in line for line in lines), f"{row.status} {row.code}"


@pytest.mark.parametrize("kind", ROWS, ids=lambda kind: kind.__name__)
def test_the_docstring_draws_the_same_table(kind: type):
    row = ROWS[kind]
    drawn = [line.split() for line in (problems.__doc__ or "").splitlines() if line.startswith(kind.__name__ + " ")]
    if kind.__name__ in ("ContextShiftError", "ProviderError", "ChatDeleted"):
        return  # branches, drawn by their leaves
    assert drawn, kind.__name__
    assert drawn[0][1] == str(row.status)
    assert row.code in drawn[0] or row.code == "invalid_value"
