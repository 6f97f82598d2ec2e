"""What a run leaves behind while it goes on and when it ends: its journal, and its checkpoint."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from agentloom.checkpointing.base import BaseCheckpointer, CheckpointData, now
from agentloom.checkpointing.files import FileCheckpointer, is_run_id
from agentloom.core.plan import Plan
from agentloom.core.redaction import Redaction
from agentloom.core.results import JSON, StepResult, result_of
from agentloom.core.secrets import without_secret
from agentloom.durable.journal import SUFFIX, Journal, Recorded, RunIsBusy, above, is_running, read_journal
from agentloom.errors import CheckpointSchemaError
from agentloom.files import in_plain_words

log = logging.getLogger(__name__)

INTERRUPTED = "interrupted"
"""The status of a run whose process ended without a checkpoint."""


class Keeper:
    """Keeps one run. Without a ``checkpointer`` it keeps nothing, and only counts attempts.

    ``recorded`` is what the journal of an earlier life holds, ``seed`` its checkpoint.
    """

    def __init__(
        self,
        run_id: str,
        checkpointer: BaseCheckpointer | None,
        seed: CheckpointData | None = None,
        recorded: Recorded | None = None,
        journal: Journal | None = None,
    ) -> None:
        self.run_id = run_id
        self._checkpointer = checkpointer
        self._seed = seed
        self._journal = journal
        self._recorded = recorded or Recorded({})
        if seed is not None:
            self._recorded.attempts = {**seed.attempts, **self._recorded.attempts}
            self._recorded.outcomes = {**seed.inside, **self._recorded.outcomes}
            for path in seed.inside:
                self._recorded.parents.update(above(path))
        self._created = seed.created_at if seed is not None else now()
        self._outcomes: dict[str, StepResult] = {}
        self.paused_since: dict[str, str] = dict(seed.paused_since) if seed is not None else {}
        self._cut_short: dict[str, bool] = {}
        self._parents: dict[str, bool] = {}

    @property
    def spent(self) -> float:
        """What earlier lives of the run have spent, in US dollars."""
        return self._recorded.spent + (self._seed.total_cost_usd if self._seed is not None else 0.0)

    @property
    def broken(self) -> OSError | None:
        """Why the journal can't be written any more."""
        return self._journal.broken if self._journal is not None else None

    def outcomes(self, with_secrets: Callable[[StepResult], StepResult]) -> Mapping[str, StepResult]:
        """Return the outcomes that the journal holds, by path: those that needn't come again, with what is known again of their secrets."""
        return _Outcomes(self._recorded, with_secrets)

    # --- the attempt log

    def next_attempt(self, path: str) -> int:
        """Return the number of an operation's next attempt."""
        return self._recorded.next_attempt(path)

    def started(self, path: str, number: int) -> None:
        """Note that an attempt begins."""
        self._recorded.attempts[path], self._recorded.open[path] = number, True
        if self._journal is not None:
            self._journal.started(path, number)

    def failed(self, path: str, number: int, cost_usd: float, tokens: int) -> None:
        """Note that an attempt failed, and another may follow: a child's begins with its first step."""
        self._recorded.open[path] = False
        self._recorded.forget_below(path)
        if path in self._parents:  # to look through all outcomes at each failure would cost their square
            for name in [name for name in self._outcomes if name.startswith(f"{path}.")]:
                del self._outcomes[name]
        if self._journal is not None:
            self._journal.failed(path, number, cost_usd, tokens)

    # --- outcomes

    def keeper_for(self, plan: Plan, redaction: Redaction) -> Callable[[str, StepResult], None]:
        """Return what keeps the outcomes of one workflow's steps, by path."""

        def keep(path: str, outcome: StepResult) -> None:
            self._recorded.open[path] = False
            if outcome.status == "paused":
                self.paused_since.setdefault(path, now())
            else:
                self.paused_since.pop(path, None)
            if self._checkpointer is None:
                return
            clean = without_secret(outcome, plan.outputs, redaction)
            self._outcomes[path] = clean
            self._parents.update(above(path))
            if self._journal is not None:
                more: dict[str, JSON] = {}
                if path in self.paused_since:
                    more["paused_since"] = self.paused_since[path]
                if path in self._cut_short:
                    more["cut_short"] = True
                self._journal.outcome(path, clean.to_dict(), outcome.last_cost_usd, **more)

        return keep

    def cut_short(self, path: str) -> None:
        """Note that a subworkflow step only failed because the money or the time of a workflow above it was gone: what finished in it is kept."""
        self._cut_short[path] = True

    def sync(self) -> None:
        """Have what was noted written to the disk."""
        if self._journal is not None:
            self._journal.sync()

    # --- the end

    async def save(
        self,
        *,
        plan: Plan,
        definition: Mapping[str, JSON],
        source: str | None,
        state: Mapping[str, JSON],
        results: Mapping[str, StepResult],
        status: str,
        spent: float,
        redaction: Redaction,
        paused: str | None = None,
    ) -> None:
        """Write the checkpoint, and let the journal go that it holds all of."""
        if self._checkpointer is None:
            return
        data = self._data(self.run_id, plan, definition, source, state, results, status, spent, redaction, paused)
        data.attempts = self._recorded.ended_attempts()
        data.inside = self._inside(results)
        data.paused_since = self.paused_since
        await self._checkpointer.save(data)
        if self._journal is not None:
            self._journal.end(status)
            self._journal.close(remove=True)
            self._journal = None

    async def save_part(
        self,
        path: str,
        *,
        plan: Plan,
        definition: Mapping[str, JSON],
        source: str | None,
        state: Mapping[str, JSON],
        results: Mapping[str, StepResult],
        status: str,
        spent: float,
        redaction: Redaction,
    ) -> None:
        """Write the checkpoint of a child workflow that came to an end of its own, under the run's id and its step's path.

        Only for reading: the run goes on from its own checkpoint, so what goes wrong here is a warning.
        """
        if self._checkpointer is None:
            return
        part_id = f"{self.run_id}.{path}"
        if not is_run_id(part_id):
            part_id = f"{self.run_id}.{re.sub('[^A-Za-z0-9._-]', '_', path)}-{sha256(path.encode()).hexdigest()[:8]}"
        paused = next((name for name, result in results.items() if result.status == "paused"), None)
        data = self._data(part_id, plan, definition, source, state, results, status, spent, redaction, paused)
        data.part_of = self.run_id
        try:
            await self._checkpointer.save(data)
        except Exception as error:  # of a store of one's own, too
            log.warning("The checkpoint of step '%s' can't be written: %s", path, error)

    def _data(
        self,
        run_id: str,
        plan: Plan,
        definition: Mapping[str, JSON],
        source: str | None,
        state: Mapping[str, JSON],
        results: Mapping[str, StepResult],
        status: str,
        spent: float,
        redaction: Redaction,
        paused: str | None,
    ) -> CheckpointData:
        """Return what the checkpoints of a run and of a child have alike, without secrets."""
        return CheckpointData(
            workflow_name=plan.workflow,
            run_id=run_id,
            workflow_definition=dict(definition),
            state=redaction.state(state, plan.outputs),
            step_results={
                name: without_secret(result, plan.outputs, redaction).to_dict() for name, result in results.items()
            },
            status=status,
            completed_steps=[name for name, result in results.items() if result.status == "success"],
            paused_step_id=paused,
            created_at=self._created,
            updated_at=now(),
            total_cost_usd=spent,
            source=source,
        )

    def close(self) -> None:
        """Let go of the journal without a checkpoint: it is what a resume goes on with."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def _inside(self, results: Mapping[str, StepResult]) -> dict[str, dict[str, JSON]]:
        """Return the finished steps of child workflows whose step isn't finished."""
        found: dict[str, dict[str, JSON]] = {}
        outcomes = {**self._recorded.outcomes, **{path: result.to_dict() for path, result in self._outcomes.items()}}
        for path, outcome in outcomes.items():
            top, _, below = path.partition(".")
            own = results.get(top)
            goes_on = own is None or own.status in ("paused", "timeout") or top in self._cut_short
            if below and outcome.get("status") == "success" and goes_on:
                found[path] = outcome
        return found


