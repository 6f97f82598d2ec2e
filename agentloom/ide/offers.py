"""What may be done with a place in a file: fixes, suppressions, refactorings. Plain data; the edits are worked out when asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Literal, NamedTuple

from agentloom.analysis.document import WorkflowDocument
from agentloom.diagnostics import Diagnostic, Edit
from agentloom.ide.fixing import Choose, first_fix_of, fix_all, safe_fix
from agentloom.ide.results import NewFile, TextEdits
from agentloom.ide.suppressing import suppress_here, suppress_in_file
from agentloom.text import Span

OfferKind = Literal["fix", "fix_all", "rewrite", "extract", "inline"]
KINDS: tuple[OfferKind, ...] = ("fix", "fix_all", "rewrite", "extract", "inline")
Changes = tuple[TextEdits | NewFile, ...]


class Offer(NamedTuple):
    """One thing that may be done.

    ``changes`` works it out, and may raise ``Refusal``; ``costly`` tells that this checks texts again, so that it should wait until the
    offer is taken. ``cures`` are the numbers of the document's diagnostics that it does away with. ``refused`` says why it can't
    be done here after all.
    """

    kind: OfferKind
    title: str
    changes: Callable[[], Changes]
    cures: tuple[int, ...] = ()
    preferred: bool = False
    costly: bool = False
    refused: str | None = None


def offers(document: WorkflowDocument, span: Span, kinds: Collection[OfferKind] = KINDS) -> Iterator[Offer]:
    """Yield what may be done where the selection lies (an empty one is the cursor), in the order in which it should be shown."""
    if "fix" in kinds:
        yield from _fixes(document, span)
    if "fix_all" in kinds and any(safe_fix(diagnostic) for diagnostic in document.diagnostics):
        yield Offer("fix_all", "Fix everything that is safe to fix", partial(_all, document, safe_fix), costly=True)


def in_text(document: WorkflowDocument, edits: tuple[Edit, ...]) -> Changes:
    """Return edits of a document's own text as changes."""
    return (TextEdits(document.source, edits),)


def _fixes(document: WorkflowDocument, span: Span) -> Iterator[Offer]:
    touched = [
        (number, diagnostic)
        for number, diagnostic in enumerate(document.diagnostics)
        if diagnostic.span.start <= span.end and diagnostic.span.end >= span.start
    ]
    for number, diagnostic in touched:
        for rank, fix in enumerate(diagnostic.fixes):
            changes = partial(in_text, document, fix.edits)
            yield Offer("fix", fix.title, changes, (number,), rank == 0 and fix.safe)
    yield from _same_fixes(document, touched)
    for number, diagnostic in touched:
        edits = suppress_here(document, diagnostic)
        if edits:
            title = f"Suppress {diagnostic.code} ({diagnostic.name}) here"
            yield Offer("fix", title, partial(in_text, document, edits), (number,))
    for code in dict.fromkeys(d.code for _, d in touched if suppress_here(document, d)):
        found = tuple(number for number, d in touched if d.code == code)
        edits = suppress_in_file(document, code)
        yield Offer("fix", f"Suppress {code} in this file", partial(in_text, document, edits), found)


def _same_fixes(document: WorkflowDocument, touched: list[tuple[int, Diagnostic]]) -> Iterator[Offer]:
    """Yield for each code under the selection that several places have: fix them all."""
    codes = dict.fromkeys(d.code for _, d in touched if d.fixes)
    if not codes:
        return
    counts = Counter(d.code for d in document.diagnostics if d.fixes)
    for code in codes:
        if counts[code] > 1:
            found = tuple(number for number, d in touched if d.code == code)
            title = f"Fix all {counts[code]} {code} in this file"
            yield Offer("fix", title, partial(_all, document, first_fix_of(code)), found, costly=True)


def _all(document: WorkflowDocument, choose: Choose) -> Changes:
    return in_text(document, fix_all(document, choose))
