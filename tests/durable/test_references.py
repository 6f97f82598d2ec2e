"""Secrets by reference: `env:NAME` is read where a run is performed, and nothing of its value is written or told."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import psycopg
import pytest

from agentloom.core.loader import load_text
from agentloom.core.redaction import Redaction
from agentloom.core.references import Hidden, put, references_in
from agentloom.durable.dbos.orders import QUEUE, order_for
from tests.cli.conftest import Call, call
from tests.durable.crew import Workers, workers

__all__ = ["call", "workers"]

SECRET = "s3cret/Zürich 42"
TOOLS = """
import os
from pathlib import Path
from agentloom.tools.base import tool

@tool("use", "Uses a secret, and says it.")
def use(token: str) -> dict:
    with Path(os.environ["USED"]).open("a") as file:
        file.write(token + "\\n")
    return {"said": f"the token is {token}", "length": len(token)}

@tool("trip", "Fails, and says why.")
def trip(token: str) -> str:
    raise ValueError(f"https://api.example.com/?token={token}")
"""
FLOW = """\
name: refer
state_schema: {token: {redact: true}, user.password: {redact: true}}
state: {token: "", user: {name: ada, password: ""}}
steps:
  - {id: use, type: tool, tool_name: use, tool_args: {token: "{state.token}"}, output: used}
  - {id: trip, type: tool, tool_name: trip, tool_args: {token: "{state.user.password}"}, output: tripped, retry: {max_retries: 0}}
  - {id: gate, type: approval_gate, depends_on: [use]}
  - {id: again, type: tool, depends_on: [gate], tool_name: use, tool_args: {token: "{state.token}"}, output: again}
config: {provider: mock, on_step_failure: continue}
"""
REFERRED = ("-s", "token=env:LOOM_TOKEN", "-s", "user.password=env:LOOM_TOKEN")


@pytest.fixture
def flow(tmp_path: Path) -> Path:
    """A workflow, and the tools of its project."""
    (tmp_path / "own_tools.py").write_text(TOOLS)
    (tmp_path / "agentloom.toml").write_text('tools = ["own_tools"]\n')
    (tmp_path / "refer.loom.yaml").write_text(FLOW)
    return tmp_path / "refer.loom.yaml"


def dump(url: str) -> str:
    """Return everything that a database holds of ours."""
    with psycopg.connect(url) as session:
        names = session.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'agentloom'").fetchall()
        rows = [session.execute(f'SELECT t::text FROM agentloom."{name}" t'.encode()).fetchall() for (name,) in names]
    return "\n".join(row for table in rows for (row,) in table)


def stopped(workers: Workers, process: subprocess.Popen[str]) -> str:
    """Stop a worker, and return what it has said."""
    process.terminate()
    workers.running.remove(process)
    return process.communicate()[0]


def is_told(text: str) -> bool:
    """Tell whether something of the secret stands in a text, as it is or as JSON or an address has it."""
    return any(part in text for part in ("s3cret", "rich 42", "rich%2042"))


def test_a_worker_reads_what_it_may_and_tells_nothing_of_it(
    call: Call, workers: Workers, flow: Path, tmp_path: Path
) -> None:
    """The tool has the value, in the next life after a gate too; the database, events, results and logs have nothing of it."""
    used = tmp_path / "used"
    workers.environment.update(USED=str(used), LOOM_TOKEN=SECRET)
    workers.ready(first := workers.start())
    at = {"AGENTLOOM_ON": workers.url}
    refused = call("run", str(flow), *REFERRED, "--run-id", "r", **at)
    assert refused.code == 1
    assert "`token` is `env:LOOM_TOKEN`, and this worker gives no run that variable; start the workers with `--env LOOM_TOKEN`" in refused.err  # fmt: skip
    told = stopped(workers, first)
    workers.options = ("--env", "LOOM_TOKEN", "--env", "LOOM_MISSING")
    workers.ready(second := workers.start())
    paused = call("resume", "r", "--json", "--events", str(tmp_path / "events"), **at)
    assert (paused.code, json.loads(paused.out)["status"]) == (0, "paused"), paused.err
    assert "came back redacted" not in paused.err
    done = call("resume", "r", "--approve", "--json", **at)
    assert used.read_text().splitlines() == [SECRET, SECRET], done.err
    result = json.loads(done.out)
    assert result["final_state"]["used"] == {"said": "the token is <REDACTED:key>", "length": len(SECRET)}
    assert "?token=<REDACTED:" in result["step_results"]["trip"]["error"]
    missing = call("run", str(flow), "-s", "token=env:LOOM_MISSING", **at)
    assert "there is no variable `LOOM_MISSING` where the run is performed" in missing.err
    literal = call("run", str(flow), "-s", f"token={SECRET}", **at)
    assert "`state.token` is secret and would have to go through the database; give a key of the state as `--state KEY=env:NAME`" in literal.err  # fmt: skip
    told += stopped(workers, second) + (tmp_path / "events").read_text()
    for kept in (dump(workers.url), told, paused.out, paused.err, done.out, done.err):
        assert not is_told(kept)
    assert "LOOM_TOKEN" in dump(workers.url)


def test_a_run_on_a_file_and_one_in_this_process_read_their_own(
    call: Call, flow: Path, tmp_path: Path, sqlite: str
) -> None:
    """There nobody else's environment is read, and no list is needed."""
    used = tmp_path / "used"
    given = {"USED": str(used), "LOOM_TOKEN": SECRET}
    for where in (("--on", sqlite), ()):
        done = call("run", str(flow), *REFERRED, "--json", *where, **given)
        assert json.loads(done.out)["status"] == "paused", done.err
    assert used.read_text().splitlines() == [SECRET, SECRET]
    assert not is_told(Path(sqlite.removeprefix("sqlite:///")).read_bytes().decode("utf-8", "replace"))
    lacking = call("run", str(flow), *REFERRED, USED=str(used))
    assert (lacking.code, "there is no variable `LOOM_TOKEN`" in lacking.err) == (2, True)
    short = call("run", str(flow), *REFERRED, LOOM_TOKEN="short", USED=str(used))
    assert "shorter than 8 characters" in short.err


