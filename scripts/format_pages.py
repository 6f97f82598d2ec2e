"""Makes `docs/workflow-files.md`: every block and key of workflow and agent files as tables, from the catalogue.

The page above the marker is written by hand; what stands below it comes from the model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from agentloom.ide.prose.fields import limits
from agentloom.model.catalogue import STEP, Block, Catalogue, Field, Shape, catalogue

PAGE = Path(__file__).resolve().parent.parent / "docs" / "workflow-files.md"
MARKER = "<!-- Made by `make update` from the model; changes below are lost. -->\n"

TYPES = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "object": "mapping",
    "array": "list",
}
TITLES = {"workflow": "A workflow file", "agent": "An agent file"}
COMMON = "Keys of every step"


def generated_part(known: Catalogue) -> str:
    """Return what stands below the marker: the file's own blocks, the steps, the blocks in them, and agents."""
    steps = list(known.steps.values())
    top = ["workflow", "config", "sandbox", "state_key"]
    agents = ["agent", "agent_tool", "memory", "loop_policy", "constraints"]
    inner = [name for name in known.blocks if name not in (*top, *steps, *agents)]
    first = known.blocks[steps[0]]
    common = Block(
        "common", COMMON, "What a step of any type may say.", {key: first.fields[key] for key in known.common}
    )
    parts = [_section(known, known.blocks[name]) for name in top]
    parts.append(_section(known, common))
    for name in steps:
        block = known.blocks[name]
        own = {key: field for key, field in block.fields.items() if key not in known.common}
        parts.append(_section(known, block._replace(fields=own)))
    parts.extend(_section(known, known.blocks[name]) for name in (*inner, *agents))
    return "\n".join(parts)


def page() -> str:
    """Return the whole page: what was written by hand, and the generated part."""
    written, _, _ = PAGE.read_text(encoding="utf-8").partition(MARKER)
    return written + MARKER + "\n" + generated_part(catalogue())


def title(block: Block) -> str:
    """Return the heading of a block's section."""
    return TITLES.get(block.name, block.title)


def _section(known: Catalogue, block: Block) -> str:
    lines = [f"## {title(block)}", "", block.description, ""]
    if block.tag is not None:
        lines += [f"With `type: {block.tag}`, besides the [keys of every step](#{_anchor(COMMON)}):", ""]
    if block.fields:
        lines += ["| key | type | default | bounds | description |", "|---|---|---|---|---|"]
        lines += [_row(known, field, block) for field in block.fields.values()]
        lines.append("")
    return "\n".join(lines)


def _row(known: Catalogue, field: Field, block: Block) -> str:
    text, default = field.description, ""
    said = re.search(r"\s*Default: (.+)\.$", text)
    if said is not None:
        text, default = text[: said.start()], said[1]
    if field.required:
        default = "**needed**"
    elif default == field.default:
        default = f"`{default}`"
    elif not default and field.default is not None:
        default = "empty" if field.default in ({}, [], "") else f"`{field.default}`"
    wanted = "the step's type" if block.name == "common" and field.name == "type" else _words(known, field.shape)
    cells = [
        f"`{field.name}`",
        wanted,
        default or "none",
        _bounds(field.shape),
        " ".join([text, *_choices(field.shape)]),
    ]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _words(known: Catalogue, shape: Shape) -> str:
    """Return what a value may be; that null is allowed besides (an empty key) needs no word."""
    if shape.any_of:
        return " or ".join(_words(known, each) for each in shape.any_of)
    if shape.enum:
        return " or ".join(f"`{value}`" for value in shape.enum)
    if shape.block is not None:
        heading = COMMON if shape.block == STEP else title(known.blocks[shape.block])
        shown = "step" if shape.block == STEP else heading[0].lower() + heading[1:]
        return f"[{shown}](#{_anchor(heading)})"
    if shape.item is not None:
        return f"list: {_words(known, shape.item)}"
    if shape.values is not None:
        return f"mapping: {_words(known, shape.values)}"
    return " or ".join(TYPES[each] for each in shape.types if each != "null") or "anything"


def _bounds(shape: Shape) -> str:
    return ", ".join(limits(shape, patterns=True))


def _choices(shape: Shape) -> Iterator[str]:
    for each in (shape, *shape.any_of):
        for value, text in (each.enum or {}).items():
            if text and len(each.enum or {}) > 1:
                yield f"`{value}`: {text}"


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
