"""Hover: what stands under the cursor, told in a few words, with its exact range."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from agentloom.analysis.document import Step, WorkflowDocument
from agentloom.analysis.suppress import codes_in
from agentloom.analysis.symbols import Occurrence
from agentloom.ide.around import Around, around
from agentloom.ide.earlier import place_before, span_now
from agentloom.ide.expressions import word_at
from agentloom.ide.hits import Hit, hit_at
from agentloom.ide.json_schemas import position_of
from agentloom.ide.last_run import LastRun, path_of, text_of, value_at
from agentloom.ide.owners import Owner, owner_of, tool_of
from agentloom.ide.prose import anchors, calls, fields, files, last_run, names, state, steps
from agentloom.ide.prose.form import Prose
from agentloom.ide.results import Project
from agentloom.language.paths import MISSING, Part
from agentloom.model.catalogue import Shape
from agentloom.syntax.nodes import Alias, Scalar
from agentloom.syntax.resolve import resolve
from agentloom.syntax.scalars import text_span, value_offset
from agentloom.text import Span

_QUIET = ("template", "template_deep", "expression", "text", "regex", "json_schema")
"""Marks of texts in which only what stands under the cursor is told, not the field."""


class Hover(NamedTuple):
    """What is said about a place, and the range that it is said about, in document offsets."""

    span: Span
    prose: Prose


class Scene(NamedTuple):
    """What is around a hit: the workflow around one that is written in place, the other files, the whole text, and its last run."""

    outer: Around | None = None
    project: Project | None = None
    whole: WorkflowDocument | None = None
    last: LastRun | None = None


def hover_at(
    document: WorkflowDocument,
    offset: int,
    before: WorkflowDocument | None = None,
    project: Project | None = None,
    last: LastRun | None = None,
) -> Hover | None:
    """Return what stands at an offset; ``before`` is the last version without syntax errors, asked where this one has nothing.

    Of steps and state paths it is also told how they came out of the ``last`` run.
    """
    found = _hover(document, offset, project, last)
    if found is not None or before is None or before is document:
        return found
    then = place_before(document.source.text, before.source.text, offset)
    old = _hover(before, then, project, last) if then is not None else None
    span = span_now(document.source.text, before.source.text, old.span) if old is not None else None
    return Hover(span, old.prose) if old is not None and span is not None else None


def _hover(
    document: WorkflowDocument, offset: int, project: Project | None, last: LastRun | None = None
) -> Hover | None:
    found = _comment(document, offset) or _anchor(document, offset)
    if found is not None:
        return found
    hit = hit_at(document, offset)
    if hit is None:
        return None
    scene = Scene(around(document, hit.document), project, document, last)
    if isinstance(hit.node, Alias):
        return _alias(hit)
    if not isinstance(hit.node, Scalar):
        return None
    inside = _inside(hit, hit.node)
    at = max(inside.start, min(offset, inside.end))
    found = _key(hit, hit.node, scene) if hit.is_key else _value(hit, hit.node, at, scene)
    # On a quote stands what is quoted, with its quotes.
    return found._replace(span=hit.span) if found is not None and not found.span.contains(offset) else found


def _comment(document: WorkflowDocument, offset: int) -> Hover | None:
    """Return what a code in a suppression comment means."""
    line = document.lines.line_span(document.lines.line_of(offset))
    text = document.source.text[line.start : line.end]
    at = text.rfind("#", 0, offset - line.start)
    if at < 0 or "agentloom:" not in text:
        return None
    for code, span in codes_in(text[at:], line.start + at):
        hit = hit_at(document, offset) if span.contains(offset) else None
        if span.contains(offset) and not (hit is not None and isinstance(hit.node, Scalar)):  # no comment, but text
            return Hover(span, names.of_rule(code, document.context.settings))
    return None


def _anchor(document: WorkflowDocument, offset: int) -> Hover | None:
    found = anchors.anchor_at(document, offset)
    return Hover(found.span, anchors.of_anchor(document, found)) if found is not None else None


def _alias(hit: Hit) -> Hover | None:
    node = hit.node
    if not isinstance(node, Alias):
        return None
    prose = anchors.of_alias(hit.document, node, hit.base)
    if len(hit.chain) == 1 and hit.step is not None:  # a whole step
        prose = (*steps.of_step(hit.document, hit.step), *prose)
    return Hover(hit.span, prose)


def _key(hit: Hit, node: Scalar, scene: Scene) -> Hover | None:
    span = _inside(hit, node)
    if hit.field is not None:
        return Hover(span, fields.of_field(hit.block, hit.field))
    if node.value == "<<" and node.style == "plain":
        return Hover(span, anchors.OF_MERGE)
    owner = owner_of(hit)
    prose = _key_below(hit, owner, node.value, scene) if owner is not None else ()
    return Hover(span, prose) if prose else None


def _key_below(hit: Hit, owner: Owner, name: str, scene: Scene) -> Prose:
    """Return what a key of an open mapping is: what the mark on the mapping says its keys name."""
    mark = owner.field.shape.mark("template_deep")
    if mark is not None and len(owner.below) == 1:
        if mark.of == "tool_argument":
            return _argument(hit, name)
        if mark.of == "child_state":
            return files.of_child_key(hit.document, hit.step, name)
    if owner.field.shape.mark("json_schema"):
        return fields.of_keyword(name) if position_of(owner.below[:-1]) == "schema" else ()
    mark = owner.field.shape.mark("defines")
    if mark is not None and mark.of == "state":
        return (*state.of_path(hit.document, None, owner.below), *_held(hit, owner.below, scene))
    if mark is not None and mark.of == "agent" and len(owner.below) == 1:
        return _agent(hit.document, name, scene)
    mark = owner.field.shape.mark("ref")
    if mark is not None and mark.of == "state" and len(owner.below) == 1:
        return state.of_schema_key(hit.document, name)
    return ()


def _value(hit: Hit, node: Scalar, offset: int, scene: Scene) -> Hover | None:
    at = offset - hit.base
    for place in hit.facts.occurrences:
        if place.node is node:
            found = _occurrence(hit, place, at, scene)
            if found is not None:
                return found
    shape = hit.shape
    if shape is None:
        return None
    if shape.mark("expression"):
        return _expression(hit, node, at)
    if shape.enum is not None or any(option.enum for option in shape.any_of):
        return _choice(hit, node, shape)
    owner = owner_of(hit)
    if owner is None or owner.below[1:] or any(shape.mark(kind) for kind in _QUIET if shape.marks):
        return None
    if any(owner.field.shape.mark(kind) for kind in _QUIET) or not node.raw or owner.field is not hit.field:
        return None
    return Hover(_inside(hit, node), fields.of_field(hit.block, owner.field))


def _occurrence(hit: Hit, place: Occurrence, at: int, scene: Scene) -> Hover | None:
    if place.kind == "state":
        return _state(hit, place, at, scene)
    span = place.span.shift(hit.base)
    if not span.contains(at + hit.base) or span.start == span.end:
        return None
    prose = _named(hit, place, scene)
    return Hover(span, prose) if prose else None


def _named(hit: Hit, place: Occurrence, scene: Scene) -> Prose:
    """Return what a name means."""
    document = hit.document
    if place.kind == "step":
        step = hit.step if place.role == "define" else document.by_id.get(place.name)
        return (*steps.of_step(document, step), *_ran(document, step, scene)) if step is not None else ()
    if place.kind == "tool":
        tool = document.context.tools.get(place.name)
        return names.of_tool(tool.name, tool.description, tool.parameters) if tool is not None else ()
    if place.kind == "provider":
        return names.of_provider(place.name)
    if place.kind == "model":
        config = document.head.data.get("config")
        provider = config.get("provider") if isinstance(config, dict) else None
        return names.of_model(place.name, provider if isinstance(provider, str) else None)
    if place.kind == "agent":
        return _agent(document, place.name, scene)
    if place.kind == "file":
        return files.of_file(document, hit.step, place, scene.project)
    if place.kind == "child_state":
        return files.of_child_key(document, hit.step, place.name, returned=True)
    return ()


def _state(hit: Hit, place: Occurrence, at: int, scene: Scene) -> Hover | None:
    """Return what the part of a state path under the cursor is, as seen from the step."""
    for number, (inside, span) in enumerate(zip(place.parts_inside, place.part_spans, strict=True)):
        if span.contains(at):
            parts = place.parts[: number + 1]
            if place.form == "expression" and parts == ("steps",):
                return Hover(span.shift(hit.base), calls.of_root("steps"))
            step = hit.step if place.role == "read" else None
            known = state.of_path(hit.document, step, parts, scene.outer)
            return Hover(span.shift(hit.base), (*known, *_held(hit, parts, scene)))
        if inside.start == inside.end:
            break
    written = place.node.value[place.inside.start : place.inside.end]
    root = text_span(place.node, place.inside.start, place.inside.start + len("state"))
    if place.form != "value" and written.startswith("state") and root.contains(at):
        return Hover(root.shift(hit.base), calls.of_root("state"))
    return None


def _ran(document: WorkflowDocument, step: Step, scene: Scene) -> Prose:
    """Return how a step went in the last run."""
    if scene.last is None or scene.whole is None or step.id is None:
        return ()
    path = path_of(scene.whole, document, step.id)
    run = scene.last.steps.get(path) if path is not None else None
    return last_run.of_step(scene.last, run, text_of(document, step)) if run is not None else ()


def _held(hit: Hit, parts: tuple[Part, ...], scene: Scene) -> Prose:
    """Return what the state held at a path when the last run ended: that of the workflow itself, not of one inside it."""
    if scene.last is None or hit.document is not scene.whole or not parts:
        return ()
    value = value_at(scene.last, parts)
    return () if value is MISSING else tuple(last_run.of_value("After the last run", value))


def _expression(hit: Hit, node: Scalar, at: int) -> Hover | None:
    """Return what a function, a method or a word of a condition does."""
    word = word_at(node.value, value_offset(node, at))
    span = text_span(node, *word.span) if word is not None else None
    if word is None or span is None or not span.contains(at):
        return None
    prose: Prose = ()
    if word.role == "function":
        prose = calls.of_function(word.text)
    elif word.role == "method":
        prose = calls.of_method(word.text)
    elif word.role == "keyword":
        prose = calls.of_word(word.text)
    else:
        prose = calls.of_root(word.text) or calls.of_type(word.text)
        if word.text == node.value.strip() and not prose and hit.field is not None:
            prose = fields.of_field(hit.block, hit.field)
    return Hover(span.shift(hit.base), prose) if prose else None


def _choice(hit: Hit, node: Scalar, shape: Shape) -> Hover | None:
    value = resolve(node)
    field = hit.field
    if field is None or not isinstance(value, str):
        return None
    for option in (shape, *shape.any_of):
        if value in (option.enum or {}):
            return Hover(_inside(hit, node), fields.of_choice(field.name, value, (option.enum or {})[value]))
    return Hover(_inside(hit, node), fields.of_field(hit.block, field)) if node.raw else None


def _argument(hit: Hit, name: str) -> Prose:
    """Return what an argument of the step's tool is for."""
    tool = tool_of(hit.document, hit.facts)
    schema = names.tool_arguments(tool.parameters).get(name) if tool is not None else None
    if tool is None or schema is None:
        return ()
    return names.of_argument(tool.name, name, schema, name in names.needed_of(tool.parameters))


def _agent(document: WorkflowDocument, name: str, scene: Scene) -> Prose:
    agents = document.head.data.get("agents")
    if not isinstance(agents, Mapping) or name not in agents:
        return ()
    return files.of_agent(document, name, agents[name], scene.project)


def _inside(hit: Hit, node: Scalar) -> Span:
    """Return where a scalar's text stands: inside its quotes."""
    quoted = node.style in ("single", "double") and node.value
    return (text_span(node, 0, len(node.value)) if quoted else node.span).shift(hit.base)
