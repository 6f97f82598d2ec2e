"""Every workflow and agent file of the project: fixtures of the rules, examples, and files of mistakes; and how they are checked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from agentloom.analysis.analyze import AnalysisCache, analyze
from agentloom.analysis.context import Context
from agentloom.analysis.document import WorkflowDocument
from agentloom.text import Source
from tests.conftest import ROOT

FIXTURES = "tests/fixtures/rules"
FOLDERS = (FIXTURES, "examples", "docs/mistakes")
SUFFIXES = (".yaml", ".yml")
MARK = b"\xef\xbb\xbf"


def with_line_ends(data: bytes, end: bytes) -> bytes:
    """Return a file with one kind of line end."""
    return data.replace(b"\r\n", b"\n").replace(b"\n", end)


def with_wide_characters(data: bytes) -> bytes:
    """Return a file with characters of two to four bytes above everything, and before the text of every quoted prompt."""
    mark = MARK if data.startswith(MARK) else b""
    wide = "# 😀 é\u2028ノ\n".encode() + data.removeprefix(MARK)
    return mark + wide.replace(b'prompt: "', 'prompt: "😀é '.encode())


VARIANTS: dict[str, Callable[[bytes], bytes]] = {
    "as it is": lambda data: data,
    "crlf": lambda data: with_line_ends(data, b"\r\n"),
    "cr and wide": lambda data: with_line_ends(with_wide_characters(data), b"\r"),
    "mark and wide": lambda data: MARK + with_wide_characters(data).removeprefix(MARK),
}
"""Other ways in which the same file can be saved, with wide characters before what is found in it."""


def files(*folders: str) -> list[Path]:
    """Return the files below some folders (all of ours by default), sorted."""
    return sorted(p for top in folders or FOLDERS for p in (ROOT / top).rglob("*") if p.suffix in SUFFIXES)


def written(folder: Path) -> list[Path]:
    """Write every variant of every file below a folder, with the files that it names beside it; return the paths."""
    found: list[Path] = []
    for variant, change in VARIANTS.items():
        for path in sorted(p for top in FOLDERS for p in (ROOT / top).rglob("*") if p.is_file()):
            copy = folder / variant / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            ours = path.suffix in SUFFIXES
            copy.write_bytes(change(path.read_bytes()) if ours else path.read_bytes())
            if ours:
                found.append(copy)
    return found


def check(text: str, path: Path | None = None, cache: AnalysisCache | None = None) -> WorkflowDocument:
    """Check a text as the file at ``path``; by default an untitled workflow. ``cache`` as an editor keeps it between edits."""
    return analyze(Source(str(path) if path else "untitled:x.loom.yaml", text), Context(), cache)


def sound(document: WorkflowDocument) -> None:
    """Hold what is true of every checked document, whatever its text: places inside it, on one line, and in order."""
    text, lines = document.source.text, document.lines
    before = 0
    for found in document.diagnostics:
        assert found.code != "AL900", found.message
        assert before <= found.span.start <= found.span.end <= len(text), found
        assert lines.line_of(found.span.start) == lines.line_of(found.span.end), found
        assert found.message.isprintable(), found
        before = found.span.start
        for fix in found.fixes:
            for edit in fix.edits:
                assert 0 <= edit.span.start <= edit.span.end <= len(text), fix
        for related in found.related:
            assert related.path or 0 <= related.span.start <= related.span.end <= len(text), related
