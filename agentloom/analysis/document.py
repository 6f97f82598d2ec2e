"""The document: everything known about one version of one file. Immutable; a new text makes a new document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from agentloom.analysis.context import Context
from agentloom.analysis.graph import Graph
from agentloom.diagnostics import Diagnostic, Finding, has_errors
from agentloom.syntax.nodes import Mapping as MappingNode
from agentloom.syntax.nodes import Node, Scalar
from agentloom.syntax.tree import Tree, Unit
from agentloom.text import LineTable, Source, Span

if TYPE_CHECKING:
    from agentloom.model.workflow import Workflow

Role = Literal["define", "refer", "read", "write"]
FileKind = Literal["workflow", "agent"]


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One place where a name stands in the text.

    ``kind`` is what it names (step, state, agent, tool, provider, model, file); ``key`` the dotted path of the field it stands in,
    such as ``conditions.0.target``; ``parts`` the segments of a state path, each with its span. Spans are relative to the
    owner (a step's unit, or the document for the head). ``form`` tells in which language the name was written.
    """

    kind: str
    role: Role
    name: str
    span: Span
    key: str
    parts: tuple[str | int, ...] = ()
    form: Literal["value", "template", "expression"] = "value"
    part_spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Located:
    """A key of a mapping and its value, after merge keys; ``inherited`` when a merge brought it in."""

    key: Scalar
    value: Node
    inherited: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """What one mapping (a step, or the document's head) says by itself; spans are relative to its unit.

    ``data`` is the mapping as plain values, unknown and wrong ones included; ``valid`` tells that its shape has no error.
    """

    node: Node
    unit: Unit
    fields: Mapping[str, Located]
    data: Mapping[str, Any]
    valid: bool
    findings: tuple[Finding, ...]
    occurrences: tuple[Occurrence, ...]

    def text(self, name: str) -> str | None:
        """Return a field's value if it is a text."""
        value = self.data.get(name)
        return value if isinstance(value, str) else None

    def span_of(self, name: str) -> Span:
        """Return the span of a field's value, or of its key where the value is empty, or of the mapping's first key."""
        found = self.fields.get(name)
        if found is not None:
            return found.value.span if found.value.span.end > found.value.span.start else found.key.span
        return self.first

    @property
    def first(self) -> Span:
        """The span that stands for the whole mapping: its first key, or the node itself."""
        if isinstance(self.node, MappingNode) and self.node.entries:
            return self.node.entries[0].key.span
        return self.node.span


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One item of `steps`: its facts, and where they lie. ``id`` and ``type`` are None unless they are texts."""

    index: int
    base: int
    facts: Facts
    id: str | None
    type: str | None

    def place(self, span: Span) -> Span:
        """Return a relative span in document offsets."""
        return span.shift(self.base)

    @property
    def name_span(self) -> Span:
        """The document span that stands for the step: its id, else its first key."""
        return self.place(self.facts.span_of("id") if "id" in self.facts.fields else self.facts.first)


@dataclass(frozen=True)
class WorkflowDocument:
    """One analysed version of a file.

    ``kind`` is None when the text is neither a workflow nor an agent file (no checks then). ``children`` maps the id of each
    subworkflow step whose file could be read to that file's document; inline children too. ``files`` lists what was read.
    """

    source: Source
    context: Context
    tree: Tree
    kind: FileKind | None
    head: Facts
    steps: tuple[Step, ...]
    graph: Graph
    children: Mapping[str, WorkflowDocument] = field(default_factory=dict)
    files: frozenset[Path] = frozenset()
    diagnostics: tuple[Diagnostic, ...] = ()

    @cached_property
    def lines(self) -> LineTable:
        """The table of lines of this text."""
        return LineTable(self.source.text)

    @cached_property
    def by_id(self) -> Mapping[str, Step]:
        """Steps by id; of two with one id, the first."""
        found: dict[str, Step] = {}
        for step in self.steps:
            if step.id is not None:
                found.setdefault(step.id, step)
        return found

    @property
    def path(self) -> Path | None:
        """The file on disk, if the document is one."""
        return self.context.path_of(self.source.uri)

    @property
    def ok(self) -> bool:
        """Whether the engine takes it: no error among the diagnostics."""
        return not has_errors(self.diagnostics)

    @cached_property
    def workflow(self) -> Workflow:
        """The typed model. Only for documents that are ``ok``."""
        from agentloom.model.workflow import build_workflow

        return build_workflow({**self.head.data, "steps": [dict(step.facts.data) for step in self.steps]})
