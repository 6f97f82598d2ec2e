"""Hints between the words of a text: what holds for a step without being written there.

Its layer, the model and provider that it inherits, how often and long it is tried in the worst case, and how it went in the last run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from agentloom.analysis.document import Located, Step, WorkflowDocument
from agentloom.analysis.effort import Effort, backoff_of, default_retries, effort_of
from agentloom.ide.last_run import LastRun, text_of
from agentloom.ide.links import resolve_path
from agentloom.ide.names.mentions import is_file
from agentloom.ide.nested import written_in
from agentloom.ide.prose import last_run
from agentloom.ide.prose.durations import duration
from agentloom.ide.prose.form import MOST_NAMES, Block, Code, Inline, Prose, listed, say
from agentloom.ide.results import Project
from agentloom.model.catalogue import Block as Described
from agentloom.model.catalogue import catalogue
from agentloom.providers.table import BY_NAME, home_of
from agentloom.syntax.nodes import Mapping as MappingNode
from agentloom.syntax.nodes import Scalar
from agentloom.syntax.values import find_key
from agentloom.text import Span

HintKind = Literal["layer", "model", "attempts", "run"]


class Hint(NamedTuple):
    """Words shown at a place of the text, which are no part of it, and what they mean."""

    offset: int
    label: str
    kind: HintKind
    tooltip: Prose


class _Inherited(NamedTuple):
    """Provider and model of steps that name none, and where each comes from, in words."""

    provider: str
    model: str
    provider_from: str
    model_from: str


def hints(
    document: WorkflowDocument,
    span: Span,
    kinds: Collection[HintKind],
    project: Project | None = None,
    last: LastRun | None = None,
) -> list[Hint]:
    """Return the hints of some kinds at the places of a span, in order; ``project`` is asked for the files of agents.

    ``last`` is the last run, of which the hints of the kind `run` tell.
    """
    asked = _Asked(span, kinds, project, last)
    found = [hint for hint in _of(document, None, asked) if span.contains(hint.offset)]
    return sorted(found, key=lambda hint: hint.offset)


class _Asked(NamedTuple):
    """What is wanted, and who can be asked about other files."""

    span: Span
    kinds: Collection[HintKind]
    project: Project | None
    last: LastRun | None


def _of(document: WorkflowDocument, parent: _Inherited | None, asked: _Asked, prefix: str = "") -> Iterator[Hint]:
    span, kinds = asked.span, asked.kinds
    inherited = _inherited(document, parent)
    if "attempts" in kinds:
        yield from _of_config(document)
    for step in document.steps:
        if step.alias is not None or step.id is None or document.by_id[step.id] is not step:
            continue
        start, end = step.place(step.facts.node.span)
        if start > span.end or end < span.start:
            continue
        if "layer" in kinds:
            yield from _layer(document, step, step.id)
        if "model" in kinds:
            yield from _model(document, step, inherited, asked.project)
        if "attempts" in kinds:
            yield from _attempts(document, step)
        if "run" in kinds and asked.last is not None:
            yield from _run(document, step, asked.last, f"{prefix}{step.id}")
        child = written_in(document, step)
        if child is not None:
            yield from _of(child, inherited, asked, f"{prefix}{step.id}.")


def _layer(document: WorkflowDocument, step: Step, name: str) -> Iterator[Hint]:
    """Yield a step's layer, behind its name; steps on or behind a cycle have none."""
    layer = document.graph.layer_of.get(name)
    place = _behind(step, "id")
    if layer is None or place is None:
        return
    said = f"Layer {layer + 1} of {len(document.graph.layers)}: "
    said += "it starts at once" if layer == 0 else "it starts when the layer before it is done"
    beside = document.graph.layers[layer]
    others = [other for other in beside[: MOST_NAMES + 1] if other != name][:MOST_NAMES]
    more = len(beside) - 1 - len(others)
    company: tuple[Inline, ...] = (", together with ", *listed(others)) if others else (", alone",)
    tooltip = say(said, *company, f" and {more} more." if more else ".")
    yield Hint(place, f"layer {layer + 1}", "layer", (tooltip,))


