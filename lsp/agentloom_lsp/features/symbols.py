"""Symbols: the outline of a document, and the names of all files of the workspace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from lsprotocol import types

from agentloom.analysis.document import WorkflowDocument
from agentloom.ide.outline import Symbol, SymbolKind, outline
from agentloom.ide.workspace_symbols import FoundSymbol, best, symbols_of
from agentloom_lsp.asking import asked
from agentloom_lsp.convert import Encoding, Places
from agentloom_lsp.session import INFO, Session
from agentloom_lsp.worker import SEARCH, WHOLE

# None above 18: clients that don't say which kinds they know, know these.
KINDS: dict[SymbolKind, types.SymbolKind] = {
    "workflow": types.SymbolKind.Module,
    "agent": types.SymbolKind.Class,
    "step": types.SymbolKind.Function,
    "block": types.SymbolKind.Namespace,
    "key": types.SymbolKind.Property,
    "state": types.SymbolKind.Variable,
    "condition": types.SymbolKind.Boolean,
    "tool": types.SymbolKind.Method,
    "file": types.SymbolKind.File,
    "part": types.SymbolKind.Field,
}


async def document_symbol(session: Session, params: types.DocumentSymbolParams) -> list[dict[str, Any]] | None:
    """`textDocument/documentSymbol`: a tree, or a list for clients that know no trees."""
    found = await asked(session, params.text_document)
    if found is None:
        return None
    document, places = found.document, found.places
    uri = params.text_document.uri

    def work() -> tuple[list[dict[str, Any]], int]:
        symbols, left_out = outline(document)
        if session.client.symbol_trees:
            return _trees(symbols, places), left_out
        return _flat(symbols, places, uri), left_out

    answer, left_out = await session.worker.submit(work, WHOLE)
    if left_out:
        session.say_once(f"the outline of {uri} is cut: {left_out} symbols beyond the limit are left out", INFO)
    return answer


async def workspace_symbol(session: Session, params: types.WorkspaceSymbolParams) -> list[dict[str, Any]]:
    """`workspace/symbol`: steps, agents and workflows by a few letters of their name."""
    query, told, project = params.query, TOLD[session.client.encoding], session.project

    def work() -> list[dict[str, Any]]:
        return best(query, (named for file in project.each(told) for named in file))

    return await session.worker.submit(work, SEARCH)


def _told(encoding: Encoding, document: WorkflowDocument) -> list[tuple[str, dict[str, Any]]]:
    """Return the names that a file defines, each with what a client is told of it."""
    found = list(symbols_of(document))
    ranges = Places(document.lines, encoding).ranges([symbol.location.span for symbol in found])
    return [(symbol.name, _information(symbol, place)) for symbol, place in zip(found, ranges, strict=True)]


TOLD = {encoding: partial(_told, encoding) for encoding in Encoding}
"""Made once, since what they return is remembered by them."""


def _information(symbol: FoundSymbol, place: dict[str, Any]) -> dict[str, Any]:
    said = {
        "name": symbol.name,
        "kind": KINDS[symbol.kind].value,
        "location": {"uri": symbol.location.source.uri, "range": place},
    }
    if symbol.container:
        said["containerName"] = symbol.container
    return said


def _all(symbols: Sequence[Symbol]) -> Iterator[Symbol]:
    for symbol in symbols:
        yield symbol
        yield from _all(symbol.children)


def _trees(symbols: Sequence[Symbol], places: Places) -> list[dict[str, Any]]:
    every = list(_all(symbols))
    ranges = iter(places.ranges([span for symbol in every for span in (symbol.span, symbol.name_span)]))

    def build(level: Sequence[Symbol]) -> list[dict[str, Any]]:
        built = []
        for symbol in level:
            said: dict[str, Any] = {
                "name": symbol.name,
                "kind": KINDS[symbol.kind].value,
                "range": next(ranges),
                "selectionRange": next(ranges),
            }
            if symbol.detail:
                said["detail"] = symbol.detail
            if symbol.children:
                said["children"] = build(symbol.children)
            built.append(said)
        return built

    return build(symbols)


def _flat(symbols: Sequence[Symbol], places: Places, uri: str) -> list[dict[str, Any]]:
    every = list(_all(symbols))
    containers: dict[int, str] = {id(child): symbol.name for symbol in every for child in symbol.children}
    answer = []
    for symbol, place in zip(every, places.ranges([symbol.span for symbol in every]), strict=True):
        said = {"name": symbol.name, "kind": KINDS[symbol.kind].value, "location": {"uri": uri, "range": place}}
        if id(symbol) in containers:
            said["containerName"] = containers[id(symbol)]
        answer.append(said)
    return answer
