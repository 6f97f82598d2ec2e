"""What a scan tells: the mappings and lists that are open at a place, and what the place is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from agentloom.syntax.nodes import Path, Style
from agentloom.text import Span

Kind = Literal["key", "value", "item", "comment", "nothing"]
State = Literal["empty", "plain", "block", "done"]


@dataclass(slots=True, eq=False)
class Frame:
    """A mapping or list that is open. ``column`` is that of its keys or dashes, -1 in brackets.

    ``key`` or ``index`` is the entry or item being read, and ``state`` what is known of its value: nothing yet, an unquoted text that
    may go on below, a block text that may, or complete. ``names`` maps each key but that at the cursor to where its scalar value
    stands (an empty range for others); ``items`` are the places of a list's scalars, but that at the cursor; ``begins`` is where
    the current item begins; for a list around the cursor, it stays where the cursor's item begins, and ``follows`` is where the next
    one does.
    """

    is_list: bool
    column: int
    start: int
    flow: bool = False
    key: str = ""
    index: int = -1
    begins: int = -1
    follows: int = -1
    state: State = "empty"
    names: dict[str, Span] = field(default_factory=dict)
    items: list[Span] = field(default_factory=list)


class Spot(NamedTuple):
    """What the cursor stands in.

    ``span`` is the word there, ``region`` the source of the whole scalar. ``own_line``: the value or item has a line of its own;
    ``column``: where its first character has to stand. ``colon``: a key with its colon already; ``glued``: no blank stands before
    the word, and one has to be added; ``dash``: an item whose dash is missing. ``missing`` is how many blanks the line has too few
    (negative: too many), for lines where nothing but the word stands.
    """

    kind: Kind
    frames: tuple[Frame, ...] = ()
    path: Path = ()
    span: Span = Span(0, 0)
    region: Span = Span(0, 0)
    style: Style = "plain"
    open: bool = False
    flow: bool = False
    own_line: bool = False
    column: int = 0
    colon: bool = False
    glued: bool = False
    dash: bool = False
    missing: int = 0


class Scan(Protocol):
    """The reading of lines, as the reading of brackets sees it."""

    text: str
    cursor: int
    stop: int
    frames: list[Frame]
    trusted: bool

    def tell(
        self,
        kind: Kind,
        span: Span | None = None,
        region: Span | None = None,
        *,
        style: Style = "plain",
        open_: bool = False,
        own_line: bool = False,
        column: int = 0,
        colon: bool = False,
        glued: bool = False,
        dash: bool = False,
        missing: int = 0,
    ) -> None:
        """Say what the cursor stands in, if that isn't said yet."""

    def holds(self, start: int, end: int) -> bool:
        """Tell whether the cursor is there, and nothing has been said about it."""

    def quote_end(self, at: int, owner: int) -> int:
        """Return the offset behind the quote that closes the one at ``at``; -1 when it is never closed."""

    def on_line(self, span: Span) -> Span:
        """Return a range cut down to the line of the cursor."""

    def behind_value(self, at: int) -> int:
        """Return the start of the next line, when nothing but a comment may follow on this one."""

    def line_end(self, at: int) -> int:
        """Return where the line of ``at`` ends."""

    def next_line(self, at: int) -> int:
        """Return the start of the line behind the line break at ``at``; past the end when there is none."""
