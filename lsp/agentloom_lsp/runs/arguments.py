"""What clients send with commands, read leniently: one object, or the URI alone; and what the command line gets from it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any


def one(arguments: Sequence[Any] | None, key: str = "uri") -> dict[str, Any]:
    """Return the one argument of a command; a text alone stands for its ``key``."""
    first = arguments[0] if arguments else None
    if isinstance(first, str):
        return {key: first}
    return dict(first) if isinstance(first, Mapping) else {}


def text(asked: Mapping[str, Any], name: str) -> str | None:
    """Return a text that was sent; None for anything else, and for an empty one."""
    value = asked.get(name)
    return value if isinstance(value, str) and value else None


def nothing(arguments: Sequence[Any] | None, *names: str) -> bool:
    """Tell whether nothing of this was named: what was named in a way that can't be understood doesn't stand for everything."""
    first = arguments[0] if arguments else None
    return first is None or (isinstance(first, Mapping) and all(first.get(name) is None for name in names))


def for_run(asked: Mapping[str, Any], run_id: str, path: Path | None, store: Path | None) -> list[str]:
    """Return the arguments of ``agentloom run``, or of ``agentloom replay``, for a text on standard input; without the state.

    Without a ``store``, the run lives in a database.
    """
    replay = asked.get("replay") is True
    found = ["replay" if replay else "run", "-", "--run-id", run_id]
    found += [*([] if store is None else ["--checkpoint", "--checkpoint-dir", str(store)]), "--color", "never"]
    if path is not None:
        found += ["--stdin-filename", str(path)]
    if (until := text(asked, "until")) is not None:
        found += ["--until", until]
    if replay:
        if (recording := text(asked, "recording")) is not None:
            found += ["--recording", recording]
        return found
    if asked.get("mock") is True:
        found += ["--provider", "mock"]
    found += _overrides(asked, mock=asked.get("mock") is True)
    if (recording := text(asked, "responses")) is not None:
        found += ["--mock-responses", recording]
    return found


def for_resume(asked: Mapping[str, Any], run_id: str, store: Path | None) -> list[str]:
    """Return the arguments of ``agentloom resume``, without the state."""
    found = ["resume", *([] if store is None else ["--checkpoint-dir", str(store)]), "--color", "never"]
    if asked.get("decision") in ("approve", "reject"):
        found.append(f"--{asked['decision']}")
    return [*found, *_overrides(asked), run_id]


def _overrides(asked: Mapping[str, Any], mock: bool = False) -> Iterator[str]:
    for name in ("provider", "model"):
        if (value := text(asked, name)) is not None and not (mock and name == "provider"):
            yield from (f"--{name}", value)
    budget = asked.get("budget")
    if isinstance(budget, int | float) and not isinstance(budget, bool):
        yield from ("--budget", f"{budget}")


def state_pairs(asked: Mapping[str, Any]) -> list[str]:
    """Return the state that a run is to begin with, as ``--state`` takes it; it may be long, and hold secrets."""
    state = asked.get("state")
    pairs = state.items() if isinstance(state, Mapping) else ()
    return [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in pairs]
