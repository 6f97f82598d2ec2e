"""Texts with a cursor in them: `¦` marks the place, and is not part of the text."""

from __future__ import annotations

from agentloom.analysis.document import WorkflowDocument
from tests.analysis.checking import check

CURSOR = "¦"


def cut(marked: str) -> tuple[str, int]:
    """Return a text without its mark, and the offset where it stood."""
    offset = marked.index(CURSOR)
    return marked[:offset] + marked[offset + 1 :], offset


def opened(marked: str) -> tuple[WorkflowDocument, int]:
    """Return the checked document of a marked text, and the offset of its mark."""
    text, offset = cut(marked)
    return check(text), offset
