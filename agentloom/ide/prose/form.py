"""Words for an editor as plain data, and their two forms: Markdown, and text for clients that take nothing else.

Text between backticks in a string is code. Everything else in it stands for itself: nothing a file says can become a link,
a heading or HTML. Text of the user goes into ``Code`` or a ``Fence``, whatever characters it holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple, TypeAlias

MOST_NAMES = 8
"""Names that one list in a sentence holds."""

MOST_LINES = 12
"""Lines of the user's text that are shown."""

MOST_CHARACTERS = 600
"""Characters of the user's text that are shown."""


# Control characters, marks that turn the direction of writing, lone halves of characters.
_HIDDEN = r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"


class Code(NamedTuple):
    """A piece of the user's text inside a sentence, on one line."""

    text: str


class Link(NamedTuple):
    """Words that lead to a page; both are ours."""

    words: str
    url: str


Inline: TypeAlias = str | Code | Link


class Paragraph(NamedTuple):
    """Sentences."""

    parts: tuple[Inline, ...]


class Items(NamedTuple):
    """A list."""

    items: tuple[tuple[Inline, ...], ...]


class Fence(NamedTuple):
    """Text of the user on lines of its own; ``language`` is a word of ours for colours."""

    text: str
    language: str = ""


Block: TypeAlias = Paragraph | Items | Fence
Prose: TypeAlias = tuple[Block, ...]


def say(*parts: Inline) -> Paragraph:
    """Return a paragraph."""
    return Paragraph(parts)


def listed(names: Iterable[str], most: int = MOST_NAMES) -> tuple[Inline, ...]:
    """Return names with commas between them, and how many more there are."""
    found = list(names)
    parts: list[Inline] = []
    for name in found[:most]:
        if parts:
            parts.append(", ")
        parts.append(Code(name))
    if len(found) > most:
        parts.append(f" and {len(found) - most} more")
    return tuple(parts)


def excerpt(text: str, language: str = "") -> Fence:
    """Return the first lines of a text of the user, without the indentation that they share."""
    lines = text[: MOST_CHARACTERS * 4].splitlines()
    cut_off = bool(lines) and not lines[0].startswith(" ")  # a text that begins in the middle of its line
    indent = min((_indent(line) for line in lines[cut_off:] if line.strip()), default=0)
    shown: list[str] = []
    size = 0
    for number, line in enumerate(islice(lines, MOST_LINES)):
        cut = line[min(indent, _indent(line)) :] if number or not cut_off else line
        shown.append(cut[: MOST_CHARACTERS - size])
        size += len(cut)
        if size >= MOST_CHARACTERS:
            break
    if len(lines) > len(shown) or size > MOST_CHARACTERS:
        shown.append("…")
    return Fence("\n".join(shown), language)


def markdown(prose: Prose) -> str:
    """Return prose as Markdown."""
    return "\n\n".join(_markdown_blocks(prose))


def plain(prose: Prose) -> str:
    """Return prose as text without marks."""
    return "\n\n".join(_plain_blocks(prose))


def _markdown_blocks(prose: Prose) -> Iterator[str]:
    for block in prose:
        if isinstance(block, Paragraph):
            yield _at_start("".join(_markdown(part) for part in block.parts))
        elif isinstance(block, Items):
            yield "\n".join("- " + _at_start("".join(_markdown(part) for part in item)) for item in block.items)
        else:
            text = _printable(block.text, keep="\n\t")
            fence = "`" * max(3, _longest_run(text) + 1)
            yield f"{fence}{block.language}\n{text}\n{fence}"


def _plain_blocks(prose: Prose) -> Iterator[str]:
    for block in prose:
        if isinstance(block, Paragraph):
            yield "".join(_plain(part) for part in block.parts)
        elif isinstance(block, Items):
            yield "\n".join("- " + "".join(_plain(part) for part in item) for item in block.items)
        else:
            yield "\n".join(f"    {line}" for line in _printable(block.text, keep="\n\t").split("\n"))


def _markdown(part: Inline) -> str:
    if isinstance(part, Code):
        return _code(part.text)
    if isinstance(part, Link):
        return f"[{_escaped(part.words)}]({part.url})"
    pieces = part.split("`")
    if len(pieces) % 2 == 0:
        return _escaped(part)  # a backtick without its partner
    return "".join(_code(piece) if at % 2 else _escaped(piece) for at, piece in enumerate(pieces))


def _plain(part: Inline) -> str:
    if isinstance(part, Code):
        return f"`{_one_line(part.text)}`"
    if isinstance(part, Link):
        return part.url if part.words == part.url else f"{part.words}: {part.url}"
    return _one_line(part)


def _code(text: str) -> str:
    text = _one_line(text)
    if not text.strip():
        return "`" + (text or " ") + "`"
    fence = "`" * (_longest_run(text) + 1)
    pad = " " if text[0] in "` " or text[-1] in "` " else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _escaped(text: str) -> str:
    """Return text in which no character means anything to Markdown; a `_` inside a word means nothing anyway."""
    return re.sub(r"[\\`*\[\]<>&~|]|(?<![^\W_])_|_(?![^\W_])|://", _escape, _one_line(text))


def _escape(found: re.Match[str]) -> str:
    return ":\\//" if found[0] == "://" else "\\" + found[0]


def _at_start(text: str) -> str:
    """Return a paragraph's text, which may not begin like a list, a heading or a quotation."""
    text = text.lstrip()
    number = re.match(r"\d+(?=[.)])", text)
    if number is not None:
        return f"{number[0]}\\{text[number.end() :]}"
    return f"\\{text}" if text[:1] in ("-", "+", "#", "=") else text


def _one_line(text: str) -> str:
    return _printable(re.sub(r"\s*[\r\n\x0b\x0c\x85\u2028\u2029]\s*", " ", text))


def _printable(text: str, keep: str = "") -> str:
    """Return a text without control characters and lone halves of characters; line breaks of all kinds are one."""
    if keep:
        text = re.sub(r"\r\n?|[\u2028\u2029\x85]", "\n", text)
    if text.isprintable():
        return text
    return re.sub(_HIDDEN, lambda found: found[0] if found[0] in keep else "\ufffd", text)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall(r"`+", text)), default=0)
