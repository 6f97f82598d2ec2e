"""What a workflow will do, before it does it: layers, the critical path, the worst case, models and what they may cost, what flows.

Everything is read off the checked document; what can't be known is None and says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from agentloom.analysis.agents import called_by, find_agent
from agentloom.analysis.dataflow import Flow, dataflow
from agentloom.analysis.document import Step, WorkflowDocument
from agentloom.analysis.effort import Effort, Worst, effort
from agentloom.language.paths import Part, format_path
from agentloom.language.template import parse_template
from agentloom.model.catalogue import catalogue
from agentloom.providers.pricing import Price, PriceTable

TOKENS_AROUND = 16
"""Tokens that an API adds around the prompts of a call."""


class Calls(NamedTuple):
    """The model that a step calls. ``price`` is None for one without a price, which costs nothing here.

    ``bound`` is the most that all attempts of the step can cost, in US dollars; None where that can't be known, and ``why`` not.
    """

    model: str
    provider: str
    price: Price | None
    bound: float | None
    why: str = ""


class StepView(NamedTuple):
    """One step. ``layer`` counts from 1; ``reads`` and ``writes`` are state paths; ``critical`` says that it is on the critical path.

    ``below`` are the models that the steps of the workflow below call, each with how many do.
    """

    id: str
    type: str
    layer: int
    needs: tuple[str, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    effort: Effort
    critical: bool
    calls: Calls | None = None
    below: tuple[tuple[Calls, int], ...] = ()


class Overview(NamedTuple):
    """A workflow. ``bound`` is the most that a run can cost, in US dollars, without its budget; None where that can't be known."""

    name: str
    layers: tuple[tuple[str, ...], ...]
    steps: tuple[StepView, ...]
    critical: tuple[str, ...]
    worst: Worst
    budget: float | None
    timeout: float | None
    bound: float | None


def overview(document: WorkflowDocument, prices: PriceTable) -> Overview:
    """Return what a workflow without errors will do."""
    config = _mapping(document.head.data.get("config"))
    worst = effort(document)
    critical = critical_path(document)
    inherited = _Inherited(_or_default(config, "provider"), _or_default(config, "model"))
    on_it = frozenset(critical)
    steps: list[StepView] = []
    known: _Known = {}
    bound: float | None = 0.0
    for layer, names in enumerate(document.graph.layers, 1):
        for name in names:
            step = document.by_id[name]
            found = worst.efforts[name]
            calls, cost = _cost(document, step, found, inherited, prices, known)
            bound = None if bound is None or cost is None else bound + cost
            flows = _flows(document, step)
            inside = _child(document, step, inherited, prices, known)
            below = inside.calls if inside is not None else ()
            steps.append(StepView(name, step.type or "", layer, step.needs, *flows, found, name in on_it, calls, below))
    return Overview(
        str(document.head.data.get("name") or ""),
        document.graph.layers,
        tuple(steps),
        critical,
        worst,
        _number(config.get("budget_usd")),
        _number(config.get("timeout")) or None,
        bound,
    )


def critical_path(document: WorkflowDocument) -> tuple[str, ...]:
    """Return the chain of dependencies with the most steps; of several, the one that takes longest in the worst case."""
    worst = effort(document).efforts
    best: dict[str, tuple[int, float]] = {}
    before: dict[str, str | None] = {}
    for layer in document.graph.layers:
        for name in layer:
            chosen = max(document.graph.dependencies[name], key=lambda need: best.get(need, (0, 0.0)), default=None)
            hops, seconds = best.get(chosen, (0, 0.0)) if chosen is not None else (0, 0.0)
            best[name] = (hops + 1, seconds + (worst[name].total or worst[name].waiting))
            before[name] = chosen
    at = max(best, key=lambda name: best[name], default=None)
    chain: list[str] = []
    while at is not None:
        chain.append(at)
        at = before[at]
    return tuple(reversed(chain))


