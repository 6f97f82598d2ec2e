"""Two versions of agentloom beside each other on a server: workers, commands, and runs that go from one to the other."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

from agentloom.core.loader import load_text, load_workflow
from agentloom.durable.dbos.archive import Archive
from agentloom.durable.dbos.orders import QUEUE, VERSION, order_for
from agentloom.durable.dbos.place import place_of
from tests.durable.crew import Workers
from tests.durable.workshop import GATE, build, effects

NEWER = str(Path(__file__).resolve().parents[1] / "durable" / "newer.py")
NEXT = "agentloom-journal-{}".format(int(VERSION.rpartition("-")[2]) + 1)
pause = threading.Event()


def newer(workers: Workers, *arguments: str) -> subprocess.Popen[str]:
    """Start the next version of the program."""
    process = subprocess.Popen(
        [sys.executable, "-W", "error", NEWER, *arguments],
        cwd=workers.folder, env=workers.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    workers.running.append(process)
    return process


def ended(workers: Workers, process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Return exit code and outputs of a process that ends by itself."""
    out, err = process.communicate(timeout=90)
    workers.running.remove(process)
    return process.returncode, out, err


def older(workers: Workers, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Call this version of the program."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "agentloom", *arguments],
        cwd=workers.folder, env=workers.environment, capture_output=True, text=True, check=False, timeout=90,
    )  # fmt: skip


