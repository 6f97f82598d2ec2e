"""The graph of a workflow for programs: nodes, edges, paths, and the same graph in other tools' forms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree

from agentloom.analysis.document import WorkflowDocument
from agentloom.analysis.graph import Graph, build_graph
from agentloom.analysis.labels import branch_labels, detail_of
from agentloom.core.definition import definition_of
from agentloom.core.plain import plain
from agentloom.core.plan import refuse_tangles
from agentloom.drawing import picture as drawing
from agentloom.drawing.dot import dot
from agentloom.drawing.mermaid import mermaid
from agentloom.errors import UsageError, WorkflowError

if TYPE_CHECKING:
    from agentloom.model.workflow import Workflow

MOST_PATHS = 10_000
PNML = "http://www.pnml.org/version-2009/grammar/pnml"


class GraphEdge(NamedTuple):
    """``target`` depends on ``source``. ``label`` is the condition under which a router chooses the target, or `default`."""

    source: str
    target: str
    label: str = ""


class WorkflowGraph:
    """The steps of a workflow and what they depend on. Everything is in the order of the file."""

    def __init__(self, name: str, dependencies: Mapping[str, Iterable[str]], steps: Mapping[str, Mapping[str, Any]]):
        self.name = name
        self._steps = steps
        wanted = {step: tuple(needs) for step, needs in dependencies.items()}
        refuse_tangles(wanted)
        self._graph: Graph = build_graph(wanted)

    @classmethod
    def from_workflow(cls, workflow: WorkflowDocument | Workflow) -> WorkflowGraph:
        """Return the graph of a loaded workflow. Raises ``WorkflowError`` for one whose steps form no graph."""
        data = workflow.data if isinstance(workflow, WorkflowDocument) else definition_of(workflow)
        steps = {str(step.get("id")): step for step in data.get("steps") or ()}
        needs = {name: step.get("depends_on") or () for name, step in steps.items()}
        return cls(str(data.get("name") or ""), needs, steps)

    @classmethod
    def from_dag(cls, dependencies: Mapping[str, Iterable[str]], name: str = "workflow") -> WorkflowGraph:
        """Return the graph of ``{step: what it depends on}``. Raises ``WorkflowError`` for unknown names and cycles."""
        return cls(name, dependencies, {})

    @property
    def nodes(self) -> list[str]:
        """The ids of the steps."""
        return list(self._graph.dependencies)

    @cached_property
    def edges(self) -> list[GraphEdge]:
        """The dependencies, those of one step after those of the step before it."""
        return [
            GraphEdge(need, step, self._labels.get(need, {}).get(step, ""))
            for step, needs in self._graph.dependencies.items()
            for need in needs
        ]

    @property
    def roots(self) -> list[str]:
        """The steps that depend on nothing."""
        return [step for step, needs in self._graph.dependencies.items() if not needs]

    @property
    def leaves(self) -> list[str]:
        """The steps that nothing depends on."""
        return [step for step, after in self._graph.dependents.items() if not after]

    @property
    def layers(self) -> list[list[str]]:
        """The steps that run at the same time, layer by layer; ids of one layer in alphabetical order."""
        return [list(layer) for layer in self._graph.layers]

    def critical_path(self) -> list[str]:
        """Return the longest chain of dependencies, counted in steps; of several, the one that comes first in the file."""
        best: dict[str, tuple[str, ...]] = {}
        for layer in self._graph.layers:
            for step in layer:
                before = _longest(best[need] for need in self._graph.dependencies[step])
                best[step] = (*before, step)
        return list(_longest(best[step] for step in self.nodes))

    def all_paths(self) -> Iterator[list[str]]:
        """Yield every path from a root to a leaf. There may be exponentially many: take as many as you need."""
        todo: list[tuple[str, ...]] = [(root,) for root in reversed(self.roots)]
        while todo:
            path = todo.pop()
            after = self._graph.dependents[path[-1]]
            if not after:
                yield list(path)
            todo.extend((*path, step) for step in reversed(after))

    def prime_paths(self, max_paths: int = MOST_PATHS) -> list[list[str]]:
        """Return the paths without repeated steps that are part of no longer one: what a test suite has to cover.

        Without cycles these are the paths from roots to leaves. Raises ``WorkflowError`` for more than ``max_paths``.
        """
        found = list(islice(self.all_paths(), max_paths + 1))
        if len(found) > max_paths:
            raise WorkflowError(f"workflow `{self.name}` has more than {max_paths} prime paths; raise `max_paths`")
        return found

    def get_step_definition(self, step_id: str) -> dict[str, Any]:
        """Return a step as it stands in the file, as a copy. Raises ``KeyError`` for an unknown id; empty for a bare graph."""
        if step_id not in self._graph.dependencies:
            raise KeyError(step_id)
        copy: dict[str, Any] = plain(self._steps.get(step_id, {}), step_id)
        return copy

    def to_dict(self) -> dict[str, Any]:
        """Return the graph as plain data: `name`, `nodes`, `edges`, `layers`."""
        return {
            "name": self.name,
            "nodes": [{"id": step, "type": self._type(step)} for step in self.nodes],
            "edges": [edge._asdict() for edge in self.edges],
            "layers": self.layers,
        }

    def to_dot(self) -> str:
        """Return the graph in the DOT language of Graphviz."""
        return dot(self._picture)

    def to_mermaid(self) -> str:
        """Return the graph as a Mermaid flowchart."""
        return mermaid(self._picture)

    def to_networkx(self) -> Any:
        """Return a ``networkx.DiGraph``: nodes with `type`, edges with `label`. Raises ``UsageError`` if networkx isn't installed."""
        try:
            networkx: Any = import_module("networkx")
        except ModuleNotFoundError:
            raise UsageError("`to_networkx` needs networkx; install it with `pip install networkx`") from None
        found: Any = networkx.DiGraph(name=self.name)
        found.add_nodes_from((step, {"type": self._type(step)}) for step in self.nodes)
        found.add_edges_from((edge.source, edge.target, {"label": edge.label}) for edge in self.edges)
        return found

    def to_pnml(self) -> str:
        """Return the graph as a Petri net in PNML (ISO/IEC 15909-2, place/transition net).

        A step is a transition. Each dependency is a place between two of them; all branches of a router take from one place, so that
        one of them fires. A root takes from a marked place, a leaf ends in a place of its own.
        """
        return _pnml(self)

    @cached_property
    def _labels(self) -> Mapping[str, Mapping[str, str]]:
        return {name: branch_labels(step) for name, step in self._steps.items() if step.get("type") == "router"}

    @cached_property
    def _picture(self) -> drawing.Picture:
        layer_of = self._graph.layer_of
        nodes = sorted(self.nodes, key=lambda step: layer_of[step])
        return drawing.Picture(
            self.name,
            tuple(
                drawing.Node(step, self._type(step), layer_of[step], detail_of(self._steps.get(step, {})))
                for step in nodes
            ),
            tuple(drawing.Edge(e.source, e.target, "branch" if e.label else "plain", e.label) for e in self.edges),
        )

    def _type(self, step: str) -> str:
        return str(self._steps.get(step, {}).get("type") or "")

    def is_router(self, step: str) -> bool:
        """Tell whether a step is a router."""
        return self._type(step) == "router"


