"""The structure of a broken piece by its indentation: which lines make an entry, an item, a value; each composed by itself."""

from __future__ import annotations

import re
from collections.abc import Callable

from agentloom.diagnostics import Edit, Finding
from agentloom.syntax.aliases import DEEPEST
from agentloom.syntax.backend import Failure
from agentloom.syntax.blocks import entry_parts, holds_keys, is_list, list_parts
from agentloom.syntax.compose import Composed, compose
from agentloom.syntax.duplicates import duplicate_keys
from agentloom.syntax.edited import Edited
from agentloom.syntax.line_faults import (
    NO_DASH_SPACE,
    begins_half_typed,
    colon_repairs,
    dash_repair,
    is_text,
    misplaced,
    no_colon,
    stray_item,
)
from agentloom.syntax.lines import (
    BLOCK_HEADER,
    DASH,
    FIELD,
    KEY,
    Block,
    Line,
    behind_blanks,
    behind_properties,
    lines_of,
)
from agentloom.syntax.mending import mend, salvage
from agentloom.syntax.moving import moved
from agentloom.syntax.nodes import Alias, Entry, Mapping, Node, Scalar, Sequence
from agentloom.syntax.pieces import Kind
from agentloom.text import Span

_ANCHOR = re.compile(r"&[0-9A-Za-z_-]+")


