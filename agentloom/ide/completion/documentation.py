"""What an editor shows beside an item when it is looked at; worked out when asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from agentloom.analysis.document import WorkflowDocument
from agentloom.ide.completion.where import any_step
from agentloom.ide.prose import calls, names
from agentloom.ide.prose.fields import of_block, of_choice, of_field
from agentloom.ide.prose.files import of_agent
from agentloom.ide.prose.form import Code, Inline, Prose, markdown, say
from agentloom.ide.prose.state import of_path
from agentloom.ide.prose.steps import of_step
from agentloom.language.paths import PathFault, parse_path
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


def _state(words: Words, document: WorkflowDocument | None) -> Prose:
    """(path)"""
    path = parse_path(words[0])
    return of_path(document, None, path.parts) if document is not None and not isinstance(path, PathFault) else ()


def _tool(words: Words, document: WorkflowDocument | None) -> Prose:
    """(name)"""
    tool = document.context.tools.get(words[0]) if document is not None else None
    return names.of_tool(tool.name, tool.description, tool.parameters) if tool is not None else ()


def _argument(words: Words, document: WorkflowDocument | None) -> Prose:
    """(tool, path …)"""
    tool = document.context.tools.get(words[0]) if document is not None else None
    if tool is None:
        return ()
    path = [int(part) if part.isdigit() else part for part in words[1:-1]]
    schema = names.argument_at(tool.parameters, path)
    described = names.tool_arguments(schema).get(words[-1]) if schema is not None else None
    if schema is None or described is None:
        return ()
    return names.of_argument(tool.name, words[-1], described, words[-1] in names.needed_of(schema))


def _agent(words: Words, document: WorkflowDocument | None) -> Prose:
    """(name)"""
    agents = document.head.data.get("agents") if document is not None else None
    return of_agent(document, words[0], agents[words[0]]) if document is not None and isinstance(agents, dict) else ()


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
    "state": _state,
    "tool": _tool,
    "argument": _argument,
    "agent": _agent,
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
