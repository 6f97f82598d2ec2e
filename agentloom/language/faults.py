"""A fault in a template or an expression: where it is in the value, what is wrong, and the text that cures it."""

from __future__ import annotations

from typing import Literal, NamedTuple

from agentloom.text import Span

FaultKind = Literal[
    "template",  # a template that can't be rendered (AL304)
    "syntax",  # an expression that can't be read (AL301)
    "forbidden",  # an expression that uses what routers don't allow (AL302)
    "unknown-name",  # a name that is neither `state`, `steps` nor a function (AL303)
    "note",  # a template that renders, but surely not as meant
]


class Fault(NamedTuple):
    """One fault. ``span`` is in offsets of the value; ``replacement`` is what to write over ``span``, if that cures it.

    ``title`` says what the replacement does, in a few words, such as ``double the braces``.
    """

    kind: FaultKind
    span: Span
    message: str
    replacement: str | None = None
    title: str = ""

    @property
    def start(self) -> int:
        """Where it begins in the value."""
        return self.span.start

    @property
    def end(self) -> int:
        """Where it ends in the value."""
        return self.span.end

    @property
    def escape(self) -> bool:
        """Whether the cure is to write braces twice."""
        return self.title == DOUBLE_BRACES


DOUBLE_BRACES = "double the braces"
