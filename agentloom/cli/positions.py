"""Places for people and machines: 1-based lines and columns in code points, as the command line counts them."""

from __future__ import annotations

from agentloom.text import LineTable, Span

BOM = "\ufeff"


def place(lines: LineTable, offset: int) -> tuple[int, int]:
    """Return 1-based line and column of an offset. A byte order mark at the start takes no column."""
    line, column = lines.position(offset)
    if line == 0 and column and lines.text.startswith(BOM):
        column -= 1
    return line + 1, column + 1


def line_text(lines: LineTable, line: int) -> tuple[str, int]:
    """Return the text of a 1-based line without its break, and the offset of its first column."""
    start, end = lines.line_span(line - 1)
    if start == 0 and lines.text.startswith(BOM):
        start += 1
    return lines.text[start:end], start


def ends(lines: LineTable, span: Span) -> tuple[int, int, int, int]:
    """Return line and column of a range's start, and of its end (exclusive)."""
    return (*place(lines, span.start), *place(lines, span.end))
