"""Completion of state paths as whole values: what a step embeds, where a conversation is kept, what `state_schema` speaks of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agentloom.analysis.dataflow import dataflow
from agentloom.diagnostics import Edit
from agentloom.ide.completion.arguments import key_item, present
from agentloom.ide.completion.items import Item, before
from agentloom.ide.completion.marks import mark_of
from agentloom.ide.completion.variables import dependency_edits, detail_of, explained, known_paths, rank_of, writable
from agentloom.ide.completion.where import Where
from agentloom.ide.references import path_at
from agentloom.ide.results import Project
from agentloom.ide.state_paths import RESULTS
from agentloom.language.paths import Part, format_path
from agentloom.text import Span


def applies(where: Where) -> bool:
    """Tell whether a path into the state is being typed."""
    if where.kind not in ("value", "item"):
        return False
    return mark_of(where.shape, "state_read") is not None or mark_of(where.shape, "state_write") is not None


def items(where: Where, project: Project | None) -> Iterator[Item]:
    """Yield the paths that may follow; for one that is only written, those of `state_schema` that nobody writes yet."""
    value, at = where.text.value, where.text.at
    lead = 1 if value.startswith("{") and at else 0
    inner = value[lead:].removesuffix("}") if lead else value
    reference = path_at(inner, at - lead)
    if reference is None or reference.bracket:
        return
    reads = mark_of(where.shape, "state_read") is not None
    origins: Mapping[tuple[Part, ...], str] = dict(dataflow(where.document).declared.expected.items())
    for path, known in known_paths(where, reference.head, reference.word):
        if any(isinstance(part, int) for part in path) or (known.name == RESULTS and not reference.head):
            continue
        if not reads and (known.writers or origins.get((*reference.head, *path)) != "state_schema"):
            continue
        written = format_path(path)
        yield Item(
            written,
            "state",
            _edit(where, Span(reference.span.start + lead, reference.span.end + lead), written),
            detail_of(where, known),
            explained(reference.head, path),
            rank_of(where, known),
            additional=dependency_edits(where, known) if reads else (),
        )


def keys_apply(where: Where) -> bool:
    """Tell whether a key of `state` is being typed."""
    return where.kind == "key" and len(where.path) == 1 and mark_of(where.holder, "defines", "state") is not None


def keys(where: Where, project: Project | None) -> Iterator[Item]:
    """Yield the state keys that steps read and nobody writes."""
    written = {write.parts[0] for step in where.document.steps for write in step.facts.writes}
    readers: dict[str, str] = {}
    for step in where.document.steps:
        for place in step.facts.reads:
            if isinstance(place.parts[0], str):
                readers.setdefault(place.parts[0], step.id or "a step")
    for name, reader in readers.items():
        if name not in written and name not in present(where) and name != RESULTS and writable(name):
            yield key_item(where, name, f"read by {reader}", rank=3)


def _edit(where: Where, span: Span, text: str) -> Edit:
    if where.text.scalar is None:
        return Edit(where.span, before(where) + text)
    if span.start == span.end:
        return Edit(Span(where.offset, where.offset), text)
    return Edit(where.text.span(*span), text)
