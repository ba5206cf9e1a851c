"""Bring the tokenizer vocabularies, once, from a locked package: ``python layers/vocab/fetch.py``.

OpenAI publishes the SHA-256 of each vocabulary in `tiktoken_ext/openai_public.py` (tiktoken 0.14.0,
read in November 2026). The hash makes the carrier a matter of convenience: we take them out of
the llama-index-core wheel, which ships both as data, so that only the package index is needed. The
files are written gzipped, the same bytes each time (with one zlib), and nothing happens where both are there already.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import os
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
LOCK = HERE / "requirements.lock"
CARRIER = "llama_index/core/_static/tiktoken_cache/"

SHA256 = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}
"""Of the uncompressed files, as OpenAI publishes them."""

MEMBERS = {
    "o200k_base": CARRIER + "fb374d419588a4632f3f557e76b4b70aebbca790",
    "cl100k_base": CARRIER + "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
}
"""Where the wheel keeps them: under the names of tiktoken's own cache."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Fetch what is missing; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has pip")
    parser.add_argument("--target", type=Path, default=HERE, help="the folder to write to")
    options = parser.parse_args(arguments)
    missing = [name for name in SHA256 if not is_there(options.target, name)]
    if missing:
        with tempfile.TemporaryDirectory() as folder:
            unpack(download(options.python, Path(folder)), missing, options.target)
        sys.stdout.write(f"vocabularies written: {', '.join(missing)}\n")
    return 0


def path_of(target: Path, name: str) -> Path:
    """Return the file of a vocabulary."""
    return target / f"{name}.tiktoken.gz"


def is_there(target: Path, name: str) -> bool:
    """Whether the file stands in ``target`` with the published content."""
    try:
        content = gzip.decompress(path_of(target, name).read_bytes())
    except (OSError, EOFError, ValueError, zlib.error):  # absent, cut short, damaged, or no gzip at all
        return False
    return matches(name, content)


def matches(name: str, content: bytes) -> bool:
    """Whether ``content`` has the published hash."""
    return hashlib.sha256(content).hexdigest() == SHA256[name]


def download(python: str, folder: Path) -> Path:
    """Let pip fetch the locked wheel, by the user's own configuration, and return its path."""
    command = [python, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes"]
    subprocess.run([*command, "--dest", str(folder), "--requirement", str(LOCK)], check=True)
    return next(folder.glob("*.whl"))


def unpack(wheel: Path, names: Sequence[str], target: Path) -> None:
    """Write the named vocabularies from ``wheel``; raise ValueError if a content has not the published hash."""
    with zipfile.ZipFile(wheel) as archive:
        for name in names:
            content = archive.read(MEMBERS[name])
            if not matches(name, content):
                raise ValueError(f"{name} in {wheel.name} has not the published SHA-256")
            write(path_of(target, name), compress(content))


def compress(content: bytes) -> bytes:
    """Return ``content`` gzipped, with neither time nor name in it."""
    buffer = io.BytesIO()
    with gzip.GzipFile("", mode="wb", fileobj=buffer, compresslevel=9, mtime=0) as file:
        file.write(content)
    return buffer.getvalue()


def write(path: Path, content: bytes) -> None:
    """Replace the file in one step: two of us at once, or an interrupt, leave a whole file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".gz")
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    os.chmod(name, 0o644)
    os.replace(name, path)


if __name__ == "__main__":
    sys.exit(main())
