"""Rules about router expressions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from agentloom.analysis import edits
from agentloom.analysis.document import Facts
from agentloom.analysis.rules.templates import cures
from agentloom.analysis.symbols import Leaf
from agentloom.diagnostics import Finding, Fix
from agentloom.language.expression import Expression, parse_expression
from agentloom.language.faults import Fault
from agentloom.syntax.scalars import text_span
from agentloom.text import Span


class Condition(NamedTuple):
    """One condition of a router. ``span`` is where its text stands; ``constant`` is None unless it is always true or false.

    ``canonical`` compares two of them regardless of spacing and quotes (empty when it can't be read); ``opposites`` are the
    canonical texts of conditions that are true whenever this one is false.
    """

    span: Span
    constant: bool | None
    canonical: str
    opposites: tuple[str, ...]
    plain_true: bool
    """Whether it is just `True`: meant as a default."""


def _expressions(facts: Facts) -> Iterator[tuple[Leaf, Expression]]:
    for leaf in facts.expressions:
        mark = leaf.shape.mark("expression")
        of_agent = mark is not None and mark.of == "agent"
        if isinstance(leaf.value, str) and not (of_agent and leaf.value == "no_tool_call"):
            yield leaf, parse_expression(leaf.value, ("reply",) if of_agent else ())


def conditions(facts: Facts) -> list[Condition]:
    """Return the conditions of a router, in order."""
    found = [(leaf, expression) for leaf, expression in _expressions(facts) if leaf.key.startswith("conditions.")]
    return [_condition(leaf, expression) for leaf, expression in found]


def _condition(leaf: Leaf, expression: Expression) -> Condition:
    from agentloom.language.truth import is_true, opposites  # loaded with the first router; most files have none

    return Condition(
        _text_of(leaf),
        expression.constant,
        expression.canonical,
        opposites(expression.tree) if expression.canonical else (),
        is_true(expression.tree),
    )


def _text_of(leaf: Leaf) -> Span:
    """Return where a scalar's text stands, without quotes, block header and blanks around it."""
    value = leaf.node.value
    start = len(value) - len(value.lstrip())
    return text_span(leaf.node, start, max(start, len(value.rstrip()))) if value.strip() else leaf.node.span


def _of_kind(facts: Facts, kind: str, code: str) -> Iterator[Finding]:
    for leaf, expression in _expressions(facts):
        faults = expression.faults
        for fault in faults:
            if fault.kind != kind or any(_within(other, fault) for other in faults):
                continue  # what is wrong inside says it better
            fixes = cures(leaf, fault)
            word = leaf.node.value[fault.start : fault.end]
            if fault.kind == "unknown-name" and fault.replacement == f"state.{word}":
                edit = edits.replace_inside(leaf.node, fault.start, fault.end, f"'{word}'")
                fixes += (Fix(f"write `'{word}'`", edit, safe=False),) if edit else ()
            yield Finding(code, text_span(leaf.node, fault.start, fault.end), fault.message, fixes=fixes)


def _within(inner: Fault, outer: Fault) -> bool:
    return inner.span != outer.span and outer.start <= inner.start and inner.end <= outer.end


def expression_syntax(facts: Facts) -> Iterator[Finding]:
    """A router expression can't be read.

    Expressions are written as in Python: `state.score > 80 and state.lang == 'en'`. The router would fail for good.

    Correct it at the marked place.
    """
    yield from _of_kind(facts, "syntax", "AL301")


def forbidden_expression(facts: Facts) -> Iterator[Finding]:
    """A router expression uses something that isn't allowed there.

    Comparisons, `and`, `or`, `not`, `+` and `-`, subscripts, a few functions and harmless methods are; anything that could run
    code, reach into objects or build huge values is not. The router would fail for good.

    Leave the decision to a simple comparison, and compute in a step before it.
    """
    yield from _of_kind(facts, "forbidden", "AL302")


def unknown_name(facts: Facts) -> Iterator[Finding]:
    """A router expression uses a name that doesn't exist.

    Only `state`, `steps` and a few functions such as `len` are names. State keys are read as `state.key`.

    Write `state.` before a key, or quotes around a text.
    """
    yield from _of_kind(facts, "unknown-name", "AL303")


def constant_condition(facts: Facts) -> Iterator[Finding]:
    """A condition is always true or always false.

    It reads nothing from the state that could change it, so it never decides anything. `state.kind == 'a' or 'b'` is always true,
    since the text `'b'` is. (A plain `True` is taken as a default.)

    Compare something from the state, or use `default`.
    """
    for condition in conditions(facts):
        if condition.constant is None or condition.plain_true:
            continue
        word = "true" if condition.constant else "false"
        yield Finding("AL305", condition.span, f"this condition is always {word}; compare something from `state`")
