"""What can be folded: first and last line of each fold, by text."""

from __future__ import annotations

import pytest

from agentloom.ide.folding import folds
from tests.analysis.checking import A, H, check


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("name: w\n", []),
        (H + A, [(1, 4), (2, 4)]),
        ((H + A).replace("\n", "\r\n"), [(1, 4), (2, 4)]),
        ((H + A).replace("\n", "\r"), [(1, 4), (2, 4)]),
        ("\ufeff" + H + A + "\n\n# next\n" + A, [(1, 10), (2, 4), (8, 10)]),
        (H + A + "    retry:\n      max_retries: 2\n      jitter: true\n", [(1, 7), (2, 7), (5, 7)]),
        (H + "  - id: a\n    prompt: |\n      one\n\n      two\n\n\n", [(1, 6), (2, 6), (3, 6)]),
        (H + "  - id: a\n    prompt: 'one\n      two'\n", [(1, 4), (2, 4), (3, 4)]),
        (H + "  - {id: a,\n     type: tool,\n  }\n", [(1, 4), (2, 3)]),
        (H + "  - id: a\n    depends_on: [\n      b,\n    ]\n", [(1, 5), (2, 5), (3, 4)]),
        ("state: {x: [1,\n  2]}\n", [(0, 1)]),
        ("a: &x\n  b: 1\nc: *x\n", [(0, 1)]),
        (
            H + "  - id: r\n    conditions:\n      - expression: x\n        target: a\n",
            [(1, 5), (2, 5), (3, 5), (4, 5)],
        ),
        # broken lines take nothing else away
        (H + A + "    dep\n" + A, [(1, 8), (2, 4), (6, 8)]),
        (H + A + "  - na\n", [(1, 5), (2, 4)]),
        (H + A + "    prompt: 'open\n" + A, [(1, 8), (2, 5), (6, 8)]),
    ],
)
def test_steps_and_what_is_in_them(text: str, expected: list[tuple[int, int]]) -> None:
    """Entries and items over several lines, one fold a line, the outermost; closing brackets stay in sight."""
    assert [fold[:2] for fold in folds(check(text)) if fold.kind == "code"] == expected


def test_comments_and_regions() -> None:
    """Comments in a row are one fold; a region ends at its own end."""
    text = (
        "# one\n# two\nname: w # three\n# four\n\n# region all\n# region in\nstate: {}\n# endregion\n#endregion\n# x\n"
    )
    found = [fold[:3] for fold in folds(check(text))]
    assert found == [(0, 1, "comment"), (5, 9, "region"), (6, 8, "region"), (8, 10, "comment")]


def test_no_comments_in_texts() -> None:
    """A line that begins with `#` inside a prompt is text."""
    text = H + "  - id: a\n    prompt: |\n      # one\n      # two\n"
    assert {fold.kind for fold in folds(check(text))} == {"code"}


def test_the_limit_keeps_what_is_further_out() -> None:
    """A client that takes few folds gets those of the top and of the steps."""
    text = H + (A + "    retry:\n      jitter: true\n") * 3
    every = folds(check(text))
    assert [fold.first for fold in every] == [1, 2, 5, 7, 10, 12, 15]
    assert [fold.first for fold in folds(check(text), 4)] == [1, 2, 7, 12]
    assert folds(check(text), 0) == []


def test_a_workflow_written_in_place() -> None:
    """Its steps fold like others."""
    inner = "      steps:\n        - id: q\n          type: tool\n"
    text = H + "  - id: s\n    type: subworkflow\n    workflow_inline:\n" + inner
    assert [fold[:2] for fold in folds(check(text))] == [(1, 7), (2, 7), (4, 7), (5, 7), (6, 7)]


def test_an_aliased_step_folds_at_its_anchor_only() -> None:
    """The alias is one line."""
    text = H + "  - &b\n    id: a\n    type: tool\n  - *b\n"
    assert [fold[:2] for fold in folds(check(text))] == [(1, 5), (3, 4)]
