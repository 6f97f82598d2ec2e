"""Rules about fields that need or exclude each other."""

from __future__ import annotations

from collections.abc import Iterator

from agentloom.analysis.document import Facts
from agentloom.diagnostics import Finding, Related


def field_conflict(facts: Facts) -> Iterator[Finding]:
    """Fields contradict each other, or one of two that are needed is missing.

    A `subworkflow` takes either `workflow_path` or `workflow_inline`; an `llm_call` needs a `prompt` or a `conversation`, and can't
    have both `tools` and a `response_schema`; a router needs `conditions` or a `default`; an `agent` needs `input` or a
    `conversation`.

    Keep one of them, or add the missing one.
    """
    type_ = facts.data.get("type")
    if type_ == "llm_call":
        yield from _one_of(facts, "prompt", "conversation", "an `llm_call`")
        if facts.data.get("tools") and facts.data.get("response_schema"):
            yield _both(facts, "tools", "response_schema")
        yield from _response_schema(facts)
    elif type_ == "subworkflow":
        given = [name for name in ("workflow_path", "workflow_inline") if facts.data.get(name) is not None]
        if len(given) == 2:
            yield _both(facts, *given)
        elif not given:
            yield from _one_of(facts, "workflow_path", "workflow_inline", "a `subworkflow`")
    elif type_ == "router":
        conditions = facts.data.get("conditions")
        if not conditions and facts.data.get("default") is None and not _misspelled(facts, "conditions", "default"):
            yield Finding("AL109", facts.span_of("type"), "a router needs `conditions` or a `default`; add one of them")
    elif type_ == "agent":
        yield from _one_of(facts, "input", "conversation", "an `agent` step")


def _one_of(facts: Facts, first: str, second: str, owner: str) -> Iterator[Finding]:
    if facts.data.get(first) is not None or facts.data.get(second) is not None:
        return
    if first in facts.fields or second in facts.fields:  # there, but empty: say it at the key
        name = first if first in facts.fields else second
        yield Finding("AL109", facts.key_span(name), f"`{name}` has no value yet; {owner} needs it, or `{second}`")
        return
    if not _misspelled(facts, first, second):
        yield Finding("AL109", facts.span_of("type"), f"{owner} needs `{first}` or `{second}`; add one of them")


def _misspelled(facts: Facts, *names: str) -> bool:
    """Tell whether an unknown key was already taken for one of the fields."""
    return any(f.code == "AL102" and any(f"mean `{name}`" in f.message for name in names) for f in facts.findings)


def _both(facts: Facts, first: str, second: str) -> Finding:
    return Finding(
        "AL109",
        facts.key_span(second),
        f"`{first}` and `{second}` exclude each other; remove one of them",
        related=(Related(facts.key_span(first), f"`{first}` is here"),),
    )


def _response_schema(facts: Facts) -> Iterator[Finding]:
    schema = facts.data.get("response_schema")
    if not isinstance(schema, dict):
        return
    kind = schema.get("type", "json_object")
    span = facts.key_span("response_schema")
    if kind == "json_schema" and not isinstance(schema.get("schema"), dict):
        yield Finding("AL109", span, "a `response_schema` of type `json_schema` needs a `schema`; add it")
    elif kind == "pydantic" and not schema.get("model"):
        yield Finding("AL109", span, "a `response_schema` of type `pydantic` needs a `model`; add its dotted path")
    elif kind == "json_object" and (schema.get("schema") is not None or schema.get("model") is not None):
        name = "schema" if schema.get("schema") is not None else "model"
        other = "json_schema" if name == "schema" else "pydantic"
        yield Finding("AL109", span, f"`{name}` needs `type: {other}` in a `response_schema`; add the type")
    inner = schema.get("schema")
    if kind == "json_schema" and isinstance(inner, dict) and inner.get("additionalProperties") is True:
        yield Finding("AL109", span, "a strict `json_schema` can't allow `additionalProperties`; set it to false")
