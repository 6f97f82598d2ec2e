"""AL002: two keys of one name in one mapping."""

from __future__ import annotations

import re
from collections.abc import Sequence as Items

from agentloom.diagnostics import Edit, Finding, Fix, Related
from agentloom.syntax.nodes import Alias, Entry, Mapping, Scalar, Sequence
from agentloom.text import Span

MOST = 50
"""Findings per mapping; whoever repeats more keys than that has another problem."""

_LINE_END = r"[^\r\n]*(?:\r\n|\r|\n)?"
_BEHIND = r"[ \t\r\n]*,[ \t]*"


def duplicate_keys(text: str, mapping: Mapping) -> list[Finding]:
    """Return one finding for every key of ``mapping`` that an earlier one repeats; offsets are those of ``text``."""
    first: dict[str, Entry] = {}
    merges: list[Entry] = []
    findings: list[Finding] = []
    for at, entry in enumerate(mapping.entries):
        key = entry.key
        if not isinstance(key, Scalar):
            continue
        if is_merge(key):
            merges.append(entry)
            continue
        before = first.setdefault(key.value, entry)
        if before is not entry and len(findings) < MOST:
            findings.append(
                Finding(
                    "AL002",
                    key.span,
                    f"`{key.value}` is already set in this mapping; remove one of the two",
                    (Related(before.key.span, f"`{key.value}` is first set here"),),
                    (Fix("remove this one", (Edit(extent(text, mapping, at), ""),), safe=False),),
                )
            )
    if len(merges) > 1:
        findings.append(_two_merges(text, mapping, merges))
    return findings


def is_merge(key: object) -> bool:
    """Tell whether a key is the merge key ``<<``."""
    return isinstance(key, Scalar) and key.value == "<<" and key.style == "plain"


def _two_merges(text: str, mapping: Mapping, merges: Items[Entry]) -> Finding:
    parts = [_merged_names(text, entry) for entry in merges]
    fixes: tuple[Fix, ...] = ()
    cure = "merge them in one list"
    if all(parts):
        joined = f"[{', '.join(part for part in parts if part)}]"
        cure = f"write `<<: {joined}`"
        later = {id(entry) for entry in merges[1:]}
        places = [at for at, entry in enumerate(mapping.entries) if id(entry) in later]
        removals = tuple(Edit(extent(text, mapping, at), "") for at in places)
        fixes = (Fix(f"merge them as `<<: {joined}`", (Edit(merges[0].value.span, joined), *removals)),)
    return Finding(
        "AL002",
        merges[1].key.span,
        f"a mapping takes one `<<`; {cure}",
        (Related(merges[0].key.span, "the first `<<`"),),
        fixes,
    )


def _merged_names(text: str, entry: Entry) -> str | None:
    """Return what one `<<` merges, as it is written in a list on one line; None when it does not go there."""
    value = entry.value
    if isinstance(value, Alias):
        return f"*{value.name}"
    if isinstance(value, Sequence) and value.items and all(isinstance(item, Alias) for item in value.items):
        return ", ".join(f"*{item.name}" for item in value.items if isinstance(item, Alias))
    if isinstance(value, Mapping) and value.flow and value.anchor is None and value.tag is None:
        written = text[value.span.start : value.span.end]
        return None if "\n" in written or "\r" in written else written
    return None


def extent(text: str, mapping: Mapping, at: int) -> Span:
    """Return what has to go for entry number ``at`` to be gone: its lines, or in flow style itself and a comma."""
    entry = mapping.entries[at]
    start = entry.key.anchor.start if not isinstance(entry.key, Alias) and entry.key.anchor else entry.key.span.start
    end = max(entry.value.span.end, entry.key.span.end)
    if mapping.flow:
        comma = _back_over_blanks(text, start)
        if text[comma - 1 : comma] == ",":
            return Span(_back_over_blanks(text, comma - 1), end)
        behind = re.compile(_BEHIND).match(text, end)
        return Span(start, behind.end() if behind else end)
    line = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
    if text[line:start].strip(" \t"):
        line = start  # shares its line with a dash: the dash stays
    tail = re.compile(_LINE_END).match(text, end)
    return Span(line, tail.end() if tail else end)


def _back_over_blanks(text: str, at: int) -> int:
    while at > 0 and text[at - 1] in " \t\r\n":
        at -= 1
    return at
