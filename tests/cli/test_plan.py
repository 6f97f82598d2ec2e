"""`agentloom plan`: numbers that the engine keeps, bounds that hold, and honest words where nothing is known."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.conftest import ROOT, Call

FLOW = """\
name: w
config: {provider: openai, model: gpt-4o-mini, max_retries: 1, budget_usd: 0.5, timeout: 300}
state: {topic: tea}
steps:
  - {id: a, type: llm_call, prompt: "hi", max_tokens: 100, timeout: 10, output: x}
  - {id: b, type: llm_call, prompt: "{state.topic} {state.x}", depends_on: [a], model: my-own, timeout: 10}
  - id: s
    type: subworkflow
    depends_on: [a]
    retry: {max_retries: 2, jitter: false}
    workflow_inline:
      name: kid
      steps:
        - {id: k, type: llm_call, prompt: ho, max_tokens: 10, timeout: 5}
  - {id: r, type: router, depends_on: [b], conditions: [{expression: "state.x == 'y'", target: end}]}
  - {id: end, type: tool, tool_name: file_read, tool_args: {path: "{state.topic}"}, depends_on: [r], output: z.text}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a workflow, and prices that are easy to multiply."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.yaml").write_text(FLOW, encoding="utf-8")
    (tmp_path / "prices.yaml").write_text("gpt-4o-mini: {input: 1, output: 2}\n", encoding="utf-8")
    monkeypatch.setenv("AGENTLOOM_PRICING_FILE", str(tmp_path / "prices.yaml"))
    return tmp_path


def test_the_numbers(call: Call, here: Path) -> None:
    """Layers, the longest chain, attempts that multiply, and the most that each step can cost."""
    done = call("plan", "-f", "json", "w.yaml")
    assert done.code == 0
    data = json.loads(done.out)
    assert data["layers"] == [["a"], ["b", "s"], ["r"], ["end"]]
    assert data["critical_path"] == ["a", "b", "r", "end"]
    steps = {step["id"]: step for step in data["steps"]}
    assert {name: step["attempts"] for name, step in steps.items()} == {"a": 2, "b": 2, "s": 3, "r": 1, "end": 2}
    assert steps["s"]["attempts_inside"] == 3 * 4
    assert steps["a"]["waits"] == 2.5
    assert steps["s"]["waits"] == 2 + 4 + 3 * 17.5  # those of `k` in each attempt
    assert steps["a"]["seconds"] == 22.5
    # Two attempts of at most 2 bytes and 16 tokens in at $1, and 100 tokens out at $2, per thousand.
    assert steps["a"]["cost_bound_usd"] == pytest.approx(2 * (18 * 1 + 100 * 2) / 1000)
    assert (steps["b"]["price_per_1k"], steps["b"]["cost_bound_usd"]) == (None, 0)
    inside = 4 * (18 * 1 + 10 * 2) / 1000
    assert data["cost_bound_usd"] == pytest.approx(steps["a"]["cost_bound_usd"] + 3 * inside)
    assert (data["budget_usd"], data["timeout"]) == (0.5, 300)
    assert (steps["b"]["reads"], steps["a"]["writes"], steps["end"]["writes"]) == (["topic", "x"], ["x"], ["z.text"])


@pytest.mark.parametrize(
    ("more", "reads"),
    [
        ("", ["topic", "late", "x"]),
        (", isolated_state: true, input: {late: '{state.q}'}", ["q"]),
    ],
)
def test_what_the_workflow_below_reads(call: Call, here: Path, more: str, reads: list[str]) -> None:
    """A step that hands over its state reads what the steps below read of it; not what they write themselves first, nor their own state."""
    (here / "w.yaml").write_text(
        "# agentloom: state[late, x, q]\nname: w\nconfig: {provider: mock, model: m}\nstate: {topic: tea}\nsteps:\n"
        f"  - {{id: s, type: subworkflow{more}, workflow_path: child.yaml}}\n",
        encoding="utf-8",
    )
    (here / "child.yaml").write_text(
        "# agentloom: state[late, x]\nname: c\nstate: {own: 1, topic: 2}\nsteps:\n"
        "  - {id: a, type: llm_call, prompt: '{state.topic} {state.late} {state.own}', output: y}\n"
        "  - {id: b, type: llm_call, depends_on: [a], prompt: '{state.y} {state.steps.a.output}'}\n"
        "  - {id: i, type: subworkflow, depends_on: [a],"
        " workflow_inline: {name: i, steps: [{id: k, type: llm_call, prompt: '{state.x} {state.y}'}]}}\n",
        encoding="utf-8",
    )
    steps = json.loads(call("plan", "-f", "json", "w.yaml").out)["steps"]
    assert steps[0]["reads"] == reads