def test_workers_are_replaced_by_newer_ones_while_runs_go_on(tmp_path: Path, workers: Workers) -> None:
    """Each version performs its own; when the last worker of the old one is gone, the new one goes on with the rest, and who follows sees no seam."""
    file = build(tmp_path)
    workers.environment["WORK_SECONDS"] = "0.3"
    old, new = workers.start(), newer(workers, "worker", "--drain", "10")
    workers.ready(old)
    workers.ready(new)
    asked = newer(workers, "run", str(file), "--run-id", "b", "--detach", "--no-history")
    following = subprocess.Popen(
        [sys.executable, "-m", "agentloom", "run", str(file), "--run-id", "a", "--events", "-", "--no-history"],
        cwd=tmp_path, env=workers.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    workers.running.append(following)
    assert following.stdout is not None
    with closing(Archive(place_of(workers.url))) as archive:
        events: list[dict[str, Any]] = []
        while not events or events[-1]["event"] != "step_finished":
            events.append(json.loads(following.stdout.readline()))
        assert f"-{old.pid}-" in str(archive.status("a~1").executor_id), "it has a worker of its version"
        old.kill()
        assert ended(workers, asked)[:2] == (0, "Run ID: b\n")
        code, rest, said = ended(workers, following)
        assert code == 0, said
        archive.client.retrieve_workflow("b~1").get_result(polling_interval_sec=0.05)
        found = [(id_, archive.status(id_).app_version, archive.status(id_).status) for id_ in ("a~1", "a~2", "b~1")]
    assert found == [("a~1", VERSION, "CANCELLED"), ("a~2", NEXT, "SUCCESS"), ("b~1", NEXT, "SUCCESS")]
    events += [json.loads(line) for line in rest.splitlines()]
    assert [event["event"] for event in events].count("run_started") == 1
    assert (events[-1]["event"], events[-1]["status"]) == ("run_finished", "success")
    done = effects(workers.effects)
    assert len(done) == 2 * 20, "one key for every step of every run"
    assert sum(done.values()) - len(done) <= 4


def test_runs_that_wait_or_were_left_go_on_in_the_next_version(tmp_path: Path, workers: Workers) -> None:
    """A run at a gate crosses with its decision. What lost its workers is listed as such, and a resume goes on with it."""
    file = build(tmp_path)
    workers.environment["WORK_SECONDS"] = "0.2"
    workers.ready(old := workers.start())
    with closing(Archive(place_of(workers.url))) as archive:
        archive.put(order_for(load_text(GATE), {}, "parked"), 1, QUEUE)
        archive.put(order_for(load_workflow(file), {}, "left"), 1, QUEUE)
        archive.client.retrieve_workflow("parked~1").get_result(polling_interval_sec=0.05)
        while len(effects(workers.effects)) < 4:
            pause.wait(0.05)
        old.kill()
        old.wait()
        code, out, err = ended(workers, newer(workers, "runs", "--json"))
        assert code == 0
        assert {run["run_id"]: run["status"] for run in json.loads(out)} == {"parked": "paused", "left": "interrupted"}
        assert "warning: run `left` was begun by an older agentloom (journal version 1)" in err
        assert "`agentloom resume left` does" in err
        resumed = newer(workers, "resume", "left", "--json", "--no-history")
        while not archive.client.list_workflows(workflow_ids=["left~2"]):
            pause.wait(0.05)
        decided = newer(workers, "resume", "parked", "--approve", "--json", "--no-history")
        workers.ready(newer(workers, "worker"))
        for process in (resumed, decided):
            code, out, err = ended(workers, process)
            assert (code, json.loads(out)["status"]) == (0, "success"), err
        assert [archive.status(id_).app_version for id_ in ("parked~2", "left~2")] == [NEXT, NEXT]
    done = effects(workers.effects)
    assert len(done) == 20
    assert sum(done.values()) - len(done) <= 4


def test_an_older_version_leaves_the_runs_of_a_newer_one_alone(tmp_path: Path, workers: Workers) -> None:
    """Its worker takes none of them, and its commands say what they are."""
    file = build(tmp_path)
    assert ended(workers, newer(workers, "worker", "--help"))[0] == 0
    workers.ready(old := workers.start())
    assert ended(workers, newer(workers, "run", str(file), "--run-id", "n", "--detach", "--no-history"))[0] == 0
    done = older(workers, "run", str(file), "--run-id", "o", "--no-history")
    assert done.returncode == 0, done.stderr
    with closing(Archive(place_of(workers.url))) as archive:
        assert (archive.status("n~1").status, archive.status("n~1").executor_id) == ("ENQUEUED", None)
    listed = older(workers, "runs", "--json")
    assert {run["run_id"]: run["status"] for run in json.loads(listed.stdout)} == {"n": "interrupted", "o": "success"}
    reason = "it was begun by a newer agentloom (journal version 2, this one reads 1); upgrade first"
    assert listed.stderr == f"warning: run `n` waits for a worker of its version, and none lives: {reason}\n"
    for command in (("resume", "n"), ("runs", "show", "n")):
        refused = older(workers, *command)
        assert (refused.returncode, refused.stderr) == (1, f"error: run `n` can't be read: {reason}\n")
    old.send_signal(signal.SIGTERM)
    assert old.wait(60) == 0


def test_a_file_goes_on_in_the_next_version(tmp_path: Path, sqlite: str) -> None:
    """What waits for a worker is taken over by a newer one; a run whose process was killed is resumed by the newer command."""
    file = build(tmp_path)
    alone = Workers(sqlite, tmp_path, 0.2)
    try:
        running = subprocess.Popen(
            [sys.executable, "-m", "agentloom", "run", str(file), "--run-id", "k", "--events", "-", "--no-history"],
            cwd=tmp_path, env=alone.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        alone.running.append(running)
        assert running.stdout is not None
        while json.loads(running.stdout.readline())["event"] != "step_finished":
            pass
        running.kill()
        running.wait()
        asked = older(alone, "run", str(file), "--run-id", "w", "--detach", "--no-history")
        assert (asked.returncode, asked.stdout) == (0, "Run ID: w\n"), asked.stderr
        code, out, err = ended(alone, newer(alone, "resume", "k", "--json", "--no-history"))
        assert (code, json.loads(out)["status"]) == (0, "success"), err
        alone.ready(newer(alone, "worker", "--drain", "10"))
        with closing(Archive(place_of(sqlite))) as archive:
            while not archive.client.list_workflows(workflow_ids=["w~2"]):
                pause.wait(0.05)
            archive.client.retrieve_workflow("w~2").get_result(polling_interval_sec=0.05)
            found = [(id_, archive.status(id_).app_version) for id_ in ("k~2", "w~1", "w~2")]
        assert found == [("k~2", NEXT), ("w~1", VERSION), ("w~2", NEXT)]
        done = effects(alone.effects)
        assert len(done) == 2 * 20
        assert sum(done.values()) - len(done) <= 4
    finally:
        alone.end()
