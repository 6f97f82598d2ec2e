"""Router expressions: parsed to the tree that routers allow, with what they read and every fault in its place; evaluated.

Offsets are code points of the value. Parser and evaluator are imported when the first expression is met: most files have no
router, and they cost more to load than such a file to check.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from agentloom.errors import ExpressionError
from agentloom.language.reads import Expression, Read

__all__ = ["Expression", "Read", "evaluate", "parse_expression"]

_CACHED_LENGTH = 2_000


def parse_expression(value: str) -> Expression:
    """Return the expression that ``value`` is. Never raises; short texts are cached."""
    return _parse_cached(value) if len(value) <= _CACHED_LENGTH else _parse(value)


@lru_cache(maxsize=2048)
def _parse_cached(value: str) -> Expression:
    return _parse(value)


def _parse(value: str) -> Expression:
    from agentloom.language.reading import read_expression

    return read_expression(value)


def evaluate(expression: Expression | str, state: Mapping[str, Any]) -> Any:
    """Return the value of an expression on ``state``; its truth decides a condition.

    Raises ``ExpressionError`` for an expression with faults and for one that fails on this state, with the place.
    """
    from agentloom.language.evaluation import evaluate_tree

    if isinstance(expression, str):
        expression = parse_expression(expression)
    if expression.faults:
        first = expression.faults[0]
        raise ExpressionError(first.message, start=first.start, end=first.end)
    return evaluate_tree(expression.tree, expression.value, state)
