"""Rules about templates: `{state.x}` in prompts and other texts."""

from __future__ import annotations

from collections.abc import Iterator

from agentloom.analysis import edits
from agentloom.analysis.document import Facts
from agentloom.analysis.symbols import Leaf
from agentloom.diagnostics import Finding, Fix
from agentloom.language.arguments import parse_argument
from agentloom.language.faults import Fault
from agentloom.language.template import parse_template
from agentloom.syntax.scalars import text_span


def template_syntax(facts: Facts) -> Iterator[Finding]:
    """A template can't be rendered: an open brace, an empty `{}`, a stray `}`.

    Braces mark the places where the state goes; the step would fail for good. The commonest mistake is a JSON example in a prompt.

    Write a literal brace twice: `{{` and `}}`.
    """
    for leaf in facts.leaves:
        if not isinstance(leaf.value, str):
            continue
        if leaf.shape.mark("template"):
            faults = parse_template(leaf.value).faults
        elif leaf.shape.mark("template_deep"):
            faults = parse_argument(leaf.value).faults
        else:
            continue
        for fault in faults:
            yield Finding(
                "AL304", text_span(leaf.node, fault.start, fault.end), fault.message, fixes=cures(leaf, fault)
            )


def cures(leaf: Leaf, fault: Fault) -> tuple[Fix, ...]:
    """Return the fix that a fault in a scalar's value carries, as an edit of the scalar's source text."""
    if fault.replacement is None:
        return ()
    edit = edits.replace_inside(leaf.node, fault.start, fault.end, fault.replacement)
    return (Fix(fault.title or f"change to `{fault.replacement}`", edit, safe=False),) if edit else ()
