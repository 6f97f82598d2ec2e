"""Rules about retries and timeouts that can't do what they say."""

from __future__ import annotations

from collections.abc import Iterator

from agentloom.analysis import edits
from agentloom.analysis.document import Facts, Step, WorkflowDocument
from agentloom.analysis.effort import NEVER_RETRIED, Effort, default_retries, effort, mapping, number
from agentloom.diagnostics import Finding, Fix, Related
from agentloom.syntax.nodes import Mapping

_CHANGING = ("POST", "PUT", "DELETE")
# Commands that only read, as long as nothing but a pipe is joined to them.
_READING = frozenset(
    [
        "cat",
        "ls",
        "head",
        "tail",
        "wc",
        "sort",
        "uniq",
        "cut",
        "grep",
        "rg",
        "date",
        "pwd",
        "echo",
        "du",
        "df",
        "stat",
        "file",
        "jq",
        "diff",
    ]
)
_READING_GIT = frozenset(("git", word) for word in ("log", "show", "diff", "status", "blame", "ls-files", "describe"))
_JOINED = frozenset(">;&`$\n")


def retry_without_effect(facts: Facts) -> Iterator[Finding]:
    """A router or an approval gate has a `retry`, and nothing of it that could be retried.

    Whatever makes a router or a gate fail would make it fail again, so it is never tried twice. Only a `timeout` of the step is.

    Remove `retry`.
    """
    if facts.data.get("type") not in NEVER_RETRIED or "retry" not in facts.fields:
        return
    retry = mapping(facts.data.get("retry"))
    if not retry or retry.get("max_retries") == 0 or (number(facts.data.get("timeout")) or 0) > 0:
        return
    word = "a router" if facts.data.get("type") == "router" else "a gate"
    yield Finding(
        "AL505", facts.key_span("retry"), f"no failure of {word} is retried, so this has no effect; remove it"
    )


def side_effect_retried(document: WorkflowDocument) -> Iterator[Finding]:
    """A tool that changes something may run several times, since nobody said how often.

    A failed attempt may have done its work already: a command that ran, a request that was answered too late. By default each step has
    three more attempts. Commands that only read aren't meant, nor is `file_write`: it writes the same text again.

    Say how often: `retry: {max_retries: 0}` for what must not happen twice.
    """
    if default_retries(document)[1] != "default":
        return  # somebody has said how often
    for step in document.steps:
        if step.type != "tool" or "retry" in step.facts.fields or not _changes(step.facts):
            continue
        facts = step.facts
        node = facts.node
        added = (
            edits.add_entry(facts.unit.text, node, "retry", "{max_retries: 0}", "tool_args", "tool_name")
            if isinstance(node, Mapping)
            else ()
        )
        fixes = (Fix("never try it twice", added, safe=False),) if added and step.alias is None else ()
        yield Finding(
            "AL506",
            facts.span_of("tool_name"),
            f"`{facts.text('tool_name')}` may run 4 times when an attempt fails; say how often with `retry`",
            fixes=fixes,
        ).shift(step.base)


def _changes(facts: Facts) -> bool:
    tool = facts.data.get("tool_name")
    if tool == "http_request":
        method = mapping(facts.data.get("tool_args")).get("method", "GET")
        return isinstance(method, str) and method.upper() in _CHANGING
    if tool != "shell_command":
        return False
    command = mapping(facts.data.get("tool_args")).get("command")
    return not isinstance(command, str) or not _JOINED.isdisjoint(command) or not all(map(_reads, command.split("|")))


def _reads(command: str) -> bool:
    words = command.split()
    return bool(words) and (words[0] in _READING or tuple(words[:2]) in _READING_GIT)


