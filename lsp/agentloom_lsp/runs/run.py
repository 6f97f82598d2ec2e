"""One run that goes on now, or has ended: what its events tell, folded into what there is to show."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from agentloom.durable.addresses import without_password
from agentloom.ide.last_run import LastRun, StepRun, below

ENDED = ("success", "failed", "timeout", "budget_exceeded", "paused", "cancelled", "interrupted", "refused")
SKIPPED = "skipped"
RUNNING = "running"


class Run:
    """What is known of a run. ``status`` is `running` until it has ended; ``cost`` in US dollars, ``duration`` in seconds.

    ``key`` and ``uri`` name the document that it is of, ``store`` the folder of its checkpoint, ``on`` the address of the database that it
    lives in, if any. ``texts`` are those of the document's
    steps as it began, by path; ``files`` the keys of the files below it, by what the paths of their steps begin with. ``asked`` is what
    it was started with, so that it can be started again with the mock.
    """

    def __init__(
        self,
        run_id: str,
        uri: str,
        key: str,
        title: str,
        store: Path,
        texts: Mapping[str, str],
        asked: Mapping[str, Any],
        files: Mapping[str, str] | None = None,
        on: str | None = None,
    ) -> None:
        self.run_id = run_id
        self.uri = uri
        self.key = key
        self.title = title
        self.store = store
        self.on = on
        self.asked = asked
        self.files = files or {}
        self.status = RUNNING
        self.error: str | None = None
        self.total = 0
        self.cost = 0.0
        self.duration = 0.0
        self.steps: dict[str, StepRun] = {}
        self.state: Mapping[str, Any] = {}
        self.cancelled = False
        self.began = False
        self.output = ""
        self._texts = texts

    @property
    def folder(self) -> str:
        """What holds it: a folder, or the address of a database, without a password."""
        return str(self.store) if self.on is None else without_password(self.on)

    @property
    def done(self) -> int:
        """How many steps of the workflow itself have ended."""
        return sum("." not in path and step.status != RUNNING for path, step in self.steps.items())

    @property
    def at(self) -> str:
        """The steps that go on now, in a word or two."""
        running = [path for path, step in self.steps.items() if step.status == RUNNING]
        return running[-1] if running else ""

    @property
    def last(self) -> LastRun:
        """The run as what is shown in its document."""
        return LastRun(self.run_id, self.status, dict(self.steps), self.state)

    def last_of(self, key: str) -> LastRun | None:
        """Return the run as what is shown in one of its documents; None for a document that it isn't of, or didn't reach."""
        if key == self.key:
            return self.last
        for prefix, file in self.files.items():
            if file == key and (found := below(self.last, prefix)).steps:
                return found
        return None

    @property
    def waits_at(self) -> str | None:
        """The gate at which it waits."""
        paused = [path for path, step in self.steps.items() if step.status == "paused"]
        return paused[-1] if self.status == "paused" and paused else None

    def take(self, line: bytes) -> Mapping[str, Any] | None:
        """Take a line of the events' stream; return the event, None for what is none."""
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            return None
        if not isinstance(event, dict) or not isinstance(event.get("event"), str):
            return None
        kind, path = event["event"], event.get("step")
        if kind == "run_started":
            self.began = True
            self.total = _number(event.get("steps"), int)
        elif kind == "run_finished":
            status = event.get("status")
            self.status = status if status in ENDED else "failed"
            self.error = _text(event.get("error"))
            self.cost = _number(event.get("total_cost_usd"), float)
            self.duration = _number(event.get("duration_ms"), float) / 1000
        elif isinstance(path, str):
            self._step(kind, path, event)
        return event

    def end(self, code: int, complaints: str) -> None:
        """The process has ended. What it didn't tell itself is read off its exit code and its last words."""
        if self.status == RUNNING:
            words = last_line(complaints)
            if self.cancelled or code in (130, -15):
                self.status = "cancelled"
            elif code < 0 or self.began:
                self.status = "interrupted"
                self.error = _ended_by(code)
                if words and code >= 0:
                    self.error += f": {words}"
            else:
                self.status = "refused"
                self.error = words or f"the process ended with exit code {code}"
        for path, step in self.steps.items():
            if step.status == RUNNING:
                self.steps[path] = step._replace(status="interrupted" if self.status == "interrupted" else "cancelled")

    def keep(self, kept: Mapping[str, Any]) -> None:
        """Remember what the state held at the end, and what steps gave back, as it was kept: without secrets."""
        self.state = trimmed(kept["state"])
        for path, result in kept["step_results"].items():
            if path in self.steps:
                self.steps[path] = self.steps[path]._replace(output=trimmed(result.get("output")))

    def _step(self, kind: str, path: str, event: Mapping[str, Any]) -> None:
        text = self._texts.get(path, "")
        if kind == "step_started":
            self.steps[path] = StepRun(path, RUNNING, text)
        elif kind == "step_skipped":
            self.steps[path] = StepRun(path, SKIPPED, text, error=_text(event.get("error")))
        elif kind == "step_finished":
            before = self.steps.get(path)
            cost = _number(event.get("cost_usd"), float)
            if "." not in path:
                self.cost += cost - (before.cost if before is not None else 0.0)
            warnings = event.get("warnings")
            self.steps[path] = StepRun(
                path,
                str(event.get("status")),
                text,
                _number(event.get("duration_ms"), float) / 1000,
                cost,
                _number(event.get("tokens"), int),
                _text(event.get("error")),
                trimmed(event.get("output")),
                _text(event.get("model")),
                _text(event.get("provider")),
                tuple(map(str, warnings)) if isinstance(warnings, list) else (),
            )


class Most(NamedTuple):
    """How much is taken of a value: characters of each text, items of each list or mapping, levels."""

    characters: int
    items: int
    levels: int


FOR_HOVERS = Most(4096, 200, 8)
"""Only the beginning is ever shown."""
FOR_VIEWS = Most(100_000, 100_000, 100)
"""What an editor can still open; all of it is in the checkpoint."""


def trimmed(value: Any, most: Most = FOR_HOVERS, depth: int = 0) -> Any:
    """Return a value without most of what makes it large."""
    if isinstance(value, str):
        return value if len(value) <= most.characters else f"{value[: most.characters]}…"
    if isinstance(value, Mapping):
        if depth >= most.levels:
            return "…"
        return {key: trimmed(item, most, depth + 1) for key, item in list(value.items())[: most.items]}
    if isinstance(value, list):
        return [trimmed(item, most, depth + 1) for item in value[: most.items]] if depth < most.levels else ["…"]
    return value


def last_line(text: str) -> str:
    """Return the last line in which something stands, without the word that marks an error."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return re.sub(r"^(?:error: )+", "", lines[-1], flags=re.IGNORECASE) if lines else ""


def _ended_by(code: int) -> str:
    if code >= 0:
        return f"the process ended with exit code {code} in the middle of the run"
    import signal

    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"the process was ended by {name}"


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: Any, kind: Any) -> Any:
    return kind(value) if isinstance(value, int | float) and not isinstance(value, bool) else kind(0)
