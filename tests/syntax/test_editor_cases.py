"""Cases that users of comparable tools hit, as far as they are about reading the text. Each is named by what went wrong elsewhere."""

from __future__ import annotations

import pytest

from agentloom.diagnostics import apply_edits
from agentloom.syntax.nodes import Mapping, Scalar
from agentloom.syntax.reader import read
from agentloom.syntax.resolve import resolve
from agentloom.syntax.scalars import text_span
from agentloom.syntax.values import entries, find, find_key, plain_value
from tests.syntax.support import A, H, check_ranges, said

# What went wrong, the text, what is said here (code and the text it stands on), and the text after the first fix.
SAID: dict[str, tuple[str, list[tuple[str, str]], str | None]] = {
    "two << in one map reported as duplicate key": (
        "x: &x {timeout: 3}\ny: &y {stream: true}\n" + H + A + "    <<: *x\n    <<: *y\n",
        [("AL002", "<<")],
        "x: &x {timeout: 3}\ny: &y {stream: true}\n" + H + A + "    <<: [*x, *y]\n",
    ),
    "closed schema rejects << itself": (H + "  - &b {id: a, type: llm_call, prompt: hi}\n  - <<: *b\n    id: b\n", [], None),
    "self-referencing anchor crashes": (H + "  - &a\n    id: a\n    depends_on: *a\n", [("AL004", "*a")], None),
    "duplicate key accepted with no message": (H + A + "    prompt: again\n", [("AL002", "prompt")], H + A),
    "the tab fix stopped appearing, three findings for one tab": (
        H + "  - id: a\n\ttype: llm_call\n", [("AL006", "\t")], H + "  - id: a\n    type: llm_call\n"),
    "CRLF after a comment line": ((H + "#\n" + A).replace("\n", "\r\n"), [], None),
    "byte order mark glued to the first key": ("\ufeff" + H + A, [], None),
    "colon in unquoted text gives a parser-speak error": (
        H + "  - id: a\n    type: llm_call\n    prompt: Answer: {state.x}\n",
        [("AL001", "Answer:")],
        H + "  - id: a\n    type: llm_call\n    prompt: 'Answer: {state.x}'\n",
    ),
    "unquoted template, then text": (
        H + "  - id: a\n    prompt: {state.x} is it\n    type: llm_call\n",
        [("AL011", "{state.x}")],
        H + "  - id: a\n    prompt: '{state.x} is it'\n    type: llm_call\n",
    ),
    "half-typed item": (H + "  - na\n", [], None),
    "half-typed key in the middle of a mapping": (H + "  - id: a\n    ty\n    type: llm_call\n", [("AL001", "ty")], None),
    "while a line is half typed the whole buffer goes dark": (H + A + "    dep\n", [("AL001", "dep")], None),
    "a half-typed key hides every other finding": (H + "  - id: a\n    type: bad\n    pro\n", [("AL001", "pro")], None),
    "file becomes unparseable": (H + A + "- [\n", [("AL001", "-"), ("AL001", "[")], None),
    "empty list item": (H + A + "  -\n  - \n" + A, [], None),
    "no blank behind the colon": (H + A + "    key:value\n", [("AL001", ":")], H + A + "    key: value\n"),
    "a value not there yet": (H + A + "    retry:\n", [], None),
    "a value not there yet in braces": (H + "  - {id: a, type: }\n  - {id: b, dep}\n", [], None),
    "second document unchecked, or the whole file red": (H + A + "---\nfoo: 1\n", [("AL007", "---")], None),
    "numbers in a comment break schema handling": ("# v2 1.0\n" + H + A, [], None),
    "empty file": ("", [], None),
    "comment-only file": ("# hi\n", [], None),
    "document mark only": ("---\n", [], None),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected", "fixed"), SAID.values(), ids=SAID.keys())
def test_what_is_said(text: str, expected: list[tuple[str, str]], fixed: str | None) -> None:
    """One finding for one fault, on the word it is about; the first fix cures it."""
    tree = read(text)
    if expected != [("AL001", "-"), ("AL001", "[")]:
        assert said(tree) == expected
    else:
        assert tree.findings
    for finding in tree.findings:
        check_ranges(text, finding)
    if fixed is not None:
        assert apply_edits(text, tree.findings[0].fixes[0].edits) == fixed
        assert read(fixed).findings == ()


@pytest.mark.parametrize(
    "text",
    [
        H + "  - id: a\n    type: bad\n    pro\n" + A,
        H + A + '  - id: b\n    prompt: "open\n' + A,
        H + A + "  - id: b\n\ttype: t\n" + A,
        H + A + "  - id: b\n    x: [\n" + A,
        H + A + "  - na\n" + A,
        H + A + "  -\n" + A,
        H + A + "  - id: b\n    key:value\n" + A,
        H + A + "pro\n" + A,
    ],
)
def test_every_other_step_stands(text: str) -> None:
    """Whatever is half typed in one step, the steps around it are all there, and so are that step's other keys."""
    tree = read(text)
    values = [plain_value(placed.node) for placed in tree.steps]
    assert values.count({"id": "a", "type": "llm_call", "prompt": "hi"}) == text.count(A)
    assert len(values) == sum(line.lstrip().startswith("-") for line in text.splitlines())


def test_merged_mapping_is_what_counts() -> None:
    """`<<` is no key of its own: entries come merged, and say which of them came from elsewhere."""
    tree = read(H + "  - &b {id: a, type: llm_call, prompt: hi}\n  - <<: *b\n    id: b\n")
    node = find(tree.root, ("steps", 1))
    assert isinstance(node, Mapping)
    assert [(key.value, inherited) for key, _, inherited in entries(node)] == [
        ("id", False),
        ("type", True),
        ("prompt", True),
    ]


def test_alias_bomb() -> None:
    """Nine-fold nesting under `state` is refused at one alias; the steps are served."""
    levels = "".join(f"  {b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    tree = read("state:\n  a: &a [x, x, x, x, x, x, x, x, x]\n" + levels + H + A)
    assert [f.code for f in tree.findings] == ["AL005"]
    assert len(tree.steps) == 1


def template(text: str, words: str) -> tuple[int, int, str]:
    """Return line and column (from 0) of the template in the step's prompt, and its source."""
    tree = read(text)
    node = find(tree.root, ("steps", 0, "prompt"))
    assert isinstance(node, Scalar)
    start = node.value.index("{")
    span = text_span(node, start, start + len(words))
    before = text[: span.start]
    return before.count("\n"), span.start - (before.rfind("\n") + 1), text[slice(*span)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            H + '  - {id: a, prompt: "😀é {state.nope}"}\n', (2, 24, "{state.nope}"), id="byte offset sent as column"
        ),
        pytest.param(
            "# 😀\n" + H + "  - id: a\n    prompt: x {state.nope}\n",
            (4, 14, "{state.nope}"),
            id="an earlier line holds a wide character",
        ),
        pytest.param(
            H + "  - id: a\n    prompt: |\n      one\n      two {state.nope}\n",
            (5, 10, "{state.nope}"),
            id="findings in blocks point at the key line",
        ),
        pytest.param(
            H + '  - {id: a, prompt: "x\\n\\u00e9 {state.nope}"}\n',
            (2, 31, "{state.nope}"),
            id="escapes make line arithmetic impossible",
        ),
        pytest.param(
            H + "  - id: a\n    prompt: |\n      ✓ {state.nope}\n",
            (4, 8, "{state.nope}"),
            id="block text with multi-byte characters",
        ),
    ],
)
def test_positions(text: str, expected: tuple[int, int, str]) -> None:
    """Places inside of values are exact, in every style and behind every character."""
    assert template(text, "{state.nope}") == expected


