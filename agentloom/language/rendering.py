"""Templates to text: what each kind of value looks like, and what a missing one does."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from agentloom.errors import TemplateError
from agentloom.language.paths import MISSING, format_path, get
from agentloom.language.template import Placeholder, Template, parse_template

Warn = Callable[[str], None]

MAX_RENDERED: Final = 50_000_000
"""The longest text a template may render to, in characters."""


def render(
    template: Template | str, state: Mapping[str, Any], *, warn: Warn | None = None, strict: bool = False
) -> str:
    """Return the text that a template gives on ``state``.

    A missing variable renders as an empty text and is told to ``warn`` once; with ``strict`` it raises. What the state holds is
    never read as a template again.

    Raises ``TemplateError`` for a broken template and for a format spec that the value refuses.
    """
    if isinstance(template, str):
        template = parse_template(template)
    refuse_broken(template)
    return join_pieces(template, state, _once(warn), strict=strict)


def refuse_broken(template: Template) -> None:
    """Raise ``TemplateError`` for the first fault of a template, if it has one."""
    if template.faults:
        first = template.faults[0]
        raise TemplateError(f"broken template: {first.message}", start=first.start, end=first.end)


def join_pieces(template: Template, state: Mapping[str, Any], warn: Warn, *, strict: bool = False) -> str:
    """Return the text of a template without faults; ``warn`` gets every warning."""
    pieces: list[str] = []
    size = 0
    for piece in template.pieces:
        text = piece if isinstance(piece, str) else _text_of(piece, state, warn, strict)
        size += len(text)
        if size > MAX_RENDERED:
            raise TemplateError(f"the rendered text is longer than {MAX_RENDERED} characters")
        pieces.append(text)
    return "".join(pieces)


def missing_message(name: str) -> str:
    """Return the warning about a variable that the state doesn't hold."""
    return f"Template variable '{name}' not found, rendering as empty"


def _once(warn: Warn | None) -> Warn:
    """Return a ``warn`` that says each thing once."""
    if warn is None:
        return lambda message: None
    tell, told = warn, set[str]()

    def say(message: str) -> None:
        if message not in told:
            told.add(message)
            tell(message)

    return say


def _text_of(placeholder: Placeholder, state: Mapping[str, Any], warn: Warn, strict: bool) -> str:
    value = get(state, placeholder.parts)
    if value is MISSING:
        if strict:
            raise missing_error(placeholder, state)
        warn(missing_message(placeholder.name))
        return ""
    if isinstance(value, str) and placeholder.plain:
        return value
    try:
        return _formatted(placeholder, value, warn)
    except (TypeError, ValueError, OverflowError) as error:
        raise _format_error(placeholder, value) from error
    except RecursionError as error:
        raise TemplateError(
            f"`{placeholder.name}` is nested too deep to be rendered",
            start=placeholder.span.start,
            end=placeholder.span.end,
        ) from error


def _formatted(placeholder: Placeholder, value: Any, warn: Warn) -> str:
    number_or_text = isinstance(value, str | int | float) and not isinstance(value, bool)
    if number_or_text and placeholder.conversion is None:
        return format(value, placeholder.spec)
    text = value_text(value, compact=placeholder.root == "state")
    if text is None:
        warn(f"Template variable '{placeholder.name}' holds no plain data, rendering as empty")
        return ""
    if placeholder.conversion is not None:
        if placeholder.conversion == "r" and isinstance(value, str):
            text = repr(value)
        return format(text, placeholder.spec)
    if placeholder.spec:
        warn(f"Format spec '{placeholder.spec}' of '{placeholder.name}' ignored: the value is {kind_of(value)}")
    return text


def value_text(value: Any, *, compact: bool) -> str | None:
    """Return how a value stands in a text; None if it is no plain data.

    With ``compact``, mappings and lists are JSON without spaces; else they look as Python writes them.
    """
    if value is None or isinstance(value, str | bool | int | float):
        return str(value)
    if not isinstance(value, Mapping | list | tuple):
        return None
    plain = _plain(value)
    if compact:
        return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
    return str(plain)


def _plain(value: Any) -> Any:
    """Return a copy made of plain data only; what is none, such as an object of a program, becomes None."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {key if isinstance(key, str | int | float) else str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None


def kind_of(value: Any) -> str:
    """Return what a value is, in the words of messages: ``a mapping``, ``a text``, ``null`` …"""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, str):
        return "a text"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    return "no plain data"


def missing_error(placeholder: Placeholder, state: Mapping[str, Any]) -> TemplateError:
    """Return the error that names the first part of a path that the state doesn't hold."""
    parts = placeholder.parts
    reached = next((n for n in range(1, len(parts) + 1) if get(state, parts[:n]) is MISSING), len(parts))
    span = placeholder.spans[reached - 1] if placeholder.spans else placeholder.span
    there = f"`{format_path(parts[: reached - 1])}`" if reached > 1 else "the state"
    return TemplateError(
        f"`{placeholder.name}` can't be resolved; there is no `{parts[reached - 1] if parts else ''}` in {there}",
        start=span.start,
        end=span.end,
    )


def _format_error(placeholder: Placeholder, value: Any) -> TemplateError:
    if not placeholder.spec:
        message = f"`{placeholder.name}` can't be written as text; its number is too long"
        return TemplateError(message, start=placeholder.span.start, end=placeholder.span.end)
    message = f"broken template: format spec `{placeholder.spec}` of `{placeholder.name}` doesn't fit {kind_of(value)}"
    return TemplateError(message, start=placeholder.span.start, end=placeholder.span.end)
