"""Project settings: ``agentloom.toml`` or ``[tool.agentloom]`` in ``pyproject.toml``; the nearest to the file wins.

The command line and the language server use the same finder, so both see the same settings for the same file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from agentloom.diagnostics import SEVERITY_BY_WORD, Severity
from agentloom.files import Unsuitable, read_bytes
from agentloom.similar import closest

SETTINGS_FILE = "agentloom.toml"
PROJECT_FILE = "pyproject.toml"
KEYS = ("select", "ignore", "severity", "workflows", "tools", "known_state", "providers", "remote", "shared")
# A project that only depends on us has no settings: not worth 4 ms for importing a TOML reader.
_TABLE = rb"(?m)tool[\s\"'.]*agentloom|^\s*\[\s*tool\s*\]"


class Problem(str):
    """A sentence about a settings file: the file's path, a colon, what is wrong.

    ``where`` is the key that it is about, from the settings' own table on; its last part may be a text in that key's value.
    """

    where: tuple[str, ...] = ()


def problem_in(path: Path | None, words: str, *where: str) -> Problem:
    """Return the problem of a settings file."""
    made = Problem(f"{path}: {words}")
    made.where = where
    return made


class Settings(NamedTuple):
    """What a project sets. ``path`` is the file the settings came from; ``problems`` what was wrong in it, in plain words.

    ``remote`` tells that runs are performed on other machines; ``shared`` is the folder that is the same on all of them, if there is one.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    severity: Mapping[str, Severity] = MappingProxyType({})
    workflows: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    known_state: tuple[str, ...] = ()
    providers: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    path: Path | None = None
    problems: tuple[Problem, ...] = ()
    remote: bool = False
    shared: Path | None = None

    @property
    def folder(self) -> Path | None:
        """The folder that the settings' globs are relative to."""
        return self.path.parent if self.path else None


class SettingsFinder:
    """Finds the settings of a file and remembers them per folder, until ``forget`` is called."""

    def __init__(self) -> None:
        self._by_folder: dict[Path, Settings] = {}

    def find(self, path: Path | None) -> Settings:
        """Return the settings that hold for a file (or for nothing on disk: the defaults)."""
        if path is None:
            return Settings()
        folder = path.parent if path.is_absolute() else (Path.cwd() / path).parent
        known = self._by_folder.get(folder)
        if known is None:
            known = self._by_folder[folder] = self._search(folder)
        return known

    def known(self) -> tuple[Settings, ...]:
        """Return the settings of every folder that was asked about so far."""
        return tuple({settings.path: settings for settings in list(self._by_folder.values())}.values())

    def forget(self) -> None:
        """Read everything again when next asked; for when a settings file changed."""
        self._by_folder.clear()

    def _search(self, folder: Path) -> Settings:
        for place in (folder, *folder.parents):
            found = read_settings_file(place / SETTINGS_FILE)
            if found is None:
                found = read_settings_file(place / PROJECT_FILE)
            if found is not None:
                return found
        return Settings()


def find_settings(path: Path | None) -> Settings:
    """Return the settings that hold for a file, read afresh."""
    return SettingsFinder().find(path)


def read_settings_file(path: Path) -> Settings | None:
    """Return the settings in a file; None when there is no such file or it has no table for us."""
    try:
        data = read_bytes(path)
    except Unsuitable as error:
        return Settings(path=path, problems=(problem_in(path, f"this can't be read: {error.strerror}"),))
    except OSError:
        return None
    if path.name == PROJECT_FILE and not re.search(_TABLE, data):
        return None
    import tomllib  # only for projects that have settings

    try:
        table: Any = tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError:
        return Settings(path=path, problems=(problem_in(path, "this is not UTF-8; save it as UTF-8"),))
    except tomllib.TOMLDecodeError as error:
        return Settings(path=path, problems=(problem_in(path, f"this is not valid TOML: {error}"),))
    if path.name == PROJECT_FILE:
        tool = table.get("tool")
        table = tool.get("agentloom") if isinstance(tool, dict) else None
        if table is None:
            return None
    if not isinstance(table, dict):
        return Settings(path=path, problems=(problem_in(path, "`tool.agentloom` must be a table"),))
    return _settings(path, table)


