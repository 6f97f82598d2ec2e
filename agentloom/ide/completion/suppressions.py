"""Codes of rules inside `# agentloom: ignore[…]`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentloom.analysis.rules.registry import RULES
from agentloom.diagnostics import Edit, Severity
from agentloom.ide.completion.items import Item
from agentloom.ide.completion.where import Where
from agentloom.ide.results import Project
from agentloom.text import Span

_OPEN = re.compile(r"#\s*agentloom:\s*ignore(?P<file>-file)?\s*\[(?P<before>[^\]]*)\Z")
_WORD_END = re.compile(r"[A-Za-z0-9-]*")
NEAR = 3
"""Lines below a comment whose diagnostics are offered first."""


def applies(where: Where) -> bool:
    """Tell whether the cursor is in the brackets of a suppression."""
    return where.kind == "comment" and _OPEN.search(_before(where)) is not None


def _before(where: Where) -> str:
    span = where.document.lines.line_span(where.document.lines.line_of(where.offset))
    return where.source[span.start : where.offset]


def items(where: Where, project: Project | None = None) -> Iterator[Item]:
    """Yield the codes, those said about the lines meant first; errors can't be hidden."""
    del project
    found = _OPEN.search(_before(where))
    assert found is not None
    inside = found["before"]
    last = re.split(r"[\s,]+", inside)[-1]
    start = where.offset - len(last)
    behind = _WORD_END.match(where.source, where.offset)
    span = Span(start, behind.end() if behind else where.offset)
    rest = where.source[span.end : _line_stop(where)].partition("]")[0]
    there = set(re.split(r"[\s,]+", inside[: len(inside) - len(last)])) | set(re.split(r"[\s,]+", rest))
    near = _near(where, found["file"] is not None)
    for rule in RULES:
        if rule.code not in there and rule.severity is not Severity.ERROR:
            yield Item(
                rule.code, "code", Edit(span, rule.code), rule.name, ("rule", rule.code),
                rank=1 if rule.code in near else 3, filter=f"{rule.code} {rule.name}",
            )  # fmt: skip


def _line_stop(where: Where) -> int:
    lines = where.document.lines
    return lines.line_span(lines.line_of(where.offset)).end


def _near(where: Where, whole_file: bool) -> set[str]:
    """Return the codes of what is said about the lines that a suppression here is for."""
    document = where.document
    if whole_file:
        return {diagnostic.code for diagnostic in document.diagnostics}
    line = document.lines.line_of(where.offset)
    own = not _before(where).partition("#")[0].strip()
    said = ((d.code, document.lines.line_of(d.span.start)) for d in document.diagnostics)
    return {
        code for code, at in said if (line < at <= line + NEAR if own else at == line) and not code.startswith("AL9")
    }
