"""Completion in conditions: names, functions, state paths, methods, words of the language, and known texts to compare with."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentloom.analysis.outcomes import texts_at
from agentloom.diagnostics import Edit
from agentloom.ide.completion.items import Item
from agentloom.ide.completion.marks import mark_of
from agentloom.ide.completion.variables import dependency_edits, detail_of, explained, known_paths, rank_of
from agentloom.ide.completion.where import Where
from agentloom.ide.expressions import Chain, Typed, typed_at
from agentloom.ide.prose.calls import ROOTS, WORDS
from agentloom.ide.results import Project
from agentloom.ide.state_paths import RESULTS, initial_value, writers_of
from agentloom.language.functions import FUNCTIONS, METHODS, Called, Receiver, receiver_of
from agentloom.language.paths import MISSING, format_path
from agentloom.text import Span

_OPERATORS = ("and", "or", "in", "not in", "is None", "is not None")
_VALUES = ("not", "True", "False", "None")
_RECEIVERS: tuple[Receiver, ...] = ("text", "list", "mapping")


def applies(where: Where) -> bool:
    """Tell whether a condition is being typed."""
    return where.kind in ("value", "item") and mark_of(where.shape, "expression") is not None


def items(where: Where, project: Project | None) -> Iterator[Item]:
    """Yield what may stand at the cursor."""
    if _in_margin(where):
        return
    typed = typed_at(where.text.value, where.text.at)
    if typed.expects == "value":
        yield from _values(where, typed)
    elif typed.expects == "operator":
        yield from (_item(where, typed, word, "keyword", WORDS.get(word, ""), 5) for word in _OPERATORS)
    elif typed.expects == "member" and typed.chain is not None:
        yield from _members(where, typed, typed.chain)
    elif typed.expects == "key" and typed.chain is not None:
        yield from _keys(where, typed, typed.chain)
    elif typed.expects == "text" and typed.chain is not None and typed.chain.known:
        for text, detail in texts_at(where.document, typed.chain.parts):
            yield Item(text, "value", _edit(where, typed, text), detail, rank=2)


def _in_margin(where: Where) -> bool:
    """Tell whether the cursor is in the indentation of a further line, where nothing can be written."""
    scalar, source = where.text.scalar, where.source
    line = max(source.rfind("\n", 0, where.offset), source.rfind("\r", 0, where.offset)) + 1
    if scalar is None or line <= scalar.span.start or source[line : where.offset].strip(" "):
        return False
    if where.style in ("literal", "folded"):
        return where.offset - line < scalar.indent
    return source[where.offset : where.offset + 1] in ("", " ", "\r", "\n")


def _values(where: Where, typed: Typed) -> Iterator[Item]:
    if typed.chain is not None and typed.chain.known:
        for text, detail in texts_at(where.document, typed.chain.parts):
            yield Item(f"'{text}'", "value", _edit(where, typed, f"'{text}'"), detail, rank=1)
    default = where.field.default if where.field is not None else None
    if isinstance(default, str) and not where.text.value[: typed.span.start].strip():
        yield Item(default, "value", _edit(where, typed, default), "default", rank=1)
    mark = mark_of(where.shape, "expression")
    roots = ("state", "steps") if mark is None or mark.of != "agent" else ("state", "reply")
    for name in roots:
        yield _item(where, typed, name, "state", ROOTS[name].split(":")[0], 2, ("name", name))
    if typed.word and not "state".startswith(typed.word) and "state" in roots:
        for path, known in known_paths(where, (), typed.word):
            written = "state." + format_path(path)
            if path[0] != RESULTS and len(path) == 1:
                yield Item(
                    written,
                    "state",
                    _edit(where, typed, written),
                    detail_of(where, known),
                    rank=3,
                    filter=str(path[0]),
                    additional=dependency_edits(where, known),
                )
    for name, called in FUNCTIONS.items():
        yield _call(where, typed, name, called, 4, ("function", name))
    for word in _VALUES:
        yield _item(where, typed, word, "keyword", WORDS.get(word, ""), 6)


def _members(where: Where, typed: Typed, chain: Chain) -> Iterator[Item]:
    if chain.known and chain.root in ("state", RESULTS):
        for path, known in known_paths(where, chain.parts, typed.word):
            if isinstance(path[0], int) or len(path) > 1:
                continue
            name = str(path[0])
            yield Item(
                name,
                "state",
                _edit(where, typed, name),
                detail_of(where, known),
                about=explained(chain.parts, path),
                rank=rank_of(where, known),
                additional=dependency_edits(where, known),
            )
    if chain.root == RESULTS and len(chain.parts) < 3:
        return
    if chain.root == "state" and chain.known and not chain.parts:
        yield _call(where, typed, "get", METHODS["mapping"]["get"], 8, ("method", "get"))
        return
    for kind in _receivers(where, chain):
        for name, called in METHODS[kind].items():
            yield _call(where, typed, name, called, 8, ("method", name))


def _receivers(where: Where, chain: Chain) -> tuple[Receiver, ...]:
    """Return whose methods a value may have: all, unless `state` sets it and no step writes it."""
    if chain.root != "state" or not chain.known:
        return _RECEIVERS
    value = initial_value(where.document, chain.parts)
    if value is MISSING or value is None or writers_of(where.document, chain.parts, None):
        return _RECEIVERS
    kind = receiver_of(value)
    return (kind,) if kind is not None else ()


def _keys(where: Where, typed: Typed, chain: Chain) -> Iterator[Item]:
    """Yield the keys behind a bracket, in quotes unless these are there."""
    if not chain.known or chain.root not in ("state", RESULTS):
        return
    for path, known in known_paths(where, chain.parts, typed.word):
        if len(path) > 1:
            continue
        name = path[0]
        if isinstance(name, int):
            if typed.quoted:
                continue
            text = str(name)
        else:
            text = name if typed.quoted else f"'{name}'"
        edit = _edit(where, typed, text)
        yield Item(text, "state", edit, detail_of(where, known), rank=rank_of(where, known))


def _call(where: Where, typed: Typed, name: str, called: Called, rank: int, about: tuple[str, ...]) -> Item:
    """Return an item for something that is called; its needed arguments are blanks."""
    inside = re.search(r"\(([^)]*)\)", called.signature)
    names = [word.strip() for word in inside[1].split(",")] if inside and inside[1] else []
    blanks = ", ".join(f"${{{n}:{word}}}" for n, word in enumerate(names[: called.least], 1))
    behind = where.text.value[typed.span.end : typed.span.end + 1]
    text = name if behind == "(" else f"{name}({blanks or ('$0' if called.most else '')})"
    snippet = behind != "("
    return Item(
        called.signature if called.signature.startswith(f"{name}(") and " or " not in called.signature else f"{name}()",
        "function",
        _edit(where, typed, text),
        called.summary,
        about,
        rank,
        filter=name,
        snippet=snippet and "$" in text,
    )


def _item(
    where: Where, typed: Typed, text: str, kind: str, detail: str, rank: int, about: tuple[str, ...] = ()
) -> Item:
    return Item(text, "keyword" if kind == "keyword" else "state", _edit(where, typed, text), detail, about, rank)


def _edit(where: Where, typed: Typed, text: str) -> Edit:
    """Return the edit that writes a piece of a condition, in the quotes that the whole stands in."""
    if where.text.scalar is None:
        return Edit(where.span, (" " if where.glued else "") + text)
    if where.style == "single":
        text = text.replace("'", "''")
    elif where.style == "double":
        text = text.replace("\\", "\\\\").replace('"', '\\"')
    if typed.span.start == typed.span.end:
        return Edit(Span(where.offset, where.offset), text)
    return Edit(where.text.span(*typed.span), text)
