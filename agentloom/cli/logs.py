"""The log on standard error: its level and form come from ``AGENTLOOM_LOG_LEVEL`` and ``AGENTLOOM_LOG_FORMAT``."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

from agentloom.cli.cells import visible
from agentloom.errors import UsageError
from agentloom.similar import closest

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
FORMATS = ("text", "json")


@contextmanager
def logging_to_stderr() -> Iterator[LogLines]:
    """Send our log records to standard error as long as the context lasts.

    What is given back can be pointed elsewhere meanwhile. Raises ``UsageError`` for unknown settings.
    """
    level = _choice("AGENTLOOM_LOG_LEVEL", LEVELS, "WARNING", str.upper)
    form = _choice("AGENTLOOM_LOG_FORMAT", FORMATS, "text", str.lower)
    handler = LogLines(to_stderr)
    handler.setFormatter(_Json() if form == "json" else _Text())
    ours = logging.getLogger("agentloom")
    before = (ours.handlers[:], ours.level, ours.propagate)
    ours.handlers[:] = [handler]
    ours.setLevel(level)
    ours.propagate = False
    try:
        yield handler
    finally:
        ours.handlers[:], ours.level, ours.propagate = before


def _choice(variable: str, known: tuple[str, ...], default: str, fold: Callable[[str], str]) -> str:
    value = fold(os.environ.get(variable, "").strip()) or default
    if value not in known:
        near = closest(value, known)
        cure = f"did you mean `{near}`?" if near else "known are " + ", ".join(f"`{word}`" for word in known)
        raise UsageError(f"`{variable}={value}`: {cure}")
    return value


def to_stderr(line: str) -> None:
    """Write one line to standard error."""
    print(line, file=sys.stderr, flush=True)


class LogLines(logging.Handler):
    """Hands each record to ``write`` as text; nothing that a message holds can break its line."""

    def __init__(self, write: Callable[[str], None]) -> None:
        super().__init__()
        self.write = write

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record; a reader that has gone is no reason to stop."""
        with suppress(OSError, ValueError):
            self.write(self.format(record))


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Return ``level: message``, with the traceback of an exception below it."""
        line = f"{record.levelname.lower()}: {visible(record.getMessage())}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one JSON object on one line."""
        data = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            data["exception"] = self.formatException(record.exc_info)
        return json.dumps(data)
