"""Keys of the state where one is meant as a key: in `state_schema`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from agentloom.diagnostics import Edit
from agentloom.ide.completion.beginnings import begin
from agentloom.ide.completion.items import Item, escaped
from agentloom.ide.completion.keys import closing, opening, placed, value_column
from agentloom.ide.completion.layout import Writer, layout_of
from agentloom.ide.completion.references import fits
from agentloom.ide.completion.where import Where
from agentloom.ide.results import Project
from agentloom.model.catalogue import Field
from agentloom.syntax.quoting import quote

MOST = 500
"""Keys offered at once, of those that fit what is typed; more than one answer holds, so that the editor asks again."""


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
    typed = where.word.casefold()
    there = where.keys if where.kind == "key" else {}
    lacking = (
        (name, said) for name, said in known(where).items() if name not in there and fits(typed, name.casefold())
    )
    for name, said in islice(lacking, MOST):
        spelled = quote(name, where.flow)
        if where.colon:
            yield Item(name, "state", Edit(where.span, spelled), said, rank=1)
            continue
        values = shape.values
        begun = begin(Field(name, values, ""), Writer(layout), column, where.flow, lambda _: None) if values else None
        behind = ":" + (begun.text if begun else " $0") + closing(where)
        at_end = behind.endswith("$0")
        written = spelled + behind.removesuffix("$0") if at_end else escaped(spelled) + behind
        edit, extra = placed(where, opening(where, layout) + written)
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