def _run(document: WorkflowDocument, step: Step, last: LastRun, path: str) -> Iterator[Hint]:
    """Yield how a step went in the last run, behind its name."""
    run, place = last.steps.get(path), _behind(step, "id")
    if run is not None and place is not None:
        yield Hint(place, last_run.label(run), "run", last_run.of_step(last, run, text_of(document, step)))


def _inherited(document: WorkflowDocument, parent: _Inherited | None) -> _Inherited:
    """Return what steps inherit; a workflow written in place takes what it doesn't say from the one around it."""
    config = document.head.data.get("config")
    found: list[tuple[str, str]] = []
    for at, name in enumerate(("provider", "model")):
        given = config.get(name) if isinstance(config, dict) else None
        if isinstance(given, str) and given:
            found.append((given, f"from `config.{name}`"))
        elif parent is not None:
            found.append((parent[at], _from_around(parent[at + 2])))
        else:
            default = catalogue().blocks["config"].fields[name].default
            found.append((str(default), "the default unless a workflow that runs this one sets another"))
    (provider, provider_from), (model, model_from) = found
    return _Inherited(provider, model, provider_from, model_from)


def _from_around(origin: str) -> str:
    return origin.replace("from `", "from the workflow around it: `", 1) if origin.startswith("from `") else origin


def _model(document: WorkflowDocument, step: Step, inherited: _Inherited, project: Project | None) -> Iterator[Hint]:
    """Yield model and provider of a step that calls one: behind its model if it names one, else behind its type."""
    block = step.facts.block
    field = _model_field(block)
    if block is None or (field is None and not _runs_agent(block)):
        return
    model, model_from = inherited.model, inherited.model_from
    if field is not None:
        own = step.facts.data.get(field)
        if isinstance(own, str) and own:
            place = _behind(step, field)
            provider = _provider(own, inherited.provider)
            if place is not None and provider is not None:
                yield Hint(place, provider, "model", (_served(own, provider, inherited),))
            return
        if own is not None:
            return
    else:
        name = step.facts.text("agent")
        agent = _agent(document, name, project) if name else None
        if agent is None:
            return
        if isinstance(agent.get("model"), str) and agent["model"]:
            model, model_from = agent["model"], f"from the agent `{name}`"
    place = _behind(step, "type")
    if place is None:
        return
    provider = _provider(model, inherited.provider)
    label = f"{model} ({provider})" if provider is not None else model
    tooltip: list[Block] = [say("Model ", Code(model), ", ", model_from, ".")]
    if provider is not None:
        tooltip.append(_served(model, provider, inherited))
    yield Hint(place, label, "model", tuple(tooltip))


def _agent(document: WorkflowDocument, name: str, project: Project | None) -> Mapping[str, Any] | None:
    """Return an agent's definition as plain values: the one of that name in the file, or that of a file; None when there is none."""
    agents = document.head.data.get("agents")
    found = agents.get(name, name) if isinstance(agents, dict) else name
    if isinstance(found, dict):
        return found
    path = resolve_path(document, found) if isinstance(found, str) and is_file(found) else None
    other = project.document(path) if project is not None and path is not None else None
    return other.head.data if other is not None and other.kind == "agent" else None


def _served(model: str, provider: str, inherited: _Inherited) -> Block:
    if provider == inherited.provider:
        return say("Provider ", Code(provider), ", ", inherited.provider_from, "; it is tried first.")
    return say(Code(inherited.provider), " doesn't serve ", Code(model), ", so ", Code(provider), " does.")


def _provider(model: str, preferred: str) -> str | None:
    """Return the provider that is asked first for a model; None when any that takes all models may be."""
    spec = BY_NAME.get(preferred)
    if spec is None or spec.serves(model):
        return preferred
    return home_of(model)


def _model_field(block: Described | None) -> str | None:
    for field in block.fields.values() if block is not None else ():
        if field.shape.mark("model") is not None:
            return field.name
    return None


