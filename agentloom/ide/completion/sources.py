"""Who offers what: the table of completion's sources.

A source is a row: the kinds of place it has something for, and a function from the place to items. Rows are asked in order, and all
that apply are heard. To add one, write ``def items(where, project) -> Iterable[Item]`` in a module of this package and
add a row here; ``where.shape``, its marks, and ``where.text`` say what is meant, ``items.spell`` writes a whole value, and
``documentation.EXPLAINERS`` explains what ``Item.about`` names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from agentloom.ide.completion import (
    arguments,
    conditions,
    files,
    keys,
    names,
    paths,
    references,
    schemas,
    snippets,
    state_keys,
    suppressions,
    templates,
    values,
)
from agentloom.ide.completion.items import Item
from agentloom.ide.completion.where import Where
from agentloom.ide.results import Project


class Source(NamedTuple):
    """One row. ``applies`` is cheap; ``items`` may be asked only where it holds. ``project`` is None for a file alone."""

    name: str
    applies: Callable[[Where], bool]
    items: Callable[[Where, Project | None], Iterable[Item]]


SOURCES: tuple[Source, ...] = (
    Source("keys", keys.applies, keys.items),
    Source("state keys", state_keys.applies, state_keys.items),
    Source("snippets", snippets.applies, snippets.items),
    Source("values", values.applies, values.items),
    Source("anchors", values.anchors_apply, values.anchors),
    Source("steps", references.applies, references.items),
    Source("suppressions", suppressions.applies, suppressions.items),
    Source("templates", templates.applies, templates.items),
    Source("conditions", conditions.applies, conditions.items),
    Source("state paths", paths.applies, paths.items),
    Source("state keys to set", paths.keys_apply, paths.keys),
    Source("names", names.applies, names.items),
    Source("models", names.models_apply, names.models),
    Source("files", files.applies, files.items),
    Source("arguments", arguments.keys_apply, arguments.keys),
    Source("values of arguments", arguments.values_apply, arguments.values),
    Source("returned keys", arguments.returned_apply, arguments.returned),
    Source("schema keywords", schemas.keys_apply, schemas.keys),
    Source("values in schemas", schemas.values_apply, schemas.values),
)
