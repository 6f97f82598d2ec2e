"""What must stand in a file before a rule is worth loading: most files are small, and have nothing to do with most rules.

A gate only looks at what costs next to nothing. It may let a rule run in vain; it never keeps one away that would find something.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from typing import Any, TypeAlias

from agentloom.analysis.document import Facts, WorkflowDocument

Gate: TypeAlias = Callable[[Any], bool]

SMALL = 200
"""Steps of a file whose reads are looked at by hand; for larger ones loading the data flow costs less."""

_FLOW = "agentloom.analysis.dataflow.flow"
_SIGNS = ("sk-", "AKIA", "ghp_", "github_pat_", "glpat-", "xox", "AIza", "hf_", "eyJ", "PRIVATE KEY-----", "Bearer ")
_SECRETIVE = ("pass", "secret", "key", "token", "credential")


def has(*names: str) -> Gate:
    """Return a gate for documents: one of these fields stands in the head, in a step, or (as `config.x`) in `config`."""
    wanted = frozenset(names)
    return lambda document: not wanted.isdisjoint(_names(document))


def holds(*names: str) -> Gate:
    """Return a gate for facts: one of these fields is there."""
    wanted = frozenset(names)
    return lambda facts: not wanted.isdisjoint(facts.fields)


def _names(document: WorkflowDocument) -> Collection[str]:
    kept: set[str] | None = document.__dict__.get("_field_names")
    if kept is None:
        kept = document.__dict__["_field_names"] = set(document.head.fields)
        config = document.head.data.get("config")
        if isinstance(config, dict):
            kept.update(f"config.{name}" for name in config)
        for step in document.steps:
            kept.update(step.facts.fields)
    return kept


def is_remote(document: WorkflowDocument) -> bool:
    """Tell whether runs are performed on other machines."""
    return document.context.settings.remote


def may_hold_secrets(facts: Facts) -> bool:
    """Tell whether something in a step's text begins as keys and tokens do."""
    text, fields = facts.unit.text, facts.fields
    spans = [facts.node.span]
    if "steps" in fields:  # a head: its steps speak for themselves
        spans = [located.value.span for name, located in fields.items() if name != "steps"]
    return any(sign in text[span.start : span.end] for span in spans for sign in _SIGNS)


def may_need_redaction(document: WorkflowDocument) -> bool:
    """Tell whether a key of `state` may be called like a secret."""
    state = document.head.data.get("state")
    return isinstance(state, dict) and any(word in str(key).casefold() for key in state for word in _SECRETIVE)


def may_miss(document: WorkflowDocument) -> bool:
    """Tell whether a read may find nothing. False only where each one is plainly of a key of `state`, or written upstream."""
    if document.inline:
        return False  # the file's own document speaks for it
    if _FLOW in sys.modules or len(document.steps) > SMALL:
        return True
    data = document.head.data
    config, state = data.get("config"), data.get("state")
    state = state if isinstance(state, dict) else {}
    if "agents" in data or (isinstance(config, dict) and config.get("on_step_failure") == "continue"):
        return any(step.facts.reads or step.type == "agent" for step in document.steps)
    writers: dict[Any, list[str]] = {}
    for step in document.steps:
        if step.type == "subworkflow" or step.id is None or document.by_id[step.id] is not step:
            return True
        for write in step.facts.writes:
            writers.setdefault(write.parts[0], []).append(step.id)
    for step in document.steps:
        for read in step.facts.reads:
            first = read.parts[0]
            if len(read.parts) == 1 and first in state:
                continue
            wrote = writers.get(first, ()) if len(read.parts) == 1 else ()
            if not any(document.graph.is_upstream(name, step.id or "") for name in wrote):
                return True
    return False


def may_be_unread(document: WorkflowDocument) -> bool:
    """Tell whether the output of a step with others behind it may be read by nobody."""
    if _FLOW in sys.modules or len(document.steps) > SMALL:
        return not document.inline
    reads = {read.parts[0] for step in document.steps for read in step.facts.reads}
    dependents = document.graph.dependents
    return any(
        len(write.parts) > 1 or write.parts[0] not in reads
        for step in document.steps
        if "output" in step.facts.fields and dependents.get(step.id or "")
        for write in step.facts.writes
    )
