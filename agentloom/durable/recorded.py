"""What a journal holds, read line by line: outcomes, attempts, and what was spent, over all lives of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

JSON = Any


class Spend(NamedTuple):
    """Money in US dollars, and tokens."""

    cost_usd: float = 0.0
    tokens: int = 0

    def plus(self, other: Spend) -> Spend:
        """Return both together."""
        return Spend(self.cost_usd + other.cost_usd, self.tokens + other.tokens)

    def minus(self, other: Spend) -> Spend:
        """Return what is left without the other."""
        return Spend(self.cost_usd - other.cost_usd, self.tokens - other.tokens)


NOTHING = Spend()


@dataclass(slots=True)
class Recorded:
    """What a journal holds. ``outcomes`` are the latest by path; ``attempts`` the number of the last attempt, ``open`` whether it has no end.

    ``spent`` adds up every call, those of attempts without an end too; ``complete`` tells that the run came to an end.
    """

    header: dict[str, JSON]
    outcomes: dict[str, dict[str, JSON]] = field(default_factory=dict)
    attempts: dict[str, int] = field(default_factory=dict)
    open: dict[str, bool] = field(default_factory=dict)
    paused_since: dict[str, str] = field(default_factory=dict)
    parents: dict[str, bool] = field(default_factory=dict)
    """The paths of the subworkflow steps below which there are outcomes, each with true."""
    spent: Spend = NOTHING
    below: dict[str, Spend] = field(default_factory=dict)
    """What the steps below a subworkflow step have spent in its last attempt, by the step's path, as long as that goes on."""
    under_way: dict[str, Spend] = field(default_factory=dict)
    """What attempts without an end have spent, by path."""
    complete: bool = False
    length: int = 0
    """Bytes up to the end of the last whole line."""
    is_damaged: bool = False
    """Whether more follows than a last line that was cut off: no kill leaves that."""

    @classmethod
    def begun(cls, header: dict[str, JSON]) -> Recorded:
        """Return what a journal with this first line begins with: what the checkpoint held that the run went on from."""
        attempts, inside, below = (_mapping(header.get(name)) for name in ("attempts", "inside", "spent_inside"))
        found = cls(header)
        found.attempts = {path: number for path, number in attempts.items() if isinstance(number, int)}
        found.outcomes = {path: result for path, result in inside.items() if isinstance(result, dict)}
        for path in found.outcomes:
            found.parents.update(above(path))
        for path, spent in below.items():
            if isinstance(spent, dict):
                found.below[path] = Spend(_money(spent.get("cost_usd")), _count(spent.get("tokens")))
        return found

    @property
    def whole(self) -> Spend:
        """What the run has spent in all, also before this journal was begun."""
        return Spend(_money(self.header.get("total_cost_usd")), _count(self.header.get("total_tokens"))).plus(
            self.spent
        )

    def next_attempt(self, path: str) -> int:
        """Return the number of an operation's next attempt: that of one that was cut off again, else one more than the last."""
        last = self.attempts.get(path, 0)
        return last if self.open.get(path) else last + 1

    def ended_attempts(self) -> dict[str, int]:
        """Return the number of the last attempt that has an end, by path: one that was cut off comes again under its own number."""
        ended = {path: number - 1 if self.open.get(path) else number for path, number in self.attempts.items()}
        return {path: number for path, number in ended.items() if number > 0}

    def starts(self, path: str, number: int) -> None:
        """Take in that an attempt begins. What one that was cut off has spent stays spent."""
        self.attempts[path], self.open[path] = number, True
        self.under_way.pop(path, None)

    def spends(self, path: str, spend: Spend) -> None:
        """Take in what a call cost inside an attempt that goes on."""
        self.under_way[path] = self.under_way.get(path, NOTHING).plus(spend)
        self._add(path, spend)

    def ends(self, path: str, spend: Spend, goes_on: bool = False) -> None:
        """Take in that an attempt has ended, and what it cost in all, without steps below. Its steps below go on, or are done with."""
        self.open[path] = False
        self._add(path, spend.minus(self.under_way.pop(path, NOTHING)))
        if not goes_on:
            self.below.pop(path, None)

    def forget_below(self, path: str) -> None:
        """Forget the outcomes of the steps below a subworkflow step: its next attempt begins with the first of them."""
        if path in self.parents:  # to look through all outcomes at each failure would cost their square
            begin = f"{path}."
            for found in (self.outcomes, self.below):
                for name in [name for name in found if name.startswith(begin)]:
                    del found[name]

    def take(self, line: Mapping[str, JSON]) -> None:
        """Take in a line after the first; what isn't known is left out."""
        kind, path, number = line.get("kind"), line.get("path"), line.get("n")
        if kind == "end":
            self.complete = True
        elif kind == "resumed":
            self.header.update({key: value for key, value in line.items() if key != "kind"})
        elif not isinstance(path, str):
            return
        elif kind == "started" and isinstance(number, int):
            self.starts(path, number)
        elif kind == "spent":
            self.spends(path, Spend(_money(line.get("cost_usd")), _count(line.get("tokens"))))
        elif kind == "failed" and isinstance(number, int):
            self.attempts[path] = number
            self.ends(path, Spend(_money(line.get("cost_usd")), _count(line.get("tokens"))))
            self.forget_below(path)
        elif kind == "outcome" and isinstance(result := line.get("result"), dict):
            self._take_outcome(path, result, line)

    def _take_outcome(self, path: str, result: dict[str, JSON], line: Mapping[str, JSON]) -> None:
        status, cut_short = result.get("status"), bool(line.get("cut_short"))
        self.outcomes[path] = result
        self.parents.update(above(path))
        goes_on = cut_short or status in ("paused", "timeout")
        self.ends(path, Spend(_money(line.get("own_cost_usd")), _count(line.get("own_tokens"))), goes_on)
        if status == "failed" and not cut_short:
            self.forget_below(path)
        self.paused_since.pop(path, None)
        if isinstance(since := line.get("paused_since"), str):
            self.paused_since[path] = since

    def _add(self, path: str, spend: Spend) -> None:
        if spend != NOTHING:
            self.spent = self.spent.plus(spend)
            for parent, _ in above(path):
                self.below[parent] = self.below.get(parent, NOTHING).plus(spend)


def above(path: str) -> Iterator[tuple[str, bool]]:
    """Yield the paths of the subworkflow steps above a step, each with true."""
    at = path.find(".")
    while at >= 0:
        yield path[:at], True
        at = path.find(".", at + 1)


def _mapping(value: JSON) -> dict[str, JSON]:
    return value if isinstance(value, dict) else {}


def _money(cost: JSON) -> float:
    return float(cost) if isinstance(cost, int | float) and 0 <= cost < 1e300 else 0.0


def _count(tokens: JSON) -> int:
    return int(tokens) if isinstance(tokens, int | float) and 0 <= tokens < 1e15 else 0
