"""Whether a value that stands in a file fits the JSON Schema of a tool's argument, as far as the tool's own check would refuse it.

That check is pydantic's, which takes `"5"` for a number and `yes` for true; what it may take is never refused here, nor what a template decides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from agentloom.language.arguments import find_references_deep
from agentloom.tools.schema import words_for

DEEPEST = 20
"""How deep schemas are followed; they may contain themselves."""

_TRUTH = ("0", "1", "f", "false", "n", "no", "off", "on", "t", "true", "y", "yes")


class Misfit(NamedTuple):
    """What doesn't fit: the path below the argument, and the sentence's end, such as `is a text, not a list`."""

    path: tuple[str | int, ...]
    words: str


def misfits(value: Any, schema: Any, root: Mapping[str, Any], depth: int = 0) -> Iterator[Misfit]:
    """Yield what in a value doesn't fit a schema; ``root`` is the schema of all arguments, with its definitions."""
    schema = _resolved(schema, root)
    if schema is None or depth > DEEPEST or _is_open(value):
        return
    wrong = _wrong(value, schema, root, depth)
    if wrong is not None:
        yield Misfit((), wrong)
    elif isinstance(value, Mapping):
        properties = schema.get("properties")
        for name, item in value.items():
            inner = properties.get(name) if isinstance(properties, Mapping) else schema.get("additionalProperties")
            for path, words in misfits(item, inner, root, depth + 1):
                yield Misfit((name, *path), words)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for index, item in enumerate(value):
            for path, words in misfits(item, schema.get("items"), root, depth + 1):
                yield Misfit((index, *path), words)


def _wrong(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str | None:
    """Return what is wrong with a value itself; None if nothing is, or if that can't be told."""
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(choices, list):
        if not all(isinstance(choice, str) for choice in choices) or value in choices:
            return None
        shown = f"`{value}`" if isinstance(value, str) else _kind(value)
        return f"is one of {', '.join(f'`{choice}`' for choice in choices)}, not {shown}"
    ways = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(ways, list):
        if any(next(misfits(value, way, root, depth + 1), None) is None for way in ways):
            return None
        return f"is {_words(schema, root)}, not {_kind(value)}"
    kind = schema.get("type")
    if not isinstance(kind, str) or ("format" in schema and not isinstance(value, list | dict)):
        return None  # dates and the like are taken in several forms
    if not _fits(value, kind):
        return f"is {_words(schema, root)}, not {_kind(value)}"
    if isinstance(value, int | float) and not isinstance(value, bool) and not _within(value, schema):
        return f"is {_words(schema, root)}, not {value}"
    return None


def _fits(value: Any, kind: str) -> bool:
    """Tell whether a value may be taken for one of a kind."""
    if kind == "string":
        return isinstance(value, str) or not isinstance(value, bool | int | float | list | dict | None)
    if kind in ("integer", "number"):
        if isinstance(value, str):
            return _is_number(value)
        whole = kind == "number" or not isinstance(value, float) or value.is_integer()
        return isinstance(value, bool | int | float) and whole
    if kind == "boolean":
        return value.strip().lower() in _TRUTH if isinstance(value, str) else value in (0, 1)
    if kind == "array":
        return isinstance(value, list)
    if kind == "object":
        return isinstance(value, dict)
    return value is None if kind == "null" else True


def _within(value: float, schema: Mapping[str, Any]) -> bool:
    low, above = schema.get("minimum", -math.inf), schema.get("exclusiveMinimum", -math.inf)
    high, below = schema.get("maximum", math.inf), schema.get("exclusiveMaximum", math.inf)
    try:
        return bool(
            low <= value <= high and (above < value or above == -math.inf) and (value < below or below == math.inf)
        )
    except TypeError:
        return True


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_open(value: Any) -> bool:
    """Tell whether a template, or an escape from templates, decides what a value is."""
    if isinstance(value, Mapping):
        return value.keys() == {"value", "template"}
    return isinstance(value, str) and bool(find_references_deep(value))


def _resolved(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any] | None:
    for _ in range(DEEPEST):
        if not isinstance(schema, Mapping):
            return None
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        schema = root
        for part in reference.removeprefix("#/").split("/"):
            schema = schema.get(part) if isinstance(schema, Mapping) else None
    return None


def _words(schema: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    ways = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(ways, list):
        found = (_words(_resolved(way, root) or {}, root) for way in ways)
        return " or ".join(dict.fromkeys(found))
    return words_for(schema).replace("an object", "a mapping")


def _kind(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    for kind, word in ((str, "a text"), (int, "a whole number"), (float, "a number"), (dict, "a mapping")):
        if isinstance(value, kind):
            return word
    return "a list"
