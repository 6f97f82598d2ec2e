"""What keeps a run while it goes on: its attempts and outcomes in the journal, and at the end its checkpoint."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any

from agentloom.checkpointing.base import BaseCheckpointer, CheckpointData, now
from agentloom.checkpointing.files import FileCheckpointer, is_run_id
from agentloom.core.events import utc_now
from agentloom.core.keeping.runs import INTERRUPTED, RUNNING, goes_on_from, journal_of, last_update
from agentloom.core.plan import Plan
from agentloom.core.redaction import Redaction
from agentloom.core.results import JSON, StepResult, result_of
from agentloom.core.secrets import places_of, without_secret
from agentloom.durable.journal import Journal, RunIsBusy
from agentloom.durable.recorded import NOTHING, Recorded, Spend, above
from agentloom.errors import CheckpointSchemaError
from agentloom.files import remove_unfinished
from agentloom.records import record

log = logging.getLogger(__name__)
_TEXTS = ("output", "error", "value", "conversation", "prompt_metadata")  # of a step's result: what may quote something


@record()
class Ended:
    """What a workflow has come to, secrets included: what its checkpoint is made of."""

    plan: Plan
    definition: Mapping[str, JSON]
    source: str | None
    state: Mapping[str, JSON]
    results: Mapping[str, StepResult]
    status: str
    spent: Spend
    redaction: Redaction


class Keeper:
    """Keeps one run. Without a ``checkpointer`` it keeps nothing, and only counts attempts.

    ``recorded`` is what the journal of an earlier life holds, ``seed`` its checkpoint. ``clock`` tells the time, in UTC.
    """

    def __init__(
        self,
        run_id: str,
        checkpointer: BaseCheckpointer | None,
        seed: CheckpointData | None = None,
        recorded: Recorded | None = None,
        journal: Journal | None = None,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self.run_id = run_id
        self.clock = clock
        self._checkpointer = checkpointer
        self._seed = seed
        self._journal = journal
        if recorded is None and seed is not None:
            recorded = Recorded.begun({key: getattr(seed, key) for key in ("attempts", "inside", "spent_inside")})
        self._recorded = recorded or Recorded({})
        self._created = seed.created_at if seed is not None else clock().isoformat()
        self._outcomes: dict[str, StepResult] = {}
        self.paused_since: dict[str, str] = dict(seed.paused_since) if seed is not None else {}
        self._cut_short: dict[str, bool] = {}
        self._parents: dict[str, bool] = {}

    @property
    def spent(self) -> Spend:
        """What the run has spent in all its lives."""
        if self._seed is None or self._seed.status in (INTERRUPTED, RUNNING):  # what was kept of that is the journal
            return self._recorded.whole
        return Spend(self._seed.total_cost_usd, self._seed.total_tokens).plus(self._recorded.spent)

    def spent_below(self, path: str) -> Spend:
        """Return what the steps below a subworkflow step have spent in an attempt that an earlier life of the run began, and this one goes on with."""
        return self._recorded.below.get(path, NOTHING)

    @property
    def decisions(self) -> Mapping[str, str]:
        """The decisions about gates that were taken in an earlier life of the run, by path, and that it may not have come to."""
        found = self._recorded.header.get("decisions")
        return found if isinstance(found, dict) else {}

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
        self._recorded.starts(path, number)
        if self._journal is not None:
            self._journal.started(path, number)

    def spent_in(self, path: str, number: int, cost_usd: float, tokens: int) -> None:
        """Note what a call cost, inside an attempt that goes on."""
        spend = Spend(cost_usd, tokens)
        if spend == NOTHING:
            return
        self._recorded.spends(path, spend)
        if self._journal is not None:
            self._journal.spent(path, number, spend)

    def failed(self, path: str, number: int, cost_usd: float, tokens: int) -> None:
        """Note that an attempt failed, and another may follow: a child's begins with its first step."""
        spend = Spend(cost_usd, tokens)
        self._recorded.ends(path, spend)
        self._recorded.forget_below(path)
        if path in self._parents:  # to look through all outcomes at each failure would cost their square
            for name in [name for name in self._outcomes if name.startswith(f"{path}.")]:
                del self._outcomes[name]
        if self._journal is not None:
            self._journal.failed(path, number, spend)

    # --- outcomes

    def keeper_for(self, plan: Plan, redaction: Redaction) -> Callable[[str, StepResult], None]:
        """Return what keeps the outcomes of one workflow's steps, by path."""

        def keep(path: str, outcome: StepResult) -> None:
            own = Spend(outcome.last_cost_usd, outcome.last_tokens)
            self._recorded.ends(path, own, path in self._cut_short or outcome.status in ("paused", "timeout"))
            if outcome.status == "paused":
                self.paused_since.setdefault(path, self.clock().isoformat())
            else:
                self.paused_since.pop(path, None)
            if self._checkpointer is None:
                return
            clean = without_secret(outcome, plan, redaction)
            self._outcomes[path] = clean
            self._parents.update(above(path))
            if self._journal is not None:
                more: dict[str, JSON] = {}
                if path in self.paused_since:
                    more["paused_since"] = self.paused_since[path]
                if path in self._cut_short:
                    more["cut_short"] = True
                self._journal.outcome(path, clean.to_dict(whole=True), own, **more)

        return keep

    def cut_short(self, path: str) -> None:
        """Note that a subworkflow step only failed because the money or the time of a workflow above it was gone: what finished in it is kept."""
        self._cut_short[path] = True

    def sync(self) -> None:
        """Have what was noted written to the disk."""
        if self._journal is not None:
            self._journal.sync()

    # --- the end

    async def save(self, ended: Ended, paused: str | None = None) -> str | None:
        """Write the checkpoint, let the journal go that it holds all of, and return the file, if it is one.

        ``paused`` is the path of the gate at which the run waits.
        """
        if self._checkpointer is None:
            return None
        data = self._data(self.run_id, ended, paused)
        data.attempts = self._recorded.ended_attempts()
        data.inside = self._inside(ended.results)
        data.spent_inside = {
            path: {"cost_usd": spent.cost_usd, "tokens": spent.tokens}
            for path, spent in self._recorded.below.items()
            if self._goes_on(path, ended.results)
        }
        data.paused_since = self.paused_since
        if self._journal is not None and self._journal.is_gone:
            log.warning(
                "The journal '%s' was deleted while the run went on; only the checkpoint is kept", self._journal.path
            )
        await self._checkpointer.save(data)
        if self._journal is not None:
            self._journal.end(ended.status)
            self._journal.close(remove=True)
            self._journal = None
        return str(self._checkpointer.path(self.run_id)) if isinstance(self._checkpointer, FileCheckpointer) else None

    async def save_part(self, path: str, ended: Ended, scrubbed: Callable[[JSON], JSON]) -> None:
        """Write the checkpoint of a child workflow that came to an end of its own, under the run's id and its step's path.

        Only for reading: the run goes on from its own checkpoint, so what goes wrong here is a warning. For the same reason secrets may be
        ``scrubbed`` from it also where they stand under another key, as a parent's `input` hands them down: nobody has to put them back.
        """
        if self._checkpointer is None:
            return
        part_id = f"{self.run_id}.{path}"
        if not is_run_id(part_id) or await self._is_another_run(part_id):
            part_id = f"{self.run_id}.{re.sub('[^A-Za-z0-9._-]', '_', path)}-{sha256(path.encode()).hexdigest()[:8]}"
        paused = next((name for name, result in ended.results.items() if result.status == "paused"), None)
        data = self._data(part_id, ended, paused)
        data.part_of = self.run_id
        data.state = {key: scrubbed(value) for key, value in data.state.items()}
        for result in data.step_results.values():
            result.update({key: scrubbed(result[key]) for key in _TEXTS if key in result})
        try:
            await self._checkpointer.save(data)
        except Exception as error:  # of a store of one's own, too
            log.warning("The checkpoint of step '%s' can't be written: %s", path, error)

    async def _is_another_run(self, run_id: str) -> bool:
        """Tell whether a run of its own has that id, because somebody gave it: its checkpoint isn't ours, nor may one hide its journal."""
        assert self._checkpointer is not None
        if isinstance(self._checkpointer, FileCheckpointer) and journal_of(self._checkpointer, run_id).exists():
            return True
        try:
            return (await self._checkpointer.load(run_id)).part_of is None
        except Exception:  # there is none, or none that can be read
            return False

    def _data(self, run_id: str, ended: Ended, paused: str | None) -> CheckpointData:
        """Return what the checkpoints of a run and of a child have alike, without secrets."""
        plan, redaction = ended.plan, ended.redaction
        return CheckpointData(
            workflow_name=plan.workflow,
            run_id=run_id,
            workflow_definition=dict(ended.definition),
            state=redaction.state(ended.state, places_of(plan, redaction)),
            step_results={
                name: without_secret(result, plan, redaction).to_dict() for name, result in ended.results.items()
            },
            status=ended.status,
            completed_steps=[name for name, result in ended.results.items() if result.status == "success"],
            paused_step_id=paused,
            created_at=self._created,
            updated_at=self.clock().isoformat(),
            total_cost_usd=ended.spent.cost_usd,
            total_tokens=ended.spent.tokens,
            source=ended.source,
        )

    def close(self) -> None:
        """Let go of the journal without a checkpoint: it is what a resume goes on with."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def _inside(self, results: Mapping[str, StepResult]) -> dict[str, dict[str, JSON]]:
        """Return the finished steps of child workflows whose step isn't finished."""
        found: dict[str, dict[str, JSON]] = {}
        outcomes = {
            **self._recorded.outcomes,
            **{path: result.to_dict(whole=True) for path, result in self._outcomes.items()},
        }
        for path, outcome in outcomes.items():
            if "." in path and outcome.get("status") == "success" and self._goes_on(path, results):
                found[path] = outcome
        return found

    def _goes_on(self, path: str, results: Mapping[str, StepResult]) -> bool:
        """Tell whether a resume goes on with what stands at or below the run's own step that a path begins with."""
        top = path.partition(".")[0]
        own = results.get(top)
        return own is None or own.status in ("paused", "timeout") or top in self._cut_short


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
            return self._with_secrets(result_of({**data, "step_id": path.rpartition(".")[2]}))
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
    if seed is not None and seed.status in (INTERRUPTED, RUNNING):
        keeper = _go_on(run_id, checkpointer, seed, header)
        remove_unfinished(checkpointer.folder, f"{run_id}.")
        return keeper
    journal, there = Journal.claim(path)
    # Only who holds the lock can tell: it may be long ago that the checkpoint was read.
    after = last_update(checkpointer, run_id)
    moved_on = seed is not None and after not in ("", seed.updated_at)
    if moved_on or (seed is not None and there is not None and goes_on_from(there, after)):
        journal.close(remove=there is None)
        raise RunIsBusy(f"run `{run_id}` was resumed by another process meanwhile; look at it again")
    journal.begin({"begun": now(), **header, "after": after})
    if seed is not None:
        remove_unfinished(checkpointer.folder, f"{run_id}.")
    return Keeper(run_id, checkpointer, seed, None, journal)


def _go_on(run_id: str, checkpointer: FileCheckpointer, seed: CheckpointData, header: Mapping[str, JSON]) -> Keeper:
    """Return what keeps a run that goes on with the journal that it left when it was killed."""
    gone_on = RunIsBusy(f"run `{run_id}` was resumed by another process meanwhile; look at it again")
    try:
        journal, recorded = Journal.resume(journal_of(checkpointer, run_id))
    except FileNotFoundError:
        raise gone_on from None
    if seed.begun not in (None, recorded.header.get("begun")) or recorded.complete:
        journal.close()
        raise gone_on
    if recorded.is_damaged:
        log.warning(
            "The journal '%s' is damaged after its first %d bytes; what came of steps after that is lost, and they run again",
            journal.path,
            recorded.length,
        )
    changed = {key: header[key] for key in _MAY_CHANGE if header[key] != recorded.header.get(key)}
    if not changed.get("decisions", True):
        del changed["decisions"]  # those that were taken hold
    journal.resumed({"begun": now(), **changed})
    return Keeper(run_id, checkpointer, seed, recorded, journal)


_MAY_CHANGE = ("workflow_definition", "state", "decisions")
"""What of a journal's first line may be different when the run goes on."""
