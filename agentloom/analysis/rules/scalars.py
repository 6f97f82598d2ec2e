"""Rules about YAML scalars that other parsers, or people, read differently."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentloom.analysis import edits
from agentloom.analysis.document import Facts
from agentloom.diagnostics import Finding, Fix
from agentloom.syntax.nodes import Mapping, Node, Scalar, Sequence
from agentloom.syntax.resolve import resolve
from agentloom.text import Span

_BOOLEAN_11 = re.compile(r"(?:yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF)\Z")
_OCTAL_11 = re.compile(r"[-+]?0[0-7]+\Z")
_UNDERSCORES_11 = re.compile(r"[-+]?[0-9][0-9_]*_[0-9_]*(?:\.[0-9_]*)?\Z")
_EXPONENT = re.compile(r"[-+]?[0-9]+[eE][-+]?[0-9]+\Z")
_SIXTIES_11 = re.compile(r"[-+]?[0-9]+(?::[0-5]?[0-9])+(?:\.[0-9]*)?\Z")
_DATE_11 = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}\Z")
_SUSPECT = re.compile(r"[-+0-9yYnNoO]")


def version_dependent_scalar(facts: Facts) -> Iterator[Finding]:
    """A value without quotes that YAML versions and parsers read differently.

    `yes`, `on`, `017`, `1_000`, `5319E7` are texts to one parser and true, numbers or dates to the next; agentloom reads YAML 1.2.
    A version such as `1.10` is read as the text in the file here, and as the number 1.1 elsewhere.

    Put quotes around it if it is meant as text.
    """
    for name, located in facts.fields.items():
        if located.via is not None or name in ("steps", "workflow_inline"):
            continue
        field = facts.block.fields.get(name) if facts.block else None
        texts_only = field is not None and "string" in field.shape.types and "number" not in field.shape.types
        if field is not None and field.shape.item is not None and "string" in field.shape.item.types:
            texts_only = True
        for node in _scalars(located.value):
            told = _reading(node, texts_only, name == "version")
            if told is not None:
                yield Finding("AL009", node.span, told, fixes=(Fix("quote it", edits.quote_source(node), safe=False),))


def _scalars(node: Node) -> Iterator[Scalar]:
    todo = [node]
    while todo:
        at = todo.pop()
        if isinstance(at, Scalar):
            if at.style == "plain" and at.tag is None and at.raw and _SUSPECT.match(at.raw):
                yield at
        elif isinstance(at, Mapping):
            for entry in at.entries:
                todo.append(entry.value)
        elif isinstance(at, Sequence):
            todo.extend(at.items)


def _reading(node: Scalar, texts_only: bool, is_version: bool) -> str | None:
    raw = node.raw
    if is_version:
        value = resolve(node)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and str(value) != raw:
            return f"`{raw}` is a number to YAML, and other parsers read it as {value}; quote it"
        return None
    if _BOOLEAN_11.match(raw):
        return f"`{raw}` is a text here, but true or false to YAML 1.1 parsers; quote it"
    if _OCTAL_11.match(raw) and len(raw.lstrip("+-")) > 1 and not texts_only:
        return f"`{raw}` is the number {int(raw)} here, but {int(raw.replace('0', '0o', 1), 8)} to YAML 1.1 parsers; quote it"
    if _UNDERSCORES_11.match(raw):
        return f"`{raw}` is a text here, but a number to YAML 1.1 parsers; quote it"
    if _EXPONENT.match(raw):
        return f"`{raw}` is a number here, but a text to some YAML 1.1 parsers; quote it or write it out"
    if texts_only and (_DATE_11.match(raw) or _SIXTIES_11.match(raw)):
        return f"`{raw}` is a text here, but a date or a number to YAML 1.1 parsers; quote it"
    return None


_LOST = re.compile(r"[ \t]+(#[^\s#][^\r\n]*)")


def text_lost_to_comment(facts: Facts) -> Iterator[Finding]:
    """A text without quotes is cut off at ` #`, where YAML begins a comment.

    `prompt: Fix ticket #12 now` is the text `Fix ticket`. A comment with a blank behind its `#` is taken as meant.

    Put quotes around the whole text.
    """
    text = facts.unit.text
    for leaf in facts.leaves:
        node = leaf.node
        if node.style != "plain" or not isinstance(leaf.value, str) or not node.raw:
            continue
        if not (leaf.shape.mark("template") or leaf.shape.mark("text") or leaf.shape.mark("template_deep")):
            continue
        found = _LOST.match(text, node.span.end)
        if found is None or "agentloom:" in found[1]:
            continue
        whole = text[node.span.start : found.end()].rstrip()
        span = Span(found.start(1), found.start(1) + len(found[1].rstrip()))
        quoted = '"' + whole.replace("\\", "\\\\").replace('"', '\\"') + '"'
        fixes: tuple[Fix, ...] = ()
        if "\n" not in whole:
            edit = edits.set_span(Span(node.span.start, node.span.start + len(whole)), quoted)
            fixes = (Fix("quote the whole text", edit, safe=False),)
        yield Finding(
            "AL010", span, "the text ends at ` #`, the rest is a comment to YAML; quote the whole text", fixes=fixes
        )
