"""What may be done with a place in a file: fixes, suppressions, refactorings. Plain data; the edits are worked out when asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Literal, NamedTuple

from agentloom.analysis.document import WorkflowDocument
from agentloom.diagnostics import Diagnostic, Edit
from agentloom.ide.fixing import fix_all
from agentloom.ide.hits import hit_at, step_at
from agentloom.ide.refactor import extract, inline
from agentloom.ide.refactor.checked import rewritten
from agentloom.ide.refactor.lists import turned
from agentloom.ide.refactor.prompts import to_block, to_quotes
from agentloom.ide.refactor.retry import add_retry, can_be_retried
from agentloom.ide.results import Changes, Project, Refusal, TextEdits
from agentloom.ide.suppressing import suppress_here, suppress_in_file
from agentloom.text import Span

OfferKind = Literal["fix", "fix_all", "rewrite", "extract", "inline"]
KINDS: tuple[OfferKind, ...] = ("fix", "fix_all", "rewrite", "extract", "inline")


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


def offers(
    document: WorkflowDocument,
    span: Span,
    kinds: Collection[OfferKind] = KINDS,
    creates_files: bool = True,
    reasons: bool = True,
    project: Project | None = None,
) -> Iterator[Offer]:
    """Yield what may be done where the selection lies (an empty one is the cursor), in the order in which it should be shown.

    ``creates_files`` tells whether a new file may be part of it. Without ``reasons`` nothing is looked into that takes long: what
    can't be done may turn out later.
    """
    if "fix" in kinds:
        yield from _fixes(document, span)
    if "fix_all" in kinds and any(fix.safe for diagnostic in document.diagnostics for fix in diagnostic.fixes):
        yield Offer("fix_all", "Fix everything that is safe to fix", partial(_all, document), costly=True)
    if "rewrite" in kinds:
        yield from _rewrites(document, span)
    if "extract" in kinds:
        yield from _extractions(document, span, creates_files, reasons, project)
    if "inline" in kinds:
        yield from _inlinings(document, span, reasons, project)


def in_text(document: WorkflowDocument, edits: tuple[Edit, ...]) -> Changes:
    """Return edits of a document's own text as changes."""
    return (TextEdits(document.source, tuple(sorted(edits))),)


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


def _rewrites(document: WorkflowDocument, span: Span) -> Iterator[Offer]:
    hit = hit_at(document, span.start)
    owner = hit.document if hit is not None else document
    step = hit.step if hit is not None else step_at(document, span.start)
    if step is not None and can_be_retried(owner, step):
        title = f"Add a retry block to `{step.id}`" if step.id else "Add a retry block"
        yield Offer("rewrite", title, partial(add_retry, document, owner, step), costly=True)
    if hit is None:
        return
    for what, found in (
        ("Write `{}` as a block text", to_block(document, hit)),
        ("Write `{}` on one line", to_quotes(document, hit)),
        ("{}", turned(document, hit)),
    ):
        if found is not None:
            name, edits = found
            yield Offer("rewrite", what.format(name), partial(rewritten, document, edits), costly=True)


def _extractions(
    document: WorkflowDocument, span: Span, creates_files: bool, reasons: bool, project: Project | None
) -> Iterator[Offer]:
    ids = extract.steps_in(document, span)
    if not ids:
        return
    what = f"`{ids[0]}`" if len(ids) == 1 else f"{len(ids)} steps"
    refused = extract.why_not(document, ids) if reasons else None
    if creates_files and document.path is not None:
        changes = partial(extract.extract, document, ids, True, project)
        yield Offer("extract", f"Extract {what} to a subworkflow file", changes, costly=True, refused=refused)
    changes = partial(extract.extract, document, ids, False, project)
    yield Offer("extract", f"Extract {what} to a subworkflow in place", changes, costly=True, refused=refused)


def _inlinings(document: WorkflowDocument, span: Span, reasons: bool, project: Project | None) -> Iterator[Offer]:
    step = step_at(document, span.start)
    if step is None or step.type != "subworkflow" or step.id is None:
        return
    refused = inline.why_not(document, step) if reasons else None
    changes = partial(inline.inline, document, step, project)
    yield Offer("inline", f"Inline the subworkflow `{step.id}`", changes, costly=True, refused=refused)


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
            yield Offer("fix", title, partial(_all, document, code), found, costly=True)


def _all(document: WorkflowDocument, code: str | None = None) -> Changes:
    edits = fix_all(document, code)
    if not edits:
        raise Refusal("every one of these fixes would bring another error; make them one by one")
    return in_text(document, edits)
