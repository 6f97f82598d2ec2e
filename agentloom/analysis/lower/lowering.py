"""One walk over a mapping: plain values out, findings and marked scalars noted on the way.

Works on one mapping at a time (a step, or a document's head), in offsets relative to its unit, so that the result can be kept
as long as that unit's text doesn't change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from agentloom.analysis.document import Located, word_span
from agentloom.analysis.lower import faults
from agentloom.analysis.lower.keys import Owner, check_keys
from agentloom.analysis.lower.kinds import FOUND_WORDS, fits, kind_of, looks_like_template, type_of
from agentloom.analysis.symbols import Leaf
from agentloom.diagnostics import Finding, Related
from agentloom.model.catalogue import Block, Shape, catalogue
from agentloom.syntax.duplicates import is_merge
from agentloom.syntax.nodes import Alias, Mapping, Node, Scalar, Sequence
from agentloom.syntax.resolve import resolve
from agentloom.syntax.tree import Unit
from agentloom.syntax.values import entries, plain_value
from agentloom.text import Span


class At(NamedTuple):
    """Where a value stands: dotted path, the field's own word for messages, its key, and whether it is an item of a list."""

    path: str
    name: str
    key: Scalar | None = None
    item: bool = False

    def below(self, name: str, key: Scalar) -> At:
        return At(f"{self.path}.{name}" if self.path else name, name, key)

    def item_at(self, index: int) -> At:
        return At(f"{self.path}.{index}", self.name, None, True)


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Lowering:
    """What one walk gathers."""

    unit: Unit
    findings: list[Finding] = field(default_factory=list)
    leaves: list[Leaf] = field(default_factory=list)
    known: dict[tuple[int, int], Any] = field(default_factory=dict)
    """Values of anchored collections that are free of faults, by node and shape: each is walked once."""

    def block(self, node: Mapping, block: Block, at: At) -> dict[str, Any]:
        """Check a mapping with known keys; return its plain values."""
        fields = self.fields(node)
        findings, fields = check_keys(Owner(node, self.unit, block, fields, at.name))
        self.findings.extend(findings)
        return self.values(fields, block, at)

    def values(self, fields: dict[str, Located], block: Block, at: At, skip: Iterable[str] = ()) -> dict[str, Any]:
        """Return the plain values of a mapping's fields, checked against a block where it knows them."""
        data: dict[str, Any] = {}
        for name, located in fields.items():
            described = block.fields.get(name)
            if described is None or name in skip:
                data[name] = plain_value(located.value)
            else:
                data[name] = self.value(located.value, described.shape, at.below(name, located.key))
        return data

    def fields(self, node: Mapping) -> dict[str, Located]:
        """Return a mapping's fields after merge keys; keys that are no single values are told."""
        found: dict[str, Located] = {}
        for entry in node.entries:
            key = entry.key.target if isinstance(entry.key, Alias) else entry.key
            if key is not None and not isinstance(key, Scalar):
                self.findings.append(complex_key(key, self.unit.text))
            elif isinstance(key, Scalar) and is_merge(key):
                self.findings.extend(wrong_merges(entry.value))
        for key_node, value, inherited in entries(node):
            via = _merged_through(node, key_node) if inherited else None
            found[key_node.value] = Located(key_node, value, via)
        return found

    def value(self, node: Node, shape: Shape, at: At) -> Any:
        """Return a node's plain value and note what is wrong with it."""
        if isinstance(node, Alias):
            return self._alias(node, shape, at)
        if isinstance(node, Scalar):
            return self._scalar(node, shape, at)
        if node.anchor is None:
            return self._collection(node, shape, at)
        key = (id(node), id(shape))
        if key in self.known:
            return self.known[key]
        before = len(self.findings)
        result = self._collection(node, shape, at)
        if len(self.findings) == before:
            self.known[key] = result
        return result

    def _alias(self, node: Alias, shape: Shape, at: At) -> Any:
        """A fault of an aliased value as a whole is shown at the alias: where it is written, it may well be right."""
        target = node.target
        if target is None:
            return None
        before = len(self.findings)
        result = self.value(target, shape, at)
        for index in range(before, len(self.findings)):
            found = self.findings[index]
            if found.span in (target.span, word_span(target)):
                there = Related(found.span, f"`&{node.name}` is here")
                self.findings[index] = found._replace(span=node.span, related=(there,), fixes=())
        return result

    def _scalar(self, node: Scalar, shape: Shape, at: At) -> Any:
        value = resolve(node)
        kind = type_of(value)
        if shape.any_of:
            shape = _alternative(shape, kind, ())
        if not fits(kind, shape):
            self.findings.append(faults.wrong_type(node, value, shape, at.name, at.item, at.key, self.unit.text))
            return value
        if kind in ("integer", "number") and "string" in shape.types:
            value = node.value  # the text that stands in the file: version 1.10 stays 1.10
        if shape.enum is not None and value is not None and value not in shape.enum:
            self.findings.append(faults.no_choice(node, shape.enum, at.name, at.item, "AL104"))
        elif (found := faults.out_of_bounds(node, value, shape, at.name, at.item)) is not None:
            self.findings.append(found)
        elif shape.pattern is not None and isinstance(value, str) and not shape.mark("defines"):  # ids: rules/names
            wrong = faults.malformed(node, value, shape, at.name)
            if wrong is not None:
                self.findings.append(wrong)
        if shape.marks:
            self.leaves.append(Leaf(node, shape, at.path, value))
        return value

    def _collection(self, node: Mapping | Sequence, shape: Shape, at: At) -> Any:
        if shape.any_of:
            keys = {key.value for key, _, _ in entries(node)} if isinstance(node, Mapping) else ()
            shape = _alternative(shape, kind_of(node), keys)
        if not fits(kind_of(node), shape):
            self._misfit(node, shape, at)
            return plain_value(node)
        if shape.mark("template_deep"):
            self._deep(node, shape, at)
            return plain_value(node)
        if isinstance(node, Sequence):
            return self._sequence(node, shape, at)
        if shape.block is not None and shape.block in catalogue().blocks and shape.block != catalogue().workflow:
            return self.block(node, catalogue().blocks[shape.block], at)
        if shape.values is None:
            return plain_value(node)  # open, or an inline workflow, which is a document of its own (see ``children``)
        result: dict[str, Any] = {}
        for name, located in self.fields(node).items():
            result[name] = self.value(located.value, shape.values, at.below(name, located.key))
        return result

    def _sequence(self, node: Sequence, shape: Shape, at: At) -> Any:
        if shape.min_items is not None and len(node.items) < shape.min_items:
            span = faults.collection_span(node, at.key, self.unit.text)
            message = f"`{at.name}` is empty; give it at least {shape.min_items} item"
            self.findings.append(Finding("AL106", span, message))
        if shape.item is None:
            return plain_value(node)
        return [self.value(item, shape.item, at.item_at(index)) for index, item in enumerate(node.items)]

    def _misfit(self, node: Mapping | Sequence, shape: Shape, at: At) -> None:
        text = self.unit.text
        if isinstance(node, Mapping) and "string" in shape.types and looks_like_template(node, text):
            self.findings.append(faults.unquoted_template(node, text))
        else:
            self.findings.append(faults.wrong_type(node, None, shape, at.name, at.item, at.key, text))

    def _deep(self, node: Mapping | Sequence, shape: Shape, at: At) -> None:
        """Gather every scalar below a field whose texts at any depth are templates."""
        text = self.unit.text
        if isinstance(node, Mapping) and looks_like_template(node, text):
            self.findings.append(faults.template_for_all(node, text, at.name))
            return
        leaf_shape = Shape(marks=shape.marks)
        todo: list[tuple[Node, str]] = [(node, at.path)]
        seen: set[int] = set()
        while todo:
            found, path = todo.pop()
            if isinstance(found, Alias):
                if found.target is None or id(found.target) in seen:
                    continue
                seen.add(id(found.target))
                found = found.target
            if isinstance(found, Scalar):
                self.leaves.append(Leaf(found, leaf_shape, path, resolve(found)))
            elif isinstance(found, Sequence):
                todo.extend((item, f"{path}.{index}") for index, item in enumerate(found.items))
            elif isinstance(found, Mapping):
                if looks_like_template(found, text):
                    self.findings.append(faults.unquoted_template(found, text))
                    continue
                fields = self.fields(found)
                if not _is_escaped(fields):
                    todo.extend((located.value, f"{path}.{name}") for name, located in fields.items())


