"""`agentloom run`: options, refusals, what is printed, and exit codes. All offline, from the mock provider."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.cli.conftest import Call, Done
from tests.cli.test_json import schema

FLOW = """\
name: triage
config: {provider: mock, model: m}
state: {ticket: My invoice is wrong, score: 10}
steps:
  - id: classify
    type: llm_call
    prompt: "Sort: {state.ticket}"
    output: category
  - id: route
    type: router
    depends_on: [classify]
    conditions:
      - {expression: state.score > 80, target: urgent}
    default: normal
  - {id: urgent, type: llm_call, depends_on: [route], prompt: "Hurry: {state.ticket}", model: own, output: reply}
  - {id: normal, type: llm_call, depends_on: [route], prompt: "Answer: {state.ticket}", output: reply}
"""
RECORDING = {
    "_version": 2,
    "classify": {"content": "billing", "model": "gpt-4o", "cost_usd": 0.0125, "usage": {"total_tokens": 12}},
    "normal": {"content": "Dear\ncustomer", "cost_usd": 0.00002, "usage": {"total_tokens": 1}},
    "urgent": {"content": "At once"},
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a workflow and its recording."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flow.yaml").write_text(FLOW, encoding="utf-8")
    (tmp_path / "rec.json").write_text(json.dumps(RECORDING), encoding="utf-8")
    return tmp_path


def result(done: Done) -> dict[str, Any]:
    """Return the result that `run --json` printed."""
    assert done.code in (0, 1), done
    return dict(json.loads(done.out))


def steady(text: str) -> str:
    """Return output with durations and run ids made equal."""
    return re.sub(r"\b[0-9a-f]{12}\b", "RUN", re.sub(r"\b\d+(\.\d+)?(ms|s)\b", "0ms", text))


def test_plain_output(here: Path, call: Call) -> None:
    """A line per event, then the summary: status, duration, tokens, cost, a line per step, the keys of the state."""
    done = call("run", "flow.yaml", "--mock-responses", "rec.json")
    assert done.code == 0
    assert done.err == ""
    assert steady(done.out) == (
        "Running workflow: triage\n"
        "layer 1 of 3\n"
        "  classify: started\n"
        "  classify: done in 0ms\n"
        "layer 2 of 3\n"
        "  route: done in 0ms\n"
        "layer 3 of 3\n"
        "  urgent: skipped\n"
        "  normal: started\n"
        "  normal: done in 0ms\n"
        "\n"
        "[OK] triage\n"
        "  status    success\n"
        "  duration  0ms\n"
        "  tokens    13\n"
        "  cost      $0.0125\n"
        "  steps\n"
        "    [OK]     classify  0ms  12 tokens  $0.0125\n"
        "    [OK]     route     0ms\n"
        "    [SKIP]   urgent\n"
        "    [OK]     normal    0ms  1 token  $0.000020\n"
        "  state     ticket, score, category, reply\n"
    )


def test_json_output(here: Path, call: Call) -> None:
    """Standard output is the result and nothing else; what is told of the run goes to standard error."""
    done = call("run", "flow.yaml", "--mock-responses", "rec.json", "--json")
    found = result(done)
    assert list(found) == [
        "workflow_name",
        "status",
        "step_results",
        "final_state",
        "total_duration_ms",
        "total_tokens",
        "total_cost_usd",
        "error",
        "run_id",
        "annotations",
    ]
    assert found["final_state"]["reply"] == "Dear\ncustomer"
    assert re.fullmatch("[0-9a-f]{12}", found["run_id"])
    assert done.err.startswith("Running workflow: triage\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["flow.yaml", "--mock-responses", "rec.json", "-p", "openai"], "contradict each other"),
        (["flow.yaml", "--json", "--events", "-"], "both want standard output"),
        (["flow.yaml", "--stdin-filename", "x.yaml"], "goes with `-`"),
        (["flow.yaml", "-s", "ticket"], "`--state ticket` has no `=`; write key=value"),
        (["flow.yaml", "-s", "=x"], "has no key"),
        (["flow.yaml", "-s", ".=x"], "names with dots between them"),
        (["flow.yaml", "-s", "a..b=x"], "names with dots between them"),
        (["flow.yaml", "-s", "items[0]=x"], "names with dots between them"),
        (["flow.yaml", "-s", "ticket.x=1"], "goes through `ticket`, which is no mapping"),
        (["flow.yaml", "-s", "steps=1"], "state key `steps` is reserved"),
        (["flow.yaml", "--state-file", "gone.yaml"], "'gone.yaml' does not exist"),
        (["flow.yaml", "--state-file", "list.yaml"], "must hold a mapping"),
        (["flow.yaml", "--mock-responses", "gone.json"], "'gone.json' does not exist"),
        (["flow.yaml", "--events", "no/such/folder/x"], "can't be written: No such file or directory"),
        (["gone.yaml"], "'gone.yaml' does not exist"),
        (["."], "is a directory"),
        ([], "Missing argument 'FILE'"),
    ],
    ids=" ".join,
)
def test_wrong_usage_exits_2_before_anything_runs(here: Path, call: Call, arguments: list[str], words: str) -> None:
    """Nothing on standard output, no run."""
    (here / "list.yaml").write_text("- a\n", encoding="utf-8")
    done = call("run", *arguments)
    assert done.code == 2, done
    assert words in done.err
    assert done.out == ""


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            FLOW.replace("[route]", "[ruote]"),
            "flow.yaml:15:47: error[AL202] unknown-dependency: step `ruote` is not defined",
        ),
        (FLOW.replace("[route]", "[ruote]"), "flow.yaml: 2 errors; nothing was run"),
        ("", "flow.yaml:1:1: error[AL008]"),
        ("name: [\n", "error[AL001]"),
        (
            FLOW.encode("utf-16-le"),
            "flow.yaml:1:1: error[AL001] syntax-error: this file is UTF-16 without a byte order mark",
        ),
        (b"name: \xff\n", "flow.yaml:1:7: error[AL001] syntax-error: byte 0xFF"),
        (FLOW.replace("provider: mock", "provider: opnai"), "did you mean `openai`?"),
        (FLOW.replace("model: m", "model: m, responses_file: gone.json"), "gone.json"),
        (FLOW + "  - {id: e, type: embed, inputs: ticket[0], output: v}\n", "flow.yaml:17:34: error[AL107]"),
    ],
    ids=["error", "sum", "empty", "syntax", "utf-16", "bytes", "provider", "recording", "embed"],
)
def test_what_can_not_be_loaded_exits_1(here: Path, call: Call, content: str | bytes, words: str) -> None:
    """The findings are those of `validate`, on standard error; nothing runs, nothing is on standard output."""
    (here / "flow.yaml").write_bytes(content if isinstance(content, bytes) else content.encode())
    done = call("run", "flow.yaml", "--json")
    assert done.code == 1, done
    assert words in done.err
    assert done.out == ""
    assert "Running" not in done.err


def test_an_unknown_provider_is_told_with_the_one_that_is_meant(here: Path, call: Call) -> None:
    """Also from the command line."""
    done = call("run", "flow.yaml", "-p", "mockk")
    assert (done.code, done.err) == (1, "error: unknown provider `mockk`; did you mean `mock`?\n")


@pytest.mark.parametrize("option", ["-p", "--provider", "-m", "--model"])
@pytest.mark.parametrize("value", ["", "  "])
def test_an_empty_name_is_wrong_usage(here: Path, call: Call, option: str, value: str) -> None:
    """As a script gives one whose variable isn't set."""
    done = call("run", "flow.yaml", option, value)
    word = "--provider" if "p" in option[:3] else "--model"
    assert (done.code, done.err) == (2, f"error: `{word}` is empty; give a name, or leave it out\n")


