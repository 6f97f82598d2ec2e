"""Workflows written in Python: the structure of a file, step by step, and the same check at the end.

What is wrong is told at the line of Python that wrote it.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agentloom.analysis.document import WorkflowDocument
from agentloom.core.loader import load_data
from agentloom.core.plain import NotPlain, plain
from agentloom.diagnostics import Diagnostic, Severity
from agentloom.errors import InvalidWorkflow, UsageError

_SHOWN = 5

log = logging.getLogger(__name__)


class _Place(NamedTuple):
    """A line of a program."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class WorkflowBuilder:
    """A workflow that is being written; ``workflow`` begins one. Every method but ``build`` and ``to_dict`` returns the builder.

    Fields have the names and values that they have in a file; what isn't a parameter of a method is given by name as well. Values are
    copied: what a program changes afterwards changes no workflow. Raises ``UsageError`` for values that are no plain data.
    """

    def __init__(self, name: str, description: str = "", **config: Any) -> None:
        self._head: dict[str, Any] = {"name": name}
        if description:
            self._head["description"] = description
        if config:
            self._head["config"] = _copy(config, "config")
        self._steps: list[dict[str, Any]] = []
        self._begun = _caller()
        self._places: list[_Place] = []

    def set_version(self, version: str) -> WorkflowBuilder:
        """Set the workflow's own version."""
        self._head["version"] = version
        return self

    def set_config(self, **config: Any) -> WorkflowBuilder:
        """Set keys of `config`, besides those that are set already."""
        self._head["config"] = {**self._head.get("config", {}), **_copy(config, "config")}
        return self

    def set_state(self, values: Mapping[str, Any] | None = None, /, **more: Any) -> WorkflowBuilder:
        """Set keys of the initial state, besides those that are set already. A mapping takes keys that are no names of Python."""
        given = _copy({**(values or {}), **more}, "state")
        self._head["state"] = {**self._head.get("state", {}), **given}
        return self

    def set_state_schema(self, schema: Mapping[str, Mapping[str, Any]]) -> WorkflowBuilder:
        """Say what holds for state keys, by name, dotted path or glob: ``{"api_key": {"redact": True}}``."""
        self._head["state_schema"] = {**self._head.get("state_schema", {}), **_copy(schema, "state_schema")}
        return self

    def add_agent(self, name: str, system_prompt: str, **fields: Any) -> WorkflowBuilder:
        """Define an agent that `agent` steps name."""
        definition = {"system_prompt": system_prompt, **_copy(fields, "agents")}
        self._head["agents"] = {**self._head.get("agents", {}), name: definition}
        return self

    def add_step(self, step_id: str, type: str, /, **fields: Any) -> WorkflowBuilder:
        """Add a step of any type. Fields that are None are left out."""
        return self._add(step_id, type, fields)

    def add_llm_step(
        self,
        step_id: str,
        prompt: str | None = None,
        *,
        output: str | None = None,
        depends_on: Iterable[str] = (),
        **fields: Any,
    ) -> WorkflowBuilder:
        """Add a model call: `system_prompt`, `model`, `tools`, `response_schema`, `conversation` and the like by name."""
        return self._add(step_id, "llm_call", {"prompt": prompt, "output": output, **fields}, depends_on)

    def add_tool_step(
        self,
        step_id: str,
        tool_name: str,
        tool_args: Mapping[str, Any] | None = None,
        *,
        output: str | None = None,
        depends_on: Iterable[str] = (),
        **fields: Any,
    ) -> WorkflowBuilder:
        """Add a call of a tool. Texts in its arguments are templates."""
        given = {"tool_name": tool_name, "tool_args": tool_args, "output": output, **fields}
        return self._add(step_id, "tool", given, depends_on)

    def add_router_step(
        self,
        step_id: str,
        conditions: Sequence[tuple[str, str]],
        default: str | None = None,
        *,
        depends_on: Iterable[str] = (),
        **fields: Any,
    ) -> WorkflowBuilder:
        """Add a choice between branches: pairs of an expression and the step that runs if it is the first that is true.

        The steps that it leads to have to depend on it.
        """
        written = [{"expression": expression, "target": target} for expression, target in conditions]
        return self._add(step_id, "router", {"conditions": written, "default": default, **fields}, depends_on)

    def add_subworkflow_step(
        self,
        step_id: str,
        workflow: WorkflowBuilder | Mapping[str, Any] | str | Path,
        *,
        output: str | None = None,
        depends_on: Iterable[str] = (),
        **fields: Any,
    ) -> WorkflowBuilder:
        """Add another workflow as one step: a builder, plain data, or the path of a file, which starts at the ``folder`` of ``build``."""
        if isinstance(workflow, str | Path):
            given: dict[str, Any] = {"workflow_path": str(workflow)}
        else:
            inline = workflow.to_dict() if isinstance(workflow, WorkflowBuilder) else workflow
            given = {"workflow_inline": inline}
        return self._add(step_id, "subworkflow", {**given, "output": output, **fields}, depends_on)

    def add_approval_step(
        self, step_id: str, *, output: str | None = None, depends_on: Iterable[str] = (), **fields: Any
    ) -> WorkflowBuilder:
        """Add a gate that waits until somebody approves or rejects."""
        return self._add(step_id, "approval_gate", {"output": output, **fields}, depends_on)

    def add_embed_step(
        self, step_id: str, inputs: str, *, output: str | None = None, depends_on: Iterable[str] = (), **fields: Any
    ) -> WorkflowBuilder:
        """Add a step that turns the texts under a state key into vectors."""
        return self._add(step_id, "embed", {"inputs": inputs, "output": output, **fields}, depends_on)

    def add_agent_step(
        self,
        step_id: str,
        agent: str,
        input: str | None = None,
        *,
        output: str | None = None,
        depends_on: Iterable[str] = (),
        **fields: Any,
    ) -> WorkflowBuilder:
        """Add one turn of an agent: one of ``add_agent``, or the path of an agent file."""
        return self._add(step_id, "agent", {"agent": agent, "input": input, "output": output, **fields}, depends_on)

    def to_dict(self) -> dict[str, Any]:
        """Return what a file would hold, as a copy, unchecked."""
        return _copy({**self._head, "steps": self._steps}, "workflow")

    def build(self, folder: str | Path | None = None) -> WorkflowDocument:
        """Return the checked workflow, which ``WorkflowEngine`` takes.

        ``folder`` is where relative paths start; the folder of the program that calls, if it isn't given. Settings that hold there
        hold for the workflow. Warnings are logged. Raises ``InvalidWorkflow``, which names the line of the program for each mistake.
        """
        begun = Path(self._begun.file)
        start = Path(folder) if folder is not None else begun.parent if begun.exists() else Path.cwd()
        try:
            document = load_data(self.to_dict(), str(start / f"<workflow {self._head['name']}>"))
        except InvalidWorkflow as invalid:
            raise InvalidWorkflow(self._told(invalid.document), invalid.document) from None
        for found in document.diagnostics:
            if found.severity is Severity.WARNING:
                log.warning("%s", self._line(document, found))
        return document

    def _add(
        self, step_id: str, type: str, fields: Mapping[str, Any], depends_on: Iterable[str] = ()
    ) -> WorkflowBuilder:
        if isinstance(depends_on, str):
            raise UsageError(f'step `{step_id}`: `depends_on` is a list of steps; write `["{depends_on}"]`')
        step: dict[str, Any] = {"id": step_id, "type": type}
        if needs := list(depends_on):
            step["depends_on"] = needs
        step.update({name: value for name, value in fields.items() if value is not None})
        try:
            self._steps.append({key: plain(value, key) for key, value in step.items()})
        except NotPlain as error:
            raise UsageError(f"step `{step_id}`: {error}") from None
        self._places.append(_caller())
        return self

    def _told(self, document: WorkflowDocument) -> str:
        errors = [found for found in document.diagnostics if found.severity is Severity.ERROR]
        lines = [self._line(document, error) for error in errors[:_SHOWN]]
        more = [f"and {len(errors) - _SHOWN} more"] if len(errors) > _SHOWN else []
        return "\n".join([*lines, *more])

    def _line(self, document: WorkflowDocument, error: Diagnostic) -> str:
        for step, place in zip(document.steps, self._places, strict=False):
            span = step.place(step.facts.node.span)
            if span.start <= error.span.start < span.end:
                return f"{place}: step `{step.id}`: {error.code} {error.message}"
        return f"{self._begun}: {error.code} {error.message}"


def workflow(name: str, description: str = "", **config: Any) -> WorkflowBuilder:
    """Begin a workflow; further arguments are keys of its `config`: ``workflow("triage", provider="openai", budget_usd=0.5)``."""
    return WorkflowBuilder(name, description, **config)


def _copy(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    copy: dict[str, Any] = plain(dict(value), name)
    return copy


def _caller() -> _Place:
    """Return the line outside this module that led here."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return _Place(frame.f_code.co_filename, frame.f_lineno)
