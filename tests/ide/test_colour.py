"""Semantic tokens: which words get one, exactly where, and that they stay when something else is being typed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from agentloom.analysis.analyze import AnalysisCache, analyze
from agentloom.analysis.context import Context
from agentloom.analysis.document import WorkflowDocument
from agentloom.ide.colour.document import BREATH, TokenMemory, document_tokens, range_tokens, stretches
from agentloom.text import Source, Span
from tests.analysis.checking import A, H, check

P = "  - id: a\n    type: llm_call\n    prompt: "
HEAD = ["step_definition a", "step_type llm_call"]
READ = ["brace {", "root state", "state x", "brace }"]
E = "  - {{id: r, type: router, conditions: [{{expression: {}, target: b}}]}}\n"


def told(document: WorkflowDocument) -> list[str]:
    text = document.source.text
    return [f"{kind} {text[start:end]}" for start, end, kind in document_tokens(document)]


def inside(text: str) -> list[str]:
    """Return the tokens of a step `a` behind its id and type."""
    found = told(check(text))
    assert found[:2] == HEAD
    return found[2:]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("hi\n", []),
        ("'{state.x}'\n", READ),
        ("'{x}'\n", ["brace {", "state x", "brace }"]),
        (
            "'{state.x.y[0].z!r:>8} b'\n",
            [*READ[:3], "property y", "number 0", "property z", "format !r", "format >8", "brace }"],
        ),
        ("'{state.x:.2f}'\n", [*READ[:3], "format .2f", "brace }"]),
        (
            "'{state.steps.b.output.c}'\n",
            ["brace {", "root state", "root steps", "step b", "property output", "property c", "brace }"],
        ),
        ("'{{x}} {state.x}'\n", READ),
        ("'{\"a\": {state.x}}'\n", READ),
        # half typed
        ("'a {state.x'\n", READ[:3]),
        ("'a {'\n", ["brace {"]),
        ("'{state.'\n", ["brace {", "root state"]),
        # every way to write a text
        ("'it''s {state.x}'\n", READ),
        ('"\\u00e9\\n\\t{state.x}"\n', READ),
        ('"\\x7bstate.\\u0078}"\n', ["brace \\x7b", "root state", "state \\u0078", "brace }"]),
        ("|\n      é 😀 {state.x}\n\n      {state.x}\n", READ * 2),
        (">2-\n      one\n      {state.x} two\n        {state.x}\n", READ * 2),
        ("one\n      {state.x}\n\n      two\n", READ),
        ("'one\n      {state.x}\n\n      two'\n", READ),
        ('"one\\\n      {state.x}\\\n      two"\n', READ),
        # over lines: a piece for each
        (">\n      {state.x\n      y}\n", ["brace {", "root state", "state x", "state y", "brace }"]),
        ('"{state.\\\n      x}"\n', READ),
    ],
)
def test_templates(value: str, expected: list[str]) -> None:
    """Braces, roots, path segments, conversions and formats, in every style of scalar."""
    assert inside(H + P + value) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("state.x == 'a'", ["root state", "state x", "operator ==", "text 'a'"]),
        ("state['x'].y > 1", ["root state", "state x", "property y", "operator >", "number 1"]),
        ("state.x.y[0]['k']", ["root state", "state x", "property y", "number 0", "property k"]),
        (
            "not len(state.x) and steps.b.output in ['c', state.d]",
            [
                "keyword not",
                "function len",
                "root state",
                "state x",
                "keyword and",
                "root steps",
                "step b",
                "property output",
                "keyword in",
                "text 'c'",
                "root state",
                "state d",
            ],
        ),
        ("steps['b'].output.lower()", ["root steps", "step b", "property output", "method lower"]),
        ("state.steps.b.output", ["root state", "root steps", "step b", "property output"]),
        ("state.get('k', 'x')", ["root state", "method get", "state k", "text 'x'"]),
        ("state.x.split('k')", ["root state", "state x", "method split", "text 'k'"]),
        ("True if nope(1) else other", ["keyword True", "keyword if", "number 1", "keyword else"]),
        ("(state.x)['k']", ["root state", "state x", "text 'k'"]),
        ("-1.5e3 + 0x1f", ["operator -", "number 1.5e3", "operator +", "number 0x1f"]),
        ("state.x ==", ["root state", "state x", "operator =="]),
        ("state. == 1", ["root state", "operator ==", "number 1"]),
        ("state.x == 'a", ["root state", "state x", "operator =="]),
    ],
)
def test_expressions(expression: str, expected: list[str]) -> None:
    """Roots, keys, operators, functions and literals; half-typed ones as far as they can be read."""
    text = H + E.format(f'"{expression}"')
    assert told(check(text)) == ["step_definition r", "step_type router", *expected, "step b"]


def test_expressions_over_lines() -> None:
    """A text in an expression that goes over lines is coloured line by line, without the indentation."""
    text = (
        H
        + "  - id: r\n    type: router\n    conditions:\n      - expression: >-\n          state.x\n          == 'a\n          b'\n"
    )
    assert told(check(text))[2:] == ["root state", "state x", "operator ==", "text 'a", "text b'"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "config: {provider: openai, model: 'gpt-4o'}\nstate: {user: {name: 1}, \"é\\u0041\": 2}\nagents: {w: {system_prompt: '{x}', "
            "model: m, tools: [echo, {agent: w}]}}\nstate_schema: {user.*: {redact: true}}\n",
            [
                "provider openai",
                "model gpt-4o",
                "state_definition user",
                "property name",
                "state_definition é\\u0041",
                "agent_definition w",
                "brace {",
                "state x",
                "brace }",
                "model m",
                "tool echo",
                "agent w",
                "state user.*",
            ],
        ),
        (
            H
            + "  - {id: a, type: tool, depends_on: ['b', c], tool_name: echo, tool_args: {u: {v: state.x, w: '{state.y}'}}, output: a.b[0]}\n",
            [
                "step_definition a",
                "step_type tool",
                "step b",
                "step c",
                "tool echo",
                "parameter u",
                "root state",
                "state x",
                "brace {",
                "root state",
                "state y",
                "brace }",
                "state_write a",
                "property b",
                "number 0",
            ],
        ),
        (
            H + "  - {id: a, type: agent, agent: w, conversation: c.d, model: m}\n",
            ["step_definition a", "step_type agent", "agent w", "state c", "property d"],
        ),
        (
            H + "  - {id: s, type: subworkflow, input: {k: '{state.x}'}, return_keys: [z]}\n",
            [
                "step_definition s",
                "step_type subworkflow",
                "state k",
                "brace {",
                "root state",
                "state x",
                "brace }",
                "state z",
            ],
        ),
        (
            H + "  - {id: a, type: wrong, depends_on: [b], prompt: '{x}'}\n",
            ["step_definition a", "step b", "brace {", "state x", "brace }"],
        ),
        (H + "  - {id: a, id: b, depends_on: [c]}\n", ["step_definition a", "step_definition b", "step c"]),
        (H + "  - {id: 5, type: tool}\n", ["step_type tool"]),
        # keys that are half typed or misspelled
        (
            H + "  - {id: a, type: llm_call, prom: '{x}', dependson: [b]}\n",
            [*HEAD, "brace {", "state x", "brace }", "step b"],
        ),
        (H + "  - {id: a, type: llm_call, other: '{x}', '': '{x}'}\n", HEAD),
        ("", []),
        ("- [\n", []),
    ],
)
def test_names(text: str, expected: list[str]) -> None:
    """Keys of the state, steps, agents, tools, models: where they are defined, and where they are meant."""
    assert told(check(text)) == expected


def test_agent_files() -> None:
    """Patterns, tools and the exit condition."""
    text = "system_prompt: '{x}'\ntools: [echo]\nloop_policy: {exit_condition: \"'x' in reply\"}\nconstraints: {forbidden_patterns: [a+]}\n"
    found = told(analyze(Source("untitled:x", text), Context(), None, "agent"))
    assert found[3:] == ["tool echo", "text 'x'", "keyword in", "root reply", "regex a+"]


def test_anchors_aliases_and_merged_keys() -> None:
    """What stands behind an alias is coloured once, where it stands."""
    text = (
        H
        + "  - &b {id: a, type: llm_call, prompt: &p '{state.x}'}\n  - *b\n  - {<<: *b, id: c}\n  - {id: d, type: llm_call, prompt: *p}\n"
    )
    found = told(check(text))
    assert found == [*HEAD, *READ, "step_definition c", "step_definition d", "step_type llm_call"]


def test_workflows_written_in_place() -> None:
    """Their state and steps are coloured like others."""
    inner = (
        "      state: {k: 1}\n      steps:\n        - {id: q, type: llm_call, prompt: '{state.x}', depends_on: [z]}\n"
    )
    text = H + "  - id: s\n    type: subworkflow\n    workflow_inline:\n" + inner
    assert told(check(text))[2:] == ["state_definition k", "step_definition q", "step_type llm_call", *READ, "step z"]


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_line_ends_and_wide_characters(ends: str) -> None:
    """The same words in files with a mark, with wide characters, with other line ends."""
    text = "\ufeff# 😀\n" + H + P + "|\n      😀 {state.x}\n      {state.x}\n" + A
    assert told(check(text.replace("\n", ends))) == [*HEAD, *READ, *READ, *HEAD]


def lines_of(text: str) -> dict[str, list[str]]:
    """Return the tokens of each line by the line's text; lines are told apart by number where their text repeats."""
    document = check(text)
    found: dict[str, list[str]] = {}
    lines = text.split("\n")
    for start, end, kind in document_tokens(document):
        number = document.lines.line_of(start)
        line = lines[number]
        key = f"{line}#{lines[:number].count(line)}"
        found.setdefault(key, []).append(f"{kind} {start - document.lines.starts[number]} {text[start:end]}")
    return found