class Outline:
    """Reads one broken piece. Nodes and findings come in offsets of ``text``; ``failed`` holds texts known not to compose."""

    def __init__(self, text: str, pure: bool, failed: dict[str, Failure]) -> None:
        self.text = text
        self.pure = pure
        self.findings: list[Finding] = []
        self.loose: list[Alias] = []
        self._failed = failed
        self._depth = 0

    def piece(self, kind: Kind | None) -> Node | None:
        """Return the node of the whole piece, of the sort that its kind asks for."""
        lines = lines_of(self.text)
        if not lines:
            return None
        block = Block(lines, len(self.text))
        if kind == "item":
            return self._list(block)
        if kind is not None:
            return self._mapping_alone(block, checked=False)  # its names are held against those of the other pieces
        return self._nested(block, -1)

    # Composing a part by itself

    def _chunk(self, block: Block) -> str:
        """Return a block's text from the start of its first line, with blanks for what stands before its words."""
        return " " * block.column + self.text[block.first.content : block.end]

    def _accept(self, node: Node | None, findings: list[Finding], loose: list[Alias], by: int) -> Node | None:
        """Take over what a part says, ``by`` code points further on."""
        self.findings.extend([finding.shift(by) for finding in findings])
        if node is None:
            return None
        memo: dict[int, Node] = {}
        placed = moved(node, by, memo)
        for alias in loose:
            copy = memo.get(id(alias))
            if isinstance(copy, Alias):
                self.loose.append(copy)
        return placed

    def _composed(self, block: Block, want: Callable[[Node | None], bool]) -> Node | Failure | None:
        """Return what a block composes to; None when that is not what is wanted."""
        chunk = self._chunk(block)
        composed = self._failed.get(chunk) or compose(chunk, self.pure)
        if isinstance(composed, Failure):
            self._failed[chunk] = composed
            return composed
        if not want(composed.node):
            return None
        return self._accept(composed.node, composed.findings, composed.loose, block.first.start)

    # Values

    def _nested(self, block: Block, column: int) -> Node | None:
        """Return the value that a block of lines is, below a key or dash at ``column``."""
        if self._depth >= DEEPEST:
            return None
        self._depth += 1
        found = self._composed(block, lambda node: node is not None)
        if isinstance(found, Failure) or found is None:
            first = block.first
            if is_list(self.text, block):
                found = self._list(block)
            elif KEY.match(self.text, first.content) or begins_half_typed(self.text, block):
                found = self._mapping_alone(block)
            else:
                found = self._mended(block, first.content, column, lambda node: node)
        self._depth -= 1
        return found

    def _mended(self, block: Block, at: int, column: int, pick: Callable[[Node], Node | None]) -> Node | None:
        """Return the value at ``at`` after mending; ``pick`` finds it in what its block composes to."""
        start = block.first.start
        chunk = self._chunk(block)
        mended = mend(chunk, at - start, max(column, 0), pure=self.pure, failure=self._failed.get(chunk))
        value = pick(mended.node) if mended.node is not None else None
        if value is None:
            mended.loose.clear()
            value = salvage(mended, at - start, pure=self.pure)
        return self._accept(value, mended.findings, mended.loose, start)

    # Lists

    def _list(self, block: Block) -> Sequence:
        """Return the list that a block is; what stands in it without a dash is reported."""
        column = block.column
        items: list[Node] = []
        start = block.first.content
        for child in self._without_strays(block, column):
            first = child.first
            if first.column < column and DASH.match(self.text, first.content):
                self.findings.append(misplaced(self.text, child, column))
            if DASH.match(self.text, first.content):
                items.extend(self._item(child))
            elif NO_DASH_SPACE.match(self.text, first.content):
                items.extend(self._item_with_dash(child))
            elif items and KEY.match(self.text, first.content) and self._continues(items[-1], child):
                items[-1] = self._joined(items[-1], child)  # type: ignore[arg-type]
            else:
                items.extend(self._item_with_dash(child))
        end = max([start + 1, *(item.span.end for item in items)])
        return Sequence(Span(start, end), tuple(items))

    def _without_strays(self, block: Block, column: int) -> list[Block]:
        """Return the parts of a list, with what follows a half-typed line inside an item given back to that item."""
        parts: list[Block] = []
        for child in list_parts(self.text, block):
            content = child.first.content
            stray = not any(pattern.match(self.text, content) for pattern in (DASH, NO_DASH_SPACE, KEY))
            if stray and parts and (len(child.lines) > 1 or holds_keys(self.text, parts[-1])):
                self._without_colon(Block(child.lines[:1], child.first.next), silent=False)
                self._blank_out(child.first)
                parts[-1] = Block([*parts[-1].lines, *child.lines[1:]], child.end)
            else:
                parts.append(child)
        return parts

    def _blank_out(self, line: Line) -> None:
        """Take a line that was reported out of the text, so that what is around it composes."""
        self.text = self.text[: line.content] + " " * (line.end - line.content) + self.text[line.end :]

    def _item(self, block: Block, moved: bool = False) -> list[Node]:
        """Return the item that begins at a dash, and behind it the items that stand too deep below.

        ``moved`` tells that the dash was reported already: the key behind it then counts as standing where the keys below it do.
        """
        found = self._composed(block, lambda node: isinstance(node, Sequence) and len(node.items) == 1)
        if isinstance(found, Sequence):
            return [found.items[0]]
        first = block.first
        content = behind_blanks(self.text, first.content + 1)
        behind = behind_properties(self.text, content)
        rest = block.lines[1:]
        if behind < first.end and self.text[behind] != "#":
            start = first.start
            if moved and rest and rest[0].column >= first.column:
                start = behind - min(rest[0].column, behind)
            rest = [Line(start, behind, first.end, first.next), *rest]
        if not rest:
            return [_nothing(min(first.content + 1, first.end))]
        inner = Block(rest, block.end)
        node: Node
        strays: list[Block]
        if begins_half_typed(self.text, inner) or (
            KEY.match(self.text, inner.first.content) and not is_list(self.text, inner)
        ):
            node, strays = self._mapping(inner)
            self._check_names(node)
        elif rest[0].content > first.end or is_list(self.text, inner):
            value = self._nested(inner, first.column)
            node, strays = value or _nothing(first.content + 1), []
        else:
            value = self._mended(block, behind, first.column, _only_item)
            node, strays = value or _nothing(first.content + 1), []
        if not isinstance(node, Alias):
            node.anchor = node.anchor or self._anchor(content, behind)
        items: list[Node] = [node]
        for stray in strays:
            if holds_keys(self.text, stray):
                self.findings.append(misplaced(self.text, stray, first.column))
                items.extend(self._item(stray, moved=True))
            else:
                self.findings.append(stray_item(stray.first.content))
        return items

    def _anchor(self, start: int, end: int) -> Span | None:
        found = _ANCHOR.search(self.text, start, end)
        return Span(*found.span()) if found else None

    def _item_with_dash(self, block: Block) -> list[Node]:
        """Return the items that a line gives once its dash is complete."""
        repair = dash_repair(self.text, block)
        self.findings.append(repair.finding)
        by = block.first.start
        edited = Edited(self._chunk(block), [_shifted(edit, -by) for edit in repair.edits])
        composed = compose(edited.text, self.pure)
        if isinstance(composed, Composed) and isinstance(composed.node, Sequence):
            edited.nodes_back(composed.node)
            findings = [edited.finding_back(finding) for finding in composed.findings]
            found = self._accept(composed.node, findings, composed.loose, by)
            return list(found.items) if isinstance(found, Sequence) else []
        first = block.first
        if NO_DASH_SPACE.match(self.text, first.content):
            block = Block([Line(first.start, first.content + 1, first.end, first.next), *block.lines[1:]], block.end)
        return [self._mapping_alone(block)] if KEY.match(self.text, block.first.content) else []

    def _continues(self, item: Node, block: Block) -> bool:
        """Tell whether keys at the column of the dashes go on with the item above: it has keys, and none of that name."""
        if not isinstance(item, Mapping) or item.flow:
            return False
        match = KEY.match(self.text, block.first.content)
        name = self.text[block.first.content : match.end() - 1].strip() if match else ""
        return all(not isinstance(entry.key, Scalar) or entry.key.value != name for entry in item.entries)

    def _joined(self, item: Mapping, block: Block) -> Mapping:
        """Return an item with the keys of a block that stand at the column of the dashes, below it."""
        column = item.span.start - (self.text.rfind("\n", 0, item.span.start) + 1)
        self.findings.append(misplaced(self.text, block, column))
        more, _ = self._mapping(block)
        span = Span(item.span.start, max(item.span.end, more.span.end))
        joined = Mapping(span, (*item.entries, *more.entries), False, item.tag, item.anchor)
        self._check_names(joined)
        return joined

    # Mappings

    def _mapping_alone(self, block: Block, checked: bool = True) -> Mapping:
        """Return the mapping that a block is, where no list around it could take its stray items."""
        mapping, strays = self._mapping(block)
        if checked:
            self._check_names(mapping)
        for stray in strays:
            self.findings.append(stray_item(stray.first.content))
        return mapping

    def _mapping(self, block: Block) -> tuple[Mapping, list[Block]]:
        """Return the mapping that a block is, and the list items that stand in it where none can."""
        column = block.column
        entries: list[Entry] = []
        strays: list[Block] = []
        prose = -1  # where a line without a colon ended: more of them below are the same fault
        for child in entry_parts(self.text, block):
            first = child.first
            if DASH.match(self.text, first.content):
                strays.append(child)
            elif first.column != column:
                if KEY.match(self.text, first.content):
                    self.findings.append(misplaced(self.text, child, column))
                more, deeper = self._mapping(child)
                entries.extend(more.entries)
                strays.extend(deeper)
            else:
                found, deeper = self._entry(child, silent=prose == first.start)
                is_prose = not found and is_text(self.text, child) and KEY.match(self.text, first.content) is None
                prose = child.end if is_prose else -1
                entries.extend(found)
                strays.extend(deeper)
        start = entries[0].key.span.start if entries else block.first.content
        end = max([start, *(max(entry.key.span.end, entry.value.span.end) for entry in entries)])
        return Mapping(Span(start, end), tuple(entries)), strays

    def _check_names(self, mapping: Mapping) -> None:
        names = [entry.key.value for entry in mapping.entries if isinstance(entry.key, Scalar)]
        if len(set(names)) != len(names):
            self.findings.extend(duplicate_keys(self.text, mapping))

    def _entry(self, block: Block, silent: bool) -> tuple[list[Entry], list[Block]]:
        """Return the entries that a key's lines give, mostly one, and list items that stand below it where none can."""
        found = self._composed(block, lambda node: isinstance(node, Mapping) and not node.flow)
        if isinstance(found, Mapping):
            return list(found.entries), []
        first = block.first
        match = KEY.match(self.text, first.content)
        key = self._key(first, match.end()) if match else None
        if match is None or key is None:
            return self._without_colon(block, silent), []
        head = behind_blanks(self.text, match.end())
        inline = behind_properties(self.text, head)
        if inline >= first.end or self.text[inline] == "#":
            return [Entry(key, self._below(block, match.end(), head, inline))], []
        if isinstance(found, Failure) and head < inline:
            faults = {found.at + first.start, found.context_at + first.start}
            inline = head if any(head <= at < inline for at in faults) else inline
        split = self._too_deep(block, inline)
        if split is None:
            value = self._mended(block, inline, first.column, _only_value)
            return ([] if value is None else [Entry(key, value)]), []
        own, deeper = split
        entries, _ = self._entry(own, silent)
        if DASH.match(self.text, deeper.first.content):
            return entries, [deeper]
        self.findings.append(misplaced(self.text, deeper, first.column))
        more, strays = self._mapping(deeper)
        return [*entries, *more.entries], strays

    def _key(self, line: Line, colon: int) -> Node | None:
        """Return the key before the colon that ends at ``colon``."""
        found = self._composed(Block([line], colon), lambda node: isinstance(node, Mapping) and len(node.entries) == 1)
        return found.entries[0].key if isinstance(found, Mapping) else None

    def _below(self, block: Block, colon: int, head: int, behind: int) -> Node:
        """Return the value on the lines below its key."""
        if len(block.lines) == 1:
            return _nothing(colon)
        value = self._nested(Block(block.lines[1:], block.end), block.column)
        if value is None:
            return _nothing(colon)
        if not isinstance(value, Alias):
            value.anchor = value.anchor or self._anchor(head, behind)
        return value

    def _too_deep(self, block: Block, inline: int) -> tuple[Block, Block] | None:
        """Return an entry's own lines, and those below its value that look like keys or items indented too deep."""
        head = self.text[inline : block.first.end]
        text_indent = block.lines[1].column if BLOCK_HEADER.match(self.text, inline) and len(block.lines) > 1 else None
        for at, line in enumerate(block.lines[1:], start=1):
            if text_indent is not None and line.column >= text_indent:
                continue
            if not (FIELD.match(self.text, line.content) or DASH.match(self.text, line.content)):
                continue
            own = Block(block.lines[:at], line.start)
            if isinstance(compose(self._chunk(own), self.pure), Failure):
                return None
            if at == 1 and " " in head and head[0] not in "\"'[{|>&*!":
                return None  # prose that goes on below: it wants quotes
            return own, Block(block.lines[at:], block.end)
        return None

    # Lines that are neither entry nor item

    def _without_colon(self, block: Block, silent: bool) -> list[Entry]:
        """Return the entries of a line that lacks its colon, when it is plain what was meant."""
        by = block.first.start
        for repair in colon_repairs(self.text, block, not silent):
            edited = Edited(self._chunk(block), [_shifted(edit, -by) for edit in repair.edits])
            last = repair.edits[-1]
            mended = mend(edited.text, last.span.start - by + len(last.text), block.column, pure=self.pure)
            if isinstance(mended.node, Mapping):
                self.findings.append(repair.finding)
                edited.nodes_back(mended.node)
                findings = [edited.finding_back(finding) for finding in mended.findings]
                found = self._accept(mended.node, findings, mended.loose, by)
                return list(found.entries) if isinstance(found, Mapping) else []
        if not silent:
            self.findings.append(no_colon(self.text, block))
        return []


def _shifted(edit: Edit, by: int) -> Edit:
    return Edit(edit.span.shift(by), edit.text)


def _nothing(at: int) -> Scalar:
    return Scalar(Span(at, at), "", "plain", "")


def _only_item(node: Node) -> Node | None:
    return node.items[0] if isinstance(node, Sequence) and len(node.items) == 1 else None


def _only_value(node: Node) -> Node | None:
    return node.entries[0].value if isinstance(node, Mapping) and len(node.entries) == 1 else None
