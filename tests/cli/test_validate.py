"""`agentloom validate`: what it checks, what it prints, and how it ends."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from agentloom.cli import check
from agentloom.text import Source
from tests.cli.conftest import Call

H = "name: w\nsteps:\n"
A = "  - id: a\n    type: llm_call\n    prompt: hi\n"
GOOD = H + A
BAD = H + A + "    depends_on: [b]\n"
WARNS = H + A + "    depends_on: [b, b]\n  - {id: b, type: llm_call, prompt: hi}\n"
HINTS = H + A + "    # agentloom: ignore[AL202]\n"
HOW = "fix: `--fix` cures 1 of them (2 with `--unsafe-fixes`); `--diff` shows how\n"
COMPOSE = "services:\n  web:\n    image: nginx\n"
CI = "steps:\n  - run: make test\n  - uses: actions/checkout@v4\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(folder: Path, **texts: str) -> None:
    """Write files; `__` in a name is a dot."""
    for name, text in texts.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8", newline="")


# --- exit codes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "options", "code"),
    [
        (GOOD, [], 0),
        (BAD, [], 1),
        (WARNS, [], 0),
        (WARNS, ["--strict"], 1),
        (WARNS, ["--strict", "--ignore", "AL205"], 0),
        (WARNS, ["--strict", "--ignore", "repeated-dependency"], 0),
        (WARNS, ["--strict", "--ignore", "AL2"], 0),
        (WARNS, ["--strict", "--select", "AL5,AL301"], 0),
        (WARNS, ["--strict", "--select", "AL205"], 1),
        (BAD, ["--ignore", "AL202"], 1),
        (HINTS, ["--strict"], 0),
        ("", [], 1),
        (COMPOSE, [], 1),
    ],
)
@pytest.mark.parametrize("form", ["text", "json"])
def test_exit_code(here: Path, call: Call, text: str, options: list[str], code: int, form: str) -> None:
    """0 for nothing that counts, 1 for findings; an error counts whatever is ignored; the same in both formats."""
    put(here, w__yaml=text)
    assert call("validate", "w.yaml", "--format", form, *options).code == code


@pytest.mark.parametrize(
    ("names", "code", "words"),
    [
        (["gone.yaml"], 2, "error: gone.yaml: no such file or folder"),
        (["good.yaml", "gone.yaml"], 2, "error: gone.yaml: no such file or folder"),
        (["utf16.yaml"], 0, ""),
        (["latin1.yaml"], 1, ""),
        (["bare16.yaml"], 1, ""),
        (["loop.yaml"], 2, "error: loop.yaml: too many levels of symbolic links"),
        (["empty"], 3, "no workflow or agent file in empty"),
        (["others"], 3, "no workflow or agent file in others"),
        (["*.nothing", "empty"], 3, "no workflow or agent file in *.nothing, empty"),
        (["good.yaml", "others"], 0, ""),
        (["bad.yaml", "empty"], 1, ""),
        (["good.yaml", "--stdin-filename", "x.yaml"], 2, "`--stdin-filename` goes with `-`"),
        (["good.yaml", "--strict", "--severity", "error"], 2, "`--strict` counts warnings"),
        (["good.yaml", "--select", "AL999"], 2, "`AL999` is no diagnostic code; did you mean"),
        (["good.yaml", "--ignore", "unknown-dependancy"], 2, "did you mean `unknown-dependency`?"),
        (["good.yaml", "--ignore", "zzzzzzz"], 2, "`agentloom explain --list` lists them"),
        (["good.yaml", "--severity", "fatal"], 2, "'error', 'warning', 'information', 'hint'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_unusable_and_nothing(here: Path, call: Call, names: list[str], code: int, words: str) -> None:
    """2 for what can't be used, 3 where there was nothing to check; the worst wins, and the others are checked all the same."""
    put(here, good__yaml=GOOD, bad__yaml=BAD)
    (here / "utf16.yaml").write_bytes(GOOD.encode("utf-16"))
    (here / "latin1.yaml").write_bytes(b"name: w\n# \xe9\n")
    (here / "bare16.yaml").write_bytes(GOOD.encode("utf-16-le"))
    (here / "loop.yaml").symlink_to(here / "loop.yaml")
    (here / "empty").mkdir()
    (here / "others").mkdir()
    put(here / "others", compose__yaml=COMPOSE, ci__yml=CI)
    done = call("validate", *names)
    assert done.code == code, done
    assert words in done.err
    assert (done.err == "") == (words == "")
    if "bad.yaml" in names:
        assert "bad.yaml:6:18: error[AL202]" in done.out


