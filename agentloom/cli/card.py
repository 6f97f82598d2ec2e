"""What a valid file holds, in a few lines: printed by ``validate`` for a file that is given alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentloom.analysis.document import WorkflowDocument
from agentloom.cli.cells import visible
from agentloom.cli.console import DIM, Look
from agentloom.cli.tables import columns
from agentloom.model.catalogue import catalogue


def card(document: WorkflowDocument, look: Look) -> Iterator[str]:
    """Yield the lines about a document without errors."""
    rows = _agent(document.head.data) if document.kind == "agent" else _workflow(document)
    yield from columns([(name, visible(value, look.encoding)) for name, value in rows])
    if document.kind != "agent":
        yield "  plan"
        for number, layer in enumerate(document.graph.layers, start=1):
            names = visible(", ".join(layer), look.encoding)
            yield f"    {look.paint(f'layer {number}', DIM)}  {names}"


def _workflow(document: WorkflowDocument) -> list[tuple[str, str]]:
    data = document.head.data
    config = data.get("config") or {}
    budget = config.get("budget_usd")
    return [
        ("name", str(data.get("name"))),
        ("steps", str(len(document.steps))),
        ("layers", str(len(document.graph.layers))),
        ("provider", str(_or_default(config, "config", "provider"))),
        ("model", str(_or_default(config, "config", "model"))),
        ("budget", "none" if budget is None else f"${budget:.2f}" if budget == round(budget, 2) else f"${budget}"),
    ]


def _agent(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    tools = [
        tool if isinstance(tool, str) else str(tool.get("name") or tool.get("agent"))
        for tool in data.get("tools") or []
    ]
    return [
        ("name", str(data.get("name"))),
        ("model", str(data.get("model") or "the workflow's")),
        ("tools", ", ".join(tools) or "none"),
    ]


def _or_default(config: Mapping[str, Any], block: str, key: str) -> Any:
    value = config.get(key)
    return catalogue().blocks[block].fields[key].default if value is None else value
