"""Workflows as careful users write them: nothing is told of them that isn't so, and no warning at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentloom.analysis.analyze import analyze
from agentloom.analysis.context import Context
from agentloom.analysis.settings import find_settings
from agentloom.diagnostics import Severity
from agentloom.text import Source
from agentloom.tools.catalogue import BUILTIN_TOOLS

CAREFUL = sorted((Path(__file__).parent.parent / "fixtures" / "careful").rglob("*.yaml"))

WORTH_KNOWING = {
    # A result of a step that isn't waited for: right as it is, and easily lost.
    "two_routers.loom.yaml": [("AL408", "steps.first.output")],
}
"""What is told as information, by file."""


def test_there_are_enough() -> None:
    """Workflows of many shapes."""
    assert len(CAREFUL) >= 15


@pytest.mark.parametrize("path", CAREFUL, ids=lambda path: path.name)
def test_no_false_alarm(path: Path) -> None:
    """Neither errors nor warnings; information only where it is listed here."""
    text = path.read_text(encoding="utf-8")
    document = analyze(Source(str(path), text), Context(settings=find_settings(path), tools=BUILTIN_TOOLS))
    loud = [d for d in document.diagnostics if d.severity <= Severity.WARNING]
    assert [(d.code, d.message) for d in loud] == []
    found = [
        (d.code, text[d.span.start : d.span.end].removeprefix("state."))
        for d in document.diagnostics
        if d.severity <= Severity.INFORMATION
    ]
    assert found == WORTH_KNOWING.get(path.name, [])
