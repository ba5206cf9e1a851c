"""The arrows: who may import whom, read off the source."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = ROOT / "layers" / "core"
SERVICE = ROOT / "functions"

CORE_LEVELS = [
    {"media", "cutting"},
    {"nested"},
    {"errors", "reasons", "pieces", "headers", "keys", "audit", "lexical", "overflow_wordings", "endpoints"},
    {"tokens"},
    {
        "messages",
        "words",
        "estimate",
        "vouching",
        "settings",
        "material",
        "guard",
        "calibration",
        "overflow",
        "telling",
    },
    {"groups", "budget", "body", "ports", "extract", "swipes", "references", "arguments"},
    {"needs"},
    {"protection", "strategies", "catalogue", "calibrating", "chats"},
    {"registry", "hosting", "lore", "model_table", "choosing", "paths"},
    {"scene"},
    {"casting", "blocks", "chat_settings"},
    {"shift", "assembly", "overlay", "voices", "turning"},
    {"reconciling"},
    {"interceptors"},
    {"measuring"},
    {"arranging", "marking"},
    {"fit", "fakes"},
    {"report", "relevance", "recovery"},
    {"planner", "answer"},
    {"ledger", "calling"},
    {"course", "attempts", "staging"},
    {"exchange", "replying", "greeting", "finishing"},
    {"rehearsal"},
    {"relaying", "ending"},
    {"generating"},
]
"""A module imports from lower levels only. `ports` needs statuses of audits and calibrations, which stand below it."""

SERVICE_LEVELS = [
    {
        "",
        "shipped",
        "lambda_events",
        "runtime_api",
        "wire",
        "stores",
        "tokenizers",
        "providers",
        "auth",
        "patterns",
        "cors",
    },
    {"config_file", "problems", "admin_commands", "operations"},
    {"openapi"},
    {"config", "respond", "admin_models"},
    {"admin"},
    {"telemetry", "endpoints"},
    {"app"},
    {"bootstrap"},
    {"local", "buffered", "streaming"},
]
ADAPTERS = {"stores", "tokenizers", "providers", "patterns", "wire"}
"""Never import one another."""
NAMES_CONCRETE_CLASSES = {"bootstrap", "admin"}


def modules(root: Path, package: str) -> Iterator[tuple[str, Path]]:
    for path in sorted((root / package).rglob("*.py")):
        parts = path.relative_to(root / package).with_suffix("").parts
        yield ".".join(part for part in parts if part != "__init__"), path


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            for alias in node.names:
                yield module if not is_module(f"{module}.{alias.name}") else f"{module}.{alias.name}"


def is_module(dotted: str) -> bool:
    places = [root.joinpath(*dotted.split(".")) for root in (CORE, SERVICE)]
    return any(place.with_suffix(".py").exists() or (place / "__init__.py").exists() for place in places)


def top(module: str) -> str:
    return module.split(".")[0]


def level(levels: list[set[str]], name: str) -> int:
    found = [rank for rank, names in enumerate(levels) if name in names]
    assert found, f"{name} is in no level: say in this test where it belongs"
    return found[0]


@pytest.mark.parametrize(("name", "path"), list(modules(CORE, "contextshift")))
def test_the_library_imports_the_standard_library_and_lower_levels_only(name, path):
    for imported in imports(path):
        package, _, inner = imported.partition(".")
        if package == "contextshift":
            if name and top(inner) != top(name):
                assert level(CORE_LEVELS, top(inner)) < level(CORE_LEVELS, top(name)), f"{name} imports {imported}"
        else:
            assert package in sys.stdlib_module_names, f"{name} imports {imported}"


@pytest.mark.parametrize(("name", "path"), list(modules(SERVICE, "bastion")))
def test_the_service_follows_its_arrows(name, path):
    own = top(name)
    for imported in imports(path):
        package, _, inner = imported.partition(".")
        other = top(inner)
        if package != "bastion" or other == own:
            continue
        assert level(SERVICE_LEVELS, other) < level(SERVICE_LEVELS, own), f"{name} imports {imported}"
        assert not (own in ADAPTERS and other in ADAPTERS), f"adapter {name} imports adapter {imported}"
        if other in ADAPTERS - {"wire"}:
            assert own in NAMES_CONCRETE_CLASSES, f"{name} names a concrete class of {imported}"


@pytest.mark.parametrize("names", [["dynamodb"], ["sqlite"], ["configured"]])
def test_stores_never_import_one_another(names):
    for name, path in modules(SERVICE, "bastion"):
        parts = name.split(".")
        if parts[0] == "stores" and len(parts) > 1 and parts[1] in names:
            others = {i.split(".")[2] for i in imports(path) if i.startswith("bastion.stores.")}
            assert others <= {*names, "rows"}, "what all stores do with a row is shared, nothing else"


def test_the_import_graph_has_no_cycle():
    graph = {}
    for root, package in ((CORE, "contextshift"), (SERVICE, "bastion")):
        for name, path in modules(root, package):
            dotted = f"{package}.{name}" if name else package
            graph[dotted] = {i for i in imports(path) if i.split(".")[0] in ("contextshift", "bastion")} - {dotted}
    done: set[str] = set()

    def visit(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, " -> ".join((*trail, module))
        if module not in done:
            for imported in graph.get(module, ()):
                # A package's own modules may lean on its siblings; the package itself only re-exports them.
                if not module.startswith(imported + "."):
                    visit(imported, (*trail, module))
            done.add(module)

    for module in graph:
        visit(module, ())


def test_only_the_entries_read_the_environment():
    readers = set()
    for root, package in ((CORE, "contextshift"), (SERVICE, "bastion")):
        for name, path in modules(root, package):
            source = path.read_text("utf-8")
            if "os.environ" in source or "getenv" in source:
                readers.add(name)
    assert readers <= {"bootstrap", "local", "admin", "streaming", "runtime_api"}
    assert "environ.get" in (SERVICE / "bastion" / "config.py").read_text("utf-8")
