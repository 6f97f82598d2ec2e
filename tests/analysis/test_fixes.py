"""Every fix, on every bad fixture and on variants of it: the text still reads, the finding is gone, nothing else is touched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from agentloom.analysis.document import WorkflowDocument
from agentloom.diagnostics import Diagnostic, Fix, Severity, apply_edits
from agentloom.syntax.nodes import Alias, Mapping, Node, Scalar, Sequence
from agentloom.syntax.reader import read
from tests.analysis.writing import block_text, flow_text, json_text
from tests.model.documents import nearly
from tests.rule_fixtures import all_fixtures, analyze_fixture, read_fixture

BAD = all_fixtures("bad*.yaml")

# Fixes after which more can be judged than before, so that faults may show that were there all along.
REVEALING = {
    "AL001": "a line that reads has a key and a value",
    "AL101": "the keys of a step can be judged once it has a type",
    "AL103": "so can they with the right type",
    "AL102": "the value of a key can be judged under its right name",
    "AL104": "some choices need other keys beside them",
    "AL105": "a name of the right type may name nothing",
    "AL003": "an alias stands for a value that may not fit here",
    "AL701": "a file that is there may have faults of its own",
}


def _plain(text: str) -> str:
    return text


def _windows(text: str) -> str:
    """Return the text with a byte order mark and CRLF."""
    return "\ufeff" + text.replace("\n", "\r\n")


def _commented(text: str) -> str:
    """Return the text with an emoji above it, and a comment behind every line that takes one."""
    closed = _lines_in_scalars(text)
    lines = text.split("\n")
    noted = [
        f"{line}  # é😀{number}" if line.strip() and number not in closed and "#" not in line else line
        for number, line in enumerate(lines)
    ]
    return "# 😀\n" + "\n".join(noted)


VARIANTS: dict[str, Callable[[str], str]] = {"plain": _plain, "windows": _windows, "commented": _commented}


def _lines_in_scalars(text: str) -> set[int]:
    """Return the lines behind which a comment would be part of a text, or cut one off."""
    tree = read(text)
    if tree.findings:
        return set(range(text.count("\n") + 1))
    closed: set[int] = set()
    todo: list[Node | None] = [tree.root]
    while todo:
        node = todo.pop()
        if isinstance(node, Mapping):
            todo.extend(part for entry in node.entries for part in (entry.key, entry.value))
        elif isinstance(node, Sequence):
            todo.extend(node.items)
        elif isinstance(node, Scalar) and "\n" in node.raw:
            first = text.count("\n", 0, node.span.start)
            closed.update(range(first, first + node.raw.count("\n") + 1))
        assert node is None or isinstance(node, Alias | Scalar | Mapping | Sequence)
    return closed


def _told(document: WorkflowDocument) -> Counter[tuple[str, str]]:
    return Counter((d.code, d.message) for d in document.diagnostics)


def _errors(document: WorkflowDocument) -> Counter[str]:
    return Counter(d.code for d in document.diagnostics if d.severity is Severity.ERROR)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("path", BAD, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_fix(path: Path, variant: str) -> None:
    """Of every finding of every fixture, in every variant of its text."""
    text = VARIANTS[variant](read_fixture(path)[0])
    document = analyze_fixture(path, text)
    for diagnostic in document.diagnostics:
        for fix in diagnostic.fixes:
            _check(path, text, document, diagnostic, fix)


@pytest.mark.parametrize("seed", range(0, 240, 4))
def test_fixes_of_generated_documents(seed: int) -> None:
    """Nearly valid documents, as block text and in braces, with all kinds of mistakes at all places."""
    path = Path("nowhere/made.loom.yaml")
    for number, write in enumerate((block_text, flow_text, block_text, json_text)):
        text = write(nearly("workflow", seed + number))
        document = analyze_fixture(path, text)
        for diagnostic in document.diagnostics:
            for fix in diagnostic.fixes:
                _check(path, text, document, diagnostic, fix)


def _check(path: Path, text: str, document: WorkflowDocument, diagnostic: Diagnostic, fix: Fix) -> None:
    said = f"{diagnostic.code} {fix.title!r}"
    spans = sorted(edit.span for edit in fix.edits)
    assert spans, said
    assert all(0 <= start <= end <= len(text) for start, end in spans), said
    assert all(one.end <= other.start for one, other in pairwise(spans)), said

    mended = apply_edits(text, fix.edits)
    after = analyze_fixture(path, mended)
    key = (diagnostic.code, diagnostic.message)
    assert _told(after)[key] < _told(document)[key], f"{said} cures nothing:\n{mended}"
    if diagnostic.code not in REVEALING:
        more = _errors(after) - _errors(document)
        assert not more, f"{said} makes {dict(more)}:\n{mended}"
    else:
        assert _errors(after)["AL001"] <= _errors(document)["AL001"], f"{said} breaks the text:\n{mended}"

    assert mended.startswith("\ufeff") == text.startswith("\ufeff"), said
    if "\r\n" in text:
        assert mended.count("\n") == mended.count("\r\n") == mended.count("\r"), f"{said} mixes line endings"
    if not fix.title.startswith(("remove", "merge", "quote the whole")) and diagnostic.code != "AL901":
        # what is removed takes its comments along; the others are about comments
        before = Counter(c.text.rstrip() for c in document.tree.comments)
        lost = before - Counter(c.text.rstrip() for c in after.tree.comments)
        assert not lost, f"{said} loses {dict(lost)}:\n{mended}"
