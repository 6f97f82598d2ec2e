"""Keys that don't belong where they stand, and keys that are missing: AL101, AL102, AL108."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from agentloom.analysis import edits
from agentloom.analysis.document import Located, word_span
from agentloom.analysis.lower.kinds import fits, is_empty, kind_of
from agentloom.analysis.lower.words import inside, listing, step_words, subject
from agentloom.diagnostics import Edit, Finding, Fix, Related
from agentloom.model.catalogue import Block, Field, catalogue
from agentloom.similar import closest
from agentloom.syntax.nodes import Mapping as MappingNode
from agentloom.syntax.tree import Unit
from agentloom.text import Span

MOST_KEYS = 500
"""Keys of a mapping up to which removing an unknown one is offered; finding its place takes a look at all of them."""

MOST_ALLOWED_LISTED = 8
"""Allowed keys are listed in a message up to this many."""

# Words of comparable formats, for keys whose own spelling is too far away to be found by likeness.
OTHER_WORDS: Mapping[str, tuple[str, ...]] = {
    "after": ("depends_on",),
    "args": ("tool_args",),
    "arguments": ("tool_args",),
    "budget": ("budget_usd",),
    "dependencies": ("depends_on",),
    "else": ("default",),
    "goto": ("target",),
    "if": ("expression",),
    "instructions": ("system_prompt",),
    "name": ("id",),
    "needs": ("depends_on",),
    "next": ("target",),
    "params": ("tool_args",),
    "prompt": ("system_prompt",),
    "requires": ("depends_on",),
    "routes": ("conditions",),
    "save_as": ("output",),
    "system": ("system_prompt",),
    "then": ("target",),
    "tool": ("tool_name",),
    "variables": ("state",),
    "vars": ("state",),
    "when": ("expression",),
    "with": ("tool_args",),
    "workflow": ("workflow_path",),
}


class Owner(NamedTuple):
    """A mapping with known keys: its node and unit, the block that describes it, its fields, and the key that it stands at."""

    node: MappingNode
    unit: Unit
    block: Block
    fields: Mapping[str, Located]
    name: str = ""


def check_keys(owner: Owner) -> tuple[list[Finding], dict[str, Located]]:
    """Return what is wrong with a mapping's keys, and its fields as they were meant.

    A misspelled key stands under its right name there if its value fits: so one mistake isn't told again by what misses the key.
    """
    findings: list[Finding] = []
    fields: dict[str, Located] = {}
    meant: set[str] = set()
    for name, located in owner.fields.items():
        if name in owner.block.fields:
            fields[name] = located
            continue
        near = _meant(owner, name, meant)
        home = _home_of(name, owner.block) if near is None or near.casefold() != name.casefold() else None
        if home is not None and (near is None or home.sure):
            findings.append(_misplaced(owner, name, located, home))
            near = None
        else:
            findings.append(unknown(owner, name, located, near))
        if near is not None:
            meant.add(near)
        right = near if near is not None and _fits(located, owner.block.fields[near]) else name
        fields[right] = located
    for name, described in owner.block.fields.items():
        if described.required and name not in owner.fields and name not in meant:
            findings.append(missing(owner, described))
    return findings, fields


def _fits(located: Located, described: Field) -> bool:
    kind = kind_of(located.value)
    return any(fits(kind, shape) for shape in described.shape.any_of or (described.shape,))


def _meant(owner: Owner, name: str, taken: Collection[str]) -> str | None:
    """Return the key that a misspelled one was probably meant to be; none that is there, or meant by another one, already."""
    free = [field for field in owner.block.fields if field not in owner.fields and field not in taken]
    folded = name.casefold()
    same = [field for field in free if field.casefold() == folded]
    other = [word for word in OTHER_WORDS.get(folded, ()) if word in free]
    return next(iter(same + other), None) or (closest(name, free) if name else None)


def unknown(owner: Owner, name: str, located: Located, near: str | None) -> Finding:
    """Return the finding for a key that isn't known there; ``near`` is the one that was probably meant."""
    where = inside(owner.block, owner.name)
    said = f"unknown key `{name}` {where}" if name else f"a key without a name {where}"
    allowed = list(owner.block.fields)
    if near is not None:
        cure = f"did you mean `{near}`?"
    elif len(allowed) <= MOST_ALLOWED_LISTED:
        cure = f"allowed {'are' if len(allowed) > 1 else 'is'} {listing(allowed)}"
    else:
        cure = "remove it"
    fixes: list[Fix] = []
    if located.via is None:
        if near is not None:
            fixes.append(Fix(f"change to `{near}`", edits.rename_key(located.key, near), safe=False))
        few = len(owner.fields) <= MOST_KEYS
        gone = edits.remove_entry(owner.unit.text, owner.node, located.key, located.value) if few else ()
        if gone:
            fixes.append(Fix(f"remove `{name}`" if name else "remove the key", gone, safe=False))
    return _at_key("AL102", located, f"{said}; {cure}", tuple(fixes))


