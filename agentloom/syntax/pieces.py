"""Where a text can be cut so that each piece composes by itself: top-level entries, and the items of ``steps``."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

Kind = Literal["entry", "header", "item"]
"""``header`` is the line of ``steps:`` with the comments before its first item; its items follow as pieces."""


class Piece(NamedTuple):
    """A range of lines of the text, ``[start, end)``."""

    kind: Kind
    start: int
    end: int


class Body(NamedTuple):
    """The first document of a text: where its content begins and ends, and what surrounds it.

    ``directives`` tells that something stands before the content that the parser needs to see (then ``start`` is before it).
    ``extra`` is the place of the marker (or text) where a second document begins, -1 when there is none.
    """

    start: int
    end: int
    directives: bool
    extra: int


MOST_OFF = 3
"""How many columns a first item may stand further left than the others and still be one of them."""

_MARK = re.compile(r"(?:---|\.\.\.)(?=[ \t\r\n]|\Z)")
_PRELUDE = re.compile(r"(?:[ \t]*(?:#[^\r\n]*)?(?:\r\n|\r|\n))*")
_REST_OF_LINE = r"[ \t]*(?:#[^\r\n]*)?(?:\r\n|\r|\n|\Z)"
_CONTENT_OF_LINE = re.compile(r"[ \t]*(?=[^ \t\r\n#])")
_CONTENT = re.compile(r"[^ \t\r\n#]")
_TOP_START = re.compile(r"[^ \t\r\n#\-\]}]|-(?![ \t\r\n]|\Z)")
# Patterns that begin with a line break are found several times faster than those that begin with `^`.
_TOP = re.compile(f"\n(?={_TOP_START.pattern})")
_STEPS = re.compile(r"""(?:steps|"steps"|'steps')[ \t]*:[ \t]*(?:\#[^\r\n]*)?(?:\r\n|\n|\Z)""", re.VERBOSE)
_BLANKS = re.compile(r"(?:[ \t]*(?:\#[^\r\n]*)?(?:\r\n|\n))*")
_DASH = re.compile(r"( *)-(?=[ \t\r\n]|\Z)")
_FIRST_ITEM = r"\n( *)-(?=[ \t\r\n]|\Z)"
# Compiled where they are used: few files need them.
_NEXT_ITEM = r"\n(?P<blanks> +)-[ \t]+[A-Za-z_]+[ \t]*:(?=[ \t\r\n]|\Z)"
_OWNER = r":[ \t]*(?:[|>][^\r\n]*|#[^\r\n]*)?(?:\r?\n[ \t]*(?:#[^\r\n]*)?)+\Z"
_ALMOST_ITEM = r" *-[A-Za-z{\[\"']"
_HALF_TYPED = r"[ \t]+[A-Za-z_][\w-]*[ \t]*\r?\n *-[ \t]"
_INDENTED = r"\n[ \t]+[^ \t\r\n#]"
_PLAIN_KEY = r"[A-Za-z_][A-Za-z0-9_-]*[ \t]*:[ \t\r\n]"
_EXPLICIT_START = re.compile(r"[?:](?=[ \t\r\n]|\Z)")
_EXPLICIT = re.compile(r"\n[?:](?=[ \t\r\n]|\Z)")


def find_body(text: str) -> Body:
    """Return where the first document of ``text`` lies. Line breaks are LF or CRLF (lone CRs already replaced)."""
    start = 1 if text.startswith("\ufeff") else 0
    at = _PRELUDE.match(text, start).end()  # type: ignore[union-attr]
    directives = text.startswith("%", at)
    if directives:
        mark = _next_mark(text, at)
        at = mark if mark >= 0 and text.startswith("---", mark) else at
    content = start
    if text.startswith("---", at) and _MARK.match(text, at):
        behind = re.compile(_REST_OF_LINE).match(text, at + 3)
        if behind is None:
            directives = True  # content on the marker's own line
        else:
            content = behind.end()
        begin = at + 3
    else:
        begin = at
    if directives:
        content = start
    mark = _next_mark(text, begin)
    if mark < 0:
        return Body(content, len(text), directives, -1)
    return Body(content, max(mark, content), directives, _extra(text, mark))


def _next_mark(text: str, at: int) -> int:
    """Return the next line from ``at`` on that is a document marker, or -1."""
    if at == 0 and _MARK.match(text):
        return 0
    dashes, dots = text.find("\n---", max(0, at - 1)), text.find("\n...", max(0, at - 1))
    while dashes >= 0 or dots >= 0:
        if dots < 0 or 0 <= dashes < dots:
            if _MARK.match(text, dashes + 1):
                return dashes + 1
            dashes = text.find("\n---", dashes + 1)
        else:
            if _MARK.match(text, dots + 1):
                return dots + 1
            dots = text.find("\n...", dots + 1)
    return -1


def _extra(text: str, mark: int) -> int:
    """Return where a second document begins, given the marker that ends the first; -1 when there is none."""
    while mark >= 0 and text.startswith("...", mark):
        at = re.compile(_REST_OF_LINE).match(text, mark + 3)
        if at is None:
            return mark
        behind = _PRELUDE.match(text, at.end()).end()  # type: ignore[union-attr]
        found = _CONTENT_OF_LINE.match(text, behind)
        if found is None:
            return -1
        if not _MARK.match(text, behind):
            return found.end()
        mark = behind
    return mark


def cut(text: str, start: int, end: int) -> list[Piece] | None:
    """Return the pieces of the document in ``[start, end)``, or None when it can only be composed whole.

    Every line belongs to exactly one piece, except comments and blank lines before the first.
    """
    starts = [match.end() for match in _TOP.finditer(text, max(0, start - 1), end)]
    content = _CONTENT.search(text, _BLANKS.match(text, start, end).end(), end)  # type: ignore[union-attr]
    if content is None:
        return None
    if content.start() == start and (not starts or starts[0] != start) and _TOP_START.match(text, start):
        starts.insert(0, start)
    if not starts or starts[0] != content.start() or text[starts[0]] in "{[?%":
        return None
    if _EXPLICIT.search(text, max(0, start - 1), end) or _EXPLICIT_START.match(text, start, end):
        return None
    pieces: list[Piece] = []
    at = 0
    starts.append(end)
    while at + 1 < len(starts):
        begin = starts[at]
        at += 1
        header = _STEPS.match(text, begin, starts[at]) if text[begin] in "s\"'" else None
        while header is not None and starts[at] < end and _is_stray(text, starts[at], starts[at + 1]):
            at += 1
        if header is None or not _cut_items(text, begin, header.end(), starts[at], pieces):
            pieces.append(Piece("entry", begin, starts[at]))
    return pieces


def _is_stray(text: str, at: int, stop: int) -> bool:
    """Tell whether a line at the margin, behind ``steps:``, is no key and has indented lines below: the list goes on there."""
    if re.compile(_PLAIN_KEY).match(text, at, stop):
        return False
    from agentloom.syntax.lines import KEY  # with patterns of which correct files mostly need none

    return (
        text[at] not in "&*!"
        and KEY.match(text, at, stop) is None
        and re.compile(_INDENTED).search(text, at, stop) is not None
    )


def split_strays(text: str, piece: Piece, column: int) -> list[Piece]:
    """Return a broken entry as itself up to the first line that begins an item at ``column``, and these items."""
    starts = [at for at, width in _dashes(text, piece.start + 1, piece.end, column) if width == column]
    if not starts:
        return [piece]
    bounds = [*starts, piece.end]
    items = [Piece("item", bounds[i], bounds[i + 1]) for i in range(len(starts))]
    return [Piece("entry", piece.start, starts[0]), *items]


def column_of(text: str, piece: Piece) -> int:
    """Return the column of an item's dash; -1 when the piece does not begin with one."""
    dash = _DASH.match(text, piece.start, piece.end)
    return len(dash[1]) if dash else -1


def _dashes(text: str, start: int, end: int, column: int) -> list[tuple[int, int]]:
    """Return (line start, column) of every line that begins with a dash at ``column`` or further left."""
    pattern = re.compile(rf"\n( {{0,{column}}})-(?=[ \t\r\n]|\Z)")
    found = [
        (match.start(1), match.end(1) - match.start(1)) for match in pattern.finditer(text, max(0, start - 1), end)
    ]
    if start == 0 and (first := _DASH.match(text, 0, end)) and len(first[1]) <= column:
        found.insert(0, (0, len(first[1])))
    return found


def _cut_items(text: str, begin: int, at: int, stop: int, pieces: list[Piece]) -> bool:
    """Add the pieces of a block list that begins at line ``at``; False, with nothing added, when there is none."""
    first_line = _BLANKS.match(text, at, stop).end()  # type: ignore[union-attr]
    first = _DASH.match(text, first_line, stop)
    if first is not None:
        column = len(first[1])
    elif first_line < stop and (
        text[first_line] not in " \t"
        or re.compile(_ALMOST_ITEM).match(text, first_line)
        or re.compile(_HALF_TYPED).match(text, first_line)
    ):
        # A stray line, a word, or an item without a blank behind its dash, before the first item.
        found = re.compile(_FIRST_ITEM).search(text, first_line - 1, stop)
        if found is None:
            return False
        column = len(found[1])
    else:
        return False
    dashes = _dashes(text, first_line, stop, column)
    column = _column_of_items(dashes, column)
    if first is not None and len(dashes) == 1 and (further := _further_right(text, first_line, stop, column)) > column:
        column = further
        dashes = [dash for dash in _dashes(text, first_line, stop, column) if dash[1] == column]
    starts = [at for at, width in dashes if width == column]
    if not starts:
        return False
    if starts[0] != first_line and re.compile(_ALMOST_ITEM).match(text, first_line):
        starts.insert(0, first_line)
    pieces.append(Piece("header", begin, starts[0]))
    starts.append(stop)
    pieces.extend([Piece("item", starts[i], starts[i + 1]) for i in range(len(starts) - 1)])
    return True


def _further_right(text: str, first_line: int, stop: int, column: int) -> int:
    """Return the column of the items behind a first one that stands alone, when they stand a bit further right; else ``column``.

    They are no list inside the first item unless a key without a value stands above them.
    """
    widths: list[int] = []
    for found in re.compile(_NEXT_ITEM).finditer(text, first_line, stop):
        width = found.end("blanks") - found.start("blanks")
        if width > column + MOST_OFF or (
            not widths and re.compile(_OWNER).search(text, first_line, found.start("blanks"))
        ):
            break
        widths.append(width)
    return widths[0] if len(widths) > 1 and widths.count(widths[0]) == len(widths) else column


def _column_of_items(dashes: list[tuple[int, int]], column: int) -> int:
    """Return the column of a list's dashes: the first one's, or a smaller one that more lines have (so the first is off)."""
    widths = [width for _, width in dashes]
    return max(set(widths), key=lambda width: (widths.count(width), width == column), default=column)
