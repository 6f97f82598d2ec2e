"""The data flow of one workflow: what its steps read, what reaches each read, and what a step may read."""

from __future__ import annotations

from collections.abc import Iterator

from agentloom.analysis.dataflow.declared import Origin
from agentloom.analysis.dataflow.reach import Outer, Reach
from agentloom.analysis.dataflow.shapes import Offer, Reaching, Read
from agentloom.analysis.dataflow.tables import STEPS, bits
from agentloom.analysis.document import Facts, Step, WorkflowDocument
from agentloom.analysis.symbols import Occurrence
from agentloom.language.paths import Part, format_path

# Names that the body of a webhook has besides the state.
_WEBHOOK_NAMES = ("run_id", "step_id", "workflow_name")


class Flow(Reach):
    """The data flow of a document; ``outer`` is where it runs, for the workflow of a subworkflow step."""

    def __init__(self, document: WorkflowDocument, outer: Outer | None = None) -> None:
        super().__init__(document, outer)
        self._agents: dict[str, tuple[Occurrence, ...]] | None = None

    def reads(self, step: Step) -> Iterator[Read]:
        """Yield what a step reads, as far as it stands in this document: its own templates, expressions and paths, and its agent's."""
        for place in step.facts.reads:
            if not (place.parts[0] in _WEBHOOK_NAMES and place.key == "notify.body_template"):
                yield Read(step, place, step.base, place.key == "conversation")
        if step.type == "agent":
            name = step.facts.text("agent")
            for place in self._agent_reads(name) if name else ():
                yield Read(step, place, self.document.base)

    def _agent_reads(self, name: str) -> tuple[Occurrence, ...]:
        if self._agents is None:
            self._agents = agents_read(self.document.head)
        return self._agents.get(name, ())

    def writes(self, step: Step) -> tuple[Occurrence, ...]:
        """Return the places where a step says what it writes."""
        return step.facts.writes

    def in_scope(self, step: Step | None) -> tuple[Offer, ...]:
        """Return the paths that a step may read: upstream writers first, nearest first, then what is there from the start, then the rest.

        Without a step (a new one, whose place isn't known) everything that is written counts.
        """
        at = self.tables.index.get(step.id or "") if step is not None else None
        offers: dict[tuple[Part, ...], Offer] = {}
        for writer in self.tables.steps:
            if writer is step:
                continue
            for write in writer.facts.writes:
                if write.parts not in offers:
                    offers[write.parts] = self._offer(at, step, write.parts)
        for parts, origin in self._from_start():
            if parts not in offers:
                offers[parts] = Offer(parts, format_path(parts), (), None, "declared", origin=origin)
        return tuple(sorted(offers.values(), key=_rank))

    def results_in_scope(self, step: Step | None) -> tuple[Offer, ...]:
        """Return the results of other steps that a step may read: `steps.<id>.output`."""
        at = self.tables.index.get(step.id or "") if step is not None else None
        found = [
            self._offer(at, step, (STEPS, other.id, "output"))
            for other in self.tables.steps
            if other is not step and other.id
        ]
        return tuple(sorted(found, key=_rank))

    def _offer(self, at: int | None, step: Step | None, parts: tuple[Part, ...]) -> Offer:
        if at is not None and parts[0] not in self.declared.values and (sure := self._surely(at, parts)):
            numbers = list(bits(sure))
            ids = tuple(self.tables.steps[n].id or "" for n in numbers)
            return Offer(parts, format_path(parts), ids, min(self.tables.layer[n] for n in numbers), "always", True)
        reaching = self._reaching(at, parts) if step is not None else Reaching("unknown", self.writers(parts))
        writers = reaching.writers or reaching.later
        upstream = any(writer.upstream for writer in reaching.writers)
        layer = min((writer.layer for writer in writers), default=None)
        ids = tuple(writer.id for writer in writers)
        return Offer(parts, format_path(parts), ids, layer, reaching.certainty, upstream, reaching.origin)

    def _from_start(self) -> Iterator[tuple[tuple[Part, ...], Origin]]:
        todo: list[tuple[tuple[Part, ...], object]] = [((key,), v) for key, v in self.declared.values.items()]
        for parts, value in todo:
            yield parts, "state"
            if isinstance(value, dict) and len(parts) < 6:
                todo.extend(((*parts, key), inner) for key, inner in value.items() if isinstance(key, str))
        yield from self.declared.expected.items()
        if self.outer is not None:
            for name in sorted(self.outer.given):
                yield (name,), "input"
            parent = self.outer.flow
            if not self.outer.isolated and isinstance(parent, Flow):
                for offer in parent.in_scope(self.outer.step):
                    if offer.certainty in ("always", "declared", "sometimes"):
                        yield offer.parts, "input"


def _rank(offer: Offer) -> tuple[int, int, str]:
    if offer.upstream:
        return 0, -(offer.layer or 0), offer.name
    if offer.layer is None:
        return 1, 0, offer.name
    return (2 if offer.certainty in ("sometimes", "declared", "always") else 3), offer.layer, offer.name


def agents_read(head: Facts) -> dict[str, tuple[Occurrence, ...]]:
    """Return what the agents described in a head read, by name; an agent that calls others reads what they read, too."""
    own: dict[str, list[Occurrence]] = {}
    for place in head.reads:
        words = place.key.split(".")
        if words[0] == "agents" and len(words) > 2:
            own.setdefault(words[1], []).append(place)
    calls: dict[str, list[str]] = {}
    for place in head.occurrences:
        words = place.key.split(".")
        if place.kind == "agent" and words[0] == "agents" and len(words) > 2:
            calls.setdefault(words[1], []).append(place.name)
    result: dict[str, tuple[Occurrence, ...]] = {}
    for name in {**own, **calls}:
        seen: dict[str, None] = {name: None}
        todo = [name]
        while todo:
            for other in calls.get(todo.pop(), ()):
                if other not in seen:
                    seen[other] = None
                    todo.append(other)
        result[name] = tuple(place for other in seen for place in own.get(other, ()))
    return result
