"""The rule about results that are kept nowhere."""

from __future__ import annotations

from collections.abc import Iterator

from agentloom.analysis import edits
from agentloom.analysis.document import Facts
from agentloom.diagnostics import Finding, Fix
from agentloom.syntax.nodes import Mapping


def lost_vectors(facts: Facts) -> Iterator[Finding]:
    """An `embed` step has no `output`, so its vectors are paid for and lost.

    Vectors go into the state only, where `output` says. What `steps.<id>.output` and the run's result hold is a text that counts them,
    such as `3 vectors × 1536`.

    Add `output`.
    """
    if facts.data.get("type") != "embed" or facts.data.get("output") is not None or "inputs" not in facts.fields:
        return
    node = facts.node
    fixes: tuple[Fix, ...] = ()
    name = edits.legal_name(facts.text("id") or "") if "output" not in facts.fields else ""
    if name and isinstance(node, Mapping):
        added = edits.add_entry(facts.unit.text, node, "output", f"{name}_vectors", "inputs", "model", "dimensions")
        fixes = (Fix(f"keep them: `output: {name}_vectors`", added, safe=False),) if added else ()
    yield Finding(
        "AL409",
        facts.span_of("type"),
        "without `output` the vectors are lost: `steps.<id>.output` only says how many they are; add `output`",
        fixes=fixes,
    )
