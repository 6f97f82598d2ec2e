"""Every workflow and agent file of the project: fixtures of the rules, examples, and files of mistakes."""

from __future__ import annotations

from pathlib import Path

from agentloom.analysis.analyze import AnalysisCache, analyze
from agentloom.analysis.context import Context
from agentloom.analysis.document import WorkflowDocument
from agentloom.text import Source
from tests.conftest import ROOT

FOLDERS = ("tests/fixtures", "examples", "docs/mistakes")


def files() -> list[Path]:
    """Return the files, sorted."""
    return sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.yaml"))


def check(text: str, path: Path | None = None, cache: AnalysisCache | None = None) -> WorkflowDocument:
    """Check a text as the file at ``path``; by default an untitled workflow. ``cache`` as an editor keeps it between edits."""
    return analyze(Source(str(path) if path else "untitled:x.loom.yaml", text), Context(), cache)


def sound(document: WorkflowDocument) -> None:
    """Hold what is true of every checked document, whatever its text: places inside it, on one line, and in order."""
    text, lines = document.source.text, document.lines
    before = None
    for found in document.diagnostics:
        assert found.code != "AL900", found.message
        assert 0 <= found.span.start <= found.span.end <= len(text), found
        assert lines.line_of(found.span.start) == lines.line_of(found.span.end), found
        assert "\n" not in found.message, found
        assert before is None or before <= found.span.start, "not sorted by place"
        before = found.span.start
        for fix in found.fixes:
            for edit in fix.edits:
                assert 0 <= edit.span.start <= edit.span.end <= len(text), fix
