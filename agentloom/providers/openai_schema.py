"""JSON Schema as OpenAI's strict mode takes it: every object closed, every property required.

After https://platform.openai.com/docs/guides/structured-outputs: `default` isn't allowed there, a `$ref` stands alone, and an `allOf` of
one is written out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_SCHEMAS = ("items", "additionalItems", "contains", "not", "if", "then", "else", "propertyNames")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED = ("properties", "$defs", "definitions", "patternProperties")
_MOST = 50
"""How many references are followed, one inside the other."""


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a schema in the strict form."""
    found: dict[str, Any] = _strict(schema, schema, 0)
    return found


def _strict(schema: Any, root: Mapping[str, Any], followed: int) -> Any:
    if not isinstance(schema, Mapping):
        return schema
    reference = schema.get("$ref")
    if isinstance(reference, str) and len(schema) > 1 and followed < _MOST:
        target = _target(reference, root)
        if target is not None:
            beside = {key: value for key, value in schema.items() if key != "$ref"}
            return _strict({**target, **beside}, root, followed + 1)
    alone = schema.get("allOf")
    if isinstance(alone, list) and len(alone) == 1 and isinstance(alone[0], Mapping) and followed < _MOST:
        beside = {key: value for key, value in schema.items() if key != "allOf"}
        return _strict({**alone[0], **beside}, root, followed + 1)
    found: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "default":
            continue
        if key in _NAMED and isinstance(value, Mapping):
            found[key] = {name: _strict(item, root, followed) for name, item in value.items()}
        elif key in _LISTS and isinstance(value, list):
            found[key] = [_strict(item, root, followed) for item in value]
        else:
            found[key] = _strict(value, root, followed) if key in _SCHEMAS else value
    if found.get("type") == "object" or "properties" in found:
        properties = found.setdefault("properties", {})
        found["additionalProperties"] = False
        if isinstance(properties, Mapping):
            found["required"] = list(properties)
    return found


def _target(reference: str, root: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return what a reference inside the same schema (`#/$defs/Item`) names."""
    if not reference.startswith("#/"):
        return None
    found: Any = root
    for part in reference[2:].split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, Mapping) or name not in found:
            return None
        found = found[name]
    return found if isinstance(found, Mapping) else None
