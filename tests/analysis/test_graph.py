"""Layers, reach and cycles."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentloom.analysis.graph import build_graph, find_cycles


def test_layers_are_the_first_possible_and_alphabetical() -> None:
    """A step joins the first layer after all its dependencies; layers list ids in alphabetical order."""
    graph = build_graph(
        {"publish": ["summarize", "classify"], "summarize": ["fetch"], "fetch": [], "classify": ["fetch"]}
    )

    assert graph.layers == (("fetch",), ("classify", "summarize"), ("publish",))
    assert graph.layer_of["publish"] == 2
    assert graph.dependents["fetch"] == ("summarize", "classify")


def test_unknown_and_own_names_make_no_edges() -> None:
    """They are reported elsewhere; the graph of the rest stands."""
    graph = build_graph({"a": ["nope", "a"], "b": ["a", "a"]})

    assert graph.layers == (("a",), ("b",))
    assert graph.dependencies["b"] == ("a",)


def test_cycles_leave_the_rest_in_layers() -> None:
    """Steps on a ring or behind one are in no layer."""
    graph = build_graph({"a": ["b"], "b": ["a"], "c": ["a"], "d": []})

    assert graph.layers == (("d",),)
    assert not graph.is_upstream("a", "c")


def test_the_case_of_two_cycles_and_an_unknown_name() -> None:
    """Case "cycle missed; downstream blamed": two loops, nothing on `d`, unknown names in no loop."""
    needs = {"r": [], "a": ["b"], "b": ["c"], "c": ["a"], "d": ["a"], "e": ["f"], "f": ["e"], "g": ["nope"]}

    assert find_cycles(needs) == [("a", "b", "c"), ("e", "f")]


def test_two_loops_through_one_step_are_both_found() -> None:
    """Taking out the first closing edge must not hide the second loop."""
    assert find_cycles({"a": ["b", "c"], "b": ["a"], "c": ["a"]}) == [("a", "b"), ("a", "c")]


def test_long_chain_and_long_loop_do_not_recurse() -> None:
    """Thousands of steps in a row are fine."""
    chain = {f"s{i}": [f"s{i - 1}"] if i else [] for i in range(5_000)}
    assert len(build_graph(chain).layers) == 5_000
    assert find_cycles(chain) == []
    ring = {**chain, "s0": ["s4999"]}
    assert [len(loop) for loop in find_cycles(ring)] == [5_000]


_GRAPHS = st.integers(1, 9).flatmap(
    lambda n: st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=25).map(
        lambda edges: {str(i): [str(b) for a, b in edges if a == i] for i in range(n)}
    )
)


@given(_GRAPHS)
def test_loops_are_loops_and_closing_them_all_leaves_none(needs: dict[str, list[str]]) -> None:
    """Each loop follows real edges and starts at its first step in the file; without the closing edges nothing is left."""
    loops = find_cycles(needs)
    order = list(needs)
    for loop in loops:
        assert loop[0] == min(loop, key=order.index)
        assert len(set(loop)) == len(loop)
        for step, need in zip(loop, (*loop[1:], loop[0]), strict=True):
            assert need in needs[step]
    opened = {name: list(found) for name, found in needs.items()}
    for loop in loops:
        opened[loop[-1]] = [need for need in opened[loop[-1]] if need != loop[0]]
    assert len(build_graph(opened).layer_of) == len(needs)


@given(_GRAPHS)
def test_upstream_agrees_with_a_walk(needs: dict[str, list[str]]) -> None:
    """The bit sets say what a walk over the edges says, for every step that is in a layer."""
    graph = build_graph(needs)
    for name in graph.layer_of:
        for other in needs:
            assert graph.is_upstream(other, name) == (other in graph.ancestors(name))
        assert graph.descendants(name) == {o for o in needs if name in graph.ancestors(o)}
