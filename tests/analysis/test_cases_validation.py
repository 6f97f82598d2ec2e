"""Cases of comparable engines that found a file "valid": each mistake has its code and place."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agentloom.analysis.analyze import analyze
from agentloom.analysis.context import Context
from agentloom.text import Source
from agentloom.tools.catalogue import BUILTIN_TOOLS
from tests.analysis.checking import A, H, check, codes, cured, only, places, told


@pytest.mark.parametrize(
    ("step", "place"),
    [
        ("{id: a, type: llm_call}", ("AL109", 3, "llm_call")),
        ("{id: a, type: router}", ("AL109", 3, "router")),
        ("{id: a, type: router, conditions: []}", ("AL109", 3, "conditions")),
        ("{id: a, type: router, conditions: [{expression: lambda x, target: b}], default: b}", ("AL302", 3, "lambda")),
        ("{id: a, type: subworkflow}", ("AL109", 3, "subworkflow")),
        ("{id: a, type: subworkflow, workflow_inline: {}}", ("AL101", 3, "{}")),
        ("{id: a, type: subworkflow, workflow_inline: {name: x, steps: []}}", ("AL106", 3, "[]")),
        ('{id: a, type: llm_call, prompt: "hi {name"}', ("AL304", 3, "{")),
        ('{id: a, type: llm_call, prompt: "hi {}"}', ("AL304", 3, "{}")),
        ("{id: a, type: tool}", ("AL101", 3, "id")),
        ("{id: a, type: agent, input: hi}", ("AL101", 3, "id")),
        ("{id: a, type: embed}", ("AL101", 3, "id")),
    ],
)
def test_case_found_valid_elsewhere(step: str, place: tuple[str, int, str]) -> None:
    """A missing prompt, an empty router, a forbidden expression, an empty subworkflow, an unclosed brace and their like."""
    text = H + f"  - {step}\n  - {{id: b, type: llm_call, prompt: hi, depends_on: [a]}}\n"
    assert place in places(text)
    assert not check(text).ok


@pytest.mark.parametrize(("complete", "told"), [(True, ["AL604"]), (False, [])])
def test_case_a_tool_that_nobody_knows(complete: bool, told: list[str]) -> None:
    """Told once for each name, unless a module of the settings that may register it can't be looked into; a slip is told in any case."""
    fetch = "  - {id: ID, type: tool, tool_name: fetch_page}\n"
    text = H + fetch.replace("ID", "a") + fetch.replace("ID", "b")
    context = Context(tools=BUILTIN_TOOLS, tools_complete=complete)
    document = analyze(Source("untitled:x", text), context, None, "workflow")
    assert [(d.code, d.severity.word) for d in document.diagnostics] == [(code, "warning") for code in told]
    slip = text.replace("fetch_page", "http_reqest")
    assert [d.code for d in analyze(Source("untitled:x", slip), context, None, "workflow").diagnostics] == ["AL604"] * 2


def test_case_five_faults_in_one_file() -> None:
    """All five, each on its own line and word; not only the first kind."""
    text = (
        "name: w\nconfig: {budgt_usd: 1}\nsteps:\n"
        "  - id: a\n    type: llm_cal\n    prompt: hi\n"
        "  - id: b\n    type: llm_call\n    prompt: hi {\n"
        "  - id: c\n    type: router\n    default: zz\n"
        "  - id: d\n    type: llm_call\n    prompt: hi\n    depends_on: [yy]\n"
    )
    assert places(text) == [
        ("AL102", 2, "budgt_usd"),
        ("AL103", 5, "llm_cal"),
        ("AL304", 9, "{"),
        ("AL207", 12, "zz"),
        ("AL202", 16, "yy"),
    ]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("name: w\nsteps: {a: {type: llm_call, prompt: hi}}\n", ("AL105", 2, "steps")),
        ("name: w\nsteps: hi\n", ("AL105", 2, "hi")),
        ("name: w\nsteps:\n", ("AL105", 2, "steps")),
        ("name: w\nsteps: []\n", ("AL106", 2, "[]")),
        ("name: w\n", ("AL101", 1, "name")),
        (H + A + "  - just text\n", ("AL105", 6, "just text")),
        (H + A + "  - null\n", ("AL105", 6, "null")),
        (H + A + "  - 5\n", ("AL105", 6, "5")),
        (H + A + "  - [a]\n", ("AL105", 6, "[a]")),
        (H + A + "  -\n", ("AL105", 6, "-")),
        ("state: [1]\n" + H + A, ("AL105", 1, "[1]")),
        ("state: hi\n" + H + A, ("AL105", 1, "hi")),
        ("config: hi\n" + H + A, ("AL105", 1, "hi")),
        ("agents: [x]\n" + H + A, ("AL105", 1, "[x]")),
    ],
)
def test_case_wrong_at_the_top(text: str, place: tuple[str, int, str]) -> None:
    """A mapping of steps, a text as steps, items that are no mappings, a list as state: one clear diagnostic each."""
    assert places(text) == [place]


