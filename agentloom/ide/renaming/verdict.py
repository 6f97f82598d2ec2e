"""The last look at files in which one place may mean several things: with aliases, or broken ones."""

from __future__ import annotations

from collections import Counter

from agentloom.analysis.analyze import analyze
from agentloom.diagnostics import apply_edits
from agentloom.ide.names.index import Index
from agentloom.ide.names.world import World
from agentloom.ide.renaming.reading import is_broken
from agentloom.ide.results import Refusal, TextEdits

OF_NAMES = frozenset(("AL009", "AL107", "AL201", "AL401", "AL802"))
"""Codes of diagnostics about a name itself, which go with it; what is near to a name goes with it, too."""

MOST_CHECKED = 50_000
"""Code points of a file with aliases, but without faults, that is checked again: longer ones would take too long."""


def check_verdict(world: World, changes: tuple[TextEdits, ...]) -> None:
    """Refuse changes after which such a file would have other diagnostics than before."""
    for change in changes:
        index = next((i for i in world.loaded() if i.document.source.uri == change.source.uri), None)
        if index is None or not _is_odd(index):
            continue
        document = index.document
        text = apply_edits(document.source.text, change.edits)
        after = analyze(document.source._replace(text=text), document.context, None, document.kind)
        before, behind = (
            Counter(found.code for found in checked.diagnostics if found.code not in OF_NAMES)
            for checked in (document, after)
        )
        if before != behind:
            raise Refusal(
                "a value that stands behind an alias, or a broken line, means something else, too; write it out first"
            )


def _is_odd(index: Index) -> bool:
    return is_broken(index) or (bool(index.anchors) and len(index.document.source.text) <= MOST_CHECKED)
