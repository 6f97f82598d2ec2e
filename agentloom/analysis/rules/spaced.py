"""Names with blanks around them, as templates of other tools take them: `{ state.x }`."""

from __future__ import annotations

from agentloom.analysis import edits
from agentloom.analysis.rules.reading import Doubtful
from agentloom.diagnostics import Edit, Finding, Fix
from agentloom.language.paths import is_name
from agentloom.text import Span


def spaced(one: Doubtful, depth: int) -> Finding | None:
    """Return the finding for a name in a template that begins or ends with blanks; None for other names."""
    place, name = one.read.occurrence, one.parts[depth]
    if one.asks or not isinstance(name, str) or name == name.strip() or depth >= len(place.parts_inside):
        return None
    span = place.part_spans[depth].shift(one.read.base)
    raw = one.flow.document.source.text[slice(*span)]
    span = Span(span.start + len(raw) - len(raw.lstrip()), span.end) if raw.strip() else span
    made = [
        Edit(edit.span.shift(one.read.base), edit.text)
        for part, inside in zip(one.parts, place.parts_inside, strict=False)
        if isinstance(part, str) and part != part.strip() and is_name(part.strip())
        for edit in edits.replace_inside(place.node, *inside, part.strip())
    ]
    fixes = (Fix("remove the blanks", tuple(made), safe=False),) if made else ()
    return Finding(
        "AL401", span, f"blanks are part of a name here, and nothing sets `{name}`; remove them", fixes=fixes
    )
