"""Every character of a scalar's value knows the characters of the text that it was read from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentloom.syntax.compose import Composed, compose
from agentloom.syntax.nodes import Mapping, Scalar
from agentloom.syntax.scalars import places, text_offset, text_span, value_offset

SIMPLE_ESCAPES = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b",
    " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip


def scalar_in(text: str) -> Scalar | None:
    """Return the value of the one entry of a text, if that is what it holds."""
    composed = compose(text)
    if not isinstance(composed, Composed) or not isinstance(composed.node, Mapping) or len(composed.node.entries) != 1:
        return None
    value = composed.node.entries[0].value
    return value if isinstance(value, Scalar) else None


def read_as(source: str) -> str:
    """Return the one character that a piece of source stands for."""
    if source.startswith("\\"):
        if source[1] in "xuU":
            return chr(int(source[2:], 16))
        return SIMPLE_ESCAPES[source[1:]]
    return "'" if source == "''" else source


def check(text: str, scalar: Scalar) -> None:
    """Hold every character of the value to the text it came from."""
    assert text[scalar.span.start : scalar.span.end] == scalar.raw
    found = places(scalar)
    assert len(found.starts) == len(found.ends) == len(scalar.value)
    before = scalar.span.start
    for at, char in enumerate(scalar.value):
        start, end = text_span(scalar, at, at + 1)
        assert before <= start <= end <= max(scalar.span.end, start), (scalar, at)
        before = start
        assert text_offset(scalar, at) == start
        if start >= scalar.span.end:
            assert char == "\n"  # a break behind the last words of a block, which the span leaves out
            continue
        source = text[start:end]
        if char == "\n" and source[-1] in "\r\n":
            pass
        elif char == " " and source[-1] in "\r\n":
            assert scalar.style != "literal"
        else:
            assert read_as(source) == char, (scalar, at, source)
        for offset in range(start, end):
            assert value_offset(scalar, offset) == at
    assert text_offset(scalar, len(scalar.value)) <= scalar.span.end
    assert value_offset(scalar, scalar.span.end) == len(scalar.value.rstrip("\n")) or scalar.style not in (
        "literal",
        "folded",
    )


CASES = {
    "plain": "k: hello {state.x}\n",
    "plain, folded": "k: one\n  two   \n\n\n  three {state.x}\n",
    "plain, folded, CRLF": "k: one\r\n  two\r\n\r\n  three\r\n",
    "single": "k: 'it''s {x}'\n",
    "single, folded": "k: 'it''s\n\n   so  \n  '\n",
    "double": 'k: "a\\n\\u00e9 {state.nope}"\n',
    "double, every escape": 'k: "\\0\\a\\b\\t\\n\\v\\f\\r\\e\\ \\"\\/\\\\\\N\\_\\L\\P\\x41\\u00e9\\U0001F600"\n',
    "double, continued line": 'k: "one \\\n    two\\\n  \\ three\\\n\n\n  four"\n',
    "double, folded, CRLF": 'k: "one  \r\n\r\n\r\n  two\r\n  three"\r\n',
    "literal": "k: |\n  one\n   two\n\n  {state.x}\n",
    "literal, kept": "k: |+\n  one\n\n\n",
    "literal, stripped": "k: |-\n  one\n  two\n\n",
    "literal, indicator": "k: |2\n     one\n    two\n",
    "literal, CRLF": "k: |\r\n  one\r\n\r\n    two\r\n",
    "literal, comment in the header": "k: |-  # why\n  one # two\n",
    "literal, nothing in it": "k: |\n\n\n",
    "literal, blanks at the end": "k: |\n  one  \n  two \t\n\n",
    "literal, leading empty lines": "k: |\n\n\n  one\n",
    "folded": "k: >\n  one\n  two\n\n  three\n",
    "folded, more indented": "k: >-\n  one\n  two\n    three\n    four\n\n    five\n  six\n\n\n  seven\n",
    "folded, indicator": "k: >1-\n    one\n  two\n x\n x\n",
    "folded, CRLF": "k: >+\r\n  one\r\n  two\r\n\r\n    three\r\n\r\n\r\n",
    "emoji before and in it": '😀: "😀\\U0001F600 {x}"\n',
    "separators": "k: 'a\u2028b\x85\n  c'\n",
}


@pytest.mark.parametrize("text", CASES.values(), ids=CASES.keys())
def test_each_style(text: str) -> None:
    """Each style, with its folding, chomping, escapes and line ends."""
    scalar = scalar_in(text)
    assert scalar is not None
    check(text, scalar)


@given(st.text(alphabet="ab {}'\n\t😀", max_size=25), st.sampled_from(["\n", "\r\n", "\r"]))
def test_single_quoted_and_plain(body: str, line_end: str) -> None:
    """Whatever reads as one plain or single-quoted scalar."""
    indented = body.replace("\n", "\n  ")
    for text in (f"k: '{body}'\n", f"k: '{indented}'\n", f"k: {indented}\n"):
        text = text.replace("\n", line_end)
        scalar = scalar_in(text)
        if scalar is not None:
            check(text, scalar)


@given(st.text(alphabet='ab {}\\nexuU041"\n\t', max_size=25), st.sampled_from(["\n", "\r\n", "\r"]))
def test_double_quoted(body: str, line_end: str) -> None:
    """Whatever reads as one double-quoted scalar."""
    text = f'k: "{body}"\n'.replace("\n", line_end)
    scalar = scalar_in(text)
    if scalar is not None:
        check(text, scalar)


@given(
    st.sampled_from("|>"),
    st.sampled_from(["", "-", "+", "2", "1-", "+1", " # c"]),
    st.lists(st.text(alphabet="ab {} #\t", max_size=5), max_size=7),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_blocks(kind: str, header: str, lines: list[str], line_end: str) -> None:
    """Whatever reads as one block scalar."""
    text = f"k: {kind}{header}\n" + "".join(f"  {line}\n" if line else "\n" for line in lines)
    text = text.replace("\n", line_end)
    scalar = scalar_in(text)
    if scalar is not None and not any(line and not line.strip(" \t") for line in lines):
        check(text, scalar)
