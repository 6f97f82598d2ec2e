"""The last check of a refactoring: what it makes is read again, and must be as good as what was there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from agentloom.analysis.analyze import analyze
from agentloom.analysis.document import WorkflowDocument
from agentloom.diagnostics import Edit, apply_edits
from agentloom.ide.results import Changes, NewFile, Refusal, TextEdits
from agentloom.syntax.values import plain_value
from agentloom.text import Source


def after(document: WorkflowDocument, edits: Iterable[Edit], made: Iterable[NewFile] = ()) -> WorkflowDocument:
    """Return the checked document that edits make, with new files beside it as if they were there already.

    Raises ``Refusal`` when the result has findings that weren't there before, in the file or in a new one.
    """
    source = document.source
    files = {file.path: file.text for file in made}
    result = _analyze(document, Source(source.uri, apply_edits(source.text, edits)), files)
    more = Counter(d.code for d in result.diagnostics) - Counter(d.code for d in document.diagnostics)
    told = [d for d in result.diagnostics if d.code in more]
    for path, text in files.items():
        told.extend(_analyze(document, Source(str(path), text), files).diagnostics)
    if told:
        raise Refusal(f"the result would have a fault that isn't there now: {told[0].code} {told[0].message}")
    return result


def rewritten(document: WorkflowDocument, edits: tuple[Edit, ...]) -> Changes:
    """Return edits that change how a text is written and nothing of what it says. Raises ``Refusal`` when they would."""
    result = after(document, edits)
    if plain_value(result.tree.root) != plain_value(document.tree.root):
        raise Refusal("the value would change")
    return (TextEdits(document.source, edits),)


def _analyze(document: WorkflowDocument, source: Source, files: Mapping[Path, str]) -> WorkflowDocument:
    context = document.context

    def read_text(path: Path) -> str:
        return files[path] if path in files else context.read_text(path)

    def exists(path: Path) -> bool:
        return path in files or context.exists(path)

    return analyze(source, replace(context, read_text=read_text, exists=exists), kind="workflow")
