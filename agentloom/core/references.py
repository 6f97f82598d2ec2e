"""Secrets by reference: `env:NAME` as the value of a secret state key stands for a variable of whoever performs the run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from agentloom.core.redaction import Redaction
from agentloom.core.results import JSON
from agentloom.core.state import STEPS
from agentloom.errors import UsageError, WorkflowError
from agentloom.language.paths import Part, format_path
from agentloom.providers.table import HIDDEN_KEY, SHORTEST_KEY

_REFERENCE = re.compile(r"env:([A-Za-z_][A-Za-z0-9_]{0,199})")
_WORDS = frozenset({"kind", "path", "status", "event", "step", "step_id", "run_id", "time"})
"""Keys whose values are our own words: a secret that is the same by chance is none there."""


class Reference(NamedTuple):
    """A place in the state, and the variable that stands there."""

    path: tuple[Part, ...]
    variable: str

    @property
    def place(self) -> str:
        """The path as it is written."""
        return format_path(self.path)


def references_in(state: Mapping[str, JSON], redaction: Redaction) -> list[Reference]:
    """Return the references in a state. Only what is marked secret is one; anywhere else `env:NAME` is a text."""
    return [
        Reference(path, found[1])
        for path, text in texts_at({key: value for key, value in state.items() if key != STEPS}, ())
        if (found := _REFERENCE.fullmatch(text)) is not None and redaction.names(path)
    ]


def put(state: Mapping[str, JSON], values: Iterable[tuple[tuple[Part, ...], JSON]]) -> dict[str, JSON]:
    """Return a state with other values at some places; places that aren't there are left out."""
    found: Any = dict(state)
    for path, value in values:
        found = _put(found, path, value)
    result: dict[str, JSON] = found
    return result


def resolve(references: Iterable[Reference], environ: Mapping[str, str], may: Callable[[str], bool]) -> list[str]:
    """Return the values of references. Raises ``WorkflowError`` for a variable that isn't there, or may not be read, or can't be kept secret."""
    values = []
    for reference in references:
        name, what = reference.variable, f"`{reference.place}` is `env:{reference.variable}`"
        if not may(name):
            raise WorkflowError(
                f"{what}, and this worker gives no run that variable; start the workers with `--env {name}`"
            )
        value = environ.get(name, "")
        if not value:
            raise WorkflowError(f"{what}, and there is no variable `{name}` where the run is performed; set it there")
        if len(value) < SHORTEST_KEY:
            raise WorkflowError(
                f"{what}, which is shorter than {SHORTEST_KEY} characters: it can't be kept out of what is told"
            )
        values.append(value)
    return values


def read_references(data: JSON) -> list[Reference]:
    """Return references from JSON, as ``to_json`` writes them. Raises ``WorkflowError`` for what is none."""
    found = []
    for entry in data if isinstance(data, list) else [None]:
        path, name = (entry.get("path"), entry.get("variable")) if isinstance(entry, Mapping) else (None, None)
        sound = isinstance(path, list) and path and all(type(part) in (str, int) for part in path)
        if not sound or not isinstance(name, str) or _REFERENCE.fullmatch(f"env:{name}") is None:
            raise WorkflowError("`environment` of the order can't be read")
        found.append(Reference(tuple(path or ()), name))
    return found


def to_json(references: Iterable[Reference]) -> list[JSON]:
    """Return references as JSON."""
    return [{"path": list(reference.path), "variable": reference.variable} for reference in references]


def with_variables(state: Mapping[str, JSON], redaction: Redaction, environ: Mapping[str, str]) -> dict[str, JSON]:
    """Return a state with the variables of this process in the place of references. Raises ``UsageError`` for one that isn't there."""
    references = references_in(state, redaction)
    try:
        values = resolve(references, environ, lambda _: True)
    except WorkflowError as error:
        raise UsageError(str(error)) from None
    return put(state, ((reference.path, value) for reference, value in zip(references, values, strict=True)))


class Hidden:
    """Takes values out of whatever is kept or told: also inside other texts, and as they stand in an address."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values = sorted(
            {text for value in values for text in (value, quote(value, safe=""))}, key=len, reverse=True
        )

    def __bool__(self) -> bool:
        return bool(self._values)

    def value(self, value: JSON) -> JSON:
        """Return data without the values."""
        if isinstance(value, str):
            for known in self._values:
                if known in value:
                    value = value.replace(known, HIDDEN_KEY)
            return value
        if isinstance(value, Mapping):
            return {
                self.value(key): item if key in _WORDS and isinstance(item, str) else self.value(item)
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        if isinstance(value, int | float) and not isinstance(value, bool) and str(value) in self._values:
            return HIDDEN_KEY
        return value


def texts_at(value: JSON, path: tuple[Part, ...] = ()) -> Iterator[tuple[tuple[Part, ...], str]]:
    """Yield every text in plain data, with where it stands."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from texts_at(item, (*path, str(key)))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from texts_at(item, (*path, at))


def _put(value: Any, path: tuple[Part, ...], new: JSON) -> Any:
    if not path:
        return new
    first, rest = path[0], path[1:]
    if isinstance(value, Mapping) and first in value:
        return {**value, first: _put(value[first], rest, new)}
    if isinstance(value, list) and isinstance(first, int) and 0 <= first < len(value):
        return [*value[:first], _put(value[first], rest, new), *value[first + 1 :]]
    return value