@pytest.mark.parametrize("content", ["{", '{"_version": 1, "a": 3}', "[]", '{"classify": {}}'])
def test_a_malformed_recording_exits_1(here: Path, call: Call, content: str) -> None:
    """And the message names the file."""
    (here / "rec.json").write_text(content, encoding="utf-8")
    done = call("run", "flow.yaml", "--mock-responses", "rec.json")
    assert done.code == 1
    assert "rec.json" in done.err


def test_warnings_are_shown_and_the_run_goes_on(here: Path, call: Call) -> None:
    """Only errors block a run."""
    (here / "flow.yaml").write_text(FLOW.replace("[classify]", "[classify, classify]"), encoding="utf-8")
    done = call("run", "flow.yaml", "--mock-responses", "rec.json")
    assert done.code == 0
    assert "flow.yaml:11:28: warning[AL205] repeated-dependency" in done.err


def test_case_state_that_looks_like_a_number_is_one(here: Path, call: Call) -> None:
    """`--state score=95` is a number, so `state.score > 80` can be asked [ST-3]."""
    found = result(
        call("run", "flow.yaml", "--mock-responses", "rec.json", "--json", "-s", "score=95", "--state", "x=a=b")
    )
    assert found["step_results"]["route"]["output"] == "urgent"
    assert found["final_state"]["score"] == 95
    assert found["final_state"]["x"] == "a=b"


