"""Names of steps where one is meant: in `depends_on`, and as the target of a router."""

from __future__ import annotations

from collections.abc import Iterator

from agentloom.analysis.document import Step, WorkflowDocument
from agentloom.diagnostics import Edit
from agentloom.ide.completion.items import Item, before, spell
from agentloom.ide.completion.keys import comma
from agentloom.ide.completion.known_names import nearest
from agentloom.ide.completion.where import Where
from agentloom.ide.prose.steps import layer_words
from agentloom.ide.results import Project
from agentloom.model.catalogue import Shape
from agentloom.syntax.quoting import quote

MOST = 150
"""Names offered at once: the nearest ones, of those that fit what is typed."""


def applies(where: Where) -> bool:
    """Tell whether a step's name is meant at a place."""
    return where.kind in ("value", "item") and _shape(where) is not None and where.style not in ("literal", "folded")


def _shape(where: Where) -> Shape | None:
    """Return the shape of the one name that is meant: the value's, or that of its list's items."""
    shape = where.shape
    if shape is None:
        return None
    if where.kind == "value" and shape.item is not None:
        shape = shape.item
    mark = shape.mark("ref")
    return shape if mark is not None and mark.of == "step" else None


def items(where: Where, project: Project | None = None) -> Iterator[Item]:
    """Yield steps, the nearest above first; in `depends_on` none that would close a circle or is there already."""
    del project
    whole_list = where.kind == "value" and where.shape is not None and where.shape.item is not None
    in_list = where.kind == "item" or whole_list
    document, step = where.document, where.step
    own = step.id if step is not None else None
    if in_list:
        taken = {item.strip("\"'") for item in where.items}
        left_out = taken | _with_the_same_list(where)
        if own is not None and own in document.by_id:
            left_out |= document.graph.descendants(own)
        preferred: frozenset[str] = frozenset()
    else:
        left_out = set()
        preferred = frozenset(document.graph.dependents.get(own, ())) if own is not None else frozenset()
    shown = 0
    typed = where.word.casefold()
    for other in nearest(document, where.offset, step):
        name = other.id
        assert name is not None
        if name == own or name in left_out or (typed and not fits(typed, name.casefold())):
            continue
        shown += 1
        if shown > MOST:
            return
        yield Item(
            name, "step", _edit(where, name, whole_list), _detail(document, other), ("step", name),
            rank=1 if name in preferred else 3,
        )  # fmt: skip


def _with_the_same_list(where: Where) -> set[str]:
    """Return the steps that take over the list at the cursor with a merge key: what is added there is added to them."""
    step, name = where.step, where.path[0] if where.path else ""
    mine = step.facts.fields.get(str(name)) if step is not None else None
    if mine is None:
        return set()
    found: set[str] = set()
    for other in where.document.steps:
        located = other.facts.fields.get(str(name))
        if located is not None and located.value is mine.value and other.id is not None:
            found.add(other.id)
    return found


def _edit(where: Where, name: str, whole_list: bool) -> Edit:
    if whole_list and where.style == "plain":
        return Edit(where.span, f"{before(where)}[{quote(name, True)}]{comma(where)}")
    edit = spell(where, name)
    return Edit(edit.span, edit.text + comma(where)) if where.style == "plain" else edit


def fits(typed: str, name: str) -> bool:
    """Tell whether the letters typed come in a name, in this order: what editors go by."""
    letters = iter(name)
    return all(letter in letters for letter in typed)


def _detail(document: WorkflowDocument, step: Step) -> str:
    layer = layer_words(document, step.id or "")
    return ", ".join(word for word in (step.type or "step", layer) if word)
