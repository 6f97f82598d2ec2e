"""Edits inside steps: names in lists and fields, state paths in templates and expressions. All in offsets of the document."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from agentloom.analysis.document import Step
from agentloom.analysis.edits import add_entry, remove_entry, remove_item
from agentloom.analysis.edits.places import column_of, end_of, line_end
from agentloom.analysis.symbols import Occurrence
from agentloom.diagnostics import Edit
from agentloom.ide.results import Refusal
from agentloom.language.paths import NAME, Part
from agentloom.syntax.nodes import Alias, Node, Scalar
from agentloom.syntax.nodes import Mapping as MappingNode
from agentloom.syntax.nodes import Sequence as SequenceNode
from agentloom.syntax.quoting import double, is_plain, quote, requote
from agentloom.syntax.scalars import text_span
from agentloom.text import Span, newline_of

Rename = Callable[[str], Sequence[str]]
"""Gives the names that stand in a name's place: itself to leave it as it is, none to take it out."""


class Change(NamedTuple):
    """A piece of a scalar's value, and what stands there instead."""

    node: Scalar
    inside: Span
    text: str


def owned(step: Step) -> frozenset[int]:
    """Return the scalars (by identity) that stand in a step's own text and nowhere else: no anchor shares them."""
    found: set[int] = set()
    top = step.facts.node
    if step.alias is not None or (isinstance(top, MappingNode) and top.anchor is not None):
        return frozenset()
    todo: list[Node] = [top]
    while todo:
        node = todo.pop()
        if isinstance(node, Alias) or node.anchor is not None:
            continue
        found.add(id(node))
        if isinstance(node, MappingNode):
            todo.extend(part for entry in node.entries for part in (entry.key, entry.value))
        elif isinstance(node, SequenceNode):
            todo.extend(node.items)
    return frozenset(found)


def spelled(step: Step, changes: Iterable[Change]) -> Iterator[Edit]:
    """Return the edits that change pieces of values, in whatever style these are written. Raises ``Refusal``."""
    mine = owned(step)
    by_node: dict[int, list[Change]] = {}
    for change in changes:
        if id(change.node) not in mine:
            raise Refusal(f"step `{step.id}` shares text with others through an anchor")
        kept = by_node.setdefault(id(change.node), [])
        if change not in kept:
            kept.append(change)
    for found in by_node.values():
        found.sort(key=lambda change: change.inside)
        pieces = [_piece(change) for change in found]
        if None not in pieces:
            yield from (Edit(edit.span.shift(step.base), edit.text) for edit in pieces if edit is not None)
            continue
        node = found[0].node
        if node.style in ("literal", "folded"):
            raise Refusal(f"a text of step `{step.id}` can't be changed where it stands")
        value, at = "", 0
        for change in found:
            value += node.value[at : change.inside.start] + change.text
            at = change.inside.end
        text = requote(node.raw, node.style, value + node.value[at:], flow=True)
        yield Edit(node.span.shift(step.base), text)


def _piece(change: Change) -> Edit | None:
    """Return the edit of just this piece; None when the whole value has to be written anew."""
    node = change.node
    span = text_span(node, *change.inside)
    source = node.raw[span.start - node.span.start : span.end - node.span.start]
    if source != node.value[change.inside.start : change.inside.end]:
        return None
    text = change.text
    if node.style == "double":
        text = double(text)[1:-1]
    elif node.style == "literal":
        text = re.sub(r"\n(?=[^\n])", "\n" + " " * node.indent, text)
    elif "\n" in text:
        return None
    elif node.style == "single":
        text = text.replace("'", "''")
    elif node.style == "plain" and NAME.fullmatch(text.replace(".", "")) is None:
        whole = node.value[: change.inside.start] + text + node.value[change.inside.end :]
        if "[" not in node.raw or not is_plain(whole):  # a bracket there already: it stands in no flow collection
            return None
    return Edit(span, text)


def moved_path(read: Occurrence, length: int, parts: Sequence[Part]) -> Change:
    """Return the change that makes a path begin with ``parts`` instead of its own first ``length`` ones. Raises ``Refusal``."""
    value, spans = read.node.value, read.parts_inside
    first, last = spans[0], spans[length - 1]
    before = value[first.start - 1 : first.start]
    if before in ("'", '"'):  # state["key"], or state.get("key")
        called = value[first.start - 2 : first.start - 1] == "("
        if value[last.end : last.end + 1] != before or (called and (len(parts) > 1 or length > 1)):
            return _none(read)
        if not all(isinstance(part, str) for part in parts):
            return _none(read)
        return Change(read.node, Span(first.start, last.end), f"{before}][{before}".join(map(str, parts)))
    if before == "[":
        text = "".join(f"[{part}]" for part in parts)
        return Change(read.node, Span(first.start, last.end), text[1:-1]) if value[last.end] == "]" else _none(read)
    plain = all(isinstance(part, int) or (part.isidentifier() if read.form == "expression" else True) for part in parts)
    if not plain or (length > 1 and value[last.end : last.end + 1] in ("]", "'", '"')):
        return _none(read)
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts).lstrip(".")
    return Change(read.node, Span(first.start, last.end), text)


