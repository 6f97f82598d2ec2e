"""How text looks in a terminal: every code point as what is shown for it, and how many cells that takes.

Wide East-Asian characters and emoji take two cells, combining characters none; tabs become spaces; what can't be seen
(control characters, direction marks, line separators) or encoded is made visible. ASCII lines take a short way.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import NamedTuple

TAB = 4
"""Cells between tab stops."""

_JOINER = "\u200d"
_EMOJI_STYLE = "\ufe0f"
_SHOWN_FORMATS = "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u08e2"  # format characters that are drawn


class Cells(NamedTuple):
    """One line, drawn. ``pieces`` has what is shown per code point, ``starts`` the cell where each begins, and the end."""

    pieces: list[str]
    starts: list[int]

    @property
    def width(self) -> int:
        """The number of cells."""
        return self.starts[-1]

    def underline(self, start: int, end: int) -> tuple[int, int]:
        """Return the cells ``[from, to)`` under the code points ``[start, end)``, at least one cell."""
        last = len(self.pieces)
        left = self.starts[min(start, last)]
        return left, max(left + 1, self.starts[min(end, last)])


def draw(line: str, encoding: str = "utf-8") -> Cells:
    """Return how a line (without its break) looks on a terminal that takes ``encoding``."""
    if line.isascii() and line.isprintable():
        return Cells(list(line), list(range(len(line) + 1)))
    pieces: list[str] = []
    starts: list[int] = []
    at = 0
    emoji = joining = False
    for char in line:
        starts.append(at)
        if " " <= char <= "~":
            piece, wide = char, 1
        elif char == "\t":
            wide = TAB - at % TAB
            piece = " " * wide
        elif not _encodes(char, encoding):
            piece = _escaped(char)
            wide = len(piece)
        else:
            piece, wide = _shape(char)
            if char == _EMOJI_STYLE:  # draws the character before it as an emoji
                wide = 1 if len(starts) > 1 and at - starts[-2] == 1 and pieces[-1] > "~" else 0
            elif joining or (emoji and 0x1F3FB <= ord(char) <= 0x1F3FF):  # one drawing with what stands before
                wide = 0
        joining = emoji and char == _JOINER
        if wide:
            emoji = wide == 2 or (emoji and char == _EMOJI_STYLE)
        pieces.append(piece)
        at += wide
    starts.append(at)
    return Cells(pieces, starts)


def visible(text: str, encoding: str = "utf-8") -> str:
    """Return a text for one line of output, with everything that can't be seen made visible."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char if " " <= char <= "~" else (_shape(char)[0] if _encodes(char, encoding) else _escaped(char))
        for char in text
    )


def window(cells: Cells, left: int, right: int, width: int, more: str = "…") -> tuple[str, int, int]:
    """Cut a line down to ``width`` cells around the cells ``[left, right)``.

    Returns the text, and where the range lies in it. ``more`` marks what was cut off on either side.
    """
    if cells.width <= width:
        return "".join(cells.pieces), left, right
    room = max(1, width - 2 * len(more))
    spare = max(0, room - (right - left))
    begin = max(0, min(left - min(spare // 2, left), cells.width - room))
    first = bisect_left(cells.starts, begin)
    last = max(first, bisect_right(cells.starts, cells.starts[first] + room) - 1)
    text = "".join(cells.pieces[first:last])
    shift = -cells.starts[first]
    end = cells.starts[last] + shift
    if first > 0:
        text = more + text
        shift += len(more)
        end += len(more)
    if last < len(cells.pieces):
        text += more
    left, right = left + shift, right + shift
    return text, left, max(left + 1, min(right, end))


def _shape(char: str) -> tuple[str, int]:
    """Return what is shown for a character, and its cells by itself."""
    from unicodedata import category, east_asian_width  # only lines that aren't plain ASCII need it

    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code), 1
    if code == 0x7F:
        return "␡", 1
    kind = category(char)
    if kind in ("Mn", "Me") or 0x1160 <= code <= 0x11FF:
        return char, 0
    if kind in ("Cc", "Zl", "Zp", "Cs") or (kind == "Cf" and char not in _SHOWN_FORMATS and not _joins(code)):
        piece = _escaped(char)
        return piece, len(piece)
    if kind == "Cf" and _joins(code):
        return char, 0
    return char, 2 if east_asian_width(char) in "WF" else 1


def _joins(code: int) -> bool:
    """Tell whether a format character only joins its neighbours (joiners, tags of flags)."""
    return code in (0x200C, 0x200D) or 0xE0020 <= code <= 0xE007F


def _escaped(char: str) -> str:
    return f"<U+{ord(char):04X}>"


def _encodes(char: str, encoding: str) -> bool:
    try:
        (chr(0x2400 + ord(char)) if char < " " else "␡" if char == "\x7f" else char).encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True
