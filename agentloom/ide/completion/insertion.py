"""How an item's text is put in by editors that can do more or less: as a snippet, or filled; with lines indented by the editor or not."""

from __future__ import annotations

import re
from typing import NamedTuple

from agentloom.analysis.edits.places import line_start
from agentloom.ide.completion.items import Item, escaped, filled


class Insertion(NamedTuple):
    """The text to insert. ``relative``: the editor puts the line's own indentation before every further line."""

    text: str
    snippet: bool = False
    relative: bool = False


def insertion(item: Item, source: str, snippets: bool) -> Insertion:
    """Return what an editor is to insert. Editors that know snippets indent the lines behind the first themselves."""
    text = item.edit.text
    several = "\n" in text or "\r" in text
    if not snippets:
        if item.kind == "key" and item.snippet:
            return Insertion(_without_blanks(text))
        if item.kind == "key" and several:
            return Insertion(re.split(r"[\r\n]", text)[0] if text[:1] not in "\r\n" else text)
        return Insertion(filled(text) if item.snippet else text)
    if not item.snippet and (several or text != text.strip()):
        # Some editors cut the blanks off what is no snippet, or can't insert several lines of it.
        text = escaped(text) + "$0" * text.endswith(" ")
        item = item._replace(snippet=True)
    if not several:
        return Insertion(text, item.snippet)
    return Insertion(outdented(text, indent_before(source, item.edit.span.start)), True, True)


def _without_blanks(text: str) -> str:
    """Return a key's text up to the first blank to fill in, where that is on the first line; else that line."""
    first = re.split(r"[\r\n]", text)[0] if text[:1] not in ("\r", "\n") else text
    cut = re.search(r"['\"]?\$", first)
    return first[: cut.start()] if cut and not re.search(r"[\[{]$", first[: cut.start()]) else filled(first)


def indent_before(source: str, offset: int) -> int:
    """Return how many blanks begin the line of an offset, up to it."""
    line = at = line_start(source, offset)
    while at < offset and source[at] in " \t":
        at += 1
    return at - line


def outdented(text: str, by: int) -> str:
    """Return a text with up to ``by`` blanks taken from every line but the first."""
    return re.sub(rf"(\r\n|\r|\n) {{0,{by}}}", r"\1", text) if by else text
