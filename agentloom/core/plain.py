"""Plain data out of whatever a program hands over: what JSON can hold, copied, so that nobody else can change it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from agentloom.core.results import JSON
from agentloom.errors import UsageError
from agentloom.language.paths import format_path

MAX_DEPTH = 200
"""How deep plain data may nest."""


class NotPlain(UsageError):
    """A value is no plain data; ``parts`` is where, from the inside out."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why
        self.parts: list[str | int] = []


def plain(value: Any, name: str) -> Any:
    """Return a copy of ``value`` made of dicts with text keys, lists, texts, finite numbers, true, false and null.

    Tuples become lists. Raises ``NotPlain`` (a ``UsageError``) that begins with the place of what is no plain data, below ``name``.
    """
    try:
        return _plain(value, 0)
    except NotPlain as error:
        path = format_path([name, *reversed(error.parts)])
        found = NotPlain(f"`{path if len(path) <= 80 else path[:79] + '…'}` {error.why}")
        found.parts = error.parts
        raise found from None


def _plain(value: Any, depth: int) -> JSON:
    kind = type(value)
    if kind is str or value is None or kind is bool or kind is int:
        return value
    if kind is float:
        if math.isfinite(value):
            return value
        raise NotPlain(f"is `{value}`, which JSON has no number for")
    if depth >= MAX_DEPTH:
        raise NotPlain(f"nests deeper than {MAX_DEPTH}")
    if isinstance(value, Mapping):
        copy: dict[str, Any] = {}
        for key, item in value.items():
            if not isinstance(key, str):
                raise NotPlain(f"has the key `{key!r}`, which is no text")
            try:
                copy[str(key)] = _plain(item, depth + 1)
            except NotPlain as error:
                error.parts.append(key)
                raise
        return copy
    if isinstance(value, list | tuple):
        items: list[Any] = []
        for index, item in enumerate(value):
            try:
                items.append(_plain(item, depth + 1))
            except NotPlain as error:
                error.parts.append(index)
                raise
        return items
    # Members of a StrEnum and the like are taken for what they are based on.
    for base in (str, int, float):
        if isinstance(value, base):
            return _plain(base(value), depth)
    raise NotPlain(f"is a `{kind.__name__}`, which is no plain data")
