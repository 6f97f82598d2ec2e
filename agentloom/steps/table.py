"""The table of step types that this version runs. A new type is a file beside this one and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from agentloom.core.kinds import Executor
from agentloom.steps import agent, approval_gate, embed, llm_call, router, subworkflow, tool

EXECUTORS: tuple[Executor, ...] = (
    llm_call.EXECUTOR,
    router.EXECUTOR,
    tool.EXECUTOR,
    subworkflow.EXECUTOR,
    approval_gate.EXECUTOR,
    embed.EXECUTOR,
    agent.EXECUTOR,
)

BY_TYPE: Mapping[str, Executor] = {executor.type: executor for executor in EXECUTORS}
