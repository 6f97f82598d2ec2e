"""A scalar in half-typed text: its value, the place of the cursor in it, and the way back to the text."""

from __future__ import annotations

import re
from typing import NamedTuple

from agentloom.syntax.backend import Failure
from agentloom.syntax.compose import compose
from agentloom.syntax.nodes import Scalar, Style
from agentloom.syntax.scalars import text_span, value_offset
from agentloom.text import Span

_HEADER = re.compile(r"([|>])([-+1-9]*)")


class TextAt(NamedTuple):
    """A scalar's value and the place of the cursor in it. ``scalar`` is None where nothing is typed yet."""

    value: str = ""
    at: int = 0
    scalar: Scalar | None = None

    def span(self, start: int, end: int) -> Span:
        """Return where the characters ``[start, end)`` of the value stand in the text."""
        if self.scalar is None:
            raise ValueError("nothing is typed yet")
        return text_span(self.scalar, start, end)


def text_at(text: str, region: Span, style: Style, unclosed: bool, offset: int) -> TextAt:
    """Return the scalar whose source is ``region``, as far as it is typed; never fails."""
    raw = text[region.start : region.end]
    if not raw:
        return TextAt()
    scalar = _scalar(raw, style, unclosed, region)
    at = offset if style in ("literal", "folded") else max(offset, region.start + (style != "plain"))
    place = min(value_offset(scalar, at), len(scalar.value))
    return TextAt(scalar.value, place, scalar)


def _scalar(raw: str, style: Style, unclosed: bool, region: Span) -> Scalar:
    source = raw + raw[0] if unclosed else raw
    if style in ("literal", "folded"):
        return _block(raw, region)
    found = compose(source)
    if not isinstance(found, Failure) and isinstance(found.node, Scalar) and found.node.style == style:
        node = found.node
        if style == "plain" and len(node.raw) < len(raw) and raw.startswith(node.raw):
            # The cursor may be behind the blanks that follow, which may become a part of the text.
            return Scalar(region, node.value + raw[len(node.raw) :], style, raw)
        return Scalar(region, node.value, style, raw)
    if style == "plain":
        return Scalar(region, raw, style, raw)
    return Scalar(Span(region.start + 1, region.end), raw[1:], "plain", raw[1:])  # character by character


def _block(raw: str, region: Span) -> Scalar:
    """Return a block text; its indentation is that of its first line of content, or what the header says."""
    header = _HEADER.match(raw)
    lines = re.split(r"\r\n|\r|\n", raw)
    filled = [line for line in lines[1:] if line.strip(" \t")]
    indent = min((len(line) - len(line.lstrip(" ")) for line in filled[:1]), default=0)
    if not filled and len(lines) > 1:
        indent = len(lines[-1])
    explicit = re.search(r"[1-9]", header[2]) if header else None
    if explicit is not None and filled:
        indent = min(indent, min(len(line) - len(line.lstrip(" ")) for line in filled))
    style: Style = "folded" if raw[:1] == ">" else "literal"
    source = f"{raw[:1]}{indent if 0 < indent < 10 else ''}+" + raw[len(header[0]) if header else 1 :]
    found = compose(source)
    if not isinstance(found, Failure) and isinstance(found.node, Scalar):
        return Scalar(region, found.node.value, style, raw, indent=indent)
    return Scalar(region, "\n".join(line[indent:] for line in lines[1:]), style, raw, indent=indent)
