"""The rule about comparisons with texts that never come."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from agentloom.analysis import edits
from agentloom.analysis.asked import demanded_labels
from agentloom.analysis.dataflow import Flow, dataflow
from agentloom.analysis.document import Step, WorkflowDocument
from agentloom.analysis.outcomes import STATUSES, schema_of, texts_of
from agentloom.diagnostics import Edit, Finding, Fix, Related
from agentloom.language.expression import parse_expression
from agentloom.language.paths import MISSING, Part, format_path, get
from agentloom.syntax.scalars import text_span
from agentloom.text import Span

if TYPE_CHECKING:
    from agentloom.analysis.symbols import Leaf
    from agentloom.language.tree import Constant, Node

_SHOWN = 6
_CHANGES: dict[str, Callable[[str], str]] = {
    "lower": str.lower,
    "upper": str.upper,
    "casefold": str.casefold,
    "strip": str.strip,
}


def impossible_comparison(document: WorkflowDocument) -> Iterator[Finding]:
    """A condition compares a value with a text that it can never be.

    A gate's output is `approved` or `rejected`, a router's the id of a step, and a reply with a JSON Schema has one of its `enum`; case and
    blanks count. So do they in the labels of which a prompt demands one: "Classify as billing or technical. Answer with one word." A result's `status` is `success` or nothing: a step that failed has no result. What went through `lower()`, `upper()` or
    `strip()` has no capital letters, no small ones, or no blanks around it.

    Compare with one of the values that there are.
    """
    routers = [step for step in document.steps if step.type == "router" and step.id in document.by_id]
    if not routers:
        return
    flow = dataflow(document)
    for step in routers:
        for leaf in step.facts.expressions:
            if not isinstance(leaf.value, str):
                continue
            expression = parse_expression(leaf.value)
            if expression.faults:
                continue
            yield from _changed_texts(step, leaf, expression.tree)
            for parts, constant, wanted in _comparisons(expression.tree):
                known = _known_values(flow, step, parts)
                if known is None or wanted in known.values or any(wanted in prompt for prompt in known.prompts):
                    continue
                values, writers = known.values, known.writers
                span = text_span(leaf.node, *constant.span)
                near = _near(wanted, values)
                written = format_path(parts)
                listed = ", ".join(f"`{value}`" for value in values[:_SHOWN]) + (" …" if len(values) > _SHOWN else "")
                cure = (
                    f"did you mean `{near}`?"
                    if near
                    else f"it is {'one of ' if len(values) > 1 else ''}{listed}, or nothing"
                )
                yield Finding(
                    "AL306",
                    step.place(span),
                    f"`{written}` {'is asked never to be' if known.prompts else 'is never'} `{wanted}`; {cure}",
                    related=tuple(
                        Related(writer.name_span, f"`{writer.id}` {'is asked for' if known.prompts else 'gives'} it")
                        for writer in writers[:3]
                    ),
                    fixes=_fixes(step, leaf.node, constant.inner, near),
                )


def _changed_texts(step: Step, leaf: Leaf, tree: Node) -> Iterator[Finding]:
    """Yield comparisons of a text that went through `lower()` and the like with one that didn't: `state.x.lower() == 'Billing'`."""
    from agentloom.language.tree import Compare, Constant, Display, MethodCall, children

    todo: list[Node] = [tree]
    while todo:
        node = todo.pop()
        todo.extend(children(node))
        found: list[tuple[Node, Node, bool]] = []  # the changed text, the constant, and whether all of it is compared
        if isinstance(node, MethodCall) and node.name in ("startswith", "endswith") and len(node.arguments) == 1:
            found.append((node.target, node.arguments[0], False))
        left = node.first if isinstance(node, Compare) else node
        for operator, right in node.rest if isinstance(node, Compare) else ():
            if operator == "==":
                found += [(left, right, True), (right, left, True)]
            elif operator == "in" and isinstance(right, Display):
                found += [(left, item, True) for item in right.items]
            elif operator == "in":
                found.append((right, left, False))
            left = right
        for text, constant, whole in found:
            if not isinstance(constant, Constant) or not isinstance(constant.value, str):
                continue
            possible = _changed(text, constant.value, whole)
            if possible == constant.value:
                continue
            written = str(leaf.value)[text.span[0] : text.span[1]]
            cure = f"did you mean `{possible}`?" if possible else "compare with something else"
            yield Finding(
                "AL306",
                step.place(text_span(leaf.node, *constant.span)),
                f"`{written}` {'is never' if whole else 'never holds'} `{constant.value}`; {cure}",
                fixes=_fixes(step, leaf.node, constant.inner, possible or None),
            )


