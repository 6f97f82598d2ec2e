"""From the pydantic classes to the catalogue: every block, field, bound, default and mark as plain data.

Reads annotations, not pydantic's JSON Schema: that way the marks come along, and nothing depends on how a pydantic version
words its schema. That the result means the same as the classes is held by a test over thousands of documents.
"""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, Strict
from pydantic.fields import FieldInfo

from agentloom.model.agent import AgentDefinition, AgentTool, Constraints, LoopPolicy, Memory
from agentloom.model.base import Choices, NumberAsText, OrNothing
from agentloom.model.config import Config, Retry, Sandbox, StateKey
from agentloom.model.llm import Attachment, ResponseSchema, Thinking, ToolChoice, ToolDefinition
from agentloom.model.marks import Mark
from agentloom.model.steps import Condition, Notify, StepBase
from agentloom.model.workflow import STEP_CLASSES, SubworkflowStep, Workflow

ShapeData = dict[str, Any]

# Block name, title, class. Step blocks follow, named `<type>_step`.
BLOCKS: tuple[tuple[str, str, type[BaseModel]], ...] = (
    ("workflow", "agentloom workflow", Workflow),
    ("agent", "agentloom agent", AgentDefinition),
    ("config", "config", Config),
    ("sandbox", "sandbox", Sandbox),
    ("state_key", "state key", StateKey),
    ("retry", "retry", Retry),
    ("attachment", "attachment", Attachment),
    ("thinking", "thinking", Thinking),
    ("tool_definition", "tool definition", ToolDefinition),
    ("tool_choice", "tool choice", ToolChoice),
    ("response_schema", "response schema", ResponseSchema),
    ("condition", "condition", Condition),
    ("notify", "webhook", Notify),
    ("agent_tool", "agent as a tool", AgentTool),
    ("memory", "memory", Memory),
    ("loop_policy", "loop policy", LoopPolicy),
    ("constraints", "constraints", Constraints),
)

_BOUNDS = (
    ("ge", "minimum"),
    ("le", "maximum"),
    ("gt", "exclusive_minimum"),
    ("min_length", "min_length"),
    ("pattern", "pattern"),
)
_SCALARS: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", types.NoneType: "null"}


def tag_of(step: type[StepBase]) -> str:
    """Return the `type` value of a step class."""
    (tag,) = get_args(step.model_fields["type"].annotation)
    return str(tag)


def catalogue_data() -> dict[str, Any]:
    """Return the catalogue in the form of its JSON file, see ``catalogue.catalogue()``."""
    SubworkflowStep.model_rebuild()
    steps = {tag_of(cls): f"{tag_of(cls)}_step" for cls in STEP_CLASSES}
    table = [*BLOCKS, *((steps[tag_of(cls)], f"{tag_of(cls)} step", cls) for cls in STEP_CLASSES)]
    names = {cls: name for name, _, cls in table}
    if len(names) != len(table) or len({name for name, _, _ in table}) != len(table):
        raise ValueError("a block name or class stands twice in the table")
    choices = {tag_of(cls): _first_paragraph(cls) for cls in STEP_CLASSES}
    blocks: dict[str, Any] = {}
    for name, title, cls in table:
        fields = {info.alias or key: _field(key, info, names) for key, info in cls.model_fields.items()}
        block: dict[str, Any] = {"title": title, "description": _first_paragraph(cls), "fields": fields}
        if issubclass(cls, StepBase):
            block["tag"] = tag_of(cls)
            fields["type"]["description"] = StepBase.model_fields["type"].description
            fields["type"]["shape"]["enum"] = {block["tag"]: choices[block["tag"]]}
        blocks[name] = block
    return {"common": list(StepBase.model_fields), "steps": steps, "blocks": blocks}


def _first_paragraph(cls: type[BaseModel]) -> str:
    return " ".join((cls.__doc__ or "").split("\n\n")[0].split())


def _field(key: str, info: FieldInfo, names: dict[type[BaseModel], str]) -> dict[str, Any]:
    data: dict[str, Any] = {
        "description": info.description or "",
        "shape": _decorate(_shape(info.annotation, names), info.metadata),
    }
    if info.is_required():
        data["required"] = True
    elif info.default_factory is not None:
        # A factory makes an empty block or mapping.
        data["default"] = {}
    else:
        data["default"] = list(info.default) if isinstance(info.default, tuple) else info.default
    if info.examples:
        data["examples"] = info.examples
    return data


def _shape(annotation: Any, names: dict[type[BaseModel], str]) -> ShapeData:
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _decorate(_shape(args[0], names), _unfold(args[1:]))
    if annotation in _SCALARS:
        return {"types": [_SCALARS[annotation]]}
    if annotation is Any:
        return {}
    if origin is Literal:
        return {"types": ["string"], "enum": dict.fromkeys(args, "")}
    if origin in (Union, types.UnionType):
        return _union([_shape(a, names) for a in args])
    if origin is tuple and args[1:] == (Ellipsis,):
        return {"types": ["array"], "item": _shape(args[0], names)}
    if origin is dict and args[0] is str:
        return {"types": ["object"], "values": _shape(args[1], names)}
    if isinstance(annotation, type) and issubclass(annotation, StepBase):
        return {"types": ["object"], "block": "step"}
    if isinstance(annotation, type) and annotation in names:
        return {"types": ["object"], "block": names[annotation]}
    raise TypeError(f"the catalogue has no shape for {annotation!r}")


def _union(shapes: list[ShapeData]) -> ShapeData:
    null = {"types": ["null"]}
    members = [s for s in shapes if s != null]
    if all(s.get("block") == "step" for s in members):
        return members[0]
    if len(members) == 1:
        one = members[0]
        return {**one, "types": [*one["types"], "null"]} if null in shapes else one
    if null in shapes:
        raise TypeError("a union of several shapes can't be null as well; give it a default of its own")
    return {"any_of": members}


def _unfold(metadata: Iterable[Any]) -> list[Any]:
    """Return metadata with pydantic's ``Field(...)`` replaced by what it holds."""
    found: list[Any] = []
    for item in metadata:
        found.extend(item.metadata if isinstance(item, FieldInfo) else [item])
    return found


def _decorate(shape: ShapeData, metadata: Iterable[Any]) -> ShapeData:
    shape = dict(shape)
    for item in metadata:
        match item:
            case Mark():
                shape["marks"] = [*shape.get("marks", ()), [part for part in item if part]]
            case OrNothing():
                shape["types"] = [*shape["types"], "null"]
            case NumberAsText():
                shape["types"] = [*shape["types"], "number"]
            case Choices():
                texts = dict(item.texts)
                if set(texts) != set(shape["enum"]):
                    raise ValueError(f"the texts {sorted(texts)} don't belong to the choices {sorted(shape['enum'])}")
                shape["enum"] = texts
            case Strict() | FieldInfo():
                pass
            case _:
                shape.update(_bound(item, shape))
    return shape


def _bound(item: Any, shape: ShapeData) -> ShapeData:
    """Return what a constraint (``ge``, ``min_length``, ``pattern`` …) adds to a shape."""
    for attribute, keyword in _BOUNDS:
        value = getattr(item, attribute, None)
        if value is not None:
            return {"min_items" if attribute == "min_length" and "array" in shape["types"] else keyword: value}
    raise TypeError(f"the catalogue has no place for {item!r}")
