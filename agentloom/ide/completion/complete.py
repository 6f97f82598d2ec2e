"""The door of completion: what may stand at a place."""

from __future__ import annotations

from agentloom.analysis.document import WorkflowDocument
from agentloom.ide.completion.items import Item, distinct
from agentloom.ide.completion.sources import SOURCES
from agentloom.ide.completion.where import where
from agentloom.ide.results import Project


def complete(document: WorkflowDocument, offset: int, project: Project | None = None) -> list[Item]:
    """Return what may stand at an offset, in the order in which it should be shown."""
    place = where(document, offset)
    found = [item for source in SOURCES if source.applies(place) for item in source.items(place, project)]
    return sorted(distinct(found), key=lambda item: item.rank)
