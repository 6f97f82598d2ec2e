"""What the data flow says, as plain values."""

from __future__ import annotations

from typing import Literal, NamedTuple

from agentloom.analysis.dataflow.declared import Origin
from agentloom.analysis.dataflow.routes import Pick
from agentloom.analysis.document import Step
from agentloom.analysis.symbols import Occurrence
from agentloom.language.paths import Part
from agentloom.text import Span

Certainty = Literal["always", "declared", "sometimes", "unordered", "excluded", "never", "unknown"]


class Read(NamedTuple):
    """A place where a step reads the state. ``base`` places the occurrence: it may stand in the head, where agents are described.

    ``optional`` tells that a missing value is no fault there: a conversation that has yet to begin.
    """

    step: Step
    occurrence: Occurrence
    base: int
    optional: bool = False

    @property
    def parts(self) -> tuple[Part, ...]:
        """The path that is read."""
        return self.occurrence.parts

    @property
    def span(self) -> Span:
        """Where it stands, in document offsets."""
        return self.occurrence.span.shift(self.base)


class Writer(NamedTuple):
    """A step that writes what is asked for (``key``, a path up to its first number), or something above or below it.

    ``upstream`` tells that the reader depends on it. ``layer`` counts from 0.
    """

    step: Step
    key: tuple[str, ...]
    layer: int
    upstream: bool

    @property
    def id(self) -> str:
        """The step's id."""
        return self.step.id or ""

    @property
    def parts(self) -> tuple[Part, ...]:
        """What it writes."""
        write = self._write()
        return ("steps", self.id) if write is None else write.parts

    @property
    def span(self) -> Span:
        """Where it says so, in document offsets: its output, or its id for its result."""
        write = self._write()
        return self.step.name_span if write is None else self.step.place(write.span)

    def _write(self) -> Occurrence | None:
        for write in self.step.facts.writes if self.key[:1] != ("steps",) else ():
            if all(mine == asked for mine, asked in zip(write.parts, self.key, strict=False)):
                return write
        return None


class Loss(NamedTuple):
    """Why a value may be missing: ``picks`` are decisions of routers that leave it out, ``fails`` steps that may fail while the
    reader runs all the same, ``child`` the subworkflow step whose workflow may end without writing it."""

    picks: tuple[Pick, ...] = ()
    fails: tuple[str, ...] = ()
    child: str | None = None


class Reaching(NamedTuple):
    """What reaches a read.

    ``certainty``: *always* written before the reader runs; *declared*: given from outside (``origin`` says by whom); *sometimes*:
    written on some routes (``loss`` shows one on which it isn't); *unordered*: only by steps of the same or a later layer
    (``later``); *excluded*: only on routes on which the reader doesn't run; *never*: by nobody; *unknown*: the file is too broken, or too
    entangled, to tell. ``writers`` are those that may have written it when the reader runs, upstream ones first. ``guarded`` tells that
    a router asks for the value before the reader runs.
    """

    certainty: Certainty
    writers: tuple[Writer, ...] = ()
    later: tuple[Writer, ...] = ()
    origin: Origin | None = None
    loss: Loss | None = None
    guarded: bool = False


class Offer(NamedTuple):
    """A path that a step may read. ``name`` is the path as written behind `state.`; ``writers`` the ids of the steps that write it.

    ``layer`` is that of the first writer, None for what is there from the start. ``upstream`` tells that one of the writers is.
    """

    parts: tuple[Part, ...]
    name: str
    writers: tuple[str, ...]
    layer: int | None
    certainty: Certainty
    upstream: bool = False
    origin: Origin | None = None