def _longest(paths: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    found: tuple[str, ...] = ()
    for path in paths:
        if len(path) > len(found):
            found = path
    return found


def _pnml(graph: WorkflowGraph) -> str:
    ElementTree.register_namespace("", PNML)
    root = ElementTree.Element(f"{{{PNML}}}pnml")
    net = _part(root, "net", id="net", type="http://www.pnml.org/version-2009/grammar/ptnet")
    _name(net, graph.name)
    page = _part(net, "page", id="page")
    transitions = {step: f"t{number}" for number, step in enumerate(graph.nodes)}
    places: dict[tuple[str, str], str] = {}
    arcs: list[tuple[str, str]] = []

    def place(key: tuple[str, str], name: str, marked: bool = False) -> str:
        if key not in places:
            places[key] = f"p{len(places)}"
            found = _part(page, "place", id=places[key])
            _name(found, name)
            if marked:
                _part(_part(found, "initialMarking"), "text").text = "1"
        return places[key]

    for step, key in transitions.items():
        _name(_part(page, "transition", id=key), step)
    for step in graph.roots:
        arcs.append((place(("", step), f"start of {step}", marked=True), transitions[step]))
    made: set[tuple[str, str]] = set()
    for edge in graph.edges:
        choice = graph.is_router(edge.source)
        between = place(
            (edge.source, "" if choice else edge.target),
            f"choice of {edge.source}" if choice else f"{edge.source} to {edge.target}",
        )
        for arc in ((transitions[edge.source], between), (between, transitions[edge.target])):
            if arc not in made:
                made.add(arc)
                arcs.append(arc)
    for step in graph.leaves:
        arcs.append((transitions[step], place((step, " "), f"end of {step}")))
    for number, (source, target) in enumerate(arcs):
        _part(page, "arc", id=f"a{number}", source=source, target=target)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _part(parent: ElementTree.Element, tag: str, **attributes: str) -> ElementTree.Element:
    return ElementTree.SubElement(parent, f"{{{PNML}}}{tag}", attributes)


def _name(parent: ElementTree.Element, text: str) -> None:
    # XML has no way to write control characters.
    _part(_part(parent, "name"), "text").text = "".join(char if char.isprintable() else " " for char in text)
