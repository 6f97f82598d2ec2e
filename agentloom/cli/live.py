"""A run on a terminal: its steps with their time and how they ended, redrawn in place below what stays."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import TextIO

from rich.cells import cell_len, set_cell_size
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from agentloom.cli.cells import visible
from agentloom.cli.console import DIM, Look, is_unicode
from agentloom.cli.progress import AGAIN, finished_line, head_line, readable, retry_words, text_head
from agentloom.cli.summary import dollars, one_line, seconds
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

FRAMES_A_SECOND = 12
TAIL = 400
"""Characters of a reply that are kept for its row."""

# How a step that ended is marked: where every character can be shown, elsewhere, in which style.
MARKS = {"success": ("✓", "+", "green"), "skipped": ("–", "-", "dim"), "paused": ("‖", "=", "yellow")}
OTHER_MARK = ("✗", "x", "bold red")


@dataclass(slots=True)
class Row:
    """One step: since when it runs, or how it ended; what is said behind its name, and the end of its text."""

    step: str
    started: float
    status: str = "running"
    note: str = ""
    tail: str = ""


class LiveProgress:
    """Draws the steps below each other, as many as there is room for, the running ones first of all.

    With ``stream`` the replies flow by above the drawing. The drawing itself is removed at the end.
    """

    def __init__(self, out: TextIO, look: Look, stream: bool = False) -> None:
        self._look = look
        self._stream = stream
        self._unicode = is_unicode(look.encoding)
        self._rows: dict[str, Row] = {}
        self._partial = ""  # the line of a reply that isn't complete yet
        self._steps = self._layers = self._layer = self._done = 0
        self._cost = 0.0
        self._began = time.monotonic()
        self._turns = Turns(self._write, lambda step: text_head(step, look), look.paint(AGAIN, DIM))
        self._spinner = Spinner("dots" if self._unicode else "line")
        self._console = Console(file=out, force_terminal=True, no_color=not look.color, highlight=False, markup=False)
        self._live = Live(
            console=self._console,
            get_renderable=self._render,
            refresh_per_second=FRAMES_A_SECOND,
            transient=True,
            redirect_stdout=sys.stdout.isatty(),  # what a tool prints goes above the drawing
            redirect_stderr=sys.stderr.isatty(),
        )

    def event(self, event: RunEvent) -> None:
        """Take one event; the next frame shows it."""
        if isinstance(event, StepDelta):
            self._delta(event)
        elif isinstance(event, RunStarted):
            self._steps, self._layers, self._began = event.steps, event.layers, time.monotonic()
            self.line(head_line(event, self._look))
            self._live.start()
        elif isinstance(event, StepStarted):
            if "." not in event.step:
                self._layer = event.layer
            self._rows[event.step] = Row(event.step, time.monotonic())
        elif isinstance(event, StepRetrying):
            row = self._row(event.step)
            row.note, row.tail = retry_words(event, self._look), ""
        elif isinstance(event, StepSkipped):
            self._end(event.step, "skipped", event.error or "skipped")
        elif isinstance(event, StepFinished):
            self._finished(event)
        elif isinstance(event, RunFinished):
            self.close()

    def line(self, line: str) -> None:
        """Leave a line on the terminal, above the drawing."""
        self._turns.line(line)

    def close(self) -> None:
        """Show what still waits, remove the drawing and show the cursor again."""
        self._turns.close()
        self._live.stop()

    def _row(self, step: str) -> Row:
        return self._rows.setdefault(step, Row(step, time.monotonic()))

    def _delta(self, event: StepDelta) -> None:
        row = self._row(event.step)
        row.note = ""
        if self._stream:
            self._turns.text(event.step, event.attempt, event.seq, readable(event.text, self._look))
        else:
            row.tail = ("" if event.seq == 0 else row.tail[-TAIL:]) + visible(
                event.text.replace("\n", " "), self._look.encoding
            )

    def _finished(self, event: StepFinished) -> None:
        self._cost += event.cost_usd
        note = seconds(event.duration_ms)
        if event.error:
            note += f"  {one_line(event.error, self._look)}"
        self._end(event.step, event.status, note)
        if self._stream:
            self._turns.finish(event.step, finished_line(event, self._look))

    def _end(self, step: str, status: str, note: str) -> None:
        row = self._row(step)
        if row.status == "running" and "." not in step:
            self._done += 1
        row.status, row.note, row.tail = status, note, ""

    def _write(self, text: str) -> None:
        """Leave the complete lines of a text above the drawing; the rest is drawn until its line is complete."""
        *lines, partial = (self._partial + text).split("\n")
        self._partial = partial
        if lines:
            self._live.refresh()  # the drawing lets go of what is going to stand above it
            self._console.print(Text.from_ansi("\n".join(lines)), soft_wrap=True)

    # --- drawing, on the drawing thread ---------------------------------------------------------------------------------

    def _render(self) -> RenderableType:
        now = time.monotonic()
        frame = self._spinner.render(now)
        icon = frame.plain if isinstance(frame, Text) else "*"
        lines: list[RenderableType] = [self._draw(row, icon, now) for row in self._visible_rows()]
        parts = [f"layer {self._layer} of {self._layers}", f"{self._done} of {self._steps} steps"]
        parts.append(seconds((now - self._began) * 1000))
        if self._cost:
            parts.append(dollars(self._cost))
        lines.append(Text("  ".join(parts), style="dim"))
        if self._partial:
            lines.insert(0, Text.from_ansi(self._partial))
        return Group(*lines)

    def _visible_rows(self) -> list[Row]:
        """Return the rows that fit: all that run, and the last of those that ended."""
        rows = list(self._rows.values())
        room = max(3, self._console.height - 6)
        if len(rows) <= room:
            return rows
        running = [row for row in rows if row.status == "running"][:room]
        ended = [row for row in rows if row.status != "running"]
        return ended[len(ended) - (room - len(running)) :] + running

    def _draw(self, row: Row, icon: str, now: float) -> Text:
        if row.status == "running":
            mark, style = icon, "cyan"
            took = seconds((now - row.started) * 1000)
            note = row.note or (f"{took}  {row.tail}" if row.tail else took)
        else:
            drawn, plain, style = MARKS.get(row.status, OTHER_MARK)
            mark = drawn if self._unicode else plain
            note = row.note
        head = f"{mark} {visible(row.step, self._look.encoding)}  "
        room = max(10, self._console.width - cell_len(head) - 1)
        if cell_len(note) > room:
            more = self._look.more
            if row.tail:
                took, _, tail = note.partition("  ")
                keep = max(1, room - cell_len(took) - 2 - len(more))
                note = f"{took}  {more}{set_cell_size(tail[::-1], keep)[::-1]}"
            else:
                note = set_cell_size(note, room - len(more)) + more
        return Text.assemble((head, style), (note, "dim"), no_wrap=True, overflow="crop")
