"""Every name of every file of the project, renamed and renamed back: examples, fixtures of all rules, files of mistakes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from agentloom.analysis.analyze import analyze
from agentloom.analysis.context import Context
from agentloom.analysis.document import WorkflowDocument
from agentloom.diagnostics import Edit, apply_edits
from agentloom.ide.names.index import index_of
from agentloom.ide.names.scope import Name, Place
from agentloom.ide.navigation import definition, highlights, references
from agentloom.ide.rename import rename
from agentloom.ide.renaming.legal import check_word
from agentloom.ide.renaming.verdict import OF_NAMES
from agentloom.ide.results import Refusal, TextEdits
from agentloom.text import Source, Span
from tests.house.corpus import files
from tests.rule_fixtures import read_fixture

FRESH = "qqqqqqqqqq"
"""Like no other name, so that no suggestion changes."""

FOLDERS = sorted({path.parent for path in files()})
NEAR = {"AL202/bad3.yaml"}
"""Where a misspelled name is near to the one that is renamed, and so explains what is told otherwise."""


def check(path: Path, text: str, changes: tuple[TextEdits, ...] = ()) -> WorkflowDocument:
    """Check a file, with other files as they are after some changes."""
    others = {change.source.uri: apply_edits(change.source.text, change.edits) for change in changes}
    read = Context().read_text
    context = Context(read_text=lambda other: others.get(str(other)) or read(other))
    return analyze(Source(str(path), text), context)


def every_place(document: WorkflowDocument) -> Iterator[tuple[Name, Place]]:
    """Yield each name that can be found in a document by pointing at it, with one of its places."""
    found: dict[Name, Place] = {}
    for offset in range(len(document.source.text)):
        place = index_of(document).at(offset)
        if place is not None:
            found.setdefault(place.name, place)
    yield from found.items()


def graph(document: WorkflowDocument, old: str = "", new: str = "") -> list[tuple[str | None, list[str]]]:
    """Return steps and their dependencies, one id exchanged for another."""

    def called(name: str) -> str:
        return new if name == old else name

    return [(step.id and called(step.id), [called(need) for need in step.needs]) for step in document.steps]


def told(document: WorkflowDocument, edits: tuple[Edit, ...] = ()) -> Counter[tuple[str, int, int]]:
    """Return codes and places of the diagnostics, as they are after some edits; what is said about names themselves left out."""

    def moved(offset: int, at_end: bool) -> int:
        shift = 0
        for edit in edits:
            if edit.span.end < offset or (edit.span.end == offset and at_end and edit.span.start < offset):
                shift += len(edit.text) - (edit.span.end - edit.span.start)
            elif edit.span.start < offset:
                return edit.span.start + shift  # somewhere in the name: its beginning will do
        return offset + shift

    return Counter(
        (found.code, moved(found.span.start, False), moved(found.span.end, True))
        for found in document.diagnostics
        if found.code not in OF_NAMES
    )


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_every_name_there_and_back(folder: Path) -> None:
    """After a rename the file has the same steps and diagnostics, and renaming back gives the same bytes; or there is a reason."""
    for path in files(str(folder)):
        if path.parent != folder:
            continue
        text = read_fixture(path)[0] if "fixtures" in path.parts else path.read_bytes().decode("utf-8", "replace")
        document = check(path, text)
        for name, place in every_place(document):
            try:
                changes = rename(document, place.span.start, FRESH)
            except Refusal:
                continue
            (own, *_) = changes
            assert own.source is document.source
            after = apply_edits(text, own.edits)
            again = check(path, after, changes)
            old, new = (name.word, FRESH) if name.kind == "step" else ("", "")
            twice = any(found.code == "AL201" for found in document.diagnostics)
            assert twice or graph(again) == graph(document, old, new), (path, name)
            if f"{folder.name}/{path.name}" not in NEAR:
                assert told(again) == told(document, own.edits), (path, name)
            try:
                check_word(name, name.word)
            except Refusal:
                continue  # what it was called is no legal name
            if twice:
                continue  # the other step of this id still has it
            start = start_after(place.span, own.edits)
            back = {change.source.uri: change for change in rename(again, start, name.word)}
            assert apply_edits(after, back[again.source.uri].edits) == text, (path, name)


def start_after(span: Span, edits: tuple[Edit, ...]) -> int:
    """Return where an edited span begins after the edits."""
    assert any(edit.span == span for edit in edits)
    return span.start + sum(
        len(edit.text) - (edit.span.end - edit.span.start) for edit in edits if edit.span.start < span.start
    )


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_no_text_is_too_broken(folder: Path) -> None:
    """Cut off or with a line taken out, a file answers every question at every place, or says why not."""
    for path in files(str(folder)):
        text = read_fixture(path)[0] if "fixtures" in path.parts else path.read_bytes().decode("utf-8", "replace")
        lines = text.splitlines(keepends=True)
        for number in range(0, len(lines), 7 if len(lines) < 40 else 29):
            whole = "".join(lines[:number])
            half = lines[number][: len(lines[number]) // 2]
            for broken in (
                whole + half,
                whole + "".join(lines[number + 1 :]),
                whole + "  - [\n" + "".join(lines[number:]),
            ):
                document = check(path, broken)
                for offset in range(len(whole), min(len(whole) + 60, len(broken) + 2), 5):
                    definition(document, offset)
                    references(document, offset)
                    highlights(document, offset)
                    with suppress(Refusal):
                        rename(document, offset, FRESH)
