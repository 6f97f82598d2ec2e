"""What belongs to a place in an open mapping: the field that holds it, and the tool whose arguments are written there."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from agentloom.analysis.context import ToolLike
from agentloom.analysis.document import Facts, WorkflowDocument
from agentloom.ide.hits import Hit, block_of, item_shape
from agentloom.model.catalogue import Block, Field, Shape, catalogue
from agentloom.syntax.nodes import Mapping, Path
from agentloom.syntax.values import follow


class Owner(NamedTuple):
    """The innermost field around a place that the catalogue knows, and the path from its value to the place."""

    field: Field
    below: Path


def owner_of(hit: Hit) -> Owner | None:
    """Return the field that holds what was hit."""
    block: Block | None = hit.facts.block
    shape: Shape | None = None
    found: Owner | None = None
    for at, part in enumerate(hit.path):
        if isinstance(part, int):
            shape = item_shape(shape)
            block = None
        else:
            field = block.fields.get(part) if block is not None else None
            if field is not None:
                found = Owner(field, hit.path[at + 1 :])
                shape = field.shape
            else:
                shape = shape.values if shape is not None and block is None else None
        if shape is None:
            return found
        node = follow(hit.chain[at + 1])
        block = block_of(shape, node) if isinstance(node, Mapping) else None
    return found


def tool_of(document: WorkflowDocument, facts: Facts) -> ToolLike | None:
    """Return the tool that a step runs, if it is known."""
    name = text_of(facts.block, facts.data, "tool")
    return document.context.tools.get(name) if name is not None else None


def text_of(block: Block | None, data: Any, kind: str) -> str | None:
    """Return the name of a thing of some kind that a mapping's own fields give."""
    for key in _fields_of(block.name, kind) if block is not None and isinstance(data, dict) else ():
        if isinstance(data.get(key), str):
            return str(data[key])
    return None


@cache
def _fields_of(block: str, kind: str) -> tuple[str, ...]:
    """Return the fields of a block that name a thing of some kind."""
    fields = catalogue().blocks[block].fields
    return tuple(key for key, field in fields.items() if (mark := field.shape.mark("ref")) and mark.of == kind)
