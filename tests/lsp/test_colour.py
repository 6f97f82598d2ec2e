"""Semantic tokens over the wire: the protocol's numbers, ranges, and what changed."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from agentloom.analysis.analyze import AnalysisCache, analyze
from agentloom.analysis.context import Context
from agentloom.ide.colour.document import document_tokens
from agentloom.text import LineTable, Source, Span
from agentloom_lsp.convert import Encoding, Places, Position
from agentloom_lsp.features.colour import CHUNK, LOOKS, Kept, difference, encode, encode_document
from agentloom_lsp.handshake import TOKEN_MODIFIERS, TOKEN_TYPES
from tests.lsp.peer import FULL, Local

URI = "file:///nowhere/flow.loom.yaml"
TEXT = (
    "\ufeff# 😀\r\nname: w\r\nsteps:\r\n  - {id: 'é😀', type: llm_call, prompt: \"😀é {state.x} 😀 {x:>3}\"}\r\n"
    "  - id: b\r\n    type: router\r\n    depends_on: ['é😀']\r\n    conditions:\r\n      - expression: |-\r\n          state['ü'] == '😀'\r\n"
    "            and len(state.x) > 1\r\n        target: c\r\n"
)
EXTRA = (
    "  - id: s\n    type: subworkflow\n    workflow_inline:\n      state: {k: 1}\n      steps:\n        - {id: q, type: tool, tool_args: {u: state.x}}\n"
    "    depends_on: [b]\n  - &m {id: m, type: llm_call, prompt: '{x}'}\n  - {<<: *m, id: o}\n  - *m\nagents: {w: {system_prompt: '{x}'}}\n"
)
WORDS = [
    "function.definition é😀",
    "type.defaultLibrary llm_call",
    "operator {",
    "variable.readonly.defaultLibrary state",
    "variable x",
    "operator }",
    "operator {",
    "variable x",
    "keyword >3",
    "operator }",
    "function.definition b",
    "type.defaultLibrary router",
    "function é😀",
    "variable.readonly.defaultLibrary state",
    "variable ü",
    "operator ==",
    "string '😀'",
    "keyword and",
    "function.defaultLibrary len",
    "variable.readonly.defaultLibrary state",
    "variable x",
    "operator >",
    "number 1",
    "function c",
]


def words(data: list[int], text: str, encoding: Encoding) -> Iterator[str]:
    """Yield type, modifiers and text of each token."""
    places = Places(LineTable(text), encoding)
    line = character = 0
    for at in range(0, len(data), 5):
        lines, characters, length, type_, modifiers = data[at : at + 5]
        line, character = line + lines, characters if lines else character + characters
        span = places.span(Position(line, character), Position(line, character + length))
        said = [name for number, name in enumerate(TOKEN_MODIFIERS) if modifiers >> number & 1]
        yield f"{'.'.join([TOKEN_TYPES[type_], *said])} {text[slice(*span)]}"


def ask(peer: Local, what: str, **more: Any) -> Any:
    return peer.request(f"textDocument/semanticTokens/{what}", {"textDocument": {"uri": URI}, **more})


@pytest.mark.parametrize("encoding", Encoding)
def test_every_encoding(encoding: Encoding) -> None:
    """Places and lengths in the client's units, behind wide characters, in a file with a mark and CRLF."""
    with Local() as peer:
        peer.initialize({**FULL, "general": {"positionEncodings": [encoding.value]}})
        peer.open(URI, TEXT)
        assert list(words(ask(peer, "full")["data"], TEXT, encoding)) == WORDS
        lines = {"start": {"line": 3, "character": 0}, "end": {"line": 4, "character": 0}}
        assert list(words(ask(peer, "range", range=lines)["data"], TEXT, encoding)) == WORDS[:10]
        assert peer.leave() == 0


def test_what_changed() -> None:
    """The edits of a delta make the new answer of the old one; an answer that isn't known any more is sent in full."""
    with Local() as peer:
        peer.initialize()
        peer.open(URI, TEXT)
        first = ask(peer, "full")
        again = ask(peer, "full/delta", previousResultId=first["resultId"])
        assert again["edits"] == []
        peer.change(URI, "\r\n  - {id: n, type: tool}\r\n", 3, 999, 4, 0)
        changed = ask(peer, "full/delta", previousResultId=again["resultId"])
        (edit,) = changed["edits"]
        data = list(first["data"])
        data[edit["start"] : edit["start"] + edit["deleteCount"]] = edit["data"]
        assert data == ask(peer, "full")["data"]
        assert len(edit["data"]) <= 15
        assert "data" in ask(peer, "full/delta", previousResultId=first["resultId"])
        assert ask(peer, "full/delta", previousResultId="")["data"] == data
        assert peer.leave() == 0


