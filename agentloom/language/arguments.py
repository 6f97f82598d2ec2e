"""Values with templates at any depth: the arguments of tools, the input of subworkflows.

Here text is mostly not a template (JSON bodies, shell commands, style sheets), so only what looks like a placeholder is one:
``{state.…}``, ``{state[…]}``, ``{name}``, ``{name!r}``, ``{name:spec}`` without a space after the colon. Every other brace
stays as it is. ``{{name}}`` writes ``{name}``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from agentloom.errors import TemplateError
from agentloom.language.faults import Fault
from agentloom.language.paths import MISSING, get
from agentloom.language.rendering import Warn, join_pieces, missing_error, missing_message, refuse_broken
from agentloom.language.template import (
    Piece,
    Placeholder,
    Template,
    bare_reference,
    notes_on,
    open_reference,
    read_field,
    unclosed_reference,
)
from agentloom.text import Span

MAX_DEPTH: Final = 100
"""How deep arguments may nest."""

_CACHED_LENGTH = 8_000
# Compiled where they are used: only tools and subworkflows take such values.
_CANDIDATE = r"\{(?:state[.\[]|(?=[^\W\d]))"
_HALF_PATH = r"state(?:\.[\w\-]+|\[[\w\-]+\])*(?:\.|\[[\w\-]*)"
_STATE_END = r"[{}\n\r]"
_FLAT = r"\{[^\W\d][\w\-]*(?:\.[\w\-]+|\[[^\[\]{}\s\"']+\])*(?:![rs])?(?::[^\s{}][^{}\n\r]*)?\}"


def parse_argument(value: str) -> Template:
    """Return the pieces of one text among arguments; a lone path (``state.a[0]``) is a placeholder without braces.

    Never raises. Faults are only found in what begins as ``{state.`` or ``{state[``.
    """
    if not value.startswith("state") and "{" not in value:
        return Template(value, (value,) if value else ())
    return _parse_cached(value) if len(value) <= _CACHED_LENGTH else _parse(value)


@lru_cache(maxsize=2048)
def _parse_cached(value: str) -> Template:
    return _parse(value)


def find_references_deep(value: str) -> tuple[Placeholder, ...]:
    """Return the placeholders of one text among arguments, with their places in it."""
    return parse_argument(value).placeholders


def unescaped(value: Any) -> tuple[Any, bool]:
    """Return what stands under ``value`` and True for ``{value: …, template: false}``; else ``value`` itself and False."""
    if isinstance(value, Mapping) and len(value) == 2 and value.get("template") is False and "value" in value:
        return value["value"], True
    return value, False


def render_deep(value: Any, state: Mapping[str, Any], *, warn: Warn | None = None) -> Any:
    """Return ``value`` with the texts in it rendered, at every depth of lists and mappings; keys stay.

    A text that is one reference and nothing else becomes the value it names, with its type.

    Raises ``TemplateError`` when a reference to ``state.…`` leads nowhere, for a broken placeholder, and past ``MAX_DEPTH``.
    """
    told: set[str] = set()

    def say(message: str) -> None:
        if warn is not None and message not in told:
            told.add(message)
            warn(message)

    return _render(value, state, say, 0)


def _render(value: Any, state: Mapping[str, Any], warn: Warn, depth: int) -> Any:
    if isinstance(value, str):
        return _render_text(value, state, warn)
    if not isinstance(value, Mapping | list | tuple):
        return value
    if depth >= MAX_DEPTH:
        raise TemplateError(f"arguments nest deeper than {MAX_DEPTH}")
    if isinstance(value, Mapping):
        literal, escaped = unescaped(value)
        if escaped:
            return literal
        return {key: _render(item, state, warn, depth + 1) for key, item in value.items()}
    return [_render(item, state, warn, depth + 1) for item in value]


def _render_text(value: str, state: Mapping[str, Any], warn: Warn) -> Any:
    template = parse_argument(value)
    refuse_broken(template)
    pieces = template.pieces
    for piece in pieces:
        if not isinstance(piece, str) and piece.root == "state" and get(state, piece.parts) is MISSING:
            raise missing_error(piece, state)
    if len(pieces) == 1 and not isinstance(only := pieces[0], str) and only.plain:
        found = get(state, only.parts)
        if found is not MISSING:
            return found
        warn(missing_message(only.name))
        return ""
    return join_pieces(template, state, warn)


def _parse(value: str) -> Template:
    bare = bare_reference(value)
    if bare is not None:
        return Template(value, (bare,))
    pieces: list[Piece] = []
    faults: list[Fault] = []
    notes: list[Fault] = []
    still_open = [open_reference(value, 0)._replace(bare=True)] if re.fullmatch(_HALF_PATH, value) else []
    literal: list[str] = []
    at = 0
    for span, read in _fields(value):
        before = _run_back(value, span.start, at)
        after = _run_on(value, span.end, before)
        pairs = min(before, after)
        if pairs % 2:
            literal.append(value[at : span.start - pairs])
            literal.append("{" * (pairs // 2) + value[span.start : span.end] + "}" * (pairs // 2))
            at = span.end + pairs
            continue
        if pairs:
            literal.append(value[at : span.start - pairs] + "{" * (pairs // 2))
        else:
            literal.append(value[at : span.start])
        at = span.end
        if isinstance(read, Placeholder):
            text = "".join(literal)
            if text:
                pieces.append(text)
            literal = []
            pieces.append(read)
            notes.extend(notes_on(read))
        else:
            faults.append(read)
            literal.append(value[span.start : span.end])
            if value[span.end - 1] != "}":
                half = open_reference(value, span.start + 1)
                still_open.append(half._replace(span=Span(span.start, half.span.end)))
        if pairs:
            literal.append("}" * (pairs // 2))
            at += pairs
    text = "".join(literal) + value[at:]
    if text:
        pieces.append(text)
    return Template(value, tuple(pieces), tuple(faults), tuple(notes), tuple(still_open))


def _fields(value: str) -> Iterator[tuple[Span, Placeholder | Fault]]:
    """Yield each stretch that is a placeholder, or a broken one of the state, from left to right."""
    candidates = re.compile(_CANDIDATE)
    at = 0
    while (found := candidates.search(value, at)) is not None:
        start = found.start()
        if found.end() > start + 1:
            stop = re.compile(_STATE_END).search(value, found.end())
            if stop is None or stop.group() != "}":
                end = stop.start() if stop else len(value)
                half = open_reference(value, start + 1)
                message = "`{` is never closed; write `}` behind the name"
                fault = unclosed_reference(value, half._replace(span=Span(start, half.span.end)))
                yield Span(start, end), fault or Fault("template", Span(start, start + 1), message)
                at = end
                continue
            span = Span(start, stop.end())
            yield span, read_field(value, *span)
            at = span.end
            continue
        flat = re.compile(_FLAT).match(value, start)
        read = read_field(value, *flat.span()) if flat else None
        if flat is not None and isinstance(read, Placeholder):
            yield Span(*flat.span()), read
            at = flat.end()
        else:
            at = start + 1


def _run_back(value: str, at: int, least: int) -> int:
    """Count the opening braces that end right before ``at``, not going back beyond ``least``."""
    count = 0
    while at - count > least and value[at - count - 1] == "{":
        count += 1
    return count


def _run_on(value: str, at: int, most: int) -> int:
    """Count the closing braces that begin at ``at``, up to ``most``."""
    count = 0
    while count < most and value[at + count : at + count + 1] == "}":
        count += 1
    return count
