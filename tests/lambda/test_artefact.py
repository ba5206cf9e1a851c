"""What `make artefact` left is complete, small, compiled, of one piece with the locks, and imports."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import artefact
import pytest
from artefact import BUILD, FUNCTIONS, LAYERS, ROOT

MEGABYTE = 1_000_000


def files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())


def sources(folder: Path) -> set[str]:
    return {
        str(path.relative_to(folder))
        for path in files(folder)
        if "__pycache__" not in path.parts and not path.name.startswith(".")
    }


def test_it_stays_far_below_the_limit_of_250_mb() -> None:
    for function in FUNCTIONS:
        unzipped = sum(p.stat().st_size for part in (function, *LAYERS) for p in files(BUILD / part))
        assert unzipped < 100 * MEGABYTE


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_holds_all_of_bastion_and_nothing_else(function: str) -> None:
    assert sources(BUILD / function / "bastion") == sources(ROOT / "functions/bastion")
    assert [path.name for path in (BUILD / function).iterdir()] == ["bastion"]


def test_the_core_layer_holds_all_of_contextshift() -> None:
    assert sources(BUILD / "CoreLayer/python") == {
        f"contextshift/{name}" for name in sources(ROOT / "layers/core/contextshift")
    }


def test_the_dependencies_are_exactly_the_locked_ones() -> None:
    locked = re.findall(r"^([\w.-]+)==([\w.+!]+)", (ROOT / "layers/deps/requirements.txt").read_text(), re.M)
    folders = (path.name for path in (BUILD / "DepsLayer/python").glob("*.dist-info"))
    shipped = {tuple(name.removesuffix(".dist-info").split("-")) for name in folders}
    assert shipped == {(name.replace("-", "_").replace(".", "_"), version) for name, version in locked}


def test_the_vocabularies_are_where_the_environment_says() -> None:
    names = {path.name for path in (BUILD / "VocabLayer/vocab").iterdir()}
    assert names == {"o200k_base.tiktoken.gz", "cl100k_base.tiktoken.gz"}


def test_the_streaming_wrapper_can_be_executed() -> None:
    for function in FUNCTIONS:
        assert (BUILD / function / "bastion/streaming-bootstrap").stat().st_mode & 0o555 == 0o555


def test_every_module_has_bytecode_that_is_taken_unchecked_and_names_no_build_path() -> None:
    for part in (*FUNCTIONS, "CoreLayer", "DepsLayer"):
        modules = [path for path in files(BUILD / part) if path.suffix == ".py"]
        assert modules
        for module in modules:
            compiled = module.parent / "__pycache__" / f"{module.stem}.cpython-313.pyc"
            content = compiled.read_bytes()
            assert int.from_bytes(content[4:8], "little") == 0b01, f"{compiled} is not unchecked-hash"
            assert str(ROOT).encode() not in content


def test_the_built_template_has_no_aliases_and_names_the_built_folders() -> None:
    text = (BUILD / "template.yaml").read_text()
    assert not re.findall(r"[:-] [&*]\w+$", text, re.M)
    for part in (*FUNCTIONS, *LAYERS):
        assert re.search(rf"(CodeUri|ContentUri): {part}$", text, re.M)


@pytest.mark.parametrize(
    ("function", "module"), [("ApiFunction", "bastion.buffered"), ("StreamFunction", "bastion.streaming")]
)
def test_it_imports_on_its_own_and_writes_nothing(function: str, module: str) -> None:
    before = {(path, path.stat().st_mtime_ns) for path in files(BUILD)}
    artefact.run_python(function, f"import {module}; from bastion.bootstrap import lambda_app; lambda_app()")
    assert {(path, path.stat().st_mtime_ns) for path in files(BUILD)} == before


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_start_touches_no_network(function: str) -> None:
    code = """
import socket
def refuse(*_, **__):
    raise AssertionError("a connection at import")
socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
from bastion.bootstrap import lambda_app
print(callable(lambda_app()))
"""
    assert artefact.run_python(function, code) == "True\n"


@pytest.mark.parametrize("service", ["dynamodb", "secretsmanager", "ssm", "sts"])
def test_the_services_that_the_layer_kept_can_be_called(service: str) -> None:
    code = f"import boto3, json; print(json.dumps(boto3.client('{service}').meta.endpoint_url))"
    assert json.loads(artefact.run_python("ApiFunction", code)).startswith("https://")


def test_nothing_that_is_slow_to_import_is_on_the_way_to_the_first_answer() -> None:
    code = "import sys, bastion.buffered; print(*sys.modules)"
    modules = set(artefact.run_python("ApiFunction", code).split())
    assert not modules & {"openai", "aws_xray_sdk", "pydantic", "numpy", "requests", "uvicorn", "tkinter"}
