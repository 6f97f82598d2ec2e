"""Workers that can't do everything: keys that only some have, tools that differ, and runs that nobody can perform."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

from agentloom.core.loader import load_workflow
from agentloom.durable.dbos.archive import Archive
from agentloom.durable.dbos.orders import QUEUE, order_for
from agentloom.durable.dbos.place import place_of
from tests.cli.conftest import Call
from tests.cli.conftest import call as call
from tests.durable.crew import Workers
from tests.durable.metering import project, results
from tests.wire.server import KEY, WireServer

PAUSE = threading.Event()
TOOLS = """
from agentloom.tools.base import tool

@tool("greet", "Greets.")
def greet({argument}: str) -> str:
    return f"hello from {argument}"
"""


def test_a_run_waits_for_a_worker_that_has_the_key(tmp_path: Path, workers: Workers, call: Call) -> None:
    """The only worker has none: the run is queued, and it is told what is lacking. A second worker has it and takes this run and others."""
    with WireServer() as box:
        file = project(tmp_path, box.url, 2)
        workers.begin(1)
        following = subprocess.Popen(
            [sys.executable, "-m", "agentloom", "run", str(file), "--run-id", "k", "--no-history", "--json"],
            cwd=tmp_path, env=workers.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        workers.running.append(following)
        assert following.stderr is not None
        for line in following.stderr:
            if "waits" in line:
                break
        lacking = "lacking: provider `box` (set BOX_KEY to use `box`) on 1 of 1 worker"
        assert f"run `k` waits: no worker that is running has all that the run needs; {lacking}" in line
        assert [run["status"] for run in json.loads(call("runs", "--json", "--on", workers.url).out)] == ["queued"]
        assert lacking in call("runs", "show", "k", "--on", workers.url).err
        assert not box.requests
        told = call("validate", str(file), "--on", workers.url).out
        assert f"  needs of a run in {workers.url}, 1 worker\n    provider box  on 0 of 1 worker: set BOX_KEY" in told
        workers.environment["BOX_KEY"] = KEY
        workers.begin(1)
        output, _ = following.communicate(timeout=60)
        assert json.loads(output)["status"] == "success"
        told = call("validate", str(file), "--on", workers.url).out
        assert "    provider box  on 1 of 2 workers: set BOX_KEY to use `box`\n" in told
        document = load_workflow(file)
        with closing(Archive(place_of(workers.url))) as archive:
            segments = [archive.put(order_for(document, {}, f"run{number}"), 1, QUEUE) for number in range(4)]
            assert [result.status for result in results(archive, segments)] == ["success"] * 4
        assert len(box.requests) == 10


def test_tools_that_take_other_arguments_are_other_tools(tmp_path: Path, workers: Workers) -> None:
    """A worker that was started before a tool changed doesn't take runs that were asked for after it."""
    (tmp_path / "agentloom.toml").write_text('tools = ["greeting"]\n', encoding="utf-8")
    module = tmp_path / "greeting.py"
    file = tmp_path / "greets.loom.yaml"
    steps = [{"id": "a", "type": "tool", "tool_name": "greet", "tool_args": {"name": "x"}}]
    file.write_text(json.dumps({"name": "greets", "config": {"provider": "mock"}, "steps": steps}), encoding="utf-8")
    module.write_text(TOOLS.replace("{argument}", "name"), encoding="utf-8")
    workers.begin(1)
    with closing(Archive(place_of(workers.url))) as archive:
        (result,) = results(archive, [archive.put(order_for(load_workflow(file), {}, "before"), 1, QUEUE)])
        assert result.status == "success"
        first = archive.status("before~1").executor_id
        module.write_text(TOOLS.replace("{argument}", "person"), encoding="utf-8")
        file.write_text(file.read_text().replace('"name": "x"', '"person": "x"'), encoding="utf-8")
        after = archive.put(order_for(load_workflow(file), {}, "after"), 1, QUEUE)
        while str(archive.status(after).queue_name) == QUEUE:
            PAUSE.wait(0.05)
        assert archive.status(after).status == "ENQUEUED"
        workers.begin(1)
        (result,) = results(archive, [after])
        assert result.status == "success", result.error
        assert archive.status(after).executor_id != first


def test_a_file_is_served_by_this_machine(tmp_path: Path, call: Call) -> None:
    """What its runs need is looked for here; a database that only the environment names is not asked."""
    file = project(tmp_path, "http://127.0.0.1:9", 1)
    told = call("validate", str(file), "--on", f"sqlite:///{tmp_path / 'runs.db'}").out
    assert "    provider box  lacking: set BOX_KEY to use `box`\n" in told
    done = call("validate", str(file), AGENTLOOM_ON="postgresql://nobody@127.0.0.1:9/none")
    assert (done.code, done.err) == (0, "")
    assert "needs" not in done.out


def test_without_a_worker_it_is_told_that_there_is_none(tmp_path: Path, workers: Workers, call: Call) -> None:
    """Once the database is prepared; Ctrl-C leaves the run for later."""
    call("worker", "--prepare", "--on", workers.url)
    file = tmp_path / "one.loom.yaml"
    file.write_text("name: one\nsteps: [{id: a, type: llm_call, prompt: Hi.}]\nconfig: {provider: mock}\n")
    assert call("run", str(file), "--run-id", "w", "--detach", "--on", workers.url).code == 0
    shown = call("runs", "show", "w", "--on", workers.url)
    assert f"no worker is running; start one with `agentloom worker --on {workers.url}`" in shown.err


def test_what_goes_on_needs_what_went_before(tmp_path: Path, workers: Workers, call: Call) -> None:
    """A segment that is made without the workflow's tools at hand, as by a decision, has the needs of the one before."""
    call("worker", "--prepare", "--on", workers.url)
    file = project(tmp_path, "http://127.0.0.1:9", 1)
    with closing(Archive(place_of(workers.url))) as archive:
        order = order_for(load_workflow(file), {}, "n")
        archive.put(order, 1, QUEUE)
        without = order._replace(input={key: value for key, value in order.input.items() if key != "needs"})
        archive.put(without, 2, QUEUE)
        found = [archive.status(f"n~{number}") for number in (1, 2)]
        assert found[0].attributes["needs"] == {"providers": ["box"], "tools": {}, "shared": None}
        assert found[1].attributes["needs"] == found[0].attributes["needs"]
        assert found[1].input["args"][0]["needs"] == found[0].attributes["needs"]
