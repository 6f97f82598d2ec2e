"""The published JSON Schemas (draft-07), made from the catalogue in the shape that serves editors best.

A step is an open base plus one flat ``if type == X then $ref X`` per type, each X closed. Why exactly so: a ``oneOf`` blames the
wrong branch as soon as two keys of another type are there; a closed base would refuse every step's own keys; common keys have
their schema once, in the base, and stand as ``true`` in the branches, or hover would show them twice. The ``if`` asks for an
object with a ``type``, or it would hold for an empty list item. Snippets stand in the ``else``, so that they go once ``type`` is
written. No ``default``, and no titles but on definitions: editors would insert the one and repeat the other in every hover.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agentloom.model.catalogue import STEP, Block, Catalogue, Field, Shape
from agentloom.model.snippets import STEP_SNIPPETS

Schema = dict[str, Any]

DRAFT = "http://json-schema.org/draft-07/schema#"
_HAS_TYPE: Schema = {"type": "object", "required": ["type"]}


def document_schema(catalogue: Catalogue, top: str, id_: str) -> Schema:
    """Return the schema of a file kind whose top block is ``top``, with the definitions that it reaches."""
    definitions: dict[str, Schema] = {}
    nullable = _nullable_blocks(catalogue)
    root = _block(catalogue, catalogue.blocks[top])
    todo = sorted(_references(root))
    while todo:
        name = todo.pop()
        if name in definitions:
            continue
        if name == STEP:
            definitions[name] = _step(catalogue)
        else:
            block = catalogue.blocks[name]
            definitions[name] = _step_branch(catalogue, block) if block.tag else _block(catalogue, block)
            if name in nullable:
                definitions[name]["type"] = ["object", "null"]
        todo.extend(sorted(_references(definitions[name])))
    order = [STEP, *catalogue.steps.values(), *catalogue.blocks]
    ordered = {name: definitions[name] for name in order if name in definitions}
    return {"$schema": DRAFT, "$id": id_, **root, "definitions": ordered}


def _block(catalogue: Catalogue, block: Block) -> Schema:
    fields = sorted(block.fields.values(), key=lambda f: not f.required)
    return {
        "title": block.title,
        **_texts(block.description),
        "type": "object",
        "additionalProperties": False,
        **_required(fields),
        "properties": {f.name: _field(catalogue, f) for f in fields},
    }


def _step_branch(catalogue: Catalogue, block: Block) -> Schema:
    own = sorted((f for f in block.fields.values() if f.name not in catalogue.common), key=lambda f: not f.required)
    return {
        "title": block.title,
        **_texts(block.description),
        "type": "object",
        "additionalProperties": False,
        **_required(list(block.fields.values())),
        "properties": {**{f.name: _field(catalogue, f) for f in own}, **dict.fromkeys(catalogue.common, True)},
    }


def _step(catalogue: Catalogue) -> Schema:
    blocks = {tag: catalogue.blocks[name] for tag, name in catalogue.steps.items()}
    first = next(iter(blocks.values()))
    common = {name: _field(catalogue, first.fields[name]) for name in catalogue.common}
    docs = [block.description for block in blocks.values()]
    common["type"] = {
        "type": "string",
        **_texts(first.fields["type"].description),
        "enum": list(blocks),
        "enumDescriptions": docs,
        "markdownEnumDescriptions": docs,
    }
    snippets = [
        {"label": f"{tag} step", "description": block.description, "body": STEP_SNIPPETS[tag]}
        for tag, block in blocks.items()
    ]
    return {
        "title": STEP,
        "type": "object",
        "required": [name for name in catalogue.common if first.fields[name].required],
        "properties": common,
        "if": _HAS_TYPE,
        "else": {"title": STEP, "type": "object", "defaultSnippets": snippets},
        "allOf": [
            {"if": {**_HAS_TYPE, "properties": {"type": {"const": tag}}}, "then": _ref(name)}
            for tag, name in catalogue.steps.items()
        ],
    }


def _required(fields: list[Field]) -> Schema:
    names = [f.name for f in fields if f.required]
    return {"required": names} if names else {}


def _texts(description: str) -> Schema:
    return {"description": description, "markdownDescription": description}


def _field(catalogue: Catalogue, field: Field) -> Schema:
    schema = {**_shape(catalogue, field.shape), **_texts(field.description)}
    examples = [e for e in field.examples if isinstance(e, str | int | float)]
    if not examples and _worth_inserting(field.default):
        examples = [field.default]
    if examples and field.shape.enum is None and not field.shape.any_of:
        schema["examples"] = examples
    return schema


def _worth_inserting(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool) and value != ""


def _shape(catalogue: Catalogue, shape: Shape) -> Schema:
    if shape.any_of:
        return _alternatives(catalogue, shape)
    if shape.block:
        return _ref(shape.block)
    schema: Schema = {}
    if len(set(shape.types) - {"null"}) > 1:
        # Ajv's strict mode takes a list of types only if it is one type and null.
        schema["anyOf"] = [{"type": name} for name in shape.types]
    elif shape.types:
        schema["type"] = shape.types[0] if len(shape.types) == 1 else list(shape.types)
    if shape.enum is not None:
        texts = list(shape.enum.values())
        schema["enum"] = list(shape.enum)
        if "null" in shape.types:
            schema["enum"].append(None)
            texts.append("The same as leaving the key out.")
        schema["enumDescriptions"] = schema["markdownEnumDescriptions"] = texts
    for keyword, value in (
        ("minimum", shape.minimum),
        ("maximum", shape.maximum),
        ("exclusiveMinimum", shape.exclusive_minimum),
        ("minItems", shape.min_items),
        ("minLength", shape.min_length),
        ("pattern", shape.pattern),
    ):
        if value is not None:
            schema[keyword] = value
    if shape.item is not None:
        schema["items"] = _shape(catalogue, shape.item)
    if shape.values is not None and shape.values != Shape():
        schema["additionalProperties"] = _shape(catalogue, shape.values)
    return schema


def _alternatives(catalogue: Catalogue, shape: Shape) -> Schema:
    """Return the schema of a shape with alternatives, as ``Catalogue.alternative`` picks them.

    ``if`` and not ``anyOf``: editors would blame the alternative that they think is nearest, mostly the wrong one.
    """
    blocks = [catalogue.blocks[s.block] for s in shape.any_of if s.block]
    others = [s for s in shape.any_of if not s.block]
    if len(others) > 1:
        raise ValueError("alternatives may hold mappings and one thing that is none")
    mapping = _ref(blocks[0].name)
    offered: Schema = {}
    for later in blocks[1:]:
        # Keys that decide have their schema in the base, so that editors offer them, and stand as `true` in the branch.
        deciding = sorted(catalogue.required(later.name))
        offered |= {key: _field(catalogue, later.fields[key]) for key in deciding}
        branch = _block(catalogue, later)
        branch["properties"] |= dict.fromkeys(deciding, True)
        named = {"type": "object", "required": deciding, "properties": dict.fromkeys(deciding, True)}
        mapping = {"if": named, "then": branch, "else": mapping}
    if offered:
        mapping = {"type": "object", "properties": offered, **mapping}
    if not others:
        return mapping
    # An open object as second alternative: what it holds is judged by `then` alone, and told once.
    either = [_shape(catalogue, others[0]), {"type": "object"}]
    return {"anyOf": either, "if": {"type": "object"}, "then": mapping}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/definitions/{name}"}


def _references(schema: Schema) -> set[str]:
    return {str(node["$ref"]).rpartition("/")[2] for node in subschemas(schema) if "$ref" in node}


def subschemas(schema: Schema) -> Iterator[Schema]:
    """Yield a schema and every schema in it. Knows where schemas stand: a router has a *key* named ``default``."""
    yield schema
    for keyword in ("properties", "definitions"):
        for child in schema.get(keyword, {}).values():
            if isinstance(child, dict):
                yield from subschemas(child)
    for keyword in ("items", "additionalProperties", "if", "then", "else"):
        if isinstance(schema.get(keyword), dict):
            yield from subschemas(schema[keyword])
    for keyword in ("anyOf", "allOf", "oneOf"):
        for child in schema.get(keyword, ()):
            yield from subschemas(child)


def _nullable_blocks(catalogue: Catalogue) -> frozenset[str]:
    """Return the blocks that may be null wherever they stand.

    Raises ``ValueError`` for a block that is nullable in one place only: a definition has one type, so it would need two.
    """
    uses: dict[str, set[bool]] = {}
    for block in catalogue.blocks.values():
        for field in block.fields.values():
            for shape in _nested(field.shape):
                if shape.block:
                    uses.setdefault(shape.block, set()).add("null" in shape.types)
    mixed = [name for name, seen in uses.items() if len(seen) > 1]
    if mixed:
        raise ValueError(f"nullable in one place and not in another: {', '.join(mixed)}")
    return frozenset(name for name, seen in uses.items() if True in seen)


def _nested(shape: Shape) -> Iterator[Shape]:
    yield shape
    for inner in (shape.item, shape.values, *shape.any_of):
        if inner is not None:
            yield from _nested(inner)
