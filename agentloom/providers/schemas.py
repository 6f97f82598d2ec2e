"""JSON Schemas as vendors take them: each knows a part of the language only, and refuses a request with more.

What is left out of a schema is checked all the same: the reply is held to the whole schema when it comes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from agentloom.providers.base import ReplyFormat

MOST_PARTS = 5000
"""The most parts of a schema that are sent; one that grows beyond it by its references is not sent at all."""


JSON_ONLY = "Answer with one JSON object and nothing else: no explanation, no code fence."
JSON_SCHEMA = "Answer with JSON that fits this JSON Schema and nothing else: no explanation, no code fence.\n\n"


def in_words(wanted: ReplyFormat) -> str:
    """Return what tells a model the form of its reply, where nothing else can: a form that is enforced would keep some from calling tools."""
    if wanted.type == "json_object":
        return JSON_ONLY
    return JSON_SCHEMA + json.dumps(wanted.schema, ensure_ascii=False)


class Unspeakable(ValueError):
    """A schema that a vendor's part of the language can't say: one that contains itself, or points elsewhere."""


_GOOGLE_KEPT = (
    "description",
    "format",
    "maxItems",
    "minItems",
    "maximum",
    "minimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxProperties",
    "minProperties",
)
_GOOGLE_FORMATS = ("enum", "date-time", "float", "double", "int32", "int64")


def google_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema in the part of OpenAPI that Google takes: `$ref` in place, one type each, texts as choices.

    Titles, examples, defaults and `additionalProperties` are left out. Raises ``Unspeakable`` for one that contains itself.
    """
    try:
        return _Google(schema).of(schema, ())
    except RecursionError:
        raise Unspeakable("it is nested too deep") from None


class _Google:
    """One translation; ``within`` are the references that are being put in place."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = MOST_PARTS

    def of(self, schema: Any, within: tuple[str, ...]) -> dict[str, Any]:
        self._left -= 1
        if self._left < 0:
            raise Unspeakable("it is too large")
        if not isinstance(schema, Mapping):
            return {}  # `true`: anything
        if "$ref" in schema:
            return self._in_place(schema, within)
        found = {key: schema[key] for key in _GOOGLE_KEPT if key in schema}
        if found.get("format") not in _GOOGLE_FORMATS:
            found.pop("format", None)
        types, nullable = _types(schema)
        if len(types) == 1:
            found["type"] = types[0]
        nullable = self._add_variants(schema, types, found, within) or nullable
        for each in _listed(schema.get("allOf")):
            found = {**self.of(each, within), **found}
        nullable = _add_choices(schema, found) or nullable
        if isinstance(properties := schema.get("properties"), Mapping) and properties:
            found.setdefault("type", "object")
            found["properties"] = {str(name): self.of(each, within) for name, each in properties.items()}
            if needed := [name for name in _listed(schema.get("required")) if name in properties]:
                found["required"] = needed
            found["propertyOrdering"] = [str(name) for name in properties]
        if found.get("type") == "array" or "items" in schema:
            found.setdefault("type", "array")
            found["items"] = self.of(schema.get("items"), within)
        if nullable:
            found["nullable"] = True
        if "type" in found:
            found["type"] = found["type"].upper()
        return found

    def _in_place(self, schema: Mapping[str, Any], within: tuple[str, ...]) -> dict[str, Any]:
        target = pointed_at(schema["$ref"], self._root)
        if schema["$ref"] in within:
            raise Unspeakable("it contains itself")
        rest = {key: value for key, value in schema.items() if key not in ("$ref", "$defs", "definitions")}
        return self.of({**target, **rest}, (*within, schema["$ref"]))

    def _add_variants(
        self, schema: Mapping[str, Any], types: Sequence[str], found: dict[str, Any], within: tuple[str, ...]
    ) -> bool:
        """Add what may stand for each other; tell whether null is among it."""
        variants = _listed(schema.get("anyOf")) or _listed(schema.get("oneOf"))
        if not variants and len(types) > 1:
            variants = [{"type": each} for each in types]
        kept = [each for each in variants if not (isinstance(each, Mapping) and each.get("type") == "null")]
        below = [self.of(each, within) for each in kept]
        if len(below) == 1:
            found.update({**below[0], **found})
        elif below:
            found["anyOf"] = below
        return len(kept) < len(variants)


def _add_choices(schema: Mapping[str, Any], found: dict[str, Any]) -> bool:
    """Add the values to choose from, where all are texts; tell whether null is among them."""
    choices = _listed(schema.get("enum")) or ([schema["const"]] if "const" in schema else [])
    told = [each for each in choices if each is not None]
    if told and all(isinstance(each, str) for each in told):
        found.update(type="string", enum=told)
    return len(told) < len(choices)


_ANTHROPIC_KEPT = ("title", "description", "enum", "const", "type")
_ANTHROPIC_FORMATS = ("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid")


def anthropic_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema in the part of the language to which Claude's replies are held: closed objects, no bounds on numbers and lengths.

    Raises ``Unspeakable`` for one that contains itself, or takes objects with any keys.
    """
    google_schema(schema)  # finds rings; what it returns is of no use here
    return _anthropic(schema)


def _anthropic(schema: Any) -> dict[str, Any]:
    if not isinstance(schema, Mapping):
        raise Unspeakable("it takes anything")
    found: dict[str, Any] = {}
    for key in ("$defs", "definitions"):
        if isinstance(below := schema.get(key), Mapping):
            found[key] = {name: _anthropic(each) for name, each in below.items()}
    if "$ref" in schema:
        return {**found, "$ref": schema["$ref"]}
    found.update({key: schema[key] for key in _ANTHROPIC_KEPT if key in schema})
    if "enum" in found or "const" in found:
        found.pop("type", None)
        return found
    if schema.get("format") in _ANTHROPIC_FORMATS:
        found["format"] = schema["format"]
    if schema.get("minItems") in (0, 1):
        found["minItems"] = schema["minItems"]
    variants = _listed(schema.get("anyOf")) or _listed(schema.get("oneOf"))
    if variants:
        found["anyOf"] = [_anthropic(each) for each in variants]
    if schema.get("allOf"):
        found["allOf"] = [_anthropic(each) for each in _listed(schema["allOf"])]
    types, _ = _types(schema)
    if "object" in types or "properties" in schema:
        if not isinstance(properties := schema.get("properties"), Mapping) or not properties:
            raise Unspeakable("it takes objects with any keys")
        found["properties"] = {str(name): _anthropic(each) for name, each in properties.items()}
        if "required" in schema:
            found["required"] = _listed(schema["required"])
        found["additionalProperties"] = False
    if "array" in types or "items" in schema:
        found["items"] = _anthropic(schema.get("items"))
    if not any(key in found for key in ("type", "anyOf", "allOf")):
        raise Unspeakable("it takes anything")
    return found


def pointed_at(reference: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a `$ref` inside a schema points at. Raises ``Unspeakable`` for one that leads elsewhere."""
    found: Any = root
    if not isinstance(reference, str) or not reference.startswith("#"):
        raise Unspeakable("it points at another schema")
    for part in re.sub("^#/?", "", reference).split("/") if reference not in ("#", "#/") else ():
        found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
    if not isinstance(found, Mapping):
        raise Unspeakable(f"`{reference}` points at nothing")
    return found


def _types(schema: Mapping[str, Any]) -> tuple[list[str], bool]:
    """Return the types that a schema takes, null aside, and whether it takes null."""
    told = schema.get("type")
    types = [told] if isinstance(told, str) else [each for each in _listed(told) if isinstance(each, str)]
    return [each for each in types if each != "null"], "null" in types


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else []