class _Inherited(NamedTuple):
    provider: str
    model: str


class _Child(NamedTuple):
    """A workflow below: the most that one attempt of it costs (None where that can't be known), and the models that it calls."""

    cost: float | None
    calls: tuple[tuple[Calls, int], ...]


_Known: TypeAlias = dict[tuple[int, _Inherited], _Child]


def _flows(document: WorkflowDocument, step: Step) -> tuple[tuple[str, ...], tuple[str, ...]]:
    flow = dataflow(document)
    reads = dict.fromkeys(format_path(parts) for parts in _reads(flow, step))
    writes = dict.fromkeys(format_path(write.parts) for write in flow.writes(step) if write.parts)
    return tuple(reads), tuple(writes)


def _reads(
    flow: Flow, step: Step, known: dict[int, dict[tuple[Part, ...], bool]] | None = None
) -> Iterator[tuple[Part, ...]]:
    """Yield what a step reads of the state, and what the workflow below it reads of the copy that it is given."""
    yield from (read.parts for read in flow.reads(step) if read.parts)
    child = flow.child(step)
    if child is None or child.outer is None or child.outer.isolated:
        return
    known = {} if known is None else known  # many steps may run the same file
    if id(child.document) not in known:
        known[id(child.document)] = dict(_from_above(dataflow(child.document), known))
    for parts, own in known[id(child.document)].items():
        if parts[0] not in child.outer.given and (not own or flow.reaching(step, parts).certainty != "never"):
            yield parts


def _from_above(flow: Flow, known: dict[int, dict[tuple[Part, ...], bool]]) -> Iterator[tuple[tuple[Part, ...], bool]]:
    """Yield what a workflow reads that may come from the one above it, and whether it has a value of its own for that."""
    for step in flow.document.steps:
        for parts in _reads(flow, step, known):
            found = flow.reaching(step, parts).certainty
            if parts[0] != "steps" and found != "always":
                yield parts, found == "declared"


def _cost(
    document: WorkflowDocument, step: Step, found: Effort, inherited: _Inherited, prices: PriceTable, known: _Known
) -> tuple[Calls | None, float | None]:
    """Return the model that a step calls, and the most that the step can cost."""
    block = step.facts.block
    if step.type == "subworkflow":
        inside = _child(document, step, inherited, prices, known)
        return None, None if inside is None or inside.cost is None else inside.cost * found.attempts
    if step.type == "agent":
        return _agent_cost(document, step, inherited, prices)
    if block is None or "model" not in block.fields:
        return None, 0.0
    model = step.facts.text("model") or inherited.model
    price = prices.find(model)
    if price is None:
        return Calls(model, inherited.provider, None, 0.0), 0.0
    bound, why = _bound(step, found, price)
    return Calls(model, inherited.provider, price, bound, why), bound


def _agent_cost(
    document: WorkflowDocument, step: Step, inherited: _Inherited, prices: PriceTable
) -> tuple[Calls | None, float | None]:
    """Return what an agent's own calls are priced at; how many it makes isn't known, and `max_cost_usd` is no bound: the last call crosses it."""
    found = find_agent(document, step.facts.text("agent") or "", document)
    if found is None:
        return None, None
    own = found.data.get("model")
    model = own if isinstance(own, str) else inherited.model
    price = prices.find(model)
    free = price is None and not any(True for _ in called_by(found.data))
    why = "" if free else "the number and size of its calls aren't known"
    bound = 0.0 if free else None
    return Calls(model, inherited.provider, price, bound, why), bound


