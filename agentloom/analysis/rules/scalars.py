"""Rules about YAML scalars that other parsers, or people, read differently."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from agentloom.analysis import edits
from agentloom.analysis.document import Facts
from agentloom.diagnostics import Finding, Fix
from agentloom.model.catalogue import STEP, Catalogue, Shape, catalogue
from agentloom.syntax.nodes import Alias, Mapping, Node, Scalar
from agentloom.syntax.nodes import Sequence as SequenceNode
from agentloom.syntax.resolve import resolve
from agentloom.text import Span

Meant = Literal["text", "number", "anything"]

_FIRST = frozenset("-+0123456789yYnNoO")
_BOOLEAN_11 = frozenset(("yes", "Yes", "YES", "no", "No", "NO", "on", "On", "ON", "off", "Off", "OFF"))
# Compiled where they are used: few files have such values.
_ZERO_FIRST = r"[-+]?0[0-9_]*[0-9]\Z"
_EXPONENT = r"[-+]?[0-9]+(?:\.[0-9]*)?[eE][0-9]+\Z|[-+]?[0-9]+[eE][-+][0-9]+\Z"
_SIXTIES_11 = r"[-+]?[0-9]+(?::[0-5]?[0-9])+(?:\.[0-9]*)?\Z"
_DATE_11 = r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[ \tTt][0-9].*)?\Z"


def version_dependent_scalar(facts: Facts) -> Iterator[Finding]:
    """A value without quotes that YAML versions and parsers read differently.

    `yes`, `on`, `017`, `1_000`, `5319E7` and dates are texts to one parser, and true, numbers or dates to the next; agentloom goes
    by YAML 1.2. A version such as `1.10` is read as the text in the file here, and as the number 1.1 elsewhere.

    Put quotes around it if it is meant as text, or write the number out.
    """
    for name, located in facts.fields.items():
        value = located.value
        if value.__class__ is Scalar and name != "version" and not _is_suspect(value):
            continue  # nearly every one
        if located.via is not None or name in ("steps", "workflow_inline"):
            continue
        field = facts.block.fields.get(name) if facts.block else None
        if name == "version" and isinstance(value, Scalar):
            yield from _version(value)
            continue
        for node, meant in _suspects(value, field.shape if field else Shape()):
            yield from _reading(node, meant)


def _suspects(node: Node, shape: Shape) -> Iterator[tuple[Scalar, Meant]]:
    """Yield the plain scalars at and below a node that may be read in two ways, keys of open mappings included."""
    known = catalogue()
    todo: list[tuple[Node, Shape]] = [(node, shape)]
    while todo:
        at, shape = todo.pop()
        if at.__class__ is Scalar:
            if _is_suspect(at):
                yield at, _meant(shape)
        elif isinstance(at, SequenceNode):
            item = shape.item or _ANYTHING
            todo.extend([(inner, item) for inner in at.items])
        elif isinstance(at, Mapping):
            if shape.any_of:
                shape = known.alternative(shape, "object", _names(at)) or _ANYTHING
            block = _block_of(known, shape)
            for entry in at.entries:
                key = entry.key
                if block is None:
                    todo.append((entry.value, shape.values or _ANYTHING))
                    if isinstance(key, Scalar) and _is_suspect(key) and key.raw in _BOOLEAN_11:
                        yield key, "text"
                else:
                    field = block.get(key.value) if isinstance(key, Scalar) else None
                    todo.append((entry.value, field or _ANYTHING))


_ANYTHING = Shape()


def _block_of(known: Catalogue, shape: Shape) -> dict[str, Shape] | None:
    if shape.block is None or shape.block == STEP:
        return None
    return {name: field.shape for name, field in known.blocks[shape.block].fields.items()}


def _names(node: Mapping) -> list[str]:
    return [entry.key.value for entry in node.entries if isinstance(entry.key, Scalar)]


def _is_suspect(node: Node) -> bool:
    return isinstance(node, Scalar) and node.style == "plain" and node.raw[:1] in _FIRST and node.tag is None


def _meant(shape: Shape) -> Meant:
    if "number" in shape.types or "integer" in shape.types:
        return "number"
    return "text" if "string" in shape.types or any("string" in option.types for option in shape.any_of) else "anything"


def _version(node: Scalar) -> Iterator[Finding]:
    value = resolve(node)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and str(value) != node.raw:
        message = f"`{node.raw}` is the text in the file here, but the number {value} to other parsers; quote it"
        yield Finding("AL009", node.span, message, fixes=(_quoted(node),))


def _reading(node: Scalar, meant: Meant) -> Iterator[Finding]:
    """Yield the finding for a scalar that parsers read in two ways, if it is one."""
    raw = node.raw
    value = resolve(node)
    if isinstance(value, str):
        if meant != "number" and raw in _BOOLEAN_11:
            other = "true" if raw.casefold() in ("yes", "on") else "false"
        elif meant == "text" and re.match(_DATE_11, raw):
            other = "a date"
        elif meant == "text" and re.match(_SIXTIES_11, raw):
            other = "a number"
        else:
            return
        message = f"`{raw}` is a text here, but {other} to YAML 1.1 parsers; quote it"
        yield Finding("AL009", node.span, message, fixes=(_quoted(node),))
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        other = _number_elsewhere(raw, value)
        if other:
            written = Fix(f"write `{_written(value)}`", edits.set_source(node, _written(value)), safe=False)
            numeric = meant == "number" or "_" in raw
            cure = f"write `{_written(value)}`" if numeric else f"quote it, or write `{_written(value)}`"
            fixes = (
                (written,) if meant == "number" else (written, _quoted(node)) if numeric else (_quoted(node), written)
            )
            message = f"`{raw}` is the number {_written(value)} here, but {other} parsers; {cure}"
            yield Finding("AL009", node.span, message, fixes=fixes)


def _number_elsewhere(raw: str, value: float) -> str:
    """Return what other parsers take a number for; empty when all agree."""
    digits = raw.lstrip("+-")
    if digits[:1] == "0" and re.match(_ZERO_FIRST, raw):
        octal = digits.replace("_", "")
        return "a text to YAML 1.1" if set(octal) & set("89") else f"{int(octal, 8)} to YAML 1.1"
    if digits.startswith("0o"):
        return "a text to YAML 1.1"
    if "_" in raw:
        return "a text to some"
    return "a text to some YAML 1.1" if "e" in raw.lower() and re.match(_EXPONENT, raw) else ""


def _written(value: float) -> str:
    return str(int(value)) if value == value and abs(value) < 1e15 and value == int(value) else repr(value)


def _quoted(node: Scalar) -> Fix:
    return Fix("quote it", edits.quote_source(node), safe=False)


_LOST = re.compile(r"[ \t]+(#[^\s#][^\r\n]*)")


def text_lost_to_comment(facts: Facts) -> Iterator[Finding]:
    """A text without quotes is cut off at ` #`, where YAML begins a comment.

    `prompt: Fix ticket #12 now` is the text `Fix ticket`. A comment with a blank behind its `#` is taken as meant.

    Put quotes around the whole text.
    """
    text = facts.unit.text
    for leaf in facts.leaves:
        node = leaf.node
        if text[node.span.end : node.span.end + 1] not in (" ", "\t"):
            continue  # nothing behind it: nearly every one
        if node.style != "plain" or not isinstance(leaf.value, str) or not node.raw:
            continue
        if not (leaf.shape.mark("template") or leaf.shape.mark("text") or leaf.shape.mark("template_deep")):
            continue
        found = _LOST.match(text, node.span.end)
        if found is None or "agentloom:" in found[1]:
            continue
        whole = text[node.span.start : found.end()].rstrip()
        span = Span(found.start(1), found.start(1) + len(found[1].rstrip()))
        fixes: tuple[Fix, ...] = ()
        if "\n" not in whole and "\r" not in whole:
            quoted = '"' + whole.replace("\\", "\\\\").replace('"', '\\"') + '"'
            edit = edits.set_span(Span(node.span.start, node.span.start + len(whole)), quoted)
            fixes = (Fix("quote the whole text", edit, safe=False),)
        yield Finding(
            "AL010", span, "the text ends at ` #`, the rest is a comment to YAML; quote the whole text", fixes=fixes
        )


_ONE_LINE = ("url", "path", "cwd", "method", "encoding")
"""Arguments of tools in which a line break at the end is never meant."""


def trailing_line_break(facts: Facts) -> Iterator[Finding]:
    """A name, a path or an address in block style ends with a line break.

    `|` and `>` keep the last line break, so `model: |` followed by `gpt-4o` is a name of seven characters, which no provider knows.
    In prompts and other texts, and in conditions, it does no harm.

    Write the value behind its key, or `|-`.
    """
    for leaf in facts.leaves:
        node = leaf.node
        if node.style not in ("literal", "folded") or not isinstance(leaf.value, str) or not leaf.value.endswith("\n"):
            continue
        value = leaf.value.strip()
        marks = {mark.kind for mark in leaf.shape.marks if mark.of != "step"}  # an unknown step says so itself
        named = bool(marks & {"ref", "model", "file", "python"}) and not marks & {"template"}
        deep = "template_deep" in marks and leaf.key.rsplit(".", 1)[-1] in _ONE_LINE
        if not value or "\n" in value or not (named or deep):
            continue
        written = node.raw[: len(node.raw) - len(node.raw.lstrip("|>0123456789+-"))]
        header = Span(node.span.start, node.span.start + len(written))
        better = written.replace("+", "") + "-"
        fixes = (Fix(f"write `{better}`", edits.set_span(header, better), safe=False),)
        yield Finding(
            "AL012",
            header,
            f"`{value}` ends with a line break here; write `{better}`, or put it behind the key",
            fixes=fixes,
        )


_KNOWN_TAGS = frozenset(
    f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "map", "seq", "merge")
)
_TAG = r"![^ \t\r\n,\[\]{}]*(?:[ \t]+&[^ \t\r\n]+)?[ \t]*\Z"


def unknown_tag(facts: Facts) -> Iterator[Finding]:
    """A value begins with `!`, which YAML takes for a tag and not for part of the text.

    `prompt: !important be brief` is the text `be brief`; other parsers refuse the file. agentloom knows YAML's own tags, such as `!!str`.

    Put quotes around the whole text, or remove the tag.
    """
    if "!" not in facts.unit.text:
        return
    text = facts.unit.text
    for name, located in facts.fields.items():
        if located.via is not None or name in ("steps", "workflow_inline"):
            continue
        for node in _tagged(located.value):
            line = max(text.rfind("\n", 0, node.span.start), text.rfind("\r", 0, node.span.start)) + 1
            found = re.compile(_TAG).search(text, line, node.span.start)
            if found is None:
                continue
            start = found.start()
            span = Span(start, start + len(found[0].split(None, 1)[0]))
            shown = text[span.start : span.end]
            fixes: tuple[Fix, ...] = ()
            source = text[start : node.span.end].rstrip()
            if isinstance(node, Scalar) and node.style == "plain" and not set(source) & set("\n\r&"):
                quoted = '"' + source.replace("\\", "\\\\").replace('"', '\\"') + '"'
                edit = edits.set_span(Span(start, start + len(source)), quoted)
                fixes = (Fix("quote the whole text", edit, safe=False),)
            message = f"`{shown}` is a tag to YAML, and lost here; quote the whole text, or remove it"
            yield Finding("AL013", span, message, fixes=fixes)


def _tagged(node: Node) -> Iterator[Node]:
    """Yield the nodes with a tag that means nothing here, at and below a node."""
    todo = [node]
    while todo:
        at = todo.pop()
        if isinstance(at, Alias):
            continue
        if at.tag is not None and at.tag not in _KNOWN_TAGS and at.tag != "!":
            yield at
        if isinstance(at, Mapping):
            todo.extend(entry.value for entry in at.entries)
        elif isinstance(at, SequenceNode):
            todo.extend(at.items)
