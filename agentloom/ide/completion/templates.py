"""Completion of state paths in templates: `{state.¦}`, `{na¦me}`, and `state.¦` as a whole argument."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentloom.diagnostics import Edit
from agentloom.ide.completion.arguments import whole
from agentloom.ide.completion.items import Item
from agentloom.ide.completion.marks import mark_of
from agentloom.ide.completion.variables import MOST_CURED, dependency_edits, detail_of, explained, known_paths, rank_of
from agentloom.ide.completion.where import Where
from agentloom.ide.references import Reference, reference_at
from agentloom.ide.results import Project
from agentloom.ide.state_paths import RESULTS
from agentloom.language.paths import Part, format_path
from agentloom.text import Span

_BEGINS = re.compile(r"(?:[:\-\[,]|\A|(?<!\S)[&!]\S*)[ \t]*\Z")

WEBHOOK = {
    "run_id": "the run's id",
    "step_id": "the gate's id",
    "workflow_name": "the workflow's name",
}
"""What the body of a webhook has besides the state."""


def applies(where: Where) -> bool:
    """Tell whether a text with placeholders is being typed."""
    if where.kind not in ("value", "item"):
        return False
    if mark_of(where.shape, "template_deep") is not None:
        return True
    return where.text.scalar is not None and mark_of(where.shape, "template") is not None


def items(where: Where, project: Project | None) -> Iterator[Item]:
    """Yield the paths that may follow what is typed."""
    bare = mark_of(where.shape, "template_deep") is not None
    if where.text.scalar is None:
        yield from _whole_values(where)
        return
    reference = reference_at(where.text.value, where.text.at, bare=bare)
    if reference is None or reference.bracket:
        return
    span = _span(where, reference)
    beginning = not reference.root and not reference.head and "state".startswith(reference.word)
    word = "" if beginning else reference.word
    for number, (path, known) in enumerate(known_paths(where, reference.head, word)):
        if reference.head == () and not reference.root:
            written = "state." + format_path(path)
        else:
            written = format_path(path)
        if where.flow and where.style == "plain" and not where.braced and any(isinstance(part, int) for part in path):
            continue  # brackets would need quotes
        results = known.name == RESULTS and not reference.head
        ids = reference.head == (RESULTS,) and len(path) == 1
        if ids:
            continue  # a step's result is read by `output` and `status`, which follow
        edit = _edit(span, path, written + ("." if results else _close(reference)))
        edit, quotes = (edit, ()) if results else _quoted(where, edit)  # the quotes come with what ends the path
        yield Item(
            label=written,
            kind="state",
            edit=edit,
            detail=detail_of(where, known),
            about=explained(reference.head, path),
            rank=6 if results else rank_of(where, known) + (len(path) > 1),
            filter=_filter(reference, written),
            additional=(*(dependency_edits(where, known) if number < MOST_CURED else ()), *quotes),
            retrigger=results,
        )
    mark = mark_of(where.shape, "template")
    if mark is not None and mark.of == "webhook" and not reference.root and not reference.head:
        for name, detail in WEBHOOK.items():
            edit, quotes = _quoted(where, _edit(span, (name,), name + _close(reference)))
            yield Item(name, "state", edit, detail, rank=4, additional=quotes)


def _whole_values(where: Where) -> Iterator[Item]:
    """Yield the paths that a value which isn't begun yet may be; one that can only be a mapping is none."""
    if where.shape is None or where.shape.types or where.style != "plain":
        return
    for path, known in known_paths(where, ()):
        if len(path) == 1 and known.name != RESULTS:
            written = "state." + format_path(path)
            yield Item(
                written,
                "state",
                whole(where, written),
                detail_of(where, known),
                explained((), path),
                rank=rank_of(where, known) + 4,
                additional=dependency_edits(where, known),
            )


def _filter(reference: Reference, written: str) -> str:
    """Return what typing is compared with: the name alone, when that is what is being typed."""
    if reference.root or not reference.word or "state".startswith(reference.word):
        return ""
    return written.removeprefix("state.")


def _close(reference: Reference) -> str:
    return "" if reference.closed else "}"


def _span(where: Where, reference: Reference) -> Span:
    """Return where the word stands that is typed."""
    if reference.span.start == reference.span.end:
        return Span(where.offset, where.offset)
    return where.text.span(*reference.span)


def _edit(span: Span, path: tuple[Part, ...], written: str) -> Edit:
    """Return the edit that writes a path in place of the word that is typed; brackets follow without the dot."""
    return Edit(Span(span.start - 1, span.end) if isinstance(path[0], int) else span, written)


def _quoted(where: Where, edit: Edit) -> tuple[Edit, tuple[Edit, ...]]:
    """Return an edit, and the quotes to be added around a text that begins with a brace and has none."""
    scalar = where.text.scalar
    if not where.braced or scalar is None:
        return edit, ()
    source, start = where.source, scalar.span.start
    line = max(source.rfind("\n", 0, start), source.rfind("\r", 0, start)) + 1
    if _BEGINS.search(source[line:start]) is None:
        return edit, ()  # something stands before it
    quote = next((quote for quote in "\"'" if quote not in scalar.raw), None)
    if quote is None or "\\" in scalar.raw or where.text.at > len(where.text.value):
        return edit, ()
    opening = Edit(Span(scalar.span.start, scalar.span.start), quote)
    end = scalar.span.end
    if where.flow:  # what follows the placeholder belongs to the brackets around it
        end = edit.span.end if edit.text.endswith("}") else where.source.find("}", edit.span.end, end) + 1 or end
    if edit.span.end == end:
        return edit._replace(text=edit.text + quote), (opening,)
    return edit, (opening, Edit(Span(end, end), quote))
