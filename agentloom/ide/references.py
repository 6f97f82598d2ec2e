"""References to the state under a cursor, as texts hold them: ``{state.a.¦}``, ``{na¦me}``, and ``state.a.¦`` without braces.

All offsets are those of the value. Half-typed references are the normal case.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from agentloom.language.paths import NAME, Part, PathFault, parse_path
from agentloom.text import Span

_REST = re.compile(r"(?:\.[^\s.\[\]{}!:]*|\[[^\[\]{}\r\n]*\]?)*(?:![rs])?(?::[^{}\r\n]*)?\}")
_TAIL = re.compile(r"\]?(?:\.[^\s.\[\]{}!:/]*|\[[^\[\]{}\s]*\]?)*")
_TYPED = re.compile(r"[^\s{}!:]*")


class Reference(NamedTuple):
    """A reference that is being typed.

    ``span`` is the word to replace, ``word`` what of it stands before the cursor; ``head`` the parts before it, from the top of
    the state. ``root`` is true when `state` stands in front; without it the word is the first name. ``start`` is where the path
    begins (behind the brace). ``closed``: the closing brace is there, or none is needed. ``bracket``: the word stands behind `[`.
    """

    span: Span
    word: str
    head: tuple[Part, ...]
    root: bool
    start: int
    closed: bool
    bracket: bool = False


def reference_at(value: str, offset: int, *, bare: bool = False) -> Reference | None:
    """Return the reference at an offset; with ``bare``, a whole value that begins with `state` counts, too."""
    start = _opening(value, offset)
    if start is not None:
        return _read(value, start, offset, braces=True)
    if bare and _TYPED.fullmatch(value) is not None and "{" not in value:
        found = _read(value, 0, offset, braces=False)
        return found if found is not None and _TAIL.fullmatch(value, found.span.end) else None
    return None


def path_at(value: str, offset: int) -> Reference | None:
    """Return the path at an offset of a value that is a path and nothing else, from the top of the state."""
    if _TYPED.fullmatch(value) is None:
        return None
    return _path(value, 0, offset, root=True, closed=True, text=value[:offset])


def _opening(value: str, offset: int) -> int | None:
    """Return where the path begins whose brace was opened before the offset; doubled braces open nothing."""
    at = value.rfind("{", 0, offset)
    if at < 0 or _TYPED.fullmatch(value, at + 1, offset) is None:
        return None
    run = at
    while run and value[run - 1] == "{":
        run -= 1
    return at + 1 if (at - run) % 2 == 0 else None


def _read(value: str, start: int, offset: int, *, braces: bool) -> Reference | None:
    text = value[start:offset]
    first = NAME.match(text)
    name = first.group() if first is not None else ""
    if text and first is None:
        return None
    if name == "state" and len(text) > len(name):
        if text[len(name)] not in ".[":
            return None
        return _path(value, start, offset, root=True, closed=not braces, text=text[len(name) :], skip=len(name))
    if not braces and not "state".startswith(name):
        return None
    return _path(value, start, offset, root=False, closed=not braces, text=text)


def _path(
    value: str, start: int, offset: int, *, root: bool, closed: bool, text: str, skip: int = 0
) -> Reference | None:
    cut = max(text.rfind("."), text.rfind("["))
    written, word = text[: max(cut, 0)], text[cut + 1 :]
    bracket = cut >= 0 and text[cut] == "["
    if "]" in word:
        return None  # behind a key in brackets: a dot or another bracket must follow
    head: tuple[Part, ...] = ()
    if written:
        path = parse_path(f"x{written}" if skip else written)
        if isinstance(path, PathFault):
            return None
        head = path.parts[1:] if skip else path.parts
    end = offset
    follows = NAME.match(value, offset)
    if follows is not None:
        end = follows.end()
    if not closed:
        rest = _REST.match(value, end + (1 if bracket and value.startswith("]", end) else 0))
        closed = rest is not None
    return Reference(Span(offset - len(word), end), word, head, root, start, closed, bracket)
