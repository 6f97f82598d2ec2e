"""What every version has written down is read by this one, and nobody writes something else under the name of a version that is out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentloom.checkpointing import CheckpointData, FileCheckpointer
from agentloom.core.engine import WorkflowEngine
from agentloom.core.keeping import journal_of, load_run
from agentloom.core.results import WorkflowResult
from agentloom.durable.dbos.orders import Order, segment_id
from agentloom.durable.dbos.wire import event_from_wire, result_from_wire
from agentloom.durable.journal import VERSION, read_journal
from agentloom.errors import CheckpointSchemaError
from tests.durable.golden_runs import (
    BUSY,
    CASES,
    FOLDER,
    Database,
    Player,
    database,
    differences,
    gateway_of,
    lost,
    plain,
    read,
    record,
    tools,
)

CURE = (
    "journals and orders are written otherwise than before under the same version, and workers of both would go on with each other's runs:"
    " raise `VERSION` in agentloom/durable/journal.py, keep reading the older ones, and record the new version with"
    " `python -m tests.durable.golden_runs`"
)
HELD = [
    (version, name, number)
    for version in range(1, VERSION + 1)
    for name in sorted(path.stem for path in (FOLDER / str(version)).glob("*.json"))
    for number in range(len(read(version, name)["segments"]))
]
"""Every segment that is held: version, case, and number from 0."""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """A database in a file, with a worker."""
    with database(tmp_path_factory.mktemp("golden")) as found:
        yield found


def test_every_version_is_held() -> None:
    """From the first to today's, each with runs that use everything; no version comes after today's."""
    assert {path.name for path in FOLDER.iterdir()} == {str(number) for number in range(1, VERSION + 1)}
    assert {path.stem for path in (FOLDER / str(VERSION)).iterdir()} == set(CASES), CURE
    assert {"run", "resumed", "started", "spent", "failed", "outcome", "end"} <= {
        json.loads(line)["kind"]
        for _, name, number in HELD
        for line in read(VERSION, name)["segments"][number]["lines"]
    }


@pytest.mark.parametrize("name", CASES)
def test_what_is_written_today_is_what_is_held(base: Database, name: str) -> None:
    """Lines, their order, names and the order of names, in a database and in a file; and the orders of segments."""
    held, made = read(VERSION, name), record(name, CASES[name], base)
    found = differences(held, made)
    for number, (old, new) in enumerate(zip(held["segments"], made["segments"], strict=True), start=1):
        for part in ("output", "events"):  # commands of other versions read them, and leave out what they don't know
            found += lost(old[part], new[part], f"segment {number}, {part}")
    assert not found, "\n".join([CURE, *found])


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: [lines[0], lines[2], lines[1], *lines[3:]],
        lambda lines: [line.replace('"own_cost_usd"', '"own_cost"') for line in lines],
        lambda lines: [line.replace('"path": "a", "n": 1', '"n": 1, "path": "a"') for line in lines],
        lambda lines: lines[:-1],
    ],
    ids=["order", "name", "order-of-names", "fewer"],
)
def test_a_change_under_the_same_version_is_seen(change: Any) -> None:
    """The comparison can fail."""
    held = read(VERSION, "children")
    made = deepcopy(held)
    made["segments"][0]["lines"] = change(held["segments"][0]["lines"])
    assert made != held
    assert len(differences(held, made)) == 1


@pytest.mark.parametrize(("version", "name", "number"), HELD)
def test_a_file_is_gone_on_with_after_every_line(tmp_path: Path, version: int, name: str, number: int) -> None:
    """A journal that was cut off anywhere comes to the same end as one that wasn't, and what it holds isn't done again."""
    case = read(version, name)
    segment = case["segments"][number]
    lines = [line for line in segment["file"] if json.loads(line)["kind"] != "end"]
    for upto in range(1, len(lines) + 1):
        store = FileCheckpointer(tmp_path / str(upto))
        store.folder.mkdir()
        held = lines[:upto]
        journal_of(store, name).write_text("".join(f"{line}\n" for line in held), encoding="utf-8")
        player = Player(case["answers"], held)

        async def go(store: FileCheckpointer, player: Player) -> WorkflowResult:
            data = load_run(store, name)
            engine = await WorkflowEngine.from_checkpoint(data, store, gateway_of(player), tools())
            return await engine.run(segment["secrets"])

        check(segment, held, player, anyio.run(go, store, player))


@pytest.mark.parametrize(("version", "name", "number"), HELD)
def test_an_order_is_performed_from_every_stage(base: Database, version: int, name: str, number: int) -> None:
    """As it was asked for, and with the lines of a journal that was cut off at its beginning, in its middle and at its end."""
    case = read(version, name)
    segment = case["segments"][number]
    lines = [line for line in segment["lines"] if json.loads(line)["kind"] != "end"]
    for upto in (0, 1, len(lines) // 2, len(lines)):
        held = [*segment["order"]["lines"], *lines[:upto]]
        order = Order({**segment["order"], "lines": held}, segment["secrets"], [], None)
        player = Player(case["answers"], held)
        as_number = 1000 + upto
        check(segment, held, player, base.perform(order, as_number, player))
        base.worker.archive.client.delete_workflow(segment_id(name, as_number))


@pytest.mark.parametrize(("version", "name", "number"), HELD)
def test_ends_and_events_of_every_version_are_read(version: int, name: str, number: int) -> None:
    """By whoever follows a run that an older or a newer worker performs; also where there is more than this version knows."""
    segment = read(version, name)["segments"][number]
    for more in ({}, {"of_a_later_version": 1}):
        result = result_from_wire({**segment["output"]["result"], **more})
        assert plain(result) == segment["end"]
        data = CheckpointData.from_dict({**segment["output"]["checkpoint"], **more})
        assert (data.run_id, data.status) == (name, segment["end"][0])
        events = [event_from_wire({**event, **more}, name) for event in segment["events"]]
        assert [event.name for event in events if event is not None] == [event["event"] for event in segment["events"]]
    assert event_from_wire({"event": "of_a_later_version"}, name) is None


def check(segment: Mapping[str, Any], held: list[str], player: Player, result: WorkflowResult) -> None:
    """Compare an end with the one that is held, and what was called with what the lines hold."""
    lines = [json.loads(line) for line in held]
    done = {line["path"] for line in lines if line["kind"] == "outcome" and line["result"]["status"] == "success"}
    restarts = any(
        "." in path and BUSY in answers for path, answers in player.answers.items()
    )  # a child from its beginning
    again = {path for path in player.calls if path in done and not (restarts and "." in path)}
    assert not again, again
    if segment["end"][0] == "budget_exceeded":  # what was cut off is paid again, and the money is gone sooner
        assert result.status == "budget_exceeded"
    else:
        assert plain(result) == segment["end"]


def test_a_journal_of_the_next_version_says_what_it_is(tmp_path: Path) -> None:
    """Nothing of it is read by this one."""
    store = FileCheckpointer(tmp_path)
    first, *rest = read(VERSION, "children")["segments"][0]["file"]
    line = json.dumps({**json.loads(first), "version": VERSION + 1})
    path = journal_of(store, "children")
    path.write_text("\n".join([line, *rest, ""]), encoding="utf-8")
    for looked in (lambda: read_journal(path), lambda: load_run(store, "children")):
        with pytest.raises(CheckpointSchemaError) as refused:
            looked()
        assert f"it was written by a newer agentloom (version {VERSION + 1}, this one reads {VERSION})" in str(
            refused.value
        )
