"""Fixing until nothing is left to fix, over every fixture: never worse, the same when done again, nothing else touched."""

from __future__ import annotations

from difflib import SequenceMatcher
from pathlib import Path

import pytest

from agentloom.analysis.analyze import analyze
from agentloom.analysis.context import Context
from agentloom.analysis.document import WorkflowDocument
from agentloom.analysis.fixing import Fixed, errors_of, fix_all
from agentloom.analysis.settings import find_settings
from agentloom.diagnostics import Diagnostic
from agentloom.text import Source
from tests.analysis.checking import A, H, check
from tests.rule_fixtures import all_fixtures, read_fixture

BAD = all_fixtures("bad*.yaml")
DRESSES = {
    "as it is": lambda text: text,
    "with CRLF": lambda text: text.replace("\r\n", "\n").replace("\n", "\r\n"),
    "with a byte order mark": lambda text: text if text.startswith("\ufeff") else "\ufeff" + text,
    "with emoji and a comment before": lambda text: "# 😀 don't touch\n" + text,
}


def _fixed(path: Path, text: str, unsafe: bool = False) -> tuple[WorkflowDocument, Fixed]:
    context = Context(settings=find_settings(path))

    def again(text: str) -> WorkflowDocument:
        return analyze(Source(str(path), text), context)

    document = again(text)
    return document, fix_all(document, again, unsafe)


@pytest.mark.parametrize("unsafe", [False, True])
@pytest.mark.parametrize("dress", DRESSES)
@pytest.mark.parametrize("path", BAD, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_fixture(path: Path, dress: str, unsafe: bool) -> None:
    """No error that wasn't there; line ends and marks kept; a second time changes nothing."""
    text = DRESSES[dress](read_fixture(path)[0])
    document, fixed = _fixed(path, text, unsafe)
    assert errors_of(fixed.document) <= errors_of(document)
    result = fixed.document.source.text
    assert (result == text) == (not fixed.cured)
    assert result.startswith("\ufeff") == text.startswith("\ufeff")
    if "\n" in text.replace("\r\n", "") or "\r" in text.replace("\r\n", ""):
        pass  # its line ends are mixed
    elif "\r\n" in text:
        assert "\n" not in result.replace("\r\n", "")
    else:
        assert "\r" not in result
    assert _fixed(path, result, unsafe)[1].document.source.text == result


@pytest.mark.parametrize("path", BAD, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_comments_stay(path: Path) -> None:
    """Safe fixes take no comment away, but for a suppression that they are about."""
    text = read_fixture(path)[0]
    document, fixed = _fixed(path, text)
    gone = [comment.text for comment in document.tree.comments]
    for comment in fixed.document.tree.comments:
        if comment.text in gone:
            gone.remove(comment.text)
    about = any(code in fixed.cured for code in ("AL010", "AL901", "AL902", "AL002"))
    assert about or gone == []


def test_only_what_is_wanted() -> None:
    """The caller says which findings to fix."""
    text = H + A.replace("hi", '"{state.x"') + "    depends_on: [b, b]\n  - {id: b, type: llm_call, prompt: hi}\n"
    document = check(text)

    def repeated(diagnostic: Diagnostic) -> bool:
        return diagnostic.code == "AL205"

    fixed = fix_all(document, check, wanted=repeated)
    assert dict(fixed.cured) == {"AL205": 1}
    assert fixed.document.source.text == text.replace("[b, b]", "[b]")


def test_prose_is_never_touched() -> None:
    """Case: a fixing hook rewrote words inside prose blocks; bytes in scalars change only when the fix is about them."""
    prose = "    prompt: >-\n      answer yes or no, on or off: 1.10, 017\n"
    text = (
        H + A.replace("    prompt: hi\n", prose) + "    depends_on: [b, b]\n  - {id: b, type: llm_call, prompt: no}\n"
    )
    fixed = fix_all(check(text), check).document.source.text
    assert prose in fixed
    blocks = SequenceMatcher(None, text, fixed, autojunk=False).get_opcodes()
    assert [(tag, text[a:b]) for tag, a, b, _, _ in blocks if tag != "equal"] == [("delete", ", b")]


def test_a_fix_that_harms_is_left_out_alone() -> None:
    """Of many fixes, one that brings an error is left out, and the others are carried out."""
    many = "".join(f"  - {{id: s{n}, type: llm_call, prompt: hi, depends_on: [b, b]}}\n" for n in range(9))
    text = H + many + "  - {id: b, type: llm_call, prompt: hi}\n"

    def spoiled(text: str) -> WorkflowDocument:
        """Check, as if the fix of the fifth step made things worse."""
        return check(text if "id: s4, type: llm_call, prompt: hi, depends_on: [b, b]" in text else text + "  - x\n")

    fixed = fix_all(check(text), spoiled)
    assert fixed.cured["AL205"] == 8
    assert fixed.document.source.text.count("[b, b]") == 1