def _runs_agent(block: Described) -> bool:
    marks = (field.shape.mark("ref") for field in block.fields.values())
    return any(mark is not None and mark.of == "agent" for mark in marks)


def _attempts(document: WorkflowDocument, step: Step) -> Iterator[Hint]:
    """Yield a step's worst case: behind its `retry`, and behind the type of a step that runs steps which are retried."""
    fields = step.facts.block.fields.values() if step.facts.block is not None else ()
    field = next((field.name for field in fields if field.shape.block == "retry"), None)
    located = step.facts.fields.get(field) if field is not None else None
    place = _head_end(step, located) if located is not None and located.via is None else None
    behind = _behind(step, "type") if step.id in document.children else None
    if place is None and behind is None:
        return
    worst = effort_of(document, step)
    if place is not None:
        yield Hint(place, _tries(worst.attempts, worst.waits), "attempts", tuple(_worst_case(worst)))
    if worst.inside > worst.attempts and behind is not None:
        tooltip = say(
            "Worst case: ", Code(".".join(worst.path)), f" is attempted {worst.inside:,} times, since this step runs it ",
            f"{worst.attempts} times, each time with its own retries.",
        )  # fmt: skip
        yield Hint(behind, f"up to {worst.inside:,} attempts inside", "attempts", (tooltip,))


def _of_config(document: WorkflowDocument) -> Iterator[Hint]:
    """Yield what `config.max_retries` means for a step that sets nothing itself."""
    retries, origin = default_retries(document)
    key = find_key(document.head.node, ("config", "max_retries")) if origin == "config" else None
    config = document.head.fields.get("config")
    if key is None or config is None or not isinstance(config.value, MappingNode):
        return
    value = next((entry.value for entry in config.value.entries if entry.key is key), None)
    if isinstance(value, Scalar):
        waits = backoff_of({}).longest_total(retries)
        tooltip = say(
            "The worst case of a step without a `retry` of its own: the first attempt, and ", _retries(retries), "."
        )
        yield Hint(value.span.end + document.base, _tries(retries + 1, waits), "attempts", (tooltip,))


def _worst_case(worst: Effort) -> Iterator[Block]:
    retries = worst.attempts - 1
    origins = {
        "retry": "from this block",
        "config": "from `config.max_retries`",
        "default": "the default",
        "type": f"since nothing that a `{worst.step.type}` does is tried again",
    }
    yield say("Worst case: the first attempt, and ", _retries(retries), ", ", origins[worst.origin], ".")
    if worst.waits > 0:
        yield say(f"The waits between them take up to {duration(worst.waits)} in all.")
    if worst.waits_asked > worst.waits:
        yield say(f"A provider that asks for more patience can make that {duration(worst.waits_asked)}.")
    if worst.total is not None and worst.limit:
        yield say(
            f"An attempt takes up to {duration(worst.limit)}, so the step takes up to {duration(worst.total)} in all."
        )


def _tries(attempts: int, waits: float) -> str:
    if attempts == 1:
        return "1 attempt"
    return f"up to {attempts:,} attempts" + (f", {duration(waits)} of waits" if waits > 0 else "")


def _retries(number: int) -> str:
    return "no retry" if number == 0 else "1 retry" if number == 1 else f"{number:,} retries"


def _behind(step: Step, name: str) -> int | None:
    """Return the document offset behind a field's value, if that is a word that stands in the step itself."""
    located = step.facts.fields.get(name)
    if located is None or located.via is not None or not isinstance(located.value, Scalar) or not located.value.raw:
        return None
    return located.value.span.end + step.base


def _head_end(step: Step, located: Located) -> int:
    """Return the document offset behind a block's colon, or behind the block where that stands on the same line."""
    key, value = located.key, located.value
    if isinstance(value, MappingNode) and not value.flow:
        return step.facts.unit.text.index(":", key.span.end) + 1 + step.base
    return max(key.span.end + 1, value.span.end) + step.base
