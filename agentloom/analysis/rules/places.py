"""Where things stand below a field: nodes and keys by path, with the edits that change them, in document offsets."""

from __future__ import annotations

from collections.abc import Iterable

from agentloom.analysis import edits
from agentloom.analysis.document import Facts, Step, WorkflowDocument, word_span
from agentloom.analysis.edits.places import Edits
from agentloom.diagnostics import Edit, Fix
from agentloom.syntax.nodes import Node, Scalar
from agentloom.syntax.values import find, find_key
from agentloom.text import Span


def node_at(facts: Facts, name: str, *path: str | int) -> Node | None:
    """Return the node below a field; None when there is none."""
    located = facts.fields.get(name)
    return None if located is None else find(located.value, path)


def span_at(facts: Facts, name: str, *path: str | int) -> Span:
    """Return where a value below a field stands, its quotes left out; the field's key when it isn't there."""
    node = node_at(facts, name, *path)
    return word_span(node) if node is not None and node.span.end > node.span.start else facts.key_span(name)


def key_at(facts: Facts, name: str, *path: str) -> Span:
    """Return where a key below a field stands; the field's own key when it isn't there."""
    located = facts.fields.get(name)
    key = find_key(located.value, path) if located is not None else None
    return facts.key_span(name) if key is None else key.span


def config_span(document: WorkflowDocument, name: str) -> Span | None:
    """Return where a value of `config` stands, in document offsets; None when it isn't there."""
    node = node_at(document.head, "config", name)
    return None if node is None else word_span(node).shift(document.base)


def placed(step: Step, title: str, found: Edits) -> tuple[Fix, ...]:
    """Return a fix of edits in a step's own offsets; none for a step that stands elsewhere, behind an alias."""
    if not found or step.alias is not None:
        return ()
    return (Fix(title, tuple(Edit(edit.span.shift(step.base), edit.text) for edit in found), safe=False),)


def renamed(node: Node | None, near: str | None, base: int) -> tuple[Fix, ...]:
    """Return the fix that changes a text into the one that was meant; ``base`` places the node."""
    if near is None or not isinstance(node, Scalar):
        return ()
    found: Iterable[Edit] = edits.replace_value(node, near)
    return (Fix(f"change to `{near}`", tuple(Edit(e.span.shift(base), e.text) for e in found), safe=False),)
