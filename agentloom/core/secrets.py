"""Secrets of a run: which keys are secret in it, and results with them taken out, or put back for a resume."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from agentloom.core.plan import Plan
from agentloom.core.preparation import Prepared
from agentloom.core.redaction import Redaction, is_sentinel, redaction_of, restored, secret_names, sentinel
from agentloom.core.results import JSON, StepResult
from agentloom.language.paths import MISSING, Part, get


def without_secret(result: StepResult, outputs: Mapping[str, tuple[Part, ...]], redaction: Redaction) -> StepResult:
    """Return a step's result without secrets."""
    output, value = told(result.output, result.value, outputs.get(result.step_id), redaction)
    same = output is result.output and value is result.value
    return result if same else replace(result, output=output, value=value)


def told(output: JSON, value: JSON, path: tuple[Part, ...] | None, redaction: Redaction) -> tuple[JSON, JSON]:
    """Return the output and the value of a step without secrets; ``path`` is where it writes to the state, if it does.

    A text that was parsed holds what its value holds: if there is a secret in that, the text is one as a whole.
    """
    if value is MISSING or not redaction:
        return redaction.output(output, path), value
    clean = redaction.output(value, path)
    return (output if clean == value else sentinel(output)), clean


def with_secrets(result: StepResult, plan: Plan, given: Mapping[str, JSON], prefix: str) -> StepResult:
    """Return a result of an earlier life of the run with the secrets in it that are known again.

    Those are values that were given for the resume, and the decisions of routers: they are the id of one of the steps.
    """
    output, value = result.output, result.value
    if result.step_id in plan.routers and is_sentinel(output):
        output = next((name for name in plan.needs if sentinel(name) == output), output)
    path = plan.outputs.get(result.step_id)
    if path is not None and value is not MISSING:
        value = restored(value, get(given, path), exact=bool(prefix))
    elif path is not None:
        output = restored(output, get(given, path), exact=bool(prefix))
    same = output is result.output and value is result.value
    return result if same else replace(result, output=output, value=value)


def redaction_for(prepared: Prepared, environ: Mapping[str, str]) -> Redaction:
    """Return the redaction of a run: what is secret in a workflow below is secret wherever its final state is passed on."""
    own = redaction_of(prepared.schema, environ)
    return redaction_of(prepared.schema, environ, below=_secrets_below(prepared, own))


def _secrets_below(prepared: Prepared, above: Redaction) -> Iterator[str]:
    for child in prepared.children.values():
        inside = redaction_of(child.schema, {}, above)
        yield from secret_names(child.schema)
        yield from inside.of_steps(child.plan.outputs)
        yield from _secrets_below(child, inside)
