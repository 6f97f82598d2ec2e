"""The shape of a document: what can be folded, how a selection grows, what leads elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lsprotocol import types

from agentloom.ide.folding import folds
from agentloom.ide.links import Link, links
from agentloom.ide.selection import selections
from agentloom.text import Span
from agentloom_lsp.asking import asked
from agentloom_lsp.convert import Places
from agentloom_lsp.session import Session
from agentloom_lsp.worker import WHOLE


async def folding_range(session: Session, params: types.FoldingRangeParams) -> list[dict[str, Any]] | None:
    """`textDocument/foldingRange`: whole lines, as most clients want them."""
    found = await asked(session, params.text_document)
    if found is None:
        return None
    document, most = found.document, session.client.most_folds

    def work() -> list[dict[str, Any]]:
        answer: list[dict[str, Any]] = []
        for fold in folds(document, most):
            said: dict[str, Any] = {"startLine": fold.first, "endLine": fold.last}
            if fold.kind != "code":
                said["kind"] = fold.kind
            answer.append(said)
        return answer

    return await session.worker.submit(work, WHOLE)


async def selection_range(session: Session, params: types.SelectionRangeParams) -> list[dict[str, Any]] | None:
    """`textDocument/selectionRange`: for each position, the spans that grow around it."""
    found = await asked(session, params.text_document)
    if found is None:
        return None
    document, places = found.document, found.places
    offsets = [found.offset(position) for position in params.positions]

    def work() -> list[dict[str, Any]]:
        return [_nested(selections(document, offset), offset, places) for offset in offsets]

    return await session.worker.submit(work)


async def document_link(session: Session, params: types.DocumentLinkParams) -> list[dict[str, Any]] | None:
    """`textDocument/documentLink`: files and addresses."""
    found = await asked(session, params.text_document)
    if found is None:
        return None
    document, places = found.document, found.places

    def work() -> list[dict[str, Any]]:
        every = links(document)
        ranges = places.ranges([link.span for link in every])
        return [_link(session, link, place) for link, place in zip(every, ranges, strict=True)]

    return await session.worker.submit(work, WHOLE)


def _link(session: Session, link: Link, place: dict[str, Any]) -> dict[str, Any]:
    target = session.workspace.uri_of(link.target) if isinstance(link.target, Path) else link.target
    said: dict[str, Any] = {"range": place, "target": target}
    if link.tooltip and session.client.link_tooltips:
        said["tooltip"] = link.tooltip
    return said


def _nested(spans: list[Span], offset: int, places: Places) -> dict[str, Any]:
    """Return one position's answer: the smallest range, each with the next as its parent."""
    answer: dict[str, Any] | None = None
    ranges = places.ranges(spans or [Span(offset, offset)])
    for place in reversed(ranges):
        answer = {"range": place} if answer is None else {"range": place, "parent": answer}
    assert answer is not None
    return answer
