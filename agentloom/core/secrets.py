"""Secrets of a run: which keys are secret in it, and results with them taken out, or put back for a resume."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agentloom.analysis.document import WorkflowDocument
from agentloom.core.definition import definition_below
from agentloom.core.plan import Plan
from agentloom.core.preparation import Prepared
from agentloom.core.redaction import (
    Redaction,
    is_sentinel,
    redaction_of,
    restored,
    restored_whole,
    secret_names,
    sentinel,
)
from agentloom.core.results import JSON, StepResult
from agentloom.core.state import STEPS
from agentloom.language.paths import MISSING, Part, StatePath, get, parse_path
from agentloom.providers.table import keys_in

if TYPE_CHECKING:
    from agentloom.model.workflow import Workflow


def places_of(plan: Plan, redaction: Redaction) -> Mapping[str, tuple[Part, ...]]:
    """Return where the output of each step stands in the state besides `steps`: at its `output`, else in its conversation, if that is secret."""
    talks = {
        name: path for name, path in plan.conversations.items() if name not in plan.outputs and redaction.names(path)
    }
    return {**plan.outputs, **talks} if talks else plan.outputs


def untold_steps(prepared: Prepared, redaction: Redaction) -> Mapping[str, bool]:
    """Return the ids of the steps, each with true, whose replies nobody is told of while they are written.

    Those are secrets as a whole, or JSON in which a value may be one: no pattern can be held against a piece of it.
    """
    if not redaction.patterns:
        return {}
    plan = prepared.plan
    found = {name: True for name, path in places_of(plan, redaction).items() if redaction.names(path)}
    for layer in plan.layers:
        for step in layer:
            has_form = step.type == "llm_call" and step.response_schema is not None
            if step.type == "agent":
                has_form = prepared.agents[step.agent].definition.output_schema is not None
            if has_form:
                found[step.id] = True
    return found


def without_secret(result: StepResult, plan: Plan, redaction: Redaction) -> StepResult:
    """Return a step's result without secrets."""
    if not redaction:
        return result
    output, value = told(result.output, result.value, places_of(plan, redaction).get(result.step_id), redaction)
    talk = result.conversation
    if talk is not MISSING:
        talk = redaction.output(talk, plan.conversations[result.step_id])
    return replace(result, output=output, value=value, conversation=talk)


def told(output: JSON, value: JSON, path: tuple[Part, ...] | None, redaction: Redaction) -> tuple[JSON, JSON]:
    """Return the output and the value of a step without secrets; ``path`` is where it writes to the state, if it does.

    A text that was parsed holds what its value holds: if there is a secret in that, the text is one as a whole.
    """
    if value is MISSING or not redaction:
        return redaction.output(output, path), value
    clean = redaction.output(value, path)
    return (output if clean == value else sentinel(output)), clean


def with_secrets(
    result: StepResult, plan: Plan, given: Mapping[str, JSON], prefix: str, redaction: Redaction
) -> StepResult:
    """Return a result of an earlier life of the run with the secrets in it that are known again.

    Those are values that were given for the resume, and the decisions of routers: they are the id of one of the steps.
    """
    output, value = result.output, result.value
    if result.step_id in plan.routers and is_sentinel(output):
        output = next((name for name in plan.needs if sentinel(name) == output), output)
    path = plan.outputs.get(result.step_id)
    if path is not None and value is not MISSING:
        value = _known_again(value, given, path, prefix, redaction)
    elif path is not None:
        output = _known_again(output, given, path, prefix, redaction)
    talk = result.conversation
    if talk is not MISSING and result.step_id in plan.conversations:
        talk = _known_again(talk, given, plan.conversations[result.step_id], prefix, redaction)
    same = output is result.output and value is result.value and talk is result.conversation
    return result if same else replace(result, output=output, value=value, conversation=talk)


def _known_again(
    value: JSON, given: Mapping[str, JSON], path: tuple[Part, ...], prefix: str, redaction: Redaction
) -> JSON:
    """Return what stands at a path of the state, with the secrets that were given; a child, by its ``prefix``, was given none by itself."""
    known = get(given, path)
    if redaction.names(path) and not prefix:
        return restored_whole(value, known)
    return restored(value, known, exact=bool(prefix))


def redacted_in_result(
    path: str, result: Mapping[str, JSON], definition: Mapping[str, Any], given: Mapping[str, JSON]
) -> Iterator[str]:
    """Yield the names of what is redacted in the result of a step that isn't going to run again, and isn't in ``given``.

    ``path`` is the step's, ``result`` as a checkpoint has it, ``definition`` that of the whole run. What a step wrote to the state is named
    by its state key.
    """
    above, _, name = path.rpartition(".")
    within = definition_below(definition, above) if above else definition
    step: Mapping[str, Any] = next((step for step in within.get("steps") or () if step.get("id") == name), {})
    if step.get("type") == "router":
        return  # known again by the steps' ids
    rules: Mapping[str, Any] = within.get("state_schema") or {}
    redaction = Redaction(tuple(key for key, rule in rules.items() if isinstance(rule, Mapping) and rule.get("redact")))
    found, label = result.get("output"), f"{STEPS}.{path}.output"
    written = step.get("output")
    where = parse_path(written) if isinstance(written, str) else None
    if isinstance(where, StatePath):
        label, found = str(written), _known_again(result.get("value", found), given, where.parts, above, redaction)
    yield from Redaction().secret_keys({label: found})
    talk, kept = result.get("conversation"), step.get("conversation")
    place = parse_path(kept) if isinstance(kept, str) else None
    if talk is not None and isinstance(place, StatePath):
        yield from Redaction().secret_keys({str(kept): _known_again(talk, given, place.parts, above, redaction)})


def redaction_for(prepared: Prepared, environ: Mapping[str, str], keys: tuple[str, ...] = ()) -> Redaction:
    """Return the redaction of a run: what is secret in a workflow below is secret wherever its final state is passed on.

    ``keys`` are those of providers, which stand nowhere that is kept or told.
    """
    own = redaction_of(prepared.schema, environ)
    return redaction_of(prepared.schema, environ, below=_secrets_below(prepared, own), keys=keys)


def keys_for(workflow: WorkflowDocument | Workflow, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the keys of providers that the environment holds, those included whose variables the workflow's settings name."""
    tables = workflow.context.settings.providers.values() if isinstance(workflow, WorkflowDocument) else ()
    return keys_in(environ, tables)


def _secrets_below(prepared: Prepared, above: Redaction) -> Iterator[str]:
    for child in prepared.children.values():
        inside = redaction_of(child.schema, {}, above)
        yield from secret_names(child.schema)
        yield from inside.of_steps(child.plan.outputs)
        yield from _secrets_below(child, inside)
