"""The reads of a workflow that need a closer look: what the rules about the state have in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from agentloom.analysis.dataflow import Flow, Loss, Reaching, Read, dataflow
from agentloom.analysis.dataflow.tables import bits
from agentloom.analysis.document import Step, WorkflowDocument
from agentloom.diagnostics import Related
from agentloom.language.paths import Part
from agentloom.text import Span

SHOWN = 5
"""Names listed in one message, and places on one route."""


class Doubtful(NamedTuple):
    """A read that may find nothing, in the flow of the workflow that it stands in."""

    flow: Flow
    read: Read
    reaching: Reaching

    @property
    def parts(self) -> tuple[Part, ...]:
        """The path that is read."""
        return self.read.parts

    @property
    def step(self) -> Step:
        """The step that reads it."""
        return self.read.step

    @property
    def word(self) -> Span:
        """Where the first part of the path stands, in document offsets."""
        spans = self.read.occurrence.part_spans
        return spans[0].shift(self.read.base) if spans else self.read.span

    @property
    def asks(self) -> bool:
        """Whether it is an expression, which takes a missing value for None."""
        return self.read.occurrence.form == "expression"

    @property
    def strict(self) -> bool:
        """Whether the step fails without the value: among arguments a path of the state must lead somewhere."""
        place = self.read.occurrence
        return (
            place.key.split(".")[0] in ("tool_args", "input", "inputs")
            and self.step.type != "agent"
            and place.node.value[place.inside.start :].startswith("state")
        )


def doubtful(document: WorkflowDocument) -> tuple[Doubtful, ...]:
    """Return the reads of a workflow, and of those written in place below it, that don't surely find a value; worked out once."""
    if document.inline:
        return ()  # the file's own document speaks for it, and knows what it is handed
    kept: tuple[Doubtful, ...] | None = document.__dict__.get("_doubtful")
    if kept is None:
        kept = document.__dict__["_doubtful"] = tuple(_doubtful(dataflow(document)))
    return kept


def _doubtful(flow: Flow) -> Iterator[Doubtful]:
    sure = flow.tables.sure if flow.outer is None else {}
    for at, step in enumerate(flow.tables.steps):
        if id(step.facts) in sure:
            continue
        doubts = [read for read in flow.reads(step) if not read.optional and not flow.is_sure(at, read.parts)]
        if not doubts and step.type != "subworkflow":
            sure[id(step.facts)] = step.facts
            continue
        for read in doubts:
            reaching = flow.reaching(step, read.parts)
            if reaching.certainty not in ("always", "declared", "unknown"):
                yield Doubtful(flow, read, reaching)
        child = flow.document.children.get(step.id or "")
        if child is not None and child.path is None:
            below = flow.child(step)
            if below is not None:
                yield from _doubtful(below)


def files_below(document: WorkflowDocument, certainty: str, isolated: bool) -> Iterator[tuple[Flow, Step, list[Read]]]:
    """Yield the steps that run a workflow of another file, isolated or not, with what it reads that reaches it so; a read of each key."""
    if document.inline:
        return
    todo = [dataflow(document)]
    while todo:
        flow = todo.pop()
        for at in bits(flow.tables.children):
            step = flow.tables.steps[at]
            child, below = flow.document.children.get(step.id or ""), flow.child(step)
            if child is None or below is None:
                continue
            if child.path is None:
                todo.append(below)
                continue
            if below.outer is None or below.outer.isolated is not isolated or not below.document.ok:
                continue
            found: dict[Part, Read] = {}
            for inner in below.document.steps:
                for read in below.reads(inner):
                    if not read.optional and read.parts[0] not in found and _from_above(below, inner, read, certainty):
                        found[read.parts[0]] = read
            if found:
                yield flow, step, list(found.values())


def _from_above(flow: Flow, step: Step, read: Read, certainty: str) -> bool:
    """Tell whether a read of a child depends on its parent, and what is said of it there is a certain thing."""
    if read.parts[0] == "steps" or flow.declared.holds(read.parts) or flow.writers(read.parts[:1]):
        return False
    return flow.reaching(step, read.parts[:1]).certainty == certainty


def listing(names: list[str]) -> str:
    """Return names as a message lists them: quoted, the last behind `and`, long lists cut."""
    shown = [f"`{name}`" for name in names[:SHOWN]]
    if len(names) > SHOWN:
        return ", ".join(shown) + f" and {len(names) - SHOWN} more"
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + f" and {shown[-1]}"


def walk(flow: Flow, loss: Loss) -> tuple[Related, ...]:
    """Return the places that a route passes on which a value is lost: each router where it picks the other branch."""
    places: list[Related] = []
    if loss.child is not None:
        step = flow.document.by_id.get(loss.child)
        below = flow.child(step) if step is not None else None
        found = below.document if below is not None else flow.document
    else:
        found = flow.document
    path = str(found.path) if found.source is not flow.document.source and found.path is not None else None
    for pick in loss.picks[:SHOWN]:
        router = found.by_id.get(pick.router)
        if router is None:
            continue
        named = next(
            (
                place
                for place in router.facts.occurrences
                if place.kind == "step" and place.name == pick.target and not place.key.startswith("depends_on")
            ),
            None,
        )
        span = router.place(named.span) if named is not None else router.name_span
        places.append(Related(span, f"when `{pick.router}` picks `{pick.target}`, `{pick.loses}` doesn't run", path))
    return tuple(places)
