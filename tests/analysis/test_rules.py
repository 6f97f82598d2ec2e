"""Every rule against its fixtures: places exact, fixes that cure, good files silent."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentloom.analysis.rules.registry import RULES
from agentloom.diagnostics import Severity, apply_edits
from tests.rule_fixtures import ROOT, all_fixtures, analyze_fixture, found_in, read_fixture

BAD = all_fixtures("bad*.yaml")
GOOD = all_fixtures("good*.yaml")


def _name(path: Path) -> str:
    return f"{path.parent.name}-{path.stem}"


@pytest.mark.parametrize("path", BAD, ids=_name)
def test_bad_file_has_exactly_the_marked_diagnostics(path: Path) -> None:
    """Codes and places are those that the fixture marks, no more and no fewer; the rule's own code is among them."""
    text, wants = read_fixture(path)
    document = analyze_fixture(path, text)

    assert found_in(document) == [type(w)(w.line, w.column, w.end_column, w.code) for w in wants]
    assert path.parent.name in {want.code for want in wants}
    for want in wants:
        if want.words:
            assert any(want.words in d.message for d in document.diagnostics if d.code == want.code)


@pytest.mark.parametrize("path", GOOD, ids=_name)
def test_good_file_is_silent(path: Path) -> None:
    """Not even a hint."""
    text, wants = read_fixture(path)

    assert wants == []
    assert found_in(analyze_fixture(path, text)) == []


@pytest.mark.parametrize("path", BAD, ids=_name)
def test_fixes_give_the_fixed_file(path: Path) -> None:
    """The first fix of each finding of the code, applied, gives ``fixed.yaml``; only findings without a fix are left there."""
    code = path.parent.name
    fixed = path.with_name(path.name.replace("bad", "fixed"))
    text, _ = read_fixture(path)
    document = analyze_fixture(path, text)
    told = [d for d in document.diagnostics if d.code == code]
    own = [d for d in told if d.fixes]

    assert bool(own) == fixed.exists(), "fixed.yaml exists exactly if there is something to apply"
    if own:
        edits = [edit for d in own for edit in dict.fromkeys(d.fixes[0].edits)]
        cured = apply_edits(text, dict.fromkeys(edits))
        assert cured == read_fixture(fixed)[0]
        left = sum(d.code == code for d in analyze_fixture(path, cured).diagnostics)
        assert left == len(told) - len(own)


@pytest.mark.parametrize("path", BAD, ids=_name)
def test_every_fix_cures_its_finding(path: Path) -> None:
    """Each single fix of any finding removes that finding, and the text still reads as YAML."""
    text, _ = read_fixture(path)
    document = analyze_fixture(path, text)
    syntax_before = sum(d.code == "AL001" for d in document.diagnostics)
    for d in document.diagnostics:
        for fix in d.fixes:
            after = analyze_fixture(path, apply_edits(text, fix.edits))
            same = [a for a in after.diagnostics if (a.code, a.message) == (d.code, d.message)]
            before = [a for a in document.diagnostics if (a.code, a.message) == (d.code, d.message)]
            assert len(same) < len(before), f"{d.code} {fix.title!r} cures nothing"
            assert sum(a.code == "AL001" for a in after.diagnostics) <= syntax_before, fix.title


def test_rules_are_unique_and_complete() -> None:
    """Codes and names are unique, in order, with a text, and each has fixtures: registered means described and tested."""
    codes = [rule.code for rule in RULES]

    assert codes == sorted(set(codes))
    assert len({rule.name for rule in RULES}) == len(RULES)
    untested = {"AL900"}  # needs a crash; see test_driver
    for rule in RULES:
        assert len(rule.doc.strip().split("\n\n")) >= 2, rule.code
        if rule.code not in untested:
            assert (ROOT / rule.code / "bad.yaml").exists(), rule.code
            assert (ROOT / rule.code / "good.yaml").exists(), rule.code
    assert {folder.name for folder in ROOT.iterdir()} <= set(codes)


def test_fixable_is_true_of_the_fixtures() -> None:
    """A rule says it has fixes exactly if its fixtures show one."""
    for rule in RULES:
        shown = any((ROOT / rule.code).glob("fixed*.yaml"))
        if rule.code != "AL900":
            assert rule.fixable == shown, rule.code


def test_error_rules_refuse() -> None:
    """A file with an error isn't ok, one with only warnings is."""
    for path in BAD:
        text, _ = read_fixture(path)
        document = analyze_fixture(path, text)
        assert document.ok == all(d.severity is not Severity.ERROR for d in document.diagnostics)
