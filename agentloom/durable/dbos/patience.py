"""Waiting for a database that is away: whoever waits for a run asks again, for a while."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from time import monotonic
from typing import TypeVar

from agentloom.durable.dbos.place import Place
from agentloom.durable.dbos.sessions import is_away
from agentloom.errors import WorkflowError

log = logging.getLogger(__name__)
_Answer = TypeVar("_Answer")

AGAIN_S = 1.0
"""After what time a database that is away is asked again, in seconds."""

GIVE_UP_S = 600.0
"""How long whoever waits for a run waits for a database that is away, in seconds."""


class Unreachable(WorkflowError):
    """The database was away for too long."""


class Away:
    """Counts how long a database is away from somebody who waits for a run, ``patience_s`` seconds at most."""

    def __init__(self, place: Place, run_id: str, patience_s: float = GIVE_UP_S) -> None:
        self._place = place
        self._run_id = run_id
        self._patience_s = patience_s
        self._since: float | None = None

    def pause_s(self, error: Exception) -> float:
        """Return when to ask again, in seconds. Raises the error when that is no cure, ``WorkflowError`` when it has lasted too long."""
        if self._place.file is not None or not is_away(error):
            raise error
        if self._since is None:
            self._since = monotonic()
            if self._patience_s >= 60:
                log.warning(
                    "`%s` can't be reached; waits for it, %g minutes at most", self._place.name, self._patience_s / 60
                )
        if monotonic() - self._since >= self._patience_s:
            raise Unreachable(
                f"`{self._place.name}` can't be reached for {self._patience_s / 60:g} minutes;"
                f" `agentloom runs show {self._run_id}` tells later how the run went"
            ) from None
        return AGAIN_S

    def is_back(self) -> None:
        """Take note that it answers."""
        self._since = None


def patiently(away: Away, ask: Callable[[], _Answer]) -> _Answer:
    """Return the answer to a question that is asked again as long as the database is away. Raises as ``Away.pause_s`` does."""
    while True:
        try:
            return ask()
        except Exception as error:
            time.sleep(away.pause_s(error))
