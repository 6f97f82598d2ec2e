"""Where a run lives: what keeps it, and what performs its batches. The engine decides the same whatever that is."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agentloom.checkpointing.base import BaseCheckpointer, CheckpointData
from agentloom.core.events import EventStream
from agentloom.core.keeping.keeper import Keeper, open_keeper
from agentloom.core.limits import Limits
from agentloom.core.local import LocalRunner, Perform
from agentloom.core.results import JSON
from agentloom.core.runner import Halt, Outcome, Runner


class Host:
    """This process, and a journal in a file where checkpoints are in files. Other hosts are subclasses; `tests/runner_contract.py` says what they owe."""

    def open(
        self,
        run_id: str,
        checkpointer: BaseCheckpointer | None,
        seed: CheckpointData | None,
        header: Mapping[str, JSON],
    ) -> Keeper:
        """Return what keeps a run that begins, or goes on from ``seed``; ``header`` is what it begins with, without secrets.

        Raises ``RunIsBusy`` when somebody else runs this run, ``OSError`` when nothing can be written.
        """
        return open_keeper(run_id, checkpointer, seed, header)

    def runner(
        self,
        stream: EventStream,
        perform_one: Perform,
        limit: int,
        recorded: Mapping[str, Outcome],
        may_start: Callable[[], bool],
        keep: Callable[[str, Outcome], None],
        sync: Callable[[], None],
        told: Callable[[str, JSON, JSON], tuple[JSON, JSON]],
    ) -> Runner:
        """Return what performs the batches of one workflow of the run; see ``LocalRunner``."""
        return LocalRunner(stream, perform_one, limit, recorded, may_start, keep, sync, told)


class Guard:
    """Ends a run early: by its limits, or because what happens can't be written down."""

    def __init__(self, limits: Limits, keeper: Keeper) -> None:
        self._limits = limits
        self._keeper = keeper

    def before(self) -> Halt | None:
        """Tell why a step may not start."""
        return Halt.UNKEPT if self._keeper.broken is not None else self._limits.before()

    def after(self) -> Halt | None:
        """Tell why the run has to stop after a step ended."""
        return Halt.UNKEPT if self._keeper.broken is not None else self._limits.after()
