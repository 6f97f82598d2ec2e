"""Recordings follow a refactoring: replies stand under the names that steps have afterwards."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from agentloom.analysis.document import WorkflowDocument
from agentloom.diagnostics import Edit
from agentloom.ide.names.recordings import keys_of, recorded
from agentloom.ide.names.scope import Name, Scope
from agentloom.ide.names.world import World
from agentloom.ide.results import Project, Refusal, TextEdits
from agentloom.text import Source, Span

_NEXT = re.compile(r"\.([^\".]+)(?=[\".])")


def replies_after(
    document: WorkflowDocument, project: Project | None, step: str, ids: Mapping[str, str]
) -> Iterator[TextEdits]:
    """Yield the edits of recordings when the steps below one step take its place. Raises ``Refusal``."""
    yield from _changed(document, project, (step,), lambda _, inner: ids.get(inner), whole=True)


def replies_within(
    document: WorkflowDocument, project: Project | None, ids: Iterable[str], new: str
) -> Iterator[TextEdits]:
    """Yield the edits of recordings when steps go below a new one. Raises ``Refusal``.

    A reply to a step itself is found by the step's own id, wherever that stands; only those of subworkflows' steps move.
    """
    yield from _changed(document, project, ids, lambda step, _: f"{new}.{step}", whole=False)


def _changed(
    document: WorkflowDocument,
    project: Project | None,
    steps: Iterable[str],
    rename: Callable[[str, str], str | None],
    whole: bool,
) -> Iterator[TextEdits]:
    """Rewrite the keys that lead through some steps: the step's own part, or (``whole``) the part behind it, too."""
    world = World(document, project)
    found: dict[str, tuple[Source, set[Edit]]] = {}
    for step in steps:
        for item in recorded(world, Name("step", Scope(world.own.file), (step,))):
            source, span = item.place.source, item.place.span
            below = _NEXT.match(source.text, span.end)
            name = rename(step, below[1]) if below is not None else None
            if below is None or name is None:
                continue
            if item.clash is not None:
                file = Path(source.uri).name
                raise Refusal(
                    f"the recording `{file}` answers {item.clash} under this name, too; part the two there first"
                )
            edit = Edit(Span(span.start, below.end() if whole else span.end), name)
            found.setdefault(source.uri, (source, set()))[1].add(edit)
    for source, edits in found.values():
        _check_free(source, edits)
        yield TextEdits(source, tuple(sorted(edits)))


def _check_free(source: Source, edits: set[Edit]) -> None:
    """Raise ``Refusal`` when a recording has replies under a new name already."""
    keys = {".".join(key.segments): key.spans[0].start for key in keys_of(source.text)}
    for edit in edits:
        end = source.text.index('"', edit.span.end)
        start = source.text.rindex('"', 0, edit.span.start) + 1
        new = source.text[start : edit.span.start] + edit.text + source.text[edit.span.end : end]
        if new in keys:
            raise Refusal(f"the recording `{Path(source.uri).name}` has replies for `{new}` already")
