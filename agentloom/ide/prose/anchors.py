"""What is said about YAML anchors, aliases and merge keys."""

from __future__ import annotations

import re
from typing import NamedTuple

from agentloom.analysis.document import WorkflowDocument
from agentloom.ide.prose.form import Block, Code, Prose, excerpt, say
from agentloom.syntax.aliases import walk
from agentloom.syntax.nodes import Alias, Node
from agentloom.text import Span

OF_MERGE: Prose = (say("Merge key: the keys of the mapping behind it hold here, too, but for those written here."),)

_NAME = r"[^\s,\[\]{}]+"


class Anchor(NamedTuple):
    """An anchor: its range, sign included, its name and the value that it marks, all in document offsets."""

    span: Span
    name: str
    node: Node


def anchor_at(document: WorkflowDocument, offset: int) -> Anchor | None:
    """Return the anchor at an offset. Cheap where there is no `&` on the line."""
    text = document.source.text
    line = document.lines.line_span(document.lines.line_of(offset))
    found = next(
        (m for m in re.finditer("&" + _NAME, text[line.start : line.end]) if _holds(m, offset - line.start)), None
    )
    if found is None:
        return None
    span = Span(line.start + found.start(), line.start + found.end())
    for node in walk(document.tree.root):
        if (
            not isinstance(node, Alias)
            and node.anchor is not None
            and node.anchor.start in (span.start, span.start + 1)
        ):
            return Anchor(span, found[0][1:], node)
    return None


def of_anchor(document: WorkflowDocument, anchor: Anchor) -> Prose:
    """Return what an anchor marks, and how often it is used."""
    uses = sum(isinstance(n, Alias) and n.target is anchor.node for n in walk(document.tree.root))
    times = "It is never used." if not uses else "Used once." if uses == 1 else f"Used {uses} times."
    return (say("Anchor ", Code(f"&{anchor.name}"), f". {times}"), *_value(document, anchor.node, 0))


def of_alias(document: WorkflowDocument, alias: Alias, base: int) -> Prose:
    """Return what an alias stands for; ``base`` is where its unit begins."""
    if alias.target is None:
        return (say("No anchor ", Code(f"&{alias.name}"), " stands before this alias."),)
    return (say("The value marked with ", Code(f"&{alias.name}")), *_value(document, alias.target, base))


def _value(document: WorkflowDocument, node: Node, base: int) -> tuple[Block, ...]:
    text = document.source.text
    span = node.span.shift(base)
    start = max(text.rfind("\n", 0, span.start), text.rfind("\r", 0, span.start)) + 1
    lead = text[start : span.start]
    written = text[span.start : span.end]
    if not written.strip():
        return ()
    # The first line gets back the indentation that it shares with the others.
    return (excerpt((" " * len(lead) if not lead.strip() else "") + written, "yaml"),)


def _holds(found: re.Match[str], at: int) -> bool:
    return found.start() <= at <= found.end()