def test_models_of_workflows_below(call: Call, here: Path) -> None:
    """A model counts each step that calls it, at any depth; a child takes its parent's unless it names its own."""
    (here / "w.yaml").write_text(
        "name: w\nconfig: {provider: openai, model: gpt-4o-mini}\nsteps:\n  - {id: a, type: llm_call, prompt: hi}\n"
        "  - {id: s, type: subworkflow, workflow_inline: {name: c, steps: [{id: k, type: llm_call, prompt: hi},"
        " {id: t, type: subworkflow, workflow_inline: {name: d, config: {model: other},"
        " steps: [{id: k, type: llm_call, prompt: hi}]}}]}}\n",
        encoding="utf-8",
    )
    lines = [line.split(None, 1)[1] for line in call("plan", "w.yaml").out.splitlines() if line.startswith("  model")]
    assert [line.partition(",")[0] for line in lines] == ["gpt-4o-mini: 2 steps", "other: 1 step"]


def test_the_plan_of_files_that_each_run_the_next_twice(call: Call, here: Path) -> None:
    """There are a thousand million ways down thirty files; each file is looked at once, and the model counts each way."""
    for number in range(30):
        steps = "".join(f"  - {{id: {name}, type: subworkflow, workflow_path: f{number + 1}.yaml}}\n" for name in "ab")
        (here / f"f{number}.yaml").write_text(f"name: f\nsteps:\n{steps}", encoding="utf-8")
    (here / "f30.yaml").write_text("name: f\nsteps:\n  - {id: a, type: llm_call, prompt: hi}\n", encoding="utf-8")
    assert f"model                   gpt-4o-mini: {2**30} steps" in call("plan", "f0.yaml").out


def test_for_people(call: Call, here: Path) -> None:
    """The critical path is marked; what can't be known is called that."""
    done = call("plan", "w.yaml")
    lines = done.out.splitlines()
    assert lines[0] == "w: 5 steps, 4 layers"
    assert "* a" in [line[:3] for line in lines]
    assert "  s" in [line[:3] for line in lines]
    assert "at most $0.8" in done.out
    assert "the run stops beyond $0.5000" in done.out
    (here / "w.yaml").write_text(FLOW.replace("max_tokens: 100, ", ""), encoding="utf-8")
    done = call("plan", "w.yaml")
    assert "cost unknown: it has no `max_tokens`" in done.out
    assert "can't be known" in done.out


def test_pictures(call: Call, here: Path) -> None:
    """The critical path is marked in them, too."""
    assert call("plan", "-f", "mermaid", "w.yaml").out.startswith("flowchart TD")
    root = ElementTree.fromstring(call("plan", "-f", "svg", "w.yaml").out)
    marked = [element.attrib["class"] for element in root.iter() if "marked" in element.attrib.get("class", "")]
    assert len(marked) == 4 + 3


def test_a_file_with_errors_has_no_plan(call: Call, here: Path) -> None:
    """Its errors are shown."""
    (here / "w.yaml").write_text(FLOW.replace("[a]", "[nope]"), encoding="utf-8")
    done = call("plan", "w.yaml")
    assert (done.code, done.out) == (1, "")
    assert "error[AL202]" in done.err
    assert done.err.endswith("w.yaml: 2 errors; there is no plan\n")


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.loom.yaml")), ids=lambda path: path.name)
def test_every_example_has_one(call: Call, path: Path) -> None:
    """Each step stands in its layer, and the critical path is as long as there are layers."""
    data = json.loads(call("plan", "-f", "json", str(path)).out)
    assert [step["id"] for step in data["steps"]] == [name for layer in data["layers"] for name in layer]
    assert len(data["critical_path"]) == len(data["layers"])
    for text in (call("plan", str(path)).out, call("plan", "-f", "svg", str(path)).out):
        assert all(step["id"] in text for step in data["steps"])


def test_agents_are_priced_at_their_own_model(call: Call, here: Path) -> None:
    """Inline or in a file; what a turn costs isn't known, but for one whose model has no price, and that calls no others."""
    (here / "far.agent.yaml").write_text(
        "system_prompt: x\nmodel: gpt-4o-mini\nconstraints: {max_latency_ms: 3000}\n", encoding="utf-8"
    )
    (here / "agents.yaml").write_text(
        "name: w\nconfig: {provider: openai, model: my-own, max_retries: 0}\n"
        "agents:\n  near: {system_prompt: x}\n  both: {system_prompt: x, tools: [{agent: near}]}\nsteps:\n"
        "  - {id: a, type: agent, agent: ./far.agent.yaml, input: x}\n"
        "  - {id: b, type: agent, agent: near, input: x}\n"
        "  - {id: c, type: agent, agent: both, input: x}\n",
        encoding="utf-8",
    )
    steps = {step["id"]: step for step in json.loads(call("plan", "-f", "json", "agents.yaml").out)["steps"]}
    assert {name: step["model"] for name, step in steps.items()} == {"a": "gpt-4o-mini", "b": "my-own", "c": "my-own"}
    assert {name: step["cost_bound_usd"] for name, step in steps.items()} == {"a": None, "b": 0, "c": None}
    assert steps["a"]["seconds"] == 3
