"""Parts put together to a tree, in one of three ways: as pieces, as pieces linked by aliases, or whole."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Items
from typing import NamedTuple

from agentloom.diagnostics import Finding
from agentloom.syntax.aliases import Linker, most_nodes, undefined_aliases
from agentloom.syntax.comments import find_comments
from agentloom.syntax.duplicates import duplicate_keys
from agentloom.syntax.moving import moved
from agentloom.syntax.nodes import Comment, Entry, Mapping, Node, Scalar, Sequence
from agentloom.syntax.parts import Part
from agentloom.syntax.tree import Placed, Tree, Unit
from agentloom.text import Span

MOST_FINDINGS = 1_000
"""Findings per text. Whoever opens a picture as a workflow needs no more."""


class PlacedPart(NamedTuple):
    """A part and where it begins in the document."""

    base: int
    part: Part


class _Group(NamedTuple):
    """A top-level part; for the line of ``steps:`` also the parts that hold its items."""

    head: PlacedPart
    items: list[PlacedPart]

    def list_span(self) -> Span:
        """Return the document span of the items, empty behind the colon when there are none."""
        first = next((p for p in self.items if p.part.list_span is not None), None)
        last = next((p for p in reversed(self.items) if p.part.list_span is not None), None)
        if first is not None and last is not None and first.part.list_span and last.part.list_span:
            return Span(first.base + first.part.list_span.start, last.base + last.part.list_span.end)
        behind = self.head.part.entries[-1].value.span.shift(self.head.base)
        return Span(behind.start, behind.start)


def assemble(text: str, parts: Items[PlacedPart], findings: Items[Finding]) -> Tree:
    """Return the tree of a text that was read piece by piece; ``findings`` are about the text as a whole."""
    found = [*findings, *_findings_of(parts)]
    groups = _groups(parts)
    if _needs_links(parts):
        return _linked(text, parts, groups, found)
    loose = [(placed.base, alias) for placed in parts for alias in placed.part.loose]
    if loose:
        names = [name for placed in parts for name in placed.part.anchors]
        told = undefined_aliases([alias for _, alias in loose], names)
        found.extend(finding.shift(base) for (base, _), finding in zip(loose, told, strict=True))
    top, steps = _top(groups, parts)
    found.extend(_repeated(text, top))
    return Tree(
        text,
        top,
        steps,
        in_order(found),
        whole=False,
        materialise=lambda: _absolute(groups, parts, None),
        find_comments=lambda: _comments(text, parts),
    )


def assemble_whole(text: str, unit: Unit, findings: Items[Finding]) -> Tree:
    """Return the tree of a text that is one unit; ``findings`` are what the unit's own leave out."""
    tree = Tree(text, unit.node, (), in_order([*findings, *unit.findings]))
    listed = tree.steps_node
    steps = () if listed is None else tuple([Placed(0, unit, item) for item in listed.items])
    return Tree(text, tree.top, steps, tree.findings, find_comments=lambda: tuple(find_comments(text, unit.node)))


def in_order(findings: Items[Finding]) -> tuple[Finding, ...]:
    """Return findings by place, then by code; of very many the first."""
    return tuple(sorted(findings, key=lambda f: (f.span, f.code))[:MOST_FINDINGS])


def _groups(parts: Items[PlacedPart]) -> list[_Group]:
    groups: list[_Group] = []
    steps: _Group | None = None
    for placed in parts:
        if placed.part.kind != "item":
            groups.append(_Group(placed, [placed] if placed.part.items else []))
            if placed.part.kind == "header":
                steps = groups[-1]
        elif steps is not None:
            steps.items.append(placed)
    return groups


def _needs_links(parts: Items[PlacedPart]) -> bool:
    """Tell whether an alias reaches from one part into an earlier one, or the aliases together expand too far."""
    names: set[str] = set()
    size = own = 0
    for placed in parts:
        part = placed.part
        if part.loose and any(alias.name in names for alias in part.loose):
            return True
        if part.anchors:
            names.update(part.anchors)
        size += part.size
        own += part.own
    return size > most_nodes(own)


