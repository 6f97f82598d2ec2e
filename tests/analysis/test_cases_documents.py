"""Cases seen elsewhere: duplicates, tabs, line ends, marks, comments, several documents, large files, false positives."""

from __future__ import annotations

from itertools import pairwise

import pytest

from agentloom.analysis.analyze import AnalysisCache
from agentloom.analysis.settings import Settings
from agentloom.diagnostics import Severity, apply_edits
from tests.analysis.checking import A, H, check, codes, cured, only, places, told


def test_case_a_repeated_key() -> None:
    """An error on the second, the first beside it, and a fix that removes one."""
    text = H + A + "    prompt: again\n"
    assert places(text) == [("AL002", 6, "prompt")]
    (first,) = only(text, "AL002").related
    assert text.count("\n", 0, first.span.start) == 4
    assert cured(text, "AL002") == H + A


def test_case_a_tab_that_indents() -> None:
    """One diagnostic, on the tab; the fix uses the file's own indent; no cascade."""
    text = H + "  - id: a\n\ttype: llm_call\n    prompt: hi\n"
    assert places(text) == [("AL006", 4, "\t")]
    assert cured(text, "AL006") == H + A
    alone = H + "  - id: a\n\ttype: llm_call\n"
    assert [p for p in places(alone) if p[0] != "AL109"] == [("AL006", 4, "\t")]


WINDOWS = {"\r\n": "CRLF", "\n": "LF"}


@pytest.mark.parametrize("ending", WINDOWS, ids=WINDOWS.values())
def test_case_inserted_lines_use_the_endings_of_the_file(ending: str) -> None:
    """A key, a list item, a whole skeleton: every line break that a fix writes is the file's own."""
    text = (
        "name: w\nsteps:\n  - id: r\n    type: router\n    conditions:\n      - {expression: state.x, target: a}\n"
        "  - id: a\n    type: llm_call\n    prompt: hi\n    depends_on:\n      - b\n    max_retries: 2\n"
        "  - type: llm_call\n    prompt: hi\n"
    ).replace("\n", ending)
    document = check(text)
    fixes = [fix for d in document.diagnostics for fix in d.fixes]
    assert len(fixes) >= 4
    for fix in fixes:
        mended = apply_edits(text, fix.edits)
        assert mended.replace("\r\n", "").count("\n") == (0 if ending == "\r\n" else mended.count("\n")), fix.title


def test_case_mixed_endings_keep_those_of_the_neighbour() -> None:
    """In a file of both kinds a new line ends like the line that it stands at."""
    text = "name: w\r\nsteps:\n  - id: a\n    type: tool\n    tool_args: {}\r\n"
    assert "    type: tool\n    tool_name: http_request\n" in cured(text, "AL101")
    assert "    type: tool\r\n    tool_name: http_request\r\n" in cured(text.replace("tool\n", "tool\r\n"), "AL101")


def test_case_crlf_behind_a_comment_line() -> None:
    """The same diagnostics at the same lines as with LF."""
    text = H + "#\n" + A + "    promtp: x\n"
    assert places(text) == places(text.replace("\n", "\r\n"))


def test_case_a_byte_order_mark() -> None:
    """It belongs to no key; what is told of line 1 is told of the word behind it."""
    assert codes("\ufeff" + H + A) == []
    text = "\ufeffnmae: w\nsteps:\n" + A
    assert places(text) == [("AL102", 1, "nmae")]
    assert cured(text, "AL102").startswith("\ufeffname: w\n")
    assert codes("\ufeff# 😀\r\n" + (H + A).replace("\n", "\r\n")) == []


def test_case_a_second_document() -> None:
    """One diagnostic on its marker; the first document is served in full."""
    text = H + A + "    depends_on: [zz]\n---\nfoo: [1\n"
    assert places(text) == [("AL202", 6, "zz"), ("AL007", 7, "---")]


def test_case_a_marker_before_the_first_document() -> None:
    """That is no second document, nor are comments and directives before it."""
    for head in ("---\n", "# hi\n---\n", "%YAML 1.2\n---\n", "--- # hi\n"):
        assert codes(head + H + A) == []


@pytest.mark.parametrize(
    "comment", ["# v2 1.0\n", "# {state.x} [\n", "# 'open \"\n", "# - a: b: c\n", "#\t\n", "#😀\n"]
)
def test_case_comments_never_change_results(comment: str) -> None:
    """Whatever stands in them, above, between and below the steps."""
    text = H + A + "    depends_on: [zz]\n"
    assert (
        codes(comment + text)
        == codes(text)
        == codes(text + comment)
        == codes(text.replace("steps:\n", "steps:\n" + comment))
    )


def test_case_a_suppression_above_a_block_text() -> None:
    """It covers the whole value, also the third line of the text."""
    text = H + "  - id: a\n    type: llm_call\n    model: |\n      gpt-4o\n    prompt: hi\n"
    assert codes(text) == ["AL012"]
    assert codes(text.replace("    model", "    # agentloom: ignore[AL012]\n    model")) == []
    assert codes(text.replace("|", "|  # agentloom: ignore[AL012]")) == []


