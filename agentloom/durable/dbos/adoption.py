"""What older versions of agentloom began and nobody goes on with any more: asked for again, in this version."""

from __future__ import annotations

import logging
from contextlib import suppress

from agentloom.durable.dbos.archive import ADOPTED, Archive
from agentloom.durable.dbos.orders import HERE, INPUT_VERSION, QUEUE, RUN, Order, run_of
from agentloom.durable.dbos.received import order_of
from agentloom.durable.dbos.versions import OLDER, living, number_of
from agentloom.durable.journal import RunIsBusy

log = logging.getLogger(__name__)

LOOKS = 3
"""How many times in a row the workers of an older version must be found gone."""


class Adoption:
    """Goes on with the runs of older versions, in segments of this one, when the workers of their version are gone."""

    def __init__(self, archive: Archive, older: list[str] = OLDER) -> None:
        self._archive = archive
        self._older = older
        self._forsaken: dict[str, int] = {}

    def look(self) -> None:
        """Look once. Raises what the database raises; look again later."""
        if not self._older:
            return
        left = self._archive.client.list_workflows(
            name=RUN, status=["ENQUEUED", "PENDING"], app_version=self._older, load_input=False, load_output=False
        )
        is_file = self._archive.place.file is not None  # nobody else works on that
        alive = living(self._archive.place) if left and not is_file else set()
        segments = [status.workflow_id for status in left if number_of(status) not in alive]
        self._forsaken = {segment: self._forsaken.get(segment, 0) + 1 for segment in segments}
        for segment in segments:
            if is_file or self._forsaken[segment] >= LOOKS:
                self._adopt(segment)

    def _adopt(self, segment: str) -> None:
        """Ask for the rest of a segment, and then cancel it: who is killed in between has it done again by the next who looks."""
        archive = self._archive
        status = archive.status(segment)
        run_id, number = run_of(segment)
        order = dict(order_of(status.input["args"][0] if status.input else None, segment))
        order |= {"version": INPUT_VERSION, "lines": [*order["lines"], *archive.lines(segment)], ADOPTED: True}
        queue = QUEUE if status.queue_name in (None, HERE) else str(status.queue_name)
        with suppress(RunIsBusy):  # another worker was faster
            archive.put(Order(order, {}, [], None), number + 1, queue)
            log.info("Run %s goes on in segment %d: an older version began it", run_id, number + 1)
        archive.client.cancel_workflow(segment)