def _changed(node: Node, text: str, whole: bool) -> str:
    """Return a text as the methods called on a value would leave it; unchanged, it is one that they can give."""
    from agentloom.language.tree import MethodCall

    case = False
    while isinstance(node, MethodCall) and not node.arguments and node.name in _CHANGES:
        if node.name == "strip":
            text = text.strip() if whole else text
        elif not case:  # the last one counts
            case, text = True, _CHANGES[node.name](text)
        node = node.target
    return text


def _fixes(step: Step, node: object, inner: Span, near: str | None) -> tuple[Fix, ...]:
    from agentloom.syntax.nodes import Scalar

    if near is None or not isinstance(node, Scalar) or set(near) & set("'\"\\"):
        return ()
    found = edits.replace_inside(node, *inner, near)
    moved = tuple(Edit(edit.span.shift(step.base), edit.text) for edit in found)
    return (Fix(f"change to `{near}`", moved, safe=False),) if moved else ()


def _near(wanted: str, values: tuple[str, ...]) -> str | None:
    from agentloom.similar import closest

    plain = wanted.strip().casefold()
    return next((value for value in values if value.strip().casefold() == plain), None) or closest(wanted, values)


def _comparisons(tree: Node) -> Iterator[tuple[tuple[Part, ...], Constant, str]]:
    """Yield the equalities between a path and a text, and the texts in a list that a path is looked up in."""
    from agentloom.language.reading import path_of
    from agentloom.language.tree import Compare, Constant, Display, children

    todo: list[Node] = [tree]
    while todo:
        node = todo.pop()
        todo.extend(children(node))
        if not isinstance(node, Compare):
            continue
        left = node.first
        for operator, right in node.rest:
            pairs: list[tuple[Node, Node]] = []
            if operator == "==":
                pairs = [(left, right), (right, left)]
            elif operator == "in" and isinstance(right, Display):
                pairs = [(left, item) for item in right.items]
            for path, text in pairs:
                if isinstance(text, Constant) and isinstance(text.value, str):
                    parts = path_of(path)
                    if parts:
                        yield parts, text, text.value
            left = right


class _Known(NamedTuple):
    """The texts that a path can hold, and the steps that write it. ``prompts`` are those that only ask for one of the texts."""

    values: tuple[str, ...]
    writers: tuple[Step, ...]
    prompts: tuple[str, ...] = ()


def _known_values(flow: Flow, step: Step, parts: tuple[Part, ...]) -> _Known | None:
    """Return the texts that a path can hold; None when that isn't known."""
    if parts[0] == "steps":
        writer = flow.document.by_id.get(str(parts[1])) if len(parts) > 2 else None
        if writer is None:
            return None
        if parts[2] == "status" and len(parts) == 3:
            return _Known(STATUSES, (writer,))
        return _values_of(writer, parts[3:]) if parts[2] == "output" else None
    if flow.outer is not None or flow.declared.origin(parts) not in (None, "state"):
        return None
    state = flow.document.head.data.get("state")
    initial = get(state, parts) if isinstance(state, dict) else MISSING
    if initial not in (MISSING, None, ""):
        return None
    found: dict[str, None] = {}
    writers: list[Step] = []
    prompts: list[str] = []
    for other in flow.writers(parts):
        if other.parts != parts[: len(other.parts)]:
            return None  # only a part of it, or something below
        known = _values_of(other.step, parts[len(other.parts) :])
        if known is None or any(write.key == "conversation" for write in other.step.facts.writes):
            return None
        found.update(dict.fromkeys(known.values))
        writers.append(other.step)
        prompts += known.prompts
    return _Known(tuple(found), tuple(writers), tuple(prompts)) if found else None


def _values_of(step: Step, below: tuple[Part, ...]) -> _Known | None:
    """Return the texts that a step's output, or a part of it, can be, or is asked to be; None when that isn't known."""
    values = texts_of(step, below)
    if values:
        return _Known(values, (step,))
    prompt = step.facts.text("prompt")
    if below or prompt is None or step.type != "llm_call" or schema_of(step) is not None:
        return None
    asked = "\n".join(text for text in (step.facts.text("system_prompt"), prompt) if text is not None)
    labels = demanded_labels(asked)
    return _Known(labels, (step,), (asked,)) if labels else None
