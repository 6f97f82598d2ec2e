"""What completion offers is what the JSON Schema allows; and whatever is chosen, the text is no worse for it."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from jsonschema import Draft7Validator

from agentloom.analysis.analyze import AnalysisCache, analyze
from agentloom.analysis.context import Context
from agentloom.analysis.document import WorkflowDocument
from agentloom.analysis.settings import Settings
from agentloom.diagnostics import Diagnostic, Severity, apply_edits
from agentloom.ide.completion.complete import complete
from agentloom.ide.completion.items import Item, filled
from agentloom.syntax.nodes import Alias, Mapping, Node, Scalar, Sequence
from agentloom.syntax.nodes import Path as NodePath
from agentloom.syntax.values import plain_value
from agentloom.text import Source
from agentloom.tools.catalogue import BUILTIN_TOOLS
from tests.conftest import ROOT
from tests.house.corpus import files

SCHEMA = json.loads((ROOT / "schema/workflow.schema.json").read_text(encoding="utf-8"))
TEN = sorted((ROOT / "examples").glob("*.loom.yaml"))[:10]
CONTEXT = Context(Settings(), tools=BUILTIN_TOOLS)
OPPOSED = {"tools": "response_schema", "response_schema": "tools", "workflow_path": "workflow_inline"}
"""What a schema of draft 7 doesn't say here, and AL109 does: keys that can't stand together."""


def document_of(text: str, path: Path, cache: AnalysisCache | None = None) -> WorkflowDocument:
    return analyze(Source(str(path), text), CONTEXT, cache)


# ── the schema ──


def effective(schema: dict[str, Any], value: Any) -> Iterator[dict[str, Any]]:
    """Yield every part of a schema that applies to a value: references followed, conditions decided."""
    if "$ref" in schema:
        yield from effective(SCHEMA["definitions"][schema["$ref"].rpartition("/")[2]], value)
        return
    yield schema
    for part in schema.get("allOf", ()):
        yield from effective(part, value)
    for part in schema.get("anyOf", ()):
        yield from effective(part, value)
    if "if" in schema:
        condition = {**schema["if"], "definitions": SCHEMA["definitions"]}
        chosen = "then" if Draft7Validator(condition).is_valid(value) else "else"
        if chosen in schema:
            yield from effective(schema[chosen], value)


def schemas_at(schema: dict[str, Any], value: Any, path: NodePath) -> list[dict[str, Any]]:
    """Return the parts of the schema that apply to what stands at a path of a value."""
    parts = list(effective(schema, value))
    if not path:
        return parts
    step, found = path[0], []
    inner = value[step] if not isinstance(value, dict) else value.get(step)
    for part in parts:
        below = part.get("items") if isinstance(step, int) else part.get("properties", {}).get(step)
        if below is None and not isinstance(step, int):
            below = part.get("additionalProperties")
        if isinstance(below, dict):
            found += schemas_at(below, inner, path[1:])
    return found


def allowed_keys(parts: list[dict[str, Any]]) -> set[str]:
    closed = [set(part["properties"]) for part in parts if part.get("additionalProperties") is False]
    assert closed
    return set.intersection(*closed)


def allowed_values(parts: list[dict[str, Any]]) -> set[str]:
    values = {value for part in parts for value in part.get("enum", ()) if value is not None}
    types = {type_ for part in parts for type_ in [part.get("type")] if isinstance(type_, str)}
    types |= {type_ for part in parts if isinstance(part.get("type"), list) for type_ in part["type"]}
    return values | ({"true", "false"} if "boolean" in types else set()) | ({"null"} if "null" in types else set())


# ── places ──


def nodes(node: Node | None, path: NodePath = ()) -> Iterator[tuple[NodePath, Node]]:
    """Yield every mapping and scalar with its path; aliases and merge keys stay closed."""
    if node is None or isinstance(node, Alias):
        return
    yield path, node
    if isinstance(node, Mapping):
        for entry in node.entries:
            if isinstance(entry.key, Scalar) and entry.key.value != "<<":
                yield from nodes(entry.value, (*path, entry.key.value))
    elif isinstance(node, Sequence):
        for number, item in enumerate(node.items):
            yield from nodes(item, (*path, number))


def key_places(document: WorkflowDocument) -> Iterator[tuple[NodePath, Mapping]]:
    data = plain_value(document.tree.root)
    for path, node in nodes(document.tree.root):
        if isinstance(node, Mapping) and not node.flow and node.anchor is None:
            parts = schemas_at(SCHEMA, data, path)
            if any(part.get("additionalProperties") is False for part in parts):
                yield path, node


def value_places(document: WorkflowDocument) -> Iterator[tuple[NodePath, Scalar]]:
    data = plain_value(document.tree.root)
    for path, node in nodes(document.tree.root):
        if isinstance(node, Scalar) and node.raw:
            parts = schemas_at(SCHEMA, data, path)
            if any("enum" in part or part.get("type") == "boolean" for part in parts):
                yield path, node


@pytest.mark.parametrize("path", TEN, ids=lambda path: path.stem)
def test_keys_and_choices_are_those_of_the_schema(path: Path) -> None:
    """Two mappings and a choice of each of ten examples: what is offered is what the schema allows there, without what is there."""
    text = path.read_text(encoding="utf-8")
    document = document_of(text, path)
    data = plain_value(document.tree.root)
    chosen = random.Random(path.stem)
    places = list(key_places(document))
    for where, node in [places[0], chosen.choice(places[1:])]:
        last = node.entries[-1].key.span.start
        line = text.rfind("\n", 0, last) + 1
        indent = re.match(r"[ -]*", text[line:last])
        typed = text[:line] + " " * len(indent[0] if indent else "") + "\n" + text[line:]
        offset = line + len(indent[0] if indent else "")
        offered = {item.label for item in complete(document_of(typed, path), offset) if item.kind == "key"}
        present = {entry.key.value for entry in node.entries if isinstance(entry.key, Scalar)}
        allowed = allowed_keys(schemas_at(SCHEMA, data, where)) - present
        assert offered == {name for name in allowed if OPPOSED.get(name) not in present}, where
    where, scalar = chosen.choice(list(value_places(document)))
    items = complete(document, scalar.span.start + (scalar.style != "plain"))
    offered = {item.label for item in items if item.kind == "value"}
    assert offered == allowed_values(schemas_at(SCHEMA, data, where)), where


# ── choosing ──


class Place(NamedTuple):
    """A text with a cursor in it."""

    text: str
    offset: int


def places_of(text: str) -> Iterator[Place]:
    """Yield the places of a file at which something may be typed: in every line, and on a new line below it."""
    newline = "\r\n" if "\r\n" in text else "\n"
    at = 0
    for line in text.split("\n"):
        end = at + len(line.rstrip("\r"))
        lead = re.match(r"\s*(?:- )*", line)
        key = re.match(r"\s*(?:- )*\w+:", line)
        yield Place(text, end)
        yield Place(text, at + (lead.end() if lead else 0))
        if key:
            yield Place(text, at + key.end())
            yield Place(text, min(end, at + key.end() + 1))
        for found in re.finditer(r"[\[{,\"'.]", line):
            yield Place(text, at + found.end())
        indent = len(line) - len(line.lstrip(" "))
        for columns in sorted({0, indent, indent + 2, lead.end() if lead else 0}):
            yield Place(text[:end] + newline + " " * columns + text[end:], end + len(newline) + columns)
        if line.lstrip().startswith("- "):
            yield Place(text[:end] + newline + " " * indent + "- " + text[end:], end + len(newline) + indent + 2)
        at += len(line) + 1


class Chosen(NamedTuple):
    """A text after an item was chosen, the range that it wrote, and whether a blank stays that nothing is known for."""

    text: str
    start: int
    end: int
    blank: bool


def choose(document: WorkflowDocument, offset: int, item: Item, cache: AnalysisCache) -> Chosen:
    """Choose an item, and the first of what is offered next, as editors do that ask again."""
    text, blank, start, end = document.source.text, False, offset, 0
    for _ in range(4):
        new = filled(item.edit.text) if item.snippet else item.edit.text
        moved = sum(len(e.text) - (e.span.end - e.span.start) for e in item.additional if e.span < item.edit.span)
        text = apply_edits(text, [item.edit._replace(text=new), *item.additional])
        start, begin = min(start, item.edit.span.start), item.edit.span.start + moved
        end = max(end, begin + len(new))
        stop = item.edit.text.find("$0") if item.snippet else len(item.edit.text)
        if stop < 0:
            break
        cursor = begin + len(filled(item.edit.text[:stop]) if item.snippet else item.edit.text[:stop])
        path = Path(document.source.uri)
        following = [each for each in complete(document_of(text, path, cache), cursor) if each.kind != "folder"]
        if not following or not item.retrigger:
            blank = not following
            break
        item = following[0]
    return Chosen(text, start, end, blank)


def is_waiting(diagnostic: Diagnostic, blank: bool) -> bool:
    """Tell whether a mistake says only that something is still to be typed: another key that is needed, or the value."""
    said = diagnostic.message
    if diagnostic.code == "AL101" or (diagnostic.code == "AL109" and " needs " in said):
        return True
    return blank and diagnostic.code == "AL105" and ("has no value yet" in said or "is empty" in said)


def mistakes(document: WorkflowDocument) -> list[Diagnostic]:
    return [d for d in document.diagnostics if d.severity is Severity.ERROR and d.code[:3] in ("AL0", "AL1", "AL2")]


def new_mistakes(document: WorkflowDocument, offset: int, item: Item, cache: AnalysisCache) -> list[str]:
    """Return the errors of syntax, shape and graph that choosing an item brings, on the lines it writes."""
    before = Counter((d.code, d.message) for d in mistakes(document))
    chosen = choose(document, offset, item, cache)
    first = chosen.text.rfind("\n", 0, chosen.start) + 1
    last = chosen.text.find("\n", chosen.end)
    last = len(chosen.text) if last < 0 else last
    return [
        f"{item.label}: {d.code} {d.message}"
        for d in mistakes(document_of(chosen.text, Path(document.source.uri), cache))
        if (d.code, d.message) not in before
        and first <= d.span.end
        and d.span.start <= last
        and not is_waiting(d, chosen.blank)
    ]


def good_files() -> list[Path]:
    return [
        path
        for path in files("examples", "tests/fixtures/rules")
        if "rules" not in path.parts or path.stem[:4] == "good"
    ]


@pytest.mark.parametrize("part", range(8))
def test_whatever_is_chosen_the_text_is_no_worse(part: int) -> None:
    """Items offered in correct files, chosen: no new error of syntax, shape or graph stands there. Places and items by lot."""
    tried = 0
    for path in good_files()[part::8]:
        text = path.read_bytes().decode("utf-8")
        cache = AnalysisCache()
        chosen = random.Random(path.relative_to(ROOT).as_posix())  # by the file alone: a new one changes no other's lot
        for place in chosen.sample(list(places_of(text)), 8):
            document = document_of(place.text, path, cache)
            items = complete(document, place.offset)
            for item in chosen.sample(items, min(3, len(items))):
                tried += 1
                told = new_mistakes(document, place.offset, item, cache)
                assert not told, (path.name, place.text[max(0, place.offset - 80) : place.offset] + "¦", item)
    assert tried > 100


@pytest.mark.parametrize("part", range(4))
def test_half_typed_words_are_offered_the_same(part: int) -> None:
    """Typing the first letters of something offered changes nothing: it is still offered, and choosing it gives the same text."""
    tried = 0
    for path in good_files()[part::4]:
        text = path.read_bytes().decode("utf-8")
        cache = AnalysisCache()
        chosen = random.Random(path.relative_to(ROOT).as_posix())  # by the file alone: a new one changes no other's lot
        for place in chosen.sample(list(places_of(text)), 3):
            for item in complete(document_of(place.text, path, cache), place.offset):
                at = item.edit.span.start
                if item.kind != "key" or item.edit.span.end > at or item.filter or item.edit.text[:1] in "\r\n":
                    continue
                letters = item.label[: chosen.choice((1, 2, 3))]
                typed = place.text[:at] + letters + place.text[at:]
                tried += 1
                again = [
                    apply_edits(typed, [each.edit, *each.additional])
                    for each in complete(document_of(typed, path, cache), at + len(letters))
                    if (each.label, each.kind) == (item.label, item.kind)
                ]
                assert again == [apply_edits(place.text, [item.edit, *item.additional])], (path.name, typed, item)
    assert tried > 50