def _bound(step: Step, found: Effort, price: Price) -> tuple[float | None, str]:
    """Return the most that all attempts of a step can cost, or why that can't be known."""
    data = step.facts.data
    if data.get("tools") or data.get("conversation") or data.get("attachments") or data.get("response_schema"):
        return None, "the number and size of its calls aren't known"
    if step.type != "llm_call":
        return None, "the size of what it is given isn't known"
    most = data.get("max_tokens")
    if not isinstance(most, int) or isinstance(most, bool):
        return None, "it has no `max_tokens`"
    prompts = [text for name in ("prompt", "system_prompt") if isinstance(text := data.get(name), str)]
    if any(parse_template(text).placeholders for text in prompts):
        return None, "the size of its prompt isn't known"
    # No tokenizer makes more tokens than there are bytes.
    tokens = sum(len(text.encode("utf-8", "replace")) for text in prompts) + TOKENS_AROUND
    return found.attempts * (tokens * price.input + most * price.output) / 1000, ""


def _child(
    document: WorkflowDocument, step: Step, inherited: _Inherited, prices: PriceTable, known: _Known
) -> _Child | None:
    """Return what a step's workflow below calls, looked at once however many steps run it; None without one, or when it runs itself."""
    child = document.children.get(step.id or "") if step.type == "subworkflow" else None
    if child is None or child.document is None or child.loop:
        return None
    inside = _inside(child.document, inherited)
    key = (id(child.document), inside)
    if key not in known:
        efforts = effort(child.document).efforts
        total: float | None = 0.0
        counts: dict[Calls, int] = {}
        for name, own in child.document.by_id.items():
            calls, cost = _cost(child.document, own, efforts[name], inside, prices, known)
            total = None if total is None or cost is None else total + cost
            below = _child(child.document, own, inside, prices, known)
            for one, number in ((calls, 1), *(below.calls if below is not None else ())):
                if one is not None:
                    counts[one] = counts.get(one, 0) + number
        known[key] = _Child(total, tuple(counts.items()))
    return known[key]


def _inside(child: WorkflowDocument, inherited: _Inherited) -> _Inherited:
    """Return what the steps of a workflow below inherit."""
    config = _mapping(child.head.data.get("config"))
    return _Inherited(str(config.get("provider") or inherited.provider), str(config.get("model") or inherited.model))


def _or_default(config: Mapping[str, Any], key: str) -> str:
    value = config.get(key)
    return str(catalogue().blocks["config"].fields[key].default if value is None else value)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def as_data(view: Overview) -> dict[str, Any]:
    """Return an overview as plain data, for ``agentloom plan --format json``; times in seconds, money in US dollars."""
    return {
        "version": 1,
        "name": view.name,
        "layers": [list(layer) for layer in view.layers],
        "critical_path": list(view.critical),
        "worst_case": {
            "seconds": view.worst.total,
            "waits": view.worst.waits,
            "unlimited": list(view.worst.unlimited),
        },
        "budget_usd": view.budget,
        "timeout": view.timeout,
        "cost_bound_usd": view.bound,
        "steps": [_step_data(step) for step in view.steps],
    }


def _step_data(step: StepView) -> dict[str, Any]:
    calls = step.calls
    return {
        "id": step.id,
        "type": step.type,
        "layer": step.layer,
        "depends_on": list(step.needs),
        "reads": list(step.reads),
        "writes": list(step.writes),
        "critical": step.critical,
        "attempts": step.effort.attempts,
        "attempts_inside": step.effort.inside,
        "waits": step.effort.waiting,
        "seconds": step.effort.total,
        "model": calls and calls.model,
        "provider": calls and calls.provider,
        "price_per_1k": calls and calls.price and {"input": calls.price.input, "output": calls.price.output},
        "cost_bound_usd": calls.bound if calls else None,
    }


def models_of(steps: Iterable[StepView]) -> Iterator[tuple[str, Calls, int]]:
    """Yield each model with how many steps call it, those of workflows below too, in the order in which they are first called."""
    found: dict[str, tuple[Calls, int]] = {}
    for step in steps:
        for own, number in ((step.calls, 1), *step.below):
            if own is not None:
                calls, count = found.get(own.model, (own, 0))
                found[own.model] = (calls, count + number)
    for model, (calls, count) in found.items():
        yield model, calls, count
