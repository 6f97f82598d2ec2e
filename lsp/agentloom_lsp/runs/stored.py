"""Runs in a database: what the command line tells of them, remembered for a moment, since each question costs a process and a second."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

from agentloom.durable.addresses import SQLITE, without_password
from agentloom_lsp.runs.child import ON, environment
from agentloom_lsp.runs.kept import GOES_ON, MOST_READ, KeptRun
from agentloom_lsp.runs.run import last_line

YOUNG_S = 1.0
"""How old a list may be that the user asks for, in seconds."""
OLD_S = 10.0
"""How old one may be that lenses go by."""
PATIENCE_S = 60.0
"""How long the command line may take to answer, in seconds."""


class Answer(NamedTuple):
    """The runs of a database, the latest first, and why they can't be told. ``at`` is when it was asked, by the clock of this process."""

    runs: list[KeptRun]
    problems: list[str]
    at: float


def database(setting: str, roots: Iterable[Path]) -> str | None:
    """Return the address of the database that runs live in: the setting's, else that of the server's environment; None for files.

    A file's path is one of the first folder.
    """
    url = setting or os.environ.get(ON, "").strip()
    if url.startswith(SQLITE):
        url = f"{SQLITE}{next(iter(roots), Path.cwd()) / url[len(SQLITE) :]}"
    return url or None


class StoredRuns:
    """Asks the command line about runs in databases."""

    def __init__(self) -> None:
        self._known: dict[str, Answer] = {}
        self._asking: dict[str, asyncio.Task[Answer]] = {}

    def known(self, url: str) -> Answer:
        """Return the last list, however old it is."""
        return self._known.get(url, Answer([], [], -OLD_S))

    def is_old(self, url: str) -> bool:
        """Tell whether lenses should have another list, and nobody asks for one."""
        return url not in self._asking and monotonic() - self.known(url).at > OLD_S

    async def listed(self, url: str, folder: Path, oldest_s: float = YOUNG_S) -> Answer:
        """Return a list that is no older than so many seconds."""
        if monotonic() - self.known(url).at <= oldest_s:
            return self.known(url)
        asking = self._asking.get(url)
        if asking is None:
            asking = self._asking[url] = asyncio.ensure_future(self._list(url, folder))
            asking.add_done_callback(lambda _: self._asking.pop(url, None))
        return await asyncio.shield(asking)

    async def details(self, url: str, folder: Path, run_id: str) -> dict[str, Any]:
        """Return all that is kept of a run, without secrets. Raises ``KeyError`` for an unknown one, ``ValueError`` for any other reason."""
        done = await _called(["runs", "show", run_id, "--checkpoint"], url, folder)
        if done.returncode != 0:
            why = last_line(done.stderr)
            raise KeyError(run_id) if why.startswith("there is no run") else ValueError(why)
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    async def cancel(self, url: str, folder: Path, run_id: str) -> bool:
        """Cancel a run wherever it is performed; tell whether it was under way."""
        return (await _called(["cancel", run_id], url, folder)).returncode == 0

    async def _list(self, url: str, folder: Path) -> Answer:
        at = monotonic()
        if not _is_there(url):
            answer = Answer([], [], at)  # the first run makes it
        else:
            done = await _called(["runs", "--brief", "--limit", str(MOST_READ)], url, folder)
            if done.returncode == 0:
                answer = Answer([_kept(row, without_password(url)) for row in json.loads(done.stdout)], [], at)
            else:
                answer = Answer([], [last_line(done.stderr)], at)
        self._known[url] = answer
        return answer


async def _called(arguments: list[str], url: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Call the command line, and return what became of it."""

    def call() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", "-m", "agentloom", *arguments]
        try:
            return subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                encoding="utf-8",
                cwd=folder,
                env={**environment(url), "PYTHONIOENCODING": "utf-8"},
                timeout=PATIENCE_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            why = (
                f"{without_password(url)} doesn't answer"
                if isinstance(error, subprocess.TimeoutExpired)
                else str(error)
            )
            return subprocess.CompletedProcess(command, 1, "", why)

    return await asyncio.get_running_loop().run_in_executor(None, call)


def _is_there(url: str) -> bool:
    return not url.startswith(SQLITE) or os.path.exists(url[len(SQLITE) :])


def _kept(row: dict[str, Any], place: str) -> KeptRun:
    return KeptRun(
        row["run_id"],
        row["workflow_name"],
        row["status"],
        place,
        row["source"],
        row["created_at"],
        row["updated_at"],
        row["total_cost_usd"],
        row["paused_step_id"],
        row["steps_done"],
        row["steps"],
        row["status"] in GOES_ON,
    )
