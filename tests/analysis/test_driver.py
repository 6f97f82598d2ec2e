"""The driver: crashes stay in their rule, suppressions, settings, severities, ranges, caches, children."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import agentloom.analysis.analyze as door
from agentloom.analysis.analyze import AnalysisCache, analyze
from agentloom.analysis.context import Context
from agentloom.analysis.document import WorkflowDocument
from agentloom.analysis.rules.registry import RULES, settings_problems
from agentloom.analysis.settings import Settings, find_settings
from agentloom.diagnostics import Finding, Severity
from agentloom.text import Source

H = "name: w\nsteps:\n"
A = "  - id: a\n    type: llm_call\n    prompt: hi\n"


def check(text: str, settings: Settings | None = None, cache: AnalysisCache | None = None) -> WorkflowDocument:
    """Return the document of a text that is no file."""
    return analyze(Source("untitled:x", text), Context(settings=settings or Settings()), cache, "workflow")


def codes(text: str, settings: Settings | None = None) -> list[str]:
    """Return the codes of a text's diagnostics, in order."""
    return [d.code for d in check(text, settings).diagnostics]


def test_a_crash_in_one_rule_leaves_the_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It becomes one AL900 that names the rule, and a log line with the traceback."""

    def crash(document: WorkflowDocument) -> Iterator[Finding]:
        """A rule that raises on everything."""
        raise RuntimeError("boom")
        yield

    monkeypatch.setattr(door, "RAISE_CRASHES", False)
    monkeypatch.setattr(door, "DOCUMENT_RULES", (RULES[0]._replace(code="AL202", check=crash), *door.DOCUMENT_RULES))
    document = check(H + A + A)

    found = {d.code: d for d in document.diagnostics}
    assert set(found) == {"AL900", "AL201"}
    assert "AL202" in found["AL900"].message
    assert "boom" in caplog.text


def test_crashes_are_raised_in_tests() -> None:
    """So that no test passes over one."""
    assert door.RAISE_CRASHES


ROUTER = "  - id: r\n    type: router\n    conditions:\n      - {expression: state.x, target: a}\n"
GATED = A + "    depends_on: [r]\n"


def test_suppression_on_the_line_and_above_the_key() -> None:
    """Behind the value, or on the line above the key; a family works; the diagnostic is gone."""
    assert "AL210" in codes(H + ROUTER + GATED)
    assert "AL210" not in codes(H + ROUTER.replace("conditions:", "conditions:  # agentloom: ignore[AL210]") + GATED)
    above = ROUTER.replace("    conditions:", "    # agentloom: ignore[AL2]\n    conditions:")
    assert "AL210" not in codes(H + above + GATED)
    assert "AL210" not in codes("# agentloom: ignore-file[router-without-default]\n" + H + ROUTER + GATED)


def test_suppression_above_a_key_covers_its_block_text() -> None:
    """Case "comment above a `prompt: |` whose finding is three lines into the block"."""
    text = (
        H + "  - id: a\n    type: llm_call\n    prompt: hi\n    retry:\n      backoff_max: 1\n      backoff_base: 3\n"
    )
    assert codes(text) == ["AL502"]
    assert codes(text.replace("    retry:", "    # agentloom: ignore[AL502]\n    retry:")) == []


def test_a_suppression_elsewhere_hides_nothing_and_is_reported() -> None:
    """AL902 on the comment; the diagnostic stays."""
    found = codes(H + "  # agentloom: ignore[AL210]\n" + A + ROUTER + "    depends_on: [a]\n")
    assert "AL210" in found
    assert "AL902" in found


def test_errors_that_refuse_the_run_are_never_hidden() -> None:
    """Neither by a comment nor by settings: else the editor would be silent where the run refuses."""
    text = H + A + "    depends_on: [zz]  # agentloom: ignore[AL202]\n"
    quiet = Settings(ignore=("AL202",), severity={"AL202": Severity.HINT})
    document = check(text, quiet)

    assert [(d.code, d.severity) for d in document.diagnostics if d.code == "AL202"] == [("AL202", Severity.ERROR)]
    assert not document.ok


def test_settings_select_ignore_and_raise() -> None:
    """`ignore` and `select` take codes, families and names; `severity` can make a warning refuse the run."""
    text = H + ROUTER + GATED
    assert codes(text, Settings(known_state=("*",))) == ["AL210"]
    assert codes(text, Settings(known_state=("*",), ignore=("AL2",))) == []
    assert codes(text, Settings(known_state=("*",), ignore=("router-without-default",))) == []
    assert codes(text, Settings(known_state=("*",), select=("AL4",))) == []
    raised = check(text, Settings(known_state=("*",), severity={"router-without-default": Severity.ERROR}))
    assert not raised.ok


def test_every_range_lies_on_one_line_inside_the_text() -> None:
    """A fault that spans lines is cut to its first."""
    text = (
        H
        + "  - id: a\n    type: llm_call\n    prompt:\n      - x\n      - y\n    retry:\n      nope: 1\n      nope2: |\n        a\n        b\n"
    )
    document = check(text)
    assert document.diagnostics
    for d in document.diagnostics:
        assert 0 <= d.span.start <= d.span.end <= len(text)
        assert document.lines.line_of(d.span.start) == document.lines.line_of(d.span.end)


def test_cache_gives_the_same_as_a_fresh_check() -> None:
    """An edit in one step re-uses the others' facts, and the diagnostics are those of a fresh check."""
    steps = [
        f"  - id: s{i}\n    type: llm_call\n    prompt: hi {{state.x\n    depends_on: [s{i - 1}]\n" for i in range(20)
    ]
    cache = AnalysisCache()
    before = check(H + "".join(steps), cache=cache)
    steps[3] = steps[3].replace("hi", "hello, longer")
    after = check(H + "".join(steps), cache=cache)

    assert after.diagnostics == check(H + "".join(steps)).diagnostics
    assert after.steps[7].facts is before.steps[7].facts
    assert after.steps[3].facts is not before.steps[3].facts


