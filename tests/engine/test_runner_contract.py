"""The contract of runners, kept by three: files, a memory that dies at every boundary, and one that returns outcomes in any order."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import anyio

from agentloom.checkpointing import BaseCheckpointer, CheckpointData, FileCheckpointer
from agentloom.core.keeping import INTERRUPTED, journal_of, load_run
from agentloom.core.keeping.host import Host
from agentloom.core.keeping.keeper import Keeper
from agentloom.core.local import LocalRunner
from agentloom.core.runner import Op, Outcome, Settle, Verdict
from agentloom.durable.journal import Journal, read_journal
from agentloom.durable.recorded import Recorded
from tests.runner_contract import RUN, Died, House, RunnerContract


class Files(House):
    """The file runner: checkpoints and journals in a folder."""

    def __init__(self, folder: Path, host: Host) -> None:
        self.host = host
        self.files = self.store = FileCheckpointer(folder)

    def left(self) -> CheckpointData | None:
        """Return what `agentloom resume` would go on from."""
        try:
            return load_run(self.files, RUN)
        except KeyError:
            return None

    def recorded(self) -> Recorded:
        """Return what the journal holds."""
        return read_journal(journal_of(self.files, RUN))

    def texts(self) -> str:
        """Return every file of the folder."""
        return "".join(path.read_text(encoding="utf-8") for path in sorted(self.files.folder.iterdir()))


# --- a memory runner


class Lines(Journal):
    """A journal that is a list of lines."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__(Path("nowhere"), -1)
        self.lines = lines

    def _put(self, text: str) -> None:
        self.lines.append(text)

    def sync(self) -> None:
        """A memory has no disk."""

    @property
    def is_gone(self) -> bool:
        """Nobody deletes it."""
        return False

    def close(self, remove: bool = False) -> None:
        """Let the lines go when a checkpoint holds all of them."""
        if remove:
            self.lines.clear()


class Shelf(BaseCheckpointer):
    """Checkpoints as texts."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.all: list[str] = []

    async def save(self, data: CheckpointData) -> None:
        self.texts[data.run_id] = json.dumps(data.to_dict())
        self.all.append(self.texts[data.run_id])

    async def load(self, run_id: str) -> CheckpointData:
        return CheckpointData.from_dict(json.loads(self.texts[run_id]))

    async def list_runs(self) -> list[CheckpointData]:
        return [await self.load(run_id) for run_id in self.texts]

    async def delete(self, run_id: str) -> None:
        del self.texts[run_id]


class MemoryHost(Host):
    """Lines in memory, and runners that die at every boundary: once at each operation, before its outcome is kept or after."""

    def __init__(self, dies: str) -> None:
        self.dies = dies
        self.lines: list[str] = []
        self.died: set[str] = set()

    def recorded(self) -> Recorded:
        """Return what the lines say."""
        first, *rest = map(json.loads, self.lines)
        found = Recorded.begun(first)
        for line in rest:
            found.take(line)
        return found

    def open(
        self, run_id: str, checkpointer: BaseCheckpointer | None, seed: CheckpointData | None, header: Mapping[str, Any]
    ) -> Keeper:
        """Begin the lines, or go on with them."""
        recorded = None
        if seed is not None and seed.status == INTERRUPTED:
            recorded = self.recorded()
            self.lines.append(json.dumps({"kind": "resumed", "workflow_definition": header["workflow_definition"]}))
        else:
            self.lines[:] = [json.dumps({"kind": "run", "version": 1, **header})]
        return Keeper(run_id, checkpointer, seed, recorded, Lines(self.lines))

    def runner(self, *args: Any, **options: Any) -> LocalRunner:
        """Return a runner that performs one operation after the other."""
        return Dying(self, *args, **options)

    def boundary(self, when: str, path: str) -> None:
        """Die here, if it is the first time."""
        if when == self.dies and path not in self.died:
            self.died.add(path)
            raise Died


class Dying(LocalRunner):
    """Performs a batch in the order of the file, and dies at the boundaries."""

    def __init__(self, host: MemoryHost, *args: Any, keep: Callable[[str, Outcome], None], **options: Any) -> None:
        def kept(path: str, outcome: Outcome) -> None:
            host.boundary("before", path)
            keep(path, outcome)
            host.boundary("after", path)

        super().__init__(*args, keep=kept, **options)

    async def _perform(self, ops: Sequence[Op], settle: Settle) -> None:
        todo = look_first(self, ops, settle)
        self._drained = False
        await self._work(iter(todo), settle, None)


def look_first(runner: LocalRunner, ops: Sequence[Op], settle: Settle) -> list[Op]:
    """Settle what is recorded, and return what is left to do."""
    known = {op.path: outcome for op in ops if (outcome := runner.recorded(op.path)) is not None}
    verdicts = [settle(op, known[op.path]) for op in ops if op.path in known]
    goes = all(verdict is Verdict.GO for verdict in verdicts)
    return [op for op in ops if op.path not in known] if goes else []


class Memory(House):
    """The memory runner."""

    def __init__(self, dies: str) -> None:
        self.memory = self.host = MemoryHost(dies)
        self.shelf = self.store = Shelf()

    def left(self) -> CheckpointData | None:
        """Return what the lines hold, else the checkpoint."""
        if self.memory.lines:
            recorded = self.recorded()
            header = {"created_at": "", "updated_at": "", **recorded.header, "schema_version": 1, "status": INTERRUPTED}
            paused = {**header.get("paused_since", {}), **recorded.paused_since}
            return CheckpointData.from_dict({**header, "paused_since": paused})
        if RUN not in self.shelf.texts:
            return None
        return CheckpointData.from_dict(json.loads(self.shelf.texts[RUN]))

    def recorded(self) -> Recorded:
        """Return what the lines say."""
        return self.memory.recorded()

    def texts(self) -> str:
        """Return the lines and all checkpoints."""
        return "\n".join([*self.memory.lines, *self.shelf.all])


# --- a runner without order


class ShuffledHost(Host):
    """Runners that perform a whole batch at once, and return the outcomes in any order."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def runner(self, *args: Any, **options: Any) -> LocalRunner:
        """Return such a runner."""
        return Shuffled(self.random, *args, **options)


