"""What holds for any text: parsing never raises, places lie inside, and expressions mean what Python means by them."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from agentloom.errors import ExpressionError, TemplateError
from agentloom.language.arguments import parse_argument, render_deep
from agentloom.language.braces import escape_braces
from agentloom.language.expression import evaluate, parse_expression
from agentloom.language.paths import StatePath, parse_output_path, parse_path
from agentloom.language.rendering import render
from agentloom.language.template import Template, parse_template
from agentloom.text import Span

FEW = settings(max_examples=150, deadline=None)

SCRAPS = [
    "{", "}", "{{", "}}", "{state.", "{state[", "state.", "state", "steps", "x", "a-b", ".", "[", "]", "(", ")", "0", "-1", "!r", ":",
    ":.2f", "\n", " ", "\r\n", '"', "'", "\\", "#", "==", "=", "and", "or", "not", "in", "is", "if", "else", "lambda", "for", "*", "**",
    ",", "é", "😀", "\x00", "\u2028", "f'", "b'", "'''", "_", "__class__", "len(", ".get(", "1e5", "0x", "…", "True", "None", "+", "-", "<",
]  # fmt: skip
TEXTS = st.one_of(st.text(max_size=40), st.lists(st.sampled_from(SCRAPS), max_size=25).map("".join))


def assert_inside(span: Span, text: str) -> None:
    assert 0 <= span.start <= span.end <= len(text)


def assert_template_fits(template: Template, text: str) -> None:
    for fault in (*template.faults, *template.notes):
        assert_inside(fault.span, text)
        assert fault.message
    for piece in (*template.placeholders, *template.open):
        assert_inside(piece.span, text)
        assert text[piece.name_span.start : piece.name_span.end] == piece.name
        assert len(piece.parts) == len(piece.spans)
        for part, span in zip(piece.parts, piece.spans, strict=True):
            written = text[span.start : span.end]
            assert written == part or int(written) == part
    assert all(one.span.end <= other.span.start for one, other in pairwise(template.placeholders))


@FEW
@given(TEXTS)
def test_templates_of_any_text(text: str) -> None:
    template = parse_template(text)
    assert_template_fits(template, text)
    state = {"x": {"a-b": [1, "{x}"]}, "state": 1}
    try:
        render(template, state)
    except TemplateError as error:
        assert_inside(Span(error.start, error.end), text)
    else:
        assert not template.faults


@FEW
@given(TEXTS)
def test_arguments_of_any_text(text: str) -> None:
    template = parse_argument(text)
    assert_template_fits(template, text)
    if not template.placeholders and not template.faults and "{{" not in text:
        assert render_deep(text, {}) == text


@FEW
@given(TEXTS)
def test_escaped_text_renders_as_it_stands(text: str) -> None:
    assert render(escape_braces(text), {}) == text


@FEW
@given(TEXTS, st.sampled_from(["{state.v}", "{v}", "<{state.v}>"]))
def test_what_the_state_holds_is_never_a_template(text: str, template: str) -> None:
    assert render(template, {"v": text, "x": "wrong"}).strip("<>") == text.strip("<>")
    assert render_deep(["{v}", "state.v"], {"v": text}) == [text, text]


@FEW
@given(TEXTS)
def test_cures_of_braces_give_the_text_back(text: str) -> None:
    """A text that is all faults renders as it stands, once each fault is cured."""
    template = parse_template(text)
    if template.placeholders or "{{" in text or "}}" in text or any(not fault.escape for fault in template.faults):
        return
    cured, at = [], 0
    for fault in template.faults:
        assert fault.replacement is not None
        cured.append(text[at : fault.start] + fault.replacement)
        at = fault.end
    assert render("".join(cured) + text[at:], {}) == text


@FEW
@given(TEXTS)
def test_paths_of_any_text(text: str) -> None:
    for path in (parse_path(text), parse_output_path(text)):
        if isinstance(path, StatePath):
            assert [text[span.start : span.end] for span in path.spans] == [
                str(part) for part in path.parts
            ] or "[" in text
        else:
            assert_inside(path.span, text)


@FEW
@given(TEXTS)
@example("é == '😀' and __x")
def test_expressions_of_any_text(text: str) -> None:
    expression = parse_expression(text)
    for fault in expression.faults:
        assert_inside(fault.span, text)
        assert fault.message
    for read in expression.reads:
        assert_inside(read.span, text)
        for part, span in zip(read.parts, read.spans, strict=True):
            assert_inside(span, text)
            assert (
                isinstance(part, int)
                or text[span.start : span.end] == part
                or "\\" in text
                or "'" in text
                or '"' in text
            )
    try:
        evaluate(expression, {"x": {"a": [1]}})
    except ExpressionError as error:
        assert_inside(Span(error.start, error.end), text)
    else:
        assert not expression.faults


class Data(dict[str, Any]):
    """A mapping as Python's own ``eval`` must see it to read the state as routers do."""

    def __getattr__(self, name: str) -> Any:
        return dict.get(self, name)

    def __missing__(self, key: str) -> None:
        return None


def as_data(value: Any) -> Any:
    if isinstance(value, dict):
        return Data({key: as_data(item) for key, item in value.items()})
    return [as_data(item) for item in value] if isinstance(value, list) else value


