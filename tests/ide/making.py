"""Made-up projects of three files that share, hand over and give back state in every way, and run."""

from __future__ import annotations

import json
from random import Random
from typing import Any

KEYS = ("ka", "kb", "kc")
HANDED = ("ia", "ib")
"""Keys that only `input` sets and only the last workflows read: where it hides a caller's key of the same name, a rename of that
key shows it to the child."""


def project(seed: int) -> dict[str, str]:
    """Return the texts of a project's files by name; the first runs the others."""
    random = Random(seed)
    inline = _flow(random, "inline", [])
    last = _flow(random, "last", [])
    middle = _flow(random, "middle", ["last.yaml", inline])
    first = _flow(random, "first", ["middle.yaml", "last.yaml", "middle.yaml", inline])
    flows = {"first.yaml": first, "middle.yaml": middle, "last.yaml": last}
    return {name: json.dumps(flow, indent=1) for name, flow in flows.items()}


def _flow(random: Random, name: str, others: list[Any]) -> dict[str, Any]:
    keys = KEYS if others else KEYS + HANDED
    state = {key: _value(random) for key in random.sample(KEYS, random.randint(1, 3))}
    steps: list[dict[str, Any]] = []
    for number in range(random.randint(2, 4)):
        done = [step["id"] for step in steps]
        step: dict[str, Any] = {"id": f"s{number}", "depends_on": done}
        roll = random.random()
        if others and roll < 0.45:
            step |= _subworkflow(random, random.choice(others), keys, done)
        elif roll < 0.6:
            args = [
                f"{{{_reference(random, keys, done)}}}",
                {"ka": f"state.{_path(random, keys)}", "z": [f"{{{_path(random, keys)}}}"]},
            ]
            step |= {"type": "tool", "tool_name": "echo", "tool_args": {"value": random.choice(args)}}
        else:
            prompt = " ".join(f"{{{_reference(random, keys, done)}}}" for _ in range(random.randint(1, 3)))
            step |= {"type": "llm_call", "prompt": prompt}
        if random.random() < 0.8:
            step["output"] = _path(random, keys)
        steps.append(step)
    return {"name": name, "config": {"provider": "mock"}, "state": state, "steps": steps}


def _subworkflow(random: Random, other: Any, keys: tuple[str, ...], done: list[str]) -> dict[str, Any]:
    step: dict[str, Any] = {"type": "subworkflow", "isolated_state": random.random() < 0.5}
    step["workflow_path" if isinstance(other, str) else "workflow_inline"] = other
    if random.random() < 0.7:
        values = [
            f"{{{_reference(random, keys, done)}}}",
            f"{{state.{_path(random, keys)}}}",
            {random.choice(KEYS): "{state.ka}"},
        ]
        step["input"] = {key: random.choice(values) for key in random.sample(HANDED, random.randint(1, 2))}
    if random.random() < 0.5:
        step["return_keys"] = random.sample(KEYS, random.randint(1, 2))
    return step


def _path(random: Random, keys: tuple[str, ...]) -> str:
    return ".".join(random.choice(keys) for _ in range(random.randint(1, 2)))


def _reference(random: Random, keys: tuple[str, ...], done: list[str]) -> str:
    path = _path(random, keys)
    shapes = [path, f"state.{path}", "state" + "".join(f"[{part}]" for part in path.split("."))]
    if done:
        shapes.append(f"state.steps.{random.choice(done)}.output")
    return random.choice(shapes)


def _value(random: Random, depth: int = 0) -> Any:
    if depth < 2 and random.random() < 0.4:
        return {key: _value(random, depth + 1) for key in random.sample(KEYS, random.randint(1, 2))}
    if depth < 2 and random.random() < 0.15:
        return [_value(random, depth + 1) for _ in range(2)]
    return random.choice(["x", "y", 1])
