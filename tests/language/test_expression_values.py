"""What router expressions give (RX-1 to RX-7), what they read, and what is known of them without a state."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest

from agentloom.errors import ExpressionError, StepError
from agentloom.language.expression import evaluate, parse_expression
from agentloom.language.functions import FUNCTIONS, METHODS

STATE: dict[str, Any] = {
    "a": 1,
    "x": "  Billing ",
    "n": 2.5,
    "items": [1, 2, 3],
    "user": {"name": "Ann", "k": "v", "get": 7, "class": "c"},
    "empty": "",
    "none": None,
    "done": False,
    "len": 99,
    "hy-phen": "h",
    "doc": {"format": "pdf"},
    "é": "accent",
    "steps": {"f": {"output": "ok", "status": "success"}},
}

VALUES: list[tuple[str, Any]] = [
    # RX-1: comparisons, logic, signs, sums, displays, conditionals
    ("state.a == 1", True),
    ("state.a != 1", False),
    ("-1 < state.a <= 3", True),
    ("1 < 2 < 2", False),
    ("state.a in [1, 2]", True),
    ("state.a not in (1, 2)", False),
    ("'k' in state.user", True),
    ("'ill' in state.x", True),
    ("state.none is None", True),
    ("state.a is not None", True),
    ("state.done is False", True),
    ("state.a is 1", True),
    ("state.items is [1, 2, 3]", False),
    ("not state.done", True),
    ("not state.done and state.a", 1),
    ("state.empty or 'other'", "other"),
    ("state.a and state.none", None),
    ("state.a + 2 - 0.5", 2.5),
    ("+state.a", 1),
    ("-state.n", -2.5),
    ("- - 3", 3),
    ("state.x + '!'", "  Billing !"),
    ("state.items + [4]", [1, 2, 3, 4]),
    ("(1, 2) + (3,)", [1, 2, 3]),
    ("'x' if state.a else 'y'", "x"),
    ("1 if state.done else 2 if state.none else 3", 3),
    ("[1, 'a', None, True]", [1, "a", None, True]),
    ("{'a': state.a, 'b': [state.n]}", {"a": 1, "b": [2.5]}),
    ("()", []),
    ("1, 2", [1, 2]),
    ("not 1 == 2", True),
    ("-1 + 2", 1),
    ("1 == 1 in [True]", True),
    ("'a' 'b'", "ab"),
    (r"'\x41\u00e9\n\'' + r'\n'", "A\u00e9\n'\\n"),
    (r"'\N{BULLET}\101\d'", "\u2022A\\d"),
    ("'''it's'''", "it's"),
    ("0x10 + 0b11 + 0o7 + 1_000", 1026),
    ("1e3 + .5 + 2.", 1002.5),
    ("00", 0),
    # RX-2: names and functions; a state key hides nothing
    ("len(state.items) > 2", True),
    ("len(state.user) + len(state.x)", 14),
    ("str(state.n) + str(None) + str(True)", "2.5NoneTrue"),
    ("str(state.items)", "[1, 2, 3]"),
    ("str()", ""),
    ("int(' 42 ') + int(2.9)", 44),
    ("float('1.5')", 1.5),
    ("bool(state.empty)", False),
    ("abs(-3)", 3),
    ("min(state.items) + max(1, 5, 2)", 6),
    ("isinstance(state.a, int)", True),
    ("isinstance(state.user, (list, dict))", True),
    ("isinstance(state.x, list)", False),
    ("state.len", 99),
    # RX-4, RX-6: methods and chains
    ("state.x.strip().lower()", "billing"),
    ("state.x.strip().lower() == 'billing'", True),
    ("state.user.get('k')", "v"),
    ("state.user.get('zz')", None),
    ("state.user.get('zz', 'd')", "d"),
    ("state.get('a')", 1),
    ("state.items.index(2)", 1),
    ("state.items.count(9)", 0),
    ("state.items[-1]", 3),
    ("state.items[1:]", [2, 3]),
    ("state.items[::-1]", [3, 2, 1]),
    ("state.x[2:-1]", "Billing"),
    ("state.user.name", "Ann"),
    ('state["a"]', 1),
    ('state["user"]["name"][0]', "A"),
    ("state.user.keys()", ["name", "k", "get", "class"]),
    ("state.doc.items()", [["format", "pdf"]]),
    ("state.doc.format == 'pdf'", True),
    ("state.user['class']", "c"),
    ("state['hy-phen']", "h"),
    ("state.é", "accent"),
    ("state.items == [1, 2, 3]", True),
    ("state.doc == {'format': 'pdf'}", True),
    ("(state.none or 'No').upper()", "NO"),
    ("str(state.a).isdigit()", True),
    ("state.x.split()", ["Billing"]),
    ("state.x.split('l')", ["  Bi", "", "ing "]),
    ("state.x.split('l', 1)", ["  Bi", "ling "]),
    ("state.x.replace('l', 'L', 1)", "  BiLling "),
    ("state.x.startswith(('x', ' '))", True),
    ("state.x.find('zz')", -1),
    ("str(', ').join(state.x.split('l'))", "  Bi, , ing "),
    # RX-5: what is missing
    ("state.nope", None),
    ("state['nope']", None),
    ("state.user.nope is None", True),
    ("state.user[0]", None),
    ("steps.f.output", "ok"),
    ("steps['f'].status == 'success'", True),
    ("steps.absent", None),
    ("steps.absent.status", None),
    ("state.steps.absent.output", None),
    ("state['steps']['absent']['output']", None),
    # RX-7: truth, comments, spaces
    ("  state.a  # a comment", 1),
    ("state.a == 1\n", True),
    ("state.a == 1\n  and state.n > 2\r\n", True),
    ("True", True),
    ("None", None),
]

FAILS: list[tuple[str, str, str]] = [
    ("state.nope.deep", "state.nope.deep", "`deep` can't be read from `state.nope`, which is null"),
    ("state.a == 1 and state.nope['x'] == 1", "state.nope['x']", "which is null"),
    ("steps.absent.output.deep", "steps.absent.output.deep", "which is null"),
    ("state.x.upper.y", "state.x.upper", "which is a text"),
    ("state.items.name", "state.items.name", "which is a list"),
    ("state.items['a']", "state.items['a']", "which is a list"),
    ("state.items[9]", "state.items[9]", "has no item 9; its length is 3"),
    ("state.x > 80", "state.x > 80", "`>` can't compare a text with a number"),
    ("state.none < 1", "state.none < 1", "`<` can't compare null with a number"),
    ("state.x + 1", "state.x + 1", "`+` can't add a number to a text"),
    ("state.x - 'a'", "state.x - 'a'", "`-` needs two numbers"),
    ("-state.x", "-state.x", "`-` needs a number, not a text"),
    ("1 in state.x", "1 in state.x", "only a text can be in a text"),
    ("1 in state.a", "1 in state.a", "needs a list"),
    ("[] in state.user", "[] in state.user", "can be a key"),
    ("state.a.upper()", "state.a.upper()", "is a number and has no method `upper`"),
    ("state.none.strip()", "state.none.strip()", "is null and has no method"),
    ("state.items.get('a')", "state.items.get('a')", "is a list and has no method `get`"),
    ("state.items.index(9)", "state.items.index(9)", "finds no such item"),
    ("state.x.index('zz')", "state.x.index('zz')", "`find` gives -1"),
    ("state.x.strip(1)", "state.x.strip(1)", "a text is needed"),
    ("state.x.split('')", "state.x.split('')", "isn't empty"),
    ("int('x')", "int('x')", "`int` can't read `x`"),
    ("int(None)", "int(None)", "needs a text or a number"),
    ("len(1)", "len(1)", "`len` needs"),
    ("min([])", "min([])", "the list is empty"),
    ("max(1, 'a')", "max(1, 'a')", "different kinds"),
    ("state.a[0]", "state.a[0]", "which is a number"),
    ("state.a[0:1]", "state.a[0:1]", "can't be sliced"),
    ("state.user.keys('a')", "state.user.keys('a')", "arguments"),
]


@pytest.mark.parametrize(("value", "expected"), VALUES, ids=[row[0][:40] for row in VALUES])
def test_value(value: str, expected: Any) -> None:
    expression = parse_expression(value)
    assert expression.faults == ()
    for state in (STATE, MappingProxyType(STATE)):
        found = evaluate(expression, state)
        assert found == expected
        assert type(found) is type(expected)


@pytest.mark.parametrize(("value", "place", "words"), FAILS, ids=[row[0][:40] for row in FAILS])
def test_failure_is_permanent_and_has_its_place(value: str, place: str, words: str) -> None:
    assert parse_expression(value).faults == ()
    with pytest.raises(ExpressionError) as caught:
        evaluate(value, STATE)
    assert isinstance(caught.value, StepError)
    assert not caught.value.transient
    assert words in str(caught.value)
    assert value[caught.value.start : caught.value.end] == place


def test_methods_and_functions_are_all_used_above_or_run_without_arguments() -> None:
    state = {"text": "ab c", "list": [1], "mapping": {"a": 1}}
    for kind, methods in METHODS.items():
        for name, called in methods.items():
            arguments = ", ".join(["'a'"] * called.least) if kind != "list" else "1"
            if name == "join":
                arguments = "['x', 'y']"
            value = f"state.{kind}.{name}({arguments})"
            expected = getattr(state[kind], name)(*eval(f"[{arguments}]"))
            expected = (
                expected
                if isinstance(expected, str | int | list | None)
                else [list(pair) if isinstance(pair, tuple) else pair for pair in expected]
            )
            assert evaluate(value, state) == expected, value
            assert called.signature.startswith(name)
            assert called.summary.endswith(".")
    assert {"len", "str", "int", "float", "bool", "abs", "min", "max", "isinstance"} == set(FUNCTIONS)


READS = [
    ('state.user["name"][0] == 1', [("user", "name", 0)], [["user", "name", "0"]]),
    ("state.get('k').x", [("k", "x")], [["k", "x"]]),
    ("state.user.get('k', state.d)", [("user", "k"), ("d",)], [["user", "k"], ["d"]]),
    ("steps.x.output == state.steps['y'].status", [("steps", "x", "output"), ("steps", "y", "status")], None),
    ("state.a.strip().b", [("a",)], [["a"]]),
    ("state.items[1:][0]", [("items",)], [["items"]]),
    ("len(state)", [()], [[]]),
    ("'😀' == state.é", [("é",)], [["é"]]),
    ("state.a.get(state.b)", [("a",), ("b",)], None),
    ("[state.a, {'k': state.b}, -state.c + 1]", [("a",), ("b",), ("c",)], None),
    ("state['a\\n']", [("a\n",)], [["a\\n"]]),
]


@pytest.mark.parametrize(("value", "parts", "texts"), READS, ids=[row[0] for row in READS])
def test_reads_have_places(value: str, parts: list[tuple[str | int, ...]], texts: list[list[str]] | None) -> None:
    reads = parse_expression(value).reads
    assert [read.parts for read in reads] == parts
    if texts is not None:
        assert [[value[span.start : span.end] for span in read.spans] for read in reads] == texts
    assert all(len(read.parts) == len(read.spans) for read in reads)


def test_steps_have_places() -> None:
    value = "steps.fetch.status == 'success' or state.steps['a-b'].output"
    assert [(name, value[span.start : span.end]) for name, span in parse_expression(value).steps] == [
        ("fetch", "fetch"),
        ("a-b", "a-b"),
    ]


@pytest.mark.parametrize(
    ("value", "constant"),
    [
        ("True", True),
        ("None", False),
        ("1 == 1", True),
        ("1 > 2", False),
        ("not ''", True),
        ("state.x == 'a' or 'b'", True),
        ("state.x and False", False),
        ("state.x or False", None),
        ("state.x and True", None),
        ("(state.x, 1)", True),
        ("(state.x == 'a',)", True),
        ("[]", False),
        ("len('abc') > 2", True),
        ("int('x')", None),
        ("1 if state.x else 2", True),
        ("1 if state.x else 0", None),
        ("state.y if True else 0", None),
        ("state.x == state.x", None),
        ("isinstance(1, int)", True),
        ("lambda: 1", None),
    ],
)
def test_constants(value: str, constant: bool | None) -> None:
    assert parse_expression(value).constant is constant


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("state.a == 'x'", '( state["a"]=="x" ) # again', True),
        ("state.get('a') == 1", "state.a == 1", True),
        ("state.a or state.b", "(state.a) or (state.b)", True),
        ("state.a or state.b", "state.b or state.a", False),
        ("state.a == 1", "state.a == True", False),
        ("state.a - 1", "state.a + 1", False),
        ("state.a in (1, 2)", "state.a in [1, 2]", False),
    ],
)
def test_canonical_text_tells_what_says_the_same(one: str, other: str, same: bool) -> None:
    first, second = parse_expression(one).canonical, parse_expression(other).canonical
    assert first
    assert second
    assert (first == second) is same