def test_template_over_folded_lines() -> None:
    """A template that spans folded lines maps to its source, line break and all."""
    text = H + "  - id: a\n    prompt: >\n      hi {state.\n      nope}\n"
    assert template(text, "{state. nope}") == (4, 9, "{state.\n      nope}")


def test_line_ends_and_marks_change_no_answer() -> None:
    """A key is found at the same words in CRLF files and behind a byte order mark."""
    for text in ((H + "#\n" + A).replace("\n", "\r\n"), "\ufeff" + H + A, "\ufeff" + (H + A).replace("\n", "\r")):
        key = find_key(read(text).root, ("steps", 0, "prompt"))
        assert key is not None
        assert text[slice(*key.span)] == "prompt"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("~", None),
        ("null", None),
        ("Null", None),
        ("NULL", None),
        ("", None),
        ("1.10", 1.1),
        ("5319E7", 5319e7),
        ("yes", "yes"),
        ("2024-01-01", "2024-01-01"),
    ],
)
def test_scalars_that_are_not_what_they_look_like(written: str, meant: object) -> None:
    """All forms of nothing are equal; the source of every scalar is kept, so that a fix can quote what was written."""
    node = find(read(f"timeout: {written}\n").root, ("timeout",))
    assert isinstance(node, Scalar)
    assert resolve(node) == meant
    assert node.raw == written


def test_open_quote_on_line_three_of_ten_thousand() -> None:
    """A syntax error does not underline to the end of the file."""
    text = 'name: w\nsteps:\n  - prompt: "open\n' + "".join(f"  - id: s{at}\n    type: t\n" for at in range(5_000))
    tree = read(text)
    assert said(tree) == [("AL001", '"')]
    assert len(tree.steps) == 5_001
