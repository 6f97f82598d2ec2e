"""Places in two versions of a text: what an editor shows now, and the last version that could be read.

What both versions have at their beginning and at their end is the same place; what was changed between has none, but for whole
lines that stand in both.
"""

from __future__ import annotations

from collections.abc import Callable

from agentloom.text import Span


def place_before(now: str, before: str, offset: int) -> int | None:
    """Return the offset in the earlier text of the place at ``offset``; None where the text is new."""
    head, tail = _common(now, before)
    if offset <= head:
        return offset
    if offset >= len(now) - tail:
        return offset - len(now) + len(before)
    line = _line(now, offset)
    text = now[line.start : line.end]
    if not text.strip():
        return None
    start = before.find(text, head - len(text) if head > len(text) else 0, len(before) - tail + len(text))
    whole = start >= 0 and _line(before, start) == Span(start, start + len(text))
    return start + offset - line.start if whole else None


def span_now(now: str, before: str, span: Span) -> Span | None:
    """Return where a range of the earlier text stands now; None when what it held was changed."""
    start = place_before(before, now, span.start)
    if start is None:
        return None
    found = Span(start, start + span.end - span.start)
    return found if now[found.start : found.end] == before[span.start : span.end] else None


def _common(now: str, before: str) -> tuple[int, int]:
    """Return how many characters two texts share at their beginnings, and at their ends beyond those."""
    shorter = min(len(now), len(before))
    head = _most(shorter, lambda a, b: now[a:b] == before[a:b])
    tail = _most(shorter - head, lambda a, b: _ending(now, a, b) == _ending(before, a, b))
    return head, tail


def _most(length: int, same: Callable[[int, int], bool]) -> int:
    """Return how far two texts are the same, by halves: comparing slices is quick, comparing characters isn't."""
    found, step = 0, length
    while step:
        if found + step <= length and same(found, found + step):
            found += step
        else:
            step //= 2
    return found


def _ending(text: str, start: int, end: int) -> str:
    return text[len(text) - end : len(text) - start]


def _line(text: str, offset: int) -> Span:
    start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    ends = [end for end in (text.find("\n", offset), text.find("\r", offset)) if end >= 0]
    return Span(start, min(ends, default=len(text)))
