"""Diagnostics for machines: the object that ``validate --format json`` prints, described in ``docs/json.md``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentloom.analysis.rules.registry import RULE_BY_CODE
from agentloom.cli.positions import ends
from agentloom.cli.render import Place
from agentloom.diagnostics import Diagnostic, Edit, Related
from agentloom.text import LineTable, Span

VERSION = 1
"""Of the format; raised only when a reader of an older one would go wrong."""


def diagnostic_json(
    diagnostic: Diagnostic, path: str, lines: LineTable, elsewhere: Callable[[str], Place]
) -> dict[str, Any]:
    """Return one diagnostic as plain data. Lines and columns are 1-based, columns count code points, ends are exclusive."""
    fix = diagnostic.fixes[0] if diagnostic.fixes else None
    return {
        "path": path,
        "code": diagnostic.code,
        "name": diagnostic.name,
        "severity": diagnostic.severity.word,
        "message": diagnostic.message,
        **_range(lines, diagnostic.span),
        "related": [_related(related, path, lines, elsewhere) for related in diagnostic.related],
        "fix": fix and {"title": fix.title, "safe": fix.safe, "edits": [_edit(edit, lines) for edit in fix.edits]},
        "url": RULE_BY_CODE[diagnostic.code].url,
    }


def report(diagnostics: list[dict[str, Any]], files: int, counts: tuple[int, int, int, int]) -> dict[str, Any]:
    """Return the whole report. ``counts`` are errors, warnings, informations and hints among ``diagnostics``."""
    errors, warnings, informations, hints = counts
    return {
        "version": VERSION,
        "diagnostics": diagnostics,
        "summary": {
            "files": files,
            "errors": errors,
            "warnings": warnings,
            "informations": informations,
            "hints": hints,
        },
    }


def _range(lines: LineTable, span: Span) -> dict[str, int]:
    line, column, end_line, end_column = ends(lines, span)
    return {"line": line, "column": column, "end_line": end_line, "end_column": end_column}


def _edit(edit: Edit, lines: LineTable) -> dict[str, Any]:
    return {**_range(lines, edit.span), "text": edit.text}


def _related(related: Related, path: str, lines: LineTable, elsewhere: Callable[[str], Place]) -> dict[str, Any]:
    there: LineTable | None
    name, there = (path, lines) if related.path is None else elsewhere(related.path)
    where = _range(there if there is not None else LineTable(""), related.span)
    return {"path": name, **where, "message": related.message}