def test_state_files(here: Path, call: Call) -> None:
    """The file's own state is the ground, files come over it, pairs over files."""
    (here / "s.yaml").write_text("score: 95\nuser:\n  name: Ann\n", encoding="utf-8")
    state = result(call("run", "flow.yaml", "--json", "--state-file", "s.yaml", "-s", "user.id=7"))["final_state"]
    assert (state["ticket"], state["score"], state["user"]) == ("My invoice is wrong", 95, {"name": "Ann", "id": 7})


def test_overrides(here: Path, call: Call) -> None:
    """`-p` and `-m` take the place of the file's config; a model that a step names itself stays."""
    (here / "flow.yaml").write_text(FLOW.replace("provider: mock", "provider: openai"), encoding="utf-8")
    steps = result(call("run", "flow.yaml", "--json", "-p", "mock", "-m", "other", "-s", "score=95"))["step_results"]
    assert (steps["classify"]["provider"], steps["classify"]["model"]) == ("mock", "other")
    assert steps["urgent"]["model"] == "own"


def test_overrides_reach_children_that_have_none_of_their_own(here: Path, call: Call) -> None:
    """A child file without a model takes the parent's, the command line's included."""
    (here / "child.loom.yaml").write_text(
        "name: c\nsteps:\n  - {id: x, type: llm_call, prompt: hi}\n", encoding="utf-8"
    )
    text = "name: p\nconfig: {model: m}\nsteps:\n  - {id: s, type: subworkflow, workflow_path: child.loom.yaml}\n"
    (here / "flow.yaml").write_text(text, encoding="utf-8")
    done = call("run", "flow.yaml", "-p", "mock", "-m", "mine", "--events", "-")
    finished = [e for e in map(json.loads, done.out.splitlines()) if e["event"] == "step_finished"]
    assert [(e["step"], e["model"]) for e in finished] == [("s.x", "mine"), ("s", None)]


def test_a_run_that_fails_exits_1(here: Path, call: Call) -> None:
    """The failed step, its error, the skipped ones and the run's own mark."""
    (here / "flow.yaml").write_text(
        FLOW.replace("state.score > 80", "state.ticket > 80")
        + "  - {id: after, type: llm_call, depends_on: [normal], prompt: x}\n",
        encoding="utf-8",
    )
    done = call("run", "flow.yaml", "--mock-responses", "rec.json")
    assert done.code == 1
    assert "[FAIL] triage\n  status    failed\n" in done.out
    assert re.search(r"  error     step `route` failed: .+", done.out)
    assert re.search(r"    \[FAIL\]   route     \d+ms  .+", done.out)
    assert "    [SKIP]   after     skipped due to upstream failure: route\n" in done.out
    assert result(call("run", "flow.yaml", "--mock-responses", "rec.json", "--json"))["status"] == "failed"


