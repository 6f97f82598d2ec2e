"""``agentloom replay``: repeat a recorded run, offline and word for word."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from agentloom.analysis.document import WorkflowDocument
from agentloom.analysis.recordings import default_recording, recording_places
from agentloom.cli.console import ColorChoice
from agentloom.cli.options import (
    AS_JSON,
    CHECKPOINT,
    COLOR,
    EVENTS,
    LITE,
    RUN_ID,
    STATE,
    STATE_FILE,
    STDIN_FILENAME,
    STREAM,
    UNTIL,
    WORKFLOW,
    checkpoint_dir_option,
    model_option,
    recording_option,
)
from agentloom.cli.run import Overrides, checked, finish, how_to_go_on, one_reader, overridden
from agentloom.cli.state import initial_state
from agentloom.cli.stores import new_checkpointer
from agentloom.errors import UsageError, WorkflowError

LATENCIES = ("constant", "normal", "replay")


@click.command()
@WORKFLOW
@recording_option("What answers")
@STATE
@STATE_FILE
@model_option("As the run was recorded with it.")
@click.option("--allow-default-fallback", is_flag=True, help="Let a placeholder answer what isn't recorded.")
@click.option("--latency-model", type=click.Choice(LATENCIES), help="How long replies take: `replay` as recorded.")
@LITE
@AS_JSON
@STREAM
@CHECKPOINT
@checkpoint_dir_option()
@RUN_ID
@UNTIL
@EVENTS
@click.option("--observability", is_flag=True, hidden=True, help="Accepted; traces go by the environment.")
@STDIN_FILENAME
@COLOR
def command(
    file: str,
    recording: str | None,
    pairs: tuple[tuple[str, Any], ...],
    state_files: tuple[str, ...],
    model: str | None,
    allow_default_fallback: bool,
    latency_model: str | None,
    as_json: bool,
    stream: bool,
    checkpoint: bool,
    checkpoint_dir: str | None,
    run_id: str | None,
    until: str | None,
    events: str | None,
    observability: bool,
    stdin_filename: str | None,
    color: ColorChoice,
) -> None:
    """Repeat a recorded run: the same replies at the same cost, without asking any provider.

    A step that the recording doesn't answer, or that asks something else than was recorded, fails and says why.

    Exit codes: as of `run`; 1 also for a recording that can't be replayed.
    """
    if checkpoint_dir is not None and not checkpoint:
        raise UsageError("`--checkpoint-dir` goes with `--checkpoint`")
    one_reader(as_json, events)
    document = checked(file, stdin_filename, color)
    state = initial_state(document.head.data.get("state") or {}, state_files, pairs)
    path = recording_for(document, recording)
    from agentloom.cli.running import output_of, run_to_the_end  # needs an event loop
    from agentloom.cli.worlds import ReplayedWorld

    world = ReplayedWorld(path, strict=not allow_default_fallback)
    overrides = Overrides(None, model, stream, os.fspath(path), None, latency_model)
    output = output_of(as_json, events, stream, color)
    kept = new_checkpointer(checkpoint_dir, run_id) if checkpoint else None
    result = run_to_the_end(
        overridden(document, overrides), state, output, kept, run_id=run_id, until=until, world=world
    )
    finish(result, output, as_json, how_to_go_on(result, checkpoint_dir) if checkpoint else ())


def recording_for(document: WorkflowDocument, named: str | None) -> Path:
    """Return the recording that is meant. Raises ``WorkflowError`` when none is named and none is found."""
    if named is not None:
        if not named.strip():
            raise UsageError("`--recording` is empty; give the name of a JSON file")
        return Path(named)
    found = default_recording(document)
    if found is None:
        places = " and ".join(f"`{_shown(place)}`" for place in recording_places(document)) or "no file"
        raise WorkflowError(f"there is no recording: looked for {places}; name one with `--recording`")
    return found


def _shown(path: Path) -> str:
    relative = os.path.relpath(path)
    return relative if not relative.startswith("..") else str(path)
