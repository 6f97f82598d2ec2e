"""The reader: YAML text to a tree with places, piece by piece, so that an edit costs its piece and a fault stays in it."""

from __future__ import annotations

import gc
import re
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager

from agentloom.diagnostics import Finding
from agentloom.syntax.aliases import undefined_aliases
from agentloom.syntax.assembly import PlacedPart, assemble, assemble_whole, in_order
from agentloom.syntax.backend import Failure, parses, with_line_feeds
from agentloom.syntax.compose import TOO_DEEP, compose
from agentloom.syntax.faults import bad_characters, broken_directive, extra_document
from agentloom.syntax.moving import moved
from agentloom.syntax.parts import Part, read_part, recovered_part
from agentloom.syntax.pieces import Body, Kind, Piece, column_of, cut, find_body, split_strays
from agentloom.syntax.tree import Tree, Unit

__all__ = ["Reader", "read"]

LARGE = 20_000
"""Code points above which Python's collector rests while a text is read or checked: what is made stays, and walking it costs a third more."""

MOST_SEARCHES = 20
"""Open quotes and brackets whose end is looked for in later pieces; each search may go through the whole text."""

_DIRECTIVE = r"(?m)^%"
_PRELUDE_LINES = r"(?m)^%[^\r\n]*|^---(?=[ \t\r\n]|\Z)"


def read(text: str) -> Tree:
    """Return the tree of a text. Never raises: what is wrong with the text is among the tree's findings."""
    return Reader().read(text)


@contextmanager
def collector_rests(text: str) -> Iterator[None]:
    """Keep Python's collector from running while much is made of a large text."""
    collects = len(text) > LARGE and gc.isenabled()
    if collects:
        gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


