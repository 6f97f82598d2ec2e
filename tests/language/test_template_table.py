"""The table of TP-3, row by row, and the sentences around it (TP-1, TP-2, TP-4, TP-6)."""

from __future__ import annotations

from typing import Any

import pytest

from agentloom.errors import StepError, TemplateError
from agentloom.language.rendering import render
from agentloom.language.template import parse_template

STATE: dict[str, Any] = {
    "items": [{"name": "A"}, {"name": "B"}],
    "user": {"name": "Ann", "a-b": "hyphen", "0": "text zero"},
    "n": 3.14159,
    "none": None,
    "t": True,
    "s": "text",
    "braces": "{state.n} {{x}} }{",
    "é": "composed",
}

ROWS = [
    ("{state.items[0].name}", "A"),
    ("{state.items[-1].name}", "B"),
    ("{state.user[name]}", "Ann"),
    ("{state.user.a-b}", "hyphen"),
    ("{state.n:.2f}", "3.14"),
    ("{state.n!r}", "3.14159"),
    ("{state.none}", "None"),
    ("{state.t}", "True"),
    ("{state.user}", '{"name":"Ann","a-b":"hyphen","0":"text zero"}'),
    ("{state.items}", '[{"name":"A"},{"name":"B"}]'),
    ("{{x}}", "{x}"),
    ("{{{state.n:.0f}}}", "{3}"),
    ("{state[user][name]}", "Ann"),
    ("{items[0]}", "{'name': 'A'}"),
    ("{user[name]}", "Ann"),
    ("{items[-1]}", "{'name': 'B'}"),
    ("{user.name}", "Ann"),
    ("{s!r:>8}", "  'text'"),
    ("{state.s:>6}", "  text"),
    ("{state.s:.2}", "te"),
    ("{state.t!s:>6}", "  True"),
    ("{state.braces}", "{state.n} {{x}} }{"),
    ("{state.é}", "composed"),
    ("no braces", "no braces"),
    ("", ""),
]

EMPTY = [
    ("{state.items[9]}", "state.items[9]"),
    ("{state.items[x]}", "state.items[x]"),
    ("{state.items.0}", "state.items.0"),
    ("{state.missing.deep}", "state.missing.deep"),
    ("{state.s.upper}", "state.s.upper"),
    ("{state.s.__class__}", "state.s.__class__"),
    ("{state.__class__}", "state.__class__"),
    ("{__class__}", "__class__"),
    ("{state.n.real}", "state.n.real"),
    ("{state.a b}", "state.a b"),
    ("{state.user[0]}", "state.user[0]"),
    ("{state.e\u0301}", "state.e\u0301"),
    ("{missing}", "missing"),
    ("{missing[0]}", "missing[0]"),
    ("{state.missing:.2f}", "state.missing"),
]

BROKEN = [
    "{}",
    "{",
    "}",
    "{state.n:d}",
    "{state.s:.2f}",
    '{"a": 1}',
    "{0}",
    "{state.}",
    "{state..a}",
    "{state[]}",
    "{state.n!x}",
]


@pytest.mark.parametrize(("template", "expected"), ROWS)
def test_row_renders(template: str, expected: str) -> None:
    warnings: list[str] = []
    assert render(template, STATE, warn=warnings.append) == expected
    assert warnings == []


@pytest.mark.parametrize(("template", "name"), EMPTY)
def test_missing_renders_empty_with_one_warning(template: str, name: str) -> None:
    warnings: list[str] = []
    assert render(f"<{template}{template}>", STATE, warn=warnings.append) == "<>"
    assert warnings == [f"Template variable '{name}' not found, rendering as empty"]


@pytest.mark.parametrize("template", BROKEN)
def test_broken_template_is_a_permanent_failure(template: str) -> None:
    with pytest.raises(TemplateError) as caught:
        render(template, STATE)
    assert isinstance(caught.value, StepError)
    assert not caught.value.transient
    assert 0 <= caught.value.start <= caught.value.end <= len(template)


def test_spec_on_a_mapping_is_ignored_with_a_warning() -> None:
    warnings: list[str] = []
    assert render("{state.user:.5}", {"user": {"name": "Ann"}}, warn=warnings.append) == '{"name":"Ann"}'
    assert warnings == ["Format spec '.5' of 'state.user' ignored: the value is a mapping"]


def test_strict_names_the_first_missing_segment() -> None:
    with pytest.raises(
        TemplateError, match=r"`state.user.nick.short` can't be resolved; there is no `nick` in `user`"
    ) as caught:
        render("Hi {state.user.nick.short}", STATE, strict=True)
    assert (caught.value.start, caught.value.end) == (15, 19)
    assert parse_template("Hi {state.user.nick.short}").placeholders[0].spans[1] == (15, 19)
