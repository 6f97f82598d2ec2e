"""The outline of a file: names, what they are, and where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from agentloom.analysis.analyze import analyze
from agentloom.analysis.context import Context
from agentloom.ide.folding import folds
from agentloom.ide.outline import MOST_SYMBOLS, Symbol, outline
from agentloom.text import Source
from tests.analysis.checking import A, H, check
from tests.ide.test_colour import TYPED

INLINE = (
    "  - id: sub\n    type: subworkflow\n    workflow_inline:\n      name: k\n      state: {n: 1}\n      steps:\n"
    "        - {id: q, type: tool, tool_name: echo}\n"
)


def drawn(symbols: Iterable[Symbol], depth: int = 0) -> Iterator[str]:
    """Yield a line for each symbol: indented name, kind, detail."""
    for symbol in symbols:
        yield f"{'  ' * depth}{symbol.name} {symbol.kind} {symbol.detail}".rstrip()
        yield from drawn(symbol.children, depth + 1)


def every(symbols: Iterable[Symbol]) -> Iterator[Symbol]:
    for symbol in symbols:
        yield symbol
        yield from every(symbol.children)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("# hi\n", []),
        ("- [\n", []),
        ("config: {model: m, sandbox: {enabled: true}}\n", ["config block", "  model key m", "  sandbox key"]),
        (
            "state:\n  user: {name: Ann, tags: [a]}\n  n: 3\n",
            ["state block", "  user state", "    name state Ann", "    tags state", "  n state 3"],
        ),
        (
            "agents:\n  r: ./r.agent.yaml\n  w:\n    system_prompt: hi\n    tools: [echo, {name: http_request}]\n",
            ["agents block", "  r agent ./r.agent.yaml", "  w agent", "    http_request tool"],
        ),
        (H + A, ["steps block", "  a step llm_call"]),
        (H + A + A, ["steps block", "  a step llm_call", "  a step llm_call"]),
        (H + "  - type: router\n", ["steps block", "  step 1 step router"]),
        (H + A + "  - na\n", ["steps block", "  a step llm_call", "  step 2 step"]),
        (H + A + "  -\n", ["steps block", "  a step llm_call"]),
        (H + "  - id: b\n    type: wrong\n", ["steps block", "  b step wrong"]),
        (
            H + "  - id: r\n    type: router\n    conditions:\n      - {expression: state.x, target: a}\n      - {}\n",
            ["steps block", "  r step router", "    state.x condition a", "    condition condition"],
        ),
        (
            H + "  - {id: a, type: llm_call, attachments: [{source: x.png, type: pdf}], tools: [{name: t}]}\n",
            ["steps block", "  a step llm_call", "    x.png file pdf", "    t tool"],
        ),
        (
            H + INLINE,
            [
                "steps block",
                "  sub step subworkflow",
                "    state block",
                "      n state 1",
                "    steps block",
                "      q step tool",
            ],
        ),
        (
            H + "  - &b {id: a, type: llm_call, prompt: hi}\n  - *b\n",
            ["steps block", "  a step llm_call", "  a step llm_call"],
        ),
    ],
)
def test_what_is_listed(text: str, lines: list[str]) -> None:
    """Each kind of name, in written order, also in files with duplicate ids, half-typed steps and no steps at all."""
    assert list(drawn(outline(check(text)).symbols)) == lines


def test_names_and_wholes() -> None:
    """The name is what is selected, inside the quotes; the whole ends with the last value."""
    text = 'name: w\nsteps:\n  - id: "é😀"\n    type: llm_call\n    prompt: |\n      hi\n\n\n  # next\n  - id: b\n'
    (steps,) = outline(check(text)).symbols
    one, two = steps.children
    assert [text[slice(*symbol.name_span)] for symbol in (steps, one, two)] == ["steps", "é😀", "b"]
    assert text[slice(*one.span)] == 'id: "é😀"\n    type: llm_call\n    prompt: |\n      hi'
    assert text[slice(*two.span)] == "id: b"
    assert steps.span.end == two.span.end


def test_an_aliased_step_stands_where_the_alias_is() -> None:
    """The second symbol is the alias; it has no parts, which stand at the anchor."""
    text = H + "  - &b {id: a, type: router, conditions: [{expression: state.x, target: c}]}\n  - *b\n"
    (steps,) = outline(check(text)).symbols
    one, two = steps.children
    assert (text[slice(*two.span)], two.children, len(one.children)) == ("*b", (), 1)


def test_a_merged_id_is_selected_inside_the_step() -> None:
    """The name of a step whose id came through `<<` is the alias that brought it in."""
    text = "state: &d {id: a, type: llm_call}\nsteps:\n  - <<: *d\n    prompt: hi\n"
    (step,) = outline(check(text)).symbols[-1].children
    assert (step.name, text[slice(*step.name_span)]) == ("a", "*d")


def test_an_agent_file_is_one_agent() -> None:
    """Its tools are its parts."""
    text = "system_prompt: hi\nname: scout\ntools: [{name: http_request}]\n"
    found = outline(analyze(Source("untitled:x", text), Context(), None, "agent"))
    assert list(drawn(found.symbols)) == ["scout agent", "  http_request tool"]
    nameless = outline(analyze(Source("/x/finder.agent.yaml", "system_prompt: hi\n"), Context(), None, "agent"))
    assert list(drawn(nameless.symbols)) == ["finder agent"]


@pytest.mark.parametrize("typed", TYPED)
def test_whatever_is_half_typed_between_two_steps(typed: str) -> None:
    """Every name stays, and so does the number of folds around them; at most the step that is being typed comes in."""
    for path in sorted(Path("examples").glob("*.yaml"))[::3]:
        text = path.read_text(encoding="utf-8")
        document, lines = check(text), text.split("\n")
        before = Counter((symbol.name, symbol.kind) for symbol in every(outline(document).symbols))
        heads = {lines[fold.first] for fold in folds(document)}
        for step in document.steps:
            at = document.lines.line_of(step.place(step.facts.node.span).end) + 1
            broken = [*lines[:at], typed, *lines[at:]]
            found = check("\n".join(broken))
            after = Counter((symbol.name, symbol.kind) for symbol in every(outline(found).symbols))
            more = after - before
            assert not before - after, step.id
            assert sum(more.values()) == (typed == "  - id"), (step.id, more)
            assert heads <= {broken[fold.first] for fold in folds(found)}, step.id


def test_case_five_thousand_steps() -> None:
    """Editor case: 20–50k lines freeze the editor. The number of symbols is limited; steps go before what stands in them."""
    step = "  - {{id: s{0}, type: llm_call, prompt: hi, tools: [{{name: file_read}}]}}\n"
    document = check("state: {x: 1}\nsteps:\n" + "".join(step.format(n) for n in range(5_000)))
    found = outline(document)
    assert len(list(every(found.symbols))) == MOST_SYMBOLS + 2  # and the two blocks around
    assert found.left_out == 5_001
    assert [symbol.kind for symbol in found.symbols[-1].children] == ["step"] * 5_000
    few = outline(document, 100)
    assert (len(few.symbols[-1].children), few.left_out) == (100, 4_900 + 1 + 100)


def test_every_example_is_well_nested() -> None:
    """Names lie in their wholes, wholes in those of their parents, and nothing is left out or empty."""
    files = sorted(Path("examples").glob("*.yaml"))
    assert files
    for path in files:
        text = path.read_text(encoding="utf-8")
        found = outline(analyze(Source(str(path), text), Context()))
        assert found.left_out == 0
        for symbol in every(found.symbols):
            assert symbol.name
            assert symbol.span.start <= symbol.name_span.start < symbol.name_span.end <= symbol.span.end
            for child in symbol.children:
                assert symbol.span.start <= child.span.start
                assert child.span.end <= symbol.span.end
