"""``agentloom resume``: go on with a run from where it stopped."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from agentloom.cli.console import ColorChoice
from agentloom.cli.options import (
    AS_JSON,
    COLOR,
    EVENTS,
    LITE,
    NO_HISTORY,
    ON,
    RECORD_TOOLS,
    STATE,
    STREAM,
    budget_option,
    checkpoint_dir_option,
    model_option,
    place,
    provider_option,
)
from agentloom.cli.run import Overrides, finish, how_to_go_on, one_reader, recorded_world, referred
from agentloom.cli.stores import checkpointer_of, find_run
from agentloom.errors import UsageError, WorkflowError

if TYPE_CHECKING:
    from agentloom.checkpointing.base import CheckpointData

MOST_NAMES = 20
"""How many redacted values a warning names."""


@click.command()
@click.argument("run_id", metavar="RUN")
@checkpoint_dir_option()
@STATE
@provider_option("run")
@model_option("Instead of the run's config.model.")
@budget_option("What the run may spend, with what it has spent.")
@click.option("--approve", is_flag=True, help="Approve the gate at which the run waits.")
@click.option("--reject", is_flag=True, help="Reject it.")
@ON
@LITE
@AS_JSON
@STREAM
@click.option("--record", "recording", metavar="FILE", help="Record the replies, beside those that FILE holds already.")
@RECORD_TOOLS
@NO_HISTORY
@EVENTS
@click.option("--if-updated", metavar="TIME", hidden=True, help="Only if nothing happened to the run since.")
@COLOR
def command(
    run_id: str,
    checkpoint_dir: str | None,
    pairs: tuple[tuple[str, Any], ...],
    provider: str | None,
    model: str | None,
    budget: float | None,
    approve: bool,
    reject: bool,
    on: str | None,
    as_json: bool,
    stream: bool,
    recording: str | None,
    record_tools: bool,
    no_history: bool,
    events: str | None,
    if_updated: str | None,
    color: ColorChoice,
) -> None:
    """Go on with a run: RUN is its id, the beginning of it, or `latest`.

    The checkpoint is what runs, not the file: steps that succeeded keep their results, all others run. Redacted keys come back
    redacted unless --state gives them again.

    Exit codes: as of `run`; 1 also for an unknown run, or a checkpoint that can't be read.
    """
    one_reader(as_json, events)
    if approve and reject:
        raise UsageError("`--approve` and `--reject` contradict each other; give one of them")
    decision = "approved" if approve else "rejected" if reject else None
    world = recorded_world(recording, record_tools)
    where = place(on)
    if where is not None:
        if recording is not None or checkpoint_dir is not None or if_updated is not None:
            option = "--record" if recording else "--checkpoint-dir" if checkpoint_dir is not None else "--if-updated"
            raise UsageError(f"`{option}` doesn't go with `--on`")
        from agentloom.cli.durable import resume_on
        from agentloom.cli.running import output_of

        output = output_of(as_json, events, stream, color)
        result = resume_on(
            where,
            run_id,
            output,
            decision,
            Overrides(provider, model, stream, None, budget).config(),
            lambda state: _state(state, pairs),
            _tell_redacted,
            not no_history,
        )
        finish(result, output, as_json, how_to_go_on(result, None, where), resumed=True)
    store = checkpointer_of(checkpoint_dir)
    data = find_run(store, run_id)
    if data.part_of is not None:
        raise WorkflowError(f"`{data.run_id}` is a part of run `{data.part_of}`; resume that")
    if if_updated is not None and (data.updated_at != if_updated or data.status != "paused"):
        raise WorkflowError(f"run `{data.run_id}` has gone on meanwhile, it is {data.status}")
    if decision is not None and (data.status != "paused" or data.paused_step_id is None):
        option = "--approve" if decision == "approved" else "--reject"
        raise WorkflowError(f"run `{data.run_id}` doesn't wait at a gate, it is {data.status}; leave `{option}` out")
    decisions = {data.paused_step_id: decision} if decision is not None and data.paused_step_id is not None else {}
    from agentloom.cli.chronicle import chronicle_of
    from agentloom.cli.running import output_of, run_to_the_end
    from agentloom.core.keeping import redacted_in
    from agentloom.core.loader import load_data

    changes = Overrides(provider, model, stream, None, budget).config()
    config = data.workflow_definition.get("config") or {}
    if isinstance(config, Mapping):  # anything else is an error that the check tells
        data.workflow_definition["config"] = {**config, **changes}
    own = dict(_state(data.state, pairs))
    try:
        document = load_data(data.workflow_definition, data.source or f"<run {data.run_id}>")
    except UsageError as error:  # no plain data; nobody has typed it
        raise WorkflowError(f"run `{data.run_id}` can't be resumed: {error}") from None
    given = referred(document, own, pairs, resolve=True)
    _tell_redacted(redacted_in(store, data, given), data)
    output = output_of(as_json, events, stream, color)
    chronicle = None if no_history else chronicle_of(document, resumed=True)
    result = run_to_the_end(document, given, output, store, data, decisions, world=world, chronicle=chronicle)
    finish(result, output, as_json, how_to_go_on(result, checkpoint_dir), resumed=True)


def _tell_redacted(names: list[str], data: CheckpointData) -> None:
    """Warn of values that steps are going to read redacted."""
    lost = [name for name in names if name.startswith("steps.")]
    for found, cure in (
        ([name for name in names if name not in lost], "give the value again with `--state`"),
        (lost, "a step without `output` gave it, and it can't be given again"),
    ):
        if found:
            listed = ", ".join(f"`{name}`" for name in found[:MOST_NAMES])
            listed += f" and {len(found) - MOST_NAMES} more" if len(found) > MOST_NAMES else ""
            print(f"warning: {listed} came back redacted; {cure}", file=sys.stderr)
    from agentloom.core.definition import redacted_in_steps

    if written_out := redacted_in_steps(data.workflow_definition, data.completed_steps):
        listed = ", ".join(f"`{name}`" for name in written_out)
        print(
            f"warning: {listed} came back redacted; it is written out in the workflow, and only a new run has it",
            file=sys.stderr,
        )


def _state(state: dict[str, Any], pairs: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    from agentloom.cli.state import initial_state

    whole = initial_state(state, (), pairs)
    return {key: value for key, value in whole.items() if key != "steps"}