def timeout_beyond_run(document: WorkflowDocument) -> Iterator[Finding]:
    """A step's `timeout` is as long as that of the whole run, or longer.

    The run ends first, so the step's own limit never counts, and neither do its retries after it.

    Shorten the step's `timeout`, or raise `config.timeout`.
    """
    limit = number(mapping(document.head.data.get("config")).get("timeout"))
    if limit is None or limit <= 0:
        return
    for step in document.steps:
        timeout = number(step.facts.data.get("timeout"))
        if timeout is not None and timeout >= limit:
            yield Finding(
                "AL507",
                step.place(step.facts.span_of("timeout")),
                f"the run ends after {limit:g} s (`config.timeout`), so {timeout:g} s are never reached; shorten it",
            )


def multiplied_retries(document: WorkflowDocument) -> Iterator[Finding]:
    """Retries of a subworkflow step and of the steps below it multiply.

    Each attempt of the outer step runs the whole workflow again, and there each step has its own attempts: three inside and two outside make
    up to six, with all that they cost. Told where both are asked for, not for the defaults.

    Set `max_retries: 0` on one of the two.
    """
    for step in document.steps:
        found = effort(document).efforts.get(step.id or "") if step.type == "subworkflow" else None
        if found is None or found.step is not step or found.attempts < 2 or found.inside <= found.attempts:
            continue
        inner = _asked_for(document, found)
        if found.origin == "default" or inner is None:
            continue
        where = step.facts.key_span("retry") if "retry" in step.facts.fields else step.facts.span_of("id")
        child = document.children[step.id or ""]
        yield Finding(
            "AL508",
            step.place(where),
            f"up to {found.inside} attempts of `{'.'.join(found.path)}`: {found.attempts} here times {found.inside // found.attempts} below",
            related=(
                Related(inner.step.name_span, f"`{inner.step.id}` is here", str(child.path) if child.path else None),
            ),
        )


def _asked_for(document: WorkflowDocument, found: Effort) -> Effort | None:
    """Return the worst case of the step right below that makes the most attempts, if somebody asked for them."""
    child = document.children.get(found.path[0])
    if child is None or child.document is None or len(found.path) < 2:
        return None
    below = effort(child.document).efforts.get(found.path[1])
    return below if below is not None and below.origin != "default" else None


def timeout_never_reached(document: WorkflowDocument) -> Iterator[Finding]:
    """A step's `timeout` is longer than all requests together that it can make.

    Requests to a provider end by themselves, after 60 seconds, with Ollama after 120. A step with one call ends long before a timeout of ten
    minutes; only waiting for a rate limit could take longer.

    Shorten it, or leave it out.
    """
    config = mapping(document.head.data.get("config"))
    for step in document.steps:
        timeout = number(step.facts.data.get("timeout"))
        if step.type != "llm_call" or timeout is None or timeout <= 60:
            continue
        calls = _calls(step)
        most = calls * _request_time(config, step)
        if 0 < most < timeout:
            yield Finding(
                "AL509",
                step.place(step.facts.span_of("timeout")),
                f"its {'request ends' if calls == 1 else f'{calls} requests end'} after {most:g} s at the latest, so {timeout:g} s are never reached",
            )


def _calls(step: Step) -> int:
    """Return how many requests one attempt of a model call may make."""
    data = step.facts.data
    calls = 1
    if data.get("tools"):
        rounds = data.get("max_tool_iterations", 5)
        calls += rounds if type(rounds) is int and rounds > 0 else 5
    if data.get("response_schema"):
        retries = mapping(data.get("retry")).get("max_retries", 10)
        calls += retries if type(retries) is int and retries > 0 else 10
    return calls + (1 if data.get("conversation") else 0)


def _request_time(config: dict[str, object], step: Step) -> float:
    """Return how long one request may take when every provider that may serve the model is tried; 0 where that isn't known."""
    from agentloom.providers.table import PROVIDERS

    model = step.facts.data.get("model") or config.get("model") or "gpt-4o-mini"
    if not isinstance(model, str) or config.get("provider") == "mock":
        return 0.0
    return sum(spec.timeout for spec in PROVIDERS if spec.name != "mock" and spec.serves(model))
