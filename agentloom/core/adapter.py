"""A workflow as a coroutine function, for programs that embed it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from agentloom.analysis.document import WorkflowDocument
from agentloom.core.engine import WorkflowEngine
from agentloom.core.events import OnEvent
from agentloom.core.gateways import gateway_of
from agentloom.core.hooks import StepHook
from agentloom.core.kinds import Tools
from agentloom.core.loader import load_data, load_workflow
from agentloom.core.results import WorkflowResult
from agentloom.providers.gateway import ProviderGateway


class WorkflowAdapter:
    """Runs a workflow as often as it is called, also at the same time, without checkpoints.

    ``workflow`` is a path, plain data, or a loaded document. Without ``provider_gateway`` the providers are those of the environment
    and the settings, as on the command line; their rate limits and circuit breakers are then shared by all runs. Close the adapter,
    or use it with ``async with``, to close the connections that it has opened; a gateway that was given stays open.
    """

    def __init__(
        self,
        workflow: WorkflowDocument | Mapping[str, Any] | str | os.PathLike[str],
        provider_gateway: ProviderGateway | None = None,
        tool_registry: Tools | None = None,
        hooks: Sequence[StepHook] = (),
        on_event: OnEvent | None = None,
    ) -> None:
        if isinstance(workflow, WorkflowDocument):
            self.document = workflow
        elif isinstance(workflow, Mapping):
            self.document = load_data(workflow, str(Path.cwd() / "<data>"))
        else:
            self.document = load_workflow(workflow)
        self._own = provider_gateway is None
        self._gateway = provider_gateway or gateway_of(self.document, os.environ)
        self._tools = tool_registry
        self._hooks = tuple(hooks)
        self._on_event = on_event

    async def run(self, state: Mapping[str, Any] | None = None) -> WorkflowResult:
        """Run the workflow; ``state`` overrides keys of its own `state:`.

        A step that fails is part of the result. Raises what ``WorkflowEngine.run`` raises.
        """
        engine = WorkflowEngine(self.document, self._gateway, self._tools, hooks=self._hooks, on_event=self._on_event)
        return await engine.run(state)

    __call__ = run

    async def close(self) -> None:
        """Close the connections that the adapter has opened. It can be used again: later runs open new ones."""
        if self._own:
            await self._gateway.close()

    async def __aenter__(self) -> WorkflowAdapter:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
