"""Vocabulary files: found in a folder, checked, and read. Standard library only, no network.

A file is ``<name>.tiktoken.gz``: lines of a token in base64, a space, and its rank. It is accepted by
the SHA-256 that OpenAI publishes for the uncompressed content (`tiktoken_ext/openai_public.py` of
tiktoken 0.14.0, 2026; the same since the encodings appeared), so it does not matter who carried it here.
"""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from contextshift.errors import ContextShiftError

__all__ = [
    "VOCABULARIES",
    "Vocabulary",
    "VocabularyBroken",
    "VocabularyError",
    "VocabularyMissing",
    "find",
    "load_ranks",
]


class VocabularyError(ContextShiftError):
    """Root of what goes wrong with a vocabulary; a fault of the deployment, never of a request."""

    code = "VOCABULARY_ERROR"


class VocabularyMissing(VocabularyError):
    """Raise when the file of a vocabulary is in none of the folders."""

    code = "VOCABULARY_MISSING"


class VocabularyBroken(VocabularyError):
    """Raise when a file's content is not the published one."""

    code = "VOCABULARY_BROKEN"


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What a vocabulary's file must hold."""

    name: str
    sha256: str
    """Of the uncompressed content, as published by OpenAI."""
    size: int
    """Bytes of the uncompressed content."""

    @property
    def file_name(self) -> str:
        """The name of the file in any folder."""
        return f"{self.name}.tiktoken.gz"


VOCABULARIES = {
    vocabulary.name: vocabulary
    for vocabulary in (
        Vocabulary("o200k_base", "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d", 3_613_922),
        Vocabulary("cl100k_base", "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7", 1_681_126),
    )
}


def find(name: str, folders: Iterable[Path]) -> Path | None:
    """Return the first file of the vocabulary ``name`` in ``folders`` that has the right size, else None.

    Cheap: a gzip file ends with the size of what it holds, so nothing is unpacked.
    """
    vocabulary = VOCABULARIES[name]
    for folder in folders:
        path = folder / vocabulary.file_name
        if _claimed_size(path) == vocabulary.size:
            return path
    return None


def load_ranks(name: str, folders: Iterable[Path]) -> dict[bytes, int]:
    """Return the ranks of a vocabulary by token bytes; about 0.1 s for the larger one.

    Raises `VocabularyMissing` or `VocabularyBroken`, and KeyError for a name that is not in `VOCABULARIES`.
    """
    path = find(name, folders)
    if path is None:
        raise VocabularyMissing(f"no folder holds {VOCABULARIES[name].file_name}")
    fields = _checked_content(path, VOCABULARIES[name]).split()
    return dict(zip(map(a2b_base64, fields[::2]), map(int, fields[1::2]), strict=True))


def _checked_content(path: Path, vocabulary: Vocabulary) -> bytes:
    import gzip  # these three only where a file is read: the fast engine needs none of them
    import hashlib
    import zlib

    try:
        content = gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise VocabularyBroken(f"{path.name} cannot be unpacked") from error
    if hashlib.sha256(content).hexdigest() != vocabulary.sha256:
        raise VocabularyBroken(f"{path.name} has not the published SHA-256")
    return content


def _claimed_size(path: Path) -> int | None:
    try:
        with path.open("rb") as file:
            file.seek(-4, 2)
            return int.from_bytes(file.read(4), "little")
    except OSError:  # not there, not readable, or shorter than a trailer
        return None
