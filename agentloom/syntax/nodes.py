"""The nodes of a YAML text: values with their places. Plain data; positions are offsets in the unit that was composed.

A *unit* is a piece of text composed by itself (one item of ``steps``, one top-level entry, or a whole document). Nodes of a
unit carry offsets relative to its first character, so an edit further up never touches them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from agentloom.text import Span

Style = Literal["plain", "single", "double", "literal", "folded"]
Path: TypeAlias = tuple[str | int, ...]


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Scalar:
    """A text. ``span`` covers quotes and block header; trailing blank lines of a block are left out.

    ``value`` is the text as YAML reads it; ``raw`` the source of ``span``, kept so that offsets in the value can be mapped
    back (``agentloom.syntax.scalars``). A missing value (``key:``) is a plain scalar with an empty span behind the colon.
    """

    span: Span
    value: str
    style: Style
    raw: str
    tag: str | None = None
    anchor: Span | None = None
    indent: int = 0
    """For block styles: number of columns of indentation that are not part of the value. Else 0."""


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Entry:
    """One ``key: value`` as written."""

    key: Node
    value: Node


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Mapping:
    """A mapping as written: duplicate keys, ``<<`` and all. ``span`` runs from the first key to the last value's end."""

    span: Span
    entries: tuple[Entry, ...]
    flow: bool = False
    tag: str | None = None
    anchor: Span | None = None


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Sequence:
    """A list. For block lists ``span`` starts at the first dash."""

    span: Span
    items: tuple[Node, ...]
    flow: bool = False
    tag: str | None = None
    anchor: Span | None = None


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Alias:
    """``*name``. ``target`` is None when the anchor is undefined or encloses the alias (both reported by the reader)."""

    span: Span
    name: str
    target: Node | None


Node: TypeAlias = Scalar | Mapping | Sequence | Alias


class Comment(NamedTuple):
    """A comment, from ``#`` to the end of its line; ``own_line`` when nothing but blanks stands before it."""

    span: Span
    text: str
    own_line: bool