def as_json(value: Any) -> Any:
    if isinstance(value, tuple):
        return [as_json(item) for item in value]
    return [as_json(item) for item in value] if isinstance(value, list) else value


LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 5), st.sampled_from([0.5, 2.0]), st.sampled_from(["", "a", "Ab c", "7"])
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
STATES = st.dictionaries(st.sampled_from("abc"), JSON, max_size=3)

READS = st.sampled_from(
    [
        "state.a",
        "state.b",
        "state['c']",
        "state.a.b",
        "state.b[0]",
        "state.a[-1]",
        "state.c.get('a')",
        "state.b[1:]",
        "state",
    ]
)
LITERALS = LEAVES.map(repr)


def compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Return bigger expressions, brackets left out where precedence must decide."""
    compare = st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "in", "not in"])
    return st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or", "+", "-"]), inner).map(" ".join),
        st.tuples(inner, compare, inner).map(" ".join),
        st.tuples(inner, compare, inner, compare, inner).map(" ".join),
        inner.map("not {}".format),
        inner.map("-{}".format),
        inner.map("({})".format),
        inner.map("({}) is None".format),
        st.tuples(inner, inner, inner).map(lambda three: "{} if {} else {}".format(*three)),
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.lists(inner, min_size=1, max_size=3).map(lambda items: f"({', '.join(items)},)"),
        st.tuples(st.sampled_from(["a", "b"]), inner).map(lambda pair: f"{{'{pair[0]}': {pair[1]}}}"),
        st.tuples(st.sampled_from(["len", "str", "bool", "abs", "min", "max", "int", "float"]), inner).map("{0[0]}({0[1]})".format),
        st.tuples(st.sampled_from(["min", "max"]), inner, inner).map("{0[0]}({0[1]}, {0[2]})".format),
        st.tuples(inner, st.sampled_from(["str", "(int, bool)", "dict", "list"])).map("isinstance({0[0]}, {0[1]})".format),
        st.tuples(READS, st.sampled_from(["strip()", "upper()", "split()", "title()", "isdigit()", "startswith('a')", "replace('a', 'b')", "count('a')", "find('b')"])).map(".".join),
    )  # fmt: skip


EXPRESSIONS = st.recursive(READS | LITERALS, compound, max_leaves=8)
BUILTINS = {name: __builtins__[name] for name in ("len", "str", "int", "float", "bool", "abs", "min", "max", "isinstance", "list", "dict")}  # type: ignore[index]  # fmt: skip


@settings(max_examples=500, deadline=None)
@given(EXPRESSIONS, STATES)
@example("-state.a ** 2", {"a": 1})
@example("not state.a in [1] == True", {"a": 1})
@example("state.a if state.b else state.c if 1 else 2", {})
def test_values_are_those_of_python(text: str, state: Mapping[str, Any]) -> None:
    expression = parse_expression(text)
    if "**" in text:
        assert [fault.kind for fault in expression.faults] == ["forbidden"]
        return
    syntax = [fault for fault in expression.faults if fault.kind == "syntax"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            code = compile(text, "<test>", "eval")
        except SyntaxError:
            assert syntax, text
            return
        assert not syntax, text
        if expression.faults:
            return
        try:
            expected = eval(code, {"__builtins__": {}, **BUILTINS, "state": as_data(state)})
        except Exception:
            expected = ExpressionError
    found: Any
    try:
        found = evaluate(expression, state)
    except ExpressionError:
        found = ExpressionError
    assert as_json(found) == as_json(expected)
    assert type(found) is type(as_json(expected)) or isinstance(expected, Data)
    if expression.constant is not None and expected is not ExpressionError:
        assert bool(expected) is expression.constant


TOKENS = [
    "state", "steps", ".a", ".b", "[0]", "['k']", "[1:]", "(", ")", "[", "]", "{", "}", ",", ":", "==", "<", "in", "not", "is", "and", "or",
    "if", "else", "+", "-", "1", "2.5", "'t'", "None", "True", "len", "str", ".strip", ".get", "()", "x", "not in", "is not", "lambda", "*",
    "%", "**", "for", ":=", "=", "await", "...", "f''", "~", "|", "@", "\n", "# c\n",
]  # fmt: skip


@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from(TOKENS), min_size=1, max_size=12).map(" ".join))
@example("1 < 2 not in ( 3 )")
@example("- - not 1")
@example("not not 1")
@example("( 1 , )")
@example("[ 1 , ]")
@example("{ 'k' : 1 , }")
@example("len ( 1 , )")
@example("( , )")
@example("1 if 2 else 3 if 4 else 5")
@example("1 or 2 if 3 and 4 else 5 == 6")
def test_the_grammar_is_that_of_python(text: str) -> None:
    """What Python can't read has a fault here, and what it can read and routers allow has none of syntax."""
    expression = parse_expression(text)
    on_one_line = text.replace("# c\n", "").replace("\n", " ").strip()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(on_one_line, mode="eval")
    except SyntaxError:
        assert expression.faults, text
    else:
        if any(fault.kind == "syntax" for fault in expression.faults):
            # What follows such a word is skipped or cut short, and then misread: one fault is named at least.
            assert any(word in text for word in ("lambda", "for", ":=", " = ", "await")), (text, expression.faults)
