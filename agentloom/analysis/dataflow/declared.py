"""State keys that a workflow has from outside: its own `state:`, settings, `state_schema`, a comment in the file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from agentloom.analysis.document import WorkflowDocument
from agentloom.language.paths import MISSING, Part, PathFault, get, parse_path

Origin = Literal["state", "state_schema", "settings", "comment", "input", "engine"]

_MARK = "agentloom:"
_DIRECTIVE = r"#\s*agentloom:\s*state\s*\[(?P<keys>[^\]]*)\]"
_GLOB = frozenset("*?[")


class Declared(NamedTuple):
    """What is there before the first step. ``expected`` holds the paths that come from the command line or a parent, each with its
    origin; ``globs`` are patterns, likewise."""

    values: Mapping[str, Any]
    expected: Mapping[tuple[str, ...], Origin]
    globs: tuple[tuple[str, Origin], ...]

    def origin(self, parts: Sequence[Part]) -> Origin | None:
        """Return who says that a path has a value; None when nobody does.

        Below a value that is empty, null or a list nothing is known: it may be filled from the command line.
        """
        if not parts:
            return "state"
        if self.values and parts[0] in self.values and self._given(parts):
            return "state"
        names = key_of(parts)
        for length in range(1, len(names) + 1) if self.expected else ():
            found = self.expected.get(names[:length])
            if found is not None:
                return found
        if self.globs and names:
            from fnmatch import fnmatchcase

            paths = [".".join(names[:length]) for length in range(1, len(names) + 1)]
            for glob, origin in self.globs:
                if any(fnmatchcase(path, glob) for path in paths):
                    return origin
        if any(path[: len(names)] == names for path in self.expected):
            return "comment"  # something below it comes from outside
        return None

    def _given(self, parts: Sequence[Part]) -> bool:
        for length in range(len(parts), 0, -1):
            found = get(self.values, parts[:length])
            if found is not MISSING:
                return length == len(parts) or found is None or found == {} or isinstance(found, list)
        return False

    def holds(self, parts: Sequence[Part]) -> bool:
        """Tell whether `state:` has a value for the first part of a path, so that its shape is known."""
        return bool(parts) and parts[0] in self.values


def key_of(parts: Sequence[Part]) -> tuple[str, ...]:
    """Return a path up to its first number: below a list's items nothing is told apart."""
    names: list[str] = []
    for part in parts:
        if not isinstance(part, str):
            break
        names.append(part)
    return tuple(names)


def declared(document: WorkflowDocument) -> Declared:
    """Return what a workflow's own text and its settings declare."""
    state = document.head.data.get("state")
    expected: dict[tuple[str, ...], Origin] = {}
    globs: list[tuple[str, Origin]] = []
    for word in document.context.settings.known_state:
        if _GLOB.isdisjoint(word):
            _expect(expected, word, "settings")
        else:
            globs.append((word, "settings"))
    for word in commented(document):
        _expect(expected, word, "comment")
    schema = document.head.data.get("state_schema")
    for word in schema if isinstance(schema, dict) else ():
        if _GLOB.isdisjoint(word):
            _expect(expected, word, "state_schema")
        elif word.strip("*?."):  # a pattern that fits everything names nothing
            globs.append((word, "state_schema"))
    return Declared(state if isinstance(state, dict) else {}, expected, tuple(globs))


def _expect(expected: dict[tuple[str, ...], Origin], word: str, origin: Origin) -> None:
    path = parse_path(word.strip().removeprefix("state."))
    if not isinstance(path, PathFault):
        expected.setdefault(key_of(path.parts), origin)


def commented(document: WorkflowDocument) -> list[str]:
    """Return the keys that comments such as ``# agentloom: state[question, lang]`` declare."""
    text = document.tree.text
    if _MARK not in text or document.inline:
        return []
    directive = re.compile(_DIRECTIVE)
    if directive.search(text) is None:
        return []
    found = [match for comment in document.tree.comments for match in directive.finditer(comment.text)]
    return [word for match in found for word in re.split(r"[\s,]+", match["keys"]) if word]
