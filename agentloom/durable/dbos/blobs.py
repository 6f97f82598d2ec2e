"""A folder that all machines share, for files that are too large for the database: each is called by the hash of what it holds."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from agentloom.errors import WorkflowError
from agentloom.files import in_plain_words, read_bytes, write_new

_DIGEST = re.compile(r"[0-9a-f]{64}")


def digest_of(data: bytes) -> str:
    """Return the SHA-256 of what a file holds."""
    return hashlib.sha256(data).hexdigest()


def keep_blob(folder: Path, data: bytes) -> None:
    """Keep what a file holds; whoever reads it gets all of it or nothing. Raises ``WorkflowError`` when the folder can't be written."""
    digest = digest_of(data)
    place = _place(folder, digest)
    try:
        if place.exists() and read_bytes(place) == data:
            return
        place.parent.mkdir(exist_ok=True)
        write_new(place, data)
    except OSError as error:
        raise WorkflowError(f"`--blobs {folder}` can't be written: {in_plain_words(error)}") from None


def fetch_blob(folder: Path, digest: str, name: str) -> bytes:
    """Return what is kept under a hash; ``name`` is what messages call it.

    Raises ``WorkflowError`` when it isn't there, or isn't what was kept.
    """
    try:
        data = read_bytes(_place(folder, digest))
    except FileNotFoundError:
        raise WorkflowError(
            f"`{name}` isn't in `--blobs {folder}`; give the folder that the run was asked for with, the same on all machines"
        ) from None
    except OSError as error:
        raise WorkflowError(f"`{name}` can't be read from `--blobs {folder}`: {in_plain_words(error)}") from None
    if digest_of(data) != digest:
        raise WorkflowError(f"`{name}` is damaged in `--blobs {folder}`: it isn't what was kept there")
    return data


def is_digest(text: object) -> bool:
    """Tell whether something is a SHA-256 as it is written here."""
    return isinstance(text, str) and _DIGEST.fullmatch(text) is not None


def _place(folder: Path, digest: str) -> Path:
    return folder / digest[:2] / digest
