"""Whether the models of a workflow can be called at all, before anything has run: asked of the gateway that a run would have."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from agentloom.analysis.document import WorkflowDocument
from agentloom.errors import AgentLoomError
from agentloom.model.catalogue import catalogue
from agentloom.providers.table import BY_NAME


def what_is_missing(document: WorkflowDocument, provider: str | None = None) -> str | None:
    """Return why a model that a workflow calls can't be called, and what to set; None when all can, or it can't be known.

    ``provider`` takes the place of the workflow's own. For the worker's thread: the gateway may have to be loaded.
    """
    chosen = provider or _config(document, "provider")
    spec = BY_NAME.get(chosen)
    if chosen == "mock" or (spec is not None and not spec.key_needed):
        return None
    if spec is not None and spec.key_env is not None and os.environ.get(spec.key_env, "").strip():
        return None  # the gateway can be asked without loading any client only where there is no key
    models = list(dict.fromkeys(_models(document, _config(document, "model"))))
    if not models:
        return None
    from agentloom.providers.setup import gateway_for

    try:
        gateway = gateway_for(chosen, os.environ, document.context.settings.providers)
    except AgentLoomError:
        return None  # the run itself says it best
    return next((said for model in models if (said := gateway.lacking(model)) is not None), None)


def _models(document: WorkflowDocument, inherited: str) -> Iterator[str]:
    """Yield the models that the steps of a workflow call, those of workflows below it too."""
    for step in document.steps:
        block = step.facts.block
        if block is not None and "model" in block.fields:
            model = step.facts.data.get("model", inherited)
            if isinstance(model, str) and "{" not in model:
                yield model
        child = document.children.get(step.id or "")
        if child is not None and child.document is not None and not child.loop:
            own = child.document.head.data.get("config")
            model = own.get("model") if isinstance(own, dict) else None
            yield from _models(child.document, model if isinstance(model, str) else inherited)


def _config(document: WorkflowDocument, name: str) -> str:
    config: Any = document.head.data.get("config")
    written = config.get(name) if isinstance(config, dict) else None
    return written if isinstance(written, str) else str(catalogue().blocks["config"].fields[name].default)
