"""Rules about routers: where they lead, and whether that place waits for them."""

from __future__ import annotations

from collections.abc import Iterator

from agentloom.analysis import edits
from agentloom.analysis.document import Facts, Step, WorkflowDocument
from agentloom.analysis.rules.expressions import conditions
from agentloom.analysis.symbols import Occurrence
from agentloom.analysis.values import suggest, undefined
from agentloom.diagnostics import Finding, Fix, Related
from agentloom.syntax.nodes import Mapping, Scalar
from agentloom.syntax.values import find
from agentloom.text import Span


def targets(facts: Facts) -> list[Occurrence]:
    """Return the places where a router names the steps it may pick."""
    return [
        o for o in facts.occurrences if o.kind == "step" and o.role == "refer" and not o.key.startswith("depends_on")
    ]


def _node_at(facts: Facts, key: str) -> Scalar | None:
    path = tuple(int(part) if part.isdigit() else part for part in key.split("."))
    node = find(facts.node, path)
    return node if isinstance(node, Scalar) else None


def unknown_target(document: WorkflowDocument) -> Iterator[Finding]:
    """A router leads to a step that doesn't exist.

    When the condition is true, the run would have nowhere to go.

    Correct the name, or define the step.
    """
    for step in document.steps:
        if step.type != "router":
            continue
        for place in targets(step.facts):
            if place.name in document.by_id or not place.name:
                continue  # an empty one has said so already (AL106)
            near = suggest(document, "step", place.name, step)
            message = undefined("step", place.name, near, "define it or choose another")
            node = _node_at(step.facts, place.key)
            fixes = (
                (Fix(f"change to `{near}`", edits.replace_value(node, near), safe=False),)
                if near and node is not None
                else ()
            )
            yield Finding("AL207", place.span, message, fixes=fixes).shift(step.base)


def ungated_target(document: WorkflowDocument) -> Iterator[Finding]:
    """A router picks a step that doesn't depend on it.

    Only steps that list the router in their `depends_on` wait for its choice; others run whatever it picks.

    Add the router to the step's `depends_on`.
    """
    for step in document.steps:
        if step.type != "router" or step.id is None:
            continue
        told: set[str] = set()
        for place in targets(step.facts):
            target = document.by_id.get(place.name)
            if target is None or place.name in told or step.id in target.needs:
                continue
            if target.id == step.id and target is not step:
                continue  # two steps of one id, which is told as that
            told.add(place.name)
            if any(
                need not in document.by_id and suggest(document, "step", need, target) == step.id
                for need in target.needs
            ):
                continue  # a misspelled `depends_on`, which says so itself
            if target is step:
                yield Finding(
                    "AL208",
                    step.place(place.span),
                    f"router `{step.id}` picks itself; choose a step that depends on it",
                )
                continue
            upstream = document.graph.is_upstream(place.name, step.id)
            if document.graph.is_upstream(step.id, place.name):
                message = (
                    f"`{place.name}` depends on `{step.id}` only through other steps, so picking it doesn't make it run; "
                    f"add `{step.id}` to its `depends_on`"
                )
            elif upstream:
                message = f"`{place.name}` runs before `{step.id}` picks it; choose a step that depends on `{step.id}`"
            else:
                message = (
                    f"`{place.name}` doesn't depend on `{step.id}`, so it runs whatever is picked; "
                    f"add `{step.id}` to its `depends_on`"
                )
            yield Finding(
                "AL208",
                step.place(place.span),
                message,
                related=(Related(target.name_span, f"`{place.name}` is here"),),
                fixes=() if upstream else _gate(target, step.id),
            )


def _gate(target: Step, router: str) -> tuple[Fix, ...]:
    node = target.facts.node
    if not isinstance(node, Mapping) or target.alias is not None:
        return ()
    added = edits.add_item(target.facts.unit.text, target.facts.fields, node, "depends_on", router)
    if not added:
        return ()
    moved = tuple(type(edit)(edit.span.shift(target.base), edit.text) for edit in added)
    return (Fix(f"make `{target.id}` depend on `{router}`", moved, safe=False),)


def branch_never_chosen(document: WorkflowDocument) -> Iterator[Finding]:
    """A step depends on a router that can never pick it.

    Whatever depends on a router runs only if the router picks it, so this step is always skipped, and so is everything after it.

    Make it a target or the default of the router, or take the router out of its `depends_on`.
    """
    picks: dict[str, set[str]] = {}
    for step in document.steps:
        if step.type == "router" and step.id is not None:
            names = {place.name for place in targets(step.facts)}
            if names and names <= document.by_id.keys():
                picks[step.id] = names
    if not picks:
        return
    for step in document.steps:
        if step.id is None:
            continue
        for place in step.facts.dependencies:
            names = picks.get(place.name, set())
            if names and step.id not in names and place.name != step.id:
                router = document.by_id[place.name]
                yield Finding(
                    "AL209",
                    step.place(place.span),
                    f"router `{place.name}` never picks `{step.id}`, so it is always skipped; make it a target of the router",
                    related=(Related(router.name_span, f"`{place.name}` picks from " + _listing(names)),),
                )


def _listing(names: set[str]) -> str:
    shown = sorted(names)
    more = f" and {len(shown) - 6} more" if len(shown) > 6 else ""
    return ", ".join(f"`{name}`" for name in shown[:6]) + more


def router_without_default(document: WorkflowDocument) -> Iterator[Finding]:
    """A router has conditions and no `default`.

    When no condition is true, the router fails, and the run with it. A last condition `True` is as good as a default, and so
    are two conditions of which one is always true, such as `state.done` and `not state.done`.

    Add a `default`.
    """
    for step in document.steps:
        facts = step.facts
        if step.type != "router" or facts.data.get("default") is not None:
            continue
        found = conditions(facts)
        told = {condition.canonical for condition in found}
        if not found or any(c.constant is True or not told.isdisjoint(c.opposites) for c in found):
            continue
        yield Finding(
            "AL210",
            facts.key_span("conditions"),
            "the run fails when none of the conditions is true; add a `default`",
            fixes=_last_as_default(document, facts),
        ).shift(step.base)


def _last_as_default(document: WorkflowDocument, facts: Facts) -> tuple[Fix, ...]:
    """Return the fix that makes the last condition's target the default."""
    named = [place.name for place in targets(facts) if place.key.startswith("conditions.")]
    if not named or named[-1] not in document.by_id or "default" in facts.fields or not isinstance(facts.node, Mapping):
        return ()
    source = edits.quoted(named[-1], flow=True)
    added = edits.add_entry(facts.unit.text, facts.node, "default", source, "conditions")
    return (Fix(f"add `default: {named[-1]}`", added, safe=False),) if added else ()


def unreachable_condition(facts: Facts) -> Iterator[Finding]:
    """A condition can never decide: an earlier one is the same, or always true.

    The first condition that is true wins, so this one has no effect.

    Remove it, or change the order.
    """
    seen: dict[str, Span] = {}
    always: Span | None = None
    for condition in conditions(facts):
        if always is not None:
            yield Finding(
                "AL211",
                condition.span,
                "an earlier condition is always true, so this one never decides; change their order",
                related=(Related(always, "this one is always true"),),
            )
        elif condition.canonical and condition.canonical in seen:
            yield Finding(
                "AL211",
                condition.span,
                "this repeats an earlier condition, so it never decides; change it or remove it",
                related=(Related(seen[condition.canonical], "the same condition"),),
            )
        if condition.canonical:
            seen.setdefault(condition.canonical, condition.span)
        if condition.plain_true and always is None:  # others that are always true are themselves the mistake (AL305)
            always = condition.span
