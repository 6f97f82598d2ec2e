"""Makes `examples/README.md`: a table of the example workflows, and each one's graph as Mermaid.

The page above the marker is written by hand; what stands below it comes from the files themselves.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from agentloom.analysis.analyze import analyze
from agentloom.analysis.context import Context
from agentloom.analysis.document import WorkflowDocument
from agentloom.drawing.mermaid import mermaid as chart
from agentloom.ide.picture import picture
from agentloom.text import Source

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
PAGE = EXAMPLES / "README.md"
MARKER = "<!-- Made by `make update` from the files; changes below are lost. -->\n"


def read(path: Path) -> WorkflowDocument:
    """Return an example as the check sees it."""
    return analyze(Source(str(path), path.read_text(encoding="utf-8")), Context())


def mermaid(document: WorkflowDocument) -> str:
    """Return the graph of a workflow as `agentloom graph` prints it."""
    return chart(picture(document)).rstrip("\n")


def _head(document: WorkflowDocument, key: str) -> Any:
    return document.head.data.get(key)


def _kinds(document: WorkflowDocument) -> str:
    counts = Counter(str(step.facts.data.get("type")) for step in document.steps)
    return ", ".join(f"{count} {kind}" for kind, count in counts.items())


def generated_part() -> str:
    """Return what stands below the marker."""
    found = [(path, read(path)) for path in sorted(EXAMPLES.glob("*.loom.yaml"))]
    table = ["| workflow | what it does | steps | layers |", "|---|---|---|---|"]
    sections = []
    for path, document in found:
        name = _head(document, "name")
        description = str(_head(document, "description")).strip()
        layers = len(document.graph.layers)
        table.append(f"| [{name}](#{name}) | {description} | {_kinds(document)} | {layers} |")
        sections.append(
            f"## {name}\n\n{description}\n\n"
            f"[{path.name}]({path.name}) · `agentloom run examples/{path.name}`\n\n"
            f"```mermaid\n{mermaid(document)}\n```\n"
        )
    return "\n".join(table) + "\n\n" + "\n".join(sections)


def page() -> str:
    """Return the whole page: what was written by hand, and the generated part."""
    written, _, _ = PAGE.read_text(encoding="utf-8").partition(MARKER)
    return written + MARKER + "\n" + generated_part()
