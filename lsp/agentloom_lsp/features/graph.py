"""`agentloom/graph`: a workflow as a drawing with places in the text, for clients that show one beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lsprotocol import types

from agentloom.analysis.document import WorkflowDocument
from agentloom.drawing.data import Direction, as_data
from agentloom.ide.last_run import LastRun
from agentloom.ide.nested import written_in
from agentloom.ide.overview import critical_path
from agentloom.ide.picture import picture
from agentloom_lsp import uris
from agentloom_lsp.asking import Asked, asked
from agentloom_lsp.convert import Places
from agentloom_lsp.features.kept import as_mapping, uri_of
from agentloom_lsp.runs import arguments
from agentloom_lsp.session import Session
from agentloom_lsp.worker import WHOLE

DEEPEST = 8
"""Workflows below each other that are drawn."""


async def graph(session: Session, params: Any) -> dict[str, Any] | None:
    """`agentloom/graph`: the drawing of a document; null for what is no workflow."""
    told = as_mapping(params)
    return await _graph(session, uri_of(told), direction_of(told))


async def graph_command(session: Session, params: types.ExecuteCommandParams) -> dict[str, Any] | None:
    """`agentloom.graph`: the same, as a command."""
    told = arguments.one(params.arguments)
    return await _graph(session, uri_of(told), direction_of(told))


def direction_of(told: Mapping[str, Any]) -> Direction:
    """Return where the layers are to lead to; down unless it is said otherwise."""
    return "right" if told.get("direction") == "right" else "down"


async def _graph(session: Session, uri: str | None, direction: Direction) -> dict[str, Any] | None:
    found = await asked(session, types.TextDocumentIdentifier(uri)) if uri is not None else None
    if found is None or found.document.kind != "workflow":
        return None
    last = session.runs.last(uris.key(found.document.source.uri))
    return await session.worker.submit(lambda: _drawn(session, found, last, direction), WHOLE)


def _drawn(session: Session, found: Asked, last: LastRun | None, direction: Direction) -> dict[str, Any]:
    document = found.document
    run = None if last is None else {"runId": last.run_id, "status": last.status}
    return {
        **_of(session, document, found.places, last, "", direction),
        "uri": document.source.uri,
        "documentVersion": document.source.version,
        "run": run,
    }


def _of(
    session: Session,
    document: WorkflowDocument,
    places: Places,
    last: LastRun | None,
    prefix: str,
    direction: Direction,
) -> dict[str, Any]:
    critical = critical_path(document)
    data = as_data(picture(document, critical), direction)
    data["criticalPath"] = list(critical)
    data["layers"] = [list(layer) for layer in document.graph.layers]
    for node in data["nodes"]:
        name = node["id"]
        step = document.by_id[name]
        span = step.alias or step.place(step.facts.node.span)
        node["path"] = f"{prefix}{name}"
        node["range"] = places.range(span)
        node["nameRange"] = places.range(step.name_span)
        node["run"] = _run(last, node["path"])
        child = document.children.get(name)
        inner = written_in(document, step)
        if inner is not None and prefix.count(".") < DEEPEST:
            node["child"] = _of(session, inner, places, last, f"{node['path']}.", direction)
        elif child is not None and child.path is not None:
            node["childUri"] = session.workspace.uri_of(child.path)
    return data


def _run(last: LastRun | None, path: str) -> dict[str, Any] | None:
    step = last.steps.get(path) if last is not None else None
    if step is None:
        return None
    return {
        "status": step.status,
        "durationMs": step.duration * 1000,
        "costUsd": step.cost,
        "tokens": step.tokens,
        "error": step.error,
    }
