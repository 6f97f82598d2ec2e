"""JSON Schema (draft 2020-12) as far as editors speak of it: keywords, what stands behind each, types and formats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from agentloom.syntax.nodes import Path

Position = Literal["schema", "names", "list", "data"]

KEYWORDS: Mapping[str, tuple[str, Position]] = {
    "type": ("What kind of value it is.", "data"),
    "properties": ("The keys of a mapping, each with its schema.", "names"),
    "required": ("The keys that must be there.", "data"),
    "additionalProperties": ("What other keys may hold; false: there may be none.", "schema"),
    "items": ("What each item of a list is.", "schema"),
    "enum": ("The values that are allowed.", "data"),
    "const": ("The only value that is allowed.", "data"),
    "description": ("What the value is for; models read this.", "data"),
    "title": ("A short name.", "data"),
    "default": ("The value when none is given.", "data"),
    "examples": ("Values that show what is meant.", "data"),
    "minimum": ("The smallest number.", "data"),
    "maximum": ("The largest number.", "data"),
    "exclusiveMinimum": ("The number must be above this.", "data"),
    "exclusiveMaximum": ("The number must be below this.", "data"),
    "multipleOf": ("The number must be a multiple of this.", "data"),
    "minLength": ("The least characters of a text.", "data"),
    "maxLength": ("The most characters of a text.", "data"),
    "pattern": ("A regular expression that a text must match somewhere.", "data"),
    "format": ("What a text stands for, such as `date` or `email`.", "data"),
    "minItems": ("The least items of a list.", "data"),
    "maxItems": ("The most items of a list.", "data"),
    "uniqueItems": ("Whether all items must differ.", "data"),
    "prefixItems": ("What the first items of a list are, one by one.", "list"),
    "contains": ("What at least one item must be.", "schema"),
    "minProperties": ("The least keys of a mapping.", "data"),
    "maxProperties": ("The most keys of a mapping.", "data"),
    "patternProperties": ("Schemas for keys that match a regular expression.", "names"),
    "propertyNames": ("What each key must be.", "schema"),
    "anyOf": ("At least one of these schemas must fit.", "list"),
    "oneOf": ("Exactly one of these schemas must fit.", "list"),
    "allOf": ("All of these schemas must fit.", "list"),
    "not": ("This schema must not fit.", "schema"),
    "if": ("Decides between `then` and `else`.", "schema"),
    "then": ("Must fit where `if` does.", "schema"),
    "else": ("Must fit where `if` doesn't.", "schema"),
    "$ref": ("Another schema of this document, such as `#/$defs/name`.", "data"),
    "$defs": ("Schemas to be referred to.", "names"),
}
"""The keywords that are offered, the usual ones first, and what stands behind each."""

TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")
FORMATS = (
    "date-time", "date", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uri", "uri-reference", "uuid", "regex",
    "json-pointer",
)  # fmt: skip


def position_of(path: Path) -> Position:
    """Return what stands at a path inside a schema: a schema, names with a schema each, a list of schemas, or plain data."""
    now: Position = "schema"
    for part in path:
        if now == "schema":
            now = KEYWORDS[part][1] if isinstance(part, str) and part in KEYWORDS else "data"
        elif now in ("names", "list"):
            now = "schema"
        else:
            return "data"
    return now
