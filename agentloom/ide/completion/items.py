"""What completion offers, as plain values."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

from agentloom.diagnostics import Edit
from agentloom.ide.completion.where import Where
from agentloom.syntax.quoting import double, quote, single

ItemKind = Literal[
    "key", "value", "step", "snippet", "state", "function", "keyword", "tool", "agent", "model", "provider", "file", "folder",
    "reference", "code",
]  # fmt: skip

_BLANK = re.compile(r"\\(?P<escaped>[$}\\])|\$\{[0-9]+:(?P<text>(?:[^}\\]|\\.)*)\}|\$[0-9]+|\$\{[0-9]+\}")


class Item(NamedTuple):
    """One thing to choose.

    ``edit`` replaces exactly the word at the cursor, on one line; ``additional`` edits stand elsewhere. With ``snippet`` the edit's
    text is one of editors (`${1:default}`, `$0`), see ``filled``. ``detail`` is a few words beside the label. ``about`` says what
    ``documentation.explain`` is to tell about it. Items are shown by ``rank`` (lower first), then in the order in which they are
    given. ``filter`` is what typing is compared with, if that isn't the label. ``retrigger``: something can be completed right behind. ``in_line`` is
    the text on one line, for editors that can't insert several (a snippet, too).
    """

    label: str
    kind: ItemKind
    edit: Edit
    detail: str = ""
    about: tuple[str, ...] = ()
    rank: int = 5
    filter: str = ""
    snippet: bool = False
    additional: tuple[Edit, ...] = ()
    deprecated: bool = False
    preselect: bool = False
    retrigger: bool = False
    in_line: str = ""


def filled(snippet: str) -> str:
    """Return a snippet's text with its blanks filled by what they propose."""
    return _BLANK.sub(lambda m: m["escaped"] or re.sub(r"\\(.)", r"\1", m["text"] or ""), snippet)


def escaped(text: str) -> str:
    """Return a text as it is written in a snippet, outside of blanks."""
    return re.sub(r"[$}\\]", r"\\\g<0>", text)


def spell(where: Where, value: str) -> Edit:
    """Return the edit that makes ``value`` the whole value (or item) at the cursor.

    It reads back as exactly this text: in the quotes that are there, in quotes where YAML needs some, else without.
    """
    if where.style == "double":
        text = double(value)[1:-1] + ('"' if where.open else "")
    elif where.style == "single":
        text = single(value)[1:-1] + ("'" if where.open else "")
    elif where.style == "plain":
        text = quote(value, where.flow)
    else:
        text = value
    return Edit(where.span, before(where) + text)


def before(where: Where) -> str:
    """Return what has to be written before a value: the blank behind a colon or dash, or the dash."""
    return (" " if where.glued else "") + ("- " if where.dash else "")


def distinct(items: Iterable[Item]) -> list[Item]:
    """Return items without those that say what one before said."""
    return list({(item.label, item.edit, item.kind): item for item in reversed(list(items))}.values())[::-1]
