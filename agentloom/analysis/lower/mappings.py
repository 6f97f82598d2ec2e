"""The facts of a step, and of a document's head."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from agentloom.analysis.document import Dependency, Facts, Located, word_span
from agentloom.analysis.lower import faults
from agentloom.analysis.lower.keys import Owner, check_keys, unknown
from agentloom.analysis.lower.kinds import kind_of
from agentloom.analysis.lower.lowering import At, Lowering
from agentloom.analysis.symbols import occurrences
from agentloom.language.paths import is_name
from agentloom.model.catalogue import Block, Field, Shape, catalogue
from agentloom.similar import closest
from agentloom.syntax.nodes import Alias, Mapping, Scalar, Sequence
from agentloom.syntax.tree import Unit
from agentloom.syntax.values import plain_value
from agentloom.text import Span

_TOP = At("", "")


def lower_head(node: Mapping, unit: Unit, block_name: str, skip: frozenset[str]) -> Facts:
    """Return the facts of a document's top mapping; ``skip`` names the keys whose values are read elsewhere (`steps`)."""
    low = Lowering(unit)
    fields = low.fields(node)
    block = catalogue().blocks[block_name]
    findings, fields = check_keys(Owner(node, unit, block, fields))
    low.findings.extend(findings)
    return _facts(low, node, block, fields, low.values(fields, block, _TOP, skip))


def empty_head(unit: Unit) -> Facts:
    """Return the facts of a document that has no mapping at the top."""
    node = Mapping(Span(0, 0), ())
    return Facts(node=node, unit=unit, block=None, fields={}, data={}, findings=(), leaves=(), occurrences=())


def lower_step(node: Mapping, unit: Unit) -> Facts:
    """Return the facts of one step."""
    low = Lowering(unit)
    fields = _with_type(low, node, low.fields(node))
    type_at = fields.get("type")
    type_value = plain_value(type_at.value) if type_at else None
    block = catalogue().step(type_value) if isinstance(type_value, str) else None
    findings, fields = check_keys(Owner(node, unit, block or _untyped(fields), fields))
    low.findings.extend(findings)
    if block is not None:
        return _facts(low, node, block, fields, low.values(fields, block, _TOP))
    return _facts(low, node, None, fields, _common_values(low, fields))


def _with_type(low: Lowering, node: Mapping, fields: dict[str, Located]) -> dict[str, Located]:
    """Return a step's fields, with a key that was meant to be `type` under that name: the type decides about all others."""
    if "type" in fields:
        return fields
    general = _any_step()
    meant = next((n for n in fields if n not in general.fields and closest(n, ("type",))), None)
    if meant is None:
        return fields
    low.findings.append(unknown(Owner(node, low.unit, general, fields), meant, fields[meant], "type"))
    return {"type" if name == meant else name: located for name, located in fields.items()}


def _untyped(fields: dict[str, Located]) -> Block:
    """Return what holds for every type: common keys, and keys that no type has."""
    general = _any_step()
    likely = general.fields["type"]._replace(required=True, examples=(_likely_types(fields)[0],))
    return general._replace(fields={**general.fields, "type": likely})


def _common_values(low: Lowering, fields: dict[str, Located]) -> dict[str, Any]:
    """Check the values of a step whose type isn't known, as far as that can be done; return them all."""
    judged = set(catalogue().common)
    type_at = fields.get("type")
    target = type_at.value if type_at is not None else None
    target = target.target if isinstance(target, Alias) else target
    if type_at is not None and isinstance(target, Scalar) and kind_of(target) != "null":
        judged.discard("type")
        found = faults.no_choice(target, catalogue().steps, "type", False, "AL103", _likely_types(fields))
        here = isinstance(type_at.value, Scalar)
        low.findings.append(found if here else found._replace(span=type_at.value.span, fixes=()))
    return low.values(fields, _any_step(), _TOP, [name for name in fields if name not in judged])


@lru_cache(maxsize=1)
def _any_step() -> Block:
    """Return a block with the keys of all types of steps, of which only `id` is needed."""
    known = catalogue()
    fields: dict[str, Field] = {}
    for name in known.steps.values():
        for key, described in known.blocks[name].fields.items():
            fields.setdefault(key, described if key == "id" else described._replace(required=False))
    type_ = fields["type"]._replace(shape=Shape(types=("string",)))
    return Block("step", "a step", "", {**fields, "type": type_})


def _likely_types(fields: dict[str, Located]) -> list[str]:
    """Return the types that have most of a step's keys."""
    known = catalogue()
    counts = {t: sum(name in known.blocks[block].fields for name in fields) for t, block in known.steps.items()}
    return [type_ for type_, count in counts.items() if count == max(counts.values())]


def _facts(
    low: Lowering, node: Mapping, block: Block | None, fields: dict[str, Located], data: dict[str, Any]
) -> Facts:
    named = tuple(occurrences(low.leaves))
    return Facts(
        node=node,
        unit=low.unit,
        block=block,
        fields=fields,
        data=data,
        findings=tuple(low.findings),
        leaves=tuple(low.leaves),
        occurrences=named,
        expressions=tuple([leaf for leaf in low.leaves if leaf.shape.mark("expression")]),
        dependencies=tuple(_dependencies(fields.get("depends_on"), data.get("depends_on"))),
        writes=tuple([o for o in named if o.role == "write" and o.kind == "state" and o.parts]),
        files=tuple([o for o in named if o.kind == "file"]),
        reads=tuple([o for o in named if o.role == "read" and o.kind == "state" and o.parts]),
    )


def _dependencies(located: Located | None, value: Any) -> Iterator[Dependency]:
    """Yield the texts in `depends_on`; other types are left out, a lone name counts as a list of it."""
    if located is None:
        return
    if isinstance(value, str):
        if is_name(value):
            yield Dependency(value, word_span(located.value), 0)
        return
    node = located.value.target if isinstance(located.value, Alias) else located.value
    if isinstance(node, Sequence) and isinstance(value, list):
        for index, (item, name) in enumerate(zip(node.items, value, strict=False)):
            if isinstance(name, str):
                yield Dependency(name, word_span(item), index)
