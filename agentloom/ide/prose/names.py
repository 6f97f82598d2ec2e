"""What is said about providers, models, tools and their arguments, agents, files and rules."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from agentloom.analysis.rules.registry import RULES, Rule
from agentloom.analysis.settings import Settings
from agentloom.diagnostics import Severity
from agentloom.ide.prose.form import Block, Code, Inline, Items, Link, Prose, excerpt, listed, say
from agentloom.providers.pricing import Price, PriceTable, bundled_prices
from agentloom.providers.table import BY_NAME, ProviderSpec, home_of

_SERVED = {"prefix": "Models whose names begin with ", "contains": "Models whose names contain "}
KINDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "array": "list",
    "object": "mapping",
    "null": "null",
}
"""JSON Schema's types in words."""


def of_model(name: str, provider: str | None = None, prices: PriceTable | None = None) -> Prose:
    """Return a model's provider and price; ``provider`` is the one that the file asks first."""
    found = (prices or bundled_prices()).find(name)
    home = home_of(name)
    serving = BY_NAME.get(provider) if provider is not None else None
    if serving is not None and serving.serves(name):
        home = serving.name
    said: list[Block] = [say("Model ", Code(name), *((" of ", Code(home)) if home else ()))]
    if home in ("ollama", "mock"):
        said.append(
            say("Costs nothing." if home == "ollama" else "Replies come from a recording; they cost what it says.")
        )
    elif found is not None:
        said.append(say(price_words(found)))
    else:
        said.append(say("No price is known, so its calls count as free, and a budget never stops them."))
    return tuple(said)


def price_words(price: Price) -> str:
    """Return a price per million tokens."""
    if not price.output:
        return f"{_dollars(price.input)} per million tokens"
    return f"{_dollars(price.input)} in, {_dollars(price.output)} out, per million tokens"


def of_provider(name: str) -> Prose:
    """Return which models a provider serves, and how it is set up."""
    spec = BY_NAME.get(name)
    if spec is None:
        return ()
    said: list[Block] = [say("Provider ", Code(name)), say(*_serves(spec))]
    variables = [v for v in (spec.key_env, spec.url_env) if v is not None]
    if variables:
        said.append(say("Set up by ", *listed(variables), "."))
    return tuple(said)


def provider_summary(name: str) -> str:
    """Return which models a provider serves, in a few words."""
    spec = BY_NAME.get(name)
    return "".join(part.text if isinstance(part, Code) else str(part) for part in _serves(spec)) if spec else ""


def of_tool(name: str, description: str, parameters: Mapping[str, Any]) -> Prose:
    """Return what a tool does, and its arguments."""
    said: list[Block] = [say("Tool ", Code(name))]
    if description:
        said.append(say(description))
    arguments = tool_arguments(parameters)
    needed = needed_of(parameters)
    if arguments:
        said.append(Items(tuple(_argument(key, schema, key in needed) for key, schema in arguments.items())))
    return tuple(said)


def of_argument(tool: str, key: str, schema: Mapping[str, Any], needed: bool) -> Prose:
    """Return what an argument of a tool is for."""
    said: list[Block] = [say(Code(key), f": {argument_words(schema, needed)}")]
    description = schema.get("description")
    if isinstance(description, str) and description:
        said.append(say(description))
    if "default" in schema:
        said.append(say("Default: ", _value(schema["default"]), "."))
    said.append(say("An argument of ", Code(tool), "."))
    return tuple(said)


def argument_words(schema: Mapping[str, Any], needed: bool) -> str:
    """Return an argument's type in words, and whether it is needed."""
    return _schema_words(schema) + (", needed" if needed else "")


