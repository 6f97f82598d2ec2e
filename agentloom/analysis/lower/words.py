"""How blocks, fields and bounds are called in messages."""

from __future__ import annotations

from collections.abc import Iterable

from agentloom.model.catalogue import Block, Shape

_SUBJECTS = {
    "workflow": "the file",
    "agent": "an agent",
    "step": "a step",
    "condition": "a condition",
    "attachment": "an attachment",
    "tool_definition": "a tool",
    "agent_tool": "a tool",
    "state_key": "an entry of `state_schema`",
}


def step_words(tag: str) -> str:
    """Return `a `tool` step` with the right article."""
    article = "an" if tag[0] in "ae" or tag == "llm_call" else "a"
    return f"{article} `{tag}` step"


def subject(block: Block, name: str) -> str:
    """Return what a block is, in words that begin a sentence; ``name`` is the key that it stands at."""
    if block.tag is not None:
        return step_words(block.tag)
    return _SUBJECTS.get(block.name) or f"`{name or block.name}`"


def inside(block: Block, name: str) -> str:
    """Return where a key stands, in words: `in a `router` step`, `at the top of the file`."""
    return "at the top of the file" if block.name == "workflow" else f"in {subject(block, name)}"


def value_words(name: str, item: bool) -> str:
    """Return how a value is called by its field's name: the field itself, or an item of its list."""
    return f"an item of `{name}`" if item else f"`{name}`"


def choice_words(name: str, item: bool) -> str:
    """Return what a word in a field should have been: `choice for `fetch``."""
    return f"item of `{name}`" if item else f"choice for `{name}`"


def listing(names: Iterable[str]) -> str:
    """Return names in backticks, with commas."""
    return ", ".join(f"`{name}`" for name in names)


def bounds(shape: Shape) -> str:
    """Return the bounds of a number in words."""
    low, high, above = shape.minimum, shape.maximum, shape.exclusive_minimum
    if low is not None and high is not None:
        return f"from {low:g} to {high:g}"
    if above is not None:
        return f"above {above:g}" + (f" and at most {high:g}" if high is not None else "")
    return f"{low:g} or more" if low is not None else f"{high:g} or less"


def short(text: str) -> str:
    """Return a text on one line, cut where it is long."""
    text = " ".join(text.split())
    return text if len(text) <= 40 else text[:37] + "…"
