"""Whether everything that stands at a place through aliases means the name: a text may be a state key here and prose there."""

from __future__ import annotations

from collections.abc import Mapping

from agentloom.ide.hits import hit_at
from agentloom.ide.names.anchors import Anchored
from agentloom.ide.names.index import Index
from agentloom.ide.names.scope import Place
from agentloom.ide.names.world import World
from agentloom.ide.results import Refusal

MERGE = "<<"


def check_aliases(world: World, places: list[Place]) -> None:
    """Refuse when one of the places is used, through an alias, where it doesn't mean the name."""
    for index in world.loaded():
        marked = [anchored for anchored in index.anchors if anchored.defines]
        if not marked:
            continue
        aliases: dict[int, list[Anchored]] = {}
        for anchored in index.anchors:
            if not anchored.defines:
                aliases.setdefault(anchored.group, []).append(anchored)
        for place in places:
            if place.source is index.document.source and place.mention is not None:
                _check(index, place, marked, aliases)


def _check(index: Index, place: Place, marked: list[Anchored], aliases: Mapping[int, list[Anchored]]) -> None:
    todo = [place.span.start]
    seen: set[int] = set()
    while todo:
        at = todo.pop()
        for anchored in marked:
            if anchored.group in seen or anchored.whole is None or not anchored.whole.contains(at):
                continue
            seen.add(anchored.group)
            for alias in aliases.get(anchored.group, ()):
                if not _means(index, place, alias.span.start):
                    line = index.document.lines.line_of(alias.span.start) + 1
                    raise Refusal(
                        f"`*{alias.word}` in line {line} repeats this text where it means something else; write it out there first"
                    )
                todo.append(alias.span.start)


def _means(index: Index, place: Place, offset: int) -> bool:
    """Tell whether an alias stands in a field that names what the place names; what nobody knows or reads is fine."""
    hit = hit_at(index.document, offset)
    mention = place.mention
    if hit is None or mention is None or not hit.path:
        return True  # a whole step, which means everything that it means at its anchor
    field = str(hit.path[0])
    block = hit.facts.block
    if block is not None and field != MERGE and field not in block.fields:
        return True
    return index.mentions_node(hit.document, hit.step, None if field == MERGE else field, mention.node)
