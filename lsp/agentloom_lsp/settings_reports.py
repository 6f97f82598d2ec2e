"""What is wrong in settings files, as diagnostics of these files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from agentloom.analysis.context import read_from_disk
from agentloom.analysis.rules.registry import settings_problems
from agentloom.analysis.settings import Problem, Settings, read_settings_file, tool_problems
from agentloom.ide.settings_places import place_of
from agentloom.text import LineTable
from agentloom.tools.learning import Learned
from agentloom_lsp.client import Client
from agentloom_lsp.convert import Places
from agentloom_lsp.reports import SOURCE, Report
from agentloom_lsp.workspace import Workspace

ERROR = 1


class Told(NamedTuple):
    """What is wrong in one settings file, and the settings that say so, with their tools; None when there are none any more."""

    settings: Settings | None
    reports: tuple[Report, ...]
    learned: Learned | None = None


class Found(NamedTuple):
    """The settings files that were looked at, and what is wrong in some of them."""

    seen: frozenset[Path | None]
    told: dict[Path, Told]


def settings_reports(workspace: Workspace, client: Client, before: Mapping[Path, Told]) -> Found:
    """Return the reports of every settings file that holds for a folder or a file that was looked at.

    Files in ``before``, which had some, are there with an empty list when they are as they should be now. For the worker's thread.
    """
    for root in workspace.roots:
        workspace.settings(root / "workflow.yaml")
    for path in before:
        workspace.settings(path)
    found = dict.fromkeys(before, Told(None, ()))
    known_settings = workspace.known_settings()
    for settings in known_settings:
        learned = workspace.own_tools.of(settings)
        problems = (
            *settings_problems(settings),
            *tool_problems(settings, learned.faults if learned is not None else ()),
        )
        if settings.path is None or not problems:
            continue
        known = before.get(settings.path)
        if known is not None and known.settings is settings and known.learned is learned:
            found[settings.path] = known
        elif read_settings_file(settings.path) == settings:
            found[settings.path] = Told(settings, _reports(settings.path, settings, problems, client), learned)
        elif known is not None:
            found[settings.path] = known  # the file has changed since: somebody is about to say so
    return Found(frozenset(settings.path for settings in known_settings), found)


def _reports(path: Path, settings: Settings, problems: Iterable[Problem], client: Client) -> tuple[Report, ...]:
    try:
        text = read_from_disk(path)
    except (OSError, ValueError):
        text = ""
    places = Places(LineTable(text), client.encoding)
    return tuple(
        {
            "range": places.range(place_of(text, settings, problem)),
            "severity": ERROR,
            "source": SOURCE,
            "message": problem.removeprefix(f"{path}: "),
        }
        for problem in problems
    )
