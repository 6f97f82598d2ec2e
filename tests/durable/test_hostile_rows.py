"""Rows that somebody wrote into the database by hand: each costs its own run, and never a worker."""

from __future__ import annotations

import base64
import json
import pickle
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agentloom.core.loader import load_text
from agentloom.durable.dbos.archive import Archive
from agentloom.durable.dbos.listing import ALIVE
from agentloom.durable.dbos.orders import QUEUE, order_for
from agentloom.durable.dbos.place import Place, place_of
from tests.durable.crew import Workers

GOOD = """\
name: good
steps:
  - {id: a, type: llm_call, prompt: Write., output: a}
config: {provider: mock}
"""
TWICE = {"id": "a", "type": "llm_call", "prompt": "x"}


class Bomb:
    """Leaves a file when it is read as a pickle."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return Path.touch, (self.file,)


def spoiled(order: dict[str, Any], **changes: Any) -> str:
    """Return the input of a row with other fields."""
    return json.dumps({"positionalArgs": [{**order, **changes}], "namedArgs": {}})


def rows(order: dict[str, Any], bomb: Path) -> dict[str, tuple[str, str, str]]:
    """Return what to write, by the run: the input, how DBOS is told to read it, and what has to be said of it."""
    plain = "portable_json"
    deep = "[" * 100_000 + "]" * 100_000
    nested = '{"positionalArgs":[' + json.dumps({**order, "run_id": "nested"})[:-1] + ',"x":' + "[" * 900 + "]" * 900
    steps = [{**TWICE, "depends_on": ["none"]}]
    pickled = base64.b64encode(pickle.dumps(Bomb(bomb))).decode()
    return {
        "pickle": (pickled, "py_pickle", "isn't JSON"),
        "unheard-of": ("x", "mystery", "isn't JSON"),
        "binary": (pickled, plain, "the worker failed"),
        "cut-off": ('{"positionalArgs":[{', plain, "the worker failed"),
        "deep": (f'{{"positionalArgs":[{deep}]}}', plain, "the worker failed"),
        "nested": (nested + "}]}", plain, "nests deeper than 200"),
        "nothing": ('{"positionalArgs":[]}', plain, "segment `nothing~1` can't be read: it is no mapping"),
        "text": ('{"positionalArgs":["good"]}', plain, "segment `text~1` can't be read: it is no mapping"),
        "old": (spoiled(order, run_id="old", version=None), plain, "it has no version"),
        "newer": (spoiled(order, run_id="newer", version=7), plain, "was asked for by a newer agentloom (version 7"),
        "state": (spoiled(order, run_id="state", state=["x"]), plain, "`state` is missing or of another type"),
        "other": (spoiled(order, run_id="../../etc/x"), plain, "its id is no segment's of that run"),
        "lines": (spoiled(order, run_id="lines", lines=["[1]"]), plain, "segment `lines~1` can't be read"),
        "header": (spoiled(order, run_id="header", lines=['{"kind": "run"}']), plain, "segment `header~1` can't be read"),
        "seed": (spoiled(order, run_id="seed", seed={"run_id": 1}), plain, "it is no checkpoint"),
        "until": (spoiled(order, run_id="until", until="z"), plain, "`z`"),
        "yaml": (spoiled(order, run_id="yaml", definition={"name": 5, "steps": "x"}), plain, "AL105"),
        "rules": (spoiled(order, run_id="rules", definition={"name": "n", "steps": steps}), plain, "AL202"),
        "number": (spoiled(order, run_id="number", state={"x": float("nan")}), plain, "which JSON has no number for"),
    }  # fmt: skip


def write_by_hand(place: Place, written: dict[str, tuple[str, str, str]]) -> None:
    """Put the inputs into the rows of the first segments, and another id into one of them."""
    wanted = [
        *(("workflow_input SET inputs", text, f"{run_id}~1") for run_id, (text, _, _) in written.items()),
        *(("workflow_status SET serialization", kind, f"{run_id}~1") for run_id, (_, kind, _) in written.items()),
        ("workflow_status SET workflow_uuid", "../../x", "stray~1"),
    ]
    if place.file is not None:
        with closing(sqlite3.connect(place.file)) as session, session:
            for what, value, segment in wanted:
                session.execute(f"UPDATE {what} = ? WHERE workflow_uuid = ?", (value, segment))
        return
    import psycopg

    with psycopg.connect(place.url, autocommit=True) as server:
        for what, value, segment in wanted:
            server.execute(f"UPDATE agentloom.{what} = %s WHERE workflow_uuid = %s".encode(), (value, segment))


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_what_stands_in_the_database_costs_its_own_run(
    kind: str, tmp_path: Path, sqlite: str, new_postgres: Callable[[], str]
) -> None:
    """Garbage, pickles, other versions, wrong types, rules broken: that run ends, in words, and the worker does the next."""
    workers = Workers(sqlite if kind == "sqlite" else new_postgres(), tmp_path, 0)
    place, bomb = place_of(workers.url), tmp_path / "exploded"
    document = load_text(GOOD)
    written = rows(order_for(document, {}, "x").input, bomb)
    with closing(Archive(place, migrate=True)) as archive:
        for run_id in [*written, "stray"]:
            archive.put(order_for(document, {}, run_id), 1, QUEUE)
    write_by_hand(place, written)
    try:
        workers.ready(worker := workers.start())
        with closing(Archive(place)) as archive:
            good = archive.put(order_for(document, {}, "good"), 1, QUEUE)
            pause = threading.Event()
            while any(
                archive.status(segment).status in ALIVE for segment in [f"{name}~1" for name in written] + [good]
            ):
                assert worker.poll() is None
                pause.wait(0.05)
            said = {run_id: archive.ended(f"{run_id}~1") for run_id in written}
            assert {
                run_id: ended.error for run_id, ended in said.items() if written[run_id][2] not in str(ended.error)
            } == {}
            assert archive.ended(good).result.status == "success"  # type: ignore[union-attr]
            listed = {run.run_id: run.status for run in archive.rows()}
            assert set(listed) == {*written, "good"}
            assert {status for run_id, status in listed.items() if run_id != "good"} == {"failed"}
        assert worker.poll() is None
        assert not bomb.exists()
    finally:
        workers.end()
