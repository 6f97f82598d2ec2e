"""Checking a text and asking what was said about it, in a few words."""

from __future__ import annotations

from dataclasses import dataclass

from agentloom.analysis.analyze import AnalysisCache, analyze
from agentloom.analysis.context import Context
from agentloom.analysis.document import WorkflowDocument
from agentloom.analysis.settings import Settings
from agentloom.diagnostics import Diagnostic, apply_edits
from agentloom.text import Source

H = "name: w\nsteps:\n"
"""The head of a workflow, up to its steps."""
A = "  - id: a\n    type: llm_call\n    prompt: hi\n"
"""A step that is fine."""
ANY_STATE = Settings(known_state=("*",))
"""Settings with which any state key may come from the command line: for tests that aren't about where keys come from."""


@dataclass(frozen=True, slots=True)
class Told:
    """A diagnostic in the terms of tests: 1-based line, the marked text, and what was said."""

    code: str
    line: int
    marked: str
    message: str


def check(text: str, settings: Settings | None = None, cache: AnalysisCache | None = None) -> WorkflowDocument:
    """Return the document of a text that is no file. Without settings any state key counts as given."""
    return analyze(Source("untitled:x", text), Context(settings=settings or ANY_STATE), cache, "workflow")


def told(text: str) -> list[Told]:
    """Return what is said about a text, in order."""
    document = check(text)
    return [
        Told(d.code, document.lines.line_of(d.span.start) + 1, text[d.span.start : d.span.end], d.message)
        for d in document.diagnostics
    ]


def places(text: str) -> list[tuple[str, int, str]]:
    """Return code, line and marked text of what is said."""
    return [(t.code, t.line, t.marked) for t in told(text)]


def codes(text: str) -> list[str]:
    """Return the codes of what is said."""
    return [t.code for t in told(text)]


def only(text: str, code: str) -> Diagnostic:
    """Return the only diagnostic of a code."""
    (found,) = [d for d in check(text).diagnostics if d.code == code]
    return found


def cured(text: str, code: str, title: str = "") -> str:
    """Return the text after a fix of the only diagnostic of a code: the first one whose title has these words."""
    fix = next(fix for fix in only(text, code).fixes if title in fix.title)
    return apply_edits(text, fix.edits)