def test_only_what_is_marked_secret_refers_to_anything(call: Call, workers: Workers, tmp_path: Path) -> None:
    """Elsewhere it is a text, with a warning; an order that says otherwise is refused by the worker."""
    text = 'name: n\nstate: {open: "", list: []}\nsteps:\n  - {id: a, type: llm_call, prompt: "{state.open}", output: a}\nconfig: {provider: mock}\n'
    (tmp_path / "open.loom.yaml").write_text(text)
    done = call("run", str(tmp_path / "open.loom.yaml"), "-s", "open=env:HOME", "--json")
    assert json.loads(done.out)["final_state"]["open"] == "env:HOME"
    assert "warning: `open` isn't marked secret, so `env:HOME` stays a text" in done.err
    from agentloom.durable.dbos.archive import Archive
    from agentloom.durable.dbos.place import place_of

    workers.options = ("--env", "HOME")
    workers.begin(1)
    order = order_for(load_text(text), {"open": "x"}, "smuggled")
    forged = order._replace(input={**order.input, "environment": [{"path": ["open"], "variable": "HOME"}]})
    broken = order._replace(
        input={**order.input, "run_id": "broken", "environment": [{"path": [], "variable": "HOME"}]}
    )
    with Archive(place_of(workers.url)) as archive:
        for each, why in ((forged, "`open` isn't marked secret"), (broken, "`environment` of the order can't be read")):
            segment = archive.put(each, 1, QUEUE)
            archive.client.retrieve_workflow(segment).get_result(polling_interval_sec=0.05)
            assert why in str(archive.ended(segment).error)


def test_references_stand_at_any_depth() -> None:
    """Also in lists; what is put in their place changes nothing else."""
    state = {
        "a": {"key": "env:A"},
        "b": ["x", {"key": "env:B"}],
        "c": "env:C",
        "key": "env:no-name",
        "steps": {"key": "env:D"},
    }
    found = references_in(state, Redaction(("key",)))
    assert [(each.place, each.variable) for each in found] == [("a.key", "A"), ("b[1].key", "B")]
    values = put(state, ((each.path, each.variable.lower()) for each in found))
    assert values == {**state, "a": {"key": "a"}, "b": ["x", {"key": "b"}]}
    assert state["a"] == {"key": "env:A"}


def test_values_are_hidden_in_texts_keys_numbers_and_addresses() -> None:
    """Our own words stay, though a secret be the same."""
    hidden = Hidden(["12345678", "a b/cdefg", "finished"])
    data = {
        "x": [12345678, "is 12345678!", 1234567],
        "a b/cdefg": "?q=a%20b%2Fcdefg",
        "status": "finished",
        "kind": 1.5,
    }
    assert hidden.value(data) == {
        "x": ["<REDACTED:key>", "is <REDACTED:key>!", 1234567],
        "<REDACTED:key>": "?q=<REDACTED:key>",
        "status": "finished",
        "kind": 1.5,
    }
    assert not Hidden()
