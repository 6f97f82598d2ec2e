"""The history of runs: a small record of each, in a folder of its own, whether or not the run was kept to be resumed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agentloom.checkpointing.files import is_run_id
from agentloom.files import in_plain_words, write_new
from agentloom.records import record

SCHEMA_VERSION = 1
DEFAULT_FOLDER = Path("agentloom_runs")
ENVIRONMENT = "AGENTLOOM_RUNS_DIR"
SUFFIX = ".json"

_TEXTS = ("run_id", "timestamp", "workflow_name", "status")
_NUMBERS = ("total_cost_usd", "total_tokens", "steps_executed", "duration_ms")


@record(repr=True)
class RunRecord:
    """What is remembered of a run. ``timestamp`` is when it began (ISO 8601, UTC); after a resume, when that did.

    ``providers_used`` are `provider/model`; ``steps_executed`` counts the workflow's own steps that weren't skipped. ``steps`` tells of each step, those
    of subworkflows by their path. Times are in milliseconds, costs in US dollars.
    """

    run_id: str
    timestamp: str
    workflow_name: str
    status: str
    workflow_hash: str = ""
    providers_used: tuple[str, ...] = ()
    total_cost_usd: float = 0.0
    total_tokens: int = 0
    steps_executed: int = 0
    duration_ms: float = 0.0
    error: str | None = None
    agentloom_version: str = ""
    python_version: str = ""
    steps: tuple[Mapping[str, Any], ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """Return the record as its file holds it."""
        return {
            "_schema_version": SCHEMA_VERSION,
            "run_id": self.run_id,
            "timestamp": self.timestamp,
            "agentloom_version": self.agentloom_version,
            "python_version": self.python_version,
            "workflow_name": self.workflow_name,
            "workflow_hash": self.workflow_hash,
            "status": self.status,
            "providers_used": list(self.providers_used),
            "total_cost_usd": self.total_cost_usd,
            "total_tokens": self.total_tokens,
            "steps_executed": self.steps_executed,
            "duration_ms": self.duration_ms,
            "error": self.error,
            "steps": [dict(step) for step in self.steps],
        }

    @property
    def began(self) -> datetime:
        """The timestamp as a time."""
        return datetime.fromisoformat(self.timestamp)


def record_of(data: Any) -> RunRecord:
    """Return the record that plain data are. Raises ``ValueError`` that says why they are none."""
    if not isinstance(data, dict) or "_schema_version" not in data:
        raise ValueError("it is no record of a run")
    version = data["_schema_version"]
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ValueError("its `_schema_version` is none")
    if version > SCHEMA_VERSION:
        raise ValueError(
            f"it was written by a newer agentloom (schema {version}, this one reads {SCHEMA_VERSION}); upgrade first"
        )
    for name in _TEXTS:
        if not isinstance(data.get(name), str):
            raise ValueError(f"`{name}` is missing or no text")
    for name in _NUMBERS:
        value = data.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e300:
            raise ValueError(f"`{name}` is no number from 0 up")
    try:
        if datetime.fromisoformat(data["timestamp"]).tzinfo is None:
            raise ValueError
    except ValueError:
        raise ValueError("`timestamp` is no time with a zone") from None
    used, steps, error = data.get("providers_used"), data.get("steps"), data.get("error")
    return RunRecord(
        run_id=data["run_id"],
        timestamp=data["timestamp"],
        workflow_name=data["workflow_name"],
        status=data["status"],
        workflow_hash=str(data.get("workflow_hash") or ""),
        providers_used=tuple(str(name) for name in used) if isinstance(used, list) else (),
        total_cost_usd=float(data.get("total_cost_usd", 0.0)),
        total_tokens=int(data.get("total_tokens", 0)),
        steps_executed=int(data.get("steps_executed", 0)),
        duration_ms=float(data.get("duration_ms", 0.0)),
        error=error if isinstance(error, str) else None,
        agentloom_version=str(data.get("agentloom_version") or ""),
        python_version=str(data.get("python_version") or ""),
        steps=tuple(step for step in steps if isinstance(step, dict)) if isinstance(steps, list) else (),
    )


class History:
    """The records in a folder, which is made when it is needed."""

    def __init__(self, folder: str | os.PathLike[str] = DEFAULT_FOLDER) -> None:
        self.folder = Path(folder)

    def save(self, run: RunRecord) -> None:
        """Write a record in the place of an older one of the same run. Raises ``OSError``."""
        self.folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(run.to_dict(), ensure_ascii=False, indent=2)
        # Nothing hangs on it, so nothing waits until the disk has it.
        path = self.folder / f"{run.run_id}{SUFFIX}"
        write_new(path, text.encode("utf-8", "backslashreplace"), mode=0o600, sync=False)

    def read(self, run_id: str) -> RunRecord | None:
        """Return the record of a run; None without a readable one."""
        if not is_run_id(run_id):
            return None
        try:
            return record_of(json.loads((self.folder / f"{run_id}{SUFFIX}").read_bytes()))
        except (OSError, ValueError, RecursionError):
            return None

    def runs(self) -> tuple[list[RunRecord], list[str]]:
        """Return all records, the newest first, and what is wrong with files that are none. Raises ``OSError`` for the folder itself."""
        found: list[tuple[datetime, RunRecord]] = []
        problems: list[str] = []
        for name in sorted(os.listdir(self.folder)):
            if not name.endswith(SUFFIX) or name.startswith("."):
                continue
            path = os.path.join(self.folder, name)
            try:
                with open(path, "rb", buffering=0) as file:
                    run = record_of(json.loads(file.read()))
            except FileNotFoundError:
                continue  # gone meanwhile
            except OSError as error:
                problems.append(f"`{path}` can't be read: {in_plain_words(error)}")
            except RecursionError:
                problems.append(f"`{path}` can't be read: it is nested too deeply")
            except json.JSONDecodeError:
                problems.append(f"`{path}` can't be read: it is no JSON, or not all of it")
            except UnicodeDecodeError:
                problems.append(f"`{path}` can't be read: it is no UTF-8 text")
            except ValueError as error:
                problems.append(f"`{path}` can't be read: {error}")
            else:
                if run.run_id + SUFFIX == name:
                    found.append((run.began, run))
                else:
                    problems.append(f"`{path}` can't be read: it is the record of run `{run.run_id}`")
        found.sort(key=lambda each: (each[0], each[1].run_id), reverse=True)
        return [run for _, run in found], problems


def history_of(folder: str | None, environ: Mapping[str, str]) -> History:
    """Return the history in a folder; without one, in that of the environment, or the usual one."""
    return History(Path(folder or environ.get(ENVIRONMENT, "").strip() or DEFAULT_FOLDER))


def now() -> str:
    """Return the time in ISO 8601, UTC."""
    return datetime.now(UTC).isoformat()
