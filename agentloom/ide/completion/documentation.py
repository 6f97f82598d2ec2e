"""What an editor shows beside an item when it is looked at; worked out when asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from agentloom.analysis.document import WorkflowDocument
from agentloom.ide.completion.where import any_step
from agentloom.ide.prose import calls, names
from agentloom.ide.prose.fields import of_block, of_choice, of_field
from agentloom.ide.prose.form import Code, Inline, Prose, markdown, say
from agentloom.ide.prose.steps import of_step
from agentloom.model.catalogue import STEP, Block, Field, catalogue

Words = tuple[str, ...]


def _field(words: Words, document: WorkflowDocument | None) -> Prose:
    """(block, field)"""
    block, field = _named(words)
    return (*of_field(block if block.name != STEP else None, field), *_examples(field))


def _choice(words: Words, document: WorkflowDocument | None) -> Prose:
    """(block, field, value)"""
    _, field = _named(words)
    value = words[2]
    fields = (field, any_step().fields.get(field.name))
    shapes = [shape for each in fields if each is not None for shape in (each.shape, *each.shape.any_of)]
    text = next((shape.enum[value] for shape in shapes if shape.enum and value in shape.enum), "")
    return of_choice(field.name, value, text)


def _block(words: Words, document: WorkflowDocument | None) -> Prose:
    """(block)"""
    return of_block(catalogue().blocks[words[0]])


def _rule(words: Words, document: WorkflowDocument | None) -> Prose:
    """(code)"""
    return names.of_rule(words[0])


def _step(words: Words, document: WorkflowDocument | None) -> Prose:
    """(id)"""
    step = document.by_id.get(words[0]) if document is not None else None
    return of_step(document, step) if document is not None and step is not None else ()


def _named(words: Words) -> tuple[Block, Field]:
    block = any_step() if words[0] == STEP else catalogue().blocks[words[0]]
    return block, block.fields[words[1]]


def _examples(field: Field) -> Prose:
    if not field.examples:
        return ()
    parts: list[Inline] = ["Example: " if len(field.examples) == 1 else "Examples: "]
    for number, example in enumerate(field.examples):
        written = example if isinstance(example, str) else json.dumps(example, ensure_ascii=False)
        parts += [", "] * (number > 0) + [Code(written)]
    return (say(*parts),)


EXPLAINERS: Mapping[str, Callable[[Words, WorkflowDocument | None], Prose]] = {
    "field": _field,
    "choice": _choice,
    "block": _block,
    "rule": _rule,
    "step": _step,
    "model": lambda words, _: names.of_model(words[0], words[1] if len(words) > 1 else None),
    "provider": lambda words, _: names.of_provider(words[0]),
    "function": lambda words, _: calls.of_function(words[0]),
    "method": lambda words, _: calls.of_method(words[0]),
    "name": lambda words, _: calls.of_root(words[0]),
}
"""By the first word of ``Item.about``; the others are handed over, with the document if it is still open."""


def explain(about: Words, document: WorkflowDocument | None = None) -> str:
    """Return what there is to say about what an item names, as Markdown; empty when it isn't known. Never raises.

    What is about a `text` is said already.
    """
    if about and about[0] == "text":
        return about[1]
    explainer = EXPLAINERS.get(about[0]) if about else None
    if explainer is None:
        return ""
    try:
        return markdown(explainer(about[1:], document))
    except (KeyError, IndexError):
        return ""
