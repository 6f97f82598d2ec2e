"""Router expressions: parsed to the tree that routers allow, with what they read and every fault in its place; evaluated.

Offsets are code points of the value. Parser and evaluator are imported when the first expression is met: most files have no
router, and they cost more to load than such a file to check.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from agentloom.errors import ExpressionError
from agentloom.language.reads import Expression, Read

__all__ = ["Expression", "Read", "evaluate", "parse_expression"]

_CACHED_LENGTH = 2_000


def parse_expression(value: str, names: Sequence[str] = ()) -> Expression:
    """Return the expression that ``value`` is. Never raises; short texts are cached.

    ``names`` may be used besides `state` and `steps`: an agent's condition knows `reply`.
    """
    return _parse_cached(value, tuple(names)) if len(value) <= _CACHED_LENGTH else _parse(value, tuple(names))


@lru_cache(maxsize=8192)
def _parse_cached(value: str, names: tuple[str, ...]) -> Expression:
    return _parse(value, names)


def _parse(value: str, names: tuple[str, ...]) -> Expression:
    from agentloom.language.reading import read_expression

    return read_expression(value, names)


def evaluate(expression: Expression | str, state: Mapping[str, Any], names: Mapping[str, Any] | None = None) -> Any:
    """Return the value of an expression on ``state``; its truth decides a condition. ``names`` are those that it may use besides.

    Raises ``ExpressionError`` for an expression with faults and for one that fails on this state, with the place.
    """
    from agentloom.language.evaluation import evaluate_tree

    if isinstance(expression, str):
        expression = parse_expression(expression, tuple(names or ()))
    if expression.faults:
        first = expression.faults[0]
        raise ExpressionError(first.message, start=first.start, end=first.end)
    return evaluate_tree(expression.tree, expression.value, state, names or {})
