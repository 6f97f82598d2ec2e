"""Where runs happen: the working folder of a document's runs, and the folders that may hold checkpoints of it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from agentloom_lsp import uris
from agentloom_lsp.runs.kept import ENVIRONMENT, FOLDER


def working_folder(path: Path | None, roots: Iterable[Path]) -> Path:
    """Return where a document's runs work: the workspace folder around it, else its own folder; without a file, the first folder."""
    every = list(roots)
    if path is None:
        here = Path.cwd()
        return every[0] if every else here if os.access(here, os.W_OK) else Path.home()
    around = [root for root in every if _is_below(path, root)]
    return max(around, key=lambda root: len(root.parts)) if around else path.parent


def store_of(folder: Path) -> Path:
    """Return the folder of checkpoints of runs with this working folder, as the command line chooses it."""
    return folder / (os.environ.get(ENVIRONMENT, "").strip() or FOLDER)


def stores_of(path: Path | None, roots: Iterable[Path]) -> Iterator[Path]:
    """Yield the folders that may hold checkpoints of a file: where the editor keeps them, and where a terminal may have."""
    yield store_of(working_folder(path, roots))
    if path is not None:
        yield store_of(path.parent)


def home_of(store: Path, roots: Iterable[Path]) -> Path:
    """Return the working folder of a run by the folder that holds its checkpoint."""
    if store.parts[-len(FOLDER.parts) :] == FOLDER.parts:
        return store.parents[len(FOLDER.parts) - 1]
    return next(iter(roots), store.parent)


def _is_below(path: Path, root: Path) -> bool:
    inside, whole = uris.path_key(root).rstrip("/") + "/", uris.path_key(path)
    return whole.startswith(inside)
