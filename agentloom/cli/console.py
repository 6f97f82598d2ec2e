"""The output channels: colours or none, how wide, which encoding, and what to do when nobody listens any more."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, TextIO

ColorChoice = Literal["auto", "always", "never"]
COLOR_CHOICES = ("auto", "always", "never")

WIDTH_ELSEWHERE = 120
"""Cells per line of quoted text where there is no terminal to ask."""

RESET = "\x1b[0m"
BOLD = "\x1b[1m"
DIM = "\x1b[2m"
RED = "\x1b[1;31m"
YELLOW = "\x1b[1;33m"
GREEN = "\x1b[1;32m"
BLUE = "\x1b[1;34m"
CYAN = "\x1b[1;36m"


class Look(NamedTuple):
    """How to write for one channel."""

    color: bool = False
    width: int = WIDTH_ELSEWHERE
    encoding: str = "utf-8"

    def paint(self, text: str, style: str) -> str:
        """Return the text in a style, where colours are on."""
        return f"{style}{text}{RESET}" if self.color and text else text

    @property
    def more(self) -> str:
        """What marks text that was cut off."""
        return "…" if is_unicode(self.encoding) else "..."


def look_of(stream: TextIO, color: ColorChoice = "auto") -> Look:
    """Return how to write to a stream: `--color` first, then ``NO_COLOR``, then ``FORCE_COLOR``, then what the stream is."""
    return Look(color=wants_color(stream, color), width=width_of(stream), encoding=stream.encoding or "utf-8")


def wants_color(stream: TextIO, color: ColorChoice) -> bool:
    """Tell whether to colour what goes to a stream."""
    if color != "auto":
        return color == "always"
    if os.environ.get("NO_COLOR"):
        return False
    forced = os.environ.get("FORCE_COLOR")
    if forced:
        return forced != "0"
    return is_terminal(stream)


def is_terminal(stream: TextIO) -> bool:
    """Tell whether a stream is a terminal that understands colours and moving the cursor."""
    try:
        return stream.isatty() and os.environ.get("TERM") != "dumb"
    except ValueError:  # closed
        return False


def is_unicode(encoding: str) -> bool:
    """Tell whether an encoding takes every character."""
    return encoding.lower().replace("_", "-").startswith(("utf-", "utf8"))


def width_of(stream: TextIO) -> int:
    """Return the cells of a line: ``COLUMNS``, the terminal's own number, or a number that reads well in a log."""
    wanted = os.environ.get("COLUMNS", "")
    if wanted.isdecimal() and int(wanted) > 0:
        return max(20, int(wanted))
    try:
        return max(20, os.get_terminal_size(stream.fileno()).columns)
    except (OSError, ValueError):
        return WIDTH_ELSEWHERE


def open_channels() -> None:
    """Make both channels safe to write to: a closed one goes nowhere, a character that can't be encoded is spelled out."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 (lives as long as the process)
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def silence() -> None:
    """Let what is still to be written go nowhere, after the reader has gone, so that the interpreter ends quietly."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            try:
                os.dup2(nowhere, stream.fileno())
            except (OSError, ValueError):
                continue


def print_json_list(items: Iterable[Any]) -> None:
    """Print a list as ``print_json`` does, one item after the other: all of them needn't be in memory."""
    import json

    is_ascii = not is_unicode(sys.stdout.encoding or "")
    before = "[\n"
    for item in items:
        text = json.dumps(item, indent=2, ensure_ascii=is_ascii)
        print(before + "\n".join(f"  {line}" for line in text.split("\n")), end="")
        before = ",\n"
    print("[]" if before == "[\n" else "\n]")


def print_json(data: Any) -> None:
    """Print plain data as JSON to standard output: characters as they are, where its encoding has them."""
    import json

    print(json.dumps(data, indent=2, ensure_ascii=not is_unicode(sys.stdout.encoding or "")))
