"""Which files to check: from names, folders, glob patterns and ``-`` to a list without repeats, in the order they were named.

A file that is named is always checked. Folders and patterns stand for the workflows and agent files among what they hold:
their files are only candidates here, and the check drops those that are none of ours.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from agentloom.analysis.settings import SettingsFinder, matches_glob

STDIN = "-"
SUFFIXES = (".yaml", ".yml")
SKIPPED_FOLDERS = ("node_modules",)
GLOB_CHARACTERS = "*?["


class Target(NamedTuple):
    """One file to check. ``shown`` is what the user calls it; ``named`` that the user named it and no pattern or folder did.

    The text of standard input is thought of as that of the file ``path``, which may be empty and needn't exist.
    """

    shown: str
    path: str
    named: bool = True
    is_stdin: bool = False


class Collected(NamedTuple):
    """What there is to check, and what of the named can't be: ``(name, reason)``."""

    targets: tuple[Target, ...]
    problems: tuple[tuple[str, str], ...]


def collect(names: Iterable[str], stdin_filename: str | None = None) -> Collected:
    """Return the files that the names stand for; ``stdin_filename`` is what to call standard input."""
    targets: dict[str, Target] = {}
    problems: list[tuple[str, str]] = []
    finder = SettingsFinder()
    for name in names:
        if name == STDIN:
            targets.setdefault(STDIN, Target(stdin_filename or "<stdin>", stdin_filename or "", is_stdin=True))
            continue
        for target in _targets(name, finder, problems):
            key = os.path.normcase(os.path.abspath(target.path))
            known = targets.setdefault(key, target)
            if target.named and not known.named:
                targets[key] = Target(known.shown, known.path)
    return Collected(tuple(targets.values()), tuple(problems))


def _targets(name: str, finder: SettingsFinder, problems: list[tuple[str, str]]) -> Iterator[Target]:
    if os.path.isdir(name):
        yield from _walk(name, finder, problems)
    elif os.path.lexists(name):
        yield Target(name, name)
    elif any(char in name for char in GLOB_CHARACTERS):
        yield from _expand(name, finder, problems)
    else:
        problems.append((name, "no such file or folder"))


def _walk(folder: str, finder: SettingsFinder, problems: list[tuple[str, str]]) -> Iterator[Target]:
    """Yield the candidates below a folder, sorted; hidden folders and those of installed packages are left out."""

    def failed(error: OSError) -> None:
        problems.append((str(error.filename), error.strerror or "cannot be read"))

    for place, folders, files in os.walk(folder, onerror=failed):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in SKIPPED_FOLDERS)
        for name in sorted(files):
            path = os.path.join(place, name)
            if name.lower().endswith(SUFFIXES) or _by_settings(path, finder):
                yield Target(os.path.normpath(path), path, named=False)


def _expand(pattern: str, finder: SettingsFinder, problems: list[tuple[str, str]]) -> Iterator[Target]:
    """Yield the candidates that a pattern matches: for shells that don't expand it, and for patterns in quotes."""
    from glob import glob  # only here

    known = pattern.replace(os.sep, "/").split("/")
    for found in sorted(glob(pattern, recursive=True)):
        parts = found.replace(os.sep, "/").split("/")
        if any(part in SKIPPED_FOLDERS and part not in known for part in parts):
            continue
        if os.path.isdir(found):
            if not pattern.endswith("**"):  # `**` has brought what is below already
                yield from _walk(found, finder, problems)
        else:
            yield Target(os.path.normpath(found), found, named=False)


def _by_settings(path: str, finder: SettingsFinder) -> bool:
    """Tell whether a `workflows` glob of the settings names a file whose suffix is not that of YAML."""
    file = Path(path)
    settings = finder.find(file)
    return bool(settings.workflows) and matches_glob(file, settings)
