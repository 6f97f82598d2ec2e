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
from agentloom.syntax.repair import Repair
from agentloom.syntax.repairs import repairs_of
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
    """A text after mending: its nodes, or None with the last failure, and what was wrong; in offsets of the text before.

    ``text`` is the text with all edits of ``chain``.
    """

    __slots__ = ("chain", "failure", "findings", "loose", "node", "text")

    def __init__(self, text: str) -> None:
        self.text = text
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
    mended = Mended(text)
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
    mended.text = current
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


def salvage(mended: Mended, at: int, tail: int = 0, pure: bool = False) -> Node:
    """Return something for a value that could not be mended: the items of its brackets that can be read, or its text.

    Arguments as for ``mend``. Adds what is wrong, and loose aliases, to ``mended``.
    """
    text = mended.text
    end = len(text) - tail
    opens = at < end and text[at] in "[{"
    closed = bracket_end(text, at, end) if opens else -1
    deep = mended.failure is not None and mended.failure.problem == TOO_DEEP
    findings: list[Finding] = []
    node: Node
    if opens and not deep and (closed > 0 or not mended.findings):
        flow = _Flow(text, pure)
        node = flow.collection(at, closed if closed > 0 else end, closed > 0)
        findings = flow.findings
        mended.loose.extend(flow.loose)
    else:
        at = min(at, end)
        stop = content_end(text, at, end)
        node = Scalar(Span(at, stop), text[at:stop], "plain", text[at:stop])
    if not findings and not mended.findings and mended.failure is not None:
        findings = [syntax_error(text, mended.failure)]
    mended.findings.extend(_back(finding, mended.chain) for finding in findings)
    for edited in reversed(mended.chain):
        edited.nodes_back(node)
    return node


class _Flow:
    """Reads a list or mapping in brackets item by item."""

    def __init__(self, text: str, pure: bool) -> None:
        self.text = text
        self.pure = pure
        self.findings: list[Finding] = []
        self.loose: list[Alias] = []

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
                self.findings.append(
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
            node = salvage(found, value, 1, self.pure)
            if opener == "[":
                found.node = Sequence(Span(0, len(chunk)), (node,), True)
            elif key is not None:
                written = chunk[key.start() : key.end()].rstrip(": \t\r\n")
                name = Scalar(Span(key.start(), key.start() + len(written)), written.strip("\"'"), "plain", written)
                found.node = Mapping(Span(0, len(chunk)), (Entry(name, node),), True)
        elif found.node is None and found.failure is not None and not found.findings:
            found.findings.append(syntax_error(chunk, found.failure))
        self.findings.extend(finding.shift(by) for finding in found.findings)
        memo: dict[int, Node] = {}
        node_moved = moved(found.node, by, memo) if found.node is not None else None
        self.loose.extend(c for a in found.loose if isinstance(c := memo.get(id(a), a), Alias))
        return node_moved
