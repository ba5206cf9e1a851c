"""The public surface: `__all__` is sorted and true, versions agree, everything public says what it is for."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = {
    path: ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
    for root in (ROOT / "layers" / "core", ROOT / "functions")
    for path in sorted(root.rglob("*.py"))
}
RUNS_ON_IMPORT = {"bastion.buffered", "bastion.streaming", "bastion.local"}
"""Entries of a host: importing them makes the app."""


@pytest.mark.parametrize("path", SOURCES, ids=SOURCES.get)
def test_all_is_sorted_and_names_what_is_there(path):
    tree = ast.parse(path.read_text("utf-8"))
    declared = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    if not declared or SOURCES[path] in RUNS_ON_IMPORT:
        return
    names = declared[0]
    assert sorted(names, key=_ruff_order) == list(names)
    module = importlib.import_module(SOURCES[path])
    assert all(hasattr(module, name) for name in names)


def _ruff_order(name: str) -> tuple[int, str]:
    kind = 0 if name.isupper() else 1 if name[:1].isupper() else 2
    return kind, name


@pytest.mark.parametrize("path", SOURCES, ids=SOURCES.get)
def test_a_module_over_350_lines_says_why(path):
    source = path.read_text("utf-8")
    lines = source.count("\n")
    assert lines <= 350 or "lines" in (ast.get_docstring(ast.parse(source)) or "")


def test_versions_agree():
    import bastion
    import contextshift

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    library = tomllib.loads((ROOT / "layers/core/pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert {project, library} == {bastion.__version__, contextshift.__version__}
    assert f"## {project}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def loaded_by(statement: str) -> set[str]:
    code = f"import sys; sys.path[:0] = ['layers/core', 'functions']; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_way_to_the_first_answer_imports_nothing_heavy():
    loaded = loaded_by("from bastion.bootstrap import bootstrap; from bastion.app import create_app")
    heavy = {"boto3", "botocore", "openai", "pydantic", "uvicorn", "tiktoken", "regex", "requests", "yaml", "numpy"}
    assert not heavy & loaded
    assert len(loaded) < 560, f"{len(loaded)} modules on the way to the first answer"


def test_the_library_loads_a_handful_of_modules():
    loaded = loaded_by("import contextshift")
    ours = {name for name in loaded if name.startswith("contextshift")}
    assert "asyncio" not in loaded
    assert len(ours) < 30


def test_no_lock_names_an_address_and_no_file_names_a_machine():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.split():
        path = ROOT / name
        if name.endswith((".lock", "package-lock.json")) or Path(name).name.startswith("requirements"):
            assert "://" not in path.read_text("utf-8"), name
