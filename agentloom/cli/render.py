"""Diagnostics as text for people, in the manner of a good compiler: place, code, words, the line with the range underlined,
the other half of the story, and the cure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from agentloom.cli import console
from agentloom.cli.cells import draw, visible, window
from agentloom.cli.console import Look
from agentloom.cli.positions import line_text, place
from agentloom.diagnostics import Diagnostic, Related, Severity
from agentloom.text import LineTable, Span

Place = tuple[str, LineTable | None]
"""How another file is called, and its lines if it could be read."""

SEVERITY_STYLE = {
    Severity.ERROR: console.RED,
    Severity.WARNING: console.YELLOW,
    Severity.INFORMATION: console.CYAN,
    Severity.HINT: console.DIM,
}

SECRET = frozenset({"AL801"})
"""Codes about secrets: what they point at must not get into the logs of a build."""

AROUND = 4
"""Code points looked at on either side of a range, per cell of room: lines can be megabytes long."""


def render(
    diagnostic: Diagnostic, path: str, lines: LineTable, look: Look, elsewhere: Callable[[str], Place]
) -> Iterator[str]:
    """Yield the lines of output for one diagnostic. ``elsewhere`` gives name and lines of another file."""
    style = SEVERITY_STYLE[diagnostic.severity]
    at = look.paint(_at(path, lines, diagnostic.span, look), console.BOLD)
    word = look.paint(f"{diagnostic.severity.word}[{diagnostic.code}]", style)
    yield f"{at}: {word} {diagnostic.name}: {look.paint(visible(diagnostic.message, look.encoding), console.BOLD)}"
    margin = _margin(diagnostic, lines)
    yield from _quote(lines, diagnostic.span, look, margin, style, hidden=diagnostic.code in SECRET)
    for related in diagnostic.related:
        yield from _note(related, path, lines, look, elsewhere, margin)
    if diagnostic.fixes:
        yield f"  {look.paint('fix:', console.GREEN)} {visible(diagnostic.fixes[0].title, look.encoding)}"


def _note(
    related: Related, path: str, lines: LineTable, look: Look, elsewhere: Callable[[str], Place], margin: int
) -> Iterator[str]:
    there: LineTable | None
    name, there = (path, lines) if related.path is None else elsewhere(related.path)
    at = visible(name, look.encoding) if there is None else _at(name, there, related.span, look)
    yield f"  {look.paint('note:', console.BLUE)} {at}: {visible(related.message, look.encoding)}"
    if there is not None:
        yield from _quote(there, related.span, look, margin, console.BLUE)


def _at(path: str, lines: LineTable, span: Span, look: Look) -> str:
    line, column = place(lines, span.start)
    return f"{visible(path, look.encoding)}:{line}:{column}"


def _margin(diagnostic: Diagnostic, lines: LineTable) -> int:
    """Return the width of the line numbers that stand under one diagnostic."""
    offsets = [diagnostic.span.start, *(r.span.start for r in diagnostic.related if r.path is None)]
    return len(str(max(place(lines, offset)[0] for offset in offsets)))


def _quote(lines: LineTable, span: Span, look: Look, margin: int, style: str, hidden: bool = False) -> Iterator[str]:
    """Yield the line that a range starts on, and the marks under the range (its first line, if it has several).

    What is ``hidden`` stays so: the text in the range is not shown.
    """
    number = place(lines, span.start)[0]
    text, start = line_text(lines, number)
    left = max(0, min(span.start - start, len(text)))
    right = max(left, min(span.end - start, len(text)))
    if hidden:
        text = f"{text[:left]}{'*' * (right - left)}{text[right:]}"
    room = max(20, look.width - margin - 5)
    before, after = max(0, left - AROUND * room), left + AROUND * room
    cells = draw(text[before:after], look.encoding)
    shown, left_cell, right_cell = window(cells, *cells.underline(left - before, right - before), room, look.more)
    gutter = look.paint(f"  {number:>{margin}} |", console.BLUE)
    yield f"{gutter} {shown}".rstrip()
    gutter = look.paint(f"  {'':>{margin}} |", console.BLUE)
    yield f"{gutter} {' ' * left_cell}{look.paint('^' * (right_cell - left_cell), style)}"
