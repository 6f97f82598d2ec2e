"""What is left of a piece that does not compose: its structure by indentation, each part composed by itself.

An entry that composes is taken as it is. One that does not is mended (`mending`) or taken apart further; what can't be
read is left out. So a fault costs the line it is on, and every fault has its own finding.
"""

from __future__ import annotations

import re

from agentloom.diagnostics import Finding
from agentloom.syntax.aliases import Linker
from agentloom.syntax.backend import Failure
from agentloom.syntax.compose import Composed, compose
from agentloom.syntax.faults import syntax_error
from agentloom.syntax.nodes import Mapping, Node, Sequence
from agentloom.syntax.outline import Outline
from agentloom.syntax.pieces import Kind
from agentloom.syntax.tabs import without_tabs
from agentloom.text import Span

MOST_FINDINGS = 100
"""Findings per piece; beyond, broken lines are left out without a word."""


def recover(kind: Kind | None, text: str, failure: Failure, pure: bool = False) -> Composed:
    """Return what can be read of a broken piece, with a finding for each fault; at least one. Never raises.

    ``kind`` says what the piece should be: `item` gives a list, `entry` and `header` a mapping, None whatever is there.
    """
    spaced, findings = without_tabs(text, lambda tried: isinstance(compose(tried, pure), Composed))
    composed = compose(spaced.text, pure) if findings else failure
    outline = Outline(spaced.text, pure, {spaced.text: composed} if isinstance(composed, Failure) else {})
    if isinstance(composed, Composed) and _fits(kind, composed.node):
        node = composed.node
        outline.findings.extend(composed.findings)
        outline.loose.extend(composed.loose)
    else:
        node = outline.piece(kind)
        if kind == "header" and (dash := _first_dash(node)) >= 0:
            message = "this item is not indented like those below it; give all dashes of the list one column"
            outline.findings.append(Finding("AL001", Span(dash, dash + 1), message))
        if not outline.findings and not findings:
            outline.findings.append(syntax_error(spaced.text, failure))
    spaced.nodes_back(node)
    linker = Linker(text)
    if node is not None:
        linker.add([node], (), {})
    found = [_visible(text, spaced.finding_back(finding)) for finding in outline.findings]
    return Composed(
        node,
        _distinct([*findings, *found, *linker.findings])[:MOST_FINDINGS],
        linker.anchors,
        [alias for alias in outline.loose if alias.target is None],
        linker.size,
        linker.own,
    )


def _first_dash(node: Node | None) -> int:
    """Return where the first item of the list at ``steps`` stands that came with its key; -1 when none did."""
    value = node.entries[-1].value if isinstance(node, Mapping) and node.entries else None
    return value.span.start if isinstance(value, Sequence) and value.items else -1


def _fits(kind: Kind | None, node: Node | None) -> bool:
    return kind is None or isinstance(node, Sequence if kind == "item" else Mapping)


def _distinct(findings: list[Finding]) -> list[Finding]:
    """Return the findings, of those with one code and place the first."""
    return list({(finding.code, finding.span): finding for finding in reversed(findings)}.values())[::-1]


def _visible(text: str, finding: Finding) -> Finding:
    """Return a finding that stands on one line, on at least one character where there is one."""
    start, end = finding.span
    line_break = re.search(r"[\r\n]", text[start:end])
    if line_break is not None:
        end = start + line_break.start()
    if start == end and start < len(text) and text[start] not in "\r\n":
        end += 1
    elif start == end and start and text[start - 1] not in "\r\n":
        start -= 1
    return finding._replace(span=Span(start, end))
