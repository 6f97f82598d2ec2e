"""`agentloom/runs` and `agentloom/run`: what is kept of the runs of a workspace, and of one of them. Without secrets, as it is kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from agentloom.analysis.context import path_of
from agentloom.durable.addresses import without_password
from agentloom_lsp import uris
from agentloom_lsp.runs import arguments
from agentloom_lsp.runs.kept import MOST_READ, KeptRun, latest_first
from agentloom_lsp.runs.places import store_of, stores_of
from agentloom_lsp.runs.run import FOR_VIEWS, RUNNING, Run, trimmed
from agentloom_lsp.session import Session
from agentloom_lsp.worker import SEARCH


async def runs(session: Session, params: Any) -> dict[str, Any]:
    """`agentloom/runs`: the runs of all folders, or of one document, the latest first."""
    asked = as_mapping(params)
    uri, most = uri_of(asked), asked.get("limit")
    limit = most if isinstance(most, int) and not isinstance(most, bool) and most > 0 else MOST_READ
    stores = list(stores_of(path_of(uri), session.workspace.roots) if uri else every_store(session))
    moving = frozenset(run.run_id for run in session.runs.going_on())
    kept, problems = await session.worker.submit(lambda: session.kept_runs.in_folders(stores, limit, moving), SEARCH)
    if (url := session.database) is not None:
        answer = await session.stored_runs.listed(url, session.home)
        kept, problems = (
            latest_first((run for run in answer.runs if run.run_id not in moving), kept),
            [*problems, *answer.problems],
        )
    here = {run.run_id: run for run in session.runs.all()}
    found = [entry(session, run, here.get(run.run_id)) for run in kept]
    known = {run.run_id for run in kept}
    fresh = [of_session(run) for name, run in here.items() if name not in known and run.status in (RUNNING, "refused")]
    every = [*fresh, *found]
    if uri:
        every = [run for run in every if run["uri"] is not None and uris.key(run["uri"]) == uris.key(uri)]
    return {"runs": every[:limit], "problems": problems}


async def run(session: Session, params: Any) -> dict[str, Any] | None:
    """`agentloom/run`: one run with the results of its steps."""
    return await details(session, as_mapping(params))


async def details(
    session: Session, asked: Mapping[str, Any], problems: list[str] | None = None
) -> dict[str, Any] | None:
    """Return all that is known of a run, by its id and, where that is said, the folder that holds it; None for an unknown one.

    ``problems`` is told why files of that id can't be read.
    """
    run_id, folder = arguments.text(asked, "runId"), arguments.text(asked, "folder")
    if run_id is None:
        return None
    here = session.runs.find(run_id)
    if (url := session.database) is not None and (folder is None or "://" in folder):
        try:
            data = await session.stored_runs.details(url, session.home, run_id)
        except KeyError:
            pass
        except ValueError as error:
            if problems is not None:
                problems.append(str(error))
        else:
            return _of_checkpoint(session, _trimmed(data), None, without_password(url), here)
    if folder is not None and "://" in folder:
        folder = None
    stores = (
        [Path(folder)] if folder is not None else [*([here.store] if here is not None else ()), *every_store(session)]
    )
    problem: str | None = None
    for store in dict.fromkeys(stores):
        try:
            data = await session.worker.submit(lambda store=store: _kept(session, store, run_id), SEARCH)  # type: ignore[misc]
        except KeyError:
            continue
        except ValueError as error:
            problem = str(error)
            if problems is not None:
                problems.append(problem)
            continue
        return _of_checkpoint(session, data, store / f"{data['run_id']}.json", str(store), here)
    if here is None:
        return None
    return {**of_session(here), "checkpoint": None, "problem": problem, "output": here.output, **_results(here)}


def _kept(session: Session, store: Path, run_id: str) -> dict[str, Any]:
    return _trimmed(session.kept_runs.details(store, run_id))


def _trimmed(data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **data,
        "state": trimmed(data["state"], FOR_VIEWS),
        "step_results": trimmed(data["step_results"], FOR_VIEWS),
    }


def every_store(session: Session) -> Iterable[Path]:
    """Return every folder that may hold checkpoints of this workspace."""
    found = [store_of(root) for root in session.workspace.roots]
    for _, document in session.documents:
        found += stores_of(path_of(document.uri), session.workspace.roots)
    found += [run.store for run in session.runs.all()]
    return dict.fromkeys(found)


def entry(session: Session, kept: KeptRun, here: Run | None) -> dict[str, Any]:
    """Return the entry of a kept run in the list."""
    error = here.error if here is not None else None
    return {**kept.to_json(), "uri": _uri(session, kept.source, here), "ongoing": False, "error": error}


def of_session(run: Run) -> dict[str, Any]:
    """Return the entry of a run of this session of which nothing is kept yet."""
    path = path_of(run.uri)
    return {
        "runId": run.run_id,
        "workflow": run.title,
        "status": run.status,
        "folder": run.folder,
        "file": str(path) if path is not None else None,
        "uri": run.uri or None,
        "created": None,
        "updated": None,
        "pausedStep": run.waits_at,
        "resumable": False,
        "error": run.error,
        **_moving(run),
        "ongoing": run.status == RUNNING,
    }


def uri_of(asked: Mapping[str, Any]) -> str | None:
    """Return the document that a request is about, if it names one."""
    document = asked.get("textDocument")
    return arguments.text(document, "uri") if isinstance(document, Mapping) else arguments.text(asked, "uri")


def as_mapping(params: Any) -> dict[str, Any]:
    """Return the parameters of a request that the protocol's library doesn't know as plain data."""
    found = _plain(params)
    return found if isinstance(found, dict) else {}


def _plain(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _of_checkpoint(
    session: Session, data: Mapping[str, Any], checkpoint: Path | None, folder: str, here: Run | None
) -> dict[str, Any]:
    ongoing = here is not None and here.status == RUNNING
    steps = data["workflow_definition"].get("steps")
    found = {
        "runId": data["run_id"],
        "workflow": data["workflow_name"],
        "status": data["status"],
        "folder": folder,
        "file": data["source"],
        "uri": _uri(session, data["source"], here),
        "created": data["created_at"],
        "updated": data["updated_at"],
        "costUsd": data["total_cost_usd"],
        "pausedStep": data["paused_step_id"],
        "stepsDone": len(set(data["completed_steps"])),
        "steps": len(steps) if isinstance(steps, list) else 0,
        "ongoing": ongoing,
        "error": here.error if here is not None else None,
        "checkpoint": None if checkpoint is None else str(checkpoint),
        "problem": None,
        "output": here.output if here is not None else "",
        "state": data["state"],
        "results": data["step_results"],
    }
    if here is not None and (ongoing or not data["step_results"]):
        found |= _results(here)
    if ongoing and here is not None:
        found |= _moving(here)
    return found


def _moving(run: Run) -> dict[str, Any]:
    """Return what of a run changes while it goes on."""
    return {
        "status": run.status,
        "ongoing": True,
        "costUsd": run.cost,
        "stepsDone": run.done,
        "steps": run.total,
        "resumable": False,
    }


def _results(run: Run) -> dict[str, Any]:
    """Return what the events told of the steps, in the keys of a checkpoint."""
    results = {
        path: {
            "step_id": path.rpartition(".")[2],
            "status": step.status,
            "output": step.output,
            "error": step.error,
            "duration_ms": step.duration * 1000,
            "cost_usd": step.cost,
            "token_usage": {"total_tokens": step.tokens},
            "model": step.model,
            "provider": step.provider,
            "warnings": list(step.warnings),
        }
        for path, step in run.steps.items()
    }
    return {"results": results, "state": dict(run.state)}


def _uri(session: Session, source: str | None, here: Run | None) -> str | None:
    if here is not None and here.uri:
        return here.uri
    return session.workspace.uri_of(Path(source)) if source is not None else None
