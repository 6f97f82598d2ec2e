"""Semantic tokens: what words mean, in the protocol's types, whole, for a range, or as what changed.

Types and modifiers are the protocol's own, so that every theme colours them without set-up. A token never goes beyond its line,
whatever the client could take: what lies between the lines of a text, its indentation, is no part of it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, NamedTuple

from lsprotocol import types

from agentloom.analysis.document import Facts, WorkflowDocument
from agentloom.ide.colour.document import TokenMemory, range_tokens, stretches
from agentloom.ide.colour.tokens import Token, TokenKind
from agentloom.text import LineTable
from agentloom_lsp.asking import asked
from agentloom_lsp.convert import Encoding, Position, units
from agentloom_lsp.handshake import TOKEN_MODIFIERS, TOKEN_TYPES
from agentloom_lsp.session import Session
from agentloom_lsp.worker import WHOLE

LOOKS: dict[TokenKind, tuple[str, tuple[str, ...]]] = {
    "brace": ("operator", ()),
    "root": ("variable", ("readonly", "defaultLibrary")),
    "state": ("variable", ()),
    "state_write": ("variable", ("modification",)),
    "state_definition": ("variable", ("definition",)),
    "property": ("property", ()),
    "number": ("number", ()),
    "text": ("string", ()),
    "format": ("keyword", ()),
    "keyword": ("keyword", ()),
    "operator": ("operator", ()),
    "function": ("function", ("defaultLibrary",)),
    "method": ("method", ("defaultLibrary",)),
    "step": ("function", ()),
    "step_definition": ("function", ("definition",)),
    "step_type": ("type", ("defaultLibrary",)),
    "agent": ("class", ()),
    "agent_definition": ("class", ("definition",)),
    "tool": ("method", ()),
    "model": ("enumMember", ()),
    "provider": ("namespace", ()),
    "parameter": ("parameter", ()),
    "regex": ("regexp", ()),
}
CODES: dict[TokenKind, tuple[int, int]] = {
    kind: (TOKEN_TYPES.index(type_), sum(1 << TOKEN_MODIFIERS.index(name) for name in modifiers))
    for kind, (type_, modifiers) in LOOKS.items()
}
CHUNK = 1_024
"""Numbers compared at once when two answers are held against each other."""


class Encoded(NamedTuple):
    """Tokens as the protocol's numbers, five each: where it begins, counted from the one before, length, type, modifiers.

    The first is counted from the start of the text; ``line`` and ``character`` are where the last begins.
    """

    data: array[int]
    line: int
    character: int


class Kept:
    """What is kept for one open document: tokens by step, as numbers too, and the last answer. ``result_id`` names that."""

    __slots__ = ("data", "encoded", "memory", "numbers", "result_id")

    def __init__(self) -> None:
        self.memory = TokenMemory()
        self.encoded: dict[int, tuple[Facts, Encoded]] = {}
        self.numbers = count(1)
        self.result_id = ""
        self.data: array[int] = array("I")


async def full(session: Session, params: types.SemanticTokensParams) -> dict[str, Any] | None:
    """`textDocument/semanticTokens/full`."""
    found = await _renewed(session, params.text_document)
    if found is None:
        return None
    kept, _ = found
    return {"resultId": kept.result_id, "data": kept.data.tolist()}


async def delta(session: Session, params: types.SemanticTokensDeltaParams) -> dict[str, Any] | None:
    """`textDocument/semanticTokens/full/delta`: what changed since the last answer, or all where that isn't known any more."""
    found = await _renewed(session, params.text_document)
    if found is None:
        return None
    kept, (before_id, before) = found
    if params.previous_result_id != before_id or not before_id:
        return {"resultId": kept.result_id, "data": kept.data.tolist()}
    return {"resultId": kept.result_id, "edits": difference(before, kept.data)}


async def for_range(session: Session, params: types.SemanticTokensRangeParams) -> dict[str, Any] | None:
    """`textDocument/semanticTokens/range`."""
    found = await asked(session, params.text_document)
    if found is None:
        return None
    document, kept, encoding = found.document, _kept(session, params.text_document.uri), session.client.encoding
    start, end = params.range.start, params.range.end
    span = found.places.span(Position(start.line, start.character), Position(end.line, end.character))

    def work() -> dict[str, Any]:
        return {"data": encode(range_tokens(document, span, kept.memory), document.lines, encoding).data.tolist()}

    return await session.worker.submit(work)


