"""Where the child's reads and writes lead when its steps stand in the parent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from agentloom.analysis.graph import build_graph
from agentloom.analysis.symbols import Occurrence
from agentloom.ide.refactor.accesses import Access, Parts, keep_races
from agentloom.ide.refactor.inline.call import Call
from agentloom.ide.refactor.inline.constants import literal_of, lone_path
from agentloom.ide.refactor.rewriting import Change, moved_path, renamed_part
from agentloom.ide.results import Refusal
from agentloom.language.arguments import find_references_deep
from agentloom.language.paths import Part, format_path
from agentloom.text import Span


def moves_of(call: Call) -> Moves:
    """Return what has to change for the child's steps to read and write the same. Raises ``Refusal``."""
    others = frozenset(call.document.by_id) - {call.me}
    keep_races(call.outer.races(others), call.document.graph.layer_of, build_graph(call.needs).layer_of)
    moves = Moves(call)
    for read in call.inner.reads:
        moves.place_read(read)
    for write in call.inner.writes:
        moves.place_write(write)
    whole = [read.step for read in call.outer.reads if not read.parts and read.step != call.me]
    if moves.constants and whole:
        added = next(iter(moves.constants))
        raise Refusal(f"`{whole[0]}` reads the whole state, and `{added}` would have to be added to it")
    return moves


@dataclass(eq=False, repr=False)
class Moves:
    """The changes inside the child's steps, by id, and ``constants``: what has to be added to the file's own `state`."""

    call: Call
    changes: dict[str, list[Change]] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)
    _read_at: dict[tuple[str, int], Parts | None] = field(default_factory=dict)

    def place_write(self, write: Access) -> None:
        """Note where a write goes."""
        place = self.call.places[write.parts[0]]
        # A conversation is read and written by one field.
        if write.occurrence is not None and self._read_at.get((write.step, id(write.occurrence.node)), place) != place:
            raise _apart(write.step)
        if write.occurrence is not None and place != (write.parts[0],):
            self._change(write.step, moved_path(write.occurrence, 1, place))

    def place_read(self, read: Access) -> None:
        """Note where a read leads."""
        parts = read.parts
        if parts[:1] == ("steps",) and len(parts) > 1:
            about = str(parts[1])
            if self.call.ids.get(about, about) != about and read.occurrence is not None:
                self._change(read.step, renamed_part(read.occurrence, 1, self.call.ids[about]))
            return
        if parts[:1] in ((), ("steps",)):
            raise Refusal(f"`{read.step}` of the child reads the whole state")
        key = parts[0]
        seen = self.call.inner.seen(read.step, parts)
        given = self.call.given(key)
        if (seen.writers or seen.racing) and (not given or not (seen.before or seen.racing)):
            place: Parts | None = self.call.places[key]
        elif seen.writers or seen.racing:
            raise Refusal(f"`{read.step}` of the child reads `{key}` both as it was and as other steps write it")
        else:
            place = self._base(read, key)
        if read.occurrence is not None:
            self._read_at[read.step, id(read.occurrence.node)] = place
        if place is None or place == (key,):
            return
        if read.occurrence is None:
            raise Refusal(f"`{key}` is read by what `{read.step}` of the child runs, and would stand elsewhere")
        self._change(read.step, moved_path(read.occurrence, 1, place))

    def _base(self, read: Access, key: Part) -> Parts | None:
        """Return where a key stands that the child is handed; None when the read is done with already."""
        if key in self.call.input:
            value = self.call.input[key]
            path = lone_path(value)
            if path is not None:
                if path.parts[:1] in ((), ("steps",)):
                    raise Refusal(f"`input.{key}` hands on a result, or the whole state")
                self._check_race(path.parts + read.parts[1:])
                return path.parts
            literal = literal_of(value)
            if literal is not None:
                return (self._constant(str(key), literal[0]),)
            self._composed(read, key, value)
            return None
        if self.call.isolated:
            if key in self.call.defaults:
                return (self._constant(str(key), self.call.defaults[key]),)
            return (self.call.free(str(key)),)  # nothing is there, and nothing may be there afterwards
        if key in self.call.defaults and not self._certain(key):
            if key in self.call.keys:
                raise Refusal(f"the child's `state` has a default for `{key}`, which this file may or may not have")
            return (self._constant(str(key), self.call.defaults[key]),)
        self._check_race(read.parts)
        return (key,)

    def _certain(self, key: Part) -> bool:
        graph = self.call.document.graph
        return self.call.outer.begins_with(key) or any(
            write.parts[0] == key and graph.is_upstream(write.step, self.call.me) for write in self.call.outer.writes
        )

    def _check_race(self, parts: Parts) -> None:
        """Raise ``Refusal`` when a step that runs beside the child writes what the child reads as it was at its beginning."""
        graph = self.call.document.graph
        for write in self.call.outer.overlapping(parts):
            if write.step == self.call.me or self.call.outer.excluded(write.step, self.call.me):
                continue
            if not graph.is_upstream(write.step, self.call.me) and not graph.is_upstream(self.call.me, write.step):
                raise Refusal(
                    f"`{write.step}` writes `{format_path(write.parts)}`, which the child reads, at the same time"
                )

    def _constant(self, key: str, value: Any) -> str:
        name = next((n for n, v in self.constants.items() if n in (key, f"{self.call.me}_{key}") and v is value), None)
        if name is None:
            name = self.call.free(key)
            self.constants[name] = value
        return name

    def _composed(self, read: Access, key: Part, value: Any) -> None:
        """Put a text made of several values where the child read it."""
        found = read.occurrence
        if not isinstance(value, str) or "{{" in value or "}}" in value or found is None or found.form != "template":
            raise Refusal(f"`input.{key}` is put together, and `{read.step}` of the child doesn't read it in a text")
        for parts in _paths_in(value):
            if parts[:1] in ((), ("steps",)):
                raise Refusal(f"`input.{key}` hands on a result, or the whole state")
            self._check_race(parts)
        span = _placeholder(found)
        if span is None or len(read.parts) > 1:
            raise Refusal(f"`input.{key}` is put together, and `{read.step}` of the child reads it in another form")
        self._change(read.step, Change(found.node, span, value))

    def _change(self, step: str, change: Change) -> None:
        kept = self.changes.setdefault(step, [])
        if any(other.node is change.node and other.inside == change.inside and other != change for other in kept):
            raise _apart(step)
        kept.append(change)


def _apart(step: str) -> Refusal:
    return Refusal(f"step `{step}` of the child reads and writes one key, which would stand in two places")


def _paths_in(value: str) -> Iterator[Parts]:
    for placeholder in find_references_deep(value):
        yield placeholder.parts


def _placeholder(found: Occurrence) -> Span | None:
    """Return the place of a whole placeholder in its value, the braces included; None when it has a format of its own."""
    value, (start, end) = found.node.value, found.inside
    if value[start - 1 : start] == "{" and value[end : end + 1] == "}":
        return Span(start - 1, end + 1)
    return Span(start, end) if (start, end) == (0, len(value)) else None
