"""Kills runs with SIGKILL at random moments, and resumes them until they are done: `python -m tests.cli.crashing FOLDER SEED KILLS`.

A process of its own, since it forks: each life of a run is the real command in a real process, without the time that it takes to load
Python. Prints a JSON object: ``kills``, ``runs``, ``faults`` (what was wrong, in words), ``repeated`` (effects that came again).
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any

from agentloom.cli import collect_garbage
from agentloom.cli.app import app
from agentloom.cli.stores import all_runs, checkpointer_of
from agentloom.core.keeping import journal_of
from agentloom.durable.journal import read_journal
from agentloom.errors import CheckpointSchemaError

TOOLS = """
import os
import anyio
from agentloom.tools.base import tool
from agentloom.tools.keys import idempotency_key

@tool("work", "Does something that can be counted.")
async def work(step: str) -> str:
    await anyio.sleep(0.002)
    handle = os.open(os.environ["EFFECTS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, f"{step} {idempotency_key()}\\n".encode())
    os.close(handle)
    await anyio.sleep(0.001)
    return f"did {step}"
"""
PRICE = 0.01


def work(name: str, *after: str, inside: str = "") -> dict[str, Any]:
    """Return a step with an effect that is counted under the step's path."""
    arguments = {"step": f"{inside}{name}"}
    return {
        "id": name,
        "type": "tool",
        "tool_name": "work",
        "tool_args": arguments,
        "depends_on": list(after),
        "output": name,
    }


def child(name: str, *after: str, inside: str = "", steps: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a subworkflow step."""
    inline = {"name": f"kid-{name}", "steps": steps}
    return {
        "id": name,
        "type": "subworkflow",
        "depends_on": list(after),
        "workflow_inline": inline,
        "output": f"of_{name}",
    }


def workflow() -> dict[str, Any]:
    """Return fifty steps: wide layers, a chain, children in children, a router, model calls that cost something, and commands."""
    first = [work(f"a{at}") for at in range(9)]
    asked = [
        {
            "id": f"m{at}",
            "type": "llm_call",
            "prompt": f"m{at} {{state.a{at}}}",
            "depends_on": [f"a{at}"],
            "output": f"m{at}",
        }
        for at in range(6)
    ]
    deep = child(
        "deep",
        "k1",
        steps=[work("d1", inside="s.deep."), work("d2", "d1", inside="s.deep."), work("d3", "d1", inside="s.deep.")],
    )
    one = child(
        "s",
        "a0",
        "a1",
        steps=[work("k1", inside="s."), deep, work("k2", "deep", inside="s."), work("k3", "deep", inside="s.")],
    )
    other = child("t", "a2", steps=[work(f"p{at}", inside="t.") for at in range(5)])
    way = {
        "id": "way", "type": "router", "depends_on": ["a3"], "default": "no",
        "conditions": [{"expression": "state.a3 == 'did a3'", "target": "yes"}],
    }  # fmt: skip
    chain = [work("c0", "s", "t"), *(work(f"c{at}", f"c{at - 1}") for at in range(1, 8))]
    command = 'echo "sh$N $AGENTLOOM_IDEMPOTENCY_KEY" >> "$EFFECTS"'
    shells = [
        {
            "id": f"sh{at}",
            "type": "tool",
            "tool_name": "shell_command",
            "depends_on": ["m0"],
            "tool_args": {"command": command.replace("$N", str(at))},
        }
        for at in range(3)
    ]
    last = [work(f"z{at}", "c3", "yes", f"m{at}") for at in range(5)]
    steps = [
        *first,
        *asked,
        one,
        other,
        way,
        work("yes", "way"),
        work("no", "way"),
        work("never", "no"),
        *chain,
        *shells,
        *last,
        work("end", "z0", "c7"),
    ]
    config = {"provider": "mock", "model": "m", "responses_file": "rec.json", "max_concurrent_steps": 4}
    return {"name": "fifty", "config": config, "steps": steps}


def steps_of(data: dict[str, Any]) -> int:
    """Return the number of steps, those of children included."""
    return sum(1 + (steps_of(step["workflow_inline"]) if "workflow_inline" in step else 0) for step in data["steps"])


def prepare(folder: Path) -> None:
    """Write the project: workflow, recording, tools and settings."""
    folder.mkdir()
    (folder / "flow.yaml").write_text(json.dumps(workflow()), encoding="utf-8")
    (folder / "counting.py").write_text(TOOLS, encoding="utf-8")
    (folder / "agentloom.toml").write_text('tools = ["counting"]\n', encoding="utf-8")
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    replies = {f"m{at}": {"content": f"reply {at}", "cost_usd": PRICE, "usage": usage} for at in range(6)}
    (folder / "rec.json").write_text(json.dumps({"_version": 2, **replies}), encoding="utf-8")


def life(arguments: list[str], out: Path, seconds: float | None) -> int | None:
    """Run a command in a process of its own, and kill that after some time; return its exit code, None if it was killed."""
    gone, ours = os.pipe()
    process = os.fork()
    if process == 0:
        code = 70
        try:
            os.close(gone)  # the other end is closed by the end of the process, and by nothing else
            with open(out, "wb") as file:
                os.dup2(file.fileno(), 1)
            with open(f"{out}.err", "wb") as file:
                os.dup2(file.fileno(), 2)
            sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
            try:
                app.main(arguments)
            except SystemExit as done:
                code = int(done.code or 0)
        finally:
            os._exit(code)
    os.close(ours)
    ready, _, _ = select.select([gone], [], [], seconds)
    os.close(gone)
    if not ready:
        os.kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    return None if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def warm_up(folder: Path) -> None:
    """Run once in this process, so that everything is loaded for all the lives to come."""
    prepare(folder)
    os.chdir(folder)
    os.environ["EFFECTS"] = str(folder / "effects")
    with open(folder / "out", "w") as out, redirect_stdout(out), redirect_stderr(out):
        for arguments in (["run", "flow.yaml", "--checkpoint", "--json"], ["resume", "latest", "--json"]):
            try:
                app.main(arguments)
            except SystemExit as done:
                if done.code != 0:
                    raise RuntimeError((folder / "out").read_text(encoding="utf-8")) from None
    collect_garbage()


def plain(out: Path) -> Any:
    """Return what of a result doesn't depend on the clock or on kills."""
    result = json.loads(out.read_text(encoding="utf-8"))
    steps = {name: (step["status"], step["output"], step["error"]) for name, step in result["step_results"].items()}
    return json.loads(json.dumps([result["status"], steps, result["final_state"]], sort_keys=True))


def effects(path: Path) -> Counter[tuple[str, str]]:
    """Return what happened: how often, by step and idempotency key."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return Counter((step, key) for step, key in (line.split() for line in lines))


def finished() -> dict[str, str]:
    """Return the paths of the steps that are known to have succeeded, by what is kept now, and the status of the run."""
    store = checkpointer_of(None)
    runs, problems = all_runs(store)
    if problems or not runs:
        return {"": "none" if not problems else problems[0]}
    try:
        recorded = read_journal(journal_of(store, runs[0].run_id))
    except (FileNotFoundError, CheckpointSchemaError):
        return {"": runs[0].status}
    found = {path: "success" for path, outcome in recorded.outcomes.items() if outcome["status"] == "success"}
    return {"": runs[0].status, **found}


class Crashes:
    """The kills and what came of them."""

    def __init__(self, folder: Path, seed: int, kills: int) -> None:
        self.folder = folder
        self.random = Random(seed)
        self.wanted = kills
        self.kills = self.runs = self.repeated = 0
        self.faults: list[str] = []
        self.undisturbed: Any = None
        self.seconds = 0.0

    def fault(self, what: str) -> None:
        """Note what is wrong."""
        self.faults.append(f"run {self.runs}, after {self.kills} kills: {what}")

    def all_of_it(self) -> None:
        """Kill until it is enough."""
        self.seconds = 1e9
        for _ in range(3):
            self.one_run(None)
        while self.kills < self.wanted and not self.faults:
            self.one_run(self.random)

    def one_run(self, random: Random | None) -> None:
        """Live one run to its end."""
        self.runs += 1
        folder = self.folder / f"run{self.runs}"
        prepare(folder)
        os.chdir(folder)
        os.environ["EFFECTS"] = str(folder / "effects")
        out, done_before, counts = folder / "out", {}, Counter[tuple[str, str]]()
        begun = False
        while True:
            verb = ["resume", "latest"] if begun else ["run", "flow.yaml", "--checkpoint"]
            moment = None if random is None or self.kills >= self.wanted else random.uniform(0, self.seconds)
            began = perf_counter()
            code = life([*verb, "--json"], out, moment)
            if code is not None:
                break
            self.kills += 1
            known = finished()
            begun = begun or known[""] != "none"
            if known[""] not in ("none", "interrupted", "success"):
                self.fault(f"the run is {known['']}")
            counts = self.check(done_before, counts, folder)
            done_before = known
            if known[""] == "success" and moment is not None:  # killed while it told the result
                life(["resume", "latest", "--json"], out, None)
                code = 0
                break
        if random is None:
            self.undisturbed, self.seconds = plain(out), min(self.seconds, perf_counter() - began)
        if code != 0:
            self.fault(f"exit code {code}: {Path(f'{out}.err').read_text(encoding='utf-8')[-500:]}")
            return
        counts = self.check(done_before, counts, folder)
        if plain(out) != self.undisturbed:
            self.fault("the result is another one")
        by_step = Counter(step for step, _ in counts)
        wrong = {step: keys for step, keys in by_step.items() if keys != 1}
        if wrong:
            self.fault(f"more than one key: {wrong}")
        if len(by_step) != EFFECTS:
            self.fault(f"{len(by_step)} effects: {sorted(by_step)}")
        again = sum(counts.values()) - len(counts)
        self.repeated += again
        if random is None and again:
            self.fault("effects came again though nothing was killed")
        spent = json.loads(out.read_text(encoding="utf-8"))["total_cost_usd"]
        if spent < 6 * PRICE - 1e-9:
            self.fault(f"only {spent} was spent")
        kept = (folder / ".agentloom" / "checkpoints").iterdir()
        # A run that was killed before its first line leaves an empty file, and nothing to resume.
        left = [path.name for path in kept if path.suffix != ".json" and path.stat().st_size > 0]
        if left:
            self.fault(f"left behind: {left}")

    def check(self, known: dict[str, str], before: Counter[tuple[str, str]], folder: Path) -> Counter[tuple[str, str]]:
        """Look whether a step that was known to be finished ran again; return what has happened by now."""
        now = effects(folder / "effects")
        for (step, key), number in now.items():
            if step in known and number != before[(step, key)] and not step.startswith("sh"):
                self.fault(f"`{step}` ran again though it was finished")
        return now


EFFECTS = 38
"""The effects of the undisturbed run."""


def main(folder: str, seed: str, kills: str) -> None:
    """Do it, and print what came of it."""
    warm_up(Path(folder) / "warm")
    crashes = Crashes(Path(folder), int(seed), int(kills))
    crashes.all_of_it()
    print(
        json.dumps(
            {
                "steps": steps_of(workflow()),
                "kills": crashes.kills,
                "runs": crashes.runs,
                "repeated": crashes.repeated,
                "faults": crashes.faults,
                "seconds": crashes.seconds,
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
