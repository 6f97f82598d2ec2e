"""What a run may spend and how long it may take: one ledger and one deadline, handed down to the workflows below it."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import anyio

from agentloom.core.results import NO_USAGE
from agentloom.core.runner import Halt
from agentloom.errors import BudgetExceededError
from agentloom.providers.base import Usage
from agentloom.records import record

DIGITS = 12
"""Sums of money are compared to so many decimal places: three calls of 0.1 dollars are 0.3, not 0.30000000000000004."""


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Ledger:
    """What a workflow has spent, in US dollars, and what it may spend; None for no limit of its own.

    What is spent in a child counts for its parents too. ``usage`` adds up the tokens. A resumed run's ledger goes on from what was spent.
    """

    limit: float | None = None
    parent: Ledger | None = None
    spent: float = 0.0
    usage: Usage = NO_USAGE

    def add(self, cost: float, usage: Usage) -> None:
        """Count the cost and the tokens of calls that were made."""
        self.spent += cost
        self.usage = add_usage(self.usage, usage)
        if self.parent is not None:
            self.parent.add(cost, usage)

    @property
    def exceeded(self) -> Ledger | None:
        """The nearest ledger whose limit is passed: its own, or one of those above."""
        if self.limit is not None and round(self.spent - self.limit, DIGITS) > 0:
            return self
        return self.parent.exceeded if self.parent is not None else None

    @property
    def reached(self) -> Ledger | None:
        """The nearest ledger whose limit is reached: nothing may start any more."""
        if self.limit is not None and round(self.spent - self.limit, DIGITS) >= 0:
            return self
        return self.parent.reached if self.parent is not None else None


@record()
class Limits:
    """The limits of one workflow in a run. ``deadline`` is a time of the event loop's clock; ``timeout`` what it comes from, in seconds.

    ``inherited`` tells that they are those of the workflow above.
    """

    ledger: Ledger
    deadline: float = inf
    timeout: float = 0.0
    inherited: bool = False

    def before(self) -> Halt | None:
        """Tell why a step may not start."""
        if self.ledger.reached is not None:
            return Halt.BUDGET
        return self._over()

    def after(self) -> Halt | None:
        """Tell why the run has to stop after a step ended."""
        if self.ledger.exceeded is not None:
            return Halt.BUDGET
        return self._over()

    def _over(self) -> Halt | None:
        return Halt.TIMEOUT if self.deadline < inf and anyio.current_time() >= self.deadline else None

    def error(self, halt: Halt) -> str:
        """Return what is said of a run that was halted."""
        if halt is Halt.TIMEOUT:
            return f"Workflow timed out after {float(self.timeout)}s"
        ledger = self.ledger.exceeded or self.ledger.reached or self.ledger
        return str(BudgetExceededError(ledger.spent, ledger.limit or 0.0))

    def below(self, budget: float | None, timeout: float | None, spent: float = 0.0, tokens: int = 0) -> Limits:
        """Return the limits of a child: it spends its parent's money, up to a limit of its own, and ends no later than its parent.

        ``spent`` and ``tokens`` are what it has used before, in an earlier life of the run; the parent has counted that.
        """
        ledger = Ledger(budget, self.ledger, spent, Usage(total_tokens=tokens))
        own = anyio.current_time() + timeout if timeout else inf
        if own < self.deadline:
            return Limits(ledger, own, timeout or 0.0)
        return Limits(ledger, self.deadline, self.timeout, inherited=True)


def limits_of(budget: float | None, timeout: float | None, spent: float = 0.0, tokens: int = 0) -> Limits:
    """Return the limits of a run that starts now; ``spent`` and ``tokens`` are what it has used before."""
    deadline = anyio.current_time() + timeout if timeout else inf
    return Limits(Ledger(budget, spent=spent, usage=Usage(total_tokens=tokens)), deadline, timeout or 0.0)


def add_usage(one: Usage, other: Usage) -> Usage:
    """Return the tokens of two calls together."""
    if one is NO_USAGE:
        return other
    return Usage(
        one.prompt_tokens + other.prompt_tokens,
        one.completion_tokens + other.completion_tokens,
        one.total_tokens + other.total_tokens,
        one.reasoning_tokens + other.reasoning_tokens,
    )
