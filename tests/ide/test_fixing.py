"""Many fixes at once: what is fixed, what is left, and that it ends."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from agentloom.analysis.fixing import errors_of
from agentloom.diagnostics import Edit, apply_edits
from agentloom.ide.fixing import _edits_of, _spliced, fix_all
from agentloom.text import Span
from tests.analysis.checking import A, H, check
from tests.ide.variants import VARIANTS, in_order, same_line_ends
from tests.rule_fixtures import all_fixtures, analyze_fixture, read_fixture

REVEALING = {"AL101", "AL103", "AL102", "AL104", "AL105", "AL003", "AL701"}
"""Rules whose fixes may show errors that were there all along; those aren't made with others at once."""
BAD = all_fixtures("bad*.yaml")


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("path", BAD, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_all_safe_fixes(path: Path, variant: str) -> None:
    """Nothing safe is left to do, the text is as readable as before, and doing it again changes nothing."""
    text = VARIANTS[variant](read_fixture(path)[0])
    document = analyze_fixture(path, text)
    edits = fix_all(document)
    assert in_order(edits, text)
    after = analyze_fixture(path, apply_edits(text, edits))
    assert same_line_ends(text, after.source.text)
    assert errors_of(after) <= errors_of(document)
    assert fix_all(after) == (), after.source.text


@pytest.mark.parametrize("path", BAD, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_all_of_one_code(path: Path) -> None:
    """The preferred fix of each; there are fewer of the code afterwards, and nothing can be read worse."""
    text = read_fixture(path)[0]
    document = analyze_fixture(path, text)
    for code in {d.code for d in document.diagnostics if d.fixes}:
        edits = fix_all(document, code)
        after = analyze_fixture(path, apply_edits(text, edits))
        count = sum(d.code == code for d in document.diagnostics)
        fewer = sum(d.code == code for d in after.diagnostics) < count
        assert fewer or (code in REVEALING and not edits), f"{code}\n{after.source.text}"
        assert errors_of(after) <= errors_of(document)


def test_fixes_that_meet_take_turns() -> None:
    """Two fixes of one place are not made at once: the second waits for the next round."""
    text = H + A + A.replace("id: a", "id: b") + "    depends_on: [a, a, a, a]\n"
    assert apply_edits(text, fix_all(check(text))) == text.replace("[a, a, a, a]", "[a]")


def test_rounds_are_one_change() -> None:
    """Edits upon edits come out as edits of the first text, whatever they are."""
    chance = random.Random(7)
    for _ in range(400):
        text = "".join(chance.choices("abc\n", k=chance.randint(0, 12)))
        now, pieces = text, [Span(0, len(text))]
        for _ in range(chance.randint(1, 4)):
            edits: list[Edit] = []
            at = 0
            while at <= len(now) and chance.random() < 0.7:
                start = chance.randint(at, len(now))
                end = chance.randint(start, min(len(now), start + 3))
                edits.append(Edit(Span(start, end), "".join(chance.choices("XYZ", k=chance.randint(0, 2)))))
                at = end + 1
            now = apply_edits(now, edits)
            pieces = list(_spliced(pieces, edits))  # type: ignore[arg-type]
        found = tuple(_edits_of(pieces, len(text)))
        assert apply_edits(text, found) == now
        assert in_order(found, text)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # every inserted line ends as those around it do
        (
            (H + A + "    dependson: []\n").replace("\n", "\r\n"),
            (H + A + "    depends_on: []\n").replace("\n", "\r\n"),
        ),
        # nothing of a list over lines is left behind
        (H + A + A.replace("id: a", "id: b") + "    depends_on: [a,\n  a]\n", "depends_on: [a]\n"),
        # the comment beside it stays
        (H + A + A.replace("id: a", "id: b") + "    depends_on: [a, a] # why\n", "depends_on: [a] # why\n"),
        # the quotes stay
        (H + A + A.replace("id: a", "id: b") + "    depends_on: ['a', \"a\"] # why\n", "depends_on: ['a'] # why\n"),
        # wide characters above and before
        (
            H
            + "  - {id: a, type: llm_call, prompt: '😀é'}\n  - {id: b, type: llm_call, prompt: ✓😀, depends_on: [a, a]}\n",
            "  - {id: b, type: llm_call, prompt: ✓😀, depends_on: [a]}\n",
        ),
        # quotes for what would be read otherwise
        ("version: 1.10\n" + H + A, 'version: "1.10"\n'),
    ],
)
def test_cases_of_editors(before: str, after: str) -> None:
    """Editor cases: line ends, a `]` left behind, lost comments, quotes, wide characters, `1.10`."""
    document = check(before)
    codes = {d.code for d in document.diagnostics if d.fixes}
    text = before
    for code in codes:
        text = apply_edits(text, fix_all(check(text), code))
    assert after in text
    assert same_line_ends(before, text)
    assert len(check(text).diagnostics) < len(document.diagnostics)


@pytest.mark.parametrize(
    ("line", "fixed"),
    [
        ('    timeout: "0.5"\n', "    timeout: 0.5\n"),
        ("    stream: 'true'\n", "    stream: true\n"),
        ("    system_prompt: 12\n", '    system_prompt: "12"\n'),
        ("    system_prompt: true\n", '    system_prompt: "true"\n'),
    ],
)
def test_quotes_both_ways(line: str, fixed: str) -> None:
    """Editor case: one click from a text to a number or a truth value, and back."""
    text = H + A + line
    document = check(text)
    (code,) = {d.code for d in document.diagnostics}
    assert apply_edits(text, fix_all(document, code)) == H + A + fixed
