"""The order of boxes within their ranks, with few crossings: medians swept up and down, then neighbours exchanged."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

MOST_SWEEPS = 24
ENOUGH_EDGES = 4_000
"""Edges of a drawing beyond which fewer sweeps have to do: nobody follows that many by eye."""

Ranks = list[list[str]]


def order_ranks(ranks: Sequence[Sequence[str]], above: Mapping[str, Sequence[str]]) -> Ranks:
    """Return the ranks in an order with few crossings. ``above`` has each one's neighbours in the rank before. Deterministic."""
    below: dict[str, list[str]] = {name: [] for rank in ranks for name in rank}
    for name, neighbours in above.items():
        for neighbour in neighbours:
            below[neighbour].append(name)
    edges = sum(map(len, above.values()))
    current = _first(ranks, below)
    best, fewest = current, crossings(current, above)
    for sweep in range(MOST_SWEEPS if edges <= ENOUGH_EDGES else 4):
        if fewest == 0:
            break
        current = _swept(current, above if sweep % 2 == 0 else below, down=sweep % 2 == 0)
        if edges <= ENOUGH_EDGES:
            current = _exchanged(current, above, below)
        count = crossings(current, above)
        if count < fewest:
            best, fewest = current, count
    return best


def _first(ranks: Sequence[Sequence[str]], below: Mapping[str, Sequence[str]]) -> Ranks:
    """Return an order in which what hangs together lies together: as met when going down from each box in turn."""
    rank_of = {name: at for at, rank in enumerate(ranks) for name in rank}
    found: Ranks = [[] for _ in ranks]
    seen: set[str] = set()
    for rank in ranks:
        for start in rank:
            todo = [start]
            while todo:
                name = todo.pop()
                if name not in seen:
                    seen.add(name)
                    found[rank_of[name]].append(name)
                    todo.extend(reversed(below[name]))
    return found


def _swept(ranks: Ranks, neighbours: Mapping[str, Sequence[str]], down: bool) -> Ranks:
    """Return each rank sorted by the medians of its neighbours in the rank before it; those without neighbours stay in place."""
    result = [list(rank) for rank in ranks]
    order = range(1, len(result)) if down else range(len(result) - 2, -1, -1)
    for at in order:
        before = {name: place for place, name in enumerate(result[at - 1 if down else at + 1])}
        middle = {name: _median(sorted(before[n] for n in neighbours[name])) for name in result[at]}
        moving = sorted((name for name in result[at] if neighbours[name]), key=lambda name: middle[name])
        queue = iter(moving)
        result[at] = [next(queue) if neighbours[name] else name for name in result[at]]
    return result


def _median(places: Sequence[int]) -> float:
    """Return the weighted median: it leans to the side where neighbours stand closer together."""
    if not places:
        return -1.0
    half = len(places) // 2
    if len(places) % 2:
        return float(places[half])
    if len(places) == 2:
        return (places[0] + places[1]) / 2
    left, right = places[half - 1] - places[0], places[-1] - places[half]
    return (places[half - 1] * right + places[half] * left) / (left + right) if left + right else float(places[half])


def _exchanged(ranks: Ranks, above: Mapping[str, Sequence[str]], below: Mapping[str, Sequence[str]]) -> Ranks:
    """Return the ranks after exchanging neighbours wherever that saves crossings."""
    place = {name: at for rank in ranks for at, name in enumerate(rank)}
    for _ in range(4):
        better = False
        for rank in ranks:
            for at in range(len(rank) - 1):
                one, other = rank[at], rank[at + 1]
                now = then = 0
                for side in (above, below):
                    left, right = [place[n] for n in side[one]], [place[n] for n in side[other]]
                    now += sum(a > b for a in left for b in right)
                    then += sum(b > a for a in left for b in right)
                if then < now:
                    rank[at], rank[at + 1] = other, one
                    place[one], place[other] = at + 1, at
                    better = True
        if not better:
            break
    return ranks


def crossings(ranks: Sequence[Sequence[str]], above: Mapping[str, Sequence[str]]) -> int:
    """Return how many pairs of edges cross; counted with a tree of sums, rank by rank."""
    total = 0
    for before, rank in itertools.pairwise(ranks):
        place = {name: at for at, name in enumerate(before)}
        size = len(before) + 1
        sums = [0] * (size + 1)
        met = 0
        for name in rank:
            ends = [place[neighbour] for neighbour in above[name]]
            for end in ends:
                at, passed = end + 1, 0
                while at > 0:
                    passed += sums[at]
                    at -= at & -at
                total += met - passed
            for end in ends:
                at = end + 1
                while at <= size:
                    sums[at] += 1
                    at += at & -at
            met += len(ends)
    return total
