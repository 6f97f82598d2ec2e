"""A tool that has an effect which can be counted, and a workflow of many steps with it: for runs whose workers are killed. And one that waits at a gate."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

GATE = """\
name: gated
steps:
  - {id: draft, type: llm_call, prompt: Write., output: draft}
  - {id: gate, type: approval_gate, depends_on: [draft], output: verdict}
  - {id: send, type: llm_call, depends_on: [gate], prompt: "{state.verdict}", output: sent}
config: {provider: mock}
"""

TOOLS = """
import os
import anyio
from agentloom.tools.base import tool
from agentloom.tools.keys import idempotency_key

@tool("work", "Does something that can be counted.")
async def work(step: str) -> str:
    await anyio.sleep(float(os.environ["WORK_SECONDS"]))
    handle = os.open(os.environ["EFFECTS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, f"{step} {idempotency_key()}\\n".encode())
    os.close(handle)
    return f"did {step}"
"""


def build(folder: Path, layers: int = 4, wide: int = 3) -> Path:
    """Write a project into a folder and return its workflow: layers of steps, each with a child workflow of two steps beside them."""
    (folder / "counted.py").write_text(TOOLS, encoding="utf-8")
    (folder / "agentloom.toml").write_text('tools = ["counted"]\n', encoding="utf-8")
    steps: list[dict[str, object]] = []
    before: list[str] = []
    for layer in range(layers):
        names = [f"s{layer}_{number}" for number in range(wide)]
        steps += [_work(name, before) for name in names]
        inner = [_work("i", [], f"c{layer}."), _work("j", ["i"], f"c{layer}.")]
        steps.append(
            {
                "id": f"c{layer}",
                "type": "subworkflow",
                "depends_on": before,
                "workflow_inline": {"name": "inner", "steps": inner},
            }
        )
        before = [*names, f"c{layer}"]
    file = folder / "many.loom.yaml"
    file.write_text(json.dumps({"name": "many", "steps": steps, "config": {"provider": "mock"}}), encoding="utf-8")
    return file


def _work(name: str, after: list[str], inside: str = "") -> dict[str, object]:
    step: dict[str, object] = {"id": name, "type": "tool", "tool_name": "work", "tool_args": {"step": inside + name}}
    return {**step, "depends_on": after} if after else step


def effects(file: Path) -> Counter[tuple[str, str]]:
    """Return how often each step had its effect, by its name and the key that it was given."""
    if not file.exists():
        return Counter()
    lines = file.read_text(encoding="utf-8").splitlines()
    return Counter((name, key) for name, _, key in (line.partition(" ") for line in lines))
