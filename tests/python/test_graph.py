"""The graph of a workflow for programs: nodes, edges, paths, and the forms of other tools."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from xml.etree import ElementTree

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentloom.api import GraphEdge, WorkflowError, WorkflowGraph, load_workflow, workflow
from agentloom.core.graph import PNML
from tests.conftest import ROOT


def branching() -> WorkflowGraph:
    """Return the graph of a small workflow with a router."""
    return WorkflowGraph.from_workflow(
        workflow("t")
        .add_llm_step("a", "x", output="a")
        .add_router_step("r", [("state.a == 'x'", "b"), ("state.a", "b")], "c", depends_on=["a"])
        .add_llm_step("b", "x", depends_on=["r"])
        .add_llm_step("c", "x", depends_on=["r"])
        .add_tool_step("d", "file_read", {"path": "f"}, depends_on=["c"])
        .build()
    )


def test_what_is_read_off() -> None:
    """Everything in the order of the file; a router's arrows say when."""
    graph = branching()
    assert graph.nodes == ["a", "r", "b", "c", "d"]
    assert graph.edges == [
        GraphEdge("a", "r"),
        GraphEdge("r", "b", "state.a == 'x' or state.a"),
        GraphEdge("r", "c", "default"),
        GraphEdge("c", "d"),
    ]
    assert (graph.roots, graph.leaves) == (["a"], ["b", "d"])
    assert graph.layers == [["a"], ["r"], ["b", "c"], ["d"]]
    assert graph.critical_path() == ["a", "r", "c", "d"]
    assert list(graph.all_paths()) == graph.prime_paths() == [["a", "r", "b"], ["a", "r", "c", "d"]]
    definition = graph.get_step_definition("d")
    assert definition == {
        "id": "d",
        "type": "tool",
        "depends_on": ["c"],
        "tool_name": "file_read",
        "tool_args": {"path": "f"},
    }
    definition["tool_args"]["path"] = "other"
    assert graph.get_step_definition("d")["tool_args"] == {"path": "f"}
    with pytest.raises(KeyError):
        graph.get_step_definition("e")


def test_a_typed_workflow_gives_the_same_graph() -> None:
    """From the document, and from the typed model of it."""
    document = load_workflow(ROOT / "examples" / "support-triage.loom.yaml")
    assert WorkflowGraph.from_workflow(document).to_dict() == WorkflowGraph.from_workflow(document.workflow).to_dict()


@pytest.mark.parametrize(
    ("dag", "said"),
    [
        ({"a": ["b"]}, "step `a` depends on `b`, which is not defined"),
        ({"a": ["a"]}, "step `a` depends on itself"),
        ({"a": ["b"], "b": ["a"]}, "steps depend on each other: a -> b -> a"),
    ],
)
def test_what_is_no_graph(dag: Mapping[str, list[str]], said: str) -> None:
    """Unknown names and cycles are refused in the words of the check."""
    with pytest.raises(WorkflowError, match="^" + said.replace("`", "`") + "$"):
        WorkflowGraph.from_dag(dag)


def test_too_many_paths_are_said() -> None:
    """Twenty diamonds have a million paths: none are left out silently, and the first are there at once."""
    dag: dict[str, list[str]] = {"s0": []}
    for n in range(20):
        dag |= {f"l{n}": [f"s{n}"], f"r{n}": [f"s{n}"], f"s{n + 1}": [f"l{n}", f"r{n}"]}
    graph = WorkflowGraph.from_dag(dag)
    with pytest.raises(WorkflowError, match="more than 10000 prime paths; raise `max_paths`"):
        graph.prime_paths()
    assert len(next(graph.all_paths())) == 41
    assert len(graph.critical_path()) == 41


@st.composite
def dags(draw: st.DrawFn) -> dict[str, list[str]]:
    """Make up a graph of a few steps, defined in any order."""
    size = draw(st.integers(1, 7))
    chosen = draw(st.sets(st.sampled_from([*combinations(range(size), 2)]) if size > 1 else st.nothing()))
    needs = {f"s{n}": [f"s{before}" for before, after in sorted(chosen) if after == n] for n in range(size)}
    return {name: needs[name] for name in draw(st.permutations([*needs]))}


