"""What workflows do, told from the outside: files in folders, the real program, a real server; `docs/workflows-conformance.md` names the
behaviours.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import anyio
import pytest
from click.testing import CliRunner

from agentloom.cli.app import app
from agentloom.core.engine import WorkflowEngine
from agentloom.core.loader import load_workflow
from agentloom.tools.registry import ToolRegistry
from tests.wire.server import KEY, REPLY, WireServer

MOCK = "name: w\nconfig: {provider: mock}\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def program(*arguments: str, **environment: str) -> tuple[int, str, str]:
    """Call the program; return its exit code and both outputs."""
    done = CliRunner().invoke(app, list(arguments), env=environment, prog_name="agentloom")
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


def result_of(text: str, *arguments: str, **environment: str) -> dict[str, Any]:
    """Run a workflow's text in the working directory and return its whole result."""
    Path("w.yaml").write_text(text, encoding="utf-8")
    _, out, err = program("run", "w.yaml", "--json", *arguments, **environment)
    assert out, err
    result: dict[str, Any] = json.loads(out)
    return result


def outputs(result: dict[str, Any]) -> dict[str, Any]:
    """Return what each step gave."""
    return {name: step["output"] for name, step in result["step_results"].items()}


# --- step types -----------------------------------------------------------------------------------------------------------


def test_an_llm_call_is_one_call_of_a_model(here: Path) -> None:
    """One request a step, with its rendered prompt; the reply is the step's output."""
    text = (
        "name: w\nstate: {who: Ann}\nsteps:\n  - {id: a, type: llm_call, prompt: 'Greet {state.who}.', output: said}\n"
    )
    with WireServer() as server:
        result = result_of(text, OPENAI_API_KEY=KEY, OPENAI_BASE_URL=server.url)
    (request,) = server.requests
    assert [m["content"] for m in request.json["messages"]] == ["Greet Ann."]
    assert result["final_state"]["said"] == REPLY


@pytest.mark.parametrize(("score", "ran"), [(95, "high"), (50, "middle"), (3, "low")])
def test_a_router_chooses_the_branch_that_runs(here: Path, score: int, ran: str) -> None:
    """By the first condition that holds for the state, else its default; the other branches are skipped, and the run succeeds."""
    result = result_of(
        MOCK
        + "steps:\n  - id: r\n    type: router\n    default: low\n    conditions:\n"
        + "      - {expression: state.score > 80, target: high}\n      - {expression: state.score > 10, target: middle}\n"
        + "".join(
            f"  - {{id: {name}, type: llm_call, prompt: hi, depends_on: [r]}}\n" for name in ("high", "middle", "low")
        ),
        *("-s", f"score={score}"),
    )
    statuses = {name: step["status"] for name, step in result["step_results"].items()}
    assert statuses == {"r": "success", "high": "skipped", "middle": "skipped", "low": "skipped", ran: "success"}
    assert result["status"] == "success"


def test_a_tool_step_runs_a_built_in_tool(here: Path) -> None:
    """With arguments taken from the state."""
    result = result_of(
        MOCK
        + "state: {name: note.txt, words: [hello, world]}\nsteps:\n"
        + "  - {id: w, type: tool, tool_name: file_write, tool_args: {path: '{state.name}', content: '{state.words[1]}'}}\n"
        + "  - {id: r, type: tool, tool_name: file_read, depends_on: [w], tool_args: {path: state.name}, output: read}\n"
    )
    assert (here / "note.txt").read_text(encoding="utf-8") == "world"
    assert "world" in json.dumps(result["final_state"]["read"])


def test_a_tool_step_runs_a_tool_of_ones_own(here: Path) -> None:
    """A plain function, registered in Python; whole values of the state arrive as what they are."""
    (here / "w.yaml").write_text(
        MOCK
        + "state: {numbers: [1, 2, 3]}\nsteps:\n"
        + "  - {id: t, type: tool, tool_name: total, tool_args: {numbers: state.numbers, unit: 'of {state.numbers[0]}'}, output: sum}\n",
        encoding="utf-8",
    )
    registry = ToolRegistry()

    def total(numbers: list[int], unit: str) -> str:
        """Add numbers up."""
        return f"{sum(numbers)} {unit}"

    registry.register(total)
    result = anyio.run(WorkflowEngine(load_workflow(here / "w.yaml"), tool_registry=registry).run)
    assert result.final_state["sum"] == "6 of 1"


