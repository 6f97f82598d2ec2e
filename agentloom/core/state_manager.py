"""The state by itself, for programs: read and written by paths, in one piece or not at all, from any thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import RLock
from typing import Any

from agentloom.core.plain import plain
from agentloom.core.state import STEPS, State
from agentloom.errors import StateWriteError, UsageError
from agentloom.language.paths import MISSING, Part, PathFault, get, parse_output_path, parse_path


class StateManager:
    """A state for programs: read and written by paths such as ``report.items[0]``, in one piece or not at all, from any thread."""

    def __init__(self, initial: Mapping[str, Any] | None = None) -> None:
        given = dict(initial or {})
        if STEPS in given:
            raise UsageError("state key `steps` is reserved for step results; use another key")
        self._state = State(plain(given, "state"))
        self._lock = RLock()  # one that ``change`` may take again, to read or write something else

    def get(self, path: str, default: Any = None) -> Any:
        """Return what stands at a path, or ``default``. The value is the state's own: don't change it."""
        found = parse_path(path)
        value = MISSING if isinstance(found, PathFault) else get(self._state.root, found.parts)
        return default if value is MISSING else value

    def set(self, path: str, value: Any) -> None:
        """Write a value. Raises ``StateWriteError`` for a path that is none or that the state refuses."""
        with self._lock:
            self._state.write(_parts(path), plain(value, path))

    def update(self, path: str, change: Callable[[Any], Any], default: Any = None) -> Any:
        """Replace what stands at a path by ``change`` of it, and return the new value; nothing comes in between."""
        with self._lock:
            value = change(plain(self.get(path, default), path))
            self.set(path, value)
        return value

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as a copy that the caller may change."""
        with self._lock:
            copy: dict[str, Any] = plain(self._state.root, "state")
        return copy


def _parts(path: str) -> tuple[Part, ...]:
    found = parse_output_path(path)
    if isinstance(found, PathFault):
        raise StateWriteError(f"`{path}` is no path in the state; {found.message}")
    return found.parts
