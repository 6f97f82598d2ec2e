"""Templates inside tool arguments: lone references keep their type, only placeholders are rendered (TO-1, TO-2)."""

from __future__ import annotations

from typing import Any

import pytest

from agentloom.errors import TemplateError
from agentloom.language.arguments import MAX_DEPTH, find_references_deep, parse_argument, render_deep

STATE: dict[str, Any] = {
    "a": {"b": [{"c": 1}]},
    "tok": "secret",
    "n": 2.5,
    "items": [1, 2],
    "none": None,
    "name": "Ann",
    "braces": "{state.n}",
}

RENDERED: list[tuple[Any, Any]] = [
    ("state.a.b[0].c", 1),
    ("state.items", [1, 2]),
    ("{state.items}", [1, 2]),
    ("{items}", [1, 2]),
    ("{items[-1]}", 2),
    ("{state.none}", None),
    ("state.none", None),
    ("{state.n:.2f}", "2.50"),
    ("{state.n!r}", "2.5"),
    ("{n:.1f}", "2.5"),
    ("state.of the art", "state.of the art"),
    ("state.of the art report", "state.of the art report"),
    ("state.", "state."),
    ("state", "state"),
    ("the state.n", "the state.n"),
    ("Bearer {state.tok}", "Bearer secret"),
    ("{name}!", "Ann!"),
    ("{name!r} is {state.n}", "'Ann' is 2.5"),
    ('{"a": 1}', '{"a": 1}'),
    ('{"a": {"b": "{state.n}"}}', '{"a": {"b": "2.5"}}'),
    ('{"a": {"b": {state.n}}}', '{"a": {"b": 2.5}}'),
    ('{"k":{"{state.name}":1}}', '{"k":{"Ann":1}}'),
    ("a{color:red} {} { } {0} {x: 1} {a,b}", "a{color:red} {} { } {0} {x: 1} {a,b}"),
    ("awk '{ print $1 }'", "awk '{ print $1 }'"),
    ("{{name}}", "{name}"),
    ("{{state.n}} is {state.n}", "{state.n} is 2.5"),
    ("{{{state.n}}}", "{2.5}"),
    ("{{state.n}", "{2.5"),
    ("{state.n}}", "2.5}"),
    ("{state.braces} {braces}", "{state.n} {state.n}"),
    ("{state.a}", {"b": [{"c": 1}]}),
    ("x {state.a}", 'x {"b":[{"c":1}]}'),
    (5, 5),
    (None, None),
    (True, True),
    ({"headers": {"Authorization": "Bearer {state.tok}"}}, {"headers": {"Authorization": "Bearer secret"}}),
    ([["{state.n}", "state.n"], {"{name}": "{name}"}], [[2.5, 2.5], {"{name}": "Ann"}]),
    ({"value": "{state.n} {x", "template": False}, "{state.n} {x"),
    ({"body": {"value": "{name}", "template": False}}, {"body": "{name}"}),
    ({"value": "{name}", "template": True}, {"value": "Ann", "template": True}),
    ({"value": "{name}", "template": False, "more": 1}, {"value": "Ann", "template": False, "more": 1}),
    ("", ""),
]


@pytest.mark.parametrize(("value", "expected"), RENDERED, ids=[str(row[0])[:30] for row in RENDERED])
def test_arguments(value: Any, expected: Any) -> None:
    warnings: list[str] = []
    found = render_deep(value, STATE, warn=warnings.append)
    assert found == expected
    assert type(found) is type(expected)
    assert warnings == []


@pytest.mark.parametrize(
    ("value", "start", "end"),
    [
        ("state.missing", 6, 13),
        ("{state.missing}", 7, 14),
        ("x {state.a.nope.deeper}", 11, 15),
        ("state.items[5]", 12, 13),
        ("{state[missing]!r}", 7, 14),
    ],
)
def test_missing_reference_is_a_permanent_failure(value: str, start: int, end: int) -> None:
    with pytest.raises(TemplateError, match="can't be resolved") as caught:
        render_deep({"deep": [value]}, STATE)
    assert (caught.value.start, caught.value.end) == (start, end)
    assert not caught.value.transient


@pytest.mark.parametrize("value", ["{missing}", "{missing[0]}"])
def test_missing_flat_name_renders_empty_with_a_warning(value: str) -> None:
    warnings: list[str] = []
    assert render_deep([value, f"<{value}>"], STATE, warn=warnings.append) == ["", "<>"]
    assert warnings == [f"Template variable '{value[1:-1]}' not found, rendering as empty"]


@pytest.mark.parametrize(
    "value", ["{state.", "a {state.n and more", "{state.n\n}", "{state..n}", "{state.n!q}", "{state.name:d}"]
)
def test_broken_placeholder_is_a_permanent_failure(value: str) -> None:
    with pytest.raises(TemplateError):
        render_deep(value, STATE)


def test_references_have_places() -> None:
    value = "😀 {state.a.b[0]} {{name}} {name!r} {x: 1}"
    found = find_references_deep(value)
    assert [value[piece.span.start : piece.span.end] for piece in found] == ["{state.a.b[0]}", "{name!r}"]
    assert found[0].parts == ("a", "b", 0)
    (bare,) = find_references_deep("state.a.b")
    assert bare.bare
    assert (bare.span, bare.parts, bare.spans) == ((0, 9), ("a", "b"), ((6, 7), (8, 9)))


@pytest.mark.parametrize(
    ("value", "name", "bare"),
    [
        ("state.", "state.", True),
        ("state.a.", "state.a.", True),
        ("x {state.a", "state.a", False),
        ("{state.", "state.", False),
    ],
)
def test_what_is_typed_so_far_is_known(value: str, name: str, bare: bool) -> None:
    (half,) = parse_argument(value).open
    assert (half.name, half.bare, half.closed) == (name, bare, False)


def test_depth_is_bounded() -> None:
    value: Any = "{name}"
    for _ in range(MAX_DEPTH):
        value = [value]
    assert render_deep(value, STATE) is not None
    with pytest.raises(TemplateError, match="nest deeper"):
        render_deep([value], STATE)
    for _ in range(100_000):
        value = [value]
    with pytest.raises(TemplateError, match="nest deeper"):
        render_deep(value, STATE)


def test_the_arguments_themselves_stay() -> None:
    value = {"a": ["{name}"]}
    render_deep(value, STATE)
    assert value == {"a": ["{name}"]}
