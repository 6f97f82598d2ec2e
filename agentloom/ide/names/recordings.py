"""Steps as recordings name them: keys of a JSON file, a step's id or the way to it through subworkflows (`sub.draft`)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from agentloom.ide.names.calls import calls_of
from agentloom.ide.names.index import Index
from agentloom.ide.names.mentions import mention_of
from agentloom.ide.names.scope import Name, Place, Scope
from agentloom.ide.names.world import World
from agentloom.text import Source, Span

LARGEST = 4_000_000
"""Code points of a recording that is looked into."""

DEEPEST = 8
"""Callers of callers that are asked for their recordings."""

TOOLS = "_tools"
"""The key under which recordings hold what tools gave."""

MOST_WAYS = 500
"""Ways through callers down to a step that are looked for in recordings."""


class Recorded(NamedTuple):
    """A key of a recording that names a step. ``clash`` says who else it may name: another step of the same id."""

    place: Place
    clash: str | None = None


class Key(NamedTuple):
    """One key of a recording: its segments, each with its place."""

    segments: tuple[str, ...]
    spans: tuple[Span, ...]


def recorded(world: World, name: Name) -> list[Recorded]:
    """Return where the recordings of a step's workflow, and of those that run it, name the step."""
    if name.scope is None:
        return []
    found: list[Recorded] = []
    word = name.path[0] or ""
    todo: list[tuple[Scope, tuple[str, ...]]] = [(name.scope, (word,))]
    ways = 0
    while todo and ways < MOST_WAYS:
        ways += 1
        scope, trail = todo.pop()
        index = world.index(scope.file)
        if index is not None and scope in index.scopes:
            for path in recordings_of(index, scope):
                found.extend(_in_file(world, name, path, scope, trail))
        for call in world.calls_to(scope) if len(trail) < DEEPEST else ():
            if not call.agent and call.step is not None:
                todo.append((call.caller, (call.step, *trail)))
    unique = {(item.place.source.uri, item.place.span): item for item in found}
    return list(unique.values())


def recordings_of(index: Index, scope: Scope) -> list[str]:
    """Return the recordings that a workflow names, as absolute paths."""
    where = index.head(scope)
    marked = [leaf.node for leaf in where.facts.leaves if (mark := leaf.shape.mark("file")) and mark.of == "recording"]
    files = [file for file in where.facts.files if any(file.node is node for node in marked)]
    return [mention.parts[0] or "" for file in files if (mention := mention_of(where, file)) is not None]


def _in_file(world: World, name: Name, path: str, scope: Scope, trail: tuple[str, ...]) -> Iterator[Recorded]:
    index = world.index(scope.file)
    text = _text(index, path) if index is not None else None
    if index is None or text is None:
        return
    word = name.path[0] or ""
    source = Source(path, text)
    keys = keys_of(text) if f'"{trail[0]}' in text or f'"{word}' in text else ()
    for key in keys:
        whole = key.segments[: len(trail)] == trail
        if not whole and key.segments != (word,):
            continue  # another step's, or one that only has the same beginning
        place = Place(name, "refer", source, key.spans[len(trail) - 1 if whole else 0])
        yield Recorded(place, _clash(world, name, path, scope, key.segments))


def _clash(world: World, name: Name, path: str, scope: Scope, segments: tuple[str, ...]) -> str | None:
    """Return who else a key answers: another step of this id below the same workflow, or a workflow that shares the recording."""
    word = segments[0]
    if len(segments) == 1:
        for other in _below(world, scope):
            if other != name.scope and _has(world, other, word):
                return f"another step `{word}`"
    for index in world.namers(path):
        for other in index.scopes:
            if other != scope and path in recordings_of(index, other) and _has(world, other, word):
                return f"step `{word}` of `{Path(index.file).name}`"
    return None


def _below(world: World, scope: Scope) -> Iterator[Scope]:
    """Yield a workflow and all that it runs."""
    todo, seen = [scope], {scope}
    while todo:
        at = todo.pop()
        yield at
        index = world.index(at.file)
        for call in calls_of(index) if index is not None else ():
            if call.caller == at and not call.agent and call.child not in seen:
                seen.add(call.child)
                todo.append(call.child)


def _has(world: World, scope: Scope, step: str) -> bool:
    index = world.index(scope.file)
    document = index.scopes.get(scope) if index is not None else None
    return document is not None and step in document.by_id


def _text(index: Index, path: str) -> str | None:
    try:
        text = index.document.context.read_text(Path(path))
    except (OSError, ValueError):
        return None
    return text if len(text) <= LARGEST else None


def keys_of(text: str) -> tuple[Key, ...]:
    """Return the keys of a recording that name steps, those of recorded tools too; none where the text is no JSON object.

    Escaped keys are left out.
    """
    found: list[Key] = []
    try:
        start = _skip(text, 0)
        for key, at, value in _members(text, start):
            if key == TOOLS and text[value] == "{":
                found.extend(_key(inner, place) for inner, place, _ in _members(text, value) if place >= 0)
            elif at >= 0 and not key.startswith("_"):
                found.append(_key(key, at))
        return tuple(found)
    except (ValueError, IndexError, RecursionError):
        return ()


def _members(text: str, at: int) -> Iterator[tuple[str, int, int]]:
    """Yield the keys of the object that begins at an offset: each with its own place, -1 if it is escaped, and that of its value.

    Raises ``ValueError`` or ``IndexError`` where there is no JSON object.
    """
    decoder = json.JSONDecoder()
    if text[at] != "{":
        raise ValueError
    at = _skip(text, at + 1)
    while text[at] == '"':
        start = at + 1
        key, at = decoder.raw_decode(text, at)
        plain = bool(key) and text[start : at - 1] == key
        at = _skip(text, at)
        if text[at] != ":":
            raise ValueError
        value = _skip(text, at + 1)
        _, at = decoder.raw_decode(text, value)
        yield key, start if plain else -1, value
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)
    if text[at] != "}":
        raise ValueError


def _skip(text: str, at: int) -> int:
    match = re.compile(r"[\s\ufeff]*").match(text, at)
    return match.end() if match else at


def _key(key: str, start: int) -> Key:
    # What a step asks besides (`draft::summarize`) stands under its own name with something behind it.
    segments = tuple(key.partition("::")[0].split("."))
    spans: list[Span] = []
    for segment in segments:
        spans.append(Span(start, start + len(segment)))
        start += len(segment) + 1
    return Key(segments, tuple(spans))
