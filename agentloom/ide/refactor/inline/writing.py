"""The text of an inlining: the child's steps in the step's place, and what changes in the steps around."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from agentloom.analysis.document import Step
from agentloom.diagnostics import Edit
from agentloom.ide.refactor.chunks import Chunk, chunks_of, cut, indented, joined, steps_of, with_breaks
from agentloom.ide.refactor.inline.call import Call
from agentloom.ide.refactor.inline.constants import with_state
from agentloom.ide.refactor.inline.state import Moves
from agentloom.ide.refactor.naming import targets_of
from agentloom.ide.refactor.rewriting import Change, depending, renamed, spelled
from agentloom.model.sources import names_file
from agentloom.text import newline_of


def edits_of(call: Call, moves: Moves) -> tuple[Edit, ...]:
    """Return the edits of the file, in ascending order. Raises ``Refusal``."""
    document, text = call.document, call.document.source.text
    outer = chunks_of(document, steps_of(document))
    mine = outer.items[call.step.index]
    break_ = newline_of(text, mine.span.start)
    inner = sorted(edit for name, step in call.child.by_id.items() for edit in _inner_edits(call, moves, name, step))
    source = call.child.source.text
    moved = joined([(chunk, cut(source, chunk, inner)) for chunk in call.chunks.items], break_)
    moved = indented(with_breaks(moved, break_), outer.column - call.chunks.column)
    old = text[mine.span.start : mine.span.end]
    behind = old[len(old.rstrip(" \t\r\n")) :]
    if not call.chunks.items[-1].open:
        moved = moved.rstrip(" \t\r\n") + (break_ if mine.open else behind)
    above = _comments(call, mine, outer.column, break_)
    edits = [Edit(mine.span, above + moved), *_outer_edits(call)]
    edits.extend(with_state(document, moves.constants))
    return tuple(sorted(edits))


def _inner_edits(call: Call, moves: Moves, name: str, step: Step) -> Iterator[Edit]:
    changes = list(moves.changes.get(name, ()))
    changes.extend(renamed(step, "step", call.ids))
    if call.ids[name] != name:
        changes.extend(
            Change(found.node, found.inside, call.ids[name])
            for found in step.facts.occurrences
            if found.kind == "step" and found.role == "define"
        )
    changes.extend(_rebased(call, step))
    yield from spelled(step, changes)
    more = call.needs[call.ids[name]] if not call.child.graph.dependencies[name] else ()
    yield from depending(step, lambda need: (call.ids.get(need, need),), more)


def _rebased(call: Call, step: Step) -> Iterator[Change]:
    """Yield the changes of paths, which are relative to the file they stand in."""
    home = call.document.path
    if call.folder is None or home is None:
        return
    here = Path(os.path.abspath(home)).parent
    if here == call.folder:
        return
    for found in step.facts.files:
        name = found.name
        if not names_file(name) or os.path.isabs(name):
            continue
        if found.kind == "file" and not (found.key == "agent" and "/" not in name and "." not in name):
            path = posixpath.normpath(os.path.relpath(call.folder / name, here).replace(os.sep, "/"))
            yield Change(found.node, found.inside, path)


def _outer_edits(call: Call) -> Iterator[Edit]:
    for name, step in call.document.by_id.items():
        if name == call.me:
            continue
        if call.me in targets_of(step):
            yield from spelled(step, renamed(step, "step", {call.me: call.ids[call.roots[0]]}))
        if call.document.graph.dependencies[name] != call.needs[name]:
            yield from depending(step, partial(call.outer_need, name))


def _comments(call: Call, mine: Chunk, column: int, break_: str) -> str:
    """Return the comments of the step that don't move with the child's, each on a line above."""
    carried = [chunk.span for chunk in call.chunks.items] if call.folder is None else []
    kept = [
        comment.text.rstrip()
        for comment in call.document.tree.comments
        if mine.span.start <= comment.span.start < mine.span.end
        and not any(span.start <= comment.span.start < span.end for span in carried)
    ]
    return "".join(" " * column + comment + break_ for comment in kept)
