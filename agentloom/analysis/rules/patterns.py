"""The rule about regular expressions in the file."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator

from agentloom.analysis.document import Facts
from agentloom.analysis.effort import mapping
from agentloom.analysis.rules.places import span_at
from agentloom.diagnostics import Finding

LONGEST = 60
"""How much of a pattern a message shows, in characters."""


def invalid_pattern(facts: Facts) -> Iterator[Finding]:
    """One of an agent's `forbidden_patterns` is no regular expression.

    They are looked for in each reply, so the step would fail for good, before it asks anything.

    Correct the pattern; where its signs are meant as they stand, put a backslash before each.
    """
    known = facts.block.fields if facts.block is not None else {}
    if "constraints" in known:
        yield from _of(facts, ())
    for name in mapping(facts.data.get("agents")) if "agents" in known else ():
        yield from _of(facts, ("agents", name))


def _of(facts: Facts, path: tuple[str, ...]) -> Iterator[Finding]:
    owner = mapping(facts.data)
    for name in path:
        owner = mapping(owner.get(name))
    patterns = mapping(owner.get("constraints")).get("forbidden_patterns")
    for number, pattern in enumerate(patterns if isinstance(patterns, list) else ()):
        fault = fault_of(pattern) if isinstance(pattern, str) else None
        if fault is not None:
            span = span_at(facts, *path, "constraints", "forbidden_patterns", number)
            yield Finding("AL610", span, f"`{pattern[:LONGEST]}` is no regular expression: {fault}; correct it")


def fault_of(pattern: str) -> str | None:
    """Return why a text is no regular expression of Python, or None if it is one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a later Python may read in another way can be used today
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return str(error).replace("\n", " ") or "it can't be read"
    return None
