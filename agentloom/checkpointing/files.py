"""Checkpoints in files: one a run, written at once or not at all, readable by their owner alone."""

from __future__ import annotations

import json
import logging
import os
import re
from pathlib import Path

from agentloom.checkpointing.base import BaseCheckpointer, CheckpointData
from agentloom.errors import CheckpointSchemaError
from agentloom.files import no_number, read_bytes, write_new

DEFAULT_FOLDER = Path(".agentloom") / "checkpoints"
ENVIRONMENT = "AGENTLOOM_CHECKPOINT_DIR"
SUFFIX = ".json"

_RUN_ID = re.compile(r"[A-Za-z0-9._-]+")
log = logging.getLogger(__name__)


class FileCheckpointer(BaseCheckpointer):
    """Keeps each run's checkpoint as `<run id>.json` in a folder, which is made when it is needed.

    Whoever can write there decides what a resume runs.
    """

    def __init__(self, folder: str | os.PathLike[str] = DEFAULT_FOLDER) -> None:
        self.folder = Path(folder)

    async def save(self, data: CheckpointData) -> None:
        """Write a checkpoint. Raises ``OSError``; the old file is then as it was."""
        self.folder.mkdir(parents=True, exist_ok=True)
        # Half of a surrogate pair is no UTF-8; as `\udc80` it is JSON that any tool reads.
        text = json.dumps(data.to_dict(), ensure_ascii=False, separators=(",", ":"), default=str)
        # No run goes on from a part, so nothing waits until the disk has it.
        sync = data.part_of is None
        write_new(self.path(data.run_id), text.encode("utf-8", "backslashreplace"), mode=0o600, sync=sync)

    async def load(self, run_id: str) -> CheckpointData:
        """Return a run's checkpoint. Raises ``KeyError`` for an unknown run, ``CheckpointSchemaError`` for a file that is none."""
        return self.read(run_id)

    def read(self, run_id: str) -> CheckpointData:
        """Do what ``load`` does, at once."""
        path = self.path(run_id)
        try:
            data = json.loads(read_bytes(path, ours=True), parse_constant=no_number)
        except FileNotFoundError:
            raise KeyError(run_id) from None
        except IsADirectoryError:
            raise CheckpointSchemaError(f"checkpoint `{path}` can't be read: it is a folder") from None
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise CheckpointSchemaError(
                f"checkpoint `{path}` can't be read: {reason[:1].lower()}{reason[1:]}"
            ) from None
        except (ValueError, RecursionError):
            raise CheckpointSchemaError(f"checkpoint `{path}` can't be read: it is no JSON, or not all of it") from None
        try:
            found = CheckpointData.from_dict(data)
        except CheckpointSchemaError as error:
            raise CheckpointSchemaError(f"checkpoint `{path}` can't be read: {error}") from None
        if found.run_id != run_id:
            raise CheckpointSchemaError(f"checkpoint `{path}` can't be read: it is that of run `{found.run_id}`")
        return found

    async def list_runs(self) -> list[CheckpointData]:
        """Return the checkpoints of the folder, the latest first; a file that can't be read is warned about and left out."""
        found: list[CheckpointData] = []
        for run_id in self.run_ids():
            try:
                found.append(self.read(run_id))
            except CheckpointSchemaError as error:
                log.warning("%s", error)
            except KeyError:
                continue  # gone meanwhile
        return sorted(found, key=lambda data: (data.updated_at, data.run_id), reverse=True)

    async def delete(self, run_id: str) -> None:
        """Remove a run's checkpoint. Raises ``KeyError`` for an unknown run."""
        try:
            self.path(run_id).unlink()
        except FileNotFoundError:
            raise KeyError(run_id) from None

    def run_ids(self) -> list[str]:
        """Return the ids of the runs that have a checkpoint, sorted."""
        try:
            names = sorted(os.listdir(self.folder))
        except FileNotFoundError:
            return []
        return [name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX) and is_run_id(name)]

    def path(self, run_id: str) -> Path:
        """Return where a run's checkpoint is kept. Raises ``KeyError`` for what can't be the id of a run."""
        if not is_run_id(run_id):
            raise KeyError(run_id)
        return self.folder / f"{run_id}{SUFFIX}"


def is_run_id(text: str) -> bool:
    """Tell whether a text may be the id of a run: letters, digits, `.`, `_` and `-`, and no name of a folder."""
    return _RUN_ID.fullmatch(text) is not None and text.strip(".") != ""
