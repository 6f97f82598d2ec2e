"""Router expressions that are refused: each fault with its kind, its place and its words (AL301, AL302, AL303, RX-1 to RX-4)."""

from __future__ import annotations

import pytest

from agentloom.diagnostics import Edit, apply_edits
from agentloom.errors import ExpressionError
from agentloom.language.expression import evaluate, parse_expression

# expression, [(kind, what is underlined, words of the message)]
SYNTAX = [
    ("", "", "is empty"),
    ("   # nothing", "   # nothing", "is empty"),
    ("state.", ".", "a name must follow the dot"),
    ("state..a", ".", "a name must follow the dot"),
    ("state.a ==", "==", "needs a value behind it"),
    ("state.a and", "and", "needs a value behind it"),
    ("state.a not 3", "not", "operator is missing"),
    ("(state.a", "(", "never closed"),
    ("state.a[0", "[", "never closed"),
    ("len(state.a", "(", "never closed"),
    ("state.a)", ")", "closes nothing"),
    ("[1, 2", "[", "never closed"),
    ("'abc", "'abc", "the text is never closed"),
    ("state.a == 'x\" ", "'x\" ", "the text is never closed"),
    ("state.a = 1", "=", "write `==`"),
    ("state.a === 1", "===", "is written `==` here"),
    ("state.a && state.b", "&&", "is written `and` here"),
    ("state.a || state.b", "||", "is written `or` here"),
    ("!state.a", "!", "is written `not` here"),
    ("state.a AND state.b", "AND", "is written `and` here"),
    ("NOT state.a", "NOT", "is written `not` here"),
    ("state.a <> 1", "<>", "is written `!=` here"),
    ("state.items.0", ".0", "write `[0]`"),
    ("state.class == 1", ".class", "write `['class']`"),
    ("state.a 3", "3", "an operator is missing"),
    ("state.a == not True", "not", "put it in brackets"),
    ("state.a if state.b", "b", "needs an `else`"),
    ("0777", "0777", "begins with a zero"),
    ("1abc", "1abc", "is no number"),
    ("state.a == 1;", ";", "can't stand here"),
    ("state.a == $b", "$", "can't stand here"),
    ("state.a\x00", "\x00", "U+0000"),
    (r"state.a == '\xZZ'", r"'\xZZ'", "no complete escape"),
    ("state.a[]", "[]", "is empty"),
    ("state.a[1:2:3:4]", "[1:2:3:4]", "at most two colons"),
    ("state.a[1 2]", "2", "an operator is missing"),
    ("{'a' 1}", "1", "an operator is missing"),
    ("x" * 10_001, "x" * 40, "longer than"),
    ("(" * 10_000, "(", "nests deeper"),
    ("not " * 2_000 + "1", "not", "nests deeper"),
    ("-" * 9_000 + "1", "-", "nests deeper"),
    ("state" + ".a" * 4_000, "s", "nests deeper"),
    ("[" * 300 + "]" * 300, "[", "nests deeper"),
    ("state.a" + "[0]" * 1_000, "s", "nests deeper"),
    ("1 if 1 else " * 800 + "1", "1", "nests deeper"),
]

FORBIDDEN = [
    ("lambda: 1", "lambda", "lambda"),
    ("(lambda x: x)(1)", "lambda", "lambda"),
    ("1 or lambda: 1", "lambda", "lambda"),
    ("import os", "import", "`import`"),
    ("__import__('os')", "__import__", "underscore"),
    ("().__class__", "__class__", "underscore"),
    ("state.__class__", "__class__", "underscore"),
    ("state._private", "_private", "underscore"),
    ("state['__class__']", "__class__", "underscore"),
    ("state.get('_x')", "_x", "underscore"),
    ("_x", "_x", "underscore"),
    ("state.a.mro", "mro", "`mro`"),
    ("state.t.format_map(state)", "format_map", "`format_map`"),
    ("state.t.format(state.u)", "format", "`format`"),
    ("state.t.ljust(999999999)", "ljust", "`ljust`"),
    ("state.items.append(1)", "append", "`append`"),
    ("type(state.a)", "type", "`type`"),
    ("eval('1')", "eval", "`eval`"),
    ("open('/etc/passwd')", "open", "`open`"),
    ("state.a * 2", "*", "multiplication"),
    ("state.a / 2", "/", "division"),
    ("state.a // 2", "//", "division"),
    ("state.a % 2", "%", "remainder"),
    ("2 ** 9", "**", "power"),
    ("state.a | 1", "|", "bitwise or"),
    ("state.a << 1", "<<", "shifting"),
    ("~state.a", "~", "inversion"),
    ("{1, 2}", "{1, 2}", "sets"),
    ("{state.a} == 1", "{state.a}", "without braces"),
    ("[x for x in state.items]", "for", "comprehensions"),
    ("any(x for x in state.items)", "for", "comprehensions"),
    ("{k: v for k, v in state.items}", "for", "comprehensions"),
    ("f'{state.a}'", "f'{state.a}'", "f-strings"),
    ("b'x'", "b'x'", "bytes"),
    ("3j", "3j", "complex"),
    ("(y := 3)", ":=", "assignment"),
    ("await state.a", "await", "`await`"),
    ("(yield)", "yield", "`yield`"),
    ("[*state.a]", "*", "starred"),
    ("min(*state.a)", "*", "starred"),
    ("{**state.a}", "**", "starred"),
    ("...", "...", "`...`"),
    ("max(state.items, key=len)", "key=", "keyword arguments"),
    ("'a'.upper()", "'a'", "written out"),
    ("('a' + 'b').upper()", "'a' + 'b'", "written out"),
    ("[1].index(1)", "[1]", "written out"),
    ("{}.get('a')", "{}", "written out"),
    ("state.items[state.a]", "[state.a]", "written out"),
    ("state.items[1.5]", "[1.5]", "written out"),
    ("state.items[True]", "[True]", "written out"),
    ("state.items[0:state.a]", "[0:state.a]", "written out"),
    ("state.items[::0]", "[::0]", "step"),
    ("state()", "state", "can't be called"),
    ("state.a()()", "state.a()", "only functions and methods"),
    ("len", "len", "call it"),
    ("len()", "len()", "one argument"),
    ("isinstance(state.a, tuple)", "tuple", "`isinstance` knows"),
    ("isinstance(state.a)", "isinstance(state.a)", "two arguments"),
    ("str", "str", "call it"),
    ("dict", "dict", "`dict`"),
    ("list(state.a)", "list", "`list`"),
]

