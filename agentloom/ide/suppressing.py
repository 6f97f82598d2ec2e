"""Comments that hide a diagnostic: on the line above, at the end of its line, or for the whole file.

Where a comment above would hide more of the same kind than one at the end of the line (it covers all of the entry or item that
begins there), the latter is taken. A comment of ours that is there already takes the code in.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Literal, NamedTuple

from agentloom.analysis.document import WorkflowDocument
from agentloom.analysis.rules.registry import RULE_BY_CODE
from agentloom.analysis.suppress import DIRECTIVE, entry_on
from agentloom.diagnostics import Diagnostic, Edit
from agentloom.syntax.nodes import Alias, Comment, Mapping, Node, Scalar, Sequence
from agentloom.text import Span, newline_of

Verb = Literal["ignore", "ignore-file"]


class Suppressing(NamedTuple):
    """A comment to write, and what it covers; ``covers`` is None for the whole file."""

    edit: Edit
    covers: Span | None


def can_be_suppressed(diagnostic: Diagnostic) -> bool:
    """Tell whether a comment can hide a diagnostic: not what the engine refuses, nor what is said about such comments."""
    rule = RULE_BY_CODE.get(diagnostic.code)
    return rule is not None and rule.scope != "driver" and not diagnostic.refuses


def suppress_here(document: WorkflowDocument, diagnostic: Diagnostic) -> tuple[Edit, ...]:
    """Return the edit that hides a diagnostic and as little besides as possible; none when it can't be hidden."""
    if not can_be_suppressed(diagnostic):
        return ()
    choices = [
        choice
        for choice in (_above(document, diagnostic), _behind(document, diagnostic))
        if choice is not None and choice.covers is not None and choice.covers.contains(diagnostic.span.start)
    ]
    if not choices:
        return ()
    return (min(choices, key=lambda choice: _hidden(document, diagnostic.code, choice.covers)).edit,)


def suppress_in_file(document: WorkflowDocument, code: str) -> tuple[Edit, ...]:
    """Return the edit that hides every diagnostic of a code in the file: a comment behind those at its top."""
    text = document.source.text
    for comment in document.tree.comments:
        merged = _merged(comment, "ignore-file", code)
        if merged is not None:
            return (merged,)
    start = 1 if text.startswith("\ufeff") else 0
    while found := re.compile(r"[ \t]*#[^\r\n]*(?:\r\n|\r|\n)").match(text, start):
        start = found.end()
    return (Edit(Span(start, start), f"# agentloom: ignore-file[{code}]{newline_of(text, start)}"),)


def _hidden(document: WorkflowDocument, code: str, covers: Span | None) -> int:
    return sum(d.code == code and covers is not None and covers.contains(d.span.start) for d in document.diagnostics)


def _above(document: WorkflowDocument, diagnostic: Diagnostic) -> Suppressing | None:
    """Return the comment above the innermost entry or item that holds the diagnostic and has a line to itself."""
    lines, text = document.lines, document.source.text
    place = diagnostic.span.start
    starts = [start for start, _ in _holders(document.tree.root, place)] or [place]
    for start in reversed(starts):
        number = lines.line_of(start)
        line = lines.line_span(number)
        covers = entry_on(document.tree, line)
        if not covers.contains(place) or _scalar_across(document.tree.root, line.start) is not None:
            continue
        comment = _comment_above(document, number)
        merged = _merged(comment, "ignore", diagnostic.code) if comment is not None else None
        if merged is not None:
            return Suppressing(merged, covers)
        at = line.start + (1 if text.startswith("\ufeff", line.start) else 0)
        blanks = re.compile(" *").match(text, at, line.end)
        indent = blanks.group() if blanks else ""
        comment_line = f"{indent}# agentloom: ignore[{diagnostic.code}]{newline_of(text, at)}"
        return Suppressing(Edit(Span(at, at), comment_line), covers)
    return None


def _behind(document: WorkflowDocument, diagnostic: Diagnostic) -> Suppressing | None:
    """Return the comment at the end of the diagnostic's line; None where the line goes on as text."""
    lines, text = document.lines, document.source.text
    line = lines.line_span(lines.line_of(diagnostic.span.start))
    if line.end == line.start or _scalar_across(document.tree.root, line.end) is not None:
        return None
    comments = document.tree.comments
    at = bisect_right(comments, line.end, key=lambda comment: comment.span.start) - 1
    last = comments[at] if at >= 0 and comments[at].span.start >= line.start else None
    if last is not None:
        if last.own_line:
            return None
        merged = _merged(last, "ignore", diagnostic.code)
        if merged is not None:
            return Suppressing(merged, line)
    gap = " " if last is not None else "  "
    if text[line.end - 1] in " \t":
        gap = ""
    return Suppressing(Edit(Span(line.end, line.end), f"{gap}# agentloom: ignore[{diagnostic.code}]"), line)


def _comment_above(document: WorkflowDocument, line: int) -> Comment | None:
    """Return the nearest comment of ours among those directly above a line, blank lines skipped, that covers it."""
    comments = document.tree.comments
    at = bisect_right(comments, document.lines.line_span(line).start, key=lambda comment: comment.span.start) - 1
    while at >= 0 and comments[at].own_line:
        start = comments[at].span.end
        if document.source.text[start : document.lines.line_span(line).start].strip():
            rest = document.source.text[start : document.lines.line_span(line).start].splitlines()
            if any(part.strip() and not part.strip().startswith("#") for part in rest):
                return None
        if re.search(DIRECTIVE, comments[at].text):
            return comments[at]
        at -= 1
    return None


def _merged(comment: Comment, verb: Verb, code: str) -> Edit | None:
    """Return the edit that adds a code to a comment of ours that lists some; None when it is no such comment."""
    for found in re.finditer(DIRECTIVE, comment.text):
        if found["verb"] == verb and found["codes"] is not None:
            codes = found["codes"].rstrip(" ,")
            at = comment.span.start + found.start("codes") + len(codes)
            return Edit(Span(at, at), f", {code}" if codes.strip() else code)
    return None


def _holders(node: Node | None, place: int) -> Iterator[tuple[int, Node]]:
    """Yield where each entry and item that holds a place begins, from the outermost to the innermost, with its value."""
    while node is not None and not isinstance(node, Alias):
        inner: Node | None = None
        if isinstance(node, Mapping):
            at = bisect_right(node.entries, place, key=lambda entry: entry.key.span.start) - 1
            if at < 0:
                return
            entry = node.entries[at]
            if place > max(entry.value.span.end, entry.key.span.end):
                return
            yield entry.key.span.start, entry.value
            inner = entry.value
        elif isinstance(node, Sequence):
            at = bisect_right(node.items, place, key=lambda item: item.span.start) - 1
            if at < 0 or place > node.items[at].span.end:
                return
            yield node.items[at].span.start, node.items[at]
            inner = node.items[at]
        node = inner


def _scalar_across(root: Node | None, place: int) -> Scalar | None:
    """Return the text that a place lies inside of: a line that begins there can't be a comment."""
    node = root
    for _, value in _holders(root, place):
        node = value
    return node if isinstance(node, Scalar) and node.span.start < place < node.span.end else None
