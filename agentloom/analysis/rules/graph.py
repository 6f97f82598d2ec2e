"""Rules about `id` and `depends_on`: duplicates, unknown names, cycles."""

from __future__ import annotations

from collections.abc import Iterator

from agentloom.analysis import edits
from agentloom.analysis.document import Facts, Step, WorkflowDocument
from agentloom.analysis.graph import find_cycles
from agentloom.analysis.values import suggest, undefined
from agentloom.diagnostics import Edit, Finding, Fix, Related
from agentloom.syntax.nodes import Alias, Node, Scalar, Sequence
from agentloom.text import Span


def _list_of(facts: Facts) -> Sequence | None:
    found = facts.fields.get("depends_on")
    return found.value if found and isinstance(found.value, Sequence) else None


def _written(facts: Facts, index: int) -> Scalar | None:
    """Return an item of `depends_on` that stands there itself, not through an alias."""
    found = facts.fields.get("depends_on")
    node: Node | None = found.value if found else None
    if isinstance(node, Sequence):
        node = node.items[index]
    return node if isinstance(node, Scalar) else None


def _drop(facts: Facts, index: int) -> tuple[Edit, ...]:
    """Return the edits that take one item out of `depends_on`, in offsets of the unit."""
    node = _list_of(facts)
    return edits.remove_item(facts.unit.text, node, index) if node is not None else ()


def _removal(facts: Facts, name: str, index: int, safe: bool = False) -> tuple[Fix, ...]:
    gone = _drop(facts, index)
    return (Fix(f"remove `{name}` from `depends_on`", gone, safe=safe),) if gone else ()


def duplicate_step_id(document: WorkflowDocument) -> Iterator[Finding]:
    """Two steps have the same id.

    Dependencies, targets and `{state.steps.<id>}` couldn't tell them apart.

    Give one of them another id.
    """
    first: dict[str, Step] = {}
    for step in document.steps:
        if step.id is None:
            continue
        earlier = first.setdefault(step.id, step)
        if earlier is not step:
            related = [Related(earlier.name_span, f"the first `{step.id}`")]
            node = step.facts.node
            anchor = None if isinstance(node, Alias) else node.anchor
            if step.alias is not None and anchor is not None:
                name = document.source.text[step.alias.start + 1 : step.alias.end]
                related.append(
                    Related(step.place(anchor), f"`*{name}` repeats the step that `&{name}` names, its id too")
                )
            yield Finding(
                "AL201",
                step.name_span,
                f"step id `{step.id}` is taken (`steps[{earlier.index}]` and `steps[{step.index}]`); choose another",
                related=tuple(related),
            )


def unknown_dependency(document: WorkflowDocument) -> Iterator[Finding]:
    """`depends_on` names a step that doesn't exist.

    The step could never start.

    Correct the name, or remove it from the list.
    """
    for step in document.steps:
        for name, span, index in step.facts.dependencies:
            if name in document.by_id:
                continue
            near = suggest(document, "step", name, step) if name else None
            message = undefined("step", name, near, "define it or remove it from `depends_on`")
            if not name.strip():
                message = "this dependency is empty; name a step or remove it"
            fixes: list[Fix] = []
            item = _written(step.facts, index)
            if near and item is not None:
                fixes.append(Fix(f"change to `{near}`", edits.replace_value(item, near), safe=False))
            fixes.extend(_removal(step.facts, name, index))
            yield Finding("AL202", span, message, fixes=tuple(fixes)).shift(step.base)


def self_dependency(facts: Facts) -> Iterator[Finding]:
    """A step depends on itself.

    It could never start.

    Remove its own id from its `depends_on`.
    """
    for name, span, index in facts.dependencies:
        if name == facts.data.get("id"):
            yield Finding(
                "AL203",
                span,
                f"step `{name}` depends on itself; remove it from `depends_on`",
                fixes=_removal(facts, name, index, safe=True),
            )


def dependency_cycle(document: WorkflowDocument) -> Iterator[Finding]:
    """Steps depend on each other in a ring.

    None of them could ever start, nor anything after them.

    Take one of the dependencies out. The fix offers the only one that leads to a step further down in the file, which is most
    likely the odd one, and the one that closes the ring.
    """
    graph = document.graph
    if len(graph.layer_of) == len(graph.dependencies):
        return  # every step has its layer, so there is no ring
    for loop in find_cycles(graph.dependencies):
        edges = list(zip(loop, (*loop[1:], loop[0]), strict=True))
        found = [_edge(document, step_id, need) for step_id, need in edges]
        step, span, _ = found[-1]
        shown = " -> ".join((*loop, loop[0])) if len(loop) <= 12 else " -> ".join((*loop[:6], "…", *loop[-5:], loop[0]))
        yield Finding(
            "AL204",
            step.place(span),
            f"steps depend on each other in a ring: `{shown}`; take one of these dependencies out",
            related=tuple(
                Related(step.place(span), f"`{step_id}` depends on `{need}`")
                for (step_id, need), (step, span, _) in zip(edges, found, strict=True)
            ),
            fixes=tuple(fix for at in _odd_ones(document, edges) for fix in _cut(*found[at], edges[at])),
        )


def _edge(document: WorkflowDocument, step_id: str, need: str) -> tuple[Step, Span, int]:
    """Return the step of an edge, and where in its `depends_on` the edge stands."""
    step = document.by_id[step_id]
    span, index = next((span, index) for name, span, index in step.facts.dependencies if name == need)
    return step, span, index


def _odd_ones(document: WorkflowDocument, edges: list[tuple[str, str]]) -> list[int]:
    """Return which edges of a ring to take out: the only one that points down the file, if there is one; the closing one."""
    down = [at for at, (a, b) in enumerate(edges) if document.by_id[b].index > document.by_id[a].index]
    closing = len(edges) - 1
    return [down[0], closing] if len(down) == 1 and down[0] != closing else [closing]


def _cut(step: Step, span: Span, index: int, edge: tuple[str, str]) -> Iterator[Fix]:
    gone = tuple(Edit(edit.span.shift(step.base), edit.text) for edit in _drop(step.facts, index))
    if gone:
        yield Fix(f"remove `{edge[1]}` from the `depends_on` of `{edge[0]}`", gone, safe=False)


def repeated_dependency(facts: Facts) -> Iterator[Finding]:
    """`depends_on` names the same step twice.

    Once is enough; the second was probably meant to be another step.

    Correct it, or remove it.
    """
    seen: set[str] = set()
    for name, span, index in facts.dependencies:
        if name in seen:
            yield Finding(
                "AL205",
                span,
                f"`{name}` is listed twice; remove one",
                fixes=_removal(facts, name, index, safe=True),
            )
        seen.add(name)


def implied_dependency(document: WorkflowDocument) -> Iterator[Finding]:
    """A dependency follows from another one in the same list.

    It changes nothing: the step waits for it anyway. A dependency on a router is never reported, since it gates the step.

    Remove it, unless it says something to readers.
    """
    graph = document.graph
    for step in document.steps:
        items = step.facts.dependencies
        if len(items) < 2 or len(items) > 200:
            continue
        for name, span, index in items:
            known = document.by_id.get(name)
            if known is None or known.type == "router" or name == step.id:
                continue
            over = next((o for o, _, _ in items if o not in (name, step.id) and graph.is_upstream(name, o)), None)
            if over is not None:
                yield Finding(
                    "AL206",
                    span,
                    f"`{name}` is implied by `{over}`; it can be removed",
                    fixes=_removal(step.facts, name, index),
                    tags=("unnecessary",),
                ).shift(step.base)
