"""The one source of valid names: the rules that report an unknown name and completion both ask here."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from agentloom.analysis.document import Step, WorkflowDocument
from agentloom.similar import closest

MOST_SUGGESTIONS = 50_000
"""Comparisons made for one document's suggestions; past that, messages come without a did-you-mean."""


def valid_values(document: WorkflowDocument, kind: str, step: Step | None = None) -> Iterable[str]:
    """Return the names that are valid where a name of ``kind`` is meant, in the order in which they should be offered.

    ``step`` is the step in which the name stands. Steps: all but itself. Tools: those known to the context. Providers and models: those
    that agentloom knows, and those of the settings; others may exist all the same.
    """
    if kind == "step":
        own = step.id if step is not None else None
        return [name for name in document.by_id if name != own]
    if kind == "tool":
        return list(document.context.tools)
    if kind == "agent":
        agents = document.head.data.get("agents")
        return list(agents) if isinstance(agents, dict) else []
    if kind == "provider":
        from agentloom.providers.table import PROVIDER_NAMES  # only needed by editors, and once something is wrong

        return list(dict.fromkeys((*PROVIDER_NAMES, *document.context.settings.providers)))
    if kind == "model":
        return _models(document)
    return []


def _models(document: WorkflowDocument) -> list[str]:
    from agentloom.providers.catalogue import known_models

    names = {model.name: None for model in known_models()}
    for fields in document.context.settings.providers.values():
        for key in ("models", "model_aliases"):
            listed = fields.get(key)
            names.update(
                (name, None) for name in (listed if isinstance(listed, (list, dict)) else ()) if isinstance(name, str)
            )
    return list(names)


def undefined(kind: str, name: str, near: str | None, otherwise: str) -> str:
    """Return the message for a name that nothing has; ``otherwise`` is the cure when no name is near."""
    shown = " ".join(name.split())
    if near is not None and near == shown != name:
        return f"{kind} `{shown}` is not defined with the blanks or line break around it; remove those"
    return f"{kind} `{shown}` is not defined; " + (f"did you mean `{near}`?" if near else otherwise)


def suggest(document: WorkflowDocument, kind: str, word: str, step: Step | None = None) -> str | None:
    """Return the valid name nearest to ``word``. In files so broken that this would take long: None."""
    return nearest(document, word, lambda: valid_values(document, kind, step))


def nearest(document: WorkflowDocument, word: str, names: Callable[[], Iterable[str]]) -> str | None:
    """Return the one of some names that is nearest to ``word``. In files so broken that this would take long: None."""
    spent: dict[str, int] = document.__dict__.setdefault("_suggestions", {"spent": 0})
    if spent["spent"] > MOST_SUGGESTIONS:
        return None
    known = list(names())
    spent["spent"] += len(known)
    return closest(word, known) if spent["spent"] <= MOST_SUGGESTIONS else None
