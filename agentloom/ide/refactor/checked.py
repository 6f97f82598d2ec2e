"""The last check of a refactoring: what it makes is read again, and must be as good as what was there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from agentloom.analysis.analyze import analyze
from agentloom.analysis.document import FileKind, WorkflowDocument
from agentloom.diagnostics import Diagnostic, Edit, Severity, apply_edits
from agentloom.ide.results import Changes, NewFile, Refusal, TextEdits
from agentloom.syntax.values import plain_value
from agentloom.text import Source

UNREAD = "AL405"
"""A hint that waits until all names are known: it may come with what is moved, and says nothing about the result."""


def after(
    document: WorkflowDocument,
    edits: Iterable[Edit],
    made: Iterable[NewFile] = (),
    known: Iterable[Diagnostic] | None = None,
) -> WorkflowDocument:
    """Return the checked document that edits make, with new files beside it as if they were there already.

    Raises ``Refusal`` when the result has findings that weren't there before, in the file or in a new one. ``known`` are those of
    texts that come in; notes (of severity information) may then be new, since what was declared there is not declared here. Hints
    don't count: a file by itself can't know who reads what its steps write.
    """
    source = document.source
    files = {file.path: file.text for file in made}
    result = _analyze(document, Source(source.uri, apply_edits(source.text, edits)), files, document.kind or "workflow")
    found = list(result.diagnostics)
    for path, text in files.items():
        found.extend(_analyze(document, Source(str(path), text), files).diagnostics)
    before = Counter(d.code for d in (*document.diagnostics, *(known or ())))
    found = [d for d in found if d.code != UNREAD]
    more = Counter(d.code for d in found) - before
    # A note that each file has once may be there twice.
    notes = {code for code in more if before[code] or known is not None}
    harmless = (Severity.HINT, Severity.INFORMATION)
    told = next((d for d in found if d.code in more and d.severity not in harmless[: 1 + (d.code in notes)]), None)
    if told is not None:
        raise Refusal(f"the result would have a fault that isn't there now: {told.code} {told.message}")
    return result


def rewritten(document: WorkflowDocument, edits: tuple[Edit, ...]) -> Changes:
    """Return edits that change how a text is written and nothing of what it says. Raises ``Refusal`` when they would."""
    result = after(document, edits)
    if plain_value(result.tree.root) != plain_value(document.tree.root):
        raise Refusal("the value would change")
    return (TextEdits(document.source, edits),)


def _analyze(
    document: WorkflowDocument, source: Source, files: Mapping[Path, str], kind: FileKind = "workflow"
) -> WorkflowDocument:
    context = document.context

    def read_text(path: Path) -> str:
        return files[path] if path in files else context.read_text(path)

    def exists(path: Path) -> bool:
        return path in files or context.exists(path)

    return analyze(source, replace(context, read_text=read_text, exists=exists), kind=kind)
