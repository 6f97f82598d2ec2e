"""The state of a run: one tree of plain data, written by output paths, read as it stands between two layers.

Nothing copies the whole state. A write copies only the containers on its way that somebody else may hold, each of them once;
after that they are the state's own and are changed in place, so that n writes cost n, however wide the state is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentloom.core.results import JSON
from agentloom.errors import StateWriteError
from agentloom.language.paths import Part, format_path
from agentloom.language.rendering import kind_of

STEPS = "steps"
"""The key under which the results of steps stand; nothing else may be written there."""


class State:
    """The state while it grows. Whoever keeps what it hands out beyond the current layer takes it from ``share``.

    It begins without results under `steps`, whatever ``initial`` holds there: step ids are a namespace of their own in every
    workflow, and a child doesn't see its parent's.
    """

    __slots__ = ("_own", "_root", "_shared", "_steps")

    def __init__(self, initial: Mapping[str, JSON]) -> None:
        self._root: dict[str, JSON] = {**initial, STEPS: {}}
        self._steps: dict[str, JSON] = self._root[STEPS]
        # Kept by identity together with the object, so that no identity can be taken over by a newer object.
        self._own: dict[int, Any] = {}
        self._shared: dict[str, JSON] | None = None

    @property
    def root(self) -> Mapping[str, JSON]:
        """The whole state as it stands; not to be changed, and good until the next write."""
        return self._root

    def share(self) -> dict[str, JSON]:
        """Return the whole state as a mapping that later writes don't touch; not to be changed.

        Costs the number of top-level keys and of finished steps, once between two writes.
        """
        if self._shared is None:
            self._own.clear()
            self._shared = self._root
            self._steps = dict(self._steps)
            self._root = {**self._root, STEPS: self._steps}
        return self._shared

    def record(self, step_id: str, output: JSON) -> None:
        """Note a successful step under ``steps.<id>``."""
        self._shared = None
        self._steps[step_id] = {"output": output, "status": "success"}

    def check(self, parts: Sequence[Part]) -> None:
        """Raise ``StateWriteError`` if ``write`` would refuse the path."""
        if parts[0] == STEPS:
            raise StateWriteError(f"output path `{format_path(parts)}` is reserved for step results; use another key")
        at: Any = self._root
        for depth, part in enumerate(parts):
            if isinstance(at, dict):
                if not isinstance(part, str):
                    raise _refused(parts, depth, "is a mapping, which has no numbered items")
                if part not in at:
                    wrong = next((n for n in range(depth + 1, len(parts)) if not isinstance(parts[n], str)), None)
                    if wrong is not None:
                        raise _refused(parts, wrong, "doesn't exist, and lists are never made")
                    return
                at = at[part]
            elif isinstance(at, list):
                if isinstance(part, str):
                    raise _refused(parts, depth, "is a list; write the number of an item in brackets")
                if not -len(at) <= part < len(at):
                    raise _refused(parts, depth, f"has {len(at)} items, and lists are never extended")
                at = at[part]
            else:
                raise _refused(parts, depth, f"is {kind_of(at)}, not a mapping")

    def write(self, parts: Sequence[Part], value: JSON) -> None:
        """Put ``value`` at a path, making the mappings on the way that are missing.

        Raises ``StateWriteError``, and changes nothing then, for a path through a scalar, past a list's end, through a list by name
        or into ``steps``.
        """
        self.check(parts)
        self._shared = None
        at: Any = self._root
        for part in parts[:-1]:
            if isinstance(at, dict) and part not in at:
                below: Any = {}
                self._own[id(below)] = below
                at[part] = below
            else:
                below = at[part]
                if id(below) not in self._own:
                    below = below.copy()
                    self._own[id(below)] = below
                    at[part] = below
            at = below
        at[parts[-1]] = value


def _refused(parts: Sequence[Part], depth: int, why: str) -> StateWriteError:
    return StateWriteError(
        f"output path `{format_path(parts)}` can't be written; `{format_path(parts[:depth]) or 'state'}` {why}"
    )