def renamed_part(read: Occurrence, number: int, name: str) -> Change:
    """Return the change of one name in a path. Raises ``Refusal``."""
    span = read.parts_inside[number]
    quoted = read.node.value[span.start - 1 : span.start] in ("'", '"')
    if read.form == "expression" and not quoted and not name.isidentifier():
        return _none(read)
    return Change(read.node, span, name)


def _none(read: Occurrence) -> Change:
    raise Refusal(f"`{read.node.value[read.inside.start : read.inside.end]}` can't be written with another path")


def renamed(step: Step, kind: str, names: Mapping[str, str]) -> Iterator[Change]:
    """Yield the changes of names that a step's fields refer to, its `depends_on` left out."""
    for found in step.facts.occurrences:
        if found.kind == kind and found.role == "refer" and found.name in names and not _in_dependencies(found):
            yield Change(found.node, found.inside, names[found.name])


def _in_dependencies(found: Occurrence) -> bool:
    return found.key.split(".", 1)[0] == "depends_on"


def depending(step: Step, rename: Rename, more: Sequence[str] = ()) -> tuple[Edit, ...]:
    """Return the edits that replace dependencies and add ``more``; of two equal ones the first stays.

    Raises ``Refusal`` where a comment would be lost, or an anchor shares the list.
    """
    names = list(step.needs)
    wanted = list(dict.fromkeys([*(new for name in names for new in rename(name)), *more]))
    if wanted == names:
        return ()
    return tuple(Edit(edit.span.shift(step.base), edit.text) for edit in _depending(step, rename, wanted))


def _depending(step: Step, rename: Rename, wanted: list[str]) -> Iterable[Edit]:
    facts = step.facts
    text, owner = facts.unit.text, facts.node
    located = facts.fields.get("depends_on")
    assert isinstance(owner, MappingNode)
    if located is None:
        found = add_entry(text, owner, "depends_on", _flow(wanted))
        if not found:
            raise Refusal(f"step `{step.id}` has no room for `depends_on`")
        return found
    node = located.value
    if id(node) not in owned(step) or located.via is not None:
        raise Refusal(f"the dependencies of step `{step.id}` are shared through an anchor")
    inside = text[node.span.start : node.span.end]
    end = end_of(node, located.key)
    if not wanted and "#" not in text[located.key.span.end : line_end(text, end)]:
        gone = remove_entry(text, owner, located.key, node)
        if gone:
            return gone
    block = isinstance(node, SequenceNode) and not node.flow
    if isinstance(node, SequenceNode) and block and wanted:
        lines = _in_lines(text, node, rename, wanted)
        if lines is not None:
            return lines
    if "#" in inside:
        raise Refusal(f"a comment stands among the dependencies of step `{step.id}`")
    if block:
        colon = text.index(":", located.key.span.end) + 1
        stop = len(text[: node.span.start].rstrip(" \t\r\n"))  # comments behind the key stay
        return (Edit(Span(colon, colon), f" {_flow(wanted)}"), Edit(Span(stop, node.span.end), ""))
    if isinstance(node, SequenceNode):
        sources = {item.value: item.raw for item in node.items if isinstance(item, Scalar)}
        written = [sources.get(name) or quote(name, flow=True) for name in wanted]
        return (Edit(node.span, f"[{', '.join(written)}]"),)
    if node.span.end == node.span.start:
        return (Edit(Span(located.key.span.end, node.span.end), f": {_flow(wanted)}"),)
    return (Edit(node.span, _flow(wanted)),)


def _in_lines(text: str, node: SequenceNode, rename: Rename, wanted: Sequence[str]) -> list[Edit] | None:
    """Return the edits of a list with a name on each line; None when it is written otherwise."""
    left = list(wanted)
    made: list[Edit] = []
    pad = newline_of(text, node.span.start) + " " * column_of(text, node.span.start) + "- "
    for number, item in enumerate(node.items):
        if not isinstance(item, Scalar):
            return None
        news = [new for new in rename(item.value) if new in left]
        for new in news:
            left.remove(new)
        last = number == len(node.items) - 1
        if last and news:
            news += left
        if not news:
            gone = remove_item(text, node, number)
            if len(gone) != 1 or (last and left):
                return None
            made.append(_but_its_comment(text, item, gone[0]))
        elif news != [item.value]:
            first = requote(item.raw, item.style, news[0], flow=True)
            made.append(Edit(item.span, pad.join([first, *(quote(new, flow=True) for new in news[1:])])))
    return made


def _but_its_comment(text: str, item: Scalar, gone: Edit) -> Edit:
    """Return the edit that takes an item's line out, or leaves a comment that stands behind it."""
    behind = text[item.span.end : line_end(text, item.span.end)]
    if "#" not in behind:
        return gone
    return Edit(Span(text.rindex("-", 0, item.span.start), item.span.end + behind.index("#")), "")


def _flow(names: Iterable[str]) -> str:
    return "[" + ", ".join(quote(name, flow=True) for name in names) + "]"
