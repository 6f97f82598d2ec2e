"""Rules about retries, timeouts and waits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agentloom.analysis import edits
from agentloom.analysis.document import Facts, WorkflowDocument
from agentloom.analysis.effort import NEVER_RETRIED, backoff_of, default_retries, mapping, number, retries_of
from agentloom.backoff import BACKOFF_BASE, BACKOFF_MAX
from agentloom.diagnostics import Finding, Fix
from agentloom.syntax.nodes import Alias, Sequence
from agentloom.syntax.values import find
from agentloom.text import Span

# Statuses that say the request itself is wrong: the same request gets the same answer.
PERMANENT = {400, 401, 402, 403, 404, 405, 406, 410, 411, 413, 414, 415, 422, 451}


def _retry(facts: Facts) -> dict[str, Any]:
    return mapping(facts.data.get("retry"))


def _at(facts: Facts, name: str) -> Span:
    located = facts.fields.get("retry")
    node = find(located.value, (name,)) if located else None
    return node.span if node is not None and node.span.end > node.span.start else facts.key_span("retry")


def backoff_not_growing(facts: Facts) -> Iterator[Finding]:
    """`backoff_base` is 1 or less, so the waits between attempts don't grow.

    The waits are the base, its square, its cube and so on; with 1 every wait is one second, with less they shrink.

    Use 2 or more.
    """
    retry = _retry(facts)
    base = number(retry.get("backoff_base"))
    waits_once = type(retry.get("max_retries")) is int and retry["max_retries"] <= 1
    if base is not None and 0 <= base <= 1 and not waits_once:
        yield Finding(
            "AL501", _at(facts, "backoff_base"), f"with `backoff_base: {base:g}` the waits don't grow; use 2 or more"
        )


def backoff_capped_at_once(facts: Facts) -> Iterator[Finding]:
    """`backoff_max` is below `backoff_base`, so every wait is the same.

    The very first wait is already cut to the maximum.

    Raise `backoff_max`, or lower `backoff_base`.
    """
    retry = _retry(facts)
    base, most = number(retry.get("backoff_base")), number(retry.get("backoff_max"))
    if base is None and most is None:
        return
    base = BACKOFF_BASE if base is None else base
    most = BACKOFF_MAX if most is None else most
    if 0 <= most < base and base > 1:  # at most 1 is the worse mistake (AL501)
        name = "backoff_max" if "backoff_max" in retry else "backoff_base"
        yield Finding(
            "AL502",
            _at(facts, name),
            f"every wait is cut to `backoff_max` ({most:g} s) at once, as it is below `backoff_base` ({base:g}); raise the maximum",
        )


def permanent_status_retried(facts: Facts) -> Iterator[Finding]:
    """`retryable_status_codes` lists a status that another attempt can't cure, or a number that is no error status.

    400, 401, 403, 404, 422 and the like say that the request itself is wrong: the same request gets the same answer, and costs time
    and often money.

    Remove it.
    """
    located = facts.fields.get("retry")
    node = find(located.value, ("retryable_status_codes",)) if located else None
    codes = _retry(facts).get("retryable_status_codes")
    if not isinstance(node, Sequence) or not isinstance(codes, list):
        return
    for at, (item, code) in enumerate(zip(node.items, codes, strict=False)):
        if not isinstance(code, int) or isinstance(code, bool):
            continue
        if code in PERMANENT:
            message = f"status `{code}` says the request is wrong, another attempt gets the same answer; remove it"
        elif not 400 <= code <= 599:
            message = f"`{code}` is no error status, so it never counts; remove it"
        else:
            continue
        gone = edits.remove_item(facts.unit.text, node, at)
        fixes = (Fix(f"remove `{code}`", gone, safe=False),) if gone else ()
        yield Finding("AL503", item.span, message, fixes=fixes)


def retries_beyond_run_timeout(document: WorkflowDocument) -> Iterator[Finding]:
    """A step's retries can't all happen within the run's `config.timeout`.

    The run would be stopped while the step still waits; the later attempts exist on paper only. Counted are the longest waits
    between attempts and, where the step has a `timeout`, the attempts themselves. Retries that nobody asked for, the default ones,
    are not held against the file.

    Allow fewer retries, shorter waits, or a longer `config.timeout`.
    """
    config = mapping(document.head.data.get("config"))
    limit = number(config.get("timeout"))
    if limit is None or limit <= 0:
        return
    default = default_retries(document)
    for step in document.steps:
        facts = step.facts
        if step.type in NEVER_RETRIED or (default[1] == "default" and not _retry(facts)):
            continue  # nobody asked for these retries
        retries, _ = retries_of(step, default)
        waits = backoff_of(facts.data).longest_total(retries)
        running = (retries + 1) * max(0.0, number(facts.data.get("timeout")) or 0.0)
        if retries and waits + running > limit:
            parts = f"{waits:g} s of waits" + (f" and {running:g} s of attempts" if running else "")
            where = facts.key_span("retry") if "retry" in facts.fields else facts.span_of("id")
            yield Finding(
                "AL504",
                step.place(where),
                f"{retries + 1} attempts can take {parts}, more than the run's `timeout` of {limit:g} s; allow fewer retries",
            )


def meaningless_duration(facts: Facts) -> Iterator[Finding]:
    """A time is negative where that has no meaning: `backoff_max`, `backoff_base`, `latency_ms`.

    It is treated as zero.

    Use zero or more.
    """
    for owner, names in (("retry", ("backoff_base", "backoff_max")), ("config", ("latency_ms",))):
        values = facts.data.get(owner)
        if not isinstance(values, dict):
            continue
        for name in names:
            value = number(values.get(name))
            if value is not None and value < 0:
                message = f"`{name}` is `{values[name]}`, a negative time; use 0 or more"
                yield Finding("AL510", _value_at(facts, owner, name), message)


def _value_at(facts: Facts, owner: str, name: str) -> Span:
    located = facts.fields.get(owner)
    node = find(located.value, (name,)) if located is not None else None
    node = node.target if isinstance(node, Alias) else node
    return node.span if node is not None else facts.key_span(owner)