def test_a_subworkflow_is_a_whole_workflow_as_one_step(here: Path) -> None:
    """From a file or written in place: one step in the result, whatever it holds; what it wrote is that step's output."""
    (here / "child.yaml").write_text(
        "name: c\nsteps:\n  - {id: x, type: llm_call, prompt: '<{state.who}>', output: said}\n"
        "  - {id: y, type: llm_call, prompt: '{state.said}', depends_on: [x], output: again}\n",
        encoding="utf-8",
    )
    inline = "{name: i, steps: [{id: x, type: llm_call, prompt: hi, output: said}]}"
    result = result_of(
        MOCK
        + "state: {who: Ann}\nsteps:\n  - {id: file, type: subworkflow, workflow_path: child.yaml, output: c}\n"
        + f"  - {{id: inline, type: subworkflow, workflow_inline: {inline}, output: i}}\n"
    )
    assert set(result["step_results"]) == {"file", "inline"}
    assert result["final_state"]["c"]["again"] == "Mock response"
    assert result["final_state"]["i"]["said"] == "Mock response"


# --- the graph ------------------------------------------------------------------------------------------------------------

REPORT = """name: w
steps:
  - id: fetch
    type: tool
    tool_name: http_request
    tool_args: { url: "https://example.com/report.json" }
    output: report
  - id: summarize
    type: llm_call
    depends_on: [fetch]
    prompt: "Summarize: {state.report.body}"
    output: summary
  - id: classify
    type: llm_call
    depends_on: [fetch]
    prompt: "Classify: {state.report.body}"
    output: label
  - id: publish
    type: llm_call
    depends_on: [summarize, classify]
    prompt: "Write a note from {state.summary} ({state.label})"
    output: note
"""


def test_the_layers_of_the_documents_example(here: Path) -> None:
    """`validate` shows them as the documents do: fetch; classify and summarize side by side; publish."""
    (here / "w.yaml").write_text(REPORT, encoding="utf-8")
    code, out, _ = program("validate", "w.yaml")
    assert code == 0
    plan = [set(re.findall(r"\w+", line)) for line in out.splitlines()]
    layers = [sorted(words & {"fetch", "summarize", "classify", "publish"}) for words in plan]
    assert [layer for layer in layers if layer] == [
        ["fetch"],
        ["classify", "summarize"],
        ["publish"],
    ]


def test_a_read_that_nothing_orders_is_reported(here: Path) -> None:
    """In the same layer, or a later one, the key isn't there yet: AL402 at the very word, with the step to wait for."""
    (here / "w.yaml").write_text(REPORT.replace("depends_on: [fetch]", "depends_on: []"), encoding="utf-8")
    code, out, _ = program("validate", "w.yaml")
    assert code == 0
    assert out.count("warning[AL402] unordered-read: `fetch`, which writes `report.body`, runs in the same layer") == 2
    assert "add `fetch` to `depends_on`" in out


# --- providers ------------------------------------------------------------------------------------------------------------

ASK = "name: w\nconfig: {provider: PROVIDER, model: MODEL}\nsteps:\n  - {id: a, type: llm_call, prompt: hi, output: said}\n"


def test_openai_is_called_with_the_key_from_the_environment(here: Path) -> None:
    """The key goes out as the header that the format asks for; with another one the run fails, and neither is ever shown."""
    text = ASK.replace("PROVIDER", "openai").replace("MODEL", "gpt-4o-mini")
    with WireServer() as server:
        result = result_of(text, OPENAI_API_KEY=KEY, OPENAI_BASE_URL=server.url)
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
        assert result["final_state"]["said"] == REPLY
        wrong = "sk-another-key-0123456789"
        code, out, err = program("run", "w.yaml", OPENAI_API_KEY=wrong, OPENAI_BASE_URL=server.url)
    assert code == 1
    assert wrong not in out + err
    assert server.requests[1].headers["authorization"] == f"Bearer {wrong}"


