"""The folder that a run has where it is performed: a place in the shared folder, or one of its own with the files that went along."""

from __future__ import annotations

import base64
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePath, PurePosixPath
from tempfile import mkdtemp
from typing import Any

from agentloom.analysis.context import context_for
from agentloom.analysis.document import WorkflowDocument
from agentloom.analysis.settings import find_settings
from agentloom.core.loader import load_data
from agentloom.durable.dbos.blobs import digest_of, fetch_blob, is_digest
from agentloom.durable.dbos.packing import Ways
from agentloom.errors import AgentLoomError, UsageError, WorkflowError
from agentloom.files import in_plain_words

_NAMELESS = "workflow.loom.yaml"
_MOST_FILES = 10_000


@contextmanager
def document_of(order: Mapping[str, Any], ways: Ways) -> Iterator[WorkflowDocument]:
    """Yield the workflow of an order, checked again, in the folder that it has here; settings and tools are those of this machine.

    They are looked for in the shared folder if the run needs that, else where the worker was started. Raises ``AgentLoomError`` for what can't
    be run here, in words that name the files as they were called where the run was asked for.
    """
    with home_of(order, ways) as home:
        is_shared = order.get("shared") is not None
        settings = find_settings(home if is_shared else Path(home.name).absolute())
        settings = settings._replace(remote=True, shared=ways.shared if is_shared else None)
        try:
            yield load_data(order["definition"], str(home), context_for(settings))
        except AgentLoomError as error:
            source = order["source"] or f"<run {order['run_id']}>"
            told = str(error).replace(str(home), source).replace(str(home.parent), str(PurePath(source).parent))
            raise (UsageError if error.exit_code == UsageError.exit_code else WorkflowError)(told) from None


def kept_document(definition: Mapping[str, Any], source: str) -> WorkflowDocument:
    """Return the workflow of a run that goes on elsewhere, checked again; its files needn't be here. Raises ``AgentLoomError``."""
    context = context_for(find_settings(Path(source) if os.path.isabs(source) else Path(_NAMELESS).absolute()))
    return load_data(definition, source, replace(context, exists=lambda _: True))


@contextmanager
def home_of(order: Mapping[str, Any], ways: Ways) -> Iterator[Path]:
    """Yield what the workflow's file would be called here; relative paths start beside it. What went along is removed afterwards.

    Raises ``WorkflowError`` for folders that this worker doesn't have, and for files that aren't what they were.
    """
    name = PurePosixPath(str(order["source"] or _NAMELESS).replace("\\", "/")).name
    name = name if name.isprintable() and len(name.encode("utf-8", "replace")) < 200 else _NAMELESS
    start = order.get("shared")
    if start is not None:
        yield _start(start, ways.shared) / (name or _NAMELESS)
        return
    folder = Path(mkdtemp(prefix="agentloom-run-"))
    try:
        files = order.get("files") or {}
        if not isinstance(files, Mapping) or len(files) > _MOST_FILES:
            raise WorkflowError("`files` of the order can't be read")
        for path, entry in files.items():
            _write(folder, path, entry, ways.blobs)
        yield folder / (name or _NAMELESS)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _start(start: object, shared: Path | None) -> Path:
    if shared is None:
        raise WorkflowError(
            "the run needs the shared folder; start the workers with `--shared DIR`, the same folder on all machines"
        )
    place = shared / _below(start)
    if not place.is_dir():
        raise WorkflowError(f"`{start}` is no folder in `--shared {shared}`; is that the same folder on all machines?")
    return place


def _write(folder: Path, path: str, entry: object, blobs: Path | None) -> None:
    """Write a file that went along. Raises ``WorkflowError``."""
    place = folder / _below(path)
    if not isinstance(entry, Mapping) or not is_digest(digest := entry.get("sha256")):
        raise WorkflowError(f"file `{path}` of the order can't be read")
    if "data" in entry:
        try:
            data = base64.b64decode(str(entry["data"]), validate=True)
        except ValueError:
            data = b""
        if digest_of(data) != digest:
            raise WorkflowError(f"file `{path}` of the order is damaged: it isn't what the run was asked for with")
    elif blobs is None:
        raise WorkflowError(
            f"`{path}` is in the folder of `--blobs`; start the workers with `--blobs DIR`, the same on all machines"
        )
    else:
        data = fetch_blob(blobs, str(digest), path)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with open(place, "xb") as file:
            file.write(data)
    except (OSError, ValueError) as error:
        raise WorkflowError(f"`{path}` can't be written for the run: {in_plain_words(error)}") from None


def _below(path: object) -> PurePosixPath:
    """Return a path that leads nowhere but down. Raises ``WorkflowError``."""
    text = path if isinstance(path, str) else ""
    found = PurePosixPath(text)
    odd = "\0" in text or (os.name == "nt" and (":" in text or "\\" in text))
    if not text or odd or found.is_absolute() or ".." in found.parts or len(text) > 2000:
        raise WorkflowError(f"`{str(path)[:100]}` is no path that a run may have its files at")
    return found
