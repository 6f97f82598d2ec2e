"""What is settled before the first event: the plans of a workflow and of all workflows below it, and what can't be run yet."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentloom.analysis.document import WorkflowDocument
from agentloom.core.agents import Agent, agents_of
from agentloom.core.kinds import SandboxRules
from agentloom.core.plain import plain
from agentloom.core.plan import Plan, make_plan
from agentloom.core.results import JSON
from agentloom.diagnostics import Severity
from agentloom.errors import InvalidWorkflow, WorkflowError
from agentloom.records import record
from agentloom.tools.policy import Policy, Rules, narrowed, policy_of

if TYPE_CHECKING:
    from agentloom.model.workflow import SubworkflowStep, Workflow

_SHOWN = 5


@record()
class Prepared:
    """A workflow ready to run. ``state`` is its own `state:`; ``children`` maps the ids of subworkflow steps to what they run.

    ``schema`` is its `state_schema`; ``sandbox`` its own, or its parent's if that is on. ``policy`` is what its tools obey: its own sandbox
    and those of the workflows above, None if all are off. ``folder`` is where its file lies, which relative paths start at; None for a
    workflow that has no file.
    """

    plan: Plan
    state: Mapping[str, JSON]
    provider: str
    model: str
    stream: bool
    children: Mapping[str, Prepared]
    schema: Mapping[str, Any]
    sandbox: SandboxRules
    policy: Policy | None = None
    folder: Path | None = None
    capture_prompts: bool = False
    agents: Mapping[str, Agent] = field(default_factory=dict)


def prepare(source: WorkflowDocument | Workflow) -> Prepared:
    """Return a workflow with everything below it, ready to run.

    Raises ``InvalidWorkflow``, ``WorkflowError`` for a typed workflow that doesn't hold together, and ``UsageError`` for a `state:` that
    can't be used.
    """
    return _Preparation().prepare(source, None)


def accepted(document: WorkflowDocument) -> WorkflowDocument:
    """Return the document if it has no errors; else raise ``InvalidWorkflow`` that tells the first of them and how many there are."""
    errors = [found for found in document.diagnostics if found.severity is Severity.ERROR]
    if not errors:
        return document
    first = errors[0]
    line, column = document.lines.position(first.span.start)
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    raise InvalidWorkflow(
        f"{document.source.uri}:{line + 1}:{column + 1}: {first.code} {first.message}{more}", document
    )


class _Preparation:
    """One walk over a workflow and its children; a child that several steps run is prepared once."""

    def __init__(self) -> None:
        self._policies: dict[tuple[int, int], Policy | None] = {}
        self._known: dict[tuple[int, str, str, int, int], Prepared] = {}

    def prepare(self, source: WorkflowDocument | Workflow, parent: Prepared | None) -> Prepared:
        if isinstance(source, WorkflowDocument):
            document, workflow = accepted(source), source.view
        else:
            document, workflow = None, source
        config = workflow.config
        provider, model = config.provider, config.model
        if parent is not None:
            provider = config.provider if "provider" in config.model_fields_set else parent.provider
            model = config.model if "model" in config.model_fields_set else parent.model
        above = parent.sandbox if parent is not None and parent.sandbox.enabled else None
        sandbox = above or config.sandbox
        folder = _folder(document, parent)
        policy = self._policy(config.sandbox, folder, parent)
        key = (id(workflow), provider, model, id(above), id(policy))
        if key in self._known:
            return self._known[key]
        children: dict[str, Prepared] = {}
        state = plain(workflow.state, "state")
        prepared = Prepared(
            make_plan(workflow),
            state,
            provider,
            model,
            config.stream,
            children,
            workflow.state_schema,
            sandbox,
            policy,
            folder,
            config.capture_prompts,
            agents_of(workflow, document),
        )
        self._known[key] = prepared
        for step in workflow.steps:
            if step.type == "subworkflow":
                children[step.id] = self.prepare(_child(step, document), prepared)
        return prepared

    def _policy(self, rules: Rules, folder: Path | None, parent: Prepared | None) -> Policy | None:
        """Return the policy of a workflow: one object for each file below each parent's, so that it is prepared once."""
        above = parent.policy if parent is not None else None
        key = (id(rules), id(above))
        if key not in self._policies:
            self._policies[key] = narrowed(policy_of(rules, folder), above)
        return self._policies[key]


def _folder(document: WorkflowDocument | None, parent: Prepared | None) -> Path | None:
    """Return the folder of a workflow's file; that of its parent for one written in place."""
    if document is not None and document.path is not None:
        return Path(os.path.abspath(document.path)).parent
    return parent.folder if parent is not None else None


def _child(step: SubworkflowStep, document: WorkflowDocument | None) -> WorkflowDocument | Workflow:
    if document is not None and step.id in document.children:
        child = document.children[step.id]
        if child.document is not None:
            return child.document
    if step.workflow_inline is not None:
        return step.workflow_inline
    if step.workflow_path is None:
        raise WorkflowError(f"step `{step.id}` needs `workflow_path` or `workflow_inline`")
    raise WorkflowError(
        f"step `{step.id}`: `workflow_path: {step.workflow_path}` is relative to a file; load the workflow from one"
    )