def kept_of(seed: CheckpointData | None) -> dict[str, StepResult]:
    """Return the results that a checkpoint's state holds already: of the steps that succeeded.

    Raises ``CheckpointSchemaError`` for results that are none.
    """
    if seed is None:
        return {}
    try:
        found = {name: result_of({**data, "step_id": name}) for name, data in seed.step_results.items()}
    except ValueError as error:
        raise CheckpointSchemaError(f"the checkpoint of run `{seed.run_id}` can't be used: {error}") from None
    return {name: result for name, result in found.items() if result.status == "success"}


class _Outcomes(dict[str, StepResult]):
    """The outcomes of an earlier life that needn't come again; read anew each time, since a failed child forgets its own."""

    def __init__(self, recorded: Recorded, with_secrets: Callable[[StepResult], StepResult]) -> None:
        super().__init__()
        self._from = recorded
        self._with_secrets = with_secrets

    def get(self, path: str, default: Any = None) -> Any:
        """Return the outcome at a path, if the step succeeded."""
        data = self._from.outcomes.get(path)
        if data is None or data.get("status") != "success":
            return default
        try:
            return self._with_secrets(result_of({"step_id": path.rpartition(".")[2], **data}))
        except ValueError:
            return default  # no result that we wrote; the step runs again


def open_keeper(
    run_id: str,
    checkpointer: BaseCheckpointer | None,
    seed: CheckpointData | None,
    header: Mapping[str, JSON],
) -> Keeper:
    """Return what keeps a run; with checkpoints in files, also its journal, locked for this process.

    Raises ``RunIsBusy`` when another process runs this run, ``OSError`` when the journal can't be written.
    """
    if not isinstance(checkpointer, FileCheckpointer):
        return Keeper(run_id, checkpointer, seed)
    checkpointer.folder.mkdir(parents=True, exist_ok=True)
    path = journal_of(checkpointer, run_id)
    if seed is not None and seed.status == INTERRUPTED:
        journal, recorded = Journal.resume(path)
        return Keeper(run_id, checkpointer, seed, recorded, journal)
    journal = Journal.create(path, {"begun": now(), **header, "after": _last_update(checkpointer, run_id)})
    if seed is not None and _last_update(checkpointer, run_id) not in ("", seed.updated_at):
        journal.close(remove=True)
        raise RunIsBusy(f"run `{run_id}` was resumed by another process meanwhile")
    return Keeper(run_id, checkpointer, seed, None, journal)


