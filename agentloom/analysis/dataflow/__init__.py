"""The data flow: what each step reads and writes, and what reaches a read. Data for rules, hover, completion and hints."""

from __future__ import annotations

from agentloom.analysis.dataflow.flow import Flow
from agentloom.analysis.dataflow.reach import Outer, Reach
from agentloom.analysis.dataflow.routes import Pick
from agentloom.analysis.dataflow.shapes import Certainty, Loss, Offer, Reaching, Read, Writer
from agentloom.analysis.document import WorkflowDocument


def dataflow(document: WorkflowDocument) -> Flow:
    """Return the data flow of a document, worked out when it is first asked for. Never raises for anything in the text."""
    kept: Flow | None = document.__dict__.get("_flow")
    if kept is None:
        kept = document.__dict__["_flow"] = Flow(document)
    return kept


__all__ = ["Certainty", "Flow", "Loss", "Offer", "Outer", "Pick", "Reach", "Reaching", "Read", "Writer", "dataflow"]
