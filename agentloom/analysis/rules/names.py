"""Rules about the names that a file gives."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from agentloom.analysis import edits
from agentloom.analysis.document import WorkflowDocument
from agentloom.diagnostics import Edit, Finding, Fix
from agentloom.language.paths import is_name
from agentloom.syntax.nodes import Scalar
from agentloom.text import Span


def malformed_name(document: WorkflowDocument) -> Iterator[Finding]:
    """A step id, or a state key that a step writes, has characters that templates couldn't read back.

    `{state.steps.my step.output}` can't be written, so a step can't be called `my step`. The same holds for `output` and the
    other paths into the state.

    Use letters, digits, `_` and `-`. The fix for a step id changes it wherever it is named.
    """
    references: dict[str, list[Span]] | None = None
    taken: set[str] = set()
    for step in document.steps:
        name = step.facts.data.get("id")
        if not isinstance(name, str) or is_name(name):
            continue
        if not name:
            yield Finding("AL107", step.name_span, "the step's `id` is empty; give it a name")
            continue
        if references is None:
            references = _references(document)
            taken = {*document.by_id, *references}
        better = _free_name(taken, edits.legal_name(name))
        fixes: tuple[Fix, ...] = ()
        cure = "use letters, digits, `_` and `-`"
        node = step.facts.fields["id"].value
        if better:
            cure = f"write `{better}`"
            if isinstance(node, Scalar) and step.alias is None and document.by_id.get(name) is step:
                own = tuple(Edit(edit.span.shift(step.base), edit.text) for edit in edits.replace_value(node, better))
                others = tuple(Edit(span, better) for span in references.get(name, ()))
                fixes = (Fix(f"change to `{better}`" + (" everywhere" if others else ""), own + others, safe=False),)
        shown = " ".join(name.split())
        yield Finding(
            "AL107", step.name_span, f"step id `{shown}` can't be read back by templates; {cure}", fixes=fixes
        )


def _references(document: WorkflowDocument) -> dict[str, list[Span]]:
    """Return where each step is named, but for its own `id`, in document offsets."""
    found: dict[str, list[Span]] = {}
    for step in document.steps:
        for place in step.facts.occurrences:
            if place.kind == "step" and place.role == "refer":
                found.setdefault(place.name, []).append(step.place(place.span))
            elif place.kind == "state" and len(place.parts) > 1 and place.parts[0] == "steps":
                found.setdefault(str(place.parts[1]), []).append(step.place(place.part_spans[1]))
    return {name: list(dict.fromkeys(spans)) for name, spans in found.items()}


def _free_name(taken: Collection[str], name: str) -> str:
    """Return ``name``, with a number behind it where it is taken; empty when nothing legal was left."""
    if not name or not is_name(name):
        return ""
    if name not in taken:
        return name
    return next(n for i in range(2, len(taken) + 3) if (n := f"{name}_{i}") not in taken)
