"""Features that look at whole documents, over texts of every kind and state: none raises, none points nowhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import pytest

from agentloom.analysis.analyze import AnalysisCache, analyze
from agentloom.analysis.context import Context
from agentloom.analysis.document import WorkflowDocument
from agentloom.ide.colour.document import document_tokens, range_tokens
from agentloom.ide.folding import folds
from agentloom.ide.hierarchy import callers_at, incoming, outgoing
from agentloom.ide.hints import hints
from agentloom.ide.links import links
from agentloom.ide.outline import Symbol, outline
from agentloom.ide.selection import selections
from agentloom.ide.workspace_symbols import symbols_of
from agentloom.text import Source, Span
from tests.analysis.checking import A, H

T = TypeVar("T")
INLINE = (
    "  - id: s\n    type: subworkflow\n    workflow_inline: &w\n      state: {k: '{x'}\n      steps:\n        - {id: q, type: tool, "
    'tool_args: {u: state.a, v: "\\u00e9{state.b[0]!r:>5}\\\n  {x}"}}\n        - *nope\n'
)
ROUTER = "  - id: r\n    type: router\n    conditions:\n      - expression: >-\n          len(state.x) > 2 and\n          'é' in steps.a.output\n        target: a\n"
FLOW = '{name: w, state: {a: 1}, steps: [{id: a, type: llm_call, prompt: "{state.a} 😀 {"}, {id: b, <<: [*x]}]}\n'
ANCHORS = (
    "agents: &g {r: &d {system_prompt: hi {x}, tools: [echo, {name: t}]}}\n"
    "steps:\n  - &b\n    id: a\n    type: llm_call\n    prompt: &p |\n      {state.x}\n\n      {y}\n  - *b\n  - <<: *b\n    id: c\n    prompt: *p\n  - <<: *g\n"
)
TEXTS = {
    "inline": H + A + INLINE,
    "router": "# agentloom\n#region\n" + H + ROUTER + A + "# endregion\n",
    "flow": FLOW,
    "anchors": ANCHORS,
    "second": H + A + "---\nfoo: 1\n",
    "tabs": H + "  - id: a\n\ttype: tool\n\ttool_args:\n\t\tx: '{state.y}'\n",
    "wide": "\ufeff# 😀\n"
    + H
    + "  - {id: é, type: tool, tool_name: \"\\x65cho\", depends_on: [b, 'c''d'], output: a.b[0]}\n",
    "tries": "config: {max_retries: 2, model: x}\n"
    + H
    + A
    + "    retry:\n      max_retries: 1\n"
    + A
    + "    retry : &r {jitter: no}\n"
    + A
    + "    retry: *r\n",
    "agent": "system_prompt: |\n  hi {state.x}\ntools: [{agent: x}, {name: t}]\nloop_policy: {exit_condition: \"'x' in reply\"}\n",
}
ENDS: dict[str, Callable[[str], str]] = {
    "lf": lambda text: text,
    "crlf": lambda text: text.replace("\n", "\r\n"),
    "cr": lambda text: text.replace("\n", "\r"),
}


class Alone:
    """A workspace without other files."""

    def documents(self, mentioning: str = "") -> Iterator[WorkflowDocument]:
        return iter(())

    def each(self, function: Callable[[WorkflowDocument], T]) -> Iterator[T]:
        return iter(())

    def document(self, path: Path) -> WorkflowDocument | None:
        return None


def every(symbols: Iterable[Symbol]) -> Iterator[Symbol]:
    for symbol in symbols:
        yield symbol
        yield from every(symbol.children)


def look(document: WorkflowDocument) -> None:
    """Ask everything of a document; assert what holds of every answer."""
    size, count = len(document.source.text), len(document.lines)
    for symbol in every(outline(document).symbols):
        assert symbol.name
        assert 0 <= symbol.span.start <= symbol.name_span.start <= symbol.name_span.end <= symbol.span.end <= size
    for found in symbols_of(document):
        assert found.name
        assert 0 <= found.location.span.start <= found.location.span.end <= size
    firsts = [fold.first for fold in folds(document)]
    assert firsts == sorted(set(firsts))
    assert all(0 <= fold.first < fold.last < count for fold in folds(document))
    spans = [link.span for link in links(document)]
    assert all(one.end <= other.start for one, other in pairwise(spans))
    tokens = document_tokens(document)
    assert all(one.end <= other.start for one, other in pairwise(tokens))
    for token in tokens:
        assert 0 <= token.start < token.end <= size
        assert not {"\n", "\r"} & set(document.source.text[token.start : token.end])
    assert range_tokens(document, Span(0, size)) == tokens
    found = hints(document, Span(0, size), ("layer", "model", "attempts"))
    assert [hint.offset for hint in found] == sorted(hint.offset for hint in found)
    assert all(0 < hint.offset <= size and hint.label for hint in found)
    alone = Alone()
    for offset in range(0, size + 1, 7):
        for caller in callers_at(document, offset):
            assert caller.name
            assert 0 <= caller.place.span.start <= caller.place.span.end <= size
            for look_for in (incoming, outgoing):
                for call in look_for(document, caller.kind, caller.trail, alone):
                    assert all(0 <= span.start <= span.end <= size for span in call.spans)
        grown = selections(document, offset)
        assert grown[-1] == (0, size)
        assert all(o.start <= i.start <= i.end <= o.end and i != o for i, o in pairwise(grown))
        assert all(span.contains(offset) for span in grown)


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("name", TEXTS)
def test_as_if_typed(name: str, ends: str) -> None:
    """Prefixes, and texts with a line left out, one after the other as in an editor."""
    text, cache = ENDS[ends](TEXTS[name]), AnalysisCache()
    lines = text.splitlines(keepends=True)
    shorter = ("".join(lines[:at] + lines[at + 1 :]) for at in range(len(lines)))
    for piece in (*(text[:end] for end in range(len(text) % 5, len(text) + 1, 5)), *shorter, text):
        look(analyze(Source("untitled:x", piece), Context(), cache, "agent" if name == "agent" else "workflow"))


def test_examples() -> None:
    """Every example, whole."""
    files = sorted(Path("examples").rglob("*.yaml"))
    assert files
    for path in files:
        look(analyze(Source(str(path), path.read_text(encoding="utf-8")), Context()))