def _linked(text: str, parts: Items[PlacedPart], groups: list[_Group], found: list[Finding]) -> Tree:
    """Return the tree of parts whose aliases reach into one another: one unit, every node in document offsets."""
    linker = Linker(text)
    top = _absolute(groups, parts, linker)
    names = [name for placed in parts for name in placed.part.anchors]
    found.extend(undefined_aliases(linker.undefined, names))
    found.extend(linker.findings)
    found.extend(_repeated(text, top))
    return assemble_whole(text, Unit(text, top, in_order(found)), ())


def _top(groups: list[_Group], parts: Items[PlacedPart]) -> tuple[Mapping, tuple[Placed, ...]]:
    """Return the top mapping, its pieced list left empty, and the steps in their own offsets."""
    entries: list[Entry] = []
    steps: tuple[Placed, ...] = ()
    for group in groups:
        head, part = group.head, group.head.part
        placed = _entries_at(head)
        if part.kind == "header" and placed:
            listed = Sequence(group.list_span(), ())
            placed = (*placed[:-1], Entry(placed[-1].key, listed))
            steps = tuple([Placed(p.base, p.part.unit, item) for p in group.items for item in p.part.items])
        elif part.kind == "entry":
            for entry in part.entries:
                if isinstance(entry.key, Scalar) and entry.key.value == "steps":
                    items = entry.value.items if isinstance(entry.value, Sequence) else ()
                    steps = tuple([Placed(head.base, part.unit, item) for item in items])
        entries.extend(placed)
    return _mapping(entries, parts), steps


def _entries_at(placed: PlacedPart) -> tuple[Entry, ...]:
    """Return the entries of a part in document offsets; the last answer is kept."""
    part = placed.part
    if part.placed is None or part.placed[0] != placed.base:
        memo: dict[int, Node] = {}
        part.placed = (placed.base, tuple([_moved_entry(entry, placed.base, memo) for entry in part.entries]))
    return part.placed[1]


def _moved_entry(entry: Entry, by: int, memo: dict[int, Node]) -> Entry:
    return Entry(moved(entry.key, by, memo), moved(entry.value, by, memo))


def _mapping(entries: list[Entry], parts: Items[PlacedPart]) -> Mapping:
    if not entries:
        return Mapping(Span(parts[0].base, parts[0].base), ())
    end = max(max(entry.key.span.end, entry.value.span.end) for entry in entries)
    return Mapping(Span(entries[0].key.span.start, end), tuple(entries))


def _absolute(groups: list[_Group], parts: Items[PlacedPart], linker: Linker | None) -> Mapping:
    """Return a copy of everything in document offsets; a linker gives aliases their targets on the way."""
    entries: list[Entry] = []
    for group in groups:
        base, part = group.head.base, group.head.part
        memo: dict[int, Node] = {}
        placed = [_moved_entry(entry, base, memo) for entry in part.entries]
        if linker is not None:
            linker.add([node for entry in placed for node in (entry.key, entry.value)], part.loose, memo)
        items: list[Node] = []
        for item_part in group.items:
            memo = {}
            listed = [moved(item, item_part.base, memo) for item in item_part.part.items]
            if linker is not None:
                linker.add(listed, item_part.part.loose, memo)
            items.extend(listed)
        if part.kind == "header" and placed:
            placed[-1] = Entry(placed[-1].key, Sequence(group.list_span(), tuple(items)))
        entries.extend(placed)
    return _mapping(entries, parts)


def _repeated(text: str, top: Mapping) -> list[Finding]:
    names = [entry.key.value for entry in top.entries if isinstance(entry.key, Scalar)]
    return duplicate_keys(text, top) if len(set(names)) != len(names) else []


def _findings_of(parts: Items[PlacedPart]) -> Iterator[Finding]:
    for placed in parts:
        if placed.part.unit.findings:
            for finding in placed.part.unit.findings:
                yield finding.shift(placed.base)


def _comments(text: str, parts: Items[PlacedPart]) -> tuple[Comment, ...]:
    found = list(find_comments(text[: parts[0].base], None))
    for placed in parts:
        base = placed.base
        for comment in placed.part.comments:
            found.append(Comment(comment.span.shift(base), comment.text, comment.own_line))
    return tuple(found)
