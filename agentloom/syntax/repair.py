"""A repair: a fault of a text, and the edits that mend it for reading and for the user alike."""

from __future__ import annotations

import re
from typing import NamedTuple

from agentloom.diagnostics import Edit, Finding, Fix
from agentloom.syntax.lines import behind_blanks
from agentloom.syntax.quoting import quote, single
from agentloom.text import Span

IN_QUOTES = "put the value in quotes"

_WORD = re.compile(r"\S+")


class Repair(NamedTuple):
    """A fault, and the edits that mend it for reading and for the user alike."""

    finding: Finding
    edits: tuple[Edit, ...]

    @staticmethod
    def of(span: Span, message: str, title: str, *edits: Edit, code: str = "AL001", safe: bool = False) -> Repair:
        """Return a repair whose edits are also the finding's fix."""
        return Repair(Finding(code, span, message, fixes=(Fix(title, edits, safe),)), edits)


def in_quotes(text: str, at: int, stop: int, span: Span, fault: str, code: str = "AL001") -> Repair:
    """Return the repair that puts ``[at, stop)`` in quotes, its line breaks where they are."""
    value = text[at:stop]
    written = quote(value) if "\n" not in value and "\r" not in value else single(value)
    if written == value:
        written = single(value)
    return Repair.of(span, f"{fault}; {IN_QUOTES}", "put it in quotes", Edit(Span(at, stop), written), code=code)


def first_word(text: str, at: int, stop: int) -> Span:
    """Return the first word at or behind ``at``, blanks skipped; at least one character where there is one before ``stop``."""
    at = behind_blanks(text, at)
    word = _WORD.match(text, at, stop)
    return Span(at, word.end() if word else max(at, min(stop, at + 1)))