def wrong_merges(node: Node) -> Iterator[Finding]:
    """Yield what `<<` can't merge: anything but mappings and lists of mappings."""
    if isinstance(node, Alias) and node.target is None:
        return
    target = node.target if isinstance(node, Alias) else node
    if isinstance(target, Sequence):
        for item in target.items:
            if kind_of(item) != "object" and not (isinstance(item, Alias) and item.target is None):
                yield Finding(
                    "AL105", item.span, f"`<<` merges mappings, this is {FOUND_WORDS[kind_of(item)]}; remove it"
                )
    elif not isinstance(target, Mapping):
        yield Finding("AL105", node.span, f"`<<` merges mappings, this is {FOUND_WORDS[kind_of(node)]}; remove it")


def complex_key(node: Node, text: str) -> Finding:
    """Return the finding for a key that is a list or a mapping."""
    what = "a list" if isinstance(node, Sequence) else "a mapping"
    source = text[node.span.start : node.span.end]
    if source.startswith("{") and source.endswith("}"):
        return Finding("AL011", node.span, "a key is a text, this is a mapping to YAML; put quotes around a template")
    return Finding("AL105", node.span, f"a key must be a text, this is {what}; write a name")


def _is_escaped(fields: dict[str, Located]) -> bool:
    """Tell whether a mapping is ``{value: …, template: false}``, whose text is no template."""
    if fields.keys() != {"value", "template"}:
        return False
    switch = fields["template"].value
    return isinstance(switch, Scalar) and resolve(switch) is False


def _merged_through(node: Mapping, key: Scalar) -> Span | None:
    """Return the span of the alias behind `<<` that brought a key in; None when the merged mapping is written in place."""
    if node.span.start <= key.span.start < node.span.end:
        return None
    first: Span | None = None
    for entry in node.entries:
        if not (isinstance(entry.key, Scalar) and entry.key.value == "<<" and entry.key.style == "plain"):
            continue
        for value in entry.value.items if isinstance(entry.value, Sequence) else (entry.value,):
            target = value.target if isinstance(value, Alias) else None
            if isinstance(target, Mapping):
                first = first or value.span
                if any(found is key for found, _, _ in entries(target)):
                    return value.span
    return first or node.span


def _alternative(shape: Shape, kind: str, keys: Iterable[str]) -> Shape:
    """Return the alternative that a value is measured by; one that takes all their types when none does."""
    found = catalogue().alternative(shape, kind, tuple(keys))
    if found is not None:
        return found
    return shape._replace(types=tuple(dict.fromkeys(t for option in shape.any_of for t in option.types)))