def test_case_a_half_typed_line() -> None:
    """Editor case: while a line is half typed the whole buffer loses highlighting. The tokens of all other lines are unchanged."""
    good = H + A + P + "'{state.x}'\n"
    assert lines_of(H + A + "    dep\n" + P + "'{state.x}'\n") == lines_of(good)


TYPED = (
    "    dep",
    "    depends_on: [a,",
    "    prompt: '{state.",
    "    output:",
    '    "',
    "  - ",
    "  - id",
    "    retry: {",
    "\t",
    "x",
    "    - [",
)


@pytest.mark.parametrize("typed", TYPED)
def test_whatever_is_half_typed_between_two_steps(typed: str) -> None:
    """Every other example, with a half-typed line after each step: all other lines keep their tokens."""
    for path in sorted(Path("examples").glob("*.yaml"))[::2]:
        text = path.read_text(encoding="utf-8")
        before = lines_of(text)
        lines = text.split("\n")
        document = check(text)
        for step in document.steps:
            span = step.place(step.facts.node.span)
            at = document.lines.line_of(span.end) + 1
            broken = "\n".join([*lines[:at], typed, *lines[at:]])
            after = {key: found for key, found in lines_of(broken).items() if not key.startswith(f"{typed}#")}
            assert after == before, (path.name, step.id)


