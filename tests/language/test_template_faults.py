"""Broken templates: every fault in its place, with its cure; and notes on what renders but isn't meant (AL304, TP-4)."""

from __future__ import annotations

import pytest

from agentloom.diagnostics import Edit, apply_edits
from agentloom.errors import TemplateError
from agentloom.language.rendering import MAX_RENDERED, render
from agentloom.language.template import lone_reference, parse_template

# value, what each fault underlines, a word of its message, the value after the cures (None: no cure is offered)
FAULTS: list[tuple[str, list[str], str, str | None]] = [
    ("a { b", ["{"], "never closed", "a {{ b"),
    ("a } b", ["}"], "stray", "a }} b"),
    ("x {} y", ["{}"], "empty braces", "x {{}} y"),
    ("x { } y", ["{ }"], "empty braces", "x {{ }} y"),
    ('Reply: {"a": 1}', ['{"a": 1}'], "double the braces", 'Reply: {{"a": 1}}'),
    ('{"a": {"b": [1, {}]}}', ['{"a": {"b": [1, {}]}}'], "double the braces", '{{"a": {{"b": [1, {{}}]}}}}'),
    ('{"t": "{state.t}", "u": {u}}', ['{"t": "{state.t}", "u": {u}}'], "double", '{{"t": "{state.t}", "u": {u}}}'),
    ('{"a": {{"b": 1}}}', ['{"a": {{"b": 1}}}'], "double the braces", '{{"a": {{"b": 1}}}}'),
    ('{\n  "a": 1\n}', ['{\n  "a": 1\n}'], "double the braces", '{{\n  "a": 1\n}}'),
    ('one {"a": 1} two {"b": 2}', ['{"a": 1}', '{"b": 2}'], "double", 'one {{"a": 1}} two {{"b": 2}}'),
    ("{a: 1}", ["{a: 1}"], "is no placeholder", "{{a: 1}}"),
    (r"\d{3}", ["{3}"], "no state key", r"\d{{3}}"),
    ("{x, y}", ["{x, y}"], "is no placeholder", "{{x, y}}"),
    ("f() { return 1; }", ["{ return 1; }"], "is no placeholder", "f() {{ return 1; }}"),
    ("{color:red}", ["{color:red}"], "no format spec", "{{color:red}}"),
    ("{:.2f}", ["{:.2f}"], "no state key is named", "{{:.2f}}"),
    ("{state.}", ["."], "must follow the dot", None),
    ("{state..a}", ["."], "must follow the dot", None),
    ("{state.a[}", ["["], "never closed", None),
    ("{state.a[]}", ["[]"], "is empty", None),
    ("{state.a[0]b}", ["b"], "write a dot", None),
    ("{state.n!x}", ["!x"], "no conversion", None),
    ("{state.n:.2q}", [".2q"], "no format spec", None),
    ("{state.n:999999999}", ["999999999"], "too many characters", None),
    ("{state.n:.999999999f}", [".999999999f"], "too many characters", None),
    ("hi {state.x", ["{state.x"], "never closed", "hi {state.x}"),
    ("hi {state.a[0].b, and", ["{state.a[0].b"], "never closed", "hi {state.a[0].b}, and"),
    ("hi {state.a[0, and", ["{"], "never closed", "hi {{state.a[0, and"),
    ("hi {state.x.", ["{"], "never closed", "hi {{state.x."),
    ("hi {state.x and {state.y}", ["{state.x"], "never closed", "hi {state.x} and {state.y}"),
    ("hi {state.\n  nope} x", ["{state.\n  nope}"], "on one line", None),
    ("{state.n:{w}}", ["{", "}"], "never closed", None),
    ("{ {state.x} {", ["{", "{"], "never closed", "{{ {state.x} {{"),
]


@pytest.mark.parametrize(("value", "underlined", "words", "cured"), FAULTS, ids=[row[0][:20] for row in FAULTS])
def test_faults_and_their_cure(value: str, underlined: list[str], words: str, cured: str | None) -> None:
    template = parse_template(value)
    assert [value[fault.start : fault.end] for fault in template.faults] == underlined
    assert words in template.faults[0].message
    with pytest.raises(TemplateError):
        render(template, {})
    edits = [Edit(fault.span, fault.replacement) for fault in template.faults if fault.replacement is not None]
    assert all(fault.escape or fault.title == "close the brace" for fault in template.faults if fault.replacement)
    if cured is not None:
        assert apply_edits(value, edits) == cured
        assert parse_template(cured).faults == ()


