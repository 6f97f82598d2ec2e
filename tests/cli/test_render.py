"""Diagnostics as text: the golden pages show what a user sees; the rest are the edges."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from agentloom.cli.cells import draw
from agentloom.cli.console import Look
from agentloom.cli.positions import place
from agentloom.cli.render import Place, render
from agentloom.diagnostics import Diagnostic, Edit, Fix, Related, Severity
from agentloom.text import LineTable, Span
from tests.cli.conftest import Call

GOLDEN = Path(__file__).parent / "golden"
CHILD = "name: child\nsteps:\n  - id: a\n    type: llm_cal\n"


def span(text: str, word: str, nth: int = 0) -> Span:
    """Return where a word stands in a text."""
    at = [m.start() for m in re.finditer(re.escape(word), text)][nth]
    return Span(at, at + len(word))


def elsewhere(path: str) -> Place:
    """Serve the one other file of these tests."""
    return path, LineTable(CHILD) if path == "child.loom.yaml" else None


def shown(text: str, *diagnostics: Diagnostic, look: Look | None = None) -> str:
    """Return the output for diagnostics in `flow.yaml`."""
    lines = LineTable(text)
    out = [line for d in diagnostics for line in render(d, "flow.yaml", lines, look or Look(width=80), elsewhere)]
    return "\n".join(out) + "\n"


def simple(text: str, word: str, severity: Severity = Severity.ERROR) -> Diagnostic:
    """Return a diagnostic on a word."""
    return Diagnostic("AL202", "unknown-dependency", severity, span(text, word), f"step `{word}` is not defined")


PAGE = """\
name: w
steps:
  - id: classify
    type: llm_call
    prompt: "Classify {state.ticket}"
  - id: answer
    type: llm_call
    depends_on: [clasify]
    prompt: "日本語の😀プロンプト {state.nope} und weiter"
  - id: child\t# a tab
    type: subworkflow
    workflow_path: child.loom.yaml
  - id: last
    type: llm_call
    prompt: "PROMPT {state.late} END"
""".replace("PROMPT", "Once upon a time " * 6).replace("END", "and they lived happily ever after " * 4)

DIAGNOSTICS = (
    Diagnostic(
        "AL202",
        "unknown-dependency",
        Severity.ERROR,
        span(PAGE, "clasify"),
        "step `clasify` is not defined; did you mean `classify`?",
        (Related(span(PAGE, "classify"), "`classify` is defined here"),),
        (Fix("change `clasify` to `classify`", (Edit(span(PAGE, "clasify"), "classify"),)),),
    ),
    Diagnostic(
        "AL401",
        "unknown-state-key",
        Severity.WARNING,
        span(PAGE, "{state.nope}"),
        "no step and no `state:` entry writes `nope`; it renders as an empty text",
    ),
    Diagnostic(
        "AL702",
        "broken-subworkflow",
        Severity.ERROR,
        span(PAGE, "child.loom.yaml"),
        "`child.loom.yaml` has 1 error",
        (
            Related(span(CHILD, "llm_cal"), "unknown step type `llm_cal`", "child.loom.yaml"),
            Related(Span(0, 4), "a file that can't be read", "gone.yaml"),
        ),
    ),
    Diagnostic("AL403", "conditional-read", Severity.INFORMATION, span(PAGE, "{state.late}"), "may not be there"),
    Diagnostic("AL405", "unread-output", Severity.HINT, span(PAGE, "last"), "nothing reads it"),
)


def test_page(golden: Callable[[Path, str], None]) -> None:
    """What a user sees, without colours."""
    golden(GOLDEN / "render.txt", shown(PAGE, *DIAGNOSTICS))


def test_page_in_colour(golden: Callable[[Path, str], None]) -> None:
    """The same with colours: taking them away gives the same text."""
    coloured = shown(PAGE, *DIAGNOSTICS, look=Look(color=True, width=80))
    golden(GOLDEN / "render.ansi", coloured)
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == shown(PAGE, *DIAGNOSTICS)


def test_page_on_an_ascii_terminal(golden: Callable[[Path, str], None]) -> None:
    """What can't be encoded is spelled out, and the output has no other characters."""
    text = shown(PAGE, *DIAGNOSTICS, look=Look(width=80, encoding="ascii"))
    assert text.isascii()
    golden(GOLDEN / "render.ascii.txt", text)


