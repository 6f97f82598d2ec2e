"""The log on standard error: its level and form come from ``AGENTLOOM_LOG_LEVEL`` and ``AGENTLOOM_LOG_FORMAT``."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime

from agentloom.cli.cells import visible
from agentloom.errors import UsageError
from agentloom.similar import closest

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
FORMATS = ("text", "json")


def start_log(write: Callable[[str], None] | None = None) -> None:
    """Send log records of our level and above to ``write``, or to standard error. Raises ``UsageError`` for unknown settings."""
    level = _choice("AGENTLOOM_LOG_LEVEL", LEVELS, "WARNING", str.upper)
    form = _choice("AGENTLOOM_LOG_FORMAT", FORMATS, "text", str.lower)
    handler = _Lines(write or _to_stderr)
    handler.setFormatter(_Json() if form == "json" else _Text())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel("WARNING")  # other libraries: only what goes wrong
    logging.getLogger("agentloom").setLevel(level)


def _choice(variable: str, known: tuple[str, ...], default: str, fold: Callable[[str], str]) -> str:
    value = fold(os.environ.get(variable, "").strip()) or default
    if value not in known:
        near = closest(value, known)
        cure = f"did you mean `{near}`?" if near else "known are " + ", ".join(f"`{word}`" for word in known)
        raise UsageError(f"`{variable}={value}`: {cure}")
    return value


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class _Lines(logging.Handler):
    def __init__(self, write: Callable[[str], None]) -> None:
        super().__init__()
        self._write = write

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record; what a message holds can't break its line."""
        try:
            self._write(self.format(record))
        except (OSError, ValueError):
            self.handleError(record)


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
