"""Rules about what steps write: two writers of one key, and keys that the state refuses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentloom.analysis.document import Step, WorkflowDocument
from agentloom.analysis.symbols import Occurrence
from agentloom.diagnostics import Finding, Related, Severity

MOST_CHOICES = 64
"""Router choices remembered per step; workflows with more routers in a row are told less."""

MOST_PEERS = 20
"""Earlier writers that one step is compared with."""

Choices = Mapping[str, str]


def router_choices(document: WorkflowDocument) -> dict[str, Choices]:
    """Return for each step which choice of which router it needs: ``{step: {router: step that it must pick}}``."""
    found: dict[str, dict[str, str]] = {}
    for layer in document.graph.layers:
        for name in layer:
            needs = document.graph.dependencies[name]
            merged: dict[str, str] = {}
            for need in needs:
                above = found.get(need)
                if above:
                    if not merged and len(needs) == 1:
                        merged = above
                    else:
                        merged = {**merged, **above}
            routers = [n for n in needs if document.by_id[n].type == "router"]
            if routers:
                merged = {**merged, **dict.fromkeys(routers, name)}
            if len(merged) > MOST_CHOICES:
                merged = dict(list(merged.items())[-MOST_CHOICES:])
            found[name] = merged
    return dict(found)


def exclusive(a: Choices, b: Choices) -> bool:
    """Tell whether two steps can't both run: they need different choices of one router."""
    if len(b) < len(a):
        a, b = b, a
    return any(b.get(router, choice) != choice for router, choice in a.items())


def writes_of(step: Step) -> list[Occurrence]:
    """Return what a step writes: its `output`, and the conversation that it keeps."""
    return [o for o in step.facts.occurrences if o.kind == "state" and o.role == "write" and o.parts]


def output_collision(document: WorkflowDocument) -> Iterator[Finding]:
    """Two steps that can run in the same layer write the same state key, or one writes below the other's.

    Which of them wins depends on their order in the file, not on anything that the graph says. Branches of one router that exclude
    each other are fine. With `strict_outputs: true` this is an error.

    Write to different keys, or make one step depend on the other.
    """
    config = document.head.data.get("config")
    strict = isinstance(config, dict) and config.get("strict_outputs") is True
    groups: dict[tuple[int, Any], list[tuple[Step, Occurrence]]] = {}
    for step in document.steps:
        if step.id is None or document.by_id.get(step.id) is not step or step.id not in document.graph.layer_of:
            continue
        if not _order_is_known(step, document):
            continue
        for write in writes_of(step):
            groups.setdefault((document.graph.layer_of[step.id], write.parts[0]), []).append((step, write))
    crowded = [group for group in groups.values() if len(group) > 1]
    if not crowded:
        return
    choices = router_choices(document)
    for group in crowded:
        for at, (step, write) in enumerate(group):
            for earlier, other in group[max(0, at - MOST_PEERS) : at]:
                shorter = min(len(write.parts), len(other.parts))
                if earlier is step or write.parts[:shorter] != other.parts[:shorter]:
                    continue
                if exclusive(choices[step.id or ""], choices[earlier.id or ""]):
                    continue
                what = "also writes" if write.parts == other.parts else "writes into or around"
                yield Finding(
                    "AL404",
                    step.place(write.span),
                    f"`{earlier.id}` {what} `{write.name}` in the same layer; use different keys or add a dependency",
                    related=(Related(earlier.place(other.span), f"`{earlier.id}` writes `{other.name}` here"),),
                    severity=Severity.ERROR if strict else None,
                )
                break


def _order_is_known(step: Step, document: WorkflowDocument) -> bool:
    """Tell whether all that a step depends on is there: a misspelled dependency says nothing about its layer."""
    needs = step.facts.data.get("depends_on")
    return not isinstance(needs, list) or all(need in document.by_id for need in needs if isinstance(need, str))


def write_through_scalar(document: WorkflowDocument) -> Iterator[Finding]:
    """An output path goes through a value that has no keys.

    `output: user.name` can't be written while `state.user` is a text: the state refuses it, and the step fails after its work.

    Choose another key, or make the value in `state` a mapping.
    """
    state = document.head.data.get("state")
    if not isinstance(state, dict):
        return
    for step in document.steps:
        for write in writes_of(step):
            value: Any = state
            for at, part in enumerate(write.parts[:-1]):
                value = _below(value, part)
                if value is None:
                    break
                following = write.parts[at + 1]
                if isinstance(value, dict) and isinstance(following, str):
                    continue
                if isinstance(value, list) and isinstance(following, int):
                    continue
                above = ".".join(str(p) for p in write.parts[: at + 1])
                kind = (
                    "a list"
                    if isinstance(value, list)
                    else "a mapping"
                    if isinstance(value, dict)
                    else "a single value"
                )
                yield Finding(
                    "AL406",
                    step.place(write.span),
                    f"`{write.name}` can't be written, `state.{above}` is {kind}; choose another key",
                )
                break


def _below(value: Any, part: str | int) -> Any:
    if isinstance(value, dict) and isinstance(part, str):
        return value.get(part)
    if isinstance(value, list) and isinstance(part, int) and -len(value) <= part < len(value):
        return value[part]
    return None


def reserved_output(document: WorkflowDocument) -> Iterator[Finding]:
    """`steps` is written by a step, or set in `state`.

    The engine keeps every step's result there, under `steps.<id>`.

    Choose another key.
    """
    for step in document.steps:
        for write in writes_of(step):
            if write.parts[0] == "steps":
                yield Finding("AL407", step.place(write.span), "`steps` is where results are kept; choose another key")
    located = document.head.fields.get("state")
    state = document.head.data.get("state")
    if located is not None and isinstance(state, dict) and "steps" in state:
        from agentloom.syntax.values import find_key

        key = find_key(located.value, ("steps",))
        span = key.span if key is not None else located.key.span
        yield Finding("AL407", span.shift(document.base), "`steps` is where results are kept; choose another key")
