"""Add a `retry` block to a step, with what holds by default written out."""

from __future__ import annotations

import json
from collections.abc import Iterator

from agentloom.analysis import edits
from agentloom.analysis.document import Step, WorkflowDocument
from agentloom.analysis.edits.places import column_of, end_of, keeps_blank_lines, line_end
from agentloom.analysis.effort import NEVER_RETRIED, default_retries
from agentloom.diagnostics import Edit
from agentloom.ide.refactor.checked import after
from agentloom.ide.results import Changes, Refusal, TextEdits
from agentloom.model.catalogue import Block, catalogue
from agentloom.syntax.nodes import Mapping
from agentloom.text import Span, newline_of

FIELD = "retry"


def can_be_retried(document: WorkflowDocument, step: Step) -> bool:
    """Tell whether a `retry` block would say something new: there is none, and the step may fail in a way that passes."""
    facts = step.facts
    if step.alias is not None or facts.block is None or FIELD not in facts.block.fields or FIELD in facts.fields:
        return False
    return (
        facts.block.tag not in NEVER_RETRIED and isinstance(facts.node, Mapping) and default_retries(document)[0] != 0
    )


def add_retry(document: WorkflowDocument, owner: WorkflowDocument, step: Step) -> Changes:
    """Return the edits that add the block; ``owner`` is the document itself, or that of a workflow in place that holds the step.

    Raises ``Refusal`` when the result would have a fault, such as waits that can't fit, and when the step's end can't be told.
    """
    made = tuple(edit._replace(span=edit.span.shift(step.base)) for edit in _edits(owner, step))
    if not made:
        raise Refusal("the step isn't complete, so there is no place for the block yet")
    after(document, made)
    return (TextEdits(document.source, made),)


def _edits(document: WorkflowDocument, step: Step) -> tuple[Edit, ...]:
    node, text, block = step.facts.node, step.facts.unit.text, step.facts.block
    assert isinstance(node, Mapping)
    assert block is not None
    shape = block.fields[FIELD].shape
    described = catalogue().blocks[shape.block or FIELD]
    values = dict(_defaults(described, default_retries(document)[0]))
    if node.flow:
        return edits.add_entry(text, node, FIELD, "{" + ", ".join(f"{k}: {v}" for k, v in values.items()) + "}")
    last = next((entry for entry in reversed(node.entries) if not keeps_blank_lines(entry.value)), None)
    if last is None:
        return ()
    at = line_end(text, max(end_of(last.value, last.key), last.key.span.end))
    break_ = newline_of(text, at)
    column = column_of(text, node.entries[0].key.span.start)
    lines = [" " * column + f"{FIELD}:", *(" " * (column + 2) + f"{key}: {value}" for key, value in values.items())]
    return (Edit(Span(at, at), "".join(break_ + line for line in lines)),)


def _defaults(block: Block, retries: int) -> Iterator[tuple[str, str]]:
    for name, field in block.fields.items():
        value = field.default if field.default is not None else retries
        yield name, json.dumps(value)