def test_case_a_half_typed_line() -> None:
    """Editor case: while a line is half typed the whole buffer loses highlighting. All other lines keep theirs."""
    text = "name: w\nsteps:\n  - id: a\n    type: llm_call\n    prompt: '{state.x}'\n"
    with Local() as peer:
        peer.initialize()
        peer.open(URI, text)
        before = ask(peer, "full")["data"]
        peer.change(URI, "    dep\n", 5, 0, 5, 0)
        assert ask(peer, "full")["data"] == before
        assert peer.leave() == 0


def test_documents_that_are_none_of_ours() -> None:
    """Nothing for closed documents and for other files."""
    with Local() as peer:
        peer.initialize()
        peer.open("file:///nowhere/compose.yaml", "services: {}\n")
        for uri in (URI, "file:///nowhere/compose.yaml"):
            document = {"uri": uri}
            assert peer.request("textDocument/semanticTokens/full", {"textDocument": document}) is None
        assert peer.leave() == 0


def test_types_and_modifiers_are_standard() -> None:
    """Every kind of token has a look that themes know; none that is announced is without use."""
    assert {type_ for type_, _ in LOOKS.values()} == set(TOKEN_TYPES)
    assert {name for _, modifiers in LOOKS.values() for name in modifiers} == set(TOKEN_MODIFIERS)
    with Local() as peer:
        legend = peer.initialize()["capabilities"]["semanticTokensProvider"]["legend"]
        assert legend == {"tokenTypes": list(TOKEN_TYPES), "tokenModifiers": list(TOKEN_MODIFIERS)}
        assert peer.leave() == 0


def test_the_difference_of_two_answers() -> None:
    """Whatever two answers are, the edit turns one into the other, and leaves out what they begin and end with."""
    random = Random(7)
    for _ in range(200):
        start = [random.randrange(3) for _ in range(random.choice([0, 3, CHUNK, 2 * CHUNK + 5]))]
        end = [random.randrange(3) for _ in range(random.choice([0, 3, CHUNK, 3 * CHUNK]))]
        one, other = ([random.randrange(3) for _ in range(random.randrange(4))] for _ in range(2))
        before, after = array("I", [*start, *one, *end]), array("I", [*start, *other, *end])
        edits = difference(before, after)
        assert (edits == []) == (before == after)
        for edit in edits:
            assert len(edit["data"]) <= max(len(one), len(other))
            assert (
                before[: edit["start"]].tolist() + edit["data"] + before[edit["start"] + edit["deleteCount"] :].tolist()
                == after.tolist()
            )


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", Encoding)
def test_what_is_kept_changes_no_answer(encoding: Encoding, ends: str) -> None:
    """Through edits of every kind, an answer put together from what is kept is the one that is made from nothing."""
    random, kept, cache = Random(11), Kept(), AnalysisCache()
    text = (TEXT.replace("\r\n", "\n") + EXTRA).replace("\n", ends)
    for _ in range(60):
        at = random.randrange(len(text) + 1)
        end = min(len(text), at + random.choice([0, 0, 1, 5, 40]))
        new = (
            text[:at]
            + random.choice(
                ["", "x", "{state.y}", " ", ends, "😀", f"{ends}  - {{id: n, type: tool}}{ends}", "'", "&a "]
            )
            + text[end:]
        )
        document = analyze(Source(URI, new), Context(), cache, "workflow")
        expected = encode(document_tokens(document), document.lines, encoding).data
        assert encode_document(document, encoding, kept) == expected
        text = new if random.random() < 0.7 else text


def test_no_token_goes_beyond_its_line() -> None:
    """Tokens follow each other without overlap, each in one line, in a text with every style of scalar."""
    with Local() as peer:
        peer.initialize({**FULL, "general": {"positionEncodings": ["utf-32"]}})
        peer.open(URI, TEXT)
        data = ask(peer, "full")["data"]
        lines, spans, line, character = LineTable(TEXT), [], 0, 0
        for at in range(0, len(data), 5):
            line, character = line + data[at], data[at + 1] if data[at] else character + data[at + 1]
            start = lines.starts[line] + character
            spans.append(Span(start, start + data[at + 2]))
            assert spans[-1].end <= lines.line_span(line).end
        assert all(one.end <= other.start for one, other in pairwise(spans))
        assert peer.leave() == 0
