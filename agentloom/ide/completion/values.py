"""Values that the catalogue lists: choices, true and false, null, and numbers to begin with; and anchors behind `*`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from agentloom.diagnostics import Edit
from agentloom.ide.completion.beginnings import plain_number
from agentloom.ide.completion.items import Item, before, spell
from agentloom.ide.completion.keys import comma
from agentloom.ide.completion.where import Where
from agentloom.ide.results import Project
from agentloom.model.catalogue import Shape

_ANCHOR = re.compile(r"&([^\s,\[\]{}]+)")
_GAP = re.compile(r"(?:[ \t]|!\S*|#[^\r\n]*)*([\r\n](?:[ \t\r\n]|#[^\r\n]*)*)?")
_LIST = re.compile(r"\[|-(?:[ \t]|(?=[\r\n]|\Z))")
_KEY = re.compile(r"\?[ \t]|(?:\"(?:[^\"\\\r\n]|\\.)*\"|'[^'\r\n]*'|[^\s\"'#\[\]{}|>][^\r\n]*?)[ \t]*:(?:\s|\Z)")
MOST_ANCHORS = 200


def applies(where: Where) -> bool:
    """Tell whether a value may be chosen at a place."""
    return where.kind in ("value", "item") and where.shape is not None and where.style not in ("literal", "folded")


def items(where: Where, project: Project | None = None) -> Iterator[Item]:
    """Yield choices, literals and numbers."""
    del project
    assert where.shape is not None
    for shape in where.shape.any_of or (where.shape,):
        yield from _choices(where, shape)
        if where.style == "plain" and not where.braced:
            yield from _literals(where, shape)


def _choices(where: Where, shape: Shape) -> Iterator[Item]:
    field = where.field
    for value in shape.enum or ():
        usual = field is not None and field.has_default and field.default == value
        edit = spell(where, value)
        yield Item(
            value,
            "value",
            edit._replace(text=edit.text + comma(where)),
            "default" if usual else "",
            ("choice", where.block.name, field.name, value) if where.block is not None and field is not None else (),
            rank=2,
            preselect=usual and not where.before,
        )


def _literals(where: Where, shape: Shape) -> Iterator[Item]:
    field = where.field
    if (
        field is None
        or where.block is None
        or shape.block is not None
        or "array" in shape.types
        or "object" in shape.types
    ):
        return
    known: list[tuple[str, Any]] = []
    if "boolean" in shape.types:
        known = [("false", False), ("true", True)] if field.default is True else [("true", True), ("false", False)]
    elif {"integer", "number"} & set(shape.types) and "string" not in shape.types:
        values = [*([field.default] if field.has_default else []), *field.examples]
        known = [(plain_number(value), value) for value in values if isinstance(value, (int, float))]
        known = list(dict(known).items())
    chosen = bool(known) or shape.enum is not None
    if chosen and "null" in shape.types:
        known.append(("null", None))
    for word, value in known:
        usual = field.has_default and field.default == value and type(field.default) is type(value)
        about = ("field", where.block.name, field.name)
        yield Item(
            word, "value", Edit(where.span, before(where) + word + comma(where)), "default" if usual else "", about,
            rank=4 if value is None else 2,
        )  # fmt: skip


def anchors_apply(where: Where) -> bool:
    """Tell whether an alias is being typed."""
    return where.kind in ("value", "item") and where.style == "plain" and where.word.startswith("*")


def anchors(where: Where, project: Project | None = None) -> Iterator[Item]:
    """Yield the anchors above the cursor."""
    del project
    source, seen = where.source, set[str]()
    at = source.rfind("&", 0, where.span.start)
    while at >= 0 and len(seen) < MOST_ANCHORS:
        found = _ANCHOR.match(source, at)
        stands = source[at - 1 : at] in ("", " ", "\t", "\n", "[", "{", ",")
        if found is not None and stands and found[1] not in seen and _fits(where, source, found.end()):
            seen.add(found[1])
            line_end = re.compile(r"\r|\n|\Z").search(source, at)
            shown = source[found.end() : line_end.start() if line_end else None].strip()
            yield Item(f"*{found[1]}", "reference", Edit(where.span, f"*{found[1]}"), shown[:60], rank=1)
        at = source.rfind("&", 0, at)


def _fits(where: Where, source: str, at: int) -> bool:
    """Tell whether what an anchor marks, which begins behind ``at``, is of a kind that may stand at the cursor."""
    shape = where.shape
    if where.name == "<<" or shape is None:
        allowed = {"object", "array"} if where.name == "<<" else set()
    else:
        allowed = {name for each in shape.any_of or (shape,) for name in each.types}
    if not allowed or any(not each.types for each in (shape.any_of if shape is not None else ())):
        return True
    gap = _GAP.match(source, at)
    start = gap.end() if gap is not None else at
    below = gap is not None and gap[1] is not None
    if source.startswith("{", start) or (below and _KEY.match(source, start)):
        return "object" in allowed
    if source.startswith("[", start) or (below and _LIST.match(source, start)):
        return "array" in allowed
    return bool(allowed - {"object", "array", "null"})
