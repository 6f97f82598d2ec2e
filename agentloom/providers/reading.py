"""Parts of replies that every wire format has, read without trust: arguments of tool calls, counts of tokens."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any, NoReturn

MAX_DEPTH = 100
"""How deep the arguments of a tool call may be nested."""


def read_arguments(value: Any) -> tuple[dict[str, Any], str]:
    """Return the arguments of a tool call and, if they can't be read, why; they are empty then.

    They arrive as the text of a JSON object or as the object itself; nothing at all is a call without arguments.
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return {}, ""
    if isinstance(value, str):
        try:
            value = json.loads(value, parse_constant=_no_number, parse_float=_finite)
        except json.JSONDecodeError as error:
            return (
                {},
                f"the arguments are not JSON: {error.msg[:1].lower()}{error.msg[1:]} at character {error.pos + 1}",
            )
        except ValueError as error:
            return {}, f"the arguments hold a number that can't be used: {error}"
        except RecursionError:
            return {}, "the arguments are nested too deeply"
    if not isinstance(value, dict):
        return {}, "the arguments are not a JSON object"
    return ({}, fault) if (fault := _fault_in(value)) else (value, "")


def _fault_in(value: dict[str, Any]) -> str:
    """Return what keeps a JSON value from being handed on: nested too deeply, a number that JSON has no word for. Doesn't recurse."""
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for item in level for inner in _inside(item)]
        if not level:
            return ""
        if any(type(item) is float and not isfinite(item) for item in level):
            return "the arguments hold a number that can't be used"
    return "the arguments are nested too deeply"


def _inside(item: Any) -> Iterable[Any]:
    if isinstance(item, dict):
        return item.values()
    return item if isinstance(item, list) else ()


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"`{text}` is no number")


def _finite(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError(f"`{text[:40]}` is too large")
    return value


def count_of(data: Mapping[str, Any], key: str) -> int:
    """Return a count in a reply's usage; 0 for anything that is none."""
    value = data.get(key)
    return value if type(value) is int and value > 0 else 0
