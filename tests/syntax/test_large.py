"""Large and degenerate texts: they end, quickly enough for the test's own timeout, and one fault costs one place."""

from __future__ import annotations

import pytest

from agentloom.syntax.reader import Reader, read
from tests.syntax.support import H, said

STEP = (
    '  - id: s{0}\n    type: llm_call\n    prompt: "Summarise {{state.x}}"\n    depends_on: [s{0}]\n    output: o{0}\n'
)
MANY = H + "".join(STEP.format(at) for at in range(2_000))


def test_open_quote_at_the_start_of_ten_thousand_lines() -> None:
    """One finding on the quote; every step is there."""
    for text in (
        'description: "hello\n' + MANY,
        H + "  - 'a\n" + MANY[len(H) :],
    ):
        tree = read(text)
        assert len(tree.steps) >= 2_000
        assert len(tree.findings) == 1
        assert len(text[slice(*tree.findings[0].span)]) < 30


def test_an_edit_in_a_large_file_keeps_all_other_units() -> None:
    """Of two thousand units one is new; also when the edit breaks its piece."""
    reader = Reader()
    before = {placed.unit for placed in reader.read(MANY).steps}
    at = MANY.index("id: s1000")
    for text in (
        MANY[:at] + "x" + MANY[at:],
        MANY[:at] + '"' + MANY[at:],
        MANY[: at + 10] + "    pro\n" + MANY[at + 10 :],
    ):
        after = {placed.unit for placed in reader.read(text).steps}
        assert len(after - before) == 1


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a: " + "[" * 5_000, "AL001"),
        ("a: " + "[" * 5_000 + "]" * 5_000, "AL001"),
        (H + "  - id: a\n    x: " + "[" * 20_000 + "\n    y: 1\n", "AL001"),
        ("a: " + "{a: " * 5_000, "AL001"),
        ("- " * 3_000 + "a", "AL001"),
        ("".join(" " * at + "a:\n" for at in range(300)), "AL001"),
        ("".join(" " * at + "a:\n" for at in range(90)) + " " * 90 + 'x: "y\n', "AL001"),
        ("a: " + "x: y " * 200_000, "AL001"),
        ('a: "' + "x y " * 250_000, "AL001"),
        ("a: " + "'" * 300_001, "AL001"),
        ("a: " + "]" * 300_000, "AL001"),
        ("---\n" * 50_000, "AL007"),
        ("&a " * 50_000, "AL001"),
        ("a:\n" + "  k: 1\n" * 20_000, "AL002"),
        ("\0" * 200_000, "AL001"),
        ("".join(f"\t- id: s{at}\n\t  x: y\n" for at in range(2_000)), "AL006"),
        ("a: |\n" + "   line\n" * 50_000 + "  z\n" + "   line\n" * 1_000, "AL001"),
        (H + "".join(f"  - id: s{at}\n    pro\n" for at in range(1_000)), "AL001"),
        ("The quick brown fox: jumps over\nthe lazy dog and\n  more\n" * 2_000, "AL001"),
    ],
    ids=lambda value: value if len(value) < 10 else value[:12],
)
def test_degenerate_texts(text: str, code: str) -> None:
    """Nesting without end, a megabyte on a line, thousands of faults: an answer with a bounded number of findings."""
    tree = read(text)
    assert code in {f.code for f in tree.findings}
    assert len(tree.findings) <= 1_000


def test_large_and_fine() -> None:
    """Large texts without faults have none."""
    for text in (
        "a: " + "x y " * 250_000,
        "# c\n" * 50_000 + H,
        "\n" * 100_000 + "a: 1",
        "a: {" + ", ".join(f"k{at}: v" for at in range(20_000)) + "}",
    ):
        assert said(read(text)) == []