def _settings(path: Path, table: dict[str, Any]) -> Settings:
    problems: list[Problem] = []

    def texts(key: str) -> tuple[str, ...]:
        value = table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            problems.append(problem_in(path, f"`{key}` must be a list of texts", key))
            return ()
        return tuple(value)

    for key in table:
        if key not in KEYS:
            near = closest(key, KEYS)
            cure = f"did you mean `{near}`?" if near else "known are " + ", ".join(f"`{k}`" for k in KEYS)
            problems.append(problem_in(path, f"unknown setting `{key}`; {cure}", key))
    severity: dict[str, Severity] = {}
    wanted = table.get("severity", {})
    if isinstance(wanted, dict):
        for code, word in wanted.items():
            level = SEVERITY_BY_WORD.get(word) if isinstance(word, str) else None
            if level is None:
                words = ", ".join(f"`{w}`" for w in SEVERITY_BY_WORD)
                problems.append(problem_in(path, f"`severity.{code}` must be one of {words}", "severity", code))
            else:
                severity[code] = level
    else:
        problems.append(problem_in(path, "`severity` must be a table of codes", "severity"))
    providers: dict[str, Mapping[str, Any]] = {}
    wanted = table.get("providers", {})
    if not isinstance(wanted, dict):
        problems.append(problem_in(path, "`providers` must be a table of providers", "providers"))
    elif wanted:
        providers = {name: fields for name, fields in wanted.items() if isinstance(fields, dict)}
        problems.extend(_provider_problems(path, wanted))
    remote, shared = table.get("remote", False), table.get("shared")
    if not isinstance(remote, bool):
        problems.append(problem_in(path, "`remote` must be true or false", "remote"))
    if shared is not None and (not isinstance(shared, str) or not shared or "\0" in shared):
        problems.append(problem_in(path, "`shared` must be the path of a folder", "shared"))
        shared = None
    return Settings(
        select=texts("select"),
        ignore=texts("ignore"),
        severity=severity,
        workflows=texts("workflows"),
        tools=texts("tools"),
        known_state=texts("known_state"),
        providers=providers,
        path=path,
        problems=tuple(problems),
        remote=remote is True,
        shared=None if shared is None else path.parent / shared,
    )


def _provider_problems(path: Path, tables: Mapping[str, Any]) -> Iterator[Problem]:
    from agentloom.providers.fields import FIELDS, faults

    for name, fields in tables.items():
        if not isinstance(fields, dict):
            yield problem_in(path, f"`providers.{name}` must be a table", "providers", name)
            continue
        for key in fields:
            if key not in FIELDS:
                yield problem_in(path, f"unknown key `{key}` in `providers.{name}`", "providers", name, key)
        for key, why in faults(name, fields):
            yield problem_in(path, why, *("providers", name, key)[: 3 if key else 2])


def tool_problems(settings: Settings, faults: Iterable[tuple[str, str]]) -> tuple[Problem, ...]:
    """Return the problems of settings that name modules which can't be used; each fault is a module and the reason."""
    return tuple(problem_in(settings.path, why, "tools", module) for module, why in faults)


def matches_glob(path: Path, settings: Settings) -> bool:
    """Tell whether one of the settings' ``workflows`` globs names the file (``**`` crosses folders)."""
    if not settings.workflows or settings.folder is None:
        return False
    try:
        relative = path.resolve().relative_to(settings.folder.resolve()).as_posix()
    except ValueError:
        return False
    return any(_glob(pattern).fullmatch(relative) for pattern in settings.workflows)


def _glob(pattern: str) -> re.Pattern[str]:
    out: list[str] = []
    at = 0
    while at < len(pattern):
        if pattern.startswith("**/", at):
            out.append("(?:.*/)?")
            at += 3
        elif pattern.startswith("**", at):
            out.append(".*")
            at += 2
        elif pattern[at] == "*":
            out.append("[^/]*")
            at += 1
        elif pattern[at] == "?":
            out.append("[^/]")
            at += 1
        else:
            out.append(re.escape(pattern[at]))
            at += 1
    return re.compile("".join(out).removeprefix(re.escape("./")))
