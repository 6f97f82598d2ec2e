"""Cases seen elsewhere: documents in the middle of being typed."""

from __future__ import annotations

import pytest

from tests.analysis.checking import A, H, check, codes, only, places, told


@pytest.mark.parametrize("key", ["retry", "depends_on", "timeout", "output", "tools", "thinking", "response_schema"])
def test_case_a_key_with_nothing_yet(key: str) -> None:
    """Where null is allowed nothing is told while the value is still to come."""
    assert codes(H + A + f"    {key}:\n") == []


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("    stream:\n", None),
        ("    tool_choice:\n", "tool_choice"),
        ("    max_tool_iterations:\n", "max_tool_iterations"),
    ],
)
def test_case_a_key_that_needs_a_value(line: str, key: str | None) -> None:
    """It is said to have no value yet, on the key; never "expected object"."""
    found = told(H + A + line)
    if key is None:
        assert found == []
    else:
        assert [(t.code, t.marked) for t in found] == [("AL105", key)]
        assert "has no value yet" in found[0].message


def test_case_the_prompt_is_still_empty() -> None:
    """One diagnostic, on the key."""
    found = told(H + "  - id: a\n    type: llm_call\n    prompt:\n")
    assert [(t.code, t.line, t.marked) for t in found] == [("AL109", 5, "prompt")]
    assert "has no value yet" in found[0].message


def test_case_a_half_typed_key_hides_nothing() -> None:
    """Both the line that is no `key: value` yet and the unknown type above it."""
    assert places(H + "  - id: a\n    type: bad\n    pro\n") == [("AL103", 4, "bad"), ("AL001", 5, "pro")]


@pytest.mark.parametrize(
    ("typed", "marked"),
    [
        (H + "  - i\n    type: bad\n    prompt: hi\n", [("AL001", "i"), ("AL101", "type"), ("AL103", "bad")]),
        (H + "  - <\n    id: a\n    type: bad\n", [("AL001", "<"), ("AL103", "bad")]),
        ("config:\n  pro\n  max_retries: -1\n" + H + A, [("AL001", "pro"), ("AL106", "-1")]),
        (H + A + "    retry:\n      max\n      jitter: 5\n", [("AL001", "max"), ("AL105", "5")]),
    ],
)
def test_case_the_first_key_of_a_block_is_half_typed(typed: str, marked: list[tuple[str, str]]) -> None:
    """What stands below it stays a mapping, and is checked."""
    assert sorted((code, word) for code, _, word in places(typed)) == sorted(marked)


def test_case_a_word_above_text_is_no_half_typed_key() -> None:
    """A text below its key that lacks its quotes stays one, although its first line is a single word."""
    assert places(H + "  - id: a\n    type: llm_call\n    prompt:\n      Hello\n      Answer: {state.x}\n") == [
        ("AL001", 7, "Answer:")
    ]


@pytest.mark.parametrize("typed", ["  i\n", "    type\n", "  - i\n", "i\n", "  i\r\n"])
def test_case_a_half_typed_word_before_the_first_step(typed: str) -> None:
    """The steps below it are checked as if it weren't there."""
    said = places(H + typed + "  - id: a\n    type: bad\n")
    assert ("AL103", 5, "bad") in said
    assert len(said) <= 3


def test_case_a_half_typed_key_among_other_steps() -> None:
    """Steps before and after it are checked as if it weren't there."""
    before = "  - {id: x, type: llm_call, prompt: hi, depends_on: [nope1]}\n"
    after = "  - {id: y, type: llm_call, prompt: hi, depends_on: [nope2, a]}\n"
    text = H + before + A + "    dep\n" + after
    assert places(text) == [("AL202", 3, "nope1"), ("AL001", 7, "dep"), ("AL202", 8, "nope2")]


@pytest.mark.parametrize(
    "rest", ["- ", "-", "- na", "- [", "- {", '- "', "- 'x", "-\tx", "- !", "- &", "- *", "- |", "- >"]
)
def test_case_a_new_item_is_being_typed(rest: str) -> None:
    """Something is told on that line or none; the step above keeps its own diagnostic; nothing crashes."""
    text = H + A + "    depends_on: [zz]\n  " + rest
    found = told(text)
    assert ("AL202", 6, "zz") in [(t.code, t.line, t.marked) for t in found]
    assert all(t.line in (6, 7) for t in found), found


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "{",
        "[",
        "name",
        "name:",
        "name: ",
        "- ",
        "?",
        ":",
        "&",
        "*",
        "!",
        "%",
        "--- -",
        "%a\\n- ",
        "@",
        "`",
        "|",
        ">",
        '"',
        "'",
    ],
)
def test_case_the_first_characters_of_a_file(text: str) -> None:
    """An error or more, each inside the text; never silence, never a crash."""
    document = check(text)
    assert not document.ok
    for d in document.diagnostics:
        assert 0 <= d.span.start <= d.span.end <= len(text)


def test_case_an_open_quote_in_a_long_file() -> None:
    """The range is one line or less, and the steps behind it are still checked."""
    steps = "".join(f"  - {{id: s{i}, type: llm_call, prompt: hi}}\n" for i in range(2_000))
    text = (
        H
        + '  - id: a\n    type: llm_call\n    prompt: "open\n'
        + steps
        + "  - {id: last, type: llm_call, prompt: hi, depends_on: [zz]}\n"
    )
    document = check(text)
    found = only(text, "AL001")
    assert document.lines.line_of(found.span.start) == 4
    assert found.span.end - found.span.start <= len('    prompt: "open')
    assert [d.code for d in document.diagnostics] == ["AL001", "AL202"]


def test_case_a_file_becomes_unreadable_for_a_moment() -> None:
    """A stray `- [` at the end: its own diagnostic, and none of the old places move."""
    good = H + A
    text = good + "- [\n"
    assert check(good).diagnostics == ()
    assert {t.line for t in told(text)} == {6}


def test_case_every_prefix_of_a_workflow() -> None:
    """No prefix raises, and each has its diagnostics inside the text."""
    text = (
        "# note\nname: w\nconfig: {provider: mock}\nsteps:\n"
        + A
        + '    retry: {max_retries: 3}\n    depends_on: [b]\n  - {id: b, type: router, default: "a"}\n'
    )
    for end in range(len(text)):
        document = check(text[:end])
        for d in document.diagnostics:
            assert 0 <= d.span.start <= d.span.end <= end
            assert d.message
