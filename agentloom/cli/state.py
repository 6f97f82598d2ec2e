"""The state that a run begins with, from ``--state key=value`` and ``--state-file``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from agentloom.cli.reading import Unreadable, read_file
from agentloom.errors import UsageError
from agentloom.files import RepeatedKey, unique_keys

_UNREADABLE = re.compile(r"\.\s*\.|[\[\]{}]")
"""Dots with no name between them, and marks of the template language."""


def initial_state(own: Mapping[str, Any], files: Iterable[str], pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return the file's ``own`` state with the options' laid over it: files first, then pairs; later ones win.

    Raises ``UsageError``.
    """
    state = dict(own)
    for file in files:
        state.update(read_state_file(file))
    for key, value in pairs:
        _put(state, key, value)
    return state


def parse_pair(text: str) -> tuple[str, Any]:
    """Return key and value of ``key=value``. A value that is JSON is read as JSON, any other is a text.

    Raises ``UsageError`` when the ``=`` or the key is missing, and for a key that no template could read back.
    """
    key, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"`--state {text}` has no `=`; write key=value")
    if not key.strip():
        raise UsageError(f"`--state {text}` has no key; write key=value")
    if _UNREADABLE.search(f".{key.strip()}."):
        raise UsageError(f"`--state {key}=…` sets no key that templates can read; write names with dots between them")
    return key.strip(), parse_value(value)


def parse_value(text: str) -> Any:
    """Return a text as the JSON value that it spells, or itself when it spells none.

    ``NaN`` and ``Infinity`` are no JSON; numbers and nestings beyond what Python reads stay texts too.
    """
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def read_state_file(path: str) -> dict[str, Any]:
    """Return the mapping in a YAML or JSON file. Raises ``UsageError``."""
    try:
        text, fault, _ = read_file(path)
    except Unreadable as error:
        raise UsageError(f"the state file `{path}` can't be read: {error}") from error
    if fault is not None:
        raise UsageError(f"the state file `{path}` can't be read: {fault.message}")
    if Path(path).suffix == ".json":
        try:
            value = json.loads(text.removeprefix("\ufeff"), parse_constant=_refuse, object_pairs_hook=unique_keys)
        except RepeatedKey as error:
            raise UsageError(f"the state file `{path}`: {error}") from error
        except json.JSONDecodeError as error:
            place = f"line {error.lineno}, column {error.colno}"
            raise UsageError(f"the state file `{path}` is not JSON ({place}): {error.msg}") from error
        except (ValueError, RecursionError) as error:
            raise UsageError(f"the state file `{path}` is not JSON: {error}") from error
    else:
        value = _read_yaml(path, text)
    if not isinstance(value, dict):
        raise UsageError(f"the state file `{path}` must hold a mapping of state keys to values")
    return value


def _read_yaml(path: str, text: str) -> Any:
    from agentloom.syntax.reader import read
    from agentloom.syntax.values import plain_value
    from agentloom.text import LineTable

    tree = read(text)
    if tree.findings:
        first = tree.findings[0]
        line = LineTable(text).line_of(first.span.start) + 1
        raise UsageError(f"the state file `{path}` is not YAML (line {line}): {first.message}")
    return {} if tree.root is None else plain_value(tree.root)


def _put(state: dict[str, Any], key: str, value: Any) -> None:
    """Set a key; a dotted one (``user.name``) inside the mapping that it names. Raises ``UsageError`` through a non-mapping."""
    *outer, last = key.split(".")
    at = state
    for depth, name in enumerate(outer):
        inside = at.get(name, {})
        if not isinstance(inside, Mapping):
            path = ".".join(outer[: depth + 1])
            raise UsageError(f"`--state {key}=…` goes through `{path}`, which is no mapping")
        copy = dict(inside)  # the mapping may be the workflow's own
        at[name] = copy
        at = copy
    at[last] = value
