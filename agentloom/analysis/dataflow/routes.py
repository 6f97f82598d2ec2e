"""The search for a route: decisions of routers with which one step runs and none of some others does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from agentloom.analysis.dataflow.tables import Tables, bits

MOST_TRIES = 400
"""Decisions tried in one search; what takes more is not told."""


MOST_LOOKS = 40_000
"""Looks at a writer in all searches of one document: what comes after that isn't told."""


class Pick(NamedTuple):
    """A router and what it picks. ``loses`` is the step that doesn't run because of that."""

    router: str
    target: str
    loses: str


class TooMany(Exception):
    """The search took more tries than it may."""


def way_around(tables: Tables, needed: int, writers: Sequence[int]) -> tuple[Pick, ...] | None:
    """Return decisions with which a step that needs some edges runs and none of ``writers`` does; None when there are none.

    Nothing fails on these routes. Raises ``TooMany``, and where a router is too broken to tell what it picks.
    """
    allowed: dict[int, int] = {}
    for edge in bits(needed):
        router, target = tables.edges[edge]
        ways = tables.routers[router]
        if ways.targets is None:
            raise TooMany
        allowed[ways.group] = allowed.get(ways.group, ways.all) & ways.when.get(target, 0)
    found = _search(tables, allowed, list(writers), [0])
    if found is None:
        return None
    decided, trail = found
    picks: dict[str, Pick] = {}
    for edge, writer in trail:
        router = tables.edges[edge][0]
        ways = tables.routers[router]
        left = decided[ways.group]
        target = next((name for name, when in ways.when.items() if when & left), "")
        name = tables.steps[router].id or ""
        picks.setdefault(name, Pick(name, target, tables.steps[writer].id or ""))
    return tuple(picks.values())


def _search(
    tables: Tables, allowed: dict[int, int], writers: list[int], tries: list[int]
) -> tuple[dict[int, int], tuple[tuple[int, int], ...]] | None:
    """Return what may still be decided, and which edge isn't taken so that which writer doesn't run."""
    tries[0] += 1
    if tries[0] > MOST_TRIES:
        raise TooMany
    for at, writer in enumerate(writers):
        verdict, choices = _ways_past(tables, allowed, writer)
        if verdict == "runs":
            return None
        if verdict == "open":
            for edge, group, remaining in choices:
                found = _search(tables, {**allowed, group: remaining}, writers[at + 1 :], tries)
                if found is not None:
                    return found[0], ((edge, writer), *found[1])
            return None
    return allowed, ()


def _ways_past(
    tables: Tables, allowed: dict[int, int], writer: int
) -> tuple[Literal["runs", "gone", "open"], list[tuple[int, int, int]]]:
    """Tell whether a step runs whatever is still open, doesn't run at all, or which decisions keep it from running."""
    choices: list[tuple[int, int, int]] = []
    tables.spent += 1
    if tables.spent > MOST_LOOKS:
        raise TooMany
    for edge in bits(tables.needed[writer]):
        router, target = tables.edges[edge]
        ways = tables.routers[router]
        if ways.targets is None:
            raise TooMany
        now = allowed.get(ways.group, ways.all)
        when = ways.when.get(target, 0)
        if not now & when:
            return "gone", []
        if now & ~when:
            choices.append((edge, ways.group, now & ~when))
    return ("open", choices) if choices else ("runs", [])
