"""A text after edits, and the way back: nodes of a mended text get their places in the text as it was written."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from agentloom.diagnostics import Edit, Finding, apply_edits
from agentloom.syntax.aliases import walk
from agentloom.syntax.nodes import Alias, Node, Scalar
from agentloom.syntax.quoting import quote, single
from agentloom.text import Span


class Edited:
    """What ``original`` becomes by non-overlapping edits. ``text`` is the result."""

    __slots__ = ("_new", "_old", "_widths", "original", "text")

    def __init__(self, original: str, edits: Iterable[Edit] = ()) -> None:
        self.original = original
        ordered = sorted(edits, key=lambda edit: edit.span)
        self.text = apply_edits(original, ordered) if ordered else original
        self._new, self._old, self._widths = [0], [0], list[int]()
        for edit in ordered:
            kept = edit.span.start - self._old[-1]
            self._widths.append(kept)
            self._new.append(self._new[-1] + kept + len(edit.text))
            self._old.append(edit.span.end)
        self._widths.append(len(original) - self._old[-1])

    def back(self, offset: int) -> int:
        """Return where an offset of the result lies in the original; what was put in lies where it was put."""
        at = bisect_right(self._new, offset) - 1
        return self._old[at] + min(offset - self._new[at], self._widths[at])

    def span_back(self, span: Span) -> Span:
        """Return a range of the result in the original."""
        start = self.back(span.start)
        return Span(start, max(start, self.back(span.end)))

    def finding_back(self, finding: Finding) -> Finding:
        """Return a finding about the result in offsets of the original; its edits then cure the original just as well."""
        return finding._replace(
            span=self.span_back(finding.span),
            related=tuple(r._replace(span=self.span_back(r.span)) for r in finding.related),
            fixes=tuple(
                f._replace(edits=tuple(Edit(self.span_back(e.span), e.text) for e in f.edits)) for f in finding.fixes
            ),
        )

    def nodes_back(self, node: Node | None) -> None:
        """Give a node of the result, and all below it, their places in the original."""
        for found in walk(node):
            found.span = self.span_back(found.span)
            if isinstance(found, Alias):
                continue
            if found.anchor is not None:
                found.anchor = self.span_back(found.anchor)
            if isinstance(found, Scalar):
                written = self.original[found.span.start : found.span.end]
                if written != found.raw and found.raw in (quote(written), single(written)):
                    found.style = "plain"  # the quotes were put in: as written, its characters stand for themselves
                found.raw = written
