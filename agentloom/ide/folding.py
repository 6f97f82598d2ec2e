"""What can be folded away: steps, mappings, lists, long texts, runs of comments, and regions that a comment opens."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from agentloom.analysis.document import WorkflowDocument
from agentloom.syntax.nodes import Alias, Comment, Mapping, Node, Scalar
from agentloom.syntax.nodes import Sequence as SequenceNode
from agentloom.syntax.tree import Tree
from agentloom.text import LineTable

STEPS = "steps"
FoldKind = Literal["code", "comment", "region"]

_REGION = re.compile(r"#\s*(?:#?region\b|#?(endregion)\b)", re.IGNORECASE)


class Fold(NamedTuple):
    """Lines that can be folded: ``first`` stays, those after it up to ``last`` go. 0-based. ``depth`` is 0 at the top."""

    first: int
    last: int
    kind: FoldKind = "code"
    depth: int = 0


def folds(document: WorkflowDocument, most: int | None = None) -> list[Fold]:
    """Return what can be folded, in order, one fold for each first line; of more than ``most``, the outermost."""
    lines, tree = document.lines, document.tree
    found: dict[int, Fold] = {}
    for fold in (*_regions(lines, tree.comments), *_nodes(tree, lines), *_runs(lines, tree.comments)):
        known = found.get(fold.first)
        if known is None or fold.last > known.last:
            found[fold.first] = fold
    chosen: Iterable[Fold] = found.values()
    if most is not None and len(found) > most:
        chosen = sorted(chosen, key=lambda fold: (fold.depth, fold.first))[: max(0, most)]
    return sorted(chosen)


def _nodes(tree: Tree, lines: LineTable) -> Iterator[Fold]:
    """Yield the folds of nodes: each entry and each item of a list that goes on over more lines."""
    ends = _Ends(lines)
    todo: list[tuple[Node, int, int]] = []
    if isinstance(tree.top, Mapping):
        for entry in tree.top.entries:
            is_steps = isinstance(entry.key, Scalar) and entry.key.value == STEPS and bool(tree.steps)
            end = entry.value.span.end
            if is_steps:
                end = max(end, *(placed.base + placed.node.span.end for placed in tree.steps))
            fold = ends.fold(
                entry.key.span.start, end, 0, isinstance(entry.value, (Mapping, SequenceNode)) and entry.value.flow
            )
            if fold is not None:
                yield fold
                if not is_steps:
                    todo.append((entry.value, 0, 1))
    elif tree.top is not None:
        todo.append((tree.top, 0, 0))
    for placed in tree.steps:
        fold = ends.of(placed.node, placed.base, 1)
        if fold is not None:
            yield fold
            todo.append((placed.node, placed.base, 2))
    while todo:
        node, base, depth = todo.pop()
        if isinstance(node, Mapping):
            for entry in node.entries:
                value = entry.value
                flow = isinstance(value, (Mapping, SequenceNode)) and value.flow
                fold = ends.fold(base + entry.key.span.start, base + value.span.end, depth, flow)
                if fold is not None:
                    yield fold
                    todo.append((value, base, depth + 1))
        elif isinstance(node, SequenceNode):
            for item in node.items:
                fold = ends.of(item, base, depth)
                if fold is not None:
                    yield fold
                    todo.append((item, base, depth + 1))


class _Ends:
    """Finds the lines of nodes."""

    def __init__(self, lines: LineTable) -> None:
        self.lines = lines
        self.text = lines.text

    def of(self, node: Node, base: int, depth: int) -> Fold | None:
        if isinstance(node, Alias) or (isinstance(node, Scalar) and "\n" not in node.raw and "\r" not in node.raw):
            return None
        flow = isinstance(node, (Mapping, SequenceNode)) and node.flow
        return self.fold(base + node.span.start, base + node.span.end, depth, flow)

    def fold(self, start: int, end: int, depth: int, flow: bool) -> Fold | None:
        """Return the fold between two offsets; the line of a closing bracket that begins its line stays."""
        text = self.text
        if flow and end > start and text[end - 1] in "]}":
            end -= 1
        while end > start and text[end - 1] in " \t\r\n":
            end -= 1
        first, last = self.lines.line_of(start), self.lines.line_of(end)
        return Fold(first, last, "code", depth) if last > first else None


def _runs(lines: LineTable, comments: Sequence[Comment]) -> Iterator[Fold]:
    """Yield comments that fill several lines in a row."""
    first = last = -2
    for comment in comments:
        if not comment.own_line:
            continue
        line = lines.line_of(comment.span.start)
        if line == last + 1:
            last = line
            continue
        if last > first:
            yield Fold(first, last, "comment")
        first = last = line
    if last > first:
        yield Fold(first, last, "comment")


def _regions(lines: LineTable, comments: Sequence[Comment]) -> Iterator[Fold]:
    """Yield what stands between `# region` and `# endregion`."""
    open_: list[int] = []
    for comment in comments:
        said = _REGION.match(comment.text) if comment.own_line else None
        if said is None:
            continue
        line = lines.line_of(comment.span.start)
        if said[1] is None:
            open_.append(line)
        elif open_:
            yield Fold(open_.pop(), line, "region")
