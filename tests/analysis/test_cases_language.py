"""Cases of comparable engines: router expressions and templates, as far as they can be checked while they are typed."""

from __future__ import annotations

import json

import pytest

from tests.analysis.checking import H, check, codes, cured, only, places


def condition(expression: str) -> str:
    """Return a workflow with one condition, written as JSON so that any text fits."""
    return (
        H
        + f"  - {{id: r, type: router, depends_on: [classify], default: b, conditions: [{{expression: {json.dumps(expression)}, target: b}}]}}\n"
        + "  - {id: b, type: llm_call, prompt: hi, depends_on: [r]}\n"
        + "  - {id: classify, type: llm_call, prompt: hi}\n"
    )


@pytest.mark.parametrize(
    "expression",
    [
        "state['a']",
        "state.user.name",
        "not state.done",
        "state.n in [1, 2]",
        "-1 < state.x <= 3",
        "len(state.items) > 2",
        "'x' if state.a else 'y' == state.b",
        "state.items == [1, 2, 3]",
        "state.user.get('k') is None",
        "state.items[-1] == -1",
        "state.x.strip().lower() == 'yes'",
        "steps.classify.output == 'billing' and steps.classify.status == 'success'",
        "isinstance(state.x, (int, float)) or state.y is not None",
        "state.x == 'a'   # a comment",
        "state.len > 3",
    ],
)
def test_case_expressions_that_work(expression: str) -> None:
    """Nothing is told of them."""
    assert codes(condition(expression)) == []


@pytest.mark.parametrize(
    ("expression", "marked"),
    [
        ("state.t.format(state.u)", "format"),
        ("type(state.x).__mro__", "type"),
        ("state.x.__class__.__bases__", "__class__"),
        ("state['__class__']", "__class__"),
        ("(lambda: 1)()", "lambda"),
        ("[x for x in state.items]", "for"),
        ("state.a * 1000000", "*"),
        ("__import__('os').system('x')", "__import__"),
        ("open('x')", "open"),
        ("state.x.mro", "mro"),
        ("int(state.x, base=2)", "base="),
        ("f'{state.x}'", "f'{state.x}'"),
        ("(y := state.x)", ":="),
        ("'a'.join(state.x)", "'a'"),
    ],
)
def test_case_expressions_that_are_refused(expression: str, marked: str) -> None:
    """While typing, on the construct itself; the run refuses them too."""
    text = condition(expression)
    found = [place for place in places(text) if place[0] == "AL302"]
    assert any(place[2].startswith(marked) or marked in place[2] for place in found), places(text)
    assert not check(text).ok


def test_case_a_comparison_with_one_equals_sign() -> None:
    """The exact place, and the fix."""
    text = condition("state.x = 'a'")
    assert places(text) == [("AL301", 3, "=")]
    assert codes(cured(text, "AL301")) == []


def test_case_a_bare_key() -> None:
    """Only `state` and `steps` are names: the fix writes the key's path, or the text that was meant."""
    text = condition("category == 'billing'")
    assert places(text) == [("AL303", 3, "category")]
    assert "state.category == 'billing'" in cured(text, "AL303")
    right = condition("state.category == billing")
    assert "state.category == 'billing'" in cured(right, "AL303", "'billing'")


def prompt(text: str) -> str:
    """Return a workflow of one prompt, as JSON."""
    return H + f"  - {{id: a, type: llm_call, prompt: {json.dumps(text)}}}\n"


def test_case_a_json_example_in_a_prompt() -> None:
    """The commonest mistake: told while typing as what it is, and the fix doubles the braces."""
    text = prompt('Answer like {"a": 1}, please.')
    assert codes(text) == ["AL304"]
    assert "double the braces" in only(text, "AL304").message
    mended = cured(text, "AL304")
    assert codes(mended) == []
    assert check(mended).steps[0].facts.data["prompt"] == 'Answer like {{"a": 1}}, please.'


def test_case_a_json_example_with_a_template_inside() -> None:
    """The placeholder inside stays one."""
    mended = cured(prompt('{"ticket": "{state.ticket}", "n": {"x": 1}}'), "AL304")
    assert check(mended).steps[0].facts.data["prompt"] == '{{"ticket": "{state.ticket}", "n": {{"x": 1}}}}'
    assert codes(mended) == []


@pytest.mark.parametrize(
    "text", ["{state.a}", "{a}", "{a[0]}", "{a.b:.2f}", "{a!r}", "{{x}}", "{state.a-b}", "{état}", ""]
)
def test_case_templates_that_render(text: str) -> None:
    """Nothing is told of them."""
    assert codes(prompt(text + " and more")) == []


@pytest.mark.parametrize("text", ["{", "}", "{}", "{state.x", "{a", "{ }", "{state.x!q}", "{state.x:zz}", "{'a': 1}"])
def test_case_templates_that_break(text: str) -> None:
    """Each is refused while typing, and the run wouldn't start."""
    document = check(prompt("say " + text + " now"))
    assert {d.code for d in document.diagnostics} == {"AL304"}
    assert not document.ok


def test_case_arguments_at_any_depth() -> None:
    """A broken reference in a header is found like one at the top; braces that are none of ours are left alone."""
    text = (
        H
        + "  - id: a\n    type: tool\n    tool_name: http_request\n    tool_args:\n"
        + "      url: state.of the art report\n      headers: {Authorization: 'Bearer {state.tok'}\n"
        + '      body: \'{"a": {"b": 1}}\'\n'
    )
    assert places(text) == [("AL304", 8, "{state.tok")]


def test_case_a_template_in_every_field_that_takes_one() -> None:
    """Found through the marks of the fields, so no type of step is forgotten."""
    text = (
        "name: w\nagents: {h: {system_prompt: 'x {'}}\nsteps:\n"
        "  - {id: a, type: llm_call, prompt: 'x {', system_prompt: 'y {', attachments: [{source: 'https://x/{'}]}\n"
        "  - {id: b, type: agent, agent: h, input: 'x {'}\n"
        "  - {id: c, type: approval_gate, notify: {url: 'https://x', body_template: 'x {'}}\n"
        "  - {id: d, type: subworkflow, workflow_inline: {name: i, steps: [{id: x, type: llm_call, prompt: 'x {'}]}}\n"
    )
    assert [place[:2] for place in places(text)] == [
        ("AL304", 2), ("AL304", 4), ("AL304", 4), ("AL304", 4), ("AL304", 5), ("AL304", 6), ("AL304", 7),
    ]  # fmt: skip
