"""The verdicts of the data flow against the real interpreter over all decisions and failures."""

from __future__ import annotations

import os
from random import Random

import pytest

from agentloom.analysis.dataflow import Flow, Reaching, dataflow
from agentloom.language.paths import Part
from tests.analysis.routes_oracle import World, joined, workflow

MOST_ROUTES = 600
GRAPHS = int(os.environ.get("AGENTLOOM_GRAPHS", "160"))


def verdicts(flow: Flow, prefix: str, world: World) -> dict[tuple[str, tuple[Part, ...]], Reaching]:
    """Return what is said about every read of a workflow and its children."""
    found: dict[tuple[str, tuple[Part, ...]], Reaching] = {}
    for step in flow.document.steps:
        path = f"{prefix}{step.id}"
        for parts in world.reads[path]:
            found[path, parts] = flow.reaching(step, parts)
        child = flow.child(step)
        if child is not None:
            found.update(verdicts(child, f"{path}.", world))
    return found


def disagreement(certainty: str, seen: set[bool]) -> str | None:
    """Return what is wrong with a verdict about a read that found a value on some routes (True), none on others (False)."""
    if not seen:
        return None  # the step never runs
    if certainty in ("always", "declared") and False in seen:
        return "is empty on a route"
    if certainty in ("never", "excluded", "unordered") and True in seen:
        return "has a value on a route"
    if certainty == "sometimes" and seen == {True}:
        return "has a value on every route"
    if certainty == "sometimes" and seen == {False}:
        return "is empty on every route"
    return None


@pytest.mark.parametrize("part", range(8))
def test_no_verdict_disagrees_with_the_interpreter(part: int) -> None:
    """*Always* is never empty, *never*, *excluded* and *unordered* always, *sometimes* on some routes and not on others."""
    done = told = 0
    seed = part
    while done < GRAPHS // 8:
        seed += 8
        make = joined if seed % 3 == 0 else workflow
        world = World(data := make(Random(seed)))
        if world.count > MOST_ROUTES:
            continue
        done += 1
        found = verdicts(dataflow(world.document), "", world)
        seen: dict[tuple[str, tuple[Part, ...]], set[bool]] = {place: set() for place in found}
        smooth: dict[tuple[str, tuple[Part, ...]], set[bool]] = {place: set() for place in found}
        for route in world.routes():
            for place, value in route.seen.items():
                seen[place].add(value)
                if not route.failed:
                    smooth[place].add(value)
        for place, reaching in found.items():
            told += reaching.certainty != "unknown" and bool(seen[place])
            wrong = disagreement(reaching.certainty, seen[place])
            assert wrong is None, f"seed {seed}: {place} is {reaching.certainty} and {wrong}\n{data}"
            if reaching.loss is not None and smooth[place] and not reaching.loss.child:
                # A loss by decisions needs no failure, and one by failures no decision.
                assert (False in smooth[place]) == bool(reaching.loss.picks), (
                    f"seed {seed}: {place} {reaching.loss}\n{data}"
                )
    assert told > done  # most reads are told about
