"""What a step or head names: its occurrences as they are meant in their file, and the names that stand as keys."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import cast

from agentloom.analysis.document import Child, Step, WorkflowDocument
from agentloom.analysis.symbols import Occurrence
from agentloom.ide.names.keys import key_mentions
from agentloom.ide.names.scope import Kind, Mention, Scope, Where, folded
from agentloom.language.arguments import parse_argument
from agentloom.language.template import parse_template
from agentloom.model.sources import names_file
from agentloom.syntax.nodes import Scalar
from agentloom.syntax.values import follow
from agentloom.text import Span

MADE_UP = frozenset(("run_id", "step_id", "workflow_name"))
"""Names that the texts of webhooks read besides the state."""

MOST_OF_A_PATH = 4_096
"""Code points that the path of a file may have; a longer text is its content."""


def mentions_in(where: Where, half_typed: bool = False) -> Iterator[Mention]:
    """Yield everything that a step or head names; ``half_typed``: placeholders without their closing brace, too."""
    for found in where.facts.occurrences:
        mention = mention_of(where, found)
        if mention is not None:
            yield mention
    yield from other_mentions(where, half_typed)


def other_mentions(where: Where, half_typed: bool) -> Iterator[Mention]:
    """Yield what stands nowhere among the occurrences: keys, and a lone dependency, a fault of shape that counts as a list."""
    facts = where.facts
    if facts.dependencies:
        lone = follow(facts.fields["depends_on"].value)
        if isinstance(lone, Scalar):
            insides = (Span(0, len(lone.value)),)
            yield Mention("step", where.scope, (lone.value,), where, "refer", lone, insides, "value", "depends_on")
    if half_typed:
        yield from _half_typed(where)
    yield from key_mentions(where, lambda step: child_scope(where, step))


def mention_of(where: Where, found: Occurrence) -> Mention | None:
    """Return what an occurrence means; None for what only looks like a name."""
    kind, scope = found.kind, where.scope
    if kind == "state":
        parts = folded(found.parts)
        if not parts or (found.form == "template" and parts[0] in MADE_UP and is_of_webhook(where, found)):
            return None
        return Mention(
            "state", scope, parts, where, found.role, found.node, found.parts_inside, found.form, found.key, found
        )
    if not found.name:
        return None
    insides = (found.inside,)
    if kind == "child_state":
        child = child_scope(where, where.step) if where.step is not None else scope
        return Mention("state", child, (found.name,), where, "refer", found.node, insides, "value", found.key, found)
    if kind == "file":
        if not is_file(found.name) or (_names_agent(where, found) and not is_agent_file(where, found.name)):
            return None
        path = path_of(where, found.name)
        return Mention("file", None, (path,), where, "refer", found.node, insides, "value", found.key, found)
    if kind == "agent" and is_agent_file(where, found.name):
        return None
    holds = scope if kind in ("step", "agent") else None
    return Mention(
        cast("Kind", kind), holds, (found.name,), where, found.role, found.node, insides, "value", found.key, found
    )


def child_of(document: WorkflowDocument, step: Step) -> Child | None:
    """Return the workflow that a step runs; None for others, and for the second step of an id."""
    if step.id is None or document.by_id.get(step.id) is not step:
        return None
    return document.children.get(step.id)


def child_scope(where: Where, step: Step) -> Scope:
    """Return the scope of the workflow that a step runs."""
    child = child_of(where.document, step)
    if child is not None and child.path is not None:
        return Scope(str(child.path))
    return Scope(where.scope.file, (*where.scope.trail, step.index))


def path_of(where: Where, written: str) -> str:
    """Return the file that a path in a file means; the text itself where the file has no folder yet."""
    if where.document.path is None:
        return written
    return os.path.abspath(os.path.join(os.path.dirname(where.scope.file), written))


def is_file(written: str) -> bool:
    """Tell whether a text may be the path of a file here: no URL, no content, not made at run time."""
    return not (not names_file(written) or len(written) > MOST_OF_A_PATH or "\n" in written or "\0" in written)


def is_agent_file(where: Where, name: str) -> bool:
    """Tell whether a text that may name an agent or its file means a file."""
    agents = where.document.head.data.get("agents")
    if isinstance(agents, dict) and name in agents:
        return False
    return "/" in name or name.lower().endswith((".yaml", ".yml"))


def is_of_webhook(where: Where, found: Occurrence) -> bool:
    """Tell whether a placeholder without `state.` stands in the text of a webhook."""
    written = found.node.value[found.inside.start :]
    if written.startswith(("state.", "state[")):
        return False
    marks = (leaf.shape.mark("template") for leaf in where.facts.leaves if leaf.node is found.node)
    return any(mark is not None and mark.of == "webhook" for mark in marks)


def _names_agent(where: Where, found: Occurrence) -> bool:
    return any(other.kind == "agent" and other.node is found.node for other in where.facts.occurrences)


def _half_typed(where: Where) -> Iterator[Mention]:
    """Yield the paths of placeholders whose brace isn't closed yet."""
    for leaf in where.facts.leaves:
        if not isinstance(leaf.value, str) or "{" not in leaf.value:
            continue
        if leaf.shape.mark("template"):
            template = parse_template(leaf.node.value)
        elif leaf.shape.mark("template_deep"):
            template = parse_argument(leaf.node.value)
        else:
            continue
        for half in template.open:
            parts = folded(half.parts)
            if parts and parts[0]:
                yield Mention("state", where.scope, parts, where, "read", leaf.node, half.spans, "template", leaf.key)
