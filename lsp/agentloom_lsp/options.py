"""What the user sets in the editor: one table of names, types and defaults, and values that are always of the right type.

They come with `initialize`, are asked for, or are sent, in any of the shapes that editors use. Nonsense means the default.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

SECTION = "agentloom"


class Options(NamedTuple):
    """The values in force. ``debounce`` in seconds, None for the adaptive delay; ``run_grace`` in milliseconds."""

    debounce: float | None = None
    hint_layer: bool = True
    hint_model: bool = True
    hint_attempts: bool = True
    hint_run: bool = True
    lens_workflow: bool = True
    lens_steps: bool = True
    run_grace: float = 5000
    run_on_shutdown: str = "cancel"
    run_database: str = ""
    learn_tools: bool = True
    run_events: bool = False


class Option(NamedTuple):
    """One setting. ``name`` is what users write below `agentloom`; ``attribute`` where its value stands in ``Options``.

    ``kind`` is the type in words, ``default`` in the user's terms; ``read`` returns the value of what was written, and raises
    ``ValueError`` for what is none.
    """

    name: str
    attribute: str
    kind: str
    default: Any
    meaning: str
    read: Callable[[Any], Any]


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise ValueError


def _milliseconds(value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0:
        return float(value)
    raise ValueError


def _in_seconds(value: Any) -> float:
    return _milliseconds(value) / 1000


def _ending(value: Any) -> str:
    if value in ("cancel", "detach"):
        return str(value)
    raise ValueError


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value.strip()
    raise ValueError


OPTIONS: tuple[Option, ...] = (
    Option(
        "debounce",
        "debounce",
        "a number of milliseconds",
        None,
        "milliseconds between a change and its check; `null` adapts: soon after a pause, once at the end of a burst of typing",
        _in_seconds,
    ),
    Option("hints.layer", "hint_layer", "true or false", True, "show the layer of each step", _flag),
    Option(
        "hints.model", "hint_model", "true or false", True, "show the provider and model that a step inherits", _flag
    ),
    Option(
        "hints.attempts", "hint_attempts", "true or false", True, "show worst-case attempts and waits of a step", _flag
    ),
    Option(
        "hints.run",
        "hint_run",
        "true or false",
        True,
        "show how each step of the last run went: status, duration and cost",
        _flag,
    ),
    Option(
        "lenses.workflow",
        "lens_workflow",
        "true or false",
        True,
        "offer to run, replay and resume in a line above the workflow",
        _flag,
    ),
    Option("lenses.steps", "lens_steps", "true or false", True, "offer to run up to a step in a line above it", _flag),
    Option(
        "run.grace",
        "run_grace",
        "a number of milliseconds",
        5000,
        "milliseconds that a cancelled run has to write its checkpoint before it is ended by force",
        _milliseconds,
    ),
    Option(
        "run.onShutdown",
        "run_on_shutdown",
        '"cancel" or "detach"',
        "cancel",
        "what becomes of runs when the server leaves: `cancel` ends them with a checkpoint, `detach` lets them go on",
        _ending,
    ),
    Option(
        "run.database",
        "run_database",
        "a text",
        "",
        "where runs live that the editor starts and lists: `sqlite:///FILE` or `postgresql://…`, as `--on` takes it; empty: the server's AGENTLOOM_ON,"
        " which is the place for an address with a password, else this machine's files",
        _text,
    ),
    Option(
        "tools.learn",
        "learn_tools",
        "true or false",
        True,
        "have a process of its own import the modules that the settings name as `tools`, to know what they offer; `false` in the initialisation options holds",
        _flag,
    ),
    Option(
        "run.events",
        "run_events",
        "true or false",
        False,
        "send `agentloom/runEvent` for every event of a run, for clients that draw it themselves",
        _flag,
    ),
)


def read_options(*layers: Any) -> tuple[Options, list[str]]:
    """Return the options in force, and what was wrong in them in plain words. Of several layers the first that says something wins."""
    values: dict[str, Any] = {}
    problems: list[str] = []
    for option in OPTIONS:
        for written in _written(option.name, layers):
            try:
                values[option.attribute] = option.read(written)
                break
            except ValueError:
                problems.append(f"the setting `{SECTION}.{option.name}` must be {option.kind}")
    return Options(**values), problems


def _written(name: str, layers: Iterable[Any]) -> Iterable[Any]:
    """Yield what the layers say about a setting; null says nothing."""
    for layer in layers:
        for path in (f"{SECTION}.{name}", name):
            value = _at(layer, path)
            if value is not None:
                yield value


def _at(table: Any, path: str) -> Any:
    """Return what stands at a dotted path, whether it is written as one key or as tables in tables."""
    if not isinstance(table, Mapping):
        return None
    if path in table:
        return table[path]
    head, dot, rest = path.partition(".")
    while dot:
        if head in table and (found := _at(table[head], rest)) is not None:
            return found
        more, dot, rest = rest.partition(".")
        head = f"{head}.{more}"
    return None
