"""What a check says: findings of rules, and the diagnostics they become.

A rule yields ``Finding`` values in whatever offsets it works in (a step's own, or the document's). The driver in
``agentloom.analysis.analyze`` shifts them to the document, stamps severity and name, applies suppressions and sorts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import IntEnum
from typing import Literal, NamedTuple

from agentloom.text import Span

Tag = Literal["unnecessary"]

LONGEST_WORD = 120
"""Code points of the user's own text that a message repeats between backticks."""

_QUOTED = r"`([^`]*)`"


class Severity(IntEnum):
    """How bad; the numbers are those of the Language Server Protocol."""

    ERROR = 1
    WARNING = 2
    INFORMATION = 3
    HINT = 4

    @property
    def word(self) -> str:
        """Return the word used in settings and in machine-readable output."""
        return self.name.lower()


SEVERITY_BY_WORD = {severity.word: severity for severity in Severity}


class Edit(NamedTuple):
    """Replace the text at ``span`` by ``text``."""

    span: Span
    text: str


class Fix(NamedTuple):
    """One cure, with the edits that carry it out. A safe fix can't change what a correct part of the file means."""

    title: str
    edits: tuple[Edit, ...]
    safe: bool = True


class Related(NamedTuple):
    """The other half of the story. ``path`` is set when it is in another file; the span is then in that file's text."""

    span: Span
    message: str
    path: str | None = None


class Finding(NamedTuple):
    """What a rule yields. ``fixes`` are in order of preference; ``severity`` overrides the rule's own."""

    code: str
    span: Span
    message: str
    related: tuple[Related, ...] = ()
    fixes: tuple[Fix, ...] = ()
    tags: tuple[Tag, ...] = ()
    severity: Severity | None = None

    def shift(self, by: int) -> Finding:
        """Return the same finding, ``by`` code points further on (related places in other files stay)."""
        if not by:
            return self
        return self._replace(
            span=self.span.shift(by),
            related=tuple(r if r.path else r._replace(span=r.span.shift(by)) for r in self.related),
            fixes=tuple(f._replace(edits=tuple(Edit(e.span.shift(by), e.text) for e in f.edits)) for f in self.fixes),
        )


class Diagnostic(NamedTuple):
    """A finding with its final range, name and severity, as every reader shows it.

    ``refuses`` tells that the engine couldn't run the file, whatever the settings say: no comment hides it then.
    """

    code: str
    name: str
    severity: Severity
    span: Span
    message: str
    related: tuple[Related, ...] = ()
    fixes: tuple[Fix, ...] = ()
    tags: tuple[Tag, ...] = ()
    refuses: bool = False

    @property
    def key(self) -> tuple[int, int, str, str]:
        """Return the sort key: by place, then by code."""
        return (self.span.start, self.span.end, self.code, self.message)


def in_one_line(message: str) -> str:
    """Return a message on one line, long words of the user's shortened: a whole prompt may stand where a word was meant."""
    if len(message) <= LONGEST_WORD and message.isprintable():
        return message
    return "".join(c if c.isprintable() else " " for c in re.sub(_QUOTED, _shortened, message))


def _shortened(found: re.Match[str]) -> str:
    word = " ".join(found[1].split()) if len(found[1]) > LONGEST_WORD or not found[1].isprintable() else found[1]
    return f"`{word}`" if len(word) <= LONGEST_WORD else f"`{word[: LONGEST_WORD - 1]}…`"


def has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    """Tell whether any diagnostic refuses the file."""
    return any(d.severity is Severity.ERROR for d in diagnostics)


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return ``text`` with non-overlapping ``edits`` carried out.

    Raises ``ValueError`` when two edits overlap.
    """
    parts: list[str] = []
    at = 0
    for edit in sorted(edits, key=lambda e: (e.span.start, e.span.end)):
        if edit.span.start < at:
            raise ValueError("edits overlap")
        parts.append(text[at : edit.span.start])
        parts.append(edit.text)
        at = edit.span.end
    parts.append(text[at:])
    return "".join(parts)
