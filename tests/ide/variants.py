"""One text in several dresses: Windows line ends with a byte order mark, comments and emoji, lone CRs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from agentloom.diagnostics import Edit


def plain(text: str) -> str:
    """Return the text as it is."""
    return text


def windows(text: str) -> str:
    """Return the text with a byte order mark and CRLF."""
    return "\ufeff" + text.replace("\r\n", "\n").replace("\n", "\r\n")


def emoji(text: str) -> str:
    """Return the text below a line of wide characters."""
    return "# 😀 é ✓\n" + text


VARIANTS: dict[str, Callable[[str], str]] = {"plain": plain, "windows": windows, "emoji": emoji}


def same_line_ends(before: str, after: str) -> bool:
    """Tell whether an edited text keeps to the one line end that it had."""
    if "\r\n" in before and before.count("\n") == before.count("\r\n"):
        return after.count("\n") == after.count("\r\n") == after.count("\r")
    return after.count("\r") == before.count("\r")


def in_order(edits: tuple[Edit, ...], text: str) -> bool:
    """Tell whether edits lie in the text, in ascending order, and none overlaps another."""
    spans = [edit.span for edit in edits]
    inside = all(0 <= start <= end <= len(text) for start, end in spans)
    return inside and all(one.end <= other.start for one, other in pairwise(spans))