def test_case_null_where_the_default_does() -> None:
    """`config: null` and the like mean what leaving them out means."""
    text = (
        "config: null\nstate: null\nagents:\nstate_schema: ~\n"
        + H
        + A
        + "    retry: null\n    depends_on: null\n    output: null\n"
    )
    assert codes(text) == []
    assert check(text).workflow.config.max_retries == 3


@pytest.mark.parametrize(
    ("text", "wrong", "right"),
    [
        (H + A + "    dependson: []\n", "dependson", "depends_on"),
        (H + A + "    outptu: x\n", "outptu", "output"),
        ("config: {budgt_usd: 1}\n" + H + A, "budgt_usd", "budget_usd"),
        (H + A + "    retry: {max_retires: 1}\n", "max_retires", "max_retries"),
        (H + A + "    Output: x\n", "Output", "output"),
        (H + A + "    needs: []\n", "needs", "depends_on"),
    ],
)
def test_case_misspelled_keys(text: str, wrong: str, right: str) -> None:
    """Unknown key, the right one suggested, and a fix that writes it."""
    found = only(text, "AL102")
    assert text[found.span.start : found.span.end] == wrong
    assert f"did you mean `{right}`?" in found.message
    assert codes(cured(text, "AL102")) == []


def test_case_did_you_mean_is_ranked_by_likeness() -> None:
    """The nearest name wins, not the first one."""
    steps = "".join(
        f"  - {{id: {name}, type: llm_call, prompt: hi}}\n" for name in ("fetch_all", "fetched", "fetch_mails", "fetch")
    )
    text = H + steps + "  - {id: z, type: llm_call, prompt: hi, depends_on: [fetc]}\n"
    assert "did you mean `fetch`?" in only(text, "AL202").message
    assert "did you mean `fetch_mails`?" in only(text.replace("[fetc]", "[fetch_mail]"), "AL202").message


def test_case_repeated_keys_are_never_silent() -> None:
    """Elsewhere the last one wins without a word."""
    assert codes(H + A + "    prompt: again\n") == ["AL002"]
    assert codes("name: x\n" + H + A) == ["AL002"]
    assert codes("config: {model: a, model: b}\n" + H + A) == ["AL002"]


def test_case_a_version_may_be_a_number() -> None:
    """`version: 1.0` is the text in the file."""
    assert codes("version: 1.0\n" + H + A) == []
    assert check("version: 1.0\n" + H + A).workflow.version == "1.0"


def test_case_three_thousand_chained_steps() -> None:
    """No recursion error, and the same words whatever the hash seed."""
    program = (
        "from agentloom.analysis.analyze import analyze\n"
        "from agentloom.analysis.context import Context\n"
        "from agentloom.text import Source\n"
        "steps = ''.join(f'  - {{id: s{i}, type: llm_call, prompt: hi, depends_on: [s{i - 1 if i else 2999}, x{i}]}}\\n'"
        " for i in range(3000))\n"
        "document = analyze(Source('untitled:x', 'name: w\\nsteps:\\n' + steps), Context(), None, 'workflow')\n"
        "print(len(document.diagnostics), sum(hash_free for hash_free in (len(d.message) for d in document.diagnostics)))\n"
        "print([d.message for d in document.diagnostics if d.code == 'AL204'])\n"
    )
    root = Path(__file__).resolve().parents[2]
    said = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            cwd=root,
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("0", "42")
    }
    (words,) = said
    assert words.startswith("3001 ")
    assert "s0 -> s2999" in words


def test_case_a_router_whose_target_waits_for_nothing() -> None:
    """It runs whatever was chosen: the file runs, and AL208 says so."""
    text = H + "  - {id: r, type: router, default: a}\n" + A
    assert codes(text) == ["AL208"]
    assert check(text).ok
    assert codes(cured(text, "AL208")) == []


def test_case_steps_as_a_state_key() -> None:
    """Refused before anything is paid for, as `output` and in `state`."""
    assert codes(H + A + "    output: steps\n") == ["AL407"]
    assert codes(H + A + "    output: steps.a\n") == ["AL407"]
    assert codes("state: {steps: {}}\n" + H + A) == ["AL407"]
    assert not check("state: {steps: {}}\n" + H + A).ok


def test_case_a_child_beside_its_parent(tmp_path: Path) -> None:
    """A path in a file is relative to that file, whatever the folder in which the check is run."""
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "child.yaml").write_text(H + A, encoding="utf-8")
    parent = tmp_path / "flows" / "parent.yaml"
    text = H + "  - {id: s, type: subworkflow, workflow_path: ./child.yaml}\n"
    assert analyze(Source(str(parent), text), Context()).diagnostics == ()
    elsewhere = analyze(Source(str(tmp_path / "parent.yaml"), text), Context())
    assert [d.code for d in elsewhere.diagnostics] == ["AL701"]


def test_case_an_untitled_file_has_no_folder() -> None:
    """What its paths mean is not known yet: an information, no error."""
    text = H + "  - {id: s, type: subworkflow, workflow_path: ./child.yaml}\n"
    assert [(d.code, d.severity.name) for d in check(text).diagnostics] == [("AL701", "INFORMATION")]
    assert "save this file first" in told(text)[0].message
