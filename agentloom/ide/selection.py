"""What is selected when a selection grows: word, placeholder, line, paragraph, value, entry, step, list, document."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentloom.analysis.document import WorkflowDocument
from agentloom.ide.hits import hit_at
from agentloom.language.arguments import parse_argument
from agentloom.language.expression import parse_expression
from agentloom.language.template import parse_template
from agentloom.language.tree import Constant, children
from agentloom.syntax.nodes import Alias, Mapping, Node, Scalar, Sequence
from agentloom.syntax.scalars import text_span, value_offset
from agentloom.text import LineTable, Span

_WORD = re.compile(r"[^\W\d][\w\-]*|\d[\w.]*")


def selections(document: WorkflowDocument, offset: int) -> list[Span]:
    """Return the growing spans around an offset, the smallest first; each lies in the next, the last is the whole text."""
    length = len(document.source.text)
    offset = max(0, min(offset, length))
    found = sorted(
        {span for span in _around(document, offset) if span.contains(offset) and span.end > span.start},
        key=lambda span: (span.end - span.start, -span.start),
    )
    grown: list[Span] = []
    for span in (*found, Span(0, length)):
        if not grown or (span != grown[-1] and span.start <= grown[-1].start and grown[-1].end <= span.end):
            grown.append(span)
    return grown


def _around(document: WorkflowDocument, offset: int) -> Iterator[Span]:
    text, tree = document.source.text, document.tree
    yield from _words(document, offset)
    yield from _comments(document, offset)
    if isinstance(tree.top, Mapping):
        yield tree.top.span
    steps = tree.steps_node
    for node, base in ((tree.top, 0), *((p.node, p.base) for p in tree.steps)):
        if node is None or not node.span.shift(base).contains(offset):
            continue
        if node is not tree.top:
            yield _with_dash(text, node.span.shift(base))
        yield from _nodes(document.lines, node, base, offset)
    if steps is not None and tree.steps:
        last = tree.steps[-1]
        yield Span(steps.span.start, max(steps.span.end, last.base + last.node.span.end))
    hit = hit_at(document, offset)
    if hit is not None and isinstance(hit.node, Scalar) and not hit.is_key:
        leaf = next((leaf for leaf in hit.facts.leaves if leaf.node is hit.node), None)
        if leaf is not None:
            inside = _inside(
                hit.node, {mark.kind for mark in leaf.shape.marks}, value_offset(hit.node, offset - hit.base)
            )
            yield from (text_span(hit.node, *span).shift(hit.base) for span in inside)


def _words(document: WorkflowDocument, offset: int) -> Iterator[Span]:
    """Yield the word at an offset."""
    line = document.lines.line_span(document.lines.line_of(offset))
    for found in _WORD.finditer(document.source.text, line.start, line.end):
        if found.start() <= offset <= found.end():
            yield Span(*found.span())


def _comments(document: WorkflowDocument, offset: int) -> Iterator[Span]:
    """Yield the comment at an offset, and the run of full-line comments that it is part of."""
    text, lines = document.source.text, document.lines
    line = lines.line_span(lines.line_of(offset))
    if "#" not in text[line.start : line.end]:
        return
    comments = document.tree.comments
    at = next((n for n, comment in enumerate(comments) if comment.span.contains(offset)), None)
    if at is None:
        return
    yield comments[at].span
    first = last = at
    while first > 0 and _adjoin(document, first - 1):
        first -= 1
    while last + 1 < len(comments) and _adjoin(document, last):
        last += 1
    yield Span(comments[first].span.start, comments[last].span.end)


def _adjoin(document: WorkflowDocument, at: int) -> bool:
    """Tell whether a comment and the next one fill two lines in a row."""
    one, other = document.tree.comments[at : at + 2]
    line_of = document.lines.line_of
    return one.own_line and other.own_line and line_of(other.span.start) == line_of(one.span.start) + 1


def _nodes(lines: LineTable, node: Node, base: int, offset: int) -> Iterator[Span]:
    """Yield a node and those below it that hold an offset, with their entries and list items."""
    while True:
        yield node.span.shift(base)
        below: Node | None = None
        if isinstance(node, Mapping):
            for entry in node.entries:
                whole = Span(entry.key.span.start, max(entry.key.span.end, entry.value.span.end)).shift(base)
                if whole.contains(offset):
                    yield whole
                    below = entry.key if entry.key.span.shift(base).contains(offset) else entry.value
        elif isinstance(node, Sequence):
            for item in node.items:
                if item.span.shift(base).contains(offset):
                    below = item
                    if not node.flow:
                        yield _with_dash(lines.text, item.span.shift(base))
        elif isinstance(node, Scalar):
            yield from _lines_of(lines, node, base, offset)
        if below is None or isinstance(below, Alias):
            return
        node = below


def _with_dash(text: str, item: Span) -> Span:
    """Return an item of a block list together with its dash."""
    dash = text.rfind("-", 0, item.start)
    between = text[dash + 1 : item.start] if dash >= 0 else "x"
    return Span(dash, item.end) if between and not between.strip() else item


def _lines_of(lines: LineTable, node: Scalar, base: int, offset: int) -> Iterator[Span]:
    """Yield the text inside quotes or below a block's header; of a text over several lines, its line and paragraph."""
    text = lines.text
    start, end = text_span(node, 0, len(node.value)).shift(base)
    yield Span(start, end)
    if "\n" not in node.raw and "\r" not in node.raw:
        return
    inner = Span(start, start + len(text[start:end].rstrip()))
    yield inner
    first, last = lines.line_of(inner.start), lines.line_of(inner.end)
    above = below = min(max(first, lines.line_of(offset)), last)
    line = _trimmed(lines, above, inner)
    yield line
    if line.end == line.start:
        return
    while above > first and not _is_empty(_trimmed(lines, above - 1, inner)):
        above -= 1
    while below < last and not _is_empty(_trimmed(lines, below + 1, inner)):
        below += 1
    yield Span(_trimmed(lines, above, inner).start, _trimmed(lines, below, inner).end)


def _is_empty(span: Span) -> bool:
    return span.start == span.end


def _trimmed(lines: LineTable, number: int, inner: Span) -> Span:
    """Return a line, inside ``inner``, without the blanks at its ends; empty for an empty line."""
    line = lines.line_span(number)
    start, end = max(inner.start, line.start), max(inner.start, min(inner.end, line.end))
    written = lines.text[start:end]
    start += len(written) - len(written.lstrip())
    return Span(start, start + len(written.strip()))


def _inside(node: Scalar, marks: set[str], at: int) -> Iterator[Span]:
    """Yield what holds a place inside a template or an expression, in offsets of the value."""
    if "expression" in marks:
        todo = [parse_expression(node.value).tree]
        while todo:
            found = todo.pop()
            if found.span.contains(at):
                yield found.span
                if isinstance(found, Constant):
                    yield found.inner
                todo.extend(children(found))
        return
    template = None
    if "template" in marks:
        template = parse_template(node.value)
    elif "template_deep" in marks:
        template = parse_argument(node.value)
    for placeholder in (*template.placeholders, *template.open) if template is not None else ():
        if placeholder.span.contains(at):
            yield placeholder.span
            if not placeholder.bare and placeholder.closed:
                yield Span(placeholder.span.start + 1, placeholder.span.end - 1)
            yield placeholder.name_span
            for part in placeholder.spans:
                if part.contains(at):
                    yield part
                    yield Span(placeholder.name_span.start, part.end)
