"""The gateway that a workflow's own `config` and settings ask for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from agentloom.analysis.document import WorkflowDocument
from agentloom.errors import WorkflowError
from agentloom.providers.gateway import ProviderGateway
from agentloom.providers.recording import Recording
from agentloom.providers.setup import gateway_for


def gateway_of(
    document: WorkflowDocument,
    environ: Mapping[str, str],
    recording: Recording | None = None,
    *,
    strict: bool = False,
    into: ProviderGateway | None = None,
) -> ProviderGateway:
    """Return the gateway for a workflow; a recording's path is relative to the workflow's file.

    With a ``recording``, that alone answers, and nothing reaches out; ``strict`` keeps to it in every word. ``into`` is a gateway to
    be set up, instead of a new one.

    Raises ``WorkflowError`` and ``UsageError`` for providers, recordings, settings and variables that can't be used.
    """
    config = document.view.config
    responses: Path | Recording | None = recording
    if recording is None and config.provider == "mock" and config.responses_file is not None:
        responses = Path(config.responses_file)
        if not responses.is_absolute():
            if document.path is None:
                raise WorkflowError("`responses_file` is relative to a file; say with `--stdin-filename` which")
            responses = document.path.parent / responses
    return gateway_for(
        config.provider if recording is None else "mock",
        environ,
        document.context.settings.providers,
        responses=responses,
        latency_model=config.latency_model,
        latency_ms=config.latency_ms,
        strict=strict,
        offline=recording is not None,
        into=into,
    )
