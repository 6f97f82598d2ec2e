"""How an item's text is put in by editors that can do more or less: as a snippet, or filled; with lines indented by the editor or not."""

from __future__ import annotations

import re
from typing import NamedTuple

from agentloom.analysis.edits.places import line_start
from agentloom.ide.completion.items import Item, escaped, filled

_BREAK = re.compile(r"\r\n|\r|\n")


class Insertion(NamedTuple):
    """The text to insert. ``relative``: the editor puts the line's own indentation before every further line."""

    text: str
    snippet: bool = False
    relative: bool = False


def insertion(item: Item, source: str, snippets: bool, several: bool) -> Insertion | None:
    """Return what an editor is to insert; None when it can't: ``snippets`` and ``several`` (lines) tell what it can.

    Editors that know snippets indent the lines behind the first themselves.
    """
    text = item.edit.text
    has_lines = _BREAK.search(text) is not None
    if not snippets:
        if item.in_line and has_lines and not several:
            return Insertion(filled(item.in_line))
        if item.kind == "key" and not text.startswith(("\n", "\r")):
            text = _BREAK.split(text)[0]
            return Insertion(_before_blank(text) if item.snippet else text)
        return Insertion(filled(text) if item.snippet else text) if several or not has_lines else None
    if not item.snippet and (has_lines or text != text.strip()):
        # Some editors cut the blanks off what is no snippet, or can't insert several lines of it.
        text = escaped(text) + "$0" * text.endswith(" ")
        item = item._replace(snippet=True)
    if not has_lines:
        return Insertion(text, item.snippet)
    return Insertion(outdented(text, indent_before(source, item.edit.span.start)), True, True)


def _before_blank(text: str) -> str:
    """Return a key's line up to the first blank to fill in; with brackets, all of it."""
    cut = re.search(r"['\"]?\$", text)
    return text[: cut.start()] if cut and text[: cut.start()][-1:] not in ("[", "{") else filled(text)


def indent_before(source: str, offset: int) -> int:
    """Return how many blanks begin the line of an offset, up to it."""
    line = at = line_start(source, offset)
    while at < offset and source[at] in " \t":
        at += 1
    return at - line


def outdented(text: str, by: int) -> str:
    """Return a text with up to ``by`` blanks taken from every line but the first."""
    return re.sub(rf"(\r\n|\r|\n) {{0,{by}}}", r"\1", text) if by else text