def tool_arguments(parameters: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """Return a tool's arguments with the JSON Schema of each; the needed ones first."""
    properties = parameters.get("properties")
    if not isinstance(properties, Mapping):
        return {}
    needed = needed_of(parameters)
    known = {key: value if isinstance(value, Mapping) else {} for key, value in properties.items()}
    return dict(sorted(known.items(), key=lambda item: item[0] not in needed))


def argument_at(parameters: Mapping[str, Any], path: Iterable[str | int]) -> Mapping[str, Any] | None:
    """Return the JSON Schema of what stands at a path in a tool's arguments; None if it isn't described."""
    schema: Any = parameters
    for part in path:
        inner = schema.get("items") if isinstance(part, int) else schema.get("properties")
        schema = inner if isinstance(part, int) else inner.get(part) if isinstance(inner, Mapping) else None
        if not isinstance(schema, Mapping):
            return None
        schema = _present(schema)
    return schema if isinstance(schema, Mapping) else None


def _present(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of a value that is there, of one that may be null."""
    ways = schema.get("anyOf")
    if not isinstance(ways, (list, tuple)):
        return schema
    left = [way for way in ways if isinstance(way, Mapping) and way.get("type") != "null"]
    if len(left) != 1 or len(ways) != 2:
        return schema
    return {**{key: value for key, value in schema.items() if key != "anyOf"}, **left[0]}


def needed_of(parameters: Mapping[str, Any]) -> frozenset[str]:
    """Return the arguments that a tool needs."""
    required = parameters.get("required")
    return frozenset(str(name) for name in required) if isinstance(required, (list, tuple)) else frozenset()


def agent_blocks(data: Mapping[str, Any]) -> list[Block]:
    """Return what an agent's definition says about it."""
    said: list[Block] = []
    if isinstance(data.get("description"), str) and data["description"].strip():
        said.append(excerpt(data["description"]))
    elif isinstance(data.get("system_prompt"), str) and data["system_prompt"].strip():
        said.append(excerpt(data["system_prompt"]))
    if isinstance(data.get("model"), str):
        said.append(say("Model: ", Code(data["model"]), "."))
    tools = (
        [name for name in map(_tool_name, data.get("tools") or ()) if name]
        if isinstance(data.get("tools"), list)
        else []
    )
    if tools:
        said.append(say("Tools: ", *listed(tools), "."))
    return said


def of_rule(code: str, settings: Settings | None = None) -> Prose:
    """Return what a code, a rule's name or a family of codes in a comment means; ``settings`` may change what it counts for."""
    exact = next((rule for rule in RULES if code in (rule.code, rule.name)), None)
    if exact is not None:
        level = _severity(exact.severity) + _by_settings(exact, settings)
        paragraphs = [" ".join(p.split()) for p in exact.doc.strip().split("\n\n")]
        return (
            say(Code(exact.code), " ", Code(exact.name), f", {level}"),
            *(say(text) for text in paragraphs),
            say(Link(f"The page of {exact.code}", exact.url)),
        )
    family = [rule for rule in RULES if code.startswith("AL") and rule.code.startswith(code)]
    if not family:
        return (say("No check is called ", Code(code), ", so this hides nothing."),)
    shown: list[tuple[Inline, ...]] = [(Code(rule.code), " ", Code(rule.name)) for rule in family[:12]]
    if len(family) > 12:
        shown.append((f"and {len(family) - 12} more",))
    return (say("All codes that begin with ", Code(code), "."), Items(tuple(shown)))


def _by_settings(rule: Rule, settings: Settings | None) -> str:
    """Return what settings make of a rule; errors always show, and stay errors."""
    if settings is None or rule.severity is Severity.ERROR:
        return ""
    if _named(rule, settings.ignore) or (settings.select and not _named(rule, settings.select)):
        return "; left out by the settings"
    severity = settings.severity.get(rule.code) or settings.severity.get(rule.name)
    return f"; {_severity(severity)} by the settings" if severity is not None else ""


def _named(rule: Rule, words: Iterable[str]) -> bool:
    return any(rule.code.startswith(word) or rule.name == word for word in words)


def _severity(severity: Severity) -> str:
    return {"error": "an error", "warning": "a warning", "information": "an information", "hint": "a hint"}[
        severity.word
    ]


def _serves(spec: ProviderSpec) -> tuple[Inline, ...]:
    if spec.name == "mock":
        return ("Answers any model from a recording, or with a placeholder; offline.",)
    if spec.match == "any":
        return ("Serves any model.",)
    return (_SERVED[spec.match], *listed(spec.names), ".")


def _argument(key: str, schema: Mapping[str, Any], needed: bool) -> tuple[Inline, ...]:
    parts: list[Inline] = [Code(key), f" ({argument_words(schema, needed)})"]
    if "default" in schema:
        parts[1:] = [f" ({argument_words(schema, needed)}, default ", _value(schema["default"]), ")"]
    description = schema.get("description")
    if isinstance(description, str) and description:
        parts.append(f": {description}")
    return tuple(parts)


def _schema_words(schema: Mapping[str, Any]) -> str:
    choices = schema.get("enum")
    if isinstance(choices, (list, tuple)) and choices:
        return "one of " + ", ".join(f"`{choice}`" for choice in choices[:12])
    either = schema.get("anyOf")
    if isinstance(either, (list, tuple)):
        return " or ".join(dict.fromkeys(_schema_words(part) for part in either if isinstance(part, Mapping)))
    kinds = schema.get("type")
    listed_kinds = kinds if isinstance(kinds, (list, tuple)) else [kinds]
    return " or ".join(KINDS[kind] for kind in listed_kinds if isinstance(kind, str) and kind in KINDS) or "anything"


def _value(value: Any) -> Inline:
    if value in ({}, [], ""):
        return "empty"
    return Code(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _dollars(per_thousand: float) -> str:
    price = per_thousand * 1000
    whole, _, cents = f"{price:.4f}".rstrip("0").partition(".")
    return f"${whole}.{cents:0<2}" if cents else f"${whole}"


def _tool_name(item: Any) -> str | None:
    if isinstance(item, str):
        return item
    if isinstance(item, Mapping):
        name = item.get("name") or item.get("agent")
        return name if isinstance(name, str) else None
    return None