@pytest.mark.parametrize(
    "before",
    ["", "plain ", "\t", "a\t\t", "漢字かな", "😀👨‍👩‍👧❤️", "e\u0301\u0323", "\x1b[31m\x07", "\u202e\u2066", "x" * 300],
    ids=["start", "plain", "tab", "tabs", "wide", "emoji", "combining", "escapes", "direction", "long"],
)
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_marks_stand_under_the_range(before: str, encoding: str) -> None:
    """The marks begin at the cell where the word begins and are as wide as the word, whatever stands before it."""
    text = f"a: 1\nb: {before}WORD and more\nc: 2\n"
    _, quoted, marks = shown(text, simple(text, "WORD"), look=Look(width=60, encoding=encoding)).splitlines()
    drawn = draw(quoted, encoding)
    cell = drawn.starts[quoted.index("WORD")]
    assert marks == "    |" + " " * (cell - 5) + "^^^^"


@pytest.mark.parametrize(
    ("text", "at", "head", "quoted"),
    [
        ("", Span(0, 0), "1:1", "  1 |"),
        ("# hi\n", Span(0, 0), "1:1", "  1 | # hi"),
        ("a: 1\n", Span(5, 5), "2:1", "  2 |"),
        ("a: 1", Span(4, 4), "1:5", "  1 | a: 1"),
        ("a: 1\r\nb: 2\r\n", Span(6, 7), "2:1", "  2 | b: 2"),
        ("\ufeffa: 1\n", Span(1, 2), "1:1", "  1 | a: 1"),
        ("\ufeff", Span(0, 1), "1:1", "  1 |"),
        ("a: \u2028b\n", Span(4, 5), "1:5", "  1 | a: <U+2028>b"),
        ("a: 'x\n  y'\n", Span(3, 10), "1:4", "  1 | a: 'x"),
        ("a: 1\n", Span(90, 95), "2:1", "  2 |"),
    ],
)
def test_edges(text: str, at: Span, head: str, quoted: str) -> None:
    """Empty texts, ends of files, line ends and byte order marks have a place, a line and at least one mark."""
    lines = shown(text, Diagnostic("AL001", "syntax-error", Severity.ERROR, at, "no")).splitlines()
    assert lines[0] == f"flow.yaml:{head}: error[AL001] syntax-error: no"
    assert lines[1] == quoted
    assert set(lines[2][5:]) == {" ", "^"}


def test_columns_count_code_points() -> None:
    """An emoji is one column, whatever it takes in UTF-16 or in cells."""
    text = "😀e\u0301x"
    assert place(LineTable(text), text.index("x")) == (1, 4)


def test_a_line_of_a_megabyte_costs_what_is_shown() -> None:
    """A thousand findings on one huge line are as quick as on short ones: only the surroundings of a range are drawn."""
    text = "漢" * 1_000_000 + "\n"
    lines = LineTable(text)
    for start in range(0, 1_000_000, 5_000):
        found = Diagnostic("AL001", "syntax-error", Severity.ERROR, Span(start, start + 1), "no")
        quoted = list(render(found, "f", lines, Look(width=80), elsewhere))[1]
        assert draw(quoted).width <= 80


def test_a_message_stays_on_its_line() -> None:
    """Neither a message nor a path nor a title can break the line or steer the terminal."""
    found = Diagnostic("AL001", "x", Severity.ERROR, Span(0, 1), "a\nb\x1b[2J", (), (Fix("c\r\nd", ()),))
    lines = list(render(found, "e\nf", LineTable("x"), Look(), elsewhere))
    assert lines[0] == "e␊f:1:1: error[AL001] x: a␊b␛[2J"
    assert lines[-1] == "  fix: c␍␊d"


def test_a_secret_is_not_shown_again(call: Call, tmp_path: Path) -> None:
    """What AL801 points at must not get into the logs of a build: the line is shown without it."""
    key = "sk-Zq8vT3mK1xW7bR5nY2pL"
    text = f"name: w\nsteps:\n  - {{id: a, type: tool, tool_name: http_request, tool_args: {{url: x, body: {key}}}}}\n"
    (tmp_path / "w.yaml").write_text(text, encoding="utf-8")
    done = call("validate", str(tmp_path / "w.yaml"))
    assert "AL801" in done.out
    assert key not in done.out
    assert "*" * len(key) in done.out
