"""Lists and tables, as the command line prints them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

from agentloom.cli.cells import draw, visible

NOUNS = ("error", "warning", "information", "hint")


def columns(rows: Sequence[tuple[str, str]], indent: int = 2, gap: int = 2) -> Iterator[str]:
    """Yield a line per row, the second column lined up."""
    widths = [draw(name).width for name, _ in rows]
    edge = max(widths, default=0)
    for (name, value), width in zip(rows, widths, strict=True):
        yield f"{'':{indent}}{name}{'':{edge - width + gap}}{value}".rstrip()


def grid(rows: Sequence[Sequence[str]], encoding: str, numbers: Container[int] = ()) -> Iterator[str]:
    """Yield a line per row, the first of them the header, all columns lined up: those of ``numbers`` to the right."""
    shown = [[visible(cell, encoding) for cell in row] for row in rows]
    widths = [max(draw(row[at], encoding).width for row in shown) for at in range(len(rows[0]))]
    for row in shown:
        cells: list[str] = []
        for at, (cell, width) in enumerate(zip(row, widths, strict=True)):
            pad = " " * (width - draw(cell, encoding).width)
            cells.append(pad + cell if at in numbers else cell + pad)
        yield "  ".join(cells).rstrip()


def count(number: int, noun: str, many: str = "") -> str:
    """Return a number with its noun: `1 error`, `2 errors`; ``many`` is the plural where it isn't the noun with an `s`."""
    return f"{number} {noun}" if number == 1 else f"{number} {many or noun + 's'}"


def in_words(counts: Iterable[int]) -> str:
    """Return counts of errors, warnings, informations and hints as words: `1 error, 2 warnings`."""
    parts = [count(number, noun) for number, noun in zip(counts, NOUNS, strict=True) if number]
    return ", ".join(parts) or "no findings"
