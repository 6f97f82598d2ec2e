"""One piece of text to nodes: events of the parser straight into our own nodes, which keep the places of aliases."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from agentloom.diagnostics import Finding
from agentloom.syntax import backend
from agentloom.syntax.aliases import DEEPEST, most_nodes, oversized_alias, recursive_alias
from agentloom.syntax.backend import (
    AliasEvent,
    Failure,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    YAMLError,
)
from agentloom.syntax.duplicates import duplicate_keys
from agentloom.syntax.nodes import Alias, Entry, Mapping, Node, Scalar, Sequence, Style
from agentloom.text import Span

TOO_DEEP = "nested too deeply"

_STYLES: dict[str | None, Style] = {
    "": "plain",
    None: "plain",
    "'": "single",
    '"': "double",
    "|": "literal",
    ">": "folded",
}
_BLOCKS = ("literal", "folded")
_GAP = re.compile(r"(?:[ \t\r\n]|(?<![^ \t\r\n])#[^\r\n]*)*")
_PROPERTY = r"[^ \t\r\n,\[\]{}]+|!<[^>]*>"
_BREAK = re.compile(r"[\r\n]")
_FIRST_LINE = re.compile(r"(?:\r\n|\r|\n)( *)(?=[^ \r\n])")
_FIRST_VALUE_LINE = re.compile(r"(?:\A|\n)( *)(?=[^ \n])")
_ESCAPE = r"\\(?:(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
_NOT_A_NAME = r"[^0-9A-Za-z_-]"


class Composed:
    """What one piece says. Offsets are those of its text.

    ``anchors`` are the names it defines, ``loose`` its aliases to names that it does not define; ``size`` counts its nodes
    with aliases followed, ``own`` without; ``odd`` tells that there may be characters that YAML does not allow.
    """

    __slots__ = ("anchors", "findings", "loose", "node", "odd", "own", "size")

    def __init__(
        self,
        node: Node | None,
        findings: list[Finding],
        anchors: dict[str, Node],
        loose: list[Alias],
        size: int,
        own: int,
    ) -> None:
        self.node = node
        self.findings = findings
        self.anchors = anchors
        self.loose = loose
        self.size = size
        self.own = own
        self.odd = True


class _Frame:
    """A list or mapping whose end has not come yet. ``size`` counts the nodes before it, ``height`` the levels in it."""

    __slots__ = ("anchor", "children", "flow", "height", "mapping", "name", "size", "start", "tag")

    def __init__(self, mapping: bool, event: Any, size: int) -> None:
        self.mapping = mapping
        self.flow: bool = event.flow_style
        self.start: int = event.start_mark.index
        self.tag: str | None = event.tag
        self.name: str | None = event.anchor
        self.anchor: Span | None = None
        self.children: list[Any] = []
        self.size = size
        self.height = 1


class _Anchored(NamedTuple):
    node: Node
    size: int
    height: int


def compose(text: str, pure: bool = False) -> Composed | Failure:
    """Return the nodes of a text that holds at most one document, or why there are none. Linear; never raises."""
    pure = pure or not backend.HAS_C
    masked = backend.mask(text)
    found = _compose(text, masked, pure)
    if isinstance(found, Composed):
        found.odd = masked.odd
    elif found.may_be_flow_text:
        flow = backend.mask(text, flow=True)
        if flow.text != masked.text:
            return _compose(text, flow, pure)
    return found


def _compose(text: str, masked: backend.Masked, pure: bool) -> Composed | Failure:
    failure = Failure("", 0)
    for _ in range(backend.MOST_TABS):
        stack: list[_Frame] = []
        try:
            return _build(text, masked, backend.open_events(masked.text, pure), stack, pure)
        except YAMLError as error:
            failure = backend.failure_of(error, len(text))
        except _Refused as refused:
            failure = refused.failure
        flow_at = next((frame.start for frame in stack if frame.flow), -1)
        failure = failure._replace(flow_at=flow_at)
        mended = backend.mask_tab(masked, failure, pure)
        if mended is None:
            break
        masked = mended
    return failure


class _Refused(Exception):
    """Carries a failure out of the loop."""

    def __init__(self, problem: str, at: int) -> None:
        self.failure = Failure(problem, at)


def _build(text: str, masked: backend.Masked, get: Any, stack: list[_Frame], pure: bool) -> Composed:
    result = Composed(None, [], {}, [], 0, 0)
    anchors: dict[str, Any] = {}
    root: list[Node] = []
    children: list[Any] = root
    nodes = followed = 0
    refused = False
    back = masked.back
    make_span = tuple.__new__  # half the price of calling the class, and much of what a node costs
    while (event := get()) is not None:
        kind = event.__class__
        if kind is ScalarEvent:
            start = event.start_mark.index
            end = event.end_mark.index
            style = _STYLES[event.style]
            nodes += 1
            if pure and style == "double":
                _check_escapes(text, start, end)
            if start < end and event.anchor is None and event.ctag is None and style not in _BLOCKS and not back:
                children.append(Scalar(make_span(Span, (start, end)), event.value, style, text[start:end]))
                continue
            node: Any = _scalar(text, event, style, masked.restore(event.value), children, stack)
            if event.anchor is not None:
                _check_name(event.anchor, node.anchor, pure)
                anchors[event.anchor] = _Anchored(node, 1, 1)
            children.append(node)
        elif kind is MappingStartEvent or kind is SequenceStartEvent:
            if len(stack) >= DEEPEST:
                raise _Refused(TOO_DEEP, event.start_mark.index)
            frame = _Frame(kind is MappingStartEvent, event, nodes + followed)
            if frame.name is not None or event.ctag is not None:
                frame.anchor, frame.start = _skip_properties(text, frame.start, frame.name, event.ctag, len(text))
                if frame.name is not None:
                    _check_name(frame.name, frame.anchor, pure)
                    anchors[frame.name] = frame
            stack.append(frame)
            children = frame.children
            nodes += 1
        elif kind is MappingEndEvent or kind is SequenceEndEvent:
            frame = stack.pop()
            node = _close(text, frame, event.end_mark.index, result)
            if frame.name is not None and anchors.get(frame.name) is frame:
                anchors[frame.name] = _Anchored(node, nodes + followed - frame.size, frame.height)
            if stack:
                children = stack[-1].children
                if stack[-1].height <= frame.height:
                    stack[-1].height = frame.height + 1
            else:
                children = root
            children.append(node)
        elif kind is AliasEvent:
            alias = Alias(Span(event.start_mark.index, event.end_mark.index), event.anchor, None)
            _check_name(alias.name, alias.span, pure)
            children.append(alias)
            nodes += 1
            target = anchors.get(alias.name)
            if isinstance(target, _Frame):
                result.findings.append(recursive_alias(alias))
            elif target is None:
                result.loose.append(alias)
            elif (deep := len(stack) + target.height > DEEPEST) or nodes + followed + target.size > most_nodes(nodes):
                if not refused:
                    refused = True
                    result.findings.append(oversized_alias(alias, deep))
            else:
                alias.target = target.node
                followed += target.size
                if stack and stack[-1].height <= target.height:
                    stack[-1].height = target.height + 1
    result.node = root[0] if root else None
    result.anchors = {name: found.node for name, found in anchors.items()}
    result.size = nodes + followed
    result.own = nodes
    return result


def _scalar(text: str, event: Any, style: Style, value: str, siblings: list[Any], stack: list[_Frame]) -> Scalar:
    """Return the node of a scalar that has properties, or no text, or is a block."""
    start, end = event.start_mark.index, event.end_mark.index
    name, tag = event.anchor, event.tag
    anchor: Span | None = None
    indent = 0
    if name is not None or tag is not None:
        anchor, start = _skip_properties(text, start, name, tag, end)
    if style in _BLOCKS:
        end = _end_of_block(text, start, end)
        indent = _indent_of_block(text, start, end, value)
    elif start >= end:
        start = end = _place_of_nothing(text, siblings, stack, start, name is not None or tag is not None)
    return Scalar(Span(start, end), value, style, text[start:end], tag, anchor, indent)


def _close(text: str, frame: _Frame, end: int, result: Composed) -> Node:
    """Return the finished node of a frame whose end event came."""
    children = frame.children
    start = frame.start
    brackets = frame.flow and text[start : start + 1] in ("{", "[")
    if not brackets and children:
        end = max(start, children[-1].span.end)
    if not frame.mapping:
        return Sequence(Span(start, end), tuple(children), frame.flow, frame.tag, frame.anchor)
    keys = children[::2]
    entries = tuple(map(Entry, keys, children[1::2]))
    mapping = Mapping(Span(start, end), entries, frame.flow, frame.tag, frame.anchor)
    if len({key.value for key in keys if key.__class__ is Scalar}) != len(keys):
        result.findings.extend(duplicate_keys(text, mapping))
    return mapping


def _behind_gap(text: str, at: int) -> int:
    """Return where the next token begins, behind blanks, line breaks and comments."""
    match = _GAP.match(text, at)
    return match.end() if match else at


def _check_name(name: str, span: Span | None, pure: bool) -> None:
    # The C parser refuses such names by itself; the pure one takes them.
    if pure and span is not None and (bad := re.search(_NOT_A_NAME, name)):
        raise _Refused("did not find expected alphabetic or numeric character", span.start + 1 + bad.start())


def _check_escapes(text: str, start: int, end: int) -> None:
    # The C parser refuses escapes of surrogates by itself; the pure one takes them.
    for match in re.compile(_ESCAPE, re.DOTALL).finditer(text, start, end):
        if match[1]:
            raise _Refused("found invalid Unicode character escape code", match.start() + 2)


def _skip_properties(text: str, at: int, anchor: object, tag: object, limit: int) -> tuple[Span | None, int]:
    """Return the anchor's span and where the content begins, behind an anchor and a tag in any order."""
    found: Span | None = None
    for _ in range((anchor is not None) + (tag is not None)):
        next_at = _behind_gap(text, at)
        match = re.compile(_PROPERTY).match(text, next_at)
        if match is None or text[next_at] not in "&!":
            break  # the pure parser counts from the anchor even when the tag stands before it
        at = next_at
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