UNKNOWN = [
    ("category == 'billing'", "category", "write `state.category`", "state.category"),
    ("stat.a", "stat", "did you mean `state`?", "state"),
    ("step.x.output", "step", "did you mean `steps`?", "steps"),
    ("sttae.a", "sttae", "did you mean `state`?", "state"),
    ("states.a", "states", "did you mean `state`?", "state"),
    ("status == 1", "status", "write `state.status`", "state.status"),
    ("lenn(state.a)", "lenn", "did you mean `len`?", "len"),
    ("sum2(state.a)", "sum2", "there are `len`", None),
    ("state.a == true", "true", "is written `True` here", "True"),
    ("state.a is null", "null", "is written `None` here", "None"),
    ("state.a-b == 1", ".a-b", "a key with a hyphen", "['a-b']"),
    ("state.a-b-c", ".a-b-c", "a key with a hyphen", "['a-b-c']"),
    ("state.a - b", "b", "write `state.b`", "state.b"),
]


@pytest.mark.parametrize(("value", "underlined", "words"), SYNTAX, ids=[row[0][:20] for row in SYNTAX])
def test_syntax(value: str, underlined: str, words: str) -> None:
    found = [fault for fault in parse_expression(value).faults if fault.kind == "syntax"]
    assert [(fault.kind, value[fault.start : fault.end]) for fault in found] == [("syntax", underlined)]
    assert words in found[0].message
    with pytest.raises(ExpressionError):
        evaluate(value, {})


@pytest.mark.parametrize(("value", "underlined", "words"), FORBIDDEN, ids=[row[0][:20] for row in FORBIDDEN])
def test_forbidden(value: str, underlined: str, words: str) -> None:
    found = [fault for fault in parse_expression(value).faults if fault.kind == "forbidden"]
    assert underlined in [value[fault.start : fault.end] for fault in found]
    assert any(words in fault.message and value[fault.start : fault.end] == underlined for fault in found)
    with pytest.raises(ExpressionError) as caught:
        evaluate(value, {"a": 1, "items": [1], "t": "x"})
    assert not caught.value.transient


@pytest.mark.parametrize(("value", "underlined", "words", "cure"), UNKNOWN, ids=[row[0][:20] for row in UNKNOWN])
def test_unknown_name(value: str, underlined: str, words: str, cure: str | None) -> None:
    (fault,) = parse_expression(value).faults
    assert (fault.kind, value[fault.start : fault.end], fault.replacement) == ("unknown-name", underlined, cure)
    assert words in fault.message
    if cure is not None:
        assert parse_expression(apply_edits(value, [Edit(fault.span, cure)])).faults == ()


def test_every_fault_is_reported() -> None:
    value = "é == 1 or __import__('😀').x * 2 and (nope"
    found = [(fault.kind, value[fault.start : fault.end]) for fault in parse_expression(value).faults]
    assert found == [
        ("unknown-name", "é"),
        ("forbidden", "__import__"),
        ("forbidden", "*"),
        ("syntax", "("),
        ("unknown-name", "nope"),
    ]

    value = "'😀' == a1 or __x.y * 2 or f'' or type(b2)"
    found = [(fault.kind, value[fault.start : fault.end]) for fault in parse_expression(value).faults]
    assert found == [
        ("unknown-name", "a1"),
        ("forbidden", "__x"),
        ("forbidden", "*"),
        ("forbidden", "f''"),
        ("forbidden", "type"),
        ("unknown-name", "b2"),
    ]


@pytest.mark.parametrize(
    "value", ["state.user.", "state.user.na ==", "state.user.na == (1", "len(state.user.na", "state.user['na"]
)
def test_half_typed_expressions_keep_their_reads(value: str) -> None:
    expression = parse_expression(value)
    assert expression.faults
    assert [read.parts[0] for read in expression.reads] == ["user"]


@pytest.mark.parametrize(
    ("value", "cured"),
    [
        ("{state.a} == 1", "state.a == 1"),
        ("{{ state.a }} == 1", "{state.a} == 1"),
        ("state.a === 1", "state.a == 1"),
        ("!state.a", "not state.a"),
        ("state.items.0 == 1", "state.items[0] == 1"),
        ("state.class", "state['class']"),
    ],
)
def test_cures(value: str, cured: str) -> None:
    (fault,) = parse_expression(value).faults
    assert fault.replacement is not None
    assert apply_edits(value, [Edit(fault.span, fault.replacement)]) == cured
