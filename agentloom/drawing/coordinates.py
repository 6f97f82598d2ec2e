"""Horizontal coordinates after Brandes and Köpf, "Fast and Simple Horizontal Coordinate Assignment" (2002).

Four drawings, each leaning to another corner, are made and balanced: long arrows become straight, boxes stand in the middle of what
they are joined to, and nothing overlaps.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

Across = dict[str, float]
Gap = Callable[[str, str], float]


def place_across(
    ranks: Sequence[Sequence[str]],
    above: Mapping[str, Sequence[str]],
    widths: Mapping[str, float],
    long: set[str],
    gap: Gap,
) -> Across:
    """Return the middle of each box, in pixels. ``long`` are places of arrows that span several ranks; ``gap`` the least distance."""
    below: dict[str, list[str]] = {name: [] for rank in ranks for name in rank}
    for name, neighbours in above.items():
        for neighbour in neighbours:
            below[neighbour].append(name)
    bad = _conflicts(ranks, above, long)
    drawings: list[Across] = []
    for upward in (False, True):
        order = [list(rank) for rank in (reversed(ranks) if upward else ranks)]
        towards = below if upward else above
        for leftward in (False, True):
            turned = [list(reversed(rank)) for rank in order] if leftward else order
            root, align = _aligned(turned, towards, bad)
            found = _compacted(turned, root, align, widths, gap)
            drawings.append({name: -at for name, at in found.items()} if leftward else found)
    return _balanced(drawings, widths)


def _conflicts(
    ranks: Sequence[Sequence[str]], above: Mapping[str, Sequence[str]], long: set[str]
) -> set[tuple[str, str]]:
    """Return the edges that cross an inner piece of a long arrow: they have to give way."""
    bad: set[tuple[str, str]] = set()
    for before, rank in itertools.pairwise(ranks):
        place = {name: at for at, name in enumerate(before)}
        left, scanned = 0, 0
        for at, name in enumerate(rank):
            inner = next((n for n in above[name] if name in long and n.startswith("\0")), None)
            if inner is None and at < len(rank) - 1:
                continue
            right = place[inner] if inner is not None else len(before)
            for other in rank[scanned : at + 1]:
                for neighbour in above[other]:
                    if not left <= place[neighbour] <= right and not (other in long and neighbour.startswith("\0")):
                        bad.add((neighbour, other))
            scanned, left = at + 1, right
    return bad


def _aligned(
    ranks: Sequence[Sequence[str]], towards: Mapping[str, Sequence[str]], bad: set[tuple[str, str]]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return, for each box, the first of its column and the next one in it."""
    root = {name: name for rank in ranks for name in rank}
    align = dict(root)
    for before, rank in itertools.pairwise(ranks):
        place = {name: at for at, name in enumerate(before)}
        last = -1
        for name in rank:
            near = sorted(towards[name], key=place.__getitem__)
            if not near:
                continue
            half = (len(near) - 1) / 2
            for at in dict.fromkeys((int(half), int(half + 0.5))):
                neighbour = near[at]
                free = align[name] == name and last < place[neighbour]
                if free and (neighbour, name) not in bad and (name, neighbour) not in bad:
                    align[neighbour] = name
                    root[name] = root[neighbour]
                    align[name] = root[name]
                    last = place[neighbour]
    return root, align


def _compacted(
    ranks: Sequence[Sequence[str]],
    root: Mapping[str, str],
    align: Mapping[str, str],
    widths: Mapping[str, float],
    gap: Gap,
) -> Across:
    """Return coordinates with every column as far to the left as the ones before it allow, then pulled back to the right.

    Columns and their neighbours form a graph without rings; two passes over it, as in ELK and dagre, take the place of the
    paper's classes, which can leave overlaps.
    """
    after: dict[str, dict[str, float]] = {}
    entering: dict[str, int] = {}
    for rank in ranks:
        for name in rank:
            after.setdefault(root[name], {})
            entering.setdefault(root[name], 0)
        for one, other in itertools.pairwise(rank):
            a, b = root[one], root[other]
            need = (widths[one] + widths[other]) / 2 + gap(one, other)
            if b not in after[a]:
                entering[b] += 1
            after[a][b] = max(need, after[a].get(b, 0.0))
    order = [name for name, count in entering.items() if count == 0]
    at: Across = dict.fromkeys(order, 0.0)
    for name in order:
        for other, need in after[name].items():
            at[other] = max(at.get(other, 0.0), at[name] + need)
            entering[other] -= 1
            if entering[other] == 0:
                order.append(other)
    for name in reversed(order):
        room = min((at[other] - need for other, need in after[name].items()), default=at[name])
        at[name] = max(at[name], room)
    return {name: at[root[name]] for name in root}


def _balanced(drawings: Sequence[Across], widths: Mapping[str, float]) -> Across:
    """Return the mean of the two middle coordinates of four drawings, laid over the narrowest one."""
    if not drawings[0]:
        return {}

    def bounds(drawing: Across) -> tuple[float, float]:
        return min(x - widths[n] / 2 for n, x in drawing.items()), max(x + widths[n] / 2 for n, x in drawing.items())

    limits = [bounds(drawing) for drawing in drawings]
    narrowest = min(range(len(drawings)), key=lambda at: limits[at][1] - limits[at][0])
    shifts = [
        limits[narrowest][1] - limits[at][1] if at % 2 else limits[narrowest][0] - limits[at][0]
        for at in range(len(drawings))
    ]
    result: Across = {}
    for name in drawings[0]:
        found = sorted(drawing[name] + shift for drawing, shift in zip(drawings, shifts, strict=True))
        result[name] = (found[1] + found[2]) / 2
    return result