def _misplaced(owner: Owner, name: str, located: Located, home: _Home) -> Finding:
    fixes: tuple[Fix, ...] = ()
    if home.under is not None and located.via is None and _can_move(owner, name, located, home.under):
        moved = edits.move_under(owner.unit.text, owner.node, located.key, located.value, home.under, owner.fields)
        fixes = (Fix(f"move `{name}` under `{home.under}`", moved, safe=False),) if moved else ()
    return _at_key("AL108", located, f"`{name}` {home.words}; {home.cure}", fixes)


def _can_move(owner: Owner, name: str, located: Located, under: str) -> bool:
    """Tell whether a key can go under a sibling; not if that would have to be made, and needs other keys too."""
    block = owner.block.fields[under].shape.block
    needs = catalogue().required(block) - {name} if block and under not in owner.fields else frozenset()
    return not needs and not is_empty(located.value)


def _at_key(code: str, located: Located, message: str, fixes: tuple[Fix, ...]) -> Finding:
    span = word_span(located.key)
    if located.via is None:
        return Finding(code, _visible(span), message, fixes=fixes)
    return Finding(code, located.via, message, related=(Related(span, "it comes from here"),))


def _visible(span: Span) -> Span:
    """Return a key's span; that of its colon when there is nothing before it."""
    return span if span.end > span.start else Span(span.start, span.start + 1)


def missing(owner: Owner, described: Field) -> Finding:
    """Return the finding for a key that isn't there, at the mapping's first key; the fix adds it with a value to begin with."""
    node, name = owner.node, described.name
    span = node.entries[0].key.span if node.entries else node.span
    value = edits.skeleton(described)
    added: tuple[Edit, ...] = ()
    if name == "steps":
        added = edits.add_steps(owner.unit.text, node)
    elif value is not None and name == next(iter(owner.block.fields)):
        added = edits.add_first_entry(owner.unit.text, node, name, value)
    elif value is not None:
        added = edits.add_entry(owner.unit.text, node, name, value)
    fixes = (Fix(f"add `{name}`", added, safe=False),) if added else ()
    return Finding("AL101", span, f"{subject(owner.block, owner.name)} needs `{name}`; add it", fixes=fixes)


class _Home(NamedTuple):
    """Where a key belongs. ``sure`` when the name says so by itself; ``under`` is the sibling key to move it under."""

    words: str
    cure: str = "move it there"
    sure: bool = True
    under: str | None = None


def _home_of(name: str, block: Block) -> _Home | None:
    """Tell where a key that doesn't belong to a block would belong."""
    known = catalogue()
    for field_name, described in block.fields.items():
        inner = described.shape.block
        if inner and inner not in (block.name, known.workflow) and name in known.blocks[inner].fields:
            return _Home(f"belongs under `{field_name}`", under=field_name)
    if block.tag is not None:
        found = _owners(name)
        cure = "remove it or change `type`"
        return _Home(f"belongs to {found}, this is {step_words(block.tag)}", cure) if found else _top(name)
    found = _owners(name)
    if block.name == known.workflow:
        return _Home(f"belongs to {found}") if found and name not in _COMMON_WORDS else None
    if found and any(
        block.name == _block_of(f) for step in known.steps.values() for f in known.blocks[step].fields.values()
    ):
        return _Home("belongs to the step itself", sure=name not in _COMMON_WORDS)
    return _Home(f"belongs to {found}", sure=name not in _COMMON_WORDS) if found else _top(name)


def _block_of(described: Field) -> str | None:
    return described.shape.block or (described.shape.item.block if described.shape.item else None)


def _owners(name: str) -> str | None:
    """Return which types of steps have a field, in words."""
    known = catalogue()
    owners = [type_ for type_, step in known.steps.items() if name in known.blocks[step].fields]
    if not owners:
        return None
    if len(owners) == len(known.steps):
        return "a step"
    if len(owners) == 1:
        return step_words(owners[0])
    first = step_words(owners[0]).removesuffix(" step")
    return " or ".join([first, *(f"`{owner}`" for owner in owners[1:3])]) + " step"


def _top(name: str) -> _Home | None:
    known = catalogue()
    top = known.blocks[known.workflow]
    config = top.fields["config"].shape.block
    if config and name in known.blocks[config].fields:
        return _Home("belongs under the top-level `config`")
    # `name` and `description` are words that people put anywhere; nothing says that the file's own are meant
    return _Home("belongs at the top level of the file") if name in top.fields and name not in _COMMON_WORDS else None


_COMMON_WORDS = ("id", "type", "name", "description", "version", "model")
