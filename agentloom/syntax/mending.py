"""Mending one value: repairs are tried one after the other until the text composes; what stays broken is taken apart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from agentloom.diagnostics import Edit, Finding, Fix
from agentloom.syntax.backend import Failure
from agentloom.syntax.compose import TOO_DEEP, Composed, compose
from agentloom.syntax.edited import Edited
from agentloom.syntax.faults import syntax_error
from agentloom.syntax.flow import bracket_end, separators
from agentloom.syntax.lines import behind_properties, content_end
from agentloom.syntax.moving import moved
from agentloom.syntax.nodes import Alias, Entry, Mapping, Node, Scalar, Sequence
from agentloom.syntax.repairs import Repair, repairs_of
from agentloom.text import Span

MOST_ITEMS = 2_000
"""Items of broken brackets that are read one by one; the rest is left out."""

MOST_REPAIRS = 12
"""Faults of one value that are mended one after the other."""

_FLOW_KEY = re.compile(
    r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s\[\]{},"'&*!|>%@`#](?:[^\r\n:#,\[\]{}]|:(?![\s,\[\]{}]))*)[ \t]*:(?=[\s,\[\]{}"']|\Z)""",
    re.VERBOSE,
)


class Mended:
    """A text after mending: its nodes, or None with the last failure, and what was wrong; in the text's own offsets."""

    __slots__ = ("chain", "failure", "findings", "loose", "node")

    def __init__(self) -> None:
        self.node: Node | None = None
        self.findings: list[Finding] = []
        self.loose: list[Alias] = []
        self.failure: Failure | None = None
        self.chain: list[Edited] = []


def mend(text: str, at: int, column: int, tail: int = 0, pure: bool = False, failure: Failure | None = None) -> Mended:
    """Return what a text gives once the faults of the value at ``at`` are mended.

    The value ends ``tail`` code points before the end of the text; ``column`` is its key's, -1 in flow style; ``failure``
    why the text does not compose, where that is known.
    """
    mended = Mended()
    current = text
    composed = failure or compose(text, pure)
    for _ in range(MOST_REPAIRS):
        if isinstance(composed, Composed):
            break
        repairs = list(repairs_of(current, at, len(current) - tail, composed, column))
        if not repairs or composed.problem == TOO_DEEP:
            break
        edited = Edited(current, repairs[0].edits)
        after = compose(edited.text, pure)
        finding = _with_other_fixes(current, repairs, pure)
        if isinstance(after, Failure) and (after.problem, edited.back(after.at)) == (composed.problem, composed.at):
            finding = finding._replace(fixes=())
        mended.findings.append(_back(finding, mended.chain))
        mended.chain.append(edited)
        current, composed = edited.text, after
    if isinstance(composed, Failure):
        mended.failure = composed
        return mended
    mended.node = composed.node
    mended.loose = composed.loose
    mended.findings.extend(_back(finding, mended.chain) for finding in composed.findings)
    for edited in reversed(mended.chain):
        edited.nodes_back(composed.node)
    return mended


def _with_other_fixes(text: str, repairs: list[Repair], pure: bool) -> Finding:
    """Return the first repair's finding, with the fixes of the others for the same place that cure it as well."""
    finding = repairs[0].finding
    more: list[Fix] = []
    for other in repairs[1:]:
        if other.finding.span == finding.span and isinstance(compose(Edited(text, other.edits).text, pure), Composed):
            more.extend(other.finding.fixes)
    return finding._replace(fixes=(*finding.fixes, *more)) if more else finding


def _back(finding: Finding, chain: list[Edited]) -> Finding:
    for edited in reversed(chain):
        finding = edited.finding_back(finding)
    return finding


def salvage(text: str, at: int, end: int, mended: Mended, pure: bool = False) -> Node:
    """Return something for a value that could not be mended: the items of its brackets that can be read, or its text.

    Adds what is wrong, and loose aliases, to ``mended``.
    """
    if text[at] in "[{" and (mended.failure is None or mended.failure.problem != TOO_DEEP):
        closed = bracket_end(text, at, end)
        if closed > 0 or not mended.findings:
            return _Flow(text, mended, pure).collection(at, closed if closed > 0 else end, closed > 0)
    if not mended.findings and mended.failure is not None:
        mended.findings.append(syntax_error(text, mended.failure))
    stop = content_end(text, at, end)
    raw = text[at:stop]
    return Scalar(Span(at, stop), raw, "plain", raw)


class _Flow:
    """Reads a list or mapping in brackets item by item."""

    def __init__(self, text: str, mended: Mended, pure: bool) -> None:
        self.text = text
        self.mended = mended
        self.pure = pure

    def collection(self, at: int, end: int, closed: bool) -> Node:
        """Return the collection whose bracket stands at ``at`` and that ends at ``end``."""
        opener = self.text[at]
        inner_end = end - 1 if closed else end
        children: list[Node] = []
        entries: list[Entry] = []
        for start, stop in islice(self._segments(at, inner_end), MOST_ITEMS):
            found = self._segment(opener, start, stop)
            if isinstance(found, Mapping):
                entries.extend(found.entries)
            elif isinstance(found, Sequence):
                children.extend(found.items)
        span = Span(at, end)
        return Sequence(span, tuple(children), True) if opener == "[" else Mapping(span, tuple(entries), True)

    def _segments(self, at: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the ranges between the commas; two commas in a row are reported."""
        start = at + 1
        for comma in [*separators(self.text, at, end), end]:
            if self.text[start:comma].strip():
                yield start, comma
            elif comma < end:
                self.mended.findings.append(
                    Finding(
                        "AL001",
                        Span(comma, comma + 1),
                        "nothing stands before this comma; remove it",
                        fixes=(Fix("remove the comma", (Edit(Span(comma, comma + 1), ""),)),),
                    )
                )
            start = comma + 1

    def _segment(self, opener: str, start: int, stop: int) -> Node | None:
        chunk = opener + self.text[start:stop] + ("]" if opener == "[" else "}")
        value = 1
        while chunk[value].isspace():
            value += 1
        key = _FLOW_KEY.match(chunk, value) if opener == "{" else None
        if key is not None:
            value = key.end()
            while chunk[value].isspace():
                value += 1
        value = behind_properties(chunk, value)
        found = mend(chunk, value, -1, 1, self.pure)
        by = start - 1
        if found.node is None and value < len(chunk) - 1:
            node = salvage(chunk, value, len(chunk) - 1, found, self.pure)
            if opener == "[":
                found.node = Sequence(Span(0, len(chunk)), (node,), True)
            elif key is not None:
                written = chunk[key.start() : key.end()].rstrip(": \t\r\n")
                name = Scalar(Span(key.start(), key.start() + len(written)), written.strip("\"'"), "plain", written)
                found.node = Mapping(Span(0, len(chunk)), (Entry(name, node),), True)
        elif found.node is None and found.failure is not None and not found.findings:
            found.findings.append(syntax_error(chunk, found.failure))
        self.mended.findings.extend(finding.shift(by) for finding in found.findings)
        memo: dict[int, Node] = {}
        node_moved = moved(found.node, by, memo) if found.node is not None else None
        self.mended.loose.extend(c for a in found.loose if isinstance(c := memo.get(id(a), a), Alias))
        return node_moved
