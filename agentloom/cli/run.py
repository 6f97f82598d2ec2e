"""``agentloom run``: check a workflow, run it, tell what happens and what came of it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import click

from agentloom.analysis.document import WorkflowDocument
from agentloom.analysis.settings import Settings
from agentloom.cli.check import NONE, count_severities, rendered
from agentloom.cli.console import ColorChoice, look_of, print_json
from agentloom.cli.loading import load
from agentloom.cli.options import (
    AS_JSON,
    BLOBS,
    CHECKPOINT,
    COLOR,
    EVENTS,
    LITE,
    NO_HISTORY,
    ON,
    RECORD_TOOLS,
    RUN_ID,
    SHARED,
    STATE,
    STATE_FILE,
    STDIN_FILENAME,
    STREAM,
    UNTIL,
    WORKFLOW,
    budget_option,
    checkpoint_dir_option,
    elsewhere,
    model_option,
    place,
    provider_option,
)
from agentloom.cli.state import initial_state
from agentloom.cli.stores import new_checkpointer
from agentloom.cli.tables import in_words
from agentloom.core.results import WorkflowResult
from agentloom.diagnostics import Severity
from agentloom.errors import UsageError
from agentloom.records import record

if TYPE_CHECKING:
    from agentloom.cli.running import Output
    from agentloom.cli.worlds import World
    from agentloom.durable.dbos.place import Place

DONE, FAILED = 0, 1

EXIT_CODES = {"success": DONE, "paused": DONE}


@record()
class Overrides:
    """What the command line says instead of the file's `config`. ``responses`` is a recording for the provider `mock`."""

    provider: str | None = None
    model: str | None = None
    stream: bool = False
    responses: str | None = None
    budget: float | None = None
    latency_model: str | None = None

    def config(self) -> dict[str, Any]:
        """Return the keys of `config` that change."""
        changed: dict[str, Any] = {}
        if self.provider is not None:
            changed["provider"] = self.provider
        if self.model is not None:
            changed["model"] = self.model
        if self.budget is not None:
            changed["budget_usd"] = self.budget
        if self.stream:
            changed["stream"] = True
        if self.latency_model is not None:
            changed["latency_model"] = self.latency_model
        if self.responses is not None:
            changed["provider"] = "mock"
            changed["responses_file"] = os.path.abspath(self.responses)
        return changed


@click.command()
@WORKFLOW
@STATE
@STATE_FILE
@provider_option()
@model_option()
@budget_option("What the run may spend, instead of config.budget_usd.")
@LITE
@AS_JSON
@STREAM
@click.option(
    "--mock-responses",
    type=click.Path(exists=True, dir_okay=False),
    help="Take replies from a recording, offline.",
)
@click.option(
    "--record", "recording", metavar="FILE", help="Record the replies of the providers, for `agentloom replay`."
)
@RECORD_TOOLS
@CHECKPOINT
@checkpoint_dir_option("Where checkpoints are kept: .agentloom/checkpoints, or $AGENTLOOM_CHECKPOINT_DIR.")
@RUN_ID
@UNTIL
@ON
@SHARED
@BLOBS
@click.option("--detach", is_flag=True, help="Leave the run to the workers of --on, and don't wait for it.")
@NO_HISTORY
@EVENTS
@STDIN_FILENAME
@COLOR
def command(
    file: str,
    pairs: tuple[tuple[str, Any], ...],
    state_files: tuple[str, ...],
    provider: str | None,
    model: str | None,
    budget: float | None,
    as_json: bool,
    stream: bool,
    mock_responses: str | None,
    recording: str | None,
    record_tools: bool,
    checkpoint: bool,
    checkpoint_dir: str | None,
    run_id: str | None,
    until: str | None,
    on: str | None,
    shared: str | None,
    blobs: str | None,
    detach: bool,
    no_history: bool,
    events: str | None,
    stdin_filename: str | None,
    color: ColorChoice,
) -> None:
    """Check a workflow and run it. FILE may be `-` for standard input.

    Exit codes: 0 success; 1 failed, out of time, over budget, or the file is refused; 2 wrong usage; 130 interrupted.
    """
    if mock_responses is not None and provider not in (None, "mock"):
        raise UsageError(f"`--mock-responses` and `--provider {provider}` contradict each other; give one of them")
    if recording is not None and mock_responses is not None:
        raise UsageError(
            "`--mock-responses` and `--record` contradict each other: replies from a recording need no recording"
        )
    world = recorded_world(recording, record_tools)
    if checkpoint_dir is not None and not checkpoint:
        raise UsageError("`--checkpoint-dir` goes with `--checkpoint`")
    one_reader(as_json, events)
    where = place(on)
    if where is not None and (checkpoint or recording is not None):
        option = "--checkpoint" if checkpoint else "--record"
        cure = "every run is kept there" if checkpoint else "record a run without it"
        raise UsageError(f"`{option}` doesn't go with `--on`; {cure}")
    if detach and where is None:
        raise UsageError("`--detach` goes with `--on`, which says where the run is left")
    document = checked(file, stdin_filename, color, lambda settings: elsewhere(settings, where, shared))
    overrides = Overrides(provider, model, stream, mock_responses, budget)
    state = initial_state(document.head.data.get("state") or {}, state_files, pairs)
    from agentloom.cli.chronicle import chronicle_of
    from agentloom.cli.running import output_of, run_to_the_end  # needs an event loop

    output = output_of(as_json, events, stream, color)
    kept = new_checkpointer(checkpoint_dir, run_id) if checkpoint else None
    changed = overridden(document, overrides)
    chronicle = None if no_history else chronicle_of(changed)
    state = referred(changed, state, pairs, resolve=where is None)
    if where is not None:
        from agentloom.cli.durable import run_on, ways_of

        shared = shared or (str(given) if (given := document.context.settings.shared) is not None else None)
        told = None if detach else chronicle
        ended = run_on(where, changed, state, output, run_id, until, told, detach, ways_of(shared, blobs))
        if ended is None:
            raise click.exceptions.Exit(DONE)
        result = ended
    else:
        result = run_to_the_end(
            changed, state, output, kept, run_id=run_id, until=until, world=world, chronicle=chronicle
        )
    more = how_to_go_on(result, checkpoint_dir, where) if checkpoint or where is not None else ()
    finish(result, output, as_json, more)