def test_case_a_fix_beside_a_comment() -> None:
    """The comment stays, in brackets, behind a removed item and behind a changed value."""
    one = H + A + "    depends_on: [x] # why\n"
    assert cured(one, "AL202").endswith("    depends_on: [] # why\n")
    several = H + A + "    depends_on: [x, # why\n      a2]\n" + A.replace("id: a", "id: a2")
    assert "# why" in cured(several, "AL202")
    assert codes(cured(several, "AL202")) == []
    text = "config:\n  stream: 'true' # as it comes\n" + H + A
    assert "  stream: true # as it comes\n" in cured(text, "AL105")


def test_case_a_list_in_brackets_over_lines() -> None:
    """No fix leaves a bracket behind: each result reads, and says what it should."""
    text = H + A.replace("id: a", "id: b") + A + "    depends_on: [zz,\n      b,\n      b]\n"
    document = check(text)
    assert [d.code for d in document.diagnostics] == ["AL202", "AL205"]
    expected = {"AL202": ["b", "b"], "AL205": ["zz", "b"]}
    for d in document.diagnostics:
        for fix in d.fixes:
            after = check(apply_edits(text, fix.edits))
            assert "AL001" not in {x.code for x in after.diagnostics}
            assert after.steps[1].facts.data["depends_on"] == expected[d.code]


def test_case_five_thousand_steps() -> None:
    """They are all read and checked; the work per step doesn't grow, so the last half takes no longer than the first."""
    steps = "".join(
        f"  - {{id: s{i}, type: llm_call, prompt: hi, depends_on: [s{max(0, i - 1)}]}}\n" for i in range(1, 5_000)
    )
    document = check(H + "  - {id: s0, type: llm_call, prompt: hi}\n" + steps)
    assert document.diagnostics == ()
    assert len(document.graph.layers) == 5_000


def test_case_keys_that_a_program_sets_are_not_wrong() -> None:
    """`{state.from_cli}` may come from `--state`: unknown is not wrong, so nothing of it is an error or a warning here."""
    text = H + '  - {id: a, type: llm_call, prompt: "{state.from_cli}"}\n'
    assert [d for d in check(text).diagnostics if d.severity <= Severity.WARNING and d.code != "AL401"] == []


def test_case_exclusive_branches_may_write_one_key() -> None:
    """Two branches of one router never both run."""
    text = (
        H
        + "  - {id: r, type: router, default: b, conditions: [{expression: state.x, target: a}]}\n"
        + "  - {id: a, type: llm_call, prompt: hi, output: k, depends_on: [r]}\n"
        + "  - {id: b, type: llm_call, prompt: hi, output: k, depends_on: [r]}\n"
    )
    assert codes(text) == []
    assert codes(text.replace(", depends_on: [r]", "")) == ["AL208", "AL208", "AL404"]


def test_case_tools_of_ones_own_are_not_unknown() -> None:
    """No check has a list of its own: a tool of the user's own passes like a built-in one."""
    assert codes(H + "  - {id: a, type: tool, tool_name: my_own, tool_args: {x: 1}}\n") == []


def test_case_the_last_finding_goes_with_its_cause() -> None:
    """Version after version of one open file: nothing stays that isn't there, nothing is forgotten."""
    cache = AnalysisCache()
    good = H + A
    texts = [good, good + "    x: 1\n", good, good + "- [\n", good, "", good, good.replace("hi", "{"), good]
    for text in texts:
        assert check(text, cache=cache).diagnostics == check(text).diagnostics
    for before, after in pairwise(texts):
        check(before, cache=cache)
        assert (check(after, cache=cache).diagnostics == ()) is (after == good)


def test_case_settings_of_a_folder() -> None:
    """A warning is silent, or refuses the run, as the settings say; an error can't be silenced."""
    text = H + A + "    depends_on: [b, b]\n" + A.replace("id: a", "id: b")
    assert [d.severity for d in check(text).diagnostics] == [Severity.WARNING]
    assert check(text, Settings(ignore=("AL205",))).diagnostics == ()
    assert not check(text, Settings(severity={"AL205": Severity.ERROR})).ok


def test_case_a_cycle_among_other_mistakes() -> None:
    """Two rings are two diagnostics, on their closing edges; a step merely downstream is never blamed; unknown names hide nothing."""
    needs = {"r": "", "a": "b", "b": "c", "c": "a", "d": "a", "e": "f", "f": "e", "g": "nope"}
    text = H + "".join(
        f"  - {{id: {name}, type: llm_call, prompt: hi, depends_on: [{need}]}}\n" for name, need in needs.items()
    )
    assert places(text) == [("AL204", 6, "a"), ("AL204", 9, "e"), ("AL202", 10, "nope")]
    rings = [d for d in check(text).diagnostics if d.code == "AL204"]
    assert [len(ring.related) for ring in rings] == [3, 2]
    assert "`a -> b -> c -> a`" in told(text)[0].message
