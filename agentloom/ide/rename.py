"""Renaming steps, state keys, agents and anchors, in every file that means them; or the reason why that can't be done."""

from __future__ import annotations

from typing import NamedTuple

from agentloom.analysis.document import WorkflowDocument
from agentloom.diagnostics import Edit
from agentloom.ide.names.recordings import recorded
from agentloom.ide.names.scope import Name, Place
from agentloom.ide.names.world import World
from agentloom.ide.renaming.aliases import check_aliases
from agentloom.ide.renaming.legal import check_free, check_word
from agentloom.ide.renaming.origin import check_origin
from agentloom.ide.renaming.patterns import check_patterns
from agentloom.ide.renaming.reading import check_readable, check_spelling
from agentloom.ide.renaming.verdict import check_verdict
from agentloom.ide.results import Project, Refusal, TextEdits
from agentloom.text import Span


class Renamable(NamedTuple):
    """A name that can be changed: where it stands, and what it is."""

    span: Span
    word: str


def prepare_rename(document: WorkflowDocument, offset: int, project: Project | None = None) -> Renamable:
    """Return the name at an offset, if it can be changed. Raises ``Refusal`` with the reason otherwise."""
    found = _asked(World(document, project), offset)
    return Renamable(found.place.span, found.place.name.word)


def rename(document: WorkflowDocument, offset: int, word: str, project: Project | None = None) -> tuple[TextEdits, ...]:
    """Return the edits that give the thing named at an offset another name: those of this file first.

    Afterwards every file says the same as before, and has the same diagnostics. Raises ``Refusal`` where that can't be done.
    """
    world = World(document, project)
    place, names, places = _asked(world, offset)
    if word == place.name.word:
        return ()
    check_word(place.name, word)
    for name in names:
        check_free(world, name, word)
    check_patterns(world, names, word)
    check_spelling(places, word)
    if place.name.kind == "step":
        places = [*places, *_recorded(world, names, word)]
    edits = _edits(places, word)
    check_verdict(world, edits)
    return edits


class _Asked(NamedTuple):
    """What is to be renamed: the place that was pointed at, everything that means the same, and where that stands."""

    place: Place
    names: list[Name]
    places: list[Place]


def _asked(world: World, offset: int) -> _Asked:
    """Return what stands at an offset. Raises ``Refusal`` where it can't be renamed, whatever the new name is."""
    place = world.own.at(offset)
    if place is None:
        raise Refusal("nothing that can be renamed stands here; choose a step id, a state key, an agent or an anchor")
    names = world.same(place.name)
    check_origin(world, place, names)
    places = _places(world, place, names)
    check_readable(world, place, places)
    check_aliases(world, places)
    return _Asked(place, names, places)


def _places(world: World, place: Place, names: list[Name]) -> list[Place]:
    """Return the places to change. Of two steps with one id, references mean the first; the second is renamed alone."""
    if place.name.kind != "step":
        return world.places(names)
    if place.role == "define" and _is_second(place):
        return [place]
    return [found for found in world.places(names) if not (found.role == "define" and _is_second(found))]


def _is_second(place: Place) -> bool:
    mention = place.mention
    if mention is None or mention.where.step is None:
        return False
    first = mention.where.document.by_id.get(place.name.word)
    own = mention.where.step
    return first is not None and first is not own and (first.facts is not own.facts or first.base != own.base)


def _recorded(world: World, names: list[Name], word: str) -> list[Place]:
    """Return the keys of recordings to change."""
    found: list[Place] = []
    for name in names:
        for item in recorded(world, name):
            file = item.place.source.uri.rsplit("/", 1)[-1]
            if item.clash is not None:
                raise Refusal(
                    f"the recording `{file}` answers {item.clash} under this name, too; part the two there first"
                )
            if word.startswith("_"):
                raise Refusal(f"the recording `{file}` names this step, and takes no names that begin with `_`")
            found.append(item.place)
        if found and any(recorded(world, Name("step", name.scope, (word,)))):
            raise Refusal(f"a recording of this workflow has replies for `{word}` already; choose another name")
    return found


def _edits(places: list[Place], word: str) -> tuple[TextEdits, ...]:
    by_file: dict[str, tuple[Place, dict[Span, Edit]]] = {}
    for place in places:
        by_file.setdefault(place.source.uri, (place, {}))[1][place.span] = Edit(place.span, word)
    return tuple(
        TextEdits(first.source, tuple(edits[span] for span in sorted(edits))) for first, edits in by_file.values()
    )
