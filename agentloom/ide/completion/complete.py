"""The door of completion: what may stand at a place."""

from __future__ import annotations

from typing import NamedTuple

from agentloom.analysis.document import WorkflowDocument
from agentloom.ide.completion import keys, references
from agentloom.ide.completion.above import step_above
from agentloom.ide.completion.items import Item, distinct
from agentloom.ide.completion.sources import SOURCES
from agentloom.ide.completion.where import where
from agentloom.ide.results import Project

MOST = 400
"""Items in one answer."""
LATER = 9
"""The rank of new steps below one that isn't finished."""


class Completion(NamedTuple):
    """Items in the order in which they should be shown. ``complete`` is false when there are more, to be asked for as typing goes on."""

    items: list[Item]
    complete: bool = True


def complete(document: WorkflowDocument, offset: int, project: Project | None = None) -> list[Item]:
    """Return all that may stand at an offset, in the order in which it should be shown."""
    place = where(document, offset)
    above = step_above(place)
    found = [item for source in SOURCES if source.applies(place) for item in source.items(place, project)]
    if above is not None:
        found = [*keys.items(above), *(item._replace(rank=LATER) for item in found if item.kind != "key")]
    return sorted(distinct(found), key=lambda item: item.rank)


def answer(document: WorkflowDocument, offset: int, project: Project | None = None) -> Completion:
    """Return what to show at an offset, and whether that is all."""
    found = complete(document, offset, project)
    steps = sum(item.kind == "step" for item in found)
    return Completion(found[:MOST], len(found) <= MOST and steps < references.MOST)
