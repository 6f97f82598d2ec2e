"""``agentloom record --stale``: which replies of a recording fit no longer, and only those anew."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentloom.cli.cells import draw, visible
from agentloom.cli.console import ColorChoice, Look, is_terminal, look_of, print_json
from agentloom.cli.options import (
    COLOR,
    LITE,
    STATE,
    STATE_FILE,
    STDIN_FILENAME,
    WORKFLOW,
    budget_option,
    model_option,
    provider_option,
    recording_option,
)
from agentloom.cli.replay import recording_for
from agentloom.cli.run import EXIT_CODES, FAILED, Overrides, checked, overridden
from agentloom.cli.state import initial_state
from agentloom.cli.tables import count
from agentloom.errors import UsageError

if TYPE_CHECKING:
    from agentloom.cli.stale import StaleStep
    from agentloom.core.results import WorkflowResult

SHOWN = ("stale", "missing", "recorded", "unused", "unverified")


@click.command()
@WORKFLOW
@click.option("--stale", is_flag=True, help="Record those steps anew whose replies fit no longer (needed).")
@click.option("--list", "only_list", is_flag=True, help="Only say which they are; no provider is asked.")
@recording_option("The recording")
@STATE
@STATE_FILE
@provider_option()
@model_option()
@budget_option("What the run may cost, recorded replies included.")
@LITE
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON, and nothing else.")
@STDIN_FILENAME
@COLOR
def command(
    file: str,
    stale: bool,
    only_list: bool,
    recording: str | None,
    pairs: tuple[tuple[str, Any], ...],
    state_files: tuple[str, ...],
    provider: str | None,
    model: str | None,
    budget: float | None,
    as_json: bool,
    stdin_filename: str | None,
    color: ColorChoice,
) -> None:
    """Bring a recording up to date with its workflow: --stale records those steps anew that ask something else by now.

    The workflow is run with what is recorded; what it asks otherwise goes to the providers, and every other reply stays as it is, byte
    for byte. With --list nothing is asked: each step goes on with what is recorded.

    Exit codes: with --list 0 when every step is answered, 1 when some are stale or missing; else as of `run`.
    """
    if not stale:
        raise UsageError(
            "`record` needs `--stale`; a whole run is recorded with `agentloom run FILE --record RECORDING`"
        )
    if only_list and provider is not None:
        raise UsageError("`--list` asks no provider; leave `--provider` out")
    document = checked(file, stdin_filename, color)
    state = initial_state(document.head.data.get("state") or {}, state_files, pairs)
    path = recording_for(document, recording)
    from agentloom.cli.running import Output, run_to_the_end  # needs an event loop
    from agentloom.cli.stale import RenewedWorld, SurveyedWorld

    changed = overridden(document, Overrides(provider, model, False, None, budget))
    output = Output(sys.stderr, look_of(sys.stderr, color), False, live=is_terminal(sys.stderr), events=None)
    if only_list:
        surveyed = SurveyedWorld(path)
        result = run_to_the_end(changed, state, output, world=surveyed)
        steps = surveyed.steps()
        code = FAILED if any(step.status in ("stale", "missing") for step in steps) else 0
    else:
        from agentloom.cli.chronicle import chronicle_of

        if changed.view.config.provider == "mock":
            raise UsageError("the provider is `mock`, which has nothing new to say; name a real one with `--provider`")
        renewed = RenewedWorld(path)
        result = run_to_the_end(changed, state, output, world=renewed, chronicle=chronicle_of(changed))
        steps = renewed.steps()
        code = EXIT_CODES.get(result.status, FAILED)
    if as_json:
        print_json(_report(path, steps, result))
    else:
        for line in _lines(path, steps, result, only_list, look_of(sys.stdout, color)):
            print(line)
    raise click.exceptions.Exit(code)


def _report(path: Path, steps: list[StaleStep], result: WorkflowResult) -> dict[str, Any]:
    statuses = [step.status for step in steps]
    return {
        "version": 1,
        "recording": os.fspath(path),
        "steps": [step._asdict() for step in steps],
        "summary": {name: statuses.count(name) for name in ("fresh", *SHOWN)},
        "run": {"run_id": result.run_id, "status": result.status, "error": result.error},
    }


def _lines(path: Path, steps: list[StaleStep], result: WorkflowResult, only_list: bool, look: Look) -> Iterator[str]:
    told = [step for step in steps if step.status != "fresh"]
    edge = max((draw(visible(step.step, look.encoding), look.encoding).width for step in told), default=0)
    for step in told:
        name = visible(step.step, look.encoding)
        pad = " " * (edge - draw(name, look.encoding).width)
        yield f"{step.status:10}  {name}{pad}  {visible(step.why or '', look.encoding)}".rstrip()
    asked = [step for step in steps if step.status != "unused"]
    wrong = [step for step in asked if step.status in ("stale", "missing")]
    done = [step for step in asked if step.status == "recorded"]
    where = visible(os.fspath(path), look.encoding)
    if done:
        yield f"{where}: {count(len(done), 'step')} recorded anew, {len(asked) - len(done) - len(wrong)} kept"
    elif wrong:
        verb, they_are = ("is", "it is") if len(wrong) == 1 else ("are", "they are")
        cure = f"; without `--list` {they_are} recorded anew" if only_list else ""
        yield f"{where}: {len(wrong)} of {count(len(asked), 'step')} {verb} not answered{cure}"
    else:
        yield f"{where}: {count(len(asked), 'step')}, every one answered"
    if result.status != "success":
        yield f"the run ended {result.status}{': ' + visible(result.error, look.encoding) if result.error else ''}"