def test_generic_openai_is_any_server_of_that_format(here: Path) -> None:
    """An address is enough, whatever the model is called; a key is sent if there is one."""
    text = ASK.replace("PROVIDER", "generic_openai").replace("MODEL", "my-own/llama-3:8b")
    with WireServer(key=None, own=False) as server:
        result = result_of(text, GENERIC_OPENAI_BASE_URL=server.url)
    assert result["step_results"]["a"]["provider"] == "generic_openai"
    assert server.requests[0].json["model"] == "my-own/llama-3:8b"
    assert result["final_state"]["said"] == REPLY


def test_the_chosen_provider_is_asked_first_and_only_if_it_serves_the_model(here: Path) -> None:
    """With two servers, `config.provider` decides; a model that the chosen one doesn't serve goes to the one that does."""
    with WireServer() as own, WireServer(key=None, own=False) as generic:
        there = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": own.url, "GENERIC_OPENAI_BASE_URL": generic.url}

        def asked(provider: str, model: str) -> str:
            result = result_of(ASK.replace("PROVIDER", provider).replace("MODEL", model), **there)
            return str(result["step_results"]["a"]["provider"])

        assert asked("openai", "gpt-4o-mini") == "openai"
        assert asked("generic_openai", "gpt-4o-mini") == "generic_openai"
        assert asked("openai", "llama3") == "generic_openai"
    assert (len(own.requests), len(generic.requests)) == (1, 2)


def test_the_mock_has_no_limit(here: Path) -> None:
    """Hundreds of calls, one after the other as fast as they come: nothing waits for a next minute."""
    steps = "".join(f"  - {{id: s{number}, type: llm_call, prompt: hi}}\n" for number in range(200))
    result = result_of(f"{MOCK}steps:\n{steps}")
    assert [step["status"] for step in result["step_results"].values()] == ["success"] * 200


# --- runs -----------------------------------------------------------------------------------------------------------------


def test_the_result_holds_everything(here: Path) -> None:
    """Final state; status, duration, tokens and cost of each step; totals that are their sums; a run id of twelve digits."""
    text = "name: w\nsteps:\n" + "".join(f"  - {{id: {i}, type: llm_call, prompt: hi, output: o{i}}}\n" for i in "ab")
    with WireServer() as server:
        result = result_of(text, OPENAI_API_KEY=KEY, OPENAI_BASE_URL=server.url)
    steps = result["step_results"].values()
    assert {step["status"] for step in steps} == {"success"}
    assert all(step["duration_ms"] > 0 for step in steps)
    assert result["total_tokens"] == sum(step["token_usage"]["total_tokens"] for step in steps) > 0
    assert result["total_cost_usd"] == pytest.approx(sum(step["cost_usd"] for step in steps))
    assert result["total_cost_usd"] > 0
    assert result["total_duration_ms"] > 0
    assert re.fullmatch("[0-9a-f]{12}", result["run_id"])
    assert (result["final_state"]["oa"], result["final_state"]["ob"]) == (REPLY, REPLY)


@pytest.mark.parametrize(("policy", "last"), [("skip_downstream", "skipped"), ("continue", "success")])
def test_a_failed_step_decides_how_the_run_ends(here: Path, policy: str, last: str) -> None:
    """Either way the run is `failed` and the exit code 1; what depends on the step is skipped, or runs all the same."""
    Path("w.yaml").write_text(
        f"name: w\nconfig: {{provider: mock, on_step_failure: {policy}}}\nsteps:\n"
        "  - {id: bad, type: tool, tool_name: file_read, tool_args: {path: gone.txt}}\n"
        "  - {id: after, type: llm_call, prompt: hi, depends_on: [bad]}\n  - {id: other, type: llm_call, prompt: hi}\n",
        encoding="utf-8",
    )
    code, out, _ = program("run", "w.yaml", "--json")
    result = json.loads(out)
    assert (code, result["status"]) == (1, "failed")
    assert [step["status"] for step in result["step_results"].values()] == ["failed", last, "success"]