def test_placeholders_inside_a_json_example_stay_known() -> None:
    template = parse_template('{"t": "{state.ticket}", "n": {count}} and {state.x}')
    assert [piece.name for piece in template.placeholders] == ["state.ticket", "count", "state.x"]
    fault = template.faults[0]
    assert fault.replacement is not None
    cured = fault.replacement + template.value[fault.end :]
    assert render(cured, {"ticket": "T", "count": 2, "x": "X"}) == '{"t": "T", "n": 2} and X'


NOTES = [
    ("{state.x }", "x ", "x"),
    ("{ name }", " name ", "name"),
    ("{state['user']}", "'user'", "user"),
    ('{state.a["b"]}', '"b"', "b"),
    ("{state.x.upper()}", "upper()", None),
]


@pytest.mark.parametrize(("value", "underlined", "replacement"), NOTES)
def test_notes(value: str, underlined: str, replacement: str | None) -> None:
    template = parse_template(value)
    assert template.faults == ()
    (note,) = template.notes
    assert (value[note.start : note.end], note.replacement) == (underlined, replacement)
    assert render(template, {"x": 1, "user": 2, "name": 3, "a": {"b": 4}}) == ""


@pytest.mark.parametrize(
    ("value", "names", "parts"),
    [
        ("hi {state.us", "state.us", ("us",)),
        ("hi {state.", "state.", ()),
        ("hi {state.user.\nmore", "state.user.", ("user",)),
        ("hi {state.user.na and more {state.x}", "state.user.na", ("user", "na")),
        ("hi {state.items[0", "state.items[0", ("items",)),
        ("hi {", "", ()),
        ("hi {tick", "tick", ("tick",)),
        ("hi {state", "state", ()),
    ],
)
def test_what_is_typed_so_far_is_known(value: str, names: str, parts: tuple[str, ...]) -> None:
    (half,) = parse_template(value).open
    assert not half.closed
    assert (half.name, half.parts) == (names, parts)
    assert value[half.name_span.start : half.name_span.end] == half.name


def test_places_of_a_placeholder() -> None:
    value = "Hi 😀 {state.user[name].x-y[-1]!r:>8}"
    (found,) = parse_template(value).placeholders
    assert value[found.span.start : found.span.end] == "{state.user[name].x-y[-1]!r:>8}"
    assert value[found.name_span.start : found.name_span.end] == found.name == "state.user[name].x-y[-1]"
    assert found.parts == ("user", "name", "x-y", -1)
    assert [value[span.start : span.end] for span in found.spans] == ["user", "name", "x-y", "-1"]
    assert (found.root, found.conversion, found.spec, found.plain) == ("state", "r", ">8", False)


@pytest.mark.parametrize(
    ("value", "bare", "expected"),
    [
        ("{state.a[0]}", False, ("a", 0)),
        ("{items[0]}", False, ("items", 0)),
        ("state.a[0]", True, ("a", 0)),
        ("state.a[0]", False, None),
        ("state[user][name]", True, ("user", "name")),
        ("state.of the art", True, None),
        ("state.a.", True, None),
        ("state", True, None),
        ("state.a ", True, None),
        (" {state.a}", True, None),
        ("{state.a}{state.b}", False, None),
        ("{state.a:>3}", False, None),
        ("{{state.a}}", False, None),
        ("{state.a", False, None),
        ("", True, None),
    ],
)
def test_lone_reference(value: str, bare: bool, expected: tuple[str | int, ...] | None) -> None:
    assert lone_reference(value, bare=bare) == expected


def test_names_are_listed_once_and_sorted() -> None:
    assert parse_template("{state.b} {a} {state.b} {{c}}").names == ("a", "state.b")


def test_objects_never_show() -> None:
    class Account:
        token = "secret"

        def __repr__(self) -> str:
            return "secret"

    state = {"a": Account(), "b": [Account(), 1], "c": b"secret"}
    warnings: list[str] = []
    for template in (
        "{state.a}",
        "{a}",
        "{state.a.token}",
        "{state.b}",
        "{b}",
        "{state.b[0].token}",
        "{state.c}",
        "{a!r}",
    ):
        assert "secret" not in render(template, state, warn=warnings.append)
    assert render("{state.b}{b}", state) == "[null,1][None, 1]"
    assert "Template variable 'state.a' holds no plain data, rendering as empty" in warnings


def test_the_result_is_bounded() -> None:
    big = "x" * (MAX_RENDERED // 4)
    with pytest.raises(TemplateError, match="longer than"):
        render("{state.b}" * 5, {"b": big})


def test_nesting_without_end_is_an_error_of_the_template() -> None:
    ring: list[object] = []
    ring.append(ring)
    with pytest.raises(TemplateError, match="nested too deep"):
        render("{state.ring}", {"ring": ring})


def test_a_number_too_long_for_text_is_an_error_of_the_template() -> None:
    with pytest.raises(TemplateError, match="too long"):
        render("{state.n}", {"n": 10**5000})
