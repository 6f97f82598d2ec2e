"""Rules about what steps write: two writers of one key, and keys that the state refuses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentloom.analysis.document import Step, WorkflowDocument, word_span
from agentloom.analysis.symbols import Occurrence
from agentloom.diagnostics import Finding, Related, Severity
from agentloom.language.paths import format_path
from agentloom.language.rendering import kind_of
from agentloom.syntax.values import find_key

RESERVED = "steps"
"""The state key under which the engine keeps results."""

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


def output_collision(document: WorkflowDocument) -> Iterator[Finding]:
    """Two steps that can run in the same layer write the same state key, or one writes below the other's.

    Which of them wins depends on their order in the file, not on anything that the graph says. Branches of one router that exclude
    each other are fine. With `strict_outputs: true` this is an error; so it always is for the `output` and the `conversation` of one step,
    which the engine refuses to write to one place.

    Write to different keys, or make one step depend on the other.
    """
    config = document.head.data.get("config")
    strict = isinstance(config, dict) and config.get("strict_outputs") is True
    groups: dict[tuple[int, Any], list[tuple[Step, Occurrence]]] = {}
    for step in document.steps:
        if step.id is None or document.by_id.get(step.id) is not step or step.id not in document.graph.layer_of:
            continue
        for write in step.facts.writes:
            groups.setdefault((document.graph.layer_of[step.id], write.parts[0]), []).append((step, write))
    crowded = [group for group in groups.values() if len(group) > 1]
    if not crowded:
        return
    choices = router_choices(document)
    for known in crowded:
        group = [(step, write) for step, write in known if _order_is_known(step, document)]
        for at, (step, write) in enumerate(group):
            for earlier, other in group[max(0, at - MOST_PEERS) : at]:
                shorter = min(len(write.parts), len(other.parts))
                if write.parts[:shorter] != other.parts[:shorter]:
                    continue
                if earlier is step:
                    yield Finding(
                        "AL404",
                        step.place(write.span),
                        "`output` and `conversation` of one step can't be one place; use another key",
                        severity=Severity.ERROR,
                    )
                    continue
                if exclusive(choices[step.id or ""], choices[earlier.id or ""]):
                    continue
                yield Finding(
                    "AL404",
                    step.place(write.span),
                    f"`{earlier.id}` {_also(write, other)} in the same layer; use different keys or add a dependency",
                    related=(Related(earlier.place(other.span), f"`{earlier.id}` writes `{other.name}` here"),),
                    severity=Severity.ERROR if strict else None,
                )
                break


def _order_is_known(step: Step, document: WorkflowDocument) -> bool:
    """Tell whether all that a step depends on is there: a misspelled dependency says nothing about its layer."""
    return all(need in document.by_id for need in step.needs)


def _also(write: Occurrence, other: Occurrence) -> str:
    """Return what another step does to what one writes."""
    if write.parts == other.parts:
        return f"also writes `{write.name}`"
    inside = len(other.parts) > len(write.parts)
    return f"writes `{other.name}`, which {'lies in' if inside else 'holds'} `{write.name}`,"


def write_through_scalar(document: WorkflowDocument) -> Iterator[Finding]:
    """An output path goes through a value that has no such place.

    `output: user.name` can't be written while `state.user` is a text, nor `items[5]` while `state.items` has two items: lists are
    never extended. The state refuses it, and the step fails. Behind a step that writes a text to `user` it is a warning: that step may
    have been skipped.

    Choose another key, or change the value in `state`.
    """
    state = document.head.data.get("state")
    state = state if isinstance(state, dict) else {}
    written = {write.parts for step in document.steps for write in step.facts.writes}
    for step in document.steps:
        for write in step.facts.writes:
            refused = _refused(state, write.parts)
            if refused is None or write.parts[0] == RESERVED:
                continue
            depth, why = refused
            if any(write.parts[:length] in written for length in range(1, depth + 1)):
                continue  # another step may have put something else there
            above = format_path(("state", *write.parts[:depth]))
            yield Finding(
                "AL406",
                step.place(write.span),
                f"`{write.name}` can't be written, since `{above}` {why}; choose another key",
            )
    yield from _below_texts(document)


def _below_texts(document: WorkflowDocument) -> Iterator[Finding]:
    """Yield outputs that lie below what a step before them writes, when that is a text."""
    deep = [(step, write) for step in document.steps for write in step.facts.writes if len(write.parts) > 1]
    if not deep:
        return
    from agentloom.analysis.outcomes import gives_text  # knows the data flow, which few files need here

    writers: dict[tuple[Any, ...], list[Step]] = {}
    for step in document.steps:
        for write in step.facts.writes:
            if write.key == "output":
                writers.setdefault(write.parts, []).append(step)
    for step, write in deep:
        for length in range(1, len(write.parts)):
            above = writers.get(write.parts[:length], ())
            first = next((other for other in above if document.graph.is_upstream(other.id or "", step.id or "")), None)
            if first is not None and all(gives_text(other) for other in above):
                name = format_path(write.parts[:length])
                yield Finding(
                    "AL406",
                    step.place(write.span),
                    f"`{write.name}` can't be written, since `{first.id}` writes a text to `{name}`; choose another key",
                    related=(Related(first.name_span, f"`{first.id}` gives a text"),),
                    severity=Severity.WARNING,
                )
                break


def _refused(state: Any, parts: Sequence[str | int]) -> tuple[int, str] | None:
    """Return at which depth the state refuses a path, and why: the same as ``agentloom.core.state`` does."""
    at: Any = state
    for depth, part in enumerate(parts):
        if isinstance(at, dict):
            if not isinstance(part, str):
                return depth, "is a mapping, which has no numbered items"
            if part not in at:
                index = next((n for n in range(depth + 1, len(parts)) if not isinstance(parts[n], str)), None)
                return None if index is None else (index, "doesn't exist, and lists are never made")
        elif isinstance(at, list):
            if isinstance(part, str):
                return depth, "is a list, whose items have numbers"
            if not -len(at) <= part < len(at):
                return depth, f"has {len(at)} {'item' if len(at) == 1 else 'items'}"
        else:
            return depth, f"is {kind_of(at)}"
        at = at[part]
    return None


def reserved_output(document: WorkflowDocument) -> Iterator[Finding]:
    """`steps` is written by a step, or set in `state`.

    The engine keeps every step's result there, under `steps.<id>`.

    Choose another key.
    """
    message = "`steps` is where results are kept; choose another key"
    for step in document.steps:
        for write in step.facts.writes:
            if write.parts[0] == RESERVED:
                yield Finding("AL407", step.place(write.span), message)
    located = document.head.fields.get("state")
    state = document.head.data.get("state")
    if located is not None and isinstance(state, dict) and RESERVED in state:
        key = find_key(located.value, (RESERVED,)) or located.key
        yield Finding("AL407", word_span(key).shift(document.base), message)
