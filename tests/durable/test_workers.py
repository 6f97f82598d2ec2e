"""Workers as real processes on PostgreSQL and on a SQLite file: killed in the middle of runs, stopped, beaten to a decision."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections import Counter
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

from agentloom.core.loader import load_text, load_workflow
from agentloom.durable.dbos.archive import Archive
from agentloom.durable.dbos.orders import QUEUE, order_for, run_of
from agentloom.durable.dbos.place import place_of
from agentloom.durable.journal import RunIsBusy
from tests.durable.crew import Workers
from tests.durable.postgres import Server
from tests.durable.workshop import GATE, build, effects


def test_three_workers_are_killed_and_nothing_is_lost(tmp_path: Path, workers: Workers) -> None:
    """Whoever dies in the middle, the others go on: every step has its effect, and what comes again comes with its key again."""
    file = build(tmp_path)
    random = Random(8)
    workers.begin(3)
    document = load_workflow(file)
    with closing(Archive(place_of(workers.url))) as archive:
        segments = [archive.put(order_for(document, {}, f"run{number}"), 1, QUEUE) for number in range(4)]
        pause = threading.Event()
        kills = 0
        while kills < 5:
            performed = {
                status.executor_id
                for status in archive.client.list_workflows(status="PENDING", load_input=False, load_output=False)
            }
            busy = [
                process for process in workers.running
                if process.poll() is None and any(f"-{process.pid}-" in str(name) for name in performed)
            ]  # fmt: skip
            if not busy:
                if all(archive.status(segment).status == "SUCCESS" for segment in segments):
                    break
                pause.wait(0.05)
                continue
            pause.wait(random.random() * 0.4)
            random.choice(busy).kill()
            kills += 1
            workers.start()
        for segment in segments:
            archive.client.retrieve_workflow(segment).get_result(polling_interval_sec=0.1)
            ended = archive.ended(segment)
            assert ended.result is not None, ended.error
            assert ended.result.status == "success", ended.result.error
    assert kills >= 2
    found = effects(workers.effects)
    names = {name for name, _ in found}
    assert len(found) == 4 * 20, "one key for every step of every run"
    assert len(names) == 20
    # A worker dies with at most four steps under way in each of the runs that it performs.
    assert sum(found.values()) - len(found) <= kills * 4 * 4


def test_the_database_goes_away_and_comes_back(tmp_path: Path, workers: Workers, server: Server) -> None:
    """PostgreSQL stops as if its machine lost power, in the middle of runs: they wait, and go on."""
    file = build(tmp_path)
    workers.begin(2)
    document = load_workflow(file)
    with closing(Archive(place_of(workers.url))) as archive:
        segments = [archive.put(order_for(document, {}, f"run{number}"), 1, QUEUE) for number in range(2)]
    pause = threading.Event()
    while len(effects(workers.effects)) < 8:
        pause.wait(0.05)
    server.stop("immediate")
    server.start()
    with closing(Archive(place_of(workers.url))) as archive:
        while not all(archive.status(segment).status == "SUCCESS" for segment in segments):
            pause.wait(0.1)
        assert {archive.ended(segment).result.status for segment in segments} == {"success"}  # type: ignore[union-attr]
    found = effects(workers.effects)
    assert len(found) == 2 * 20, "one key for every step of every run"
    assert sum(found.values()) - len(found) <= 2 * 4


def test_a_worker_that_sleeps_is_replaced_and_writes_nothing_more(tmp_path: Path, workers: Workers) -> None:
    """Its lock is taken away while it is stopped; awake again it finds its run gone, and what it was doing counts for nothing."""
    import psycopg

    file = build(tmp_path)
    workers.ready(first := workers.start())
    with closing(Archive(place_of(workers.url))) as archive:
        segment = archive.put(order_for(load_workflow(file), {}, "z"), 1, QUEUE)
        pause = threading.Event()
        while len(effects(workers.effects)) < 4:
            pause.wait(0.05)
        first.send_signal(signal.SIGSTOP)
        with psycopg.connect(workers.url, autocommit=True) as session:
            session.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND classid = 4711"
            )
        workers.ready(workers.start())
        while archive.status(segment).executor_id is None or f"-{first.pid}-" in str(
            archive.status(segment).executor_id
        ):
            pause.wait(0.05)
        first.send_signal(signal.SIGCONT)
        archive.client.retrieve_workflow(segment).get_result(polling_interval_sec=0.05)
        result = archive.ended(segment).result
        assert result is not None
        assert result.status == "success"
        lines = [json.loads(line) for line in archive.lines(segment)]
        outcomes = Counter(line["path"] for line in lines if line["kind"] == "outcome")
        assert len(outcomes) == 4 * 6
        assert set(outcomes.values()) == {1}
    found = effects(workers.effects)
    assert len(found) == 20
    assert sum(found.values()) - len(found) <= 2 * 4


def test_one_of_fifty_decisions_wins(workers: Workers) -> None:
    """They come at the same time, and nobody needs to run for that."""
    workers.ready(first := workers.start())
    document = load_text(GATE)
    with closing(Archive(place_of(workers.url))) as archive:
        segment = archive.put(order_for(document, {}, "g"), 1, QUEUE)
        archive.client.retrieve_workflow(segment).get_result(polling_interval_sec=0.05)
        found = archive.find("g")
        assert found.data.status == "paused"
        first.send_signal(signal.SIGTERM)
        assert first.wait(30) == 0
        won: list[str] = []
        lost: list[str] = []
        barrier = threading.Barrier(50)

        def decide(number: int) -> None:
            decision = "approved" if number % 2 else "rejected"
            order = order_for(document, found.data.state, "g", seed=found.data, decisions={"gate": decision})
            barrier.wait()
            try:
                archive.put(order, run_of(found.segment)[1] + 1, QUEUE)
                won.append(decision)
            except RunIsBusy as busy:
                lost.append(str(busy))

        threads = [threading.Thread(target=decide, args=(number,)) for number in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(won), len(lost)) == (1, 49)
        assert set(lost) == {"run `g` was resumed by another process meanwhile; look at it again"}
        workers.ready(workers.start())
        archive.client.retrieve_workflow("g~2").get_result(polling_interval_sec=0.05)
        result = archive.ended("g~2").result
        assert result is not None, archive.ended("g~2").error
        assert (result.status, result.final_state["verdict"]) == ("success", won[0])


def test_a_run_is_followed_from_elsewhere_and_cancelled(tmp_path: Path, workers: Workers) -> None:
    """The terminal is told what a worker does; a cancelled run stops within moments, and a resume repeats nothing that was done."""
    workers.environment["WORK_SECONDS"] = "0.3"
    file = build(tmp_path)
    workers.ready(workers.start())
    process = subprocess.Popen(
        [sys.executable, "-m", "agentloom", "run", str(file), "--run-id", "c", "--events", "-", "--no-history"],
        cwd=tmp_path, env=workers.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    workers.running.append(process)
    assert process.stdout is not None
    finished: list[str] = []
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == "step_finished":
            finished.append(event["step"])
            if len(finished) == 5:
                break
    with closing(Archive(place_of(workers.url))) as archive:
        archive.cancel("c~1")
        process.stdout.read()
        assert process.wait(30) == 130
        found = archive.find("c")
        assert found.data.status == "cancelled"
        before = effects(workers.effects)
    done = _call(workers, "resume", "c", "--json", "--no-history")
    result = json.loads(done.stdout)
    assert (done.returncode, result["status"]) == (0, "success"), done.stderr
    after = effects(workers.effects)
    assert len(after) == 20
    recorded = {name for name in finished if not name.startswith("c") or "." in name}
    assert all(after[key] == before[key] for key in before if key[0] in recorded)
    shown = json.loads(_call(workers, "runs", "show", "c", "--json").stdout)
    assert {step["status"] for step in shown["steps"]} == {"success"}


def test_a_killed_run_on_a_file_goes_on(tmp_path: Path, sqlite: str) -> None:
    """`run --on sqlite:///…` is its own worker; after its death `resume` goes on where it was."""
    file = build(tmp_path)
    alone = Workers(sqlite, tmp_path, 0.2)
    process = subprocess.Popen(
        [sys.executable, "-m", "agentloom", "run", str(file), "--run-id", "k", "--events", "-", "--no-history"],
        cwd=tmp_path, env=alone.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    finished = 0
    for line in process.stdout:
        finished += json.loads(line)["event"] == "step_finished"
        if finished == 6:
            break
    process.kill()
    process.communicate()
    listed = json.loads(_call(alone, "runs", "--json").stdout)
    assert [(run["run_id"], run["status"]) for run in listed] == [("k", "interrupted")]
    done = _call(alone, "resume", "k", "--json", "--no-history")
    assert (done.returncode, json.loads(done.stdout)["status"]) == (0, "success"), done.stderr
    found = effects(alone.effects)
    assert len(found) == 20
    assert sum(found.values()) - len(found) <= 4


def _call(workers: Workers, *arguments: str) -> Any:
    return subprocess.run(
        [sys.executable, "-m", "agentloom", *arguments],
        cwd=workers.folder, env=workers.environment, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def test_ctrl_c_leaves_a_run_to_its_worker_and_twice_cancels_it(tmp_path: Path, workers: Workers) -> None:
    """Both end the command with 130; of a run that was left, the worker makes the whole."""
    file = build(tmp_path)
    workers.ready(workers.start())
    for run_id, times in (("left", 1), ("stopped", 2)):
        process = _following(workers, file, run_id)
        assert process.stdout is not None
        assert process.stderr is not None
        while json.loads(process.stdout.readline())["event"] != "step_finished":
            pass
        process.send_signal(signal.SIGINT)
        while "the run goes on without this terminal" not in process.stderr.readline():
            pass
        if times == 2:
            process.send_signal(signal.SIGINT)
        process.communicate()
        assert process.returncode == 130
    with closing(Archive(place_of(workers.url))) as archive:
        archive.client.retrieve_workflow("left~1").get_result(polling_interval_sec=0.05)
        assert archive.find("left").data.status == "success"
        assert archive.find("stopped").data.status == "cancelled"


def test_ctrl_c_cancels_a_run_on_a_file(tmp_path: Path, sqlite: str) -> None:
    """Its worker is the command itself, as for a run without a database."""
    file = build(tmp_path)
    alone = Workers(sqlite, tmp_path, 0.2)
    process = _following(alone, file, "k")
    assert process.stdout is not None
    while json.loads(process.stdout.readline())["event"] != "step_finished":
        pass
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 130
    assert [run["status"] for run in json.loads(_call(alone, "runs", "--json").stdout)] == ["cancelled"]


def _following(workers: Workers, file: Path, run_id: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "agentloom", "run", str(file), "--run-id", run_id, "--events", "-", "--no-history"],
        cwd=workers.folder, env=workers.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    workers.running.append(process)
    return process
