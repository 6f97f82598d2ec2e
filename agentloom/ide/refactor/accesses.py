"""Who reads and writes what in the state, and whose write a read sees: what moves of steps between workflows must keep."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from agentloom.analysis.analyze import analyze
from agentloom.analysis.document import Step, WorkflowDocument
from agentloom.analysis.rules.collisions import exclusive, router_choices
from agentloom.analysis.symbols import Occurrence
from agentloom.ide.results import Refusal
from agentloom.language.paths import Part, format_path
from agentloom.text import Source

Parts = tuple[Part, ...]
WHOLE: Parts = ()
"""The path of the whole state."""


class Access(NamedTuple):
    """A step reads or writes a state path. ``occurrence`` is None when that isn't said in the step's own text."""

    step: str
    parts: Parts
    occurrence: Occurrence | None = None


class Seen(NamedTuple):
    """What a read sees: the steps whose writes may be there, whether the state before may be, and steps in a race with it."""

    writers: tuple[str, ...]
    before: bool
    racing: tuple[str, ...]


class Race(NamedTuple):
    """Two steps that neither wait for each other nor exclude each other, and a path that both use."""

    one: str
    other: str
    parts: Parts


def keep_races(races: Iterable[Race], before: Mapping[str, int], now: Mapping[str, int]) -> None:
    """Raise ``Refusal`` when the layers of two such steps would come in another order."""
    for one, other, parts in races:
        if _order(before, one, other) != _order(now, one, other):
            raise Refusal(f"`{one}` and `{other}` use `{format_path(parts)}` in no certain order, and it would change")


def _order(layers: Mapping[str, int], one: str, other: str) -> int:
    return (layers.get(one, -1) > layers.get(other, -1)) - (layers.get(one, -1) < layers.get(other, -1))


def overlap(one: Parts, other: Parts) -> bool:
    """Tell whether one path leads to the other, or they are the same."""
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


@dataclass(slots=False, eq=False, repr=False)
class Accesses:
    """The reads and writes of a document's steps; of two steps with one id, the first counts."""

    document: WorkflowDocument
    reads: tuple[Access, ...] = field(init=False)
    writes: tuple[Access, ...] = field(init=False)

    def __post_init__(self) -> None:
        steps = list(self.document.by_id.items())
        self.reads = tuple(access for name, step in steps for access in reads_of(self.document, name, step))
        self.writes = tuple(Access(name, w.parts, w) for name, step in steps for w in step.facts.writes)

    @cached_property
    def _writes_by_key(self) -> dict[Part, list[Access]]:
        found: dict[Part, list[Access]] = {}
        for write in self.writes:
            found.setdefault(write.parts[0], []).append(write)
        return found

    @cached_property
    def choices(self) -> dict[str, dict[str, str]]:
        """For each step, which choice of which router it needs."""
        return {name: dict(found) for name, found in router_choices(self.document).items()}

    def overlapping(self, parts: Parts) -> Iterable[Access]:
        """Return the writes to a path, above it or below it."""
        if not parts:
            return self.writes
        return [write for write in self._writes_by_key.get(parts[0], ()) if overlap(write.parts, parts)]

    def excluded(self, one: str, other: str) -> bool:
        """Tell whether two steps never run both."""
        return exclusive(self.choices.get(one, {}), self.choices.get(other, {}))

    def seen(self, step: str, parts: Parts) -> Seen:
        """Return what a step sees at a path. Later writes that cover the path hide earlier ones."""
        graph = self.document.graph
        above: list[Access] = []
        racing: list[str] = []
        for write in self.overlapping(parts):
            if write.step == step or self.excluded(write.step, step) or graph.is_upstream(step, write.step):
                continue
            if graph.is_upstream(write.step, step):
                above.append(write)
            else:
                racing.append(write.step)
        covering = [write for write in above if len(write.parts) <= len(parts)]
        live = [
            write.step
            for write in above
            if not any(graph.is_upstream(write.step, cover.step) for cover in covering if cover.step != write.step)
        ]
        return Seen(tuple(dict.fromkeys(live)), not covering, tuple(dict.fromkeys(racing)))

    def races(self, names: Container[str]) -> Iterator[Race]:
        """Yield the pairs among some steps whose order nothing but their layers decides, and matters.

        One writes what the other uses, or both write into one mapping, whose keys stand in the order of writing, that is read as a whole.
        """
        graph = self.document.graph
        for access in (*self.reads, *self.writes):
            if access.step not in names:
                continue
            for write in self.overlapping(access.parts):
                one, other = access.step, write.step
                if other == one or other not in names or self.excluded(one, other):
                    continue
                if not graph.is_upstream(one, other) and not graph.is_upstream(other, one):
                    yield Race(one, other, write.parts)
        for read in self.reads:
            if read.parts:
                together = [name for name in self.seen(read.step, read.parts).writers if name in names]
                for at, one in enumerate(together):
                    for other in together[:at]:
                        if not graph.is_upstream(one, other) and not graph.is_upstream(other, one):
                            yield Race(one, other, read.parts)

    def begins_with(self, key: Part) -> bool:
        """Tell whether the file's own `state` has a key."""
        state = self.document.head.data.get("state")
        return isinstance(state, dict) and key in state


def reads_of(document: WorkflowDocument, name: str, step: Step) -> Iterator[Access]:
    """Yield what a step reads, also through the workflow or the agent that it runs."""
    for found in step.facts.occurrences:
        if found.kind == "state" and found.role == "read":
            yield Access(name, found.parts, found)
    if step.type == "subworkflow" and step.facts.data.get("isolated_state") is not True:
        child = document.children.get(name)
        if child is None or child.document is None or step.facts.data.get("return_keys") is None:
            yield Access(name, WHOLE)  # it takes a copy of the whole state, and hands it back
        else:
            for key in step.facts.data["return_keys"]:
                yield Access(name, (key,))  # what it doesn't write comes back as it was
            for parts in _reads_below(child.document):
                yield Access(name, parts)
    if step.type == "agent":
        for parts in _agent_reads(document, step.facts.text("agent") or ""):
            yield Access(name, parts)


def _reads_below(child: WorkflowDocument) -> Iterator[Parts]:
    state = child.head.data.get("state")
    for key in state if isinstance(state, dict) else ():
        yield (key,)
    for name, step in child.by_id.items():
        for access in reads_of(child, name, step):
            if access.parts[:1] != ("steps",):  # results are a namespace of every workflow's own
                yield access.parts
        for write in step.facts.writes:
            if len(write.parts) > 1:
                yield write.parts  # it is written into what is there


def _agent_reads(document: WorkflowDocument, agent: str) -> Iterator[Parts]:
    agents = document.head.data.get("agents")
    given = agents.get(agent, agent) if isinstance(agents, dict) else agent
    if isinstance(given, dict):
        prefix = f"agents.{agent}."
        for found in document.head.occurrences:
            if found.kind == "state" and found.role == "read" and found.key.startswith(prefix):
                yield found.parts
        return
    home = document.path
    if home is None or not isinstance(given, str):
        yield WHOLE
        return
    path = Path(home).parent / given
    try:
        text = document.context.read_text(path)
    except (OSError, ValueError):
        yield WHOLE
        return
    for found in analyze(Source(str(path), text), document.context, kind="agent").head.occurrences:
        if found.kind == "state" and found.role == "read":
            yield found.parts