@given(dags())
def test_against_networkx(dag: dict[str, list[str]]) -> None:
    """Edges, layers, the longest path and all paths are what another library says of the same graph."""
    graph = WorkflowGraph.from_dag(dag)
    other = graph.to_networkx()
    assert [*other.nodes] == graph.nodes
    assert {*other.edges} == {(edge.source, edge.target) for edge in graph.edges}
    assert graph.layers == [sorted(layer) for layer in networkx.topological_generations(other)]
    assert len(graph.critical_path()) == networkx.dag_longest_path_length(other) + 1
    assert networkx.is_path(other, graph.critical_path())
    expected = [
        path
        for root in graph.roots
        for leaf in graph.leaves
        for path in ([[root]] if root == leaf else networkx.all_simple_paths(other, root, leaf))
    ]
    assert sorted(graph.all_paths()) == sorted(expected)


class Net:
    """A Petri net as PNML tells it: what each transition takes and gives, and where the tokens are."""

    def __init__(self, text: str) -> None:
        root = ElementTree.fromstring(text.encode())
        page = root.find(f"{{{PNML}}}net/{{{PNML}}}page")
        assert page is not None
        self.names = {
            each.get("id"): each.findtext(f"{{{PNML}}}name/{{{PNML}}}text")
            for each in page
            if not each.tag.endswith("arc")
        }
        self.tokens = {
            place.get("id"): int(place.findtext(f"{{{PNML}}}initialMarking/{{{PNML}}}text") or 0)
            for place in page.iter(f"{{{PNML}}}place")
        }
        arcs = [(arc.get("source"), arc.get("target")) for arc in page.iter(f"{{{PNML}}}arc")]
        transitions = [each.get("id") for each in page.iter(f"{{{PNML}}}transition")]
        self.takes = {t: [source for source, target in arcs if target == t] for t in transitions}
        self.gives = {t: [target for source, target in arcs if source == t] for t in transitions}

    def fire(self, prefer: str = "") -> list[str]:
        """Fire whatever can until nothing can; of several, ``prefer`` first. Return the names in order."""
        done: list[str] = []
        while True:
            able = [t for t, places in self.takes.items() if all(self.tokens[p] for p in places)]
            if not able:
                return done
            chosen = next((t for t in able if self.names[t] == prefer), able[0])
            for place in self.takes[chosen]:
                self.tokens[place] -= 1
            for place in self.gives[chosen]:
                self.tokens[place] += 1
            done.append(str(self.names[chosen]))


@given(dags())
def test_the_petri_net_runs_like_the_workflow(dag: dict[str, list[str]]) -> None:
    """Every step fires once, none before what it depends on, and at the end the tokens lie behind the leaves."""
    graph = WorkflowGraph.from_dag(dag)
    net = Net(graph.to_pnml())
    fired = net.fire()
    assert sorted(fired) == sorted(dag)
    for edge in graph.edges:
        assert fired.index(edge.source) < fired.index(edge.target)
    assert sorted(str(net.names[p]) for p, n in net.tokens.items() if n) == sorted(
        f"end of {leaf}" for leaf in graph.leaves
    )


@pytest.mark.parametrize(("prefer", "fired"), [("b", ["a", "r", "b"]), ("c", ["a", "r", "c", "d"])])
def test_one_branch_of_a_router_fires(prefer: str, fired: list[str]) -> None:
    """All branches take the router's one token."""
    assert Net(branching().to_pnml()).fire(prefer) == fired


def test_odd_names_are_written_safely() -> None:
    """Quotes, angle brackets and control characters break no form."""
    graph = WorkflowGraph.from_dag({'a"<b>\\': [], "c\x01d": ['a"<b>\\']}, name="x & <y>")
    assert 'a\\"<b>\\\\' in graph.to_dot()
    assert "#quot;" in graph.to_mermaid()
    assert Net(graph.to_pnml()).fire() == ['a"<b>\\', "c d"]
