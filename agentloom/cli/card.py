"""What a valid file holds, in a few lines: printed by ``validate`` for a file that is given alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentloom.analysis.document import WorkflowDocument
from agentloom.cli.cells import visible
from agentloom.cli.console import DIM, Look
from agentloom.cli.tables import columns, count
from agentloom.model.catalogue import catalogue

MOST_LAYERS = 40
MOST_STEPS = 12


def card(document: WorkflowDocument, look: Look) -> Iterator[str]:
    """Yield the lines about a document without errors."""
    rows = _agent(document.head.data) if document.kind == "agent" else _workflow(document)
    yield from columns([(name, visible(value, look.encoding)) for name, value in rows])
    if document.kind != "agent":
        yield "  plan"
        yield from _plan(document.graph.layers, look)


def _plan(layers: Sequence[Sequence[str]], look: Look) -> Iterator[str]:
    """Yield a line per layer; of very many layers or steps only the first ones."""
    edge = len(str(min(len(layers), MOST_LAYERS)))
    for number, layer in enumerate(layers[:MOST_LAYERS], start=1):
        more = f" and {len(layer) - MOST_STEPS} more" if len(layer) > MOST_STEPS else ""
        names = visible(", ".join(layer[:MOST_STEPS]), look.encoding)
        yield f"    {look.paint(f'layer {number:<{edge}}', DIM)}  {names}{more}"
    if len(layers) > MOST_LAYERS:
        yield f"    and {count(len(layers) - MOST_LAYERS, 'more layer')}"


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
