"""Rules about secrets: those that stand in the file, and keys that hold one and aren't redacted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from agentloom.analysis import edits
from agentloom.analysis.document import Facts, WorkflowDocument, word_span
from agentloom.analysis.effort import mapping
from agentloom.diagnostics import Edit, Finding, Fix
from agentloom.language.paths import is_name
from agentloom.syntax.nodes import Mapping
from agentloom.syntax.values import find_key
from agentloom.text import Span

_SECRET = (
    r"\bsk-[\w-]{20,}|\bAKIA[0-9A-Z]{16}\b|\bghp_[A-Za-z0-9]{36}|\bgithub_pat_\w{22,}|\bglpat-[\w-]{20,}|\bxox[abprs]-[\w-]{10,}"
    r"|\bAIza[\w-]{35}|\bhf_[A-Za-z0-9]{30,}|\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{5,}|-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|(?<=Bearer )[\w.~+/-]{20,}=*"
)
_MADE_UP = r"(?i)x{4,}|\*{3,}|\.{3}|your|example|placeholder|dummy|changeme|0{6,}|1234567"
_FEWEST = 8
"""Different characters that a key has at least; texts with fewer are made up."""

_WORDS = frozenset(
    (
        "password",
        "passwd",
        "secret",
        "apikey",
        "api_key",
        "access_key",
        "private_key",
        "auth_token",
        "access_token",
        "credentials",
    )
)


def secret_in_file(facts: Facts) -> Iterator[Finding]:
    """Something that looks like a key or a token stands in the file.

    Files are committed, sent around and kept in checkpoints; providers' keys are read from the environment, and never belong here.

    Take it out, and make a new one: this one is known now. Hand it over with `--state`, and redact it in `state_schema`.
    """
    text = facts.unit.text
    for span in _stretches(facts):
        part = text[span.start : span.end]
        for found in re.finditer(_SECRET, part):
            word = found.group()
            if re.search(_MADE_UP, word) or (len(set(word)) < _FEWEST):
                continue
            yield Finding(
                "AL801",
                Span(span.start + found.start(), span.start + found.end()),
                "this looks like a secret, which doesn't belong in a file; take it out and make a new one",
            )


def _stretches(facts: Facts) -> Iterable[Span]:
    """Return the text of a step, or of a head without its steps."""
    if facts.block is not None and "steps" in facts.block.fields:
        return [located.value.span for name, located in facts.fields.items() if name != "steps" and located.via is None]
    return [facts.node.span]


def secret_not_redacted(document: WorkflowDocument) -> Iterator[Finding]:
    """A state key is called like a secret and isn't redacted.

    The state is written to checkpoints and printed with `--json`; what `state_schema` redacts is replaced there by a hash.

    Add it to `state_schema` with `redact: true`.
    """
    schema = mapping(document.head.data.get("state_schema"))
    located = document.head.fields.get("state")
    for name in mapping(document.head.data.get("state")):
        if not isinstance(name, str) or not _sounds_secret(name) or _is_redacted(name, schema) or located is None:
            continue
        key = find_key(located.value, (name,))
        span = (word_span(key) if key is not None else located.key.span).shift(document.base)
        yield Finding(
            "AL802",
            span,
            f"`{name}` sounds like a secret and isn't redacted; add it to `state_schema`",
            fixes=_redact(document, name),
        )


def _sounds_secret(name: str) -> bool:
    word = name.casefold().replace("-", "_")
    return word in _WORDS or any(word.endswith(f"_{end}") for end in _WORDS)


def _is_redacted(name: str, schema: dict[str, Any]) -> bool:
    if mapping(schema.get(name)).get("redact") is True:
        return True
    globs = [glob for glob, rule in schema.items() if mapping(rule).get("redact") is True and set(glob) & set("*?[")]
    if not globs:
        return False
    from fnmatch import fnmatchcase

    return any(fnmatchcase(name, glob) for glob in globs)


def _redact(document: WorkflowDocument, name: str) -> tuple[Fix, ...]:
    head = document.head
    if not is_name(name) or not isinstance(head.node, Mapping) or document.inline:
        return ()
    located = head.fields.get("state_schema")
    if located is None:
        added = edits.add_entry(head.unit.text, head.node, "state_schema", f"{{{name}: {{redact: true}}}}", "state")
    elif isinstance(located.value, Mapping) and located.via is None:
        added = edits.add_entry(head.unit.text, located.value, name, "{redact: true}")
    else:
        return ()
    moved = tuple(Edit(edit.span.shift(document.base), edit.text) for edit in added)
    return (Fix(f"redact `{name}`", moved, safe=False),) if moved else ()
