"""The tree of a router expression: what is left of Python's syntax, with the place of every node.

Spans are offsets in the expression's value. Brackets around an expression belong to no node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from agentloom.text import Span

CompareOperator = Literal["==", "!=", "<", "<=", ">", ">=", "in", "not in", "is", "is not"]


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Constant:
    """A literal text, number, ``True``, ``False`` or ``None``. ``inner`` is a text's span without its quotes."""

    span: Span
    value: str | int | float | bool | None
    inner: Span


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Name:
    """A bare name."""

    span: Span
    name: str


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Attribute:
    """``target.name``."""

    span: Span
    target: Node
    name: str
    name_span: Span


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Subscript:
    """``target[key]`` with a literal key; ``key_span`` is inside the quotes of a text."""

    span: Span
    target: Node
    key: str | int
    key_span: Span


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Slice:
    """``target[start:stop:step]`` with literal numbers."""

    span: Span
    target: Node
    start: int | None
    stop: int | None
    step: int | None


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class FunctionCall:
    """``name(…)``."""

    span: Span
    name: str
    name_span: Span
    arguments: tuple[Node, ...]


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class MethodCall:
    """``target.name(…)``."""

    span: Span
    target: Node
    name: str
    name_span: Span
    arguments: tuple[Node, ...]


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Unary:
    """``-x``, ``+x`` or ``not x``."""

    span: Span
    operator: Literal["+", "-", "not"]
    operand: Node


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Sum:
    """A chain of ``+`` and ``-``: the first term, and each further one with its sign."""

    span: Span
    first: Node
    rest: tuple[tuple[Literal["+", "-"], Node], ...]


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Logic:
    """A chain of one of ``and`` and ``or``."""

    span: Span
    operator: Literal["and", "or"]
    values: tuple[Node, ...]


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Compare:
    """A comparison, chained or not: ``first op value op value …``."""

    span: Span
    first: Node
    rest: tuple[tuple[CompareOperator, Node], ...]


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Conditional:
    """``then if test else otherwise``."""

    span: Span
    test: Node
    then: Node
    otherwise: Node


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Display:
    """A list, or a tuple, written out."""

    span: Span
    kind: Literal["list", "tuple"]
    items: tuple[Node, ...]


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Pairs:
    """A mapping written out."""

    span: Span
    entries: tuple[tuple[Node, Node], ...]


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Refused:
    """Something that is no allowed expression; a fault says why. ``parts`` are the expressions in it that could be read."""

    span: Span
    parts: tuple[Node, ...] = ()


Node: TypeAlias = (
    Constant
    | Name
    | Attribute
    | Subscript
    | Slice
    | FunctionCall
    | MethodCall
    | Unary
    | Sum
    | Logic
    | Compare
    | Conditional
    | Display
    | Pairs
    | Refused
)


def children(node: Node) -> tuple[Node, ...]:
    """Return the nodes right below ``node``, from left to right."""
    match node:
        case Attribute(target=target) | Subscript(target=target) | Slice(target=target):
            return (target,)
        case FunctionCall(arguments=arguments):
            return arguments
        case MethodCall(target=target, arguments=arguments):
            return (target, *arguments)
        case Unary(operand=operand):
            return (operand,)
        case Sum(first=first, rest=terms):
            return (first, *(term for _, term in terms))
        case Compare(first=first, rest=compared):
            return (first, *(value for _, value in compared))
        case Logic(values=values):
            return values
        case Conditional(test=test, then=then, otherwise=otherwise):
            return (then, test, otherwise)
        case Display(items=items):
            return items
        case Pairs(entries=entries):
            return tuple(item for entry in entries for item in entry)
        case Refused(parts=parts):
            return parts
    return ()
