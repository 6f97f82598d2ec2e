"""Which lines of a broken block belong together: the items of a list, the entries of a mapping."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from agentloom.syntax.line_faults import NO_DASH_SPACE
from agentloom.syntax.lines import BLOCK_HEADER, DASH, FIELD, KEY, Block, Line, behind_blanks, behind_properties


def is_list(text: str, block: Block) -> bool:
    """Tell whether a block is a list: it begins with a dash, or with half a one above others."""
    if DASH.match(text, block.first.content):
        return True
    return NO_DASH_SPACE.match(text, block.first.content) is not None and any(
        line.column == block.column and DASH.match(text, line.content) for line in block.lines
    )


def holds_keys(text: str, item: Block) -> bool:
    """Tell whether a key stands behind the dash of an item."""
    return KEY.match(text, behind_blanks(text, item.first.content + 1)) is not None


def list_parts(text: str, block: Block) -> Iterator[Block]:
    """Yield the parts of a list: what begins at the column of its dashes, or further left, with all that is deeper."""
    column = block.column
    yield from _parts(block, lambda line, now: line.column <= column and not _goes_on(text, line, now))


def entry_parts(text: str, block: Block) -> Iterator[Block]:
    """Yield the lines of each entry of a mapping: up to the next line that is not indented deeper than its key.

    Lists may stand at the column of their key, and so may the text below `|` that nobody indented.
    """
    column = block.column
    takes_list = takes_text = False

    def begins(line: Line, now: Block | None) -> bool:
        nonlocal takes_list, takes_text
        content = line.content
        if now is not None:
            if line.column > column or (line.column >= now.column and _is_stray_step(text, now)):
                takes_text = False
                return False
            if text[content] in "]}" and _is_open(text, now):
                return False
            if now.column < column and line.column < column:
                return line.column < now.column
            if line.column == column:
                dash = DASH.match(text, content) is not None
                if (dash and takes_list) or (takes_text and not dash and not FIELD.match(text, content)):
                    return False
        key = KEY.match(text, content)
        behind = behind_properties(text, behind_blanks(text, key.end())) if key else line.end
        takes_list = key is not None and (behind >= line.end or text[behind] == "#")
        takes_text = key is not None and BLOCK_HEADER.match(text, behind) is not None
        return True

    yield from _parts(block, begins)


def _goes_on(text: str, line: Line, now: Block | None) -> bool:
    """Tell whether a line without a dash continues keys that stand at the column of a list's dashes."""
    return (
        now is not None
        and line.column == now.column
        and not DASH.match(text, line.content)
        and not DASH.match(text, now.first.content)
        and KEY.match(text, line.content) is not None
        and KEY.match(text, now.first.content) is not None
    )


def _is_stray_step(text: str, block: Block) -> bool:
    """Tell whether a block begins with a dash and a key: an item that stands too deep, and the keys below it are its own."""
    return DASH.match(text, block.first.content) is not None and holds_keys(text, block)


def _is_open(text: str, block: Block) -> bool:
    """Tell whether a block has more opening brackets than closing ones."""
    within = text[block.first.content : block.end]
    return within.count("[") + within.count("{") > within.count("]") + within.count("}")


def _parts(block: Block, begins: Callable[[Line, Block | None], bool]) -> Iterator[Block]:
    """Yield the parts of a block; ``begins`` tells, given a line and the part before it, whether a new one begins there."""
    lines: list[Line] = []
    for line in block.lines:
        if begins(line, Block(lines, line.start) if lines else None) and lines:
            yield Block(lines, line.start)
            lines = []
        lines.append(line)
    if lines:
        yield Block(lines, block.end)
