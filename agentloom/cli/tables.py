"""Two-column lists, as the command line prints them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentloom.cli.cells import draw


def columns(rows: Sequence[tuple[str, str]], indent: int = 2, gap: int = 2) -> Iterator[str]:
    """Yield a line per row, the second column lined up."""
    widths = [draw(name).width for name, _ in rows]
    edge = max(widths, default=0)
    for (name, value), width in zip(rows, widths, strict=True):
        yield f"{'':{indent}}{name}{'':{edge - width + gap}}{value}".rstrip()


def count(number: int, noun: str) -> str:
    """Return a number with its noun: `1 error`, `2 errors`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
