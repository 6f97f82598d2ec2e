"""The rule about JSON Schemas in the file. Checked here by hand: importing a validator costs more than checking a file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from agentloom.analysis.document import Facts
from agentloom.analysis.effort import mapping
from agentloom.diagnostics import Finding
from agentloom.similar import closest
from agentloom.syntax.nodes import Alias, Node
from agentloom.syntax.values import find, find_key

TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")
_ONE = (
    "items",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
)
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_MAPPINGS = ("properties", "patternProperties", "$defs", "dependentSchemas")
_COUNTS = (
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "minContains",
    "maxContains",
)
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_TEXTS = (
    "title",
    "description",
    "format",
    "pattern",
    "$ref",
    "$id",
    "$schema",
    "$anchor",
    "$comment",
    "contentEncoding",
    "contentMediaType",
)
_FLAGS = ("uniqueItems", "deprecated", "readOnly", "writeOnly")
_NAMES = ("required",)

Path = tuple[str | int, ...]
DEEPEST = 60
_HOLDERS = frozenset(("response_schema", "output_schema", "tools"))


def invalid_json_schema(facts: Facts) -> Iterator[Finding]:
    """A JSON Schema isn't one: a type that there is none of, a list where a mapping belongs.

    Providers refuse such a schema, or take it for another one, and the step would fail for good.

    Correct it at the marked place.
    """
    data = facts.data
    if not _HOLDERS.isdisjoint(data):
        yield from _of(facts, data, ())
    agents = data.get("agents") if facts.block is not None and "agents" in facts.block.fields else None
    for name, agent in mapping(agents).items():
        if isinstance(agent, dict):
            yield from _of(facts, agent, ("agents", name))


def _of(facts: Facts, data: Any, path: Path) -> Iterator[Finding]:
    for key in ("response_schema", "output_schema"):
        schema = mapping(data.get(key)).get("schema")
        if schema is not None:
            yield from _told(facts, schema, (*path, key, "schema"))
    tools = data.get("tools")
    for number, tool in enumerate(tools if isinstance(tools, list) else ()):
        schema = mapping(tool).get("parameters")
        if schema is not None:
            yield from _told(facts, schema, (*path, "tools", number, "parameters"))


def _told(facts: Facts, schema: Any, path: Path) -> Iterator[Finding]:
    if not isinstance(schema, dict):
        return  # AL105
    for at, message in faults(schema):
        node: Node | None = find(facts.node, (*path, *at))
        node = node.target if isinstance(node, Alias) else node
        key = find_key(facts.node, (*path, *at)) if at and isinstance(at[-1], str) else None
        span = (
            node.span
            if node is not None and node.span.end > node.span.start
            else key.span
            if key is not None
            else facts.first
        )
        yield Finding("AL607", span, message)


def faults(schema: Any) -> Iterator[tuple[Path, str]]:
    """Yield what is wrong in a JSON Schema (draft 2020-12), each with the path to it."""
    todo: list[tuple[Any, Path]] = [(schema, ())]
    while todo:
        at, path = todo.pop()
        if isinstance(at, bool) or len(path) > DEEPEST:
            continue
        if not isinstance(at, dict):
            yield (
                path,
                f"`{path[-1]}` is {_kind(at)} where a JSON Schema is a mapping; write one such as `{{type: string}}`",
            )
            continue
        for key, value in at.items():
            here = (*path, key)
            if key in _ONE:
                todo.append((value, here))
            elif key in _LISTS:
                if not isinstance(value, list) or not value:
                    yield here, f"`{key}` takes a list of JSON Schemas"
                else:
                    todo.extend((item, (*here, number)) for number, item in enumerate(value))
            elif key in _MAPPINGS:
                if not isinstance(value, dict):
                    yield here, f"`{key}` is {_kind(value)}; it takes a mapping of names to JSON Schemas"
                else:
                    todo.extend((item, (*here, name)) for name, item in value.items())
            else:
                yield from _plain(key, value, here)


def _plain(key: str, value: Any, here: Path) -> Iterator[tuple[Path, str]]:
    if key == "type":
        listed = value if isinstance(value, list) else [value]
        if not listed:
            yield here, "`type` is an empty list, which no value fits; name a type, or remove it"
        elif any(word in listed[:number] for number, word in enumerate(listed)):
            yield here, "`type` names a type twice; remove one of them"
        for number, word in enumerate(listed):
            if word not in TYPES:
                near = closest(word, TYPES) if isinstance(word, str) else None
                cure = f"did you mean `{near}`?" if near else "there are " + ", ".join(f"`{name}`" for name in TYPES)
                yield (
                    (*here, number) if isinstance(value, list) else here,
                    f"`{word}` is no type of JSON Schema; {cure}",
                )
    elif key in _NAMES:
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            yield (
                here,
                f"`{key}` takes a list of names"
                + ("; it stands beside `properties`, not inside" if isinstance(value, bool) else ""),
            )
        elif len(set(value)) < len(value):
            yield here, f"`{key}` names something twice; remove one of them"
    elif key == "enum":
        if not isinstance(value, list):
            yield here, f"`enum` is {_kind(value)}; it takes a list of values"
    elif key in _COUNTS:
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        if not whole or isinstance(value, bool) or value < 0:
            yield here, f"`{key}` takes a whole number from 0"
    elif key in _NUMBERS:
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            yield here, f"`{key}` takes a number"
    elif key == "multipleOf":
        if not isinstance(value, (int, float)) or isinstance(value, bool) or value <= 0:
            yield here, "`multipleOf` takes a number above 0"
    elif key in _FLAGS:
        if not isinstance(value, bool):
            yield here, f"`{key}` takes true or false"
    elif key in _TEXTS:
        if not isinstance(value, str):
            yield here, f"`{key}` takes a text"
        elif key == "pattern":
            try:
                re.compile(value)
            except (re.error, OverflowError, RecursionError):
                yield here, "`pattern` is no regular expression that can be read; correct it"


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    for kind, word in ((str, "a text"), ((int, float), "a number"), (list, "a list"), (dict, "a mapping")):
        if isinstance(value, kind):
            return word
    return "nothing"
