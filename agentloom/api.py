"""The public Python API in one place. What is listed in ``__all__`` stays as it is documented in `docs/python.md`."""

from __future__ import annotations

from agentloom.analysis.document import WorkflowDocument
from agentloom.checkpointing import BaseCheckpointer, CheckpointData, FileCheckpointer
from agentloom.core.adapter import WorkflowAdapter
from agentloom.core.dsl import WorkflowBuilder, workflow
from agentloom.core.engine import WorkflowEngine
from agentloom.core.events import RunEvent
from agentloom.core.gateways import gateway_of
from agentloom.core.graph import GraphEdge, WorkflowGraph
from agentloom.core.hooks import HookedStep, StepHook
from agentloom.core.loader import load_data, load_text, load_workflow
from agentloom.core.parser import WorkflowParser
from agentloom.core.results import StepResult, WorkflowResult
from agentloom.core.state_manager import StateManager
from agentloom.errors import (
    AgentLoomError,
    AttachmentResolutionError,
    BudgetExceededError,
    CheckpointSchemaError,
    CircuitOpenError,
    InvalidWorkflow,
    PauseRequestedError,
    ProviderError,
    RateLimitError,
    RecordingMismatchError,
    SandboxViolationError,
    SecurityError,
    StateWriteError,
    StepError,
    TemplateError,
    ToolNotFoundError,
    UsageError,
    ValidationError,
    WorkflowError,
)
from agentloom.language.rendering import render
from agentloom.providers.base import (
    BaseProvider,
    EmbeddingRequest,
    EmbeddingResponse,
    Message,
    OnDelta,
    Provider,
    Request,
    Response,
    ToolCall,
    Usage,
)
from agentloom.providers.gateway import ProviderGateway
from agentloom.providers.mock import MockProvider
from agentloom.providers.recorder import Recorder, RecordingProvider
from agentloom.providers.recording import load_recording
from agentloom.providers.recording_file import RecordingFile
from agentloom.tools.base import BaseTool, tool
from agentloom.tools.builtin import register_builtins
from agentloom.tools.registry import ToolRegistry

__all__ = [
    "AgentLoomError",
    "AttachmentResolutionError",
    "BaseCheckpointer",
    "BaseProvider",
    "BaseTool",
    "BudgetExceededError",
    "CheckpointData",
    "CheckpointSchemaError",
    "CircuitOpenError",
    "EmbeddingRequest",
    "EmbeddingResponse",
    "FileCheckpointer",
    "GraphEdge",
    "HookedStep",
    "InvalidWorkflow",
    "Message",
    "MockProvider",
    "OnDelta",
    "PauseRequestedError",
    "Provider",
    "ProviderError",
    "ProviderGateway",
    "RateLimitError",
    "Recorder",
    "RecordingFile",
    "RecordingMismatchError",
    "RecordingProvider",
    "Request",
    "Response",
    "RunEvent",
    "SandboxViolationError",
    "SecurityError",
    "StateManager",
    "StateWriteError",
    "StepError",
    "StepHook",
    "StepResult",
    "TemplateError",
    "ToolCall",
    "ToolNotFoundError",
    "ToolRegistry",
    "Usage",
    "UsageError",
    "ValidationError",
    "WorkflowAdapter",
    "WorkflowBuilder",
    "WorkflowDocument",
    "WorkflowEngine",
    "WorkflowError",
    "WorkflowGraph",
    "WorkflowParser",
    "WorkflowResult",
    "gateway_of",
    "load_data",
    "load_recording",
    "load_text",
    "load_workflow",
    "register_builtins",
    "render",
    "tool",
    "workflow",
]