def test_a_miss_of_the_recording_warns(here: Path, call: Call) -> None:
    """The placeholder goes in, and standard error says so."""
    (here / "rec.json").write_text(json.dumps({"_version": 2, "classify": {"content": "x"}}), encoding="utf-8")
    done = call("run", "flow.yaml", "--mock-responses", "rec.json", "--json")
    assert result(done)["final_state"]["reply"] == "Mock response"
    assert "normal" in next(line for line in done.err.splitlines() if line.startswith("warning: "))


def test_standard_input(here: Path, call: Call) -> None:
    """`run -` takes the text from standard input, and folder and name from `--stdin-filename`: this is how editors run a buffer."""
    (here / "sub").mkdir()
    (here / "sub" / "rec.json").write_text(json.dumps(RECORDING), encoding="utf-8")
    text = FLOW.replace("model: m", "model: m, responses_file: rec.json")
    done = call("run", "-", "--stdin-filename", "sub/flow.loom.yaml", "--json", stdin=text)
    assert result(done)["final_state"]["category"] == "billing"
    done = call("run", "-", "--stdin-filename", "sub/flow.loom.yaml", stdin=text.replace("[route]", "[ruote]"))
    assert "sub/flow.loom.yaml:15:47: error[AL202]" in done.err
    assert call("run", "-", "--json", stdin=FLOW).code == 0


@pytest.mark.parametrize("target", ["-", "events.jsonl"])
def test_events(here: Path, call: Call, target: str) -> None:
    """One JSON object a line, held to the documented schema, in order; everything for people is elsewhere."""
    done = call("run", "flow.yaml", "--mock-responses", "rec.json", "--events", target, "--stream")
    assert done.code == 0
    text = done.out if target == "-" else (here / target).read_text(encoding="utf-8")
    events = [json.loads(line) for line in text.splitlines()]
    for event in events:
        jsonschema.validate(event, schema("event"), jsonschema.Draft7Validator)
    assert len({event["run_id"] for event in events}) == 1
    assert [e["event"] for e in events if e["event"] != "step_delta"] == [
        "run_started",
        "step_started",
        "step_finished",
        "step_started",
        "step_finished",
        "step_skipped",
        "step_started",
        "step_finished",
        "run_finished",
    ]
    replies: dict[str, str] = {}
    for event in events:
        if event["event"] == "step_delta":
            replies[event["step"]] = replies.get(event["step"], "") + event["text"]
    assert replies == {"classify": "billing", "normal": "Dear\ncustomer"}
    assert "[OK] triage" in (done.err if target == "-" else done.out)


def test_stream_shows_the_replies(here: Path, call: Call) -> None:
    """Under the step's name, and nothing in them can steer the terminal."""
    (here / "rec.json").write_text(
        json.dumps({"_version": 2, "classify": {"content": "a\x1b[2Jb\r\nc\u202e"}, "normal": {"content": "x"}}),
        encoding="utf-8",
    )
    out = call("run", "flow.yaml", "--mock-responses", "rec.json", "--stream").out
    assert "--- classify\na␛[2Jb\nc<U+202E>\n  classify: done in" in out
    assert "---" not in call("run", "flow.yaml", "--mock-responses", "rec.json").out


def test_parallel_replies_are_not_mixed(here: Path, call: Call) -> None:
    """Ten replies that come in at the same time stand one below the other, each whole."""
    steps = "".join(f"  - {{id: s{n}, type: llm_call, prompt: x}}\n" for n in range(10))
    (here / "flow.yaml").write_text(
        f"name: wide\nconfig: {{provider: mock, model: m, latency_model: constant, latency_ms: 20}}\nsteps:\n{steps}",
        encoding="utf-8",
    )
    texts = {f"s{n}": " ".join([f"word{n}"] * 12) for n in range(10)}
    recording = {"_version": 2, **{name: {"content": text} for name, text in texts.items()}}
    (here / "rec.json").write_text(json.dumps(recording), encoding="utf-8")
    out = call("run", "flow.yaml", "--mock-responses", "rec.json", "--stream").out
    for name, text in texts.items():
        assert f"--- {name}\n{text}\n  {name}: done in " in out


