"""Rules about fields that need or exclude each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentloom.analysis.document import Facts, word_span
from agentloom.analysis.effort import mapping
from agentloom.analysis.rules.places import renamed
from agentloom.diagnostics import Finding, Related
from agentloom.similar import closest
from agentloom.syntax.nodes import Alias
from agentloom.syntax.values import find, find_key
from agentloom.text import Span


def field_conflict(facts: Facts) -> Iterator[Finding]:
    """Fields contradict each other, or one of two that are needed is missing.

    A `subworkflow` takes either `workflow_path` or `workflow_inline`; an `llm_call` needs a `prompt` or a `conversation`, and can't
    have both `tools` and a `response_schema`, nor a `tool_choice` that is none of its `tools`; a router needs `conditions` or a
    `default`; an `agent` needs `input` or a `conversation`.

    Keep one of them, or add the missing one.
    """
    known = facts.block.fields if facts.block is not None else {}
    if "output_schema" in known:
        yield from _response_schema(facts, facts.data, ("output_schema",))
    for name, agent in mapping(facts.data.get("agents") if "agents" in known else None).items():
        yield from _response_schema(facts, mapping(agent), ("agents", name, "output_schema"))
    type_ = facts.data.get("type") if "type" in known else None
    if type_ == "llm_call":
        yield from _one_of(facts, "prompt", "conversation", "an `llm_call` step")
        if facts.data.get("tools") and facts.data.get("response_schema"):
            yield _both(facts, "tools", "response_schema")
        yield from _response_schema(facts, facts.data, ("response_schema",))
        yield from _tool_choice(facts)
    elif type_ == "subworkflow":
        if all(facts.data.get(name) is not None for name in ("workflow_path", "workflow_inline")):
            yield _both(facts, "workflow_path", "workflow_inline")
        yield from _one_of(facts, "workflow_path", "workflow_inline", "a `subworkflow` step")
    elif type_ == "router":
        yield from _one_of(facts, "conditions", "default", "a `router` step")
    elif type_ == "agent":
        yield from _one_of(facts, "input", "conversation", "an `agent` step")


def _one_of(facts: Facts, first: str, second: str, owner: str) -> Iterator[Finding]:
    names = (first, second)
    if any(_is_given(facts, name) for name in names):
        return
    there = [name for name in names if name in facts.fields]
    if not there:
        yield Finding("AL109", facts.span_of("type"), f"{owner} needs `{first}` or `{second}`; add one of them")
        return
    name = there[-1]  # there, but empty: say it at the key
    other = second if name == first else first
    said = "is empty" if facts.data.get(name) == [] else "has no value yet"
    yield Finding("AL109", facts.key_span(name), f"`{name}` {said}; {owner} needs it, or `{other}`")


def _is_given(facts: Facts, name: str) -> bool:
    """Tell whether a field has a value; an alias that leads nowhere was meant to be one."""
    located = facts.fields.get(name)
    return facts.data.get(name) not in (None, []) or (located is not None and isinstance(located.value, Alias))


def _both(facts: Facts, first: str, second: str) -> Finding:
    return Finding(
        "AL109",
        facts.key_span(second),
        f"`{first}` and `{second}` exclude each other; remove one of them",
        related=(Related(facts.key_span(first), f"`{first}` is here"),),
    )


def _tool_choice(facts: Facts) -> Iterator[Finding]:
    wanted = mapping(facts.data.get("tool_choice")).get("name")
    if not isinstance(wanted, str) or facts.findings:
        return  # what is wrong with a tool comes first
    tools = facts.data.get("tools")
    offered = [mapping(tool).get("name") for tool in tools] if isinstance(tools, list) else []
    if wanted in offered or ("tools" in facts.fields and tools is None and _is_given(facts, "tools")):
        return
    node = find(facts.node, ("tool_choice", "name"))
    near = closest(wanted, [name for name in offered if isinstance(name, str)])
    cure = f"did you mean `{near}`?" if near else "add it there, or name one of them"
    node = node.target if isinstance(node, Alias) else node
    span = word_span(node) if node is not None else facts.key_span("tool_choice")
    message = f"`tool_choice` names `{wanted}`, which isn't one of the step's `tools`; {cure}"
    yield Finding("AL109", span, message, fixes=renamed(node, near, 0))


def _response_schema(facts: Facts, owner: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[Finding]:
    schema = owner.get(path[-1])
    if not isinstance(schema, dict):
        return
    kind = schema.get("type", "json_object")
    given = {"json_schema": "schema", "pydantic": "model"}
    for needs, name in given.items():
        if kind == needs and not schema.get(name):
            span = _below(facts, path, "type")
            yield Finding("AL109", span, f"`type: {kind}` needs a `{name}` beside it; add one")
        elif kind != needs and kind in ("json_object", *given) and schema.get(name) is not None:
            if "type" in schema:
                text = f"`{name}` goes with `type: {needs}`; change the type or remove it"
            else:
                text = f"`{name}` needs `type: {needs}` beside it; add that or remove it"
            yield Finding("AL109", _below(facts, path, name), text)
    inner = schema.get("schema")
    if kind == "json_schema" and isinstance(inner, dict) and inner.get("additionalProperties") is True:
        span = _below(facts, path, "schema", "additionalProperties")
        yield Finding("AL109", span, "a `json_schema` can't allow `additionalProperties`; set it to false")


def _below(facts: Facts, path: tuple[str, ...], *below: str) -> Span:
    """Return the span of a key below the schema that lies at ``path``; that of the nearest key above it where it isn't written there."""
    whole = (*path, *below)
    for end in range(len(whole), 0, -1):
        key = find_key(facts.node, whole[:end])
        if key is not None:
            return key.span
    return facts.first
