"""Reading the rules' fixtures: a file's text without its expectations, and the expectations."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from agentloom.analysis.context import Context
from agentloom.analysis.document import WorkflowDocument
from agentloom.analysis.settings import find_settings
from agentloom.text import Source
from agentloom.tools.catalogue import BUILTIN_TOOLS

ROOT = Path(__file__).parent / "fixtures" / "rules"

_CARET = re.compile(r"^[ \t]*#[ \t]*(?P<carets>\^+)[ \t]+(?P<code>AL\d{3})(?:[ \t]+(?P<words>.+))?$")
_WANT = re.compile(r"^[ \t]*#[ \t]*want[ \t]+(?P<code>AL\d{3})[ \t]+(\d+):(\d+)-(\d+):(\d+)(?:[ \t]+(?P<words>.+))?$")


@dataclass(frozen=True, slots=True, order=True)
class Want:
    """One expected diagnostic: 1-based line and columns, end exclusive."""

    line: int
    column: int
    end_column: int
    code: str
    words: str = ""


def read_fixture(path: Path) -> tuple[str, list[Want]]:
    """Return a fixture's text without its expectations, and these."""
    kept: list[str] = []
    wants: list[Want] = []
    for line in path.read_bytes().decode("utf-8").splitlines(keepends=True) if path.suffix == ".yaml" else []:
        bare = line.rstrip("\r\n")
        caret = _CARET.match(bare)
        want = _WANT.match(bare)
        if caret:
            start = caret.start("carets") + 1
            wants.append(Want(len(kept), start, start + len(caret["carets"]), caret["code"], caret["words"] or ""))
        elif want:
            line_no, column, end_line, end_column = (int(want[i]) for i in range(2, 6))
            assert line_no == end_line, f"{path}: a diagnostic lies on one line"
            wants.append(Want(line_no, column, end_column, want["code"], want["words"] or ""))
        else:
            kept.append(line)
    return "".join(kept), sorted(wants)


def analyze_fixture(path: Path, text: str) -> WorkflowDocument:
    """Return the document of a fixture's text, in its own folder with its own settings."""
    from agentloom.analysis.analyze import analyze

    return analyze(Source(str(path), text), Context(settings=find_settings(path), tools=BUILTIN_TOOLS))


def found_in(document: WorkflowDocument) -> list[Want]:
    """Return a document's diagnostics in the form of expectations."""
    found: list[Want] = []
    for d in document.diagnostics:
        line, column = document.lines.position(d.span.start)
        end_line, end_column = document.lines.position(d.span.end)
        assert end_line == line, f"{d.code} runs over several lines"
        found.append(Want(line + 1, column + 1, end_column + 1, d.code))
    return sorted(found)


def all_fixtures(pattern: str) -> list[Path]:
    """Return the fixtures whose name fits, in order."""
    return sorted(ROOT.glob(f"AL*/{pattern}"))
