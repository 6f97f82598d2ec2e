"""State paths as items: what each is worth at the step at the cursor, and what has to be written with it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from agentloom.analysis import edits
from agentloom.analysis.document import Step, WorkflowDocument
from agentloom.analysis.edits.places import has_anchor
from agentloom.diagnostics import Edit
from agentloom.ide.around import around
from agentloom.ide.completion.where import Where
from agentloom.ide.prose.names import KINDS
from agentloom.ide.prose.state import writer_words
from agentloom.ide.state_paths import RESULTS, Known, Writer, names_below
from agentloom.language.paths import Part, format_path, is_name
from agentloom.syntax.nodes import Alias, Mapping

MOST_NAMES = 500
"""Names of one list; more than an editor is told at once, so that it asks again while the name is typed."""

MOST_NESTED = 12
"""Names below one name that are offered together with it."""
MOST_DEEPER = 30
"""Names that others are offered below: looking below each of thousands would take as many passes over the document."""

MOST_CURED = 300
"""Names in a list for which the missing dependency is worked out."""

LONGEST_VALUE = 40


def known_paths(where: Where, head: tuple[Part, ...], word: str = "") -> Iterator[tuple[tuple[Part, ...], Known]]:
    """Yield the names that may follow a path at the cursor, each as a path from there; what is known below a name follows it.

    ``word`` is what is typed of the name. Where there are more names than anybody would look through, only those that have its letters
    in this order are given, and not more than ``MOST_NAMES``.
    """
    document, step = where.document, reader_of(where)
    outer = around(where.root, document) if where.root is not None else None
    names = names_below(document, head, step, outer)
    if len(names) > MOST_NAMES:
        letters = re.compile(".*?".join(map(re.escape, word)), re.IGNORECASE)
        names = tuple(islice((known for known in names if letters.search(str(known.name))), MOST_NAMES))
    deeper = 0
    for known in names:
        if not writable(known.name):
            continue
        yield (known.name,), known
        if known.deeper and known.name != RESULTS and deeper < MOST_DEEPER:
            deeper += 1
            for inner in names_below(document, (*head, known.name), step, outer)[:MOST_NESTED]:
                if writable(inner.name):
                    yield (known.name, inner.name), inner


def writable(name: Part) -> bool:
    """Tell whether a name can be written behind a dot, or is a number in brackets."""
    return isinstance(name, int) or is_name(name)


def reader_of(where: Where) -> Step | None:
    """Return the step that reads what is written at the cursor: the one it is in, or for an agent's text the first that runs the agent."""
    if where.step is not None or where.in_step or len(where.path) < 2:
        return where.step
    document = where.document
    block = document.head.block
    field = block.fields.get(str(where.path[0])) if block is not None else None
    mark = field.shape.mark("defines") if field is not None else None
    if mark is None or mark.of != "agent":
        return None
    found: dict[str, Step] | None = document.__dict__.get("_first_readers")
    if found is None:
        found = document.__dict__["_first_readers"] = _first_readers(document)
    return found.get(str(where.path[1]))


def _first_readers(document: WorkflowDocument) -> dict[str, Step]:
    """Return for each agent the first step that runs it."""
    found: dict[str, Step] = {}
    for layer in document.graph.layers:
        for name in layer:
            step = document.by_id[name]
            for place in step.facts.occurrences:
                if place.kind == "agent" and place.role == "refer":
                    found.setdefault(place.name, step)
    return found


def rank_of(where: Where, known: Known) -> int:
    """Return the rank of a name: what upstream steps write, what is there from the start, the rest, and what comes too late."""
    step = reader_of(where)
    if any(writer.upstream and writer.step is not step for writer in known.writers):
        return 2
    if known.given or known.declared or not known.writers:
        return 3
    return 7 if addable(where, known) is not None else 9


def addable(where: Where, known: Known) -> Writer | None:
    """Return the first writer that the step at the cursor could wait for: one that doesn't wait for it."""
    step, graph = reader_of(where), where.document.graph
    for writer in known.writers:
        other = writer.step.id
        if writer.step is step or other is None or other not in graph.layer_of:
            continue
        if step is None or step.id is None or not graph.is_upstream(step.id, other):
            return writer
    return None


def detail_of(where: Where, known: Known) -> str:
    """Return who writes a name and when, or what it begins as, and what is missing for it to be there."""
    document, step = where.document, reader_of(where)
    if known.name == RESULTS and not known.writers:
        return "results of steps"
    words: list[str] = []
    others = [writer for writer in known.writers if writer.step is not step]
    if others:
        first = addable(where, known) or others[0]
        words.append(writer_words(document, first) + (f" and {len(others) - 1} more" if len(others) > 1 else ""))
    elif known.writers:
        words.append("written by this step itself")
    if known.outside:
        words.append(known.outside)
    if known.given:
        words.append("begins as " + shortened(known.value) if words else "= " + shortened(known.value))
    elif known.declared:
        words.append("declared")
    elif others and not any(writer.upstream for writer in others):
        late = addable(where, known) is None
        words.append("runs after this step" if late else "not upstream: add `depends_on`")
    if known.origin:
        words.append(KINDS.get(known.origin, known.origin))
    return " · ".join(words)


def explained(head: tuple[Part, ...], path: tuple[Part, ...]) -> tuple[str, ...]:
    """Return what is to be told beside a path."""
    return ("state", format_path((*head, *path)))


def dependency_edits(where: Where, known: Known) -> tuple[Edit, ...]:
    """Return the edits that make the step at the cursor wait for the one that writes a name; none where that isn't needed.

    None either where it would close a cycle, or where the edit would touch the line that is being typed.
    """
    step = where.step
    if known.given or known.declared or any(writer.upstream and writer.step is not step for writer in known.writers):
        return ()
    writer = addable(where, known)
    return add_dependency(where, where.document, writer.step) if writer is not None else ()


def add_dependency(where: Where, document: WorkflowDocument, needed: Step) -> tuple[Edit, ...]:
    """Return the edits that add a step to the dependencies of the one at the cursor."""
    step = where.step
    if step is None or step.alias is not None or needed.id is None:
        return ()
    if step.id is None or document.by_id.get(step.id) is not step or needed.id in step.needs:
        return ()
    if needed.id == step.id or document.graph.is_upstream(step.id, needed.id):
        return ()
    if needed.id not in document.graph.layer_of:
        return ()  # on a cycle already
    facts, node = step.facts, step.facts.node
    located = facts.fields.get("depends_on")
    if not isinstance(node, Mapping) or node.anchor is not None:
        return ()
    if located is not None and (
        located.via is not None or isinstance(located.value, Alias) or has_anchor(located.value)
    ):
        return ()  # other steps say the same words
    added = edits.add_item(facts.unit.text, facts.fields, node, "depends_on", needed.id)
    placed = tuple(Edit(edit.span.shift(step.base), edit.text) for edit in added)
    line = where.document.lines.line_span(where.document.lines.line_of(where.offset))
    if any(edit.span.start <= line.end and line.start <= edit.span.end for edit in placed):
        return ()
    return placed


def shortened(value: Any) -> str:
    """Return a value in a few words."""
    text = _json(value) if not isinstance(value, str) or not value.strip() else " ".join(value.split())
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
