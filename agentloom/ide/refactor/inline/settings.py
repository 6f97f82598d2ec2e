"""Whether a child workflow's own settings let its steps run in its parent as they did in it."""

from __future__ import annotations

from typing import Any

from agentloom.analysis.document import WorkflowDocument
from agentloom.ide.results import Refusal
from agentloom.model.catalogue import catalogue

HANDED_DOWN = ("provider", "model")
"""What a child without a word of its own takes from its parent."""
OF_ITS_OWN = ("budget_usd", "timeout", "sandbox")
"""What holds for a child as a whole."""
WITHOUT_EFFECT = ("responses_file", "latency_model", "latency_ms", "strict_outputs")
"""What does nothing in a child: its parent's holds, or it is about the file."""
WHEN_SAID = ("max_concurrent_steps",)
"""What changes only how fast a run is, and so counts only where the child says it."""


def check_settings(parent: WorkflowDocument, child: WorkflowDocument) -> None:
    """Raise ``Refusal`` when the child's head says something that its steps would lose."""
    for name in ("agents", "state_schema"):
        if child.head.data.get(name):
            raise Refusal(f"the child has `{name}` of its own")
    given, ours = _config(child), _config(parent)
    fields = catalogue().blocks["config"].fields
    for name, field in fields.items():
        mine, theirs = ours.get(name, field.default), given.get(name, field.default)
        if name in WITHOUT_EFFECT or mine == theirs:
            continue
        if name not in given and name in (*HANDED_DOWN, *OF_ITS_OWN, *WHEN_SAID):
            continue
        if name in OF_ITS_OWN and not _says_something(theirs):
            continue
        raise Refusal(f"`config.{name}` is {_word(theirs)} in the child and {_word(mine)} here")


def _config(document: WorkflowDocument) -> dict[str, Any]:
    config = document.head.data.get("config")
    return config if isinstance(config, dict) else {}


def _says_something(value: Any) -> bool:
    return bool(value.get("enabled")) if isinstance(value, dict) else bool(value)


def _word(value: Any) -> str:
    return f"`{value}`" if not isinstance(value, dict) else "different"