def test_one_unreadable_file_does_not_stop_the_others(here: Path, call: Call) -> None:
    """Three good, one bad, one gone: all are told, one summary, worst exit code."""
    put(here, a__yaml=GOOD, b__yaml=BAD, c__yaml=GOOD)
    done = call("validate", "a.yaml", "gone.yaml", "b.yaml", "c.yaml")
    assert done.code == 2
    assert done.out.endswith("3 files checked: 1 error\n")


# --- cases: "Command line and hooks" and "Freshness" -------------------------------------------------------------------------


def test_case_a_hook_checks_the_staged_files_only(here: Path, call: Call) -> None:
    """A hook linted 5,849 files instead of the staged few: with three names given, only those are read."""
    for number in range(50):
        put(here, **{f"flow{number}__loom__yaml": BAD})
    done = call("validate", "flow1.loom.yaml", "flow2.loom.yaml", "flow3.loom.yaml", "--format", "json")
    report = json.loads(done.out)
    assert report["summary"]["files"] == 3
    assert {d["path"] for d in report["diagnostics"]} == {"flow1.loom.yaml", "flow2.loom.yaml", "flow3.loom.yaml"}


def test_case_many_names_one_summary_worst_exit_code(here: Path, call: Call) -> None:
    """`validate a.yaml b.yaml "c d.yaml" -- -x.yaml`: names with spaces and dashes, all checked."""
    put(here, a__yaml=GOOD, b__yaml=WARNS)
    (here / "c d.yaml").write_text(GOOD, encoding="utf-8")
    (here / "-x.yaml").write_text(BAD, encoding="utf-8")
    done = call("validate", "a.yaml", "b.yaml", "c d.yaml", "--", "-x.yaml")
    assert done.code == 1
    assert "-x.yaml:6:18: error[AL202]" in done.out
    assert done.out.count("files checked") == 1
    assert done.out.endswith("b.yaml: 1 warning\n-x.yaml: 1 error\n4 files checked: 1 error, 1 warning\n" + HOW)


def test_case_every_finding_has_a_line_and_a_column(here: Path, call: Call) -> None:
    """`path:line:col` in every format, for every finding."""
    put(here, w__yaml="name: 1\nconfig: {max_retries: -1}\nsteps:\n  - id: a\n    typ: llm_call\n  - null\n")
    text = call("validate", "w.yaml").out
    data = json.loads(call("validate", "w.yaml", "--format", "json").out)["diagnostics"]
    assert len(data) >= 4
    for found in data:
        assert (
            f"w.yaml:{found['line']}:{found['column']}: {found['severity']}[{found['code']}] {found['name']}:" in text
        )


def test_case_nearest_settings_win(here: Path, call: Call) -> None:
    """Two folders with different settings, checked in one call from elsewhere: each file has its own."""
    for name, settings in (("one", 'ignore = ["AL205"]\n'), ("two", 'severity = {AL205 = "error"}\n')):
        (here / name).mkdir()
        put(here / name, agentloom__toml=settings, w__loom__yaml=WARNS)
    done = call("validate", ".", "--format", "json")
    assert [(d["path"], d["severity"]) for d in json.loads(done.out)["diagnostics"]] == [
        (os.path.join("two", "w.loom.yaml"), "error")
    ]
    assert done.code == 1


def test_case_five_faults_five_places(here: Path, call: Call) -> None:
    """Not only the first class of faults is shown."""
    put(
        here,
        w__yaml=H + "  - id: a\n    type: llm_cal\n  - id: b\n    type: router\n    conditions: []\n    default: zz\n"
        "  - id: c\n    type: llm_call\n    promt: hi\n    depends_on: [nope]\n",
    )
    found = json.loads(call("validate", "w.yaml", "--format", "json").out)["diagnostics"]
    assert {"AL103", "AL207", "AL102", "AL202"} <= {d["code"] for d in found}
    assert len({(d["line"], d["column"]) for d in found}) >= 4


def test_broken_settings_are_said_once_and_exit_2(here: Path, call: Call) -> None:
    """Settings with a mistake would silently change what is checked."""
    put(here, agentloom__toml='ignroe = ["AL205"]\n', a__yaml=GOOD, b__yaml=GOOD)
    done = call("validate", "a.yaml", "b.yaml")
    assert done.code == 2
    assert done.err.count("unknown setting `ignroe`; did you mean `ignore`?") == 1
    assert done.out == "2 files checked: no findings\n"


