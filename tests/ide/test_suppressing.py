"""Comments that hide a diagnostic: this one goes, everything else stays as it was."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from agentloom.analysis.document import WorkflowDocument
from agentloom.analysis.settings import Settings
from agentloom.diagnostics import Severity, apply_edits
from agentloom.ide.suppressing import can_be_suppressed, suppress_here, suppress_in_file
from agentloom.syntax.values import plain_value
from tests.analysis.checking import A, H, check
from tests.ide.variants import VARIANTS, in_order, same_line_ends
from tests.rule_fixtures import all_fixtures, analyze_fixture, read_fixture

BAD = all_fixtures("bad*.yaml")


def _told(document: WorkflowDocument) -> Counter[tuple[str, int, str]]:
    return Counter(
        (d.code, document.lines.line_of(d.span.start), document.source.text[d.span.start : d.span.end])
        for d in document.diagnostics
    )


def _texts(document: WorkflowDocument) -> Counter[tuple[str, str]]:
    return Counter((d.code, document.source.text[d.span.start : d.span.end]) for d in document.diagnostics)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("path", BAD, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_finding_that_may_be_hidden(path: Path, variant: str) -> None:
    """Of every fixture: it is gone afterwards, whatever stands elsewhere is still told, and the values are the same."""
    text = VARIANTS[variant](read_fixture(path)[0])
    document = analyze_fixture(path, text)
    for diagnostic in document.diagnostics:
        edits = suppress_here(document, diagnostic)
        assert bool(edits) == can_be_suppressed(diagnostic), diagnostic
        if not edits:
            continue
        after = analyze_fixture(path, apply_edits(text, edits))
        said = f"{diagnostic.code}:\n{after.source.text}"
        assert in_order(edits, text)
        assert all(edit.span.start == edit.span.end for edit in edits), said
        assert same_line_ends(text, after.source.text), said
        assert plain_value(after.tree.root) == plain_value(document.tree.root), said
        line = document.lines.line_of(diagnostic.span.start)
        alike = Counter(
            (d.code, text[d.span.start : d.span.end])
            for d in document.diagnostics
            if d.code == diagnostic.code and document.lines.line_of(d.span.start) == line
        )
        gone = _texts(document) - _texts(after)
        assert gone == alike, said
        assert not _texts(after) - _texts(document), said


@pytest.mark.parametrize("path", BAD, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_whole_files(path: Path) -> None:
    """The code is gone from the file, and nothing else."""
    text = read_fixture(path)[0]
    document = analyze_fixture(path, text)
    for code in {d.code for d in document.diagnostics if can_be_suppressed(d)}:
        edits = suppress_in_file(document, code)
        after = analyze_fixture(path, apply_edits(text, edits))
        assert _texts(after) == Counter({key: count for key, count in _texts(document).items() if key[0] != code}), (
            after.source.text
        )


RETRY = "    retry: {backoff_base: 1}\n"
TICKET = "  - id: a\n    type: llm_call\n    prompt: Fix ticket #12 now\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # the line above, in its indentation
        (H + A + RETRY, H + A + "    # agentloom: ignore[AL501]\n" + RETRY),
        (H + TICKET, H + TICKET.replace("    prompt", "    # agentloom: ignore[AL010]\n    prompt")),
        # behind a dash the comment above would cover the whole step, where there is more of the kind
        (
            H + "  - depends_on: [b, b]\n    id: a\n    type: llm_call\n    prompt: hi\n" + A.replace("id: a", "id: b"),
            H
            + "  # agentloom: ignore[AL205]\n"
            + ("  - depends_on: [b, b]\n    id: a\n    type: llm_call\n    prompt: hi\n" + A.replace("id: a", "id: b")),
        ),
        # in a block text: above its key
        (
            H + "  - id: a\n    type: llm_call\n    prompt: hi\n    retry:\n      backoff_base: 1\n",
            H
            + "  - id: a\n    type: llm_call\n    prompt: hi\n    retry:\n"
            + ("      # agentloom: ignore[AL501]\n      backoff_base: 1\n"),
        ),
        # in braces
        (
            H + "  - {id: a, type: llm_call, prompt: hi, retry: {backoff_base: 1}}\n",
            H
            + "  # agentloom: ignore[AL501]\n"
            + "  - {id: a, type: llm_call, prompt: hi, retry: {backoff_base: 1}}\n",
        ),
        (
            H + "  - {id: a, type: llm_call, prompt: hi,\n     retry: {\n       backoff_base: 1}}\n",
            H
            + "  - {id: a, type: llm_call, prompt: hi,\n     retry: {\n"
            + "       # agentloom: ignore[AL501]\n       backoff_base: 1}}\n",
        ),
        # taken into a comment that is there
        (
            H + A + "    # agentloom: ignore[AL402]\n" + RETRY,
            H + A + "    # agentloom: ignore[AL402, AL501]\n" + RETRY,
        ),
        (
            H + A + "    # agentloom: ignore[]\n    # because\n" + RETRY,
            H + A + "    # agentloom: ignore[AL501]\n    # because\n" + RETRY,
        ),
    ],
)
def test_where_the_comment_goes(before: str, after: str) -> None:
    """The indentation of the line, merged where there is one, above the key of a value over lines."""
    document = check(before)
    (diagnostic,) = [d for d in document.diagnostics if can_be_suppressed(d) and d.code not in ("AL901", "AL902")]
    assert apply_edits(before, suppress_here(document, diagnostic)) == after


def test_beside_more_of_its_kind() -> None:
    """A comment above a step would cover all of it, so one at the end of the line is taken."""
    text = H + A + "    retry:\n      retryable_status_codes: [400,\n       401]\n"
    document = check(text)
    first, second = [d for d in document.diagnostics if d.code == "AL503"]
    after = apply_edits(text, suppress_here(document, second))
    assert after == text.replace("       401", "       # agentloom: ignore[AL503]\n       401")
    after = apply_edits(text, suppress_here(document, first))
    assert after == text.replace("[400,\n", "[400,  # agentloom: ignore[AL503]\n")
    (left,) = [d for d in check(after).diagnostics if d.code == "AL503"]
    assert after[left.span.start : left.span.end] == "401"


def test_behind_a_comment() -> None:
    """At the end of a line that has a comment, ours follows it; one of ours takes the code in."""
    text = H + A + "    retry:\n      retryable_status_codes: [400, # why\n        401]\n"
    document = check(text)
    first = next(d for d in document.diagnostics if d.code == "AL503")
    after = apply_edits(text, suppress_here(document, first))
    assert after == text.replace("# why", "# why # agentloom: ignore[AL503]")
    text = text.replace("# why", "# agentloom: ignore[AL501] why")
    document = check(text)
    first = next(d for d in document.diagnostics if d.code == "AL503")
    assert "[400, # agentloom: ignore[AL501, AL503] why\n" in apply_edits(text, suppress_here(document, first))


def test_files_with_a_comment_on_top() -> None:
    """The comment for the file goes behind those at its top, or into the one that is there."""
    text = "# yaml-language-server: $schema=x.json\n# words\n" + H + A + RETRY
    (edit,) = suppress_in_file(check(text), "AL501")
    after = apply_edits(text, (edit,))
    assert after == text.replace("# words\n", "# words\n# agentloom: ignore-file[AL501]\n")
    (edit,) = suppress_in_file(check(after), "AL010")
    assert "# agentloom: ignore-file[AL501, AL010]\n" in apply_edits(after, (edit,))
    (edit,) = suppress_in_file(check("\ufeff" + H + A + RETRY), "AL501")
    assert edit.span.start == 1


def test_errors_stay() -> None:
    """What refuses the run can't be hidden; a warning that the settings made an error can."""
    document = check(H + A + "    depends_on: [nope]\n")
    assert [suppress_here(document, d) for d in document.diagnostics] == [()]
    settings = Settings(severity={"AL501": Severity.ERROR})
    text = H + A + RETRY
    document = check(text, settings)
    (diagnostic,) = document.diagnostics
    assert diagnostic.severity is Severity.ERROR
    assert check(apply_edits(text, suppress_here(document, diagnostic)), settings).diagnostics == ()


def test_comments_about_comments() -> None:
    """What is said about a suppression can't be hidden by another one."""
    document = check(H + A + "    # agentloom: ignore[AL501]\n    timeout: 1\n")
    assert [(d.code, suppress_here(document, d)) for d in document.diagnostics] == [("AL902", ())]


def test_a_broken_line_elsewhere() -> None:
    """A finding beside broken text can be hidden all the same."""
    text = H + "  - id: b\n    pro\n" + A + RETRY
    document = check(text)
    (diagnostic,) = [d for d in document.diagnostics if d.code == "AL501"]
    after = apply_edits(text, suppress_here(document, diagnostic))
    assert after == text.replace(RETRY, "    # agentloom: ignore[AL501]\n" + RETRY)
    assert Counter(d.code for d in check(after).diagnostics) == Counter(
        d.code for d in document.diagnostics if d is not diagnostic
    )
