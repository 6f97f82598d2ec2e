"""Rules about router expressions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agentloom.analysis.document import Facts
from agentloom.analysis.rules.templates import cures
from agentloom.analysis.symbols import Leaf
from agentloom.diagnostics import Finding
from agentloom.language.expression import Expression, parse_expression
from agentloom.syntax.scalars import text_span
from agentloom.text import Span


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of a router. ``constant`` is None unless it is always true or always false; ``canonical`` compares two of
    them regardless of spacing and quotes (empty when it can't be read)."""

    span: Span
    constant: bool | None
    canonical: str


def _expressions(facts: Facts) -> Iterator[tuple[Leaf, Expression]]:
    for leaf in facts.leaves:
        if isinstance(leaf.value, str) and leaf.shape.mark("expression"):
            yield leaf, parse_expression(leaf.value)


def conditions(facts: Facts) -> list[Condition]:
    """Return the conditions of a router, in order."""
    return [
        Condition(leaf.node.span, expression.constant, expression.canonical)
        for leaf, expression in _expressions(facts)
        if leaf.key.startswith("conditions.")
    ]


def _of_kind(facts: Facts, kind: str, code: str) -> Iterator[Finding]:
    for leaf, expression in _expressions(facts):
        for fault in expression.faults:
            if fault.kind == kind:
                span = text_span(leaf.node, fault.start, fault.end)
                yield Finding(code, span, fault.message, fixes=cures(leaf, fault))


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

    It reads nothing from the state, so it never decides anything. (A last condition that is plainly `True` is taken as a default.)

    Compare something from the state, or use `default`.
    """
    found = [(leaf, e) for leaf, e in _expressions(facts) if leaf.key.startswith("conditions.")]
    for at, (leaf, expression) in enumerate(found):
        if expression.constant is None or expression.faults:
            continue
        if expression.constant and at == len(found) - 1 and leaf.node.value.strip() == "True":
            continue
        word = "true" if expression.constant else "false"
        yield Finding("AL305", leaf.node.span, f"this condition is always {word}; compare something from `state`")
