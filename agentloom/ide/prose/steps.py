"""What is said about a step: where it stands in the graph, what it reads and writes, and its worst case."""

from __future__ import annotations

from collections.abc import Iterator

from agentloom.analysis.document import Child, Step, WorkflowDocument
from agentloom.analysis.effort import effort
from agentloom.ide.prose.form import Block, Code, Inline, Items, Prose, excerpt, listed, say
from agentloom.language.paths import format_path
from agentloom.model.catalogue import catalogue


def of_step(document: WorkflowDocument, step: Step) -> Prose:
    """Return what a step is and does, from the file alone."""
    said: list[Block] = [say("Step ", Code(step.id or "?"), *_kind(step))]
    if step.id is not None and document.by_id.get(step.id) is not step:
        said.append(say("Another step of this name stands above it; that one counts."))
    items = [*_graph(document, step), *_state(step), *_worst_case(document, step)]
    if items:
        said.append(Items(tuple(items)))
    child = document.children.get(step.id) if step.id is not None else None
    if child is not None and child.document is not None:
        said.extend(of_child(child))
    return tuple(said)


def of_child(child: Child) -> Iterator[Block]:
    """Yield what a workflow that a step runs says about itself."""
    if child.document is None:
        return
    data = child.document.head.data
    name = data.get("name")
    count = len(child.document.steps)
    said: list[Inline] = ["Runs "]
    said.append(Code(name) if isinstance(name, str) else "a workflow without a name")
    yield say(*said, f", {count} step{'s' if count != 1 else ''}.")
    description = data.get("description")
    if isinstance(description, str) and description.strip():
        yield excerpt(description)


def layer_words(document: WorkflowDocument, name: str) -> str:
    """Return a step's layer in words, counted from 1; empty for steps on or behind a cycle."""
    layer = document.graph.layer_of.get(name)
    return "" if layer is None else f"layer {layer + 1} of {len(document.graph.layers)}"


def state_reads(step: Step) -> tuple[str, ...]:
    """Return the state paths that a step reads, as written from the top of the state, each once."""
    return _paths(step, "read")


def state_writes(step: Step) -> tuple[str, ...]:
    """Return the state paths that a step writes."""
    return _paths(step, "write")


def _paths(step: Step, role: str) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(
            format_path(o.parts) for o in step.facts.occurrences if o.kind == "state" and o.role == role and o.parts
        )
    )


def _kind(step: Step) -> Iterator[Inline]:
    if step.type is None:
        return
    block = catalogue().step(step.type)
    yield ", "
    yield Code(step.type)
    if block is not None:
        yield ": "
        yield block.description


def _graph(document: WorkflowDocument, step: Step) -> Iterator[tuple[Inline, ...]]:
    if step.id is None:
        return
    layer = layer_words(document, step.id)
    if layer:
        yield (layer[0].upper() + layer[1:],)
    else:
        yield ("In no layer: it is part of a cycle, or waits for one",)
    needs = tuple(dict.fromkeys(step.needs))
    if needs:
        yield ("Depends on ", *listed(needs))
    dependents = document.graph.dependents.get(step.id, ())
    if dependents:
        yield ("Needed by ", *listed(dependents))
    targets = dict.fromkeys(
        o.name for o in step.facts.occurrences if o.kind == "step" and o.role == "refer" and not _is_dependency(o.key)
    )
    if targets:
        yield ("Chooses among ", *listed(targets))


_ORIGINS = {
    "retry": "by its `retry`",
    "config": "by `config.max_retries`",
    "default": "by default",
}


def _worst_case(document: WorkflowDocument, step: Step) -> Iterator[tuple[Inline, ...]]:
    """Yield how often the step may be tried, and how long that may take."""
    found = effort(document).efforts.get(step.id) if step.id is not None else None
    if found is None or found.step is not step or found.origin == "type":
        return
    attempts = "one attempt" if found.attempts == 1 else f"{found.attempts} attempts"
    said = f"At most {attempts}, {_ORIGINS[found.origin]}"
    if found.waits:
        said += f"; waits of up to {time_words(found.waits)} in all"
    if found.limit is not None and found.limit > 0:
        said += f"; each attempt up to {time_words(found.limit)}"
    yield (said,)
    if found.inside > found.attempts:
        yield ("With those inside, up to ", f"{found.inside} attempts of ", Code(".".join(found.path)))


def time_words(seconds: float) -> str:
    """Return a time in two units at most: `17.5 s`, `3 min 20 s`, `2 h 5 min`."""
    if seconds < 60:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    whole = round(seconds)
    units = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
    at = next(number for number, (_, size) in enumerate(units) if whole >= size)
    parts = []
    for name, size in units[at : at + 2]:
        if whole // size:
            parts.append(f"{whole // size} {name}")
        whole %= size
    return " ".join(parts)


def _is_dependency(key: str) -> bool:
    return key.split(".", 1)[0] == "depends_on"


def _state(step: Step) -> Iterator[tuple[Inline, ...]]:
    reads, writes = state_reads(step), state_writes(step)
    if reads:
        yield ("Reads ", *listed(reads))
    if writes:
        yield ("Writes ", *listed(writes))