def test_children_are_read_relative_to_the_file_and_recorded(tmp_path: Path) -> None:
    """The child's errors show at the reference; the files that were read are listed for re-checking."""
    (tmp_path / "child.yaml").write_text("name: c\nsteps: []\n")
    parent = tmp_path / "parent.loom.yaml"
    text = "name: p\nsteps:\n  - id: s\n    type: subworkflow\n    workflow_path: ./child.yaml\n"
    document = analyze(Source(parent.as_uri(), text), Context())

    (found,) = document.diagnostics
    assert found.code == "AL702"
    assert found.related[0].path == str(tmp_path / "child.yaml")
    assert document.files == {tmp_path / "child.yaml"}


def test_a_broken_child_that_runs_twice_is_told_at_both_places(tmp_path: Path) -> None:
    """Its error may stand at the same offset in its own file as the first of them here."""
    text = "name: w\nsteps:\n  - {id: s, type: subworkflow, workflow_path: c.yaml}\n"
    (tmp_path / "c.yaml").write_text(text.replace("c.yaml", "n.yaml"))
    path = tmp_path / "w.yaml"
    twice = text + "  - {id: t, type: subworkflow, workflow_path: c.yaml}\n"
    found = analyze(Source(str(path), twice), Context(), None, "workflow").diagnostics
    assert [(d.code, d.span.start) for d in found] == [
        ("AL702", text.index("c.yaml")),
        ("AL702", twice.rindex("c.yaml")),
    ]
    (related,) = found[1].related
    assert related.span == found[0].span


def test_a_child_that_is_a_pipe_or_a_device_is_not_read(tmp_path: Path) -> None:
    """Reading a pipe would wait for ever and a device might never end, so a file that names one gets AL701 at once."""
    os.mkfifo(tmp_path / "pipe.yaml")
    for name in ("pipe.yaml", os.devnull):
        text = f"name: p\nsteps:\n  - id: s\n    type: subworkflow\n    workflow_path: {name}\n"
        (found,) = analyze(Source(str(tmp_path / "p.yaml"), text), Context()).diagnostics
        assert (found.code, text[found.span.start : found.span.end]) == ("AL701", name)
        assert "is a pipe or a device" in found.message


