"""What is said about keys and their values: type, default, bounds, choices, and the page that has more."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from agentloom.ide.json_schemas import KEYWORDS
from agentloom.ide.prose.form import Block as ProseBlock
from agentloom.ide.prose.form import Code, Inline, Items, Link, Prose, say
from agentloom.model.catalogue import STEP, Block, Field, Shape, catalogue

PAGE = "https://github.com/agentloom/agentloom/blob/main/docs/workflow-files.md"

_TYPES = {
    "string": ("text", "texts"),
    "integer": ("whole number", "whole numbers"),
    "number": ("number", "numbers"),
    "boolean": ("true or false", "truth values"),
    "object": ("mapping", "mappings"),
    "array": ("list", "lists"),
}
_HEADINGS = {"workflow": "A workflow file", "agent": "An agent file", STEP: "Keys of every step"}


def of_field(block: Block | None, field: Field) -> Prose:
    """Return what a key is for: its type and bounds, its description with the default, its choices, the page."""
    said: list[ProseBlock] = [say(Code(field.name), *_kind(field)), say(field.description)]
    if field.has_default and not field.required and "Default:" not in field.description:
        said.append(say("Default: ", value_words(field.default), "."))
    choices = [
        (Code(value), f": {text}" if text else "")
        for shape in (field.shape, *field.shape.any_of)
        for value, text in (shape.enum or {}).items()
    ]
    if len(choices) > 1:
        said.append(Items(tuple(choices)))
    if block is not None:
        said.append(say(page_of(block, field.name)))
    return tuple(said)


def of_choice(field_name: str, value: str, text: str) -> Prose:
    """Return what one of several allowed values means."""
    first = say(Code(field_name), ": ", Code(value))
    return (first, say(text)) if text else (first,)


def of_keyword(name: str) -> Prose:
    """Return what a keyword of JSON Schema says; nothing for a word that is none."""
    return (say(Code(name), f": {KEYWORDS[name][0]}"),) if name in KEYWORDS else ()


def of_block(block: Block) -> Prose:
    """Return what a mapping is for."""
    return (say(block.description), say(page_of(block)))


def page_of(block: Block, key: str | None = None) -> Link:
    """Return the link to a block's section of the page on workflow files; ``key`` is the one it is about."""
    known = catalogue()
    heading = _HEADINGS.get(block.name) or block.title
    if block.tag is not None and key in known.common:
        heading = _HEADINGS[STEP]
    anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
    return Link("Workflow files: " + heading[0].lower() + heading[1:], f"{PAGE}#{anchor}")


def type_words(shape: Shape) -> str:
    """Return what a value may be, in a few words; that null is allowed besides needs none."""
    return _words(shape, False)


def _words(shape: Shape, several: bool) -> str:
    """Return the words for one value or for several of its kind."""
    if shape.any_of:
        return " or ".join(dict.fromkeys(_words(each, several) for each in shape.any_of))
    if shape.block is not None:
        return _TYPES["object"][several]
    if shape.item is not None:
        return f"{_TYPES['array'][several]} of {_words(shape.item, True)}"
    if shape.values is not None and shape.values != Shape():
        return f"{_TYPES['object'][several]} of {_words(shape.values, True)}"
    return " or ".join(_TYPES[each][several] for each in shape.types if each != "null") or "anything"


def limits(shape: Shape, patterns: bool = False) -> Iterator[str]:
    """Yield the bounds of a value in words; with ``patterns`` also what a text has to look like."""
    if shape.minimum is not None and shape.maximum is not None:
        yield f"{shape.minimum:g} to {shape.maximum:g}"
    elif shape.minimum is not None:
        yield f"{shape.minimum:g} or more"
    elif shape.maximum is not None:
        yield f"{shape.maximum:g} at most"
    if shape.exclusive_minimum is not None:
        yield f"above {shape.exclusive_minimum:g}"
    if shape.min_items:
        yield f"at least {shape.min_items}"
    if shape.min_length:
        yield "not empty"
    if patterns and shape.pattern is not None:
        yield "a name" if shape.mark("defines") else "a state path"
    for each in (shape.item, *shape.any_of):
        if each is not None:
            yield from (f"each {limit}" if each is shape.item else limit for limit in limits(each, patterns))


def value_words(value: Any) -> Inline:
    """Return a plain value as it would be written."""
    if value in ({}, [], ""):
        return "empty"
    if isinstance(value, str):
        return Code(value)
    return Code(json.dumps(value, ensure_ascii=False))


def _kind(field: Field) -> Iterator[str]:
    yield f": {type_words(field.shape)}"
    bounds = ", ".join(limits(field.shape))
    if bounds:
        yield f", {bounds}"
    if field.required:
        yield ", needed"