def test_a_crash_of_ours_on_one_file_costs_that_file(here: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said which file, nobody sees a traceback, and the others are checked."""
    put(here, a__yaml=GOOD, b__yaml=BAD)
    real = check.analyze

    def crashing(source: Source, *rest: Any, **more: Any) -> Any:
        if source.uri.endswith("a.yaml"):
            raise RecursionError("too deep")
        return real(source, *rest, **more)

    monkeypatch.setattr(check, "analyze", crashing)
    done = call("validate", "a.yaml", "b.yaml")
    assert done.code == 2
    assert done.err == "error: a.yaml: internal error, please report it: RecursionError: too deep\n"
    assert done.out.endswith("1 file checked: 1 error\n")


# --- what is printed --------------------------------------------------------------------------------------------------------


def test_a_valid_file_alone_is_described(here: Path, call: Call) -> None:
    """Name, steps, layers from 1, provider, model, budget, plan."""
    put(
        here,
        w__yaml="name: triage\nconfig: {provider: mock, budget_usd: 0.5}\nsteps:\n"
        "  - {id: fetch, type: llm_call, prompt: hi}\n"
        "  - {id: b, type: llm_call, prompt: hi, depends_on: [fetch]}\n"
        "  - {id: a, type: llm_call, prompt: hi, depends_on: [fetch]}\n",
    )
    assert call("validate", "w.yaml").out == (
        "1 file checked: no findings\n"
        "  name      triage\n"
        "  steps     3\n"
        "  layers    2\n"
        "  provider  mock\n"
        "  model     gpt-4o-mini\n"
        "  budget    $0.50\n"
        "  plan\n"
        "    layer 1  fetch\n"
        "    layer 2  a, b\n"
    )


def test_an_agent_file_alone_is_described(here: Path, call: Call) -> None:
    """In its own terms."""
    put(here, helper__agent__yaml="name: helper\nsystem_prompt: be kind\ntools: [file_read]\n")
    assert call("validate", "helper.agent.yaml").out == (
        "1 file checked: no findings\n  name   helper\n  model  the workflow's\n  tools  file_read\n"
    )


@pytest.mark.parametrize("names", [["a.yaml", "b.yaml"], ["bad.yaml"]])
def test_no_description_for_several_files_or_a_broken_one(here: Path, call: Call, names: list[str]) -> None:
    """Only a valid file that is given alone."""
    put(here, a__yaml=GOOD, b__yaml=GOOD, bad__yaml=BAD)
    assert "plan" not in call("validate", *names).out


@pytest.mark.parametrize(
    ("severity", "codes"),
    [
        ("error", {"AL202"}),
        ("warning", {"AL202", "AL205"}),
        (None, {"AL202", "AL205"}),
        ("information", {"AL202", "AL205"}),
        ("hint", {"AL202", "AL205", "AL902"}),
    ],
)
def test_severity_is_the_mildest_shown(here: Path, call: Call, severity: str | None, codes: set[str]) -> None:
    """Hints never show unless asked; summary and list agree."""
    put(
        here,
        w__yaml=H
        + A
        + "    depends_on: [b, b, nope]  # agentloom: ignore[AL4]\n  - {id: b, type: llm_call, prompt: x}\n",
    )
    options = [] if severity is None else ["--severity", severity]
    report = json.loads(call("validate", "w.yaml", "--format", "json", *options).out)
    assert {d["code"] for d in report["diagnostics"]} == codes
    assert sum(n for key, n in report["summary"].items() if key != "files") == len(report["diagnostics"])


def test_standard_input(here: Path, call: Call) -> None:
    """Its name, folder and settings are those of `--stdin-filename`; files it names are looked for there."""
    (here / "flows").mkdir()
    put(here / "flows", child__loom__yaml=GOOD, agentloom__toml='ignore = ["AL205"]\n')
    text = WARNS + "  - {id: s, type: subworkflow, workflow_path: child.loom.yaml}\n"
    done = call("validate", "-", "--stdin-filename", "flows/new.loom.yaml", "--strict", stdin=text)
    assert done.code == 0, done
    done = call("validate", "-", "--strict", stdin=WARNS)
    assert done.code == 1
    assert "<stdin>:6:21: warning[AL205] repeated-dependency" in done.out


def test_standard_input_beside_files(here: Path, call: Call) -> None:
    """`-` is one of the names."""
    put(here, a__yaml=GOOD)
    assert call("validate", "a.yaml", "-", stdin=BAD).out.endswith("2 files checked: 1 error\n")


def test_folders_hold_only_what_is_ours(here: Path, call: Call) -> None:
    """Not one diagnostic in a compose file or a CI file; agent files and workflows by looks are checked."""
    put(here, compose__yaml=COMPOSE, ci__yml=CI, w__yaml=BAD, x__loom__yaml="", helper__agent__yaml="name: h\n")
    report = json.loads(call("validate", ".", "--format", "json").out)
    assert report["summary"]["files"] == 3
    assert {d["path"] for d in report["diagnostics"]} == {"w.yaml", "x.loom.yaml", "helper.agent.yaml"}


def test_a_named_file_is_checked_whatever_it_looks_like(here: Path, call: Call) -> None:
    """Who names a file means it."""
    put(here, compose__yaml=COMPOSE)
    done = call("validate", "compose.yaml")
    assert "compose.yaml:1:1: error[AL10" in done.out


def test_colours_only_where_wanted(here: Path, call: Call) -> None:
    """Off in a pipe, on with `--color always` or FORCE_COLOR; `--color` has the last word, then NO_COLOR."""
    put(here, w__yaml=BAD)

    def coloured(*options: str, **env: str) -> bool:
        return "\x1b[" in call("validate", "w.yaml", *options, **env).out

    assert not coloured()
    assert coloured("--color", "always")
    assert coloured("--color", "always", NO_COLOR="1")
    assert coloured(FORCE_COLOR="1")
    assert not coloured(FORCE_COLOR="0")
    assert not coloured(FORCE_COLOR="1", NO_COLOR="1")
    assert not coloured("--color", "never", FORCE_COLOR="1")


# --- many files -------------------------------------------------------------------------------------------------------------


def test_many_files_in_processes_give_the_same_as_one_by_one(here: Path, process: Call, call: Call) -> None:
    """Enough text to be spread over processes: same output, same order, one summary."""
    filler = "".join(f"  - {{id: s{n}, type: llm_call, prompt: 'step {n} of many'}}\n" for n in range(150))
    for number in range(40):
        put(here, **{f"f{number:02}__loom__yaml": H + filler + (BAD.removeprefix(H) if number % 3 == 0 else "")})
    done = process("validate", ".", cwd=here)
    assert done.code == 1
    assert done.out.endswith("40 files checked: 14 errors\n")
    order = [line.split(":")[0] for line in done.out.splitlines() if "error[" in line]
    assert order == [f"f{number:02}.loom.yaml" for number in range(0, 40, 3)]
    one_by_one = "".join(call("validate", name).out.rsplit("1 file checked", 1)[0] for name in order)
    assert done.out.startswith(one_by_one)


def test_long_and_strange_names(here: Path, call: Call) -> None:
    """A name that can't be printed as it is stays on its line and in valid JSON."""
    name = "a\n\x1b[31m\udcff.yaml"
    try:
        (here / name).write_text(BAD, encoding="utf-8")
    except OSError:
        name = "a\n\x1b[31m.yaml"
        (here / name).write_text(BAD, encoding="utf-8")
    text = call("validate", name).out
    assert text.startswith("a␊␛[31m")
    assert json.loads(call("validate", name, "--format", "json").out)["diagnostics"][0]["path"] == name


def test_a_file_is_read_once(here: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that is named, and that several files run, is read once in one call; each parent sees what it says."""
    from agentloom.analysis import context
    from agentloom.cli import reading

    parent = H + "  - {id: s, type: subworkflow, workflow_path: ./child.yaml}\n"
    put(here, child__yaml=BAD, p1__yaml=parent, p2__yaml=parent)
    reads: list[str] = []

    def counted(path: Any, **options: Any) -> bytes:
        reads.append(Path(path).name)
        return Path(path).read_bytes()

    monkeypatch.setattr(context, "read_bytes", counted)
    monkeypatch.setattr(reading, "read_bytes", counted)
    done = call("validate", "child.yaml", "p1.yaml", "p2.yaml")
    assert (done.code, done.out.count("AL702")) == (1, 2)
    assert sorted(reads) == ["child.yaml", "p1.yaml", "p2.yaml"]