def _last_update(checkpointer: FileCheckpointer, run_id: str) -> str:
    """Return when the checkpoint of a run was written, as it says; nothing without one."""
    try:
        return checkpointer.read(run_id).updated_at
    except (KeyError, CheckpointSchemaError):
        return ""


def _is_later(recorded: Recorded, saved: CheckpointData) -> bool:
    """Tell whether a journal goes on from a checkpoint; otherwise that was written after it. No clock decides: those may be put back."""
    after = recorded.header.get("after")
    if recorded.complete:
        return False
    return after == saved.updated_at if isinstance(after, str) else str(recorded.header.get("begun")) > saved.updated_at


def _written(path: Path, begun: str) -> str:
    """Return when a journal was last written to, in ISO 8601, UTC."""
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat()
    except OSError:
        return begun


def load_run(checkpointer: FileCheckpointer, run_id: str) -> CheckpointData:
    """Return what a run goes on from: its checkpoint, or what the journal holds of a run that was killed later than that.

    Raises ``KeyError`` for an unknown run, ``CheckpointSchemaError`` for files that can't be read.
    """
    try:
        saved: CheckpointData | None = checkpointer.read(run_id)
    except KeyError:
        saved = None
    path = journal_of(checkpointer, run_id)
    try:
        recorded = read_journal(path)
    except (FileNotFoundError, CheckpointSchemaError):
        return saved or checkpointer.read(run_id)  # a run that has just ended left one meanwhile
    except OSError as error:
        raise CheckpointSchemaError(f"journal `{path}` can't be read: {in_plain_words(error)}") from None
    header = recorded.header
    if saved is not None and not _is_later(recorded, saved):
        return saved
    running = is_running(path)
    if not running and not path.exists():
        return checkpointer.read(run_id)
    done = [path for path, result in recorded.outcomes.items() if "." not in path and result.get("status") == "success"]
    return CheckpointData.from_dict(
        {
            **header,
            "run_id": run_id,
            "status": "running" if running else INTERRUPTED,
            "updated_at": _written(path, str(header.get("begun", ""))),
            "completed_steps": [*(header.get("completed_steps") or ()), *done],
            "paused_since": {**(header.get("paused_since") or {}), **recorded.paused_since},
            "schema_version": 1,
        }
    )


def paused_run(checkpointer: FileCheckpointer, run_id: str) -> CheckpointData | None:
    """Return the checkpoint of a run if it waits at a gate and nobody has gone on with it; takes no lock.

    Raises ``KeyError`` for an unknown run, ``CheckpointSchemaError`` for a file that can't be read.
    """
    saved = checkpointer.read(run_id)
    if saved.status != "paused" or saved.paused_step_id is None or saved.part_of is not None:
        return None
    try:
        recorded = read_journal(journal_of(checkpointer, run_id))
    except FileNotFoundError:
        return saved
    except CheckpointSchemaError:
        return None  # its first line is just being written
    return None if _is_later(recorded, saved) else saved


def journal_of(checkpointer: FileCheckpointer, run_id: str) -> Path:
    """Return where a run's journal is kept."""
    return checkpointer.path(run_id).with_suffix(SUFFIX)
