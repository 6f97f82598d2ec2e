"""From which line to scan, so that a scan costs one step: the nearest item of `steps`, else the top-level entry, above the cursor."""

from __future__ import annotations

from bisect import bisect_right

from agentloom.analysis.document import WorkflowDocument
from agentloom.analysis.edits.places import column_of, line_start
from agentloom.ide.completion.frames import Frame
from agentloom.syntax.nodes import Mapping, Node, Scalar
from agentloom.syntax.tree import Placed
from agentloom.text import Span

MANY = 50
"""Entries of a block at the top above which a scan begins at the nearest one."""

VIRTUAL = "\0"
"""The key of what stands around a document in brackets."""


def region_of(document: WorkflowDocument, offset: int, start: int) -> tuple[int, list[Frame]]:
    """Return the line from which to scan, and what is open there."""
    top, text = document.tree.top, document.source.text
    root = Frame(False, 0, start)
    if not isinstance(top, Mapping) or not top.entries:
        if top is not None and text[top.span.start : top.span.start + 1] in ("{", "["):
            root.column, root.key = -1, VIRTUAL
        return start, [root]
    if top.flow:
        root.column, root.key = -1, VIRTUAL
        return line_start(text, top.span.start), [root]
    root.column = column_of(text, top.entries[0].key.span.start)
    at, key = start, ""
    value: Node | None = None
    for entry in top.entries:
        name = entry.key.value if isinstance(entry.key, Scalar) else ""
        if entry.key.span.contains(offset):
            continue  # perhaps a word typed in the middle of something
        root.names[name] = entry.value.span if isinstance(entry.value, Scalar) else Span(0, 0)
        if entry.key.span.start < offset:
            at, key, value = entry.key.span.start, name, entry.value
    if isinstance(value, Mapping) and not value.flow and len(value.entries) > MANY:
        inside = _inside(text, offset, root, key, value)
        if inside is not None:
            return inside
    if key == "steps":
        found = nearest_item(document.tree.steps, offset)
        if found >= 0:
            placed = document.tree.steps[found]
            dash = _dash_before(text, start_of(placed), at)
            if dash >= at:
                root.key, root.state = key, "done"
                line = line_start(text, dash)
                return line, [root, Frame(True, column_of(text, dash), dash, index=found - 1, begins=dash)]
    return line_start(text, at), [root]


def _inside(text: str, offset: int, root: Frame, key: str, value: Mapping) -> tuple[int, list[Frame]] | None:
    """Return where to scan from in a long block at the top: from the nearest of its own keys above; None above the first."""
    entries = value.entries
    found = bisect_right(entries, offset - 1, key=lambda entry: entry.key.span.start) - 1
    if found >= 0 and entries[found].key.span.contains(offset):
        found -= 1  # perhaps a word typed in the middle of something
    if found < 0:
        return None
    start = entries[found].key.span.start
    root.key, root.state = key, "done"
    inner = Frame(False, column_of(text, start), start)
    for entry in entries:
        if isinstance(entry.key, Scalar) and not entry.key.span.contains(offset):
            inner.names[entry.key.value] = entry.value.span if isinstance(entry.value, Scalar) else Span(0, 0)
    return line_start(text, start), [root, inner]


def start_of(placed: Placed) -> int:
    return placed.base + placed.node.span.start


def nearest_item(steps: tuple[Placed, ...], offset: int) -> int:
    """Return the number of the last item that begins at or before an offset, -1 when there is none."""
    return bisect_right(steps, offset, key=start_of) - 1


def _dash_before(text: str, at: int, least: int) -> int:
    """Return the dash of the block item whose content begins at ``at``; -1 for items in brackets."""
    line = line_start(text, at)
    while line >= least:
        content = line
        while content < at and text[content] in " \t\ufeff":
            content += 1
        if text.startswith("-", content) and text[content + 1 : content + 2] in ("", " ", "\t", "\r", "\n"):
            return content
        if line == 0 or (text[content : content + 1] not in ("#", "\r", "\n", "&", "!") and content < at):
            return -1
        line = line_start(text, line - 1)
    return -1