def test_child_in_an_open_buffer_counts(tmp_path: Path) -> None:
    """``read_text`` of the context decides, so unsaved text wins over the disk."""
    (tmp_path / "child.yaml").write_text("name: c\nsteps: []\n")
    text = "name: p\nsteps:\n  - id: s\n    type: subworkflow\n    workflow_path: child.yaml\n"
    document = analyze(Source(str(tmp_path / "p.yaml"), text), Context(read_text=lambda path: H + A))

    assert document.diagnostics == ()


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_rings_of_files_over_any_number_of_hops(tmp_path: Path, hops: int) -> None:
    """AL703 at the reference in the file that is checked, naming the ring; it ends."""
    for i in range(hops):
        (tmp_path / f"f{i}.yaml").write_text(
            f"name: f{i}\nsteps:\n  - id: s\n    type: subworkflow\n    workflow_path: f{(i + 1) % hops}.yaml\n"
        )
    path = tmp_path / "f0.yaml"
    document = analyze(Source(str(path), path.read_text()), Context())

    (found,) = document.diagnostics
    assert found.code == "AL703"
    assert " -> ".join([*(f"f{i}.yaml" for i in range(hops)), "f0.yaml"]) in found.message


def test_a_ring_further_down_breaks_the_child(tmp_path: Path) -> None:
    """The file itself is in no ring, so it is told that its child is broken."""
    for name, child in (("a", "b"), ("b", "c"), ("c", "b")):
        (tmp_path / f"{name}.yaml").write_text(
            f"name: x\nsteps:\n  - id: s\n    type: subworkflow\n    workflow_path: {child}.yaml\n"
        )
    path = tmp_path / "a.yaml"
    assert [d.code for d in analyze(Source(str(path), path.read_text()), Context()).diagnostics] == ["AL702"]


def test_inline_children_are_checked_in_place() -> None:
    """Their diagnostics lie inside the parent's text, once each."""
    text = (
        "name: p\nsteps:\n  - id: s\n    type: subworkflow\n    workflow_inline:\n      name: c\n      stat: {}\n      steps:\n"
        "        - id: x\n          type: llm_call\n          prompt: hi\n          depends_on: [y]\n"
    )
    document = check(text)
    found = {(d.code, document.lines.line_of(d.span.start) + 1) for d in document.diagnostics}
    assert found == {("AL102", 7), ("AL202", 12)}


def test_settings_name_rules_that_exist(tmp_path: Path) -> None:
    """A code, a name or a family; anything else is told, as the command line's options are."""
    (tmp_path / "agentloom.toml").write_text(
        'select = ["AL2", "AL40", "dependency-cycle"]\nignore = ["foo"]\nseverity = {AL999 = "error", AL777 = "error", AL206 = "error"}\n'
    )
    told = settings_problems(find_settings(tmp_path / "x.yaml"))

    assert [problem.split("`")[1] for problem in told] == ["foo", "AL999", "AL777"]
    assert "did you mean" in told[1]


def test_default_retries_are_not_held_against_a_run_timeout() -> None:
    """Only retries that the author wrote, on the step or in `config`."""
    head = "name: w\nconfig: {timeout: 10%s}\nsteps:\n"
    assert codes(head % "" + A) == []
    assert codes(head % ", max_retries: 5" + A) == ["AL504"]
    assert codes(head % "" + A + "    retry: {max_retries: 5}\n") == ["AL504"]


def test_a_step_repeated_by_alias_names_anchor_and_alias() -> None:
    """One duplicate-id diagnostic, on the alias; related: the anchored step, and the anchor."""
    document = check(H + "  - &s {id: a, type: llm_call, prompt: hi}\n  - *s\n")
    (found,) = document.diagnostics
    assert (found.code, document.source.text[found.span.start : found.span.end]) == ("AL201", "*s")
    assert ["first" in found.related[0].message, "`&s`" in found.related[1].message] == [True, True]
