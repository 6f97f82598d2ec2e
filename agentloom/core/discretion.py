"""What is secret in a run, for recordings: values as they become known, and where each step writes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from agentloom.core.plan import Plan
from agentloom.core.redaction import Redaction, is_sentinel, sentinel
from agentloom.core.results import JSON
from agentloom.core.state import STEPS
from agentloom.language.paths import Part, PathFault, parse_output_path
from agentloom.providers.hashes import json_of
from agentloom.providers.surroundings import Secrets
from agentloom.providers.table import HIDDEN_KEY

SHORTEST = 4
"""Characters of a value that is looked for inside of texts: shorter ones stand in many by chance."""


class _Workflow(NamedTuple):
    """One workflow of the run: its patterns, and the paths to which each step's reply is written."""

    redaction: Redaction
    outputs: Mapping[str, tuple[tuple[Part, ...], ...]]


class RunSecrets(Secrets):
    """The secrets of one run, in all its workflows. Learns them as the state grows."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._workflows: dict[str, _Workflow] = {}
        self._redaction = Redaction()

    def __bool__(self) -> bool:
        return bool(self._redaction)

    def enter(self, prefix: str, plan: Plan, redaction: Redaction, state: Mapping[str, JSON]) -> None:
        """Take in a workflow that begins to run: its patterns, and the secrets that its state starts from."""
        self._known.update((key, HIDDEN_KEY) for key in redaction.keys)
        if not redaction.patterns:
            return
        merged = dict.fromkeys([*self._redaction.patterns, *redaction.patterns])
        self._redaction = Redaction(tuple(merged))
        outputs = {step.id: tuple(_written(step.id, step, plan)) for layer in plan.layers for step in layer}
        self._workflows[prefix] = _Workflow(redaction, outputs)
        for key, value in state.items():
            if key != STEPS:
                self._learn(value, redaction.value(value, (key,)))

    def learn(self, path: str, output: JSON) -> None:
        """Take in what a step gave, if it is secret."""
        found = self._of(path)
        if found is not None:
            workflow, outputs = found
            for where in outputs:
                self._learn(output, workflow.redaction.output(output, where))

    def text(self, text: str) -> str:
        """Return a text with the secret values in it replaced; longer ones first, since one may be part of another."""
        for known, stands_for in sorted(self._known.items(), key=lambda item: -len(item[0])):
            if known in text:
                text = text.replace(known, stands_for)
        return text

    def value(self, value: JSON) -> JSON:
        """Return plain data without secrets."""
        return self.scrubbed(self._redaction.value(value))

    def reply(self, step: str, text: str, is_json: bool = False) -> str:
        """Return what a model said to a step, without what is secret where it will be written."""
        data = json_of(text) if is_json else None
        cleaned = self.result(step, text if data is None else data)
        if data is None:
            if cleaned is not text and cleaned != text:
                self._learn(text, cleaned)
            return str(cleaned)
        return text if cleaned == data else json.dumps(cleaned, ensure_ascii=False)

    def result(self, step: str, value: JSON) -> JSON:
        """Return what a tool gave to a step, without what is secret where it will be written."""
        found = self._of(step)
        if found is not None:
            workflow, outputs = found
            for where in outputs:
                value = workflow.redaction.output(value, where)
        return value

    def _of(self, step: str) -> tuple[_Workflow, tuple[tuple[Part, ...], ...]] | None:
        path = step.partition("::")[0]
        prefix, _, name = path.rpartition(".")
        workflow = self._workflows.get(f"{prefix}." if prefix else "")
        if workflow is None:
            return None
        return workflow, workflow.outputs.get(name, ())

    def _learn(self, value: JSON, cleaned: JSON) -> None:
        """Take in the values that stand where the cleaned ones have something else."""
        if isinstance(value, Mapping) and isinstance(cleaned, Mapping):
            for key, item in value.items():
                self._learn(item, cleaned.get(str(key)))
        elif isinstance(value, list) and isinstance(cleaned, list):
            for item, other in zip(value, cleaned, strict=False):
                self._learn(item, other)
        elif is_sentinel(cleaned) and value != cleaned and not isinstance(value, bool) and value is not None:
            text = str(value)
            if len(text) >= SHORTEST:
                self._known[text] = str(cleaned)

    def scrubbed(self, value: JSON) -> JSON:
        """Return plain data with the secret values in it replaced, under whatever key they stand."""
        if not self._known:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {key: self.scrubbed(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.scrubbed(item) for item in value]
        if isinstance(value, int | float) and not isinstance(value, bool) and str(value) in self._known:
            return sentinel(value)
        return value


def _written(name: str, step: object, plan: Plan) -> Iterator[tuple[Part, ...]]:
    """Yield where a step's reply goes: to its output, and into its conversation."""
    if name in plan.outputs:
        yield plan.outputs[name]
    conversation = getattr(step, "conversation", None)
    if isinstance(conversation, str):
        path = parse_output_path(conversation)
        if not isinstance(path, PathFault):
            yield path.parts
