"""Inlay hints: what holds for a step without being written there. Each kind is a setting of the user's."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from lsprotocol import types

from agentloom.ide.hints import HintKind, hints
from agentloom_lsp import uris
from agentloom_lsp.asking import asked
from agentloom_lsp.convert import Position
from agentloom_lsp.features.hover import content
from agentloom_lsp.options import Options
from agentloom_lsp.session import Session


async def inlay_hint(session: Session, params: types.InlayHintParams) -> list[dict[str, Any]] | None:
    """`textDocument/inlayHint`: those in the range that is in sight."""
    kinds = wanted(session.options)
    if not kinds:
        return []
    found = await asked(session, params.text_document)
    if found is None:
        return None
    document, places, markdown = found.document, found.places, session.client.markdown_hovers
    last = session.runs.last(uris.key(params.text_document.uri))
    start, end = params.range.start, params.range.end
    span = places.span(Position(start.line, start.character), Position(end.line, end.character))

    def work() -> list[dict[str, Any]]:
        found = hints(document, span, kinds, session.project, last)
        # Two at one place stand apart from each other as the first does from the text.
        followed = {at for at, (one, after) in enumerate(pairwise(found)) if one.offset == after.offset}
        return [
            {
                "position": places.position(hint.offset)._asdict(),
                "label": hint.label,
                "tooltip": content(hint.tooltip, markdown),
                "paddingLeft": True,
                "paddingRight": at in followed,
            }
            for at, hint in enumerate(found)
        ]

    return await session.worker.submit(work)


def wanted(options: Options) -> frozenset[HintKind]:
    """Return the kinds of hints that are switched on."""
    switches: dict[HintKind, bool] = {
        "layer": options.hint_layer,
        "model": options.hint_model,
        "attempts": options.hint_attempts,
        "run": options.hint_run,
    }
    return frozenset(kind for kind, is_on in switches.items() if is_on)