def referred(
    document: WorkflowDocument, state: dict[str, Any], pairs: Iterable[tuple[str, Any]], resolve: bool
) -> dict[str, Any]:
    """Return a state with the variables of this process where secret keys refer to them as `env:NAME`, unless somebody else is to ``resolve`` them.

    Warns of such texts under keys that aren't secret. Raises ``UsageError`` for a variable that isn't there.
    """
    if not any(isinstance(value, str) and value.startswith("env:") for value in texts_in(state)):
        return state
    from agentloom.core.preparation import prepare
    from agentloom.core.references import references_in, with_variables
    from agentloom.core.secrets import redaction_for

    redaction = redaction_for(prepare(document), os.environ)
    known = {reference.place for reference in references_in(state, redaction)}
    for key, value in pairs:
        if isinstance(value, str) and key not in known and re.fullmatch(r"env:[A-Z_][A-Z0-9_]*", value):
            print(
                f"warning: `{key}` isn't marked secret, so `{value}` stays a text; mark it with `redact: true` in `state_schema`",
                file=sys.stderr,
            )
    return with_variables(state, redaction, os.environ) if resolve else state


def texts_in(value: Any) -> Iterator[str]:
    """Yield every text in plain data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from texts_in(item)


def one_reader(as_json: bool, events: str | None) -> None:
    """Raise ``UsageError`` where two would write to standard output."""
    if as_json and events == "-":
        raise UsageError("`--json` and `--events -` both want standard output; write the events to a file")


def finish(
    result: WorkflowResult, output: Output, as_json: bool, more: Iterable[str] = (), resumed: bool = False
) -> NoReturn:
    """Tell what came of a run, and ``more`` for people, and end with its exit code."""
    if as_json:
        print_json(result.to_dict())
    else:
        output.summarise(result, resumed=resumed)
        for line in more:
            print(line, file=output.told)
    raise click.exceptions.Exit(EXIT_CODES.get(result.status, FAILED))


def recorded_world(recording: str | None, tools: bool) -> World | None:
    """Return what records a run, if that is asked for. Raises ``UsageError`` for options that make no sense together."""
    if recording is None:
        if tools:
            raise UsageError("`--record-tools` goes with `--record`, which names the file")
        return None
    if not recording.strip():
        raise UsageError("`--record` is empty; give the name of a JSON file")
    from agentloom.cli.worlds import RecordedWorld  # needs an event loop

    return RecordedWorld(recording, tools=tools)


def how_to_go_on(result: WorkflowResult, checkpoint_dir: str | None, on: Place | None = None) -> Iterator[str]:
    """Yield the commands that decide about the gate at which a run waits."""
    if result.status != "paused":
        return
    where = f" --checkpoint-dir {checkpoint_dir}" if checkpoint_dir is not None else ""
    if on is not None:
        where = f" --on {on.name}"
    gate = next((name for name, step in result.step_results.items() if step.status == "paused"), "")
    yield f"It waits at `{gate}`. Decide with one of:"
    for option in ("--approve", "--reject"):
        yield f"  agentloom resume {result.run_id} {option}{where}"


def checked(
    file: str,
    stdin_filename: str | None,
    color: ColorChoice,
    changed: Callable[[Settings], Settings] = lambda settings: settings._replace(remote=False),
) -> WorkflowDocument:
    """Return the document of a file that may run; its findings go to standard error. ``changed`` returns other settings to check it by.

    Raises ``WorkflowError`` when it can't be read, ``Exit`` when it has errors.
    """
    shown, document = load(file, stdin_filename, "workflow", changed)
    findings = [found for found in document.diagnostics if found.severity <= Severity.WARNING]
    if findings:
        for line in rendered(findings, shown, document, look_of(sys.stderr, color)):
            print(line, file=sys.stderr)
    if not document.ok:
        errors = count_severities(findings)[0]
        print(f"{shown}: {in_words((errors, *NONE[1:]))}; nothing was run", file=sys.stderr)
        raise click.exceptions.Exit(FAILED)
    return document


def overridden(document: WorkflowDocument, overrides: Overrides) -> WorkflowDocument:
    """Return the document with other values in its `config`, as if they stood in the file; places stay those of the file."""
    changed = overrides.config()
    if not changed:
        return document
    data: Mapping[str, Any] = document.head.data
    config = {**(data.get("config") or {}), **changed}
    return replace(document, head=replace(document.head, data={**data, "config": config}))
