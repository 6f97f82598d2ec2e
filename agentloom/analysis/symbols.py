"""Names in the text, found through the marks on the model's fields: no code per step type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from agentloom.language.arguments import find_references_deep
from agentloom.language.expression import parse_expression
from agentloom.language.paths import PathFault, format_path, parse_output_path, parse_path
from agentloom.language.template import Placeholder, parse_template
from agentloom.model.catalogue import Shape
from agentloom.syntax.nodes import Scalar
from agentloom.syntax.scalars import text_span
from agentloom.text import Span

Role = Literal["define", "refer", "read", "write"]
Form = Literal["value", "template", "expression"]


class Occurrence(NamedTuple):
    """One place where a name stands in the text.

    ``kind`` is what it names: step, agent, tool, provider, model, file, state. ``key`` is the dotted path of the field it stands
    in, such as ``conditions.0.target``; ``parts`` the segments of a state path, each with its place in ``part_spans``. ``inside``
    and ``parts_inside`` are places in the value of ``node``, and ``form`` tells in which language the name is written there.
    """

    kind: str
    role: Role
    name: str
    key: str
    node: Scalar
    inside: Span
    form: Form = "value"
    parts: tuple[str | int, ...] = ()
    parts_inside: tuple[Span, ...] = ()

    @property
    def span(self) -> Span:
        """The place in the text, relative to the owner's unit. Worked out when it is asked for: most names are in order."""
        return text_span(self.node, *self.inside)

    @property
    def part_spans(self) -> tuple[Span, ...]:
        """The places of ``parts`` in the text, relative to the owner's unit."""
        return tuple(text_span(self.node, *inside) for inside in self.parts_inside)


class Leaf(NamedTuple):
    """A scalar whose field carries marks. ``value`` is its typed value."""

    node: Scalar
    shape: Shape
    key: str
    value: object


def occurrences(leaves: Iterable[Leaf]) -> Iterator[Occurrence]:
    """Yield every name that stands in the given scalars."""
    for leaf in leaves:
        if not isinstance(leaf.value, str):
            continue
        for mark in leaf.shape.marks:
            kind = mark.kind
            if kind == "ref":
                yield _name(leaf, mark.of, "refer")
            elif kind == "defines":
                yield _name(leaf, mark.of, "define")
            elif kind == "model" or kind == "file":
                yield _name(leaf, kind, "refer")
            elif kind == "template":
                yield from _template(leaf)
            elif kind == "template_deep":
                yield from _deep(leaf)
            elif kind == "expression":
                yield from _expression(leaf)
            elif kind == "state_read":
                yield from _state(leaf, "read")
            elif kind == "state_write":
                yield from _state(leaf, "write")


def _name(leaf: Leaf, kind: str, role: Role) -> Occurrence:
    node = leaf.node
    return Occurrence(kind, role, node.value, leaf.key, node, Span(0, len(node.value)))


def _template(leaf: Leaf) -> Iterator[Occurrence]:
    for placeholder in parse_template(leaf.node.value).placeholders:
        yield _placeholder(leaf, placeholder)


def _deep(leaf: Leaf) -> Iterator[Occurrence]:
    for placeholder in find_references_deep(leaf.node.value):
        yield _placeholder(leaf, placeholder)


def _placeholder(leaf: Leaf, placeholder: Placeholder) -> Occurrence:
    return _path(leaf, "read", "template", placeholder.name_span, placeholder.parts, placeholder.spans)


def _expression(leaf: Leaf) -> Iterator[Occurrence]:
    for read in parse_expression(leaf.node.value).reads:
        yield _path(leaf, "read", "expression", read.span, read.parts, read.spans)


def _state(leaf: Leaf, role: Role) -> Iterator[Occurrence]:
    value = leaf.node.value
    start = 1 if role == "read" and value.startswith("{") and value.endswith("}") else 0
    inner = value[start : len(value) - start]
    path = parse_output_path(inner) if role == "write" else parse_path(inner)
    if not isinstance(path, PathFault) and path.parts:
        spans = tuple(span.shift(start) for span in path.spans)
        yield _path(leaf, role, "value", Span(start, start + len(inner)), path.parts, spans)


def _path(
    leaf: Leaf, role: Role, form: Form, span: Span, parts: tuple[str | int, ...], spans: tuple[Span, ...]
) -> Occurrence:
    """Return an occurrence of a state path; its places are those in the value."""
    return Occurrence("state", role, format_path(parts), leaf.key, leaf.node, span, form, parts, spans)
