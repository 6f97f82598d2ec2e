"""Cases seen elsewhere: positions, in all kinds of scalars and beside all kinds of characters."""

from __future__ import annotations

import pytest

from agentloom.diagnostics import apply_edits
from tests.analysis.checking import A, H, check, cured, only, places, told


def test_case_a_fix_below_a_block_text_with_wide_characters() -> None:
    """Edits are counted in one unit, so a fix behind such a text changes what it should."""
    text = H + "  - id: a\n    type: llm_call\n    promt: |\n      ✓ 😀 {state.x}\n    outptu: y\n"
    document = check(text)
    mended = apply_edits(text, [edit for d in document.diagnostics for edit in d.fixes[0].edits])
    assert "    prompt: |\n      ✓ 😀 {state.x}\n    output: y\n" in mended
    assert check(mended).diagnostics == ()


def test_case_wide_characters_on_the_same_line_before_the_fault() -> None:
    """Offsets count code points: the marked text is the brace itself."""
    text = H + '  - {id: a, type: llm_call, prompt: "😀é {state.nope"}\n'
    assert places(text) == [("AL304", 3, "{state.nope")]


def test_case_wide_characters_on_earlier_lines() -> None:
    """They move nothing."""
    bad = H + A + "    promtp: x\n"
    document = check("# 😀 𝔘\n" + bad)
    (found,) = document.diagnostics
    assert document.lines.position(found.span.start) == (6, 4)


@pytest.mark.parametrize("style", ["|", "|-", ">", ">-", "|2", ">+"])
def test_case_a_fault_inside_a_block_text(style: str) -> None:
    """Told on its own line, at its own columns, not at the key."""
    text = H + f"  - id: a\n    type: llm_call\n    prompt: {style}\n      one\n      two {{state.n!q}}\n"
    document = check(text)
    (found,) = [d for d in document.diagnostics if d.code == "AL304"]
    assert document.lines.position(found.span.start) == (6, 18)
    assert text[found.span.start : found.span.end] == "!q"


def test_case_a_fault_behind_escapes() -> None:
    """Line breaks that are only escapes don't count as lines of the file."""
    text = H + '  - {id: a, type: llm_call, prompt: "x\\n\\u00e9\\t {state.nope"}\n'
    assert places(text) == [("AL304", 3, "{state.nope")]


def test_case_a_fault_in_single_quotes_with_doubled_ones() -> None:
    """A doubled quote is one character of the value and two of the text."""
    text = H + "  - {id: a, type: llm_call, prompt: 'it''s {state.nope'}\n"
    assert places(text) == [("AL304", 3, "{state.nope")]


def test_case_a_template_over_folded_lines() -> None:
    """The fold makes a blank of the line break; the template has a place on one line, and nothing crashes."""
    text = H + "  - id: a\n    type: llm_call\n    prompt: >\n      hi {state.\n      nope}\n"
    document = check(text)
    for d in document.diagnostics:
        assert document.lines.line_of(d.span.start) == document.lines.line_of(d.span.end)
    broken = text.replace("nope}", "nope")
    (found,) = check(broken).diagnostics
    assert found.code == "AL304"
    assert broken[found.span.start : found.span.end].startswith("{")
    assert "\n" not in broken[found.span.start : found.span.end]


@pytest.mark.parametrize(
    "text", ["", "# hi\n", "---\n", "\n\n", "\ufeff", "\ufeff# hi\n", "   ", "# a\r\n# b\r\n", "~\n"]
)
def test_case_files_without_content(text: str) -> None:
    """Empty, comments only, a lone marker: all alike, with a range inside the text."""
    document = check(text)
    (found,) = document.diagnostics
    assert found.code == "AL008"
    assert "empty" in found.message
    assert 0 <= found.span.start <= found.span.end <= len(text)


@pytest.mark.parametrize("char", ["\u2028", "\u0085", "\u2029"])
def test_case_characters_that_only_some_take_for_line_breaks(char: str) -> None:
    """Lines end at LF, CRLF and CR only, as in editors."""
    text = H + f'  - {{id: a, type: llm_call, prompt: "x{char}y"}}\n  - {{id: b, type: llm_cal}}\n'
    assert ("AL103", 4, "llm_cal") in places(text)


def test_case_quoted_names_are_marked_inside_their_quotes() -> None:
    """In a list, as a target, as a default, as an id: the quotes are not part of the name."""
    text = (
        H
        + '  - {id: "a", type: router, default: "aa", conditions: [{expression: state.x, target: \'bb\'}]}\n'
        + "  - {id: 'a', type: llm_call, prompt: hi, depends_on: [\"cc\", 'dd']}\n"
    )
    marked = [t.marked for t in told(text)]
    assert marked == ["aa", "bb", "a", "cc", "dd"]


def test_case_fixes_of_quoted_names_keep_their_quotes() -> None:
    """The kind of quotes too, in flow lists and behind keys."""
    one = (
        H
        + "  - {id: first, type: llm_call, prompt: hi}\n  - {id: b, type: llm_call, prompt: hi, depends_on: ['frist']}\n"
    )
    assert "depends_on: ['first']" in cured(one, "AL202")
    assert 'depends_on: ["first"]' in cured(one.replace("'frist'", '"frist"'), "AL202")


def test_every_range_is_on_one_line() -> None:
    """Also of what spans lines: a list where a text is meant is marked at its key."""
    text = H + "  - id: a\n    type: llm_call\n    prompt:\n      - x\n      - y\n    retry: [\n      1]\n"
    assert places(text) == [("AL105", 5, "prompt"), ("AL105", 8, "retry")]


def test_case_the_steps_of_a_large_file_have_their_own_places() -> None:
    """The last of many steps is told on its own line, with one table of lines for all."""
    steps = "".join(f"  - id: s{i}\n    type: llm_call\n    prompt: hi\n" for i in range(2_000))
    text = H + steps + "  - id: last\n    type: llm_call\n    prompt: hi {\n"
    assert places(text) == [("AL304", 6_005, "{")]
    assert only(text, "AL304").span.start == len(text) - 2
