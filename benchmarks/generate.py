"""Workflows of any size: realistic ones for the check, plain ones for the engine."""

from __future__ import annotations

from typing import Literal

Shape = Literal["chained", "wide"]

_HEAD = """\
name: {name}
version: "1.0"
description: Made up for measuring.

config:
  provider: mock
  model: gpt-4o-mini
  max_concurrent_steps: 10

state:
  customer: Ann
  items: [one, two, three]

steps:
"""

_STEP = """\
  - id: step_{at:05d}
    type: llm_call
    depends_on: [{needs}]
    system_prompt: You help with part {at} of {name}.
    prompt: |
      Continue for {{state.customer}}, and mind {{state.items[0]}}.

      What came before: {{state.{before}}}
    temperature: 0.2
    output: result_{at:05d}
"""

_SHORT_STEP = """\
  - id: step_{at:05d}
    type: llm_call
    depends_on: [{needs}]
    temperature: 0.2
    prompt: "Continue for {{state.customer}} after {{state.{before}}}."
    output: result_{at:05d}
"""

_FIRST = """\
  - id: step_00000
    type: llm_call
    prompt: "Begin for {state.customer}."
    output: result_00000
"""


def lines(count: int, name: str = "measured") -> str:
    """Return a valid workflow of about ``count`` lines: chains of five steps that all start from the first one."""
    head = _HEAD.format(name=name)
    parts = [head, _FIRST]
    left = count - head.count("\n") - _FIRST.count("\n")
    for at in range(1, max(2, left // (_STEP.count("\n") + 1) + 1)):
        before = 0 if at % 5 == 1 else at - 1
        parts.append("\n")
        parts.append(_STEP.format(at=at, name=name, needs=f"step_{before:05d}", before=f"result_{before:05d}"))
    return "".join(parts)


def many_steps(count: int) -> str:
    """Return a valid workflow of about ``count`` lines with a step every seven lines: what an editor has most to do with."""
    head = _HEAD.format(name="edited")
    parts = [head, _FIRST]
    left = count - head.count("\n") - _FIRST.count("\n")
    for at in range(1, left // (_SHORT_STEP.count("\n") + 1) + 1):
        before = 0 if at % 5 == 1 else at - 1
        parts.append("\n")
        parts.append(_SHORT_STEP.format(at=at, needs=f"step_{before:05d}", before=f"result_{before:05d}"))
    return "".join(parts)


def steps(count: int, shape: Shape) -> str:
    """Return a workflow of ``count`` model calls with the mock provider, one after the other or all side by side."""
    parts = ["name: measured\nconfig:\n  provider: mock\n  model: gpt-4o-mini\nstate:\n  word: hello\nsteps:\n"]
    for at in range(count):
        parts.append(
            f'  - id: s{at:05d}\n    type: llm_call\n    prompt: "Say {{state.word}}"\n    output: o{at:05d}\n'
        )
        if shape == "chained" and at:
            parts.append(f"    depends_on: [s{at - 1:05d}]\n")
    return "".join(parts)
