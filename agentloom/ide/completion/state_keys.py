"""Keys of the state where one is meant as a key: in `state_schema`."""

from __future__ import annotations

from collections.abc import Iterator

from agentloom.diagnostics import Edit
from agentloom.ide.completion.beginnings import begin
from agentloom.ide.completion.items import Item
from agentloom.ide.completion.keys import closing, opening, placed, value_column
from agentloom.ide.completion.layout import Writer, layout_of
from agentloom.ide.completion.where import Where
from agentloom.ide.results import Project
from agentloom.model.catalogue import Field
from agentloom.syntax.quoting import quote


def applies(where: Where) -> bool:
    """Tell whether the names of state keys are keys of the mapping at a place."""
    shape = where.holder if where.kind == "key" else where.shape if where.kind == "value" else None
    mark = shape.mark("ref") if shape is not None else None
    return (
        mark is not None
        and mark.of == "state"
        and where.style == "plain"
        and not (where.kind == "value" and where.before)
    )


def items(where: Where, project: Project | None = None) -> Iterator[Item]:
    """Yield the keys of `state`, then those that steps write."""
    del project
    shape = where.holder if where.kind == "key" else where.shape
    assert shape is not None
    layout = layout_of(where.document, where.offset)
    column = value_column(where, layout) if where.kind == "value" and not where.flow else where.column
    for name, said in known(where).items():
        if where.kind == "key" and name in where.keys:
            continue
        spelled = quote(name, where.flow)
        if where.colon:
            yield Item(name, "state", Edit(where.span, spelled), said, rank=1)
            continue
        values = shape.values
        begun = begin(Field(name, values, ""), Writer(layout), column, where.flow, lambda _: None) if values else None
        text = opening(where, layout) + spelled + ":" + (begun.text if begun else " $0") + closing(where)
        edit, extra = placed(where, text)
        at_end = edit.text.endswith("$0")
        if at_end:
            edit = edit._replace(text=edit.text[:-2])
        yield Item(name, "state", edit, said, rank=1, snippet=not at_end, additional=extra, retrigger=True)


def known(where: Where) -> dict[str, str]:
    """Return the first parts of every state key there is, each with where it comes from."""
    found: dict[str, str] = {}
    state = where.document.head.data.get("state")
    if isinstance(state, dict):
        found.update((name, "in state") for name in state if isinstance(name, str))
    for step in where.document.steps:
        for write in step.facts.writes:
            if write.parts and isinstance(write.parts[0], str):
                found.setdefault(write.parts[0], f"written by {step.id}")
    return found