def test_log_level_and_form(here: Path, call: Call) -> None:
    """Set by the environment; an unknown word is wrong usage."""
    (here / "rec.json").write_text('{"_version": 2}', encoding="utf-8")
    arguments = ("run", "flow.yaml", "--mock-responses", "rec.json", "--json")
    lines = [
        json.loads(line) for line in call(*arguments, AGENTLOOM_LOG_FORMAT="json").err.splitlines() if line[0] == "{"
    ]
    assert {line["level"] for line in lines} == {"warning"}
    assert {"time", "level", "logger", "message"} == set(lines[0])
    assert "warning: " not in call(*arguments, AGENTLOOM_LOG_LEVEL="error").err
    done = call(*arguments, AGENTLOOM_LOG_LEVEL="debgu")
    assert done.code == 2
    assert "`AGENTLOOM_LOG_LEVEL=DEBGU`: did you mean `DEBUG`?" in done.err


def test_tools_work_from_the_workflow_s_folder(here: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths in a file are relative to that file, never to the working directory; modules are found beside the settings."""
    (here / "sub").mkdir()
    (here / "sub" / "note.txt").write_text("from the note", encoding="utf-8")
    (here / "sub" / "agentloom.toml").write_text('tools = ["house_tools_of_the_test"]\n', encoding="utf-8")
    (here / "sub" / "house_tools_of_the_test.py").write_text(
        "from agentloom.tools.base import tool\n\n\n@tool('shout', 'Say it louder.')\ndef shout(text: str) -> str:\n    print('noise')\n    return text.upper()\n",
        encoding="utf-8",
    )
    (here / "sub" / "flow.yaml").write_text(
        "name: tools\nconfig: {provider: mock, model: m}\nsteps:\n"
        "  - {id: read, type: tool, tool_name: file_read, tool_args: {path: note.txt}, output: note}\n"
        "  - {id: loud, type: tool, depends_on: [read], tool_name: shout, tool_args: {text: state.note}, output: loud}\n",
        encoding="utf-8",
    )
    monkeypatch.setattr("sys.path", list(__import__("sys").path))
    done = call("run", "sub/flow.yaml", "--json")
    state = result(done)["final_state"]
    assert "noise\n" in done.err  # and not between the JSON
    assert (state["note"], state["loud"]) == ("from the note", "FROM THE NOTE")


@pytest.mark.parametrize("budget", ["-1", "nan", "inf", "1e999"])
def test_a_budget_is_a_sum_of_money(call: Call, here: Path, budget: str) -> None:
    """Anything else is wrong usage."""
    done = call("run", "flow.yaml", f"--budget={budget}")
    assert done.code == 2
    assert "is no sum of money" in done.err


def test_a_budget_from_the_command_line(call: Call, here: Path) -> None:
    """BU-1, EX-1: it takes the place of the file's own; over it, the exit code is 1."""
    done = call("run", "flow.yaml", "--budget", "0", "--json")
    assert done.code == 1
    result = json.loads(done.out)
    assert (result["status"], result["step_results"]) == ("budget_exceeded", {})
    assert result["error"] == "Budget exceeded: spent $0.0000 of $0.0000 limit"


def test_lite_is_accepted_and_changes_nothing(tmp_path: Path, call: Call) -> None:
    """Observability is left out; so far there is none."""
    (tmp_path / "w.yaml").write_text(
        "name: w\nconfig: {provider: mock, model: m}\nsteps:\n  - {id: a, type: llm_call, prompt: hi, output: x}\n",
        encoding="utf-8",
    )
    whole, lite = (json.loads(call("run", str(tmp_path / "w.yaml"), "--json", *more).out) for more in ([], ["--lite"]))
    assert whole["final_state"] == lite["final_state"]
    assert (whole["status"], lite["status"]) == ("success", "success")