async def _renewed(session: Session, text_document: Any) -> tuple[Kept, tuple[str, array[int]]] | None:
    """Work the tokens of a document out; return them, and the answer before."""
    found = await asked(session, text_document)
    if found is None:
        return None
    document, kept, encoding = found.document, _kept(session, text_document.uri), session.client.encoding
    breathe = session.worker.breathe
    data = await session.worker.submit(lambda: encode_document(document, encoding, kept, breathe), WHOLE)
    before = kept.result_id, kept.data
    kept.result_id, kept.data = str(next(kept.numbers)), data
    return kept, before


def _kept(session: Session, uri: str) -> Kept:
    document = session.documents.get(uri)
    if document is None:  # closed meanwhile
        return Kept()
    kept = document.kept.get(Kept)
    if not isinstance(kept, Kept):
        kept = document.kept[Kept] = Kept()
    return kept


def encode_document(
    document: WorkflowDocument, encoding: Encoding, kept: Kept, breathe: Callable[[], None] = lambda: None
) -> array[int]:
    """Return the tokens of a document as numbers. Those of a step that stayed the same are taken over as they are.

    ``breathe`` is called now and then, when there was work to do: in a long text that is new it takes a while.
    """
    known = kept.encoded
    encodings: dict[int, tuple[Facts, Encoded]] = {}
    lines = document.lines
    tables: dict[int, LineTable] = {id(document.source.text): lines}
    data: array[int] = array("I")
    last_line = last_character = 0
    for stretch in stretches(document, kept.memory, breathe):
        if not stretch.tokens:
            continue
        found = known.get(id(stretch.owner)) if stretch.owner is not None else None
        if found is None:
            table = tables.get(id(stretch.text)) or tables.setdefault(id(stretch.text), LineTable(stretch.text))
            encoded = encode(stretch.tokens, table, encoding)
        else:
            encoded = found[1]
        if stretch.owner is not None:
            encodings[id(stretch.owner)] = (stretch.owner, encoded)
        base = lines.line_of(stretch.base)  # a text that is read by itself begins with its line
        at = len(data)
        data.extend(encoded.data)
        line = base + data[at]
        data[at] = line - last_line
        if line == last_line:
            data[at + 1] -= last_character
        last_line, last_character = base + encoded.line, encoded.character
    kept.encoded = encodings
    return data


def encode(tokens: Sequence[Token], lines: LineTable, encoding: Encoding) -> Encoded:
    """Return tokens of a text as numbers."""
    text, starts = lines.text, lines.starts
    plain = encoding is Encoding.UTF32 or text.isascii()
    line = lines.line_of(tokens[0].start) if tokens else 0
    following = starts[line + 1] if line + 1 < len(starts) else lines.length + 1
    at = line_start = starts[line]
    last_line = last_character = character = 0
    data: list[int] = []
    for start, end, kind in tokens:
        while start >= following:
            line += 1
            following = starts[line + 1] if line + 1 < len(starts) else lines.length + 1
            at = line_start = starts[line]
            character = 0
        if plain:
            character, length = start - line_start, end - start
        else:
            character += units(text[at:start], encoding)
            at, length = start, units(text[start:end], encoding)
        type_, modifiers = CODES[kind]
        data += (
            line - last_line,
            character - last_character if line == last_line else character,
            length,
            type_,
            modifiers,
        )
        last_line, last_character = line, character
    return Encoded(array("I", data), last_line, last_character)


def difference(before: array[int], after: array[int]) -> list[dict[str, Any]]:
    """Return the one edit that makes one answer of the other; none where they are equal."""
    most = min(len(before), len(after))
    first = 0
    while first < most and before[first : first + CHUNK] == after[first : first + CHUNK]:
        first += CHUNK
    first = min(first, most)
    while first < most and before[first] == after[first]:
        first += 1
    most -= first
    last, there, here = 0, len(before), len(after)
    while (
        last + CHUNK <= most and before[there - last - CHUNK : there - last] == after[here - last - CHUNK : here - last]
    ):
        last += CHUNK
    while last < most and before[len(before) - last - 1] == after[len(after) - last - 1]:
        last += 1
    if first == len(before) == len(after):
        return []
    inserted = after[first : len(after) - last].tolist()
    return [{"start": first, "deleteCount": len(before) - first - last, "data": inserted}]
