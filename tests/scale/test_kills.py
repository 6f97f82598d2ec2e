"""Workers killed over and over in the middle of runs whose effects somebody else counts."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter, defaultdict
from contextlib import ExitStack, closing
from pathlib import Path
from random import Random

import pytest

from agentloom.core.loader import load_workflow
from agentloom.durable.dbos.archive import Archive
from agentloom.durable.dbos.orders import QUEUE, order_for
from agentloom.durable.dbos.place import place_of
from tests.durable.crew import Workers
from tests.scale.receiver import Receiver, build

KILLS = int(os.environ.get("KILLS", "200"))
AT_ONCE = 6
"""How many runs are under way."""
EARLY = 0.05
"""How often a worker may be killed that has taken runs and hasn't come to their steps."""
LAYERS, WIDE = 10, 5


@pytest.mark.timeout(1800)
def test_nothing_is_lost_over_hundreds_of_kills(tmp_path: Path, workers: Workers) -> None:
    """Every run ends well, no step comes again after its outcome was written down, and each has one effect at the receiver."""
    document = load_workflow(build(tmp_path, LAYERS, WIDE))
    random = Random(8)
    pause = threading.Event()
    killed: set[str] = set()
    segments: list[str] = []
    with ExitStack() as stack:
        receiver = stack.enter_context(Receiver(0.1))
        workers.environment["RECEIVER"] = receiver.url
        workers.options = ("--concurrency", "3")
        workers.begin(3)
        archive = stack.enter_context(closing(Archive(place_of(workers.url))))
        while len(killed) < KILLS:
            listed = archive.client.list_workflows(status=["PENDING", "ENQUEUED"], load_input=False, load_output=False)
            for _ in range(AT_ONCE - len(listed)):
                name = f"run{len(segments)}"
                segments.append(archive.put(order_for(document, {"name": name}, name), 1, QUEUE))
            performers = {str(status.executor_id) for status in listed if status.status == "PENDING"}
            asking = receiver.workers
            early = random.random() < EARLY
            busy = [
                process for process in workers.running
                if any(f"-{process.pid}-" in name for name in performers)
                and (early or workers.names[process.pid] in asking)
            ]  # fmt: skip
            if not busy:
                pause.wait(0.1)
                continue
            pause.wait(random.random() * 0.6)
            victim = random.choice(busy)
            victim.kill()
            victim.communicate()
            workers.running.remove(victim)
            killed.add(workers.names[victim.pid])
            workers.start()
        for segment in segments:
            archive.client.retrieve_workflow(segment).get_result(polling_interval_sec=0.1)
            result = archive.ended(segment).result
            assert result is not None, archive.ended(segment).error
            assert result.status == "success", result.error
            lines = [json.loads(line) for line in archive.lines(segment)]
            outcomes = Counter(line["path"] for line in lines if line["kind"] == "outcome")
            assert len(outcomes) == LAYERS * WIDE
            assert set(outcomes.values()) == {1}, "what was written down as done was done again"
    accepted = receiver.accepted
    assert len(accepted) == len(segments) * LAYERS * WIDE
    assert set(accepted.values()) == {1}, "a step asked for its effect under two keys"
    askers: dict[str, list[str]] = defaultdict(list)
    for request in receiver.requests:
        askers[request.key].append(request.worker)
    repeated = [names for names in askers.values() if len(names) > 1]
    assert repeated, "no kill hit a step under way"
    for names in repeated:
        assert len(set(names)) == len(names), "a worker did a step twice"
        assert set(names[:-1]) <= killed, "a step came again, though its worker lived"
    print(
        f"{KILLS} kills, {len(segments)} runs, {len(receiver.requests)} requests, {len(repeated)} steps asked for again"
    )
