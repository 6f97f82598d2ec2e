"""Lines that are neither entry nor item, or stand at the wrong column: what is wrong with them, and the edit that cures it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentloom.diagnostics import Edit, Finding, Fix
from agentloom.syntax.lines import Block, content_end
from agentloom.syntax.repair import Repair
from agentloom.text import Span

NO_DASH_SPACE = re.compile(r"-(?=[A-Za-z_{\[\"'])")
"""A dash that was meant to begin an item."""

_NO_SPACE = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*):(?=[^\s:/])")
_EQUALS = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)[ \t]*(=)[ \t]*(?=\S)")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
_HALF_KEY = re.compile(r"[a-z_][a-z0-9_]*|<<?")
_SMALL_FIELD = re.compile(r"[a-z_][a-z0-9_]*[ \t]*:(?=[ \t\r\n]|\Z)")
_TWO_WORDS = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)([ \t]+)(\S+)\Z")


def words_of(text: str, block: Block) -> Span:
    """Return the words of a block's first line."""
    first = block.first
    return Span(first.content, content_end(text, first.content, first.end))


def is_text(text: str, block: Block) -> bool:
    """Tell whether a line is several words: rather a piece of text than half a key."""
    return " " in text[slice(*words_of(text, block))]


def begins_half_typed(text: str, block: Block) -> bool:
    """Tell whether the first key of a mapping is being typed: one small word, or half of `<<:`, and a field at its column below it."""
    column = block.column
    return _HALF_KEY.fullmatch(text, *words_of(text, block)) is not None and any(
        line.column == column and _SMALL_FIELD.match(text, line.content) for line in block.lines[1:]
    )


def colon_repairs(text: str, block: Block, guess: bool) -> Iterator[Repair]:
    """Yield what may be wrong with the colon of a line that is no entry, when it is plain what was meant.

    ``guess`` allows for taking two words for a key and its value.
    """
    words = words_of(text, block)
    written = text[words.start : words.end]
    if match := _NO_SPACE.match(text, *words):
        yield Repair.of(
            Span(match.end() - 1, match.end()),
            f"a blank is missing behind `{match[1]}:`; add it",
            "add the blank",
            Edit(Span(match.end(), match.end()), " "),
        )
    if match := _EQUALS.match(text, *words):
        yield Repair.of(
            Span(*match.span(2)),
            f"`{match[1]}` is set with `=`; write `{match[1]}: `",
            "write a colon",
            Edit(Span(match.end(1), match.end()), ": "),
        )
    if guess and (match := _TWO_WORDS.match(text, *words)):
        yield Repair.of(
            words,
            f"`{match[1]}` has no colon; write `{match[1]}: {match[3]}`",
            "add the colon",
            Edit(Span(*match.span(2)), ": "),
        )
    if len(block.lines) > 1 and _WORD.match(written):
        yield Repair.of(
            words, f"`{written}` has no colon; add it", "add the colon", Edit(Span(words.end, words.end), ":")
        )


def no_colon(text: str, block: Block) -> Finding:
    """Return the finding for a line among keys of which nothing can be made."""
    words = words_of(text, block)
    written = text[words.start : words.end]
    first = Span(words.start, words.start + 1)
    if written[0] in "]}":
        fix = Fix("remove it", (Edit(words, ""),), False)
        return Finding("AL001", first, f"`{written[0]}` closes nothing; remove it", fixes=(fix,))
    if written[0] in "[{":
        return Finding("AL001", first, f"`{written[0]}` can't begin a line among keys; give it a key")
    if _WORD.match(written):
        fix = Fix("add the colon", (Edit(Span(words.end, words.end), ":"),), False)
        return Finding("AL001", words, f"`{written}` has no colon; write `{written}: ` and a value", fixes=(fix,))
    message = "this line has no colon; write `key: value`, or indent it if it continues the text above"
    return Finding("AL001", words, message)


def dash_repair(text: str, block: Block) -> Repair:
    """Return the repair for a line that should begin an item, but lacks its dash or the blank behind it."""
    first = block.first
    if NO_DASH_SPACE.match(text, first.content):
        below = block.lines[1:]
        # Keys below stand where the first one does; when the blank moves that one, they move with it.
        moved = below if below and below[0].column == first.column + 1 else []
        return Repair.of(
            Span(first.content, first.content + 1),
            "a dash that begins an item is followed by a blank; add it",
            "add the blank",
            Edit(Span(first.content + 1, first.content + 1), " "),
            *(Edit(Span(line.start, line.start), " ") for line in moved),
        )
    return Repair.of(
        words_of(text, block),
        "this line of a list has no dash; write `- ` before it",
        "add the dash",
        Edit(Span(first.content, first.content), "- "),
    )


def stray_item(dash: int) -> Finding:
    """Return the finding for a list item, with its dash at an offset, where no list is."""
    message = "a list item can't stand here; indent it below the key that it is for"
    return Finding("AL001", Span(dash, dash + 1), message)


def misplaced(text: str, block: Block, column: int) -> Finding:
    """Return the finding for a block that stands at another column than its neighbours; the fix moves all its lines."""
    words = words_of(text, block)
    by = column - block.column
    if by == 0:
        return Finding("AL001", words, "this line fits nothing above it; indent it like the lines around it")
    edits = tuple(
        [
            Edit(Span(line.start, line.content), " " * max(0, line.column + by))
            for line in block.lines
            if not text[line.start : line.content].strip()
        ]
    )
    message = f"this line is indented by {_columns(block.column)}, its neighbours by {column}; indent it like them"
    title = f"indent by {_columns(column)}" if column else "remove the indentation"
    return Finding("AL001", words, message, fixes=(Fix(title, edits, False),))


def _columns(number: int) -> str:
    return "1 column" if number == 1 else f"{number} columns"
