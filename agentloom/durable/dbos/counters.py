"""Counts the calls to limited providers: in the database for all of its workers, or in memory for the one worker of a file.

Calls are spread evenly: each moves the moment at which the next may begin by its share of a minute, and what is allowed in ``LEAD_S``
seconds may come together. Slots are session-level advisory locks, so whoever dies gives its slots back, and no clock decides who is dead.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple, Protocol

from agentloom.durable.dbos.place import Place
from agentloom.durable.dbos.sessions import Session, session_of
from agentloom.durable.dbos.tables import DEBT_S, FULL, RATES, TAKE_TURNS
from agentloom.providers.rates import Limit

ANSWER_S = 10.0
"""How long an answer may take here, in seconds."""

LEAD_S = 0.1
"""So many seconds' worth of calls may come together: what looks in intervals must not lose any."""


class Taken(NamedTuple):
    """How many of the calls that wait may begin, with which slots, and in how many seconds it is worth asking again.

    ``is_told`` says that others can see that this process waits for a slot, until it tells them otherwise.
    """

    calls: int
    slots: Sequence[int]
    wait_s: float
    is_told: bool


class Counter(Protocol):
    """Counts calls. Whatever a method raises, what it was asked may have happened or not."""

    def open(self, held: Mapping[str, Collection[int]]) -> dict[str, set[int]]:
        """Begin, or begin anew; return those of the slots held before that are held again."""
        ...

    def take(self, name: str, limit: Limit, held: Collection[int], tokens: Sequence[int], is_told: bool) -> Taken:
        """Take turns for calls with so many tokens each, the first ones first; ``held`` are the slots that this process has."""
        ...

    def give_back(self, name: str, limit: Limit, slots: Sequence[int], said: int) -> bool:
        """Give slots back, and count the tokens of replies; tell whether other processes wait for a slot."""
        ...

    def wait_no_more(self, name: str) -> None:
        """Tell the others that this process doesn't wait for a slot any more."""
        ...

    def check(self) -> None:
        """Raise when slots are held no longer."""
        ...

    def close(self) -> None:
        """End; all slots are free."""
        ...


class InMemory:
    """Counts for this process."""

    def __init__(self) -> None:
        self._next: dict[str, tuple[float, float]] = {}

    def open(self, held: Mapping[str, Collection[int]]) -> dict[str, set[int]]:
        """Nothing can be lost."""
        return {name: set(slots) for name, slots in held.items()}

    def take(self, name: str, limit: Limit, held: Collection[int], tokens: Sequence[int], is_told: bool) -> Taken:
        """Take turns."""
        requests, amounts = self._next.get(name, (0.0, 0.0))
        now = time.monotonic()
        slots: list[int] = []
        calls, wait = 0, 0.0
        free = iter(slot for slot in range(1, (limit.concurrent or 0) + 1) if slot not in held)
        for amount in tokens:
            wait = max(0.0, requests - now - _lead(limit.requests), amounts - now - _lead(limit.tokens))
            if wait > 0:
                break
            if limit.concurrent is not None:
                slot = next(free, None)
                if slot is None:
                    wait = FULL
                    break
                slots.append(slot)
            calls += 1
            requests = max(requests, now) + _share(limit.requests)
            amounts = max(amounts, now) + amount * _share(limit.tokens)
        self._next[name] = requests, amounts
        return Taken(calls, slots, wait, is_told)

    def give_back(self, name: str, limit: Limit, slots: Sequence[int], said: int) -> bool:
        """Count tokens; whoever holds slots knows them."""
        requests, amounts = self._next.get(name, (0.0, 0.0))
        now = time.monotonic()
        self._next[name] = requests, min(max(amounts, now) + said * _share(limit.tokens), now + DEBT_S)
        return False

    def wait_no_more(self, name: str) -> None:
        """There are no others."""

    def check(self) -> None:
        """Nothing can be lost."""

    def close(self) -> None:
        """There is nothing to close."""


# Whoever waits for a slot shares lock 0, which nobody else can have alone then.
_GIVE_BACK = """
SELECT count(pg_advisory_unlock(%(base)s + slot)),
    NOT CASE WHEN pg_try_advisory_lock(%(base)s) THEN pg_advisory_unlock(%(base)s) ELSE false END
FROM unnest(%(slots)s::int[]) AS slot
"""
_SAID = f"""
UPDATE {RATES} SET tokens_at = least(
    greatest(tokens_at, extract(epoch FROM clock_timestamp())::float8) + %s, extract(epoch FROM clock_timestamp())::float8 + {DEBT_S}
) WHERE name = %s
"""


class InDatabase:
    """Counts for all workers of a PostgreSQL database, in one session of its own."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._session: Session | None = None

    def open(self, held: Mapping[str, Collection[int]]) -> dict[str, set[int]]:
        """Connect, and take the slots again."""
        self.close()
        session = session_of(self._place, ANSWER_S)
        self._session = session
        found: dict[str, set[int]] = {}
        for name, slots in held.items():
            asked = "SELECT slot FROM unnest(%s::int[]) AS slot WHERE pg_try_advisory_lock(%s + slot)"
            rows = session.execute(asked.encode(), (list(slots), _base(name))).fetchall()
            found[name] = {row[0] for row in rows}
        return found

    def take(self, name: str, limit: Limit, held: Collection[int], tokens: Sequence[int], is_told: bool) -> Taken:
        """Take turns."""
        row = self._opened.execute(
            f"SELECT calls, slots, wait_s, is_told FROM {TAKE_TURNS}("
            "%s, %s, %s, %s, %s, %s, %s::bigint, %s::int[], %s::bigint[], %s)".encode(),
            (
                name,
                _share(limit.requests),
                _share(limit.tokens),
                _lead(limit.requests),
                _lead(limit.tokens),
                limit.concurrent,
                _base(name),
                list(held),
                list(tokens),
                is_told,
            ),
        ).fetchone()
        assert row is not None
        return Taken(*row)

    def give_back(self, name: str, limit: Limit, slots: Sequence[int], said: int) -> bool:
        """Unlock, look whether others wait, and count."""
        others_wait = False
        if slots:
            row = self._opened.execute(_GIVE_BACK.encode(), {"base": _base(name), "slots": list(slots)}).fetchone()
            others_wait = row is not None and row[1]
        if said and limit.tokens is not None:
            self._opened.execute(_SAID.encode(), (said * _share(limit.tokens), name))
        return others_wait

    def wait_no_more(self, name: str) -> None:
        """Let go of the lock that tells."""
        self._opened.execute(b"SELECT pg_advisory_unlock_shared(%s)", (_base(name),))

    def check(self) -> None:
        """Ask the session whether it lives."""
        self._opened.execute(b"SELECT 1")

    def close(self) -> None:
        """Disconnect, which frees all slots."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    @property
    def _opened(self) -> Session:
        if self._session is None:
            raise ConnectionError("not connected")
        return self._session


def _share(a_minute: int | None) -> float:
    """Return how many seconds of a minute one request or token takes."""
    return 60 / a_minute if a_minute else 0.0


def _lead(a_minute: int | None) -> float:
    """Return by how many seconds a call may be early."""
    return max(0.0, LEAD_S - _share(a_minute))


def _base(name: str) -> int:
    """Return the number of a provider's slot 0: locks of one number of 64 bits, which those of two numbers never meet."""
    number = int.from_bytes(sha256(f"agentloom slot {name}".encode()).digest()[:8], "big", signed=True)
    return number >> 20 << 20