class Reader:
    """Reads the versions of one document; pieces that did not change keep their units from one version to the next.

    ``pure`` reads with the pure Python parser, which is also used where the compiled one is missing; the answers are equal.
    """

    def __init__(self, pure: bool = False) -> None:
        self._pure = pure
        self._parts: dict[tuple[Kind, str], Part] = {}
        self._tree: Tree | None = None

    def read(self, text: str) -> Tree:
        """Return the tree of a text. Never raises: what is wrong with the text is among the tree's findings."""
        if self._tree is None or self._tree.text != text:
            self._tree = self._read(text)
        return self._tree

    def _read(self, text: str) -> Tree:
        with collector_rests(text):
            return self._read_text(text)

    def _read_text(self, text: str) -> Tree:
        lines = with_line_feeds(text)
        body = find_body(lines)
        findings = [] if body.extra < 0 else [extra_document(text, body.extra)]
        pieces = None if body.directives else cut(lines, body.start, body.end)
        if pieces is not None:
            placed = self._read_pieces(text, pieces, findings)
            if placed is not None:
                findings.extend(_bad_characters_before(text, placed[0].base))
                return assemble(text, placed, findings)
        findings.extend(_bad_characters_before(text, body.start))
        return assemble_whole(text, self._read_whole(text, body), findings)

    def _read_pieces(self, text: str, pieces: list[Piece], findings: list[Finding]) -> list[PlacedPart] | None:
        """Return the parts of all pieces, or None when pieces fail, but the text as a whole has no fault.

        What no part can say, because it is about how they follow each other, is added to ``findings``.
        """
        known, kept = self._parts, dict[tuple[Kind, str], Part]()
        placed: list[PlacedPart] = []
        broken = False
        deep = False
        for kind, start, end in pieces:
            key = (kind, text[start:end])
            part = known.get(key) or kept.get(key)
            if part is None:
                part = read_part(*key, self._pure)
            kept[key] = part
            if part.failure is not None:
                broken = True
                deep = deep or part.failure.problem == TOO_DEEP
            placed.append(PlacedPart(start, part))
        self._parts = kept
        if not broken:
            return placed
        if not deep and parses(text[pieces[0].start : pieces[-1].end], self._pure):
            return None
        return self._mended(text, *self._resplit(text, pieces, placed, findings))

    def _resplit(
        self, text: str, pieces: list[Piece], placed: list[PlacedPart], findings: list[Finding]
    ) -> tuple[list[Piece], list[PlacedPart]]:
        """Return the pieces with every broken entry that holds more items of the list above it cut before these.

        Where nothing else is wrong with such an entry, its first item is.
        """
        from agentloom.syntax.line_faults import stray_item

        better: list[Piece] = []
        parts: list[PlacedPart] = []
        column = -1
        for piece, there in zip(pieces, placed, strict=True):
            if piece.kind == "item" and column < 0:
                column = column_of(text, piece)
            if piece.kind == "header":
                column = -1
            if piece.kind != "entry" or there.part.failure is None or column < 0:
                better.append(piece)
                parts.append(there)
                continue
            for cut_out in split_strays(with_line_feeds(text), piece, column):
                part = self._kept_part(cut_out.kind, text[cut_out.start : cut_out.end])
                if cut_out.kind == "item" and better[-1].kind == "entry" and parts[-1].part.failure is None:
                    findings.append(stray_item(cut_out.start + column))
                better.append(cut_out)
                parts.append(PlacedPart(cut_out.start, part))
        return better, parts

    def _mended(self, text: str, pieces: list[Piece], placed: list[PlacedPart]) -> list[PlacedPart]:
        """Return the parts with every broken one joined to those that its quote or bracket reaches into, or else recovered."""
        from agentloom.syntax.flow import open_place

        mended: list[PlacedPart] = []
        searches = MOST_SEARCHES
        at = 0
        while at < len(pieces):
            base, part = placed[at].base, placed[at].part
            at += 1
            if part.failure is None:
                mended.append(placed[at - 1])
                continue
            if searches and (opened := open_place(part.unit.text, part.failure)) >= 0:
                searches -= 1
                last = _last_piece(text, pieces, at - 1, base + opened)
                joined = self._kept_part(part.kind, text[base : pieces[last].end]) if last >= at else part
                if joined.failure is None:
                    mended.append(PlacedPart(base, joined))
                    at = last + 1
                    continue
            if not part.recovered:
                part = recovered_part(part, self._pure)
                self._parts[part.kind, part.unit.text] = part
            mended.append(PlacedPart(base, part))
        return mended

    def _kept_part(self, kind: Kind, text: str) -> Part:
        part = self._parts.get((kind, text))
        if part is None:
            part = self._parts[kind, text] = read_part(kind, text, self._pure)
        return part

    def _read_whole(self, text: str, body: Body) -> Unit:
        """Return the whole text as one unit."""
        chunk = text[body.start : body.end]
        composed = compose(chunk, self._pure)
        findings = bad_characters(chunk)
        if isinstance(composed, Failure) and body.directives:
            if re.search(_DIRECTIVE, chunk):
                findings.append(broken_directive(chunk, composed))
            chunk = re.sub(_PRELUDE_LINES, lambda match: " " * len(match[0]), chunk)
            composed = compose(chunk, self._pure)
        if isinstance(composed, Failure):
            from agentloom.syntax.recovery import recover  # nine modules that only broken texts need

            composed = recover(None, chunk, composed, self._pure)
        findings.extend(composed.findings)
        findings.extend(undefined_aliases(composed.loose, composed.anchors))
        node = composed.node
        if node is not None and body.start:
            node = moved(node, body.start, {})
        return Unit(text, node, in_order([finding.shift(body.start) for finding in findings]))


def _bad_characters_before(text: str, end: int) -> list[Finding]:
    """Return the findings about characters in the comments before the first piece."""
    start = 1 if text.startswith("\ufeff") else 0
    return [finding.shift(start) for finding in bad_characters(text[start:end])]


def _last_piece(text: str, pieces: list[Piece], at: int, opened: int) -> int:
    """Return which piece holds the end of what is open at ``opened`` in piece ``at``; -1 when it does not end among its like."""
    from agentloom.syntax.flow import bracket_end, quote_end

    kind = pieces[at].kind
    stop = at
    while stop + 1 < len(pieces) and pieces[stop + 1].kind == kind:
        stop += 1
    end = pieces[stop].end
    closed = quote_end(text, opened, end) if text[opened] in "\"'" else bracket_end(text, opened, end)
    if closed < 0:
        return -1
    return bisect_left([piece.end for piece in pieces[at : stop + 1]], closed) + at
