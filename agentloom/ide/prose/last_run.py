"""What is said about the last run: of a step, and of a value in the state."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from agentloom.ide.last_run import LastRun, StepRun
from agentloom.ide.prose.durations import duration
from agentloom.ide.prose.form import Block, Code, Inline, Prose, excerpt, say

_WORDS = {
    "success": "succeeded",
    "failed": "failed",
    "timeout": "ran out of time",
    "skipped": "was skipped",
    "paused": "waits for a decision",
    "running": "is running",
    "cancelled": "was cancelled",
    "interrupted": "was interrupted",
}
# Signs that plain fonts have, too.
_MARKS = {"success": "✓", "skipped": "–", "paused": "‖", "running": "…"}
_SHORT = 60
"""Characters of a value that stand in a sentence."""


def label(step: StepRun) -> str:
    """Return how a step went, in a few characters: `✓ 1.2 s · $0.0034`."""
    mark = _MARKS.get(step.status, "✗")
    if step.status == "success":
        return f"{mark} {took(step.duration)}{money(step.cost, ' · ')}"
    said = {"paused": "waits", "timeout": "out of time"}.get(step.status, step.status)
    after = f" after {took(step.duration)}" if step.status in ("failed", "timeout") and step.duration else ""
    return f"{mark} {said}{after}{money(step.cost, ' · ')}"


def of_step(last: LastRun, step: StepRun, text: str) -> Prose:
    """Return how a step went in a run; ``text`` is what stands in the file for it now."""
    said: list[Inline] = ["In run ", Code(last.run_id), f" it {_WORDS.get(step.status, step.status)}"]
    said += list(_figures(step))
    said.append(". The step was edited since." if step.text and step.text != text else ".")
    blocks: list[Block] = [say(*said)]
    if step.error:
        blocks.append(excerpt(step.error))
    blocks.extend(say("Warning: ", Code(warning)) for warning in step.warnings[:3])
    if step.status == "success" and step.output is not None:
        blocks.extend(of_value("It gave back", step.output))
    return tuple(blocks)


def of_value(lead: str, value: Any) -> Iterator[Block]:
    """Yield what a value was: in the sentence where it is short, below it where it is long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    if len(text) <= _SHORT and "\n" not in text:
        yield say(f"{lead}: ", Code(text)) if text else say(f"{lead} an empty text.")
        return
    yield say(f"{lead}:")
    if isinstance(value, str):
        yield excerpt(value)
    else:
        yield excerpt(json.dumps(value, ensure_ascii=False, indent=2, default=str), "json")


def took(seconds: float) -> str:
    """Return how long something took: milliseconds below a second."""
    return f"{round(seconds * 1000)} ms" if seconds < 0.9995 else duration(seconds)


def money(cost: float, before: str = "") -> str:
    """Return a sum in US dollars with something before it; nothing for nothing."""
    return f"{before}${cost:.4f}" if cost else ""


def _figures(step: StepRun) -> Iterator[Inline]:
    if step.duration:
        yield f" after {took(step.duration)}" if step.status in ("failed", "timeout") else f" in {took(step.duration)}"
    if step.tokens:
        yield f", {step.tokens:,} token{'' if step.tokens == 1 else 's'}"
    yield money(step.cost, ", ")
    if step.model is not None:
        yield ", by "
        yield Code(step.model)
        if step.provider is not None:
            yield " of "
            yield Code(step.provider)
