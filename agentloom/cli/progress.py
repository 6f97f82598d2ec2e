"""How a run is told while it goes on: plain lines. ``agentloom.cli.live`` does the same on a terminal."""

from __future__ import annotations

from typing import Protocol, TextIO

from agentloom.cli.cells import visible
from agentloom.cli.console import BOLD, DIM, Look
from agentloom.cli.summary import one_line, seconds
from agentloom.cli.turns import Turns
from agentloom.core.events import (
    RunEvent,
    RunFinished,
    RunStarted,
    StepDelta,
    StepFinished,
    StepRetrying,
    StepSkipped,
    StepStarted,
)


class Progress(Protocol):
    """Shows a run. ``event`` takes its events in order; ``line`` shows any other line; ``close`` leaves the terminal as it was."""

    def event(self, event: RunEvent) -> None: ...
    def line(self, line: str) -> None: ...
    def close(self) -> None: ...


class PlainProgress:
    """A line per event. With ``stream`` the text of the replies too, as it comes."""

    def __init__(self, out: TextIO, look: Look, stream: bool = False) -> None:
        self._out = out
        self._look = look
        self._stream = stream
        self._layers = self._layer = 0
        self._skipped: list[str] = []  # told below the line of their layer, which is known when its first step starts
        self._turns = Turns(self._write, lambda step: text_head(step, look), look.paint(AGAIN, DIM))

    def event(self, event: RunEvent) -> None:
        """Show one event."""
        if isinstance(event, StepDelta):
            if self._stream:
                self._turns.text(event.step, event.attempt, event.seq, readable(event.text, self._look))
        elif isinstance(event, RunStarted):
            self._layers = event.layers
            self.line(head_line(event, self._look))
        elif isinstance(event, StepStarted):
            if "." not in event.step and event.layer != self._layer:
                self._layer = event.layer
                self.line(self._look.paint(f"layer {event.layer} of {self._layers}", DIM))
                self._tell_skipped()
            if event.type != "router":
                self.line(f"  {visible(event.step, self._look.encoding)}: started")
        elif isinstance(event, StepRetrying):
            self.line(f"  {visible(event.step, self._look.encoding)}: {retry_words(event, self._look)}")
        elif isinstance(event, StepFinished):
            self._turns.finish(event.step, finished_line(event, self._look))
        elif isinstance(event, StepSkipped):
            self._skipped.append(f"  {visible(event.step, self._look.encoding)}: {event.error or 'skipped'}")
        elif isinstance(event, RunFinished):
            self._tell_skipped()
            self._turns.close()

    def _tell_skipped(self) -> None:
        for line in self._skipped:
            self.line(line)
        self._skipped.clear()

    def line(self, line: str) -> None:
        """Show a line, after the text that is being shown."""
        self._turns.line(line)

    def close(self) -> None:
        """Show what still waits."""
        self._turns.close()

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


AGAIN = "(again, from the start)"


def head_line(event: RunStarted, look: Look) -> str:
    """Return the first line about a run."""
    return look.paint(f"Running workflow: {visible(event.workflow, look.encoding)}", BOLD)


def text_head(step: str, look: Look) -> str:
    """Return the line above the text of a step's reply."""
    return look.paint(f"--- {visible(step, look.encoding)}", DIM)


def readable(text: str, look: Look) -> str:
    """Return a piece of a reply as it may go to a terminal: line breaks stay, nothing in it can steer the terminal."""
    return "\n".join(visible(part, look.encoding) for part in text.replace("\r\n", "\n").expandtabs(4).split("\n"))


def retry_words(event: StepRetrying, look: Look) -> str:
    """Return what is said while a step waits for its next attempt."""
    which = f"attempt {event.attempt} of {event.attempts} failed"
    return f"{which}, trying again in {event.wait_s:.1f}s: {one_line(event.error, look)}"


def finished_line(event: StepFinished, look: Look) -> str:
    """Return the line about a step that ended."""
    took = seconds(event.duration_ms)
    if event.status == "success":
        said = f"done in {took}"
    elif event.status == "paused":
        said = "waits for a decision"
    else:
        said = f"{'timed out' if event.status == 'timeout' else event.status} after {took}"
        if event.error:
            said += f": {one_line(event.error, look)}"
    return f"  {visible(event.step, look.encoding)}: {said}"
