"""Values that a child workflow was handed as they are: what they say, and how they are added to a file's own `state`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agentloom.analysis.document import WorkflowDocument
from agentloom.analysis.edits.places import column_of, end_of, keeps_blank_lines, line_end
from agentloom.diagnostics import Edit
from agentloom.ide.results import Refusal
from agentloom.language.arguments import parse_argument
from agentloom.language.paths import StatePath
from agentloom.syntax.nodes import Mapping as MappingNode
from agentloom.syntax.quoting import quote
from agentloom.syntax.values import find
from agentloom.text import Span, newline_of


def lone_path(value: Any) -> StatePath | None:
    """Return the state path of a value that is one reference and nothing else."""
    if not isinstance(value, str):
        return None
    pieces = parse_argument(value).pieces
    if len(pieces) == 1 and not isinstance(pieces[0], str) and pieces[0].plain:
        return StatePath(pieces[0].parts, pieces[0].spans)
    return None


def literal_of(value: Any) -> tuple[Any] | None:
    """Return what a value says, when there is no template in it at any depth."""
    if isinstance(value, str):
        pieces = parse_argument(value).pieces
        return ("".join(map(str, pieces)),) if all(isinstance(piece, str) for piece in pieces) else None
    if isinstance(value, dict):
        inner = {key: literal_of(item) for key, item in value.items()}
        return None if None in inner.values() else ({key: item[0] for key, item in inner.items() if item},)
    if isinstance(value, list):
        items = [literal_of(item) for item in value]
        return None if None in items else ([item[0] for item in items if item],)
    return (value,)


def with_state(document: WorkflowDocument, values: Mapping[str, Any]) -> tuple[Edit, ...]:
    """Return the edits that add keys to a file's `state`, making it when there is none. Raises ``Refusal``."""
    if not values:
        return ()
    text, root = document.source.text, document.tree.root
    entries = {key: quote(value) if isinstance(value, str) else _flow(value) for key, value in values.items()}
    state = find(root, ("state",))
    if isinstance(state, MappingNode) and state.entries and state.anchor is None:
        made: list[Edit] = []
        if state.flow:
            inside = ", ".join(f"{key}: {_in_flow(values[key])}" for key in entries)
            end = end_of(state.entries[-1].value, state.entries[-1].key)
            return (Edit(Span(end, end), f", {inside}"),)
        last = state.entries[-1]
        if keeps_blank_lines(last.value):
            raise Refusal("there is no room in `state` for what the child was handed")
        end = line_end(text, max(end_of(last.value, last.key), last.key.span.end))
        pad = newline_of(text, end) + " " * column_of(text, state.entries[0].key.span.start)
        made.append(Edit(Span(end, end), "".join(f"{pad}{quote(key)}: {value}" for key, value in entries.items())))
        return tuple(made)
    found = document.tree.entry("steps")
    if state is not None or found is None or not isinstance(root, MappingNode) or root.flow:
        raise Refusal("there is no room in `state` for what the child was handed")
    start = found[0].span.start
    break_ = newline_of(text, start)
    pad = " " * column_of(text, start)
    lines = ["state:", *(f"  {quote(key)}: {value}" for key, value in entries.items()), ""]
    first, *rest = lines
    written = first + "".join(break_ + (pad + line if line else "") for line in rest)
    return (Edit(Span(start, start), f"{written}{break_}{pad}"),)


def _flow(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _in_flow(value: Any) -> str:
    return quote(value, flow=True) if isinstance(value, str) else _flow(value)
