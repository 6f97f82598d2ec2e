"""Names and their places: plain values that compare equal whenever they mean the same thing."""

from __future__ import annotations

import os
from typing import Literal, NamedTuple, TypeAlias

from agentloom.analysis.document import Facts, Step, WorkflowDocument
from agentloom.analysis.symbols import Form, Occurrence, Role
from agentloom.language.paths import Part
from agentloom.syntax.nodes import Scalar
from agentloom.text import Source, Span

Kind = Literal["step", "state", "agent", "tool", "model", "provider", "file", "anchor"]

Parts: TypeAlias = tuple[str | None, ...]
"""Segments of a path; None stands for the number of a list's item, whichever it is."""

STEPS = "steps"
"""The state key under which the engine keeps results."""

OF_STEPS = frozenset((STEPS, "_approval"))
"""State keys below which the engine keeps something for each step, by its id: results, and decisions of gates."""


class Scope(NamedTuple):
    """Where a name holds: a file, or the workflow written in place in some step of it.

    ``file`` is an absolute path, or the URI of what is no file; ``trail`` the numbers of the steps that lead to the workflow.
    """

    file: str
    trail: tuple[int, ...] = ()


class Name(NamedTuple):
    """What a place names. ``scope`` is None for what is the same everywhere: tools, models, providers, files.

    ``path`` is one text, or the segments of a state path. Results of steps are state paths that begin with `steps`. Anchors have
    the place of their definition behind their name, since a name may be given again further down.
    """

    kind: Kind
    scope: Scope | None
    path: Parts

    @property
    def word(self) -> str:
        """The text that stands in the file for it."""
        return self.path[0 if self.kind == "anchor" else -1] or ""


class Where(NamedTuple):
    """A mapping whose facts name things: a step, or the head of ``document``. Nodes are in offsets relative to ``base``."""

    scope: Scope
    document: WorkflowDocument
    step: Step | None
    facts: Facts
    base: int


class Mention(NamedTuple):
    """A name or path as it stands in a scalar. ``scope`` is where it holds: that of ``where``, or of the child that is run.

    ``insides`` are the places, in the value of ``node``, of the last segments of ``parts``. ``whole`` is the entry that a key
    begins, relative to the unit.
    """

    kind: Kind
    scope: Scope | None
    parts: Parts
    where: Where
    role: Role
    node: Scalar
    insides: tuple[Span, ...]
    form: Form | Literal["key"]
    key: str
    occurrence: Occurrence | None = None
    whole: Span | None = None


class Place(NamedTuple):
    """One place of a name, in document offsets. ``mention`` is None for anchors, and in files that aren't ours."""

    name: Name
    role: Role
    source: Source
    span: Span
    mention: Mention | None = None
    whole: Span | None = None


def file_of(document: WorkflowDocument) -> str:
    """Return what identifies a document's file: its absolute path, or its URI."""
    path = document.path
    return os.path.abspath(path) if path is not None else document.source.uri


def folded(parts: tuple[Part, ...]) -> Parts:
    """Return a path with the numbers of items left open."""
    for part in parts:
        if part.__class__ is int:
            return tuple([None if isinstance(p, int) else p for p in parts])
    return parts  # type: ignore[return-value]


def names_of(mention: Mention) -> list[tuple[Name, Span]]:
    """Return everything that a mention names, with the places in the value: of a path, each prefix that ends in it."""
    first = len(mention.parts) - len(mention.insides)
    if mention.kind != "state":
        return [(Name(mention.kind, mention.scope, mention.parts), mention.insides[0])]
    found: list[tuple[Name, Span]] = []
    for at in range(first, len(mention.parts)):
        if mention.parts[at]:
            found.append((name_of_path(mention.scope, mention.parts[: at + 1]), mention.insides[at - first]))
    return found


def name_of_path(scope: Scope | None, path: Parts) -> Name:
    """Return what a state path means: `steps.x` is the step."""
    if len(path) == 2 and path[0] in OF_STEPS and path[1] is not None:
        return Name("step", scope, path[1:])
    return Name("state", scope, path)
