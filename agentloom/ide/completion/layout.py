"""How a file is laid out, and values written in that layout: blocks and lists to begin with, with blanks to fill in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from agentloom.analysis.document import WorkflowDocument
from agentloom.analysis.edits.places import column_of
from agentloom.ide.completion.items import escaped
from agentloom.syntax.nodes import Mapping as MappingNode
from agentloom.syntax.nodes import Sequence as SequenceNode
from agentloom.syntax.quoting import quote
from agentloom.text import newline_of

_BLANK = re.compile(r"\$\{[0-9]+:([^}]*)\}")


class Layout(NamedTuple):
    """``width``: columns per level; ``dashes``: how far dashes stand behind their key; ``newline``: the line end in use."""

    width: int = 2
    dashes: int = 2
    newline: str = "\n"


class Blank(str):
    """A text that the user is to replace; empty where the cursor goes last."""

    __slots__ = ()


class Bare(Blank):
    """A blank whose text is no text but a number: never in quotes."""

    __slots__ = ()


def layout_of(document: WorkflowDocument, offset: int) -> Layout:
    """Return the layout in use: that of the first block at the top, and of the list of steps."""
    text, top = document.source.text, document.tree.top
    newline = newline_of(text, offset)
    if not isinstance(top, MappingNode) or top.flow or not top.entries:
        return Layout(newline=newline)
    base = document.base
    margin = column_of(text, base + top.entries[0].key.span.start)
    width = dashes = -1
    for entry in top.entries:
        value = entry.value
        if isinstance(value, MappingNode) and not value.flow and value.entries and width < 0:
            width = column_of(text, base + value.entries[0].key.span.start) - margin
        elif isinstance(value, SequenceNode) and not value.flow:
            start = base + value.span.start
            if text.startswith("-", start):
                dashes = column_of(text, start) - margin
    if width <= 0:
        width = dashes if dashes > 0 else 2
    return Layout(min(width, 8), dashes if 0 <= dashes <= 8 else width, newline)


def with_blanks(data: Any) -> Any:
    """Return plain data whose texts may be blanks (`${1:text}`, as in ``STEP_SNIPPETS``) with these as ``Blank``."""
    if isinstance(data, str):
        found = _BLANK.fullmatch(data)
        return Blank(found[1]) if found else data
    if isinstance(data, Mapping):
        return {with_blanks(key): with_blanks(value) for key, value in data.items()}
    return [with_blanks(item) for item in data] if isinstance(data, Sequence) else data


class Writer:
    """Writes plain data as snippet text; blanks are numbered in order, an empty one is where the cursor ends."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.count = 0

    def entry(self, key: str, value: Any, column: int, flow: bool = False) -> str:
        """Return `key: value`; ``column`` is that of the key."""
        if flow:
            return f"{self.scalar(key, True)}: {self.flow(value)}"
        return self.scalar(key, False) + ":" + self.below(value, column)

    def below(self, value: Any, column: int) -> str:
        """Return what stands behind the colon of a key at ``column``: the value on the same line, or a block below."""
        if isinstance(value, Mapping) and value:
            inner = column + self.layout.width
            return self._line(inner) + self.mapping(value, inner)
        if isinstance(value, list) and value and self._plain_list(value):
            return " " + self.flow(value)
        if isinstance(value, list) and value:
            inner = column + self.layout.dashes
            return self._line(inner) + self.items(value, inner)
        return " " + self.flow(value)

    def mapping(self, data: Mapping[str, Any], column: int) -> str:
        """Return a block's lines; the first without indentation."""
        return self._line(column).join(self.entry(key, value, column) for key, value in data.items())

    def items(self, data: Sequence[Any], column: int) -> str:
        """Return a block list's lines; ``column`` is that of its dashes."""
        return self._line(column).join(f"- {self.item(item, column)}" for item in data)

    def item(self, item: Any, column: int) -> str:
        """Return what stands behind the dash at ``column``."""
        return self.mapping(item, column + 2) if isinstance(item, Mapping) and item else self.flow(item, flow=False)

    def flow(self, value: Any, flow: bool = True) -> str:
        """Return a value on one line, in brackets where it is a mapping or list."""
        if isinstance(value, Mapping):
            return "{" + ", ".join(self.entry(key, inner, 0, True) for key, inner in value.items()) + "}"
        if isinstance(value, list):
            return "[" + ", ".join(self.flow(item) for item in value) + "]"
        return self.scalar(value, flow)

    def scalar(self, value: Any, flow: bool) -> str:
        """Return one scalar; a blank with its quotes around it."""
        if isinstance(value, Blank):
            if not value:
                return "$0"
            self.count += 1
            spelled = value if isinstance(value, Bare) else quote(value, flow)
            end = "" if spelled == value else spelled[0]
            return f"{end}${{{self.count}:{escaped(spelled[len(end) : len(spelled) - len(end)])}}}{end}"
        if isinstance(value, str):
            return escaped(quote(value, flow))
        return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)

    def _line(self, column: int) -> str:
        return self.layout.newline + " " * column

    @staticmethod
    def _plain_list(value: Sequence[Any]) -> bool:
        return all(not isinstance(item, (Mapping, list)) for item in value) and not any(
            isinstance(item, Blank) and not item for item in value
        )
