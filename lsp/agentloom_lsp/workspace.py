"""Folders, settings and files: everything around the documents that a verdict depends on."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from agentloom.analysis.context import list_on_disk, path_of, read_from_disk
from agentloom.analysis.settings import PROJECT_FILE, SETTINGS_FILE, Settings, SettingsFinder, matches_glob
from agentloom_lsp import uris
from agentloom_lsp.documents import Documents
from agentloom_lsp.own_tools import OwnTools

SUFFIXES = (".yaml", ".yml")
SKIPPED_FOLDERS = ("node_modules",)
SETTINGS_FILES = (SETTINGS_FILE, PROJECT_FILE)


MOST_FOLDERS = 50_000
MOST_FILES = 20_000
"""What is looked at of a workspace, at most."""
DEAR = 0.05
"""Seconds from which on it takes long to look for files."""
REST = 20
"""How many times as long as that they are remembered."""


Stamp = Any
"""Changes when a file changes: the open text itself, else what the disk says of it, None for no file."""


class _Listed(NamedTuple):
    paths: tuple[Path, ...]
    at: float
    cost: float


class Workspace:
    """The client's folders, the settings of each file, and the text of any file: as open in the editor, else from disk.

    Used by both threads; each method reads shared tables once and changes none but its own.
    """

    def __init__(self, documents: Documents, folders: Iterable[str]) -> None:
        self._documents = documents
        self._finder = SettingsFinder()
        self._defaults = Settings()
        self.folders: tuple[str, ...] = tuple(folders)
        self._listed: _Listed | None = None
        self.own_tools = OwnTools()

    def settings(self, path: Path | None) -> Settings:
        """Return the settings that hold for a file; the same object until they are forgotten."""
        return self._finder.find(path) if path is not None else self._defaults

    def forget_settings(self) -> None:
        """Read settings again: one of their files changed, or may have."""
        self._listed = None
        # A new finder, and not an emptied one: a check that is under way goes on with what it began with.
        self._finder = SettingsFinder()

    def known_settings(self) -> tuple[Settings, ...]:
        """Return all settings in use so far."""
        return self._finder.known()

    def read_text(self, path: Path) -> str:
        """Return a file's text. Raises ``OSError`` or ``UnicodeDecodeError`` when it is not open and can't be read."""
        document = self._documents.on_path(path)
        return document.source.text if document is not None else read_from_disk(path)

    def exists(self, path: Path) -> bool:
        """Tell whether there is a file: open in the editor, or on disk."""
        return self._documents.on_path(path) is not None or path.exists()

    def stamp(self, path: Path) -> Stamp:
        """Return what tells one state of a file or folder from the next."""
        document = self._documents.on_path(path)
        if document is not None:
            return document.source
        try:
            found = path.stat()
        except (OSError, ValueError):
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def list_folder(self, folder: Path) -> tuple[str, ...]:
        """Return the names in a folder, sorted: those on disk, and those that are only open in the editor yet."""
        return tuple(sorted({*list_on_disk(folder), *self._documents.names_in(folder)}))

    def uri_of(self, path: Path) -> str:
        """Return a file's URI as the client spells it: that of the open document, else by the folder it lies in."""
        document = self._documents.on_path(path)
        if document is not None:
            return document.uri
        for folder in self.folders:
            found = uris.below(folder, path)
            if found is not None:
                return found
        return uris.from_path(os.path.abspath(path))

    def change_folders(self, added: Iterable[str], removed: Iterable[str]) -> None:
        """Take folders in and let others go."""
        self._listed = None
        gone = {uris.key(uri) for uri in removed}
        kept = [uri for uri in self.folders if uris.key(uri) not in gone]
        known = {uris.key(uri) for uri in kept}
        self.folders = (*kept, *(uri for uri in added if uris.key(uri) not in known))

    @property
    def roots(self) -> tuple[Path, ...]:
        """The client's folders on disk. A name that is no absolute path means none: the server's own folder is nobody's."""
        found = (path_of(folder) for folder in self.folders)
        return tuple(root for root in found if root is not None and root.is_absolute())

    def candidates(self, breathe: Callable[[], None] = lambda: None) -> tuple[Path, ...]:
        """Return the files in the folders that may be ours, each once, sorted per folder; hidden folders are left out.

        Where it takes long to look for them they are remembered for a while, if nothing is said to have changed; a folder that was
        opened by mistake, such as `/`, isn't gone through to its end. ``breathe`` is called between two folders.
        """
        listed = self._listed
        now = time.monotonic()
        if listed is None or listed.cost < DEAR or now - listed.at > REST * listed.cost:
            found = tuple(self._walk(breathe))
            cost = time.monotonic() - now
            listed = self._listed = _Listed(found, now + cost, cost)
        return listed.paths

    def forget_files(self) -> None:
        """Look for files again: some were made or removed."""
        self._listed = None

    def _walk(self, breathe: Callable[[], None]) -> Iterator[Path]:
        seen: set[str] = set()
        visited = 0
        for root in self.roots:
            for place, folders, files in os.walk(root):
                breathe()
                visited += 1
                if visited > MOST_FOLDERS or len(seen) > MOST_FILES:
                    return
                folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in SKIPPED_FOLDERS)
                known = bool(files) and bool(self._finder.find(Path(place, files[0])).workflows)
                for name in sorted(files) if known else sorted(f for f in files if f.lower().endswith(SUFFIXES)):
                    path = Path(place, name)
                    if self.may_be_ours(path) and uris.path_key(path) not in seen:
                        seen.add(uris.path_key(path))
                        yield path

    def may_be_ours(self, path: Path) -> bool:
        """Tell by its name whether a file has to be looked into."""
        if path.name.lower().endswith(SUFFIXES):
            return True
        settings = self._finder.find(path)
        return bool(settings.workflows) and matches_glob(path, settings)
