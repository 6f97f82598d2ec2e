"""Completion of names of things: tools, agents, providers, and models with their prices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agentloom.analysis.values import valid_values
from agentloom.ide.completion.arguments import whole
from agentloom.ide.completion.items import Item, ItemKind
from agentloom.ide.completion.marks import mark_of
from agentloom.ide.completion.where import Where
from agentloom.ide.prose.names import price_words, provider_summary
from agentloom.ide.results import Project
from agentloom.providers.catalogue import known_models
from agentloom.providers.table import BY_NAME

_KINDS: Mapping[str, ItemKind] = {"tool": "tool", "agent": "agent", "provider": "provider"}


def applies(where: Where) -> bool:
    """Tell whether the name of a tool, an agent or a provider is being typed."""
    return where.kind in ("value", "item") and _kind_of(where) is not None


def items(where: Where, project: Project | None) -> Iterator[Item]:
    """Yield the names there are; those that a list has already are left out."""
    kind = _kind_of(where)
    if kind is None:
        return
    taken = {item.strip("\"'") for item in where.items}
    for name in _choices(where) or valid_values(where.document, kind, where.step):
        if name not in taken:
            detail, about = _explained(where, kind, name)
            yield Item(name, _KINDS[kind], whole(where, name), detail, about, rank=3)


def _choices(where: Where) -> list[str]:
    """Return the tools of the step whose `tool_choice` is typed: it can name no other. Nothing elsewhere, or where none is there yet."""
    if where.block is None or where.block.name != "tool_choice" or where.step is None:
        return []
    tools = where.step.facts.data.get("tools")
    named = [tool.get("name") for tool in (tools if isinstance(tools, list) else ()) if isinstance(tool, Mapping)]
    return list(dict.fromkeys(name for name in named if isinstance(name, str)))


def models_apply(where: Where) -> bool:
    """Tell whether the name of a model is being typed."""
    return where.kind in ("value", "item") and mark_of(where.shape, "model") is not None


def models(where: Where, project: Project | None) -> Iterator[Item]:
    """Yield the models there are, those of the file's provider first, each with its price per million tokens."""
    mark = mark_of(where.shape, "model")
    embedding = mark is not None and mark.of == "embedding"
    known = {model.name: model for model in known_models()}
    chosen = provider_of(where)
    spec = BY_NAME.get(chosen or "")
    for name in valid_values(where.document, "model", where.step):
        model = known.get(name)
        if model is None:
            yield Item(name, "model", whole(where, name), "from the settings", ("model", name, chosen or ""), rank=2)
        elif (model.kind == "embedding") == embedding:
            first = spec is None or (spec.match != "any" and spec.serves(name))
            detail = f"{model.provider} · {price_words(model.price)}"
            yield Item(name, "model", whole(where, name), detail, ("model", name, chosen or ""), rank=3 if first else 6)


def provider_of(where: Where) -> str | None:
    """Return the provider that the file asks first, as it is typed now."""
    if "provider" in where.keys and where.block is not None and where.block.name == "config":
        return where.keys["provider"].strip("\"'")
    config = where.document.head.data.get("config")
    chosen = config.get("provider") if isinstance(config, dict) else None
    return chosen if isinstance(chosen, str) else None


def _kind_of(where: Where) -> str | None:
    mark = mark_of(where.shape, "ref")
    return mark.of if mark is not None and mark.of in _KINDS else None


def _explained(where: Where, kind: str, name: str) -> tuple[str, tuple[str, ...]]:
    """Return a few words about a name, and what is to be told about it."""
    document = where.document
    if kind == "tool":
        tool = document.context.tools.get(name)
        if tool is None:
            return "", ()
        summary = tool.description.split(". ")[0].split("; ")[0].rstrip(".")
        return summary, ("tool", name)
    if kind == "provider":
        return provider_summary(name), ("provider", name)
    agents = document.head.data.get("agents")
    data = agents.get(name) if isinstance(agents, Mapping) else None
    if isinstance(data, str):
        return data, ()
    return "", ("agent", name)