class Shuffled(LocalRunner):
    """Starts a batch in any order, and settles when all have ended, in another one."""

    def __init__(self, random: Random, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.random = random

    async def _perform(self, ops: Sequence[Op], settle: Settle) -> None:
        todo = look_first(self, ops, settle)
        self.random.shuffle(todo)
        ended: list[tuple[Op, Outcome]] = []

        async def one(op: Op) -> None:
            if self._may_start():
                ended.append((op, await self._perform_one(op)))

        async with anyio.create_task_group() as group:
            for op in todo:
                group.start_soon(one, op)
        self.random.shuffle(ended)
        for op, outcome in ended:
            self._keep(op.path, outcome)
            verdict = settle(op, outcome)
            await self.emit(self.told_of(op, outcome))
            if verdict is Verdict.STOP:
                return

    def told_of(self, op: Op, outcome: Outcome) -> Any:
        """Return the event that tells of an outcome."""
        from agentloom.core.interpreter import finished

        return finished(op.path, outcome)


class TestFileRunner(RunnerContract):
    """The journal in a file."""

    def house(self, tmp_path: Path, seed: int = 0) -> House:
        """Return a folder."""
        return Files(tmp_path / "kept", Host())


class TestMemoryRunner(RunnerContract):
    """It dies once after every outcome that it has kept."""

    def house(self, tmp_path: Path, seed: int = 0) -> House:
        """Return a memory."""
        return Memory("after")


class TestForgetfulRunner(RunnerContract):
    """It dies once before every outcome: what was done is done again, and the receiver tells."""

    loses_outcomes = True

    def house(self, tmp_path: Path, seed: int = 0) -> House:
        """Return a memory."""
        return Memory("before")


class TestShuffledRunner(RunnerContract):
    """Outcomes in random order, kept in files."""

    def house(self, tmp_path: Path, seed: int = 0) -> House:
        """Return a folder and dice."""
        return Files(tmp_path / "kept", ShuffledHost(seed))
