"""Carrying out fixes until nothing is left to fix: for ``agentloom validate --fix`` and the editor's "fix all"."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from agentloom.analysis.document import WorkflowDocument
from agentloom.diagnostics import Diagnostic, Edit, Fix, Severity, apply_edits
from agentloom.text import Span

MOST_PASSES = 20
"""Rounds of fixing and checking again. One fix may show what another cures; more than a few rounds never help."""

Analyze = Callable[[str], WorkflowDocument]


class Fixed(NamedTuple):
    """What became of a document: the last version, what was cured on the way, by code, and the edits of each round, in order."""

    document: WorkflowDocument
    cured: Counter[str]
    rounds: tuple[tuple[Edit, ...], ...] = ()


def fix_all(
    document: WorkflowDocument,
    analyze: Analyze,
    unsafe: bool = False,
    wanted: Callable[[Diagnostic], bool] = lambda diagnostic: True,
) -> Fixed:
    """Return the document with every safe fix carried out (the others too when ``unsafe``), checked again by ``analyze``.

    Only diagnostics that are ``wanted`` are fixed. A fix that brings an error which wasn't there is left out, so a fixed text is
    never worse. The last version has nothing more to fix, but for what was left out.
    """
    cured: Counter[str] = Counter()
    rounds: list[tuple[Edit, ...]] = []
    seen = {document.source.text}
    for _ in range(MOST_PASSES):
        chosen = list(choose_fixes(document.diagnostics, unsafe, wanted))
        following = _carried_out(document, chosen, analyze)
        if following is None:
            following, chosen = _one_by_one(document, chosen, analyze)
        if following is None or following.source.text in seen:
            break
        seen.add(following.source.text)
        cured.update(diagnostic.code for diagnostic, _ in chosen)
        rounds.append(tuple(sorted(edit for _, fix in chosen for edit in fix.edits)))
        document = following
    return Fixed(document, cured, tuple(rounds))


def choose_fixes(
    diagnostics: Iterable[Diagnostic],
    unsafe: bool = False,
    wanted: Callable[[Diagnostic], bool] = lambda diagnostic: True,
) -> Iterable[tuple[Diagnostic, Fix]]:
    """Yield the first safe fix of each wanted diagnostic (its first fix when ``unsafe``), without those that touch one before."""
    taken: list[Span] = []
    done: set[Edit] = set()
    for diagnostic in diagnostics:
        fix = next((fix for fix in diagnostic.fixes if fix.safe or unsafe), None)
        if fix is None or not fix.edits or not wanted(diagnostic):
            continue
        if all(edit in done for edit in fix.edits):
            continue  # another diagnostic has the same cure
        if not any(_touch(edit.span, span) for edit in fix.edits for span in taken):
            taken.extend(edit.span for edit in fix.edits)
            done.update(fix.edits)
            yield diagnostic, fix


def _carried_out(
    document: WorkflowDocument, chosen: list[tuple[Diagnostic, Fix]], analyze: Analyze
) -> WorkflowDocument | None:
    """Return the document after some fixes; None when there are none, or when they bring an error."""
    if not chosen:
        return None
    text = apply_edits(document.source.text, [edit for _, fix in chosen for edit in fix.edits])
    following = analyze(text)
    return following if errors_of(following) <= errors_of(document) else None


def _one_by_one(
    document: WorkflowDocument, chosen: list[tuple[Diagnostic, Fix]], analyze: Analyze
) -> tuple[WorkflowDocument | None, list[tuple[Diagnostic, Fix]]]:
    """Return the document after the fixes that bring no error, and those fixes: halves are tried where a whole lot won't do."""
    good: list[tuple[Diagnostic, Fix]] = []
    result: WorkflowDocument | None = None
    lots = [chosen[: len(chosen) // 2], chosen[len(chosen) // 2 :]] if len(chosen) > 1 else []
    lots.reverse()
    while lots:
        lot = lots.pop()
        following = _carried_out(document, [*good, *lot], analyze)
        if following is not None:
            good.extend(lot)
            result = following
        elif len(lot) > 1:
            lots += [lot[len(lot) // 2 :], lot[: len(lot) // 2]]
    return result, good


def errors_of(document: WorkflowDocument) -> Counter[str]:
    """Return how many errors of each code a document has."""
    return Counter(d.code for d in document.diagnostics if d.severity is Severity.ERROR)


def _touch(one: Span, other: Span) -> bool:
    return (one.start < other.end and other.start < one.end) or one.start == other.start
