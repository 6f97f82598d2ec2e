"""One piece of text to nodes: events of the parser straight into our own nodes, which keep the places of aliases."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from agentloom.diagnostics import Finding
from agentloom.syntax import backend
from agentloom.syntax.aliases import DEEPEST, most_nodes, oversized_alias, recursive_alias
from agentloom.syntax.backend import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    Failure,
    MappingStartEvent,
    ScalarEvent,
    YAMLError,
)
from agentloom.syntax.duplicates import duplicate_keys
from agentloom.syntax.nodes import Alias, Entry, Mapping, Node, Scalar, Sequence, Style
from agentloom.text import Span

MOST_TABS = 100
"""Tabs that are masked, one by one, because a parser does not know that YAML allows them."""

TOO_DEEP = "nested too deeply"

_STYLES: dict[str | None, Style] = {
    "": "plain",
    None: "plain",
    "'": "single",
    '"': "double",
    "|": "literal",
    ">": "folded",
}
_GAP = re.compile(r"(?:[ \t\r\n]|(?<![^ \t\r\n])#[^\r\n]*)*")
_PROPERTY = re.compile(r"[^ \t\r\n,\[\]{}]+|!<[^>]*>")
_BREAK = re.compile(r"[\r\n]")
_FIRST_LINE = re.compile(r"(?:\r\n|\r|\n)( *)(?=[^ \r\n])")
_FIRST_VALUE_LINE = re.compile(r"(?:\A|\n)( *)(?=[^ \n])")
_NOT_A_NAME = re.compile(r"[^0-9A-Za-z_-]")


@dataclass(slots=True)
class Composed:
    """What one piece says. Offsets are those of its text.

    ``anchors`` are the names it defines, ``loose`` its aliases to names that it does not define; ``size`` counts its nodes
    with aliases followed, ``own`` without.
    """

    node: Node | None
    findings: list[Finding] = field(default_factory=list)
    anchors: dict[str, Node] = field(default_factory=dict)
    loose: list[Alias] = field(default_factory=list)
    size: int = 0
    own: int = 0


@dataclass(slots=True, eq=False)
class _Frame:
    """A list or mapping whose end has not come yet. ``size`` counts the nodes before it, ``height`` the levels in it."""

    mapping: bool
    flow: bool
    start: int
    tag: str | None
    anchor: Span | None
    name: str | None
    children: list[Any]
    size: int
    height: int = 1


class _Anchored(NamedTuple):
    node: Node
    size: int
    height: int


def compose(text: str, pure: bool = False) -> Composed | Failure:
    """Return the nodes of a text that holds at most one document, or why there are none. Linear; never raises."""
    pure = pure or not backend.HAS_C
    masked = backend.mask(text)
    found = _compose(text, masked, pure)
    if isinstance(found, Failure) and found.problem != TOO_DEEP:
        flow = backend.mask(text, flow=True)
        if flow.text != masked.text:
            return _compose(text, flow, pure)
    return found


def _compose(text: str, masked: backend.Masked, pure: bool) -> Composed | Failure:
    failure = Failure("", 0)
    for _ in range(MOST_TABS):
        stack: list[_Frame] = []
        try:
            return _build(text, masked, backend.open_events(masked.text, pure), stack, pure)
        except YAMLError as error:
            failure = backend.failure_of(error, len(text))
        except _Refused as refused:
            failure = refused.failure
        flow_at = next((frame.start for frame in stack if frame.flow), -1)
        failure = failure._replace(flow_at=flow_at)
        mended = backend.mask_tab(masked, failure.at, pure)
        if mended is None:
            break
        masked = mended
    return failure


class _Refused(Exception):
    """Carries a failure out of the loop."""

    def __init__(self, problem: str, at: int) -> None:
        self.failure = Failure(problem, at)


def _build(text: str, masked: backend.Masked, get: Any, stack: list[_Frame], pure: bool) -> Composed:
    result = Composed(None)
    anchors: dict[str, Any] = {}
    root: list[Node] = []
    children: list[Any] = root
    size = own = 0
    refused = False
    back = masked.back
    while (event := get()) is not None:
        kind = event.__class__
        if kind is ScalarEvent:
            start = event.start_mark.index
            end = event.end_mark.index
            value = event.value
            if back:
                value = masked.restore(value)
            anchor: Span | None = None
            name, tag = event.anchor, event.tag
            style = _STYLES[event.style]
            indent = 0
            if name is not None or tag is not None:
                anchor, start = _skip_properties(text, start, name is not None, tag is not None, end)
            if style == "plain":
                if start >= end:
                    start = end = _place_of_nothing(text, children, stack, start, name is not None or tag is not None)
            elif style == "literal" or style == "folded":
                end = _end_of_block(text, start, end)
                indent = _indent_of_block(text, start, end, value)
            node: Node = Scalar(Span(start, end), value, style, text[start:end], tag, anchor, indent)
            if name is not None:
                _check_name(name, anchor, pure)
                anchors[name] = _Anchored(node, 1, 1)
            children.append(node)
            size += 1
            own += 1
        elif isinstance(event, CollectionStartEvent):
            anchor = None
            start = event.start_mark.index
            name, tag = event.anchor, event.tag
            if name is not None or tag is not None:
                anchor, start = _skip_properties(text, start, name is not None, tag is not None, len(text))
            if len(stack) >= DEEPEST:
                raise _Refused(TOO_DEEP, start)
            frame = _Frame(kind is MappingStartEvent, bool(event.flow_style), start, tag, anchor, name, [], size)
            if name is not None:
                _check_name(name, anchor, pure)
                anchors[name] = frame
            stack.append(frame)
            children = frame.children
            size += 1
            own += 1
        elif isinstance(event, CollectionEndEvent):
            frame = stack.pop()
            node = _close(text, frame, event.end_mark.index, result)
            if frame.name is not None and anchors.get(frame.name) is frame:
                anchors[frame.name] = _Anchored(node, size - frame.size, frame.height)
            if stack:
                children = stack[-1].children
                if stack[-1].height <= frame.height:
                    stack[-1].height = frame.height + 1
            else:
                children = root
            children.append(node)
        elif kind is AliasEvent:
            span = Span(event.start_mark.index, event.end_mark.index)
            name = event.anchor
            _check_name(name, span, pure)
            target = anchors.get(name)
            alias = Alias(span, name, None)
            if isinstance(target, _Frame):
                result.findings.append(recursive_alias(alias))
            elif target is None:
                result.loose.append(alias)
            elif len(stack) + target.height > DEEPEST or size + target.size > most_nodes(own):
                if not refused:
                    refused = True
                    result.findings.append(oversized_alias(alias, len(stack) + target.height > DEEPEST))
            else:
                alias.target = target.node
                size += target.size - 1
                if stack and stack[-1].height <= target.height:
                    stack[-1].height = target.height + 1
            children.append(alias)
            size += 1
            own += 1
    result.node = root[0] if root else None
    result.anchors = {name: found.node for name, found in anchors.items()}
    result.size = size
    result.own = own
    return result


def _close(text: str, frame: _Frame, end: int, result: Composed) -> Node:
    """Return the finished node of a frame whose end event came."""
    children = frame.children
    start = frame.start
    brackets = frame.flow and text[start : start + 1] in ("{", "[")
    if not brackets and children:
        end = max(start, children[-1].span.end)
    if not frame.mapping:
        return Sequence(Span(start, end), tuple(children), frame.flow, frame.tag, frame.anchor)
    pairs = iter(children)
    entries = tuple([Entry(key, value) for key, value in zip(pairs, pairs, strict=True)])
    mapping = Mapping(Span(start, end), entries, frame.flow, frame.tag, frame.anchor)
    if len(entries) > 1 and len({e.key.value for e in entries if e.key.__class__ is Scalar}) != len(entries):
        result.findings.extend(duplicate_keys(text, mapping))
    return mapping


def _behind_gap(text: str, at: int) -> int:
    """Return where the next token begins, behind blanks, line breaks and comments."""
    match = _GAP.match(text, at)
    return match.end() if match else at


def _check_name(name: str, span: Span | None, pure: bool) -> None:
    # The C parser refuses such names by itself; the pure one takes them.
    if pure and span is not None and (bad := _NOT_A_NAME.search(name)):
        raise _Refused("did not find expected alphabetic or numeric character", span.start + 1 + bad.start())


def _skip_properties(text: str, at: int, anchor: bool, tag: bool, limit: int) -> tuple[Span | None, int]:
    """Return the anchor's span and where the content begins, behind an anchor and a tag in any order."""
    found: Span | None = None
    for _ in range(anchor + tag):
        at = _behind_gap(text, at)
        match = _PROPERTY.match(text, at)
        if match is None:
            break
        if text[at] == "&":
            found = Span(at, match.end())
        at = match.end()
    behind = _behind_gap(text, at)
    return found, behind if behind <= limit else at


def _place_of_nothing(text: str, siblings: list[Any], stack: list[_Frame], at: int, has_properties: bool) -> int:
    """Return where a missing value stands: behind the colon of its key, behind its dash, or behind its anchor or tag."""
    if has_properties:
        return at
    if stack and stack[-1].mapping and len(siblings) % 2:
        key_end: int = siblings[-1].span.end
        behind = _behind_gap(text, key_end)
        return behind + 1 if text[behind : behind + 1] == ":" else key_end
    begin = siblings[-1].span.end if siblings else 0
    while at > begin and text[at - 1] in " \t":
        at -= 1
    return at


def _end_of_block(text: str, start: int, end: int) -> int:
    """Return the end of a block scalar without its trailing blank lines; blanks behind the last words are text."""
    behind = start + len(text[start:end].rstrip(" \t\r\n"))
    line_end = _BREAK.search(text, behind, end)
    return line_end.start() if line_end else end


def _indent_of_block(text: str, start: int, end: int, value: str) -> int:
    """Return the columns of indentation that a block scalar's lines have and its value has not."""
    written = _FIRST_LINE.search(text, start, end)
    read = _FIRST_VALUE_LINE.search(value)
    return max(0, len(written[1]) - len(read[1])) if written and read else 0
