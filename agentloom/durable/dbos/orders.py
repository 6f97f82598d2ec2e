"""What a segment is asked to do, and what it gives back: plain JSON, which any worker understands."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from agentloom.analysis.document import WorkflowDocument
from agentloom.checkpointing.base import CheckpointData
from agentloom.core.definition import definition_of, redacted_in_steps, without_secrets
from agentloom.core.needs import needs_of
from agentloom.core.plan import up_to
from agentloom.core.preparation import prepare
from agentloom.core.references import put, references_in, texts_at, to_json
from agentloom.core.results import JSON
from agentloom.core.secrets import keys_for, redaction_for
from agentloom.core.state import STEPS
from agentloom.durable.journal import VERSION as JOURNAL
from agentloom.language.paths import get

RUN = "agentloom.run"
"""The name of the DBOS workflow that performs a segment."""

LIFE = "agentloom.life"
"""The name of its one operation, which comes again after a death."""

JOURNALS = "agentloom-journal-"
VERSION = f"{JOURNALS}{JOURNAL}"
"""What workers must agree on to go on with each other's segments. The number is that of the journal, and of what stands here: `tests/durable/golden`
holds what every version has written, and says when the number has to be raised. No version is ever used for something else.
"""

QUEUE = "runs"
"""Where workers take segments from."""

HERE = "here"
"""Where a process takes a segment from that it put there for itself."""

NOWHERE = "nowhere"
"""Where nobody takes a segment from: that of a run that was cancelled while it waited."""

WAITS, TIMED, DUE = "waits", "timed", "due"
"""Attributes of a segment that ended waiting: that it did, that one of its gates has a `timeout_seconds`, and when the first of those is over."""


NEEDS = "needs"
"""What a run needs of its worker: in a segment's input and in its attributes; missing when it needs nothing."""

INPUT_VERSION = JOURNAL
"""The version of what the database gets as a segment's input."""


class Order(NamedTuple):
    """A segment to be performed. ``input`` is what the database gets.

    ``secrets`` are the state keys that must not get there; references to variables are none, ``written`` names the places of secrets that are written out elsewhere in the
    workflow; ``document`` is the workflow with all of them.
    """

    input: dict[str, JSON]
    secrets: dict[str, JSON]
    written: list[str]
    document: WorkflowDocument | None


def segment_id(run_id: str, number: int) -> str:
    """Return the id of a run's segment; they count from 1."""
    return f"{run_id}~{number}"


def run_of(segment: str) -> tuple[str, int]:
    """Return the run and the number of a segment. Raises ``ValueError`` for the id of something else."""
    run_id, _, number = segment.rpartition("~")
    return run_id, int(number)


def next_order(data: CheckpointData, decisions: Mapping[str, str]) -> Order:
    """Return the order to go on with a run as its last segment left it. There is no secret in that, and it was checked when it began."""
    given = {key: value for key, value in data.state.items() if key != STEPS}
    return Order(
        _input(data.run_id, data.workflow_definition, data.source, given, None, data, decisions, ()), {}, [], None
    )


def gone_on(order: Order, before: Mapping[str, JSON], segment: str) -> Order:
    """Return an order with what stays as it was in the order ``before``, that of ``segment``: where the files are which went along with that,
    the references to variables, and what the run needs of workers, unless the order has its own.
    """
    names = ("shared", "files_of", *(name for name in ("environment", NEEDS) if name not in order.input))
    kept = {name: before[name] for name in names if before.get(name) is not None}
    if before.get("files"):
        kept["files_of"] = segment
    return order._replace(input={**order.input, **kept}) if kept else order


def order_for(
    document: WorkflowDocument,
    state: Mapping[str, JSON],
    run_id: str,
    until: str | None = None,
    seed: CheckpointData | None = None,
    decisions: Mapping[str, str] | None = None,
    lines: Sequence[str] = (),
) -> Order:
    """Return what a segment is asked to do: run a workflow, or go on with it from ``seed``, or from the ``lines`` of a journal.

    Raises what the engine raises for a workflow that can't be run.
    """
    prepared = prepare(document)
    if until is not None:
        up_to(prepared.plan, until)
    redaction = redaction_for(prepared, os.environ, keys_for(document, os.environ))
    state = {key: value for key, value in state.items() if key != STEPS}
    clean = redaction.state(state, prepared.plan.outputs)
    definition = definition_of(document)
    cleaned = without_secrets(definition, redaction)
    written = [key for key, value in definition.items() if key != "state" and cleaned[key] != value]
    if "steps" in written:
        known = redacted_in_steps(definition, ())
        written = [name for name in redacted_in_steps(cleaned, ()) if name not in known] or written
    needs = needs_of(prepared, document.context.tools, document.context.tools_complete)
    source = seed.source if seed is not None else None if document.path is None else os.path.abspath(document.path)
    clean = put(clean, ((path, text) for path, text in texts_at(state) if not text))  # nothing is no secret
    references = references_in(state, redaction)
    literal = put(state, ((reference.path, get(clean, reference.path)) for reference in references))
    asked = _input(run_id, cleaned, source, clean, until, seed, decisions, lines)
    return Order(
        {
            **asked,
            **({"environment": to_json(references)} if references else {}),
            **({NEEDS: needs.to_dict()} if needs else {}),
        },
        {key: value for key, value in state.items() if clean.get(key) != literal[key]},
        written,
        document,
    )


def _input(
    run_id: str,
    definition: Mapping[str, JSON],
    source: str | None,
    state: Mapping[str, JSON],
    until: str | None,
    seed: CheckpointData | None,
    decisions: Mapping[str, str] | None,
    lines: Sequence[str],
) -> dict[str, JSON]:
    return {
        "version": INPUT_VERSION,
        "run_id": run_id,
        "definition": dict(definition),
        "source": source,
        "state": dict(state),
        "until": until,
        "seed": None if seed is None or lines else seed.to_dict(),
        "decisions": dict(decisions or {}),
        "lines": list(lines),
    }
