"""Which keys a value that is there already would fit: for keys that get another name."""

from __future__ import annotations

from collections.abc import Callable

from agentloom.analysis.document import WorkflowDocument
from agentloom.analysis.lower.kinds import fits, kind_of
from agentloom.analysis.lower.lowering import At, Lowering
from agentloom.analysis.symbols import Leaf
from agentloom.ide.completion.where import Where
from agentloom.ide.hits import hit_at
from agentloom.model.catalogue import Field
from agentloom.syntax.nodes import Scalar

LARGE = 4_000
"""Code points of a value above which only its kind is looked at."""


def accepts(where: Where) -> Callable[[Field], bool]:
    """Return what tells whether a field takes the value of the key at the cursor; every field takes one that can't be read."""
    hit = hit_at(where.document, where.offset) if where.colon else None
    if hit is None or not hit.is_key or hit.entry is None:
        return lambda field: True
    value, unit = hit.entry.value, hit.facts.unit
    if isinstance(value, Scalar) and not value.raw:
        return lambda field: True
    if value.span.end - value.span.start > LARGE:
        kind = kind_of(value)
        return lambda field: any(fits(kind, shape) for shape in field.shape.any_of or (field.shape,))

    own = hit.step.id if hit.step is not None else None

    def takes(field: Field) -> bool:
        lowering = Lowering(unit)
        lowering.value(value, field.shape, At(field.name, field.name))
        return not lowering.findings and all(_is_known(leaf, hit.document, own) for leaf in lowering.leaves)

    return takes


def _is_known(leaf: Leaf, document: WorkflowDocument, own: str | None) -> bool:
    """Tell whether a text that would name a step names another one that is there."""
    mark = leaf.shape.mark("ref")
    return mark is None or mark.of != "step" or (leaf.value != own and leaf.value in document.by_id)
