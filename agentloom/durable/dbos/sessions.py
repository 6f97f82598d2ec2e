"""Connections to PostgreSQL that end when nobody answers: no cut link, dead machine or silent proxy holds a thread for ever."""

from __future__ import annotations

import os
import socket
import sqlite3
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from time import monotonic
from typing import Any
from weakref import WeakSet

import psycopg
import sqlalchemy

from agentloom.durable.dbos.place import Place

ANSWER_S = 30.0
"""How long an answer of the database may take, in seconds; the connection is given up then."""

DEAD_MS = 11_000
"""How long either side keeps a connection that the other doesn't acknowledge anything on, in milliseconds: 5 s idle, then 3 probes each 2 s."""

FROZEN_MS = 10_000
"""How long a process may do nothing inside a transaction, in milliseconds: one that is frozen there holds a run that others want to go on with."""

CONNECT_S = 5
RETRY_S = 0.5

_CLIENT: Mapping[str, Any] = {
    "connect_timeout": CONNECT_S,
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": DEAD_MS,
}
# Probes are for a connection that rests; where an answer is under way that nobody acknowledges, only `tcp_user_timeout` counts.
_SERVER = (
    "-c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3"
    f" -c tcp_user_timeout={DEAD_MS} -c idle_in_transaction_session_timeout={FROZEN_MS}"
)

# What a file says that is busy, that can't be read or written just now, or whose disk is full.
_PASSING = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
)


class Session(psycopg.Connection[Any]):
    """A connection whose every answer has to come within ``answer_s`` seconds. Notifications may be waited for as long as it takes."""

    answer_s = ANSWER_S
    _listens = False

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        _sessions.add(self)

    def __del__(self, *_: Any) -> None:
        """Warn of nothing, as psycopg would: a pool that was given up takes what a thread still had back, and forgets it.

        What is below it, `pgconn`, closes itself, and in no other process than its own.
        """

    def wait(self, gen: Any, *limits: Any, **named: Any) -> Any:
        """Wait for what the database answers. Raises ``OperationalError`` when nothing comes; the connection is closed then."""
        return super().wait(gen if self._listens else self._timed(gen), *limits, **named)

    def _timed(self, gen: Any) -> Generator[Any, Any, Any]:
        """Pass on what is to be waited for, and what has come: nothing several times a second, when nothing comes."""
        until = monotonic() + self.answer_s
        try:
            wanted = next(gen)
            while True:
                came = yield wanted
                if not came and monotonic() > until:
                    self.pgconn.finish()
                    raise psycopg.OperationalError(
                        f"connection failed: the database gave no answer in {self.answer_s:g} seconds"
                    )
                wanted = gen.send(came)
        except StopIteration as end:
            return end.value

    def notifies(
        self, *, timeout: float | None = None, stop_after: int | None = None
    ) -> Generator[psycopg.Notify, None, None]:
        """Yield notifications."""
        self._listens = True
        try:
            yield from super().notifies(timeout=timeout, stop_after=stop_after)
        finally:
            self._listens = False


_sessions: WeakSet[Session] = WeakSet()


def abandon() -> None:
    """Break every connection of this process: whoever waits for an answer gets an error at once."""
    for session in list(_sessions):
        with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(session.pgconn.socket)) as connection:
            connection.shutdown(socket.SHUT_RDWR)


def is_away(error: BaseException) -> bool:
    """Tell whether an error says that the database can't be reached, is going down or has no room: the same may work a moment later."""
    if isinstance(error, sqlalchemy.exc.TimeoutError):
        return True
    if isinstance(error, sqlalchemy.exc.DBAPIError):
        if error.connection_invalidated:
            return True
        error = error.orig or error
    if isinstance(error, sqlite3.OperationalError):
        return error.sqlite_errorcode & 0xFF in _PASSING
    if not isinstance(error, psycopg.OperationalError):
        return False
    state = error.sqlstate or "08"
    return state[:2] in ("08", "53", "57") and state != "57014"


def session_of(place: Place, answer_s: float) -> Session:
    """Connect, for statements of one's own. Raises ``psycopg.Error``."""
    given = psycopg.conninfo.conninfo_to_dict(place.url)
    session = Session.connect(autocommit=True, **_settings(given))
    session.answer_s = answer_s
    return session


def engine_of(
    place: Place, size: int, is_over: Callable[[], bool] | None = None, patience_s: float = 0.0
) -> sqlalchemy.Engine | None:
    """Return a pool of so many connections for DBOS; None for a SQLite file, for which it makes its own.

    A connection that can't be made is tried again for ``patience_s`` seconds, until ``is_over``: DBOS by itself waits twice as long after each
    failure, up to a minute.
    """
    if place.file is not None:
        return None
    url = sqlalchemy.make_url(place.url).set(drivername="postgresql+psycopg")
    engine = sqlalchemy.create_engine(url, pool_size=size, max_overflow=0, pool_timeout=30, pool_pre_ping=True)

    @sqlalchemy.event.listens_for(engine, "do_connect")
    def connect(_dialect: object, _record: object, _arguments: object, given: Mapping[str, Any]) -> Session:
        pause, until = threading.Event(), monotonic() + patience_s
        while True:
            try:
                return Session.connect(**_settings(given))
            except psycopg.OperationalError as error:
                if error.sqlstate is not None or monotonic() >= until or (is_over is not None and is_over()):
                    raise
                pause.wait(RETRY_S)

    return engine


def _settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return how to connect: what the address says comes first."""
    return {**_CLIENT, **given, "options": f"{_SERVER} {given.get('options') or ''}".strip()}