def test_a_key_that_is_being_typed() -> None:
    """Every line of two examples cut down to the first letters of its key: all other lines keep their tokens.

    Left out are keys with lines of their own below, which mean nothing without it.
    """
    for name in ("app-localisation", "support-triage"):
        text = Path("examples", f"{name}.loom.yaml").read_text(encoding="utf-8")
        before, lines = lines_of(text), text.split("\n")
        for number, line in enumerate(lines):
            cut = len(line) - len(line.lstrip(" -")) + 1
            if line.rstrip().endswith((":", "|", ">-", "|-")) or not line.strip():
                continue
            typed = line[:cut]
            after = lines_of("\n".join([*lines[:number], typed, *lines[number + 1 :]]))
            gone = f"{line}#{lines[:number].count(line)}"
            assert counted(after, typed) == counted(before, typed) - Counter([shape(gone, before.get(gone, []))]), line


def shape(key: str, tokens: list[str]) -> tuple[str, ...]:
    return (key.rpartition("#")[0], *tokens)


def counted(found: dict[str, list[str]], typed: str) -> Counter[tuple[str, ...]]:
    """Return the lines and their tokens without their numbers, and without the line that is being typed."""
    return Counter(shape(key, tokens) for key, tokens in found.items() if not key.startswith(f"{typed}#"))


def test_a_type_that_is_being_typed() -> None:
    """A step whose type is half typed is coloured as before, but for the type."""
    for path in sorted(Path("examples").glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        before = [token for token in told(check(text)) if not token.startswith("step_type")]
        for type_ in ("llm_call", "router", "tool"):
            assert [
                token
                for token in told(check(text.replace(f"type: {type_}", "type: x")))
                if not token.startswith("step_type")
            ] == before


def test_ranges_are_parts_of_the_whole() -> None:
    """Of every stretch of a text exactly the tokens that touch it."""
    text = "config: {model: m}\n" + H.replace("name: w\n", "") + (P + "'{state.x}'\n") * 3
    document = check(text)
    every = document_tokens(document)
    memory = TokenMemory()
    for start in range(0, len(text), 9):
        span = Span(start, start + 40)
        expected = [token for token in every if token.start < span.end and token.end > span.start]
        assert range_tokens(document, span, memory) == expected


def test_long_work_takes_breaths() -> None:
    """While the tokens of many new steps are worked out, others get their turn; not when all is known already."""
    steps = "".join(A.replace("id: a", f"id: s{n}") for n in range(3 * BREATH + 1))
    document, memory, breaths = check(H + steps), TokenMemory(), []
    stretches(document, memory, lambda: breaths.append(memory.size))
    assert breaths == [BREATH, 2 * BREATH, 3 * BREATH]
    breaths.clear()
    stretches(document, memory, lambda: breaths.append(memory.size))
    assert breaths == []


def test_an_edit_costs_its_step() -> None:
    """Of a changed document, the tokens of the steps that stayed are those worked out before; no version is kept for ever."""
    cache, memory = AnalysisCache(), TokenMemory()
    steps = [A.replace("id: a", f"id: s{n}") for n in range(50)]
    for number in range(20):
        steps[7] = A.replace("hi", f"'{{state.x{number}}}'")
        document = analyze(Source("untitled:x", H + "".join(steps)), Context(), cache, "workflow")
        assert f"state x{number}" in [
            document.source.text[t.start : t.end] and f"{t.kind} {document.source.text[t.start : t.end]}"
            for t in document_tokens(document, memory)
        ]
        assert memory.size == 51
    for _ in range(100):
        document = analyze(Source("untitled:x", H + "".join(steps)), Context(), None, "workflow")
        range_tokens(document, Span(0, 10**6), memory)
    assert memory.size <= 4 * 51
