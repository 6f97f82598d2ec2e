"""Hostile expressions and states: refused or bounded, never a hang, a crash or an object's internals (RX-6)."""

from __future__ import annotations

from typing import Any

import pytest

from agentloom.errors import ExpressionError
from agentloom.language.expression import evaluate, parse_expression
from agentloom.language.functions import MAX_ITEMS, MAX_SIZE

BIG = "a" * MAX_SIZE
STATE: dict[str, Any] = {
    "s": "aaaa" * 100,
    "big": BIG,
    "huge": BIG * 8,
    "lines": "\n" * MAX_SIZE,
    "words": "a " * (MAX_SIZE // 2),
    "chars": "".join(chr(0x4E00 + n) for n in range(5000)) + "a",
    "many": ["aaaa"] * MAX_ITEMS,
    "wide": {str(n): n for n in range(MAX_ITEMS + 1)},
    "digits": "9" * MAX_SIZE,
    "sharp": "ß" * (MAX_SIZE - 1),
}

REFUSED = [
    ("state.s.replace('a', state.big)", "more than"),
    ("state.s.replace('', state.big)", "more than"),
    ("state.big + state.big", "more than"),
    ("state.many + state.many", "more than"),
    ("state.big.join(state.many)", "more than"),
    ("state.big.join(state.s)", "more than"),
    ("state.huge.lower()", "more than"),
    ("state.huge.strip()", "more than"),
    ("state.huge[1:]", "more than"),
    ("state.sharp.upper()", "more than"),
    ("state.lines.splitlines()", "more than"),
    ("state.words.split()", "more than"),
    ("state.words.split(' ')", "more than"),
    ("state.wide.items()", "more than"),
    ("str(state.many + state.many[1:])", "more than"),
    ("str(state.wide)", "more than"),
    ("str(state)", "takes too much work"),
    ("state.big.strip(state.chars)", "takes up to"),
    ("int(state.digits)", "up to 1000"),
    ("float(state.digits)", "up to 1000"),
    (" or ".join(["state.huge.isdigit()"] * 200), "takes too much work"),
    (" and ".join(["state.big.count('a')"] * 400), "takes too much work"),
    ("state.bomb == state.other", "takes too much work"),
    ("str(state.bomb)", "takes too much work"),
    ("max(state.bomb)", "takes too much work"),
    ("state.bomb in [state.other]", "takes too much work"),
    ("[state.other].count(state.bomb) if False else state.bomb.count(state.other)", "takes too much work"),
    ("state.ring == state.other_ring", "takes too much work"),
]


def bomb() -> list[Any]:
    """A list that is small in memory and has 10**18 leaves."""
    value: list[Any] = ["x"] * 10
    for _ in range(17):
        value = [value] * 10
    return value


def ring() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(("value", "words"), REFUSED, ids=[row[0][:50] for row in REFUSED])
def test_work_and_results_are_bounded(value: str, words: str) -> None:
    state = STATE | {"bomb": bomb(), "other": bomb(), "ring": ring(), "other_ring": ring()}
    if "[state.other].count" in value:
        value = "state.bomb.count(state.other)"
    assert parse_expression(value).faults == ()
    with pytest.raises(ExpressionError, match=words):
        evaluate(value, state)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("len(state.huge)", 8 * MAX_SIZE),
        ("'b' in state.huge", False),
        ("state.huge == state.big", False),
        ("state.get('huge') == state.huge", True),
        ("state.many == [1]", False),
        ("state.big.replace('a', '')", ""),
        ("state.big.split('b') == [state.big]", True),
        ("state.big.count('a')", MAX_SIZE),
        ("state.big[:2]", "aa"),
    ],
)
def test_large_values_can_be_looked_at(value: str, expected: Any) -> None:
    assert evaluate(value, STATE) == expected


class Sly:
    """An object that must not be touched."""

    output = "leaked"

    def get(self, key: str) -> str:
        return "leaked"

    def __eq__(self, other: object) -> bool:
        raise AssertionError("compared")

    __hash__ = object.__hash__


@pytest.mark.parametrize(
    "value", ["state.sly.output", "state.sly.get('a')", "state.sly == 1", "state['sly']", "state.get('sly')"]
)
def test_objects_are_refused(value: str) -> None:
    with pytest.raises(ExpressionError, match="no plain data"):
        evaluate(value, {"sly": Sly()})


@pytest.mark.parametrize(
    "value",
    [
        "().__class__.__bases__[0].__subclasses__()",
        "state.t.format(state.u)",
        "state['__init__']",
        "[].__class__",
        "''.__class__.mro()",
        "state.__class__.__init__.__globals__",
        "getattr(state, 'a')",
        "state.get.__self__",
        "(lambda: 1)()",
        "[c for c in ().__class__.__base__.__subclasses__()]",
        "len.__self__",
        "str.format('{0.__class__}', state)",
        "isinstance.__class__",
        "__builtins__",
        "state.t.__format__('')",
        "exec('1')",
    ],
)
def test_ways_out_are_refused_before_anything_runs(value: str) -> None:
    expression = parse_expression(value)
    assert any(fault.kind in ("forbidden", "unknown-name") for fault in expression.faults)
    with pytest.raises(ExpressionError):
        evaluate(expression, {"t": "{0.__class__}", "u": 1})


def test_the_state_is_only_read() -> None:
    state = {"items": [1, 2], "user": {"a": 1}}
    for value in ("state.items + [3]", "state.user.keys()", "state.nope", "state.user.get('z', 1)"):
        evaluate(value, state)
    assert state == {"items": [1, 2], "user": {"a": 1}}
