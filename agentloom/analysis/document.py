"""The document: everything known about one version of one file. Immutable; a new text makes a new document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from agentloom.analysis.context import Context
from agentloom.analysis.graph import Graph
from agentloom.analysis.symbols import Leaf, Occurrence
from agentloom.diagnostics import Diagnostic, Finding, has_errors
from agentloom.model.catalogue import Block
from agentloom.records import record
from agentloom.syntax.nodes import Mapping as MappingNode
from agentloom.syntax.nodes import Node, Scalar
from agentloom.syntax.scalars import text_span
from agentloom.syntax.tree import Tree, Unit
from agentloom.text import LineTable, Source, Span

if TYPE_CHECKING:
    from agentloom.model.workflow import Workflow

FileKind = Literal["workflow", "agent"]


class Located(NamedTuple):
    """A key of a mapping and its value, after merge keys. ``via`` is the span of the merge's value that brought it in."""

    key: Scalar
    value: Node
    via: Span | None = None


def word_span(node: Node) -> Span:
    """Return where the text of a value stands: inside its quotes, where it has any; the whole value otherwise."""
    if isinstance(node, Scalar) and node.value and node.style in ("single", "double"):
        return text_span(node, 0, len(node.value))
    return node.span


class Dependency(NamedTuple):
    """A name in `depends_on`, where it stands (relative to the unit), and its number in the list."""

    name: str
    span: Span
    number: int


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Facts:
    """What one mapping (a step, or a document's head) says by itself; spans are relative to its unit.

    ``data`` is the mapping as plain values, unknown and wrong ones included. ``block`` describes it (None when the step type
    isn't known). ``findings`` are those of its shape; ``leaves`` the scalars whose fields carry marks, ``expressions`` those of
    them that are router expressions. ``dependencies`` are the texts in `depends_on`; a lone one, a fault of shape, counts as a list.
    ``writes`` are the occurrences that write to the state, ``reads`` those that read it, ``files`` those that name a file.
    """

    node: Node
    unit: Unit
    block: Block | None
    fields: Mapping[str, Located]
    data: Mapping[str, Any]
    findings: tuple[Finding, ...]
    leaves: tuple[Leaf, ...]
    occurrences: tuple[Occurrence, ...]
    expressions: tuple[Leaf, ...] = ()
    dependencies: tuple[Dependency, ...] = ()
    writes: tuple[Occurrence, ...] = ()
    files: tuple[Occurrence, ...] = ()
    reads: tuple[Occurrence, ...] = ()

    def text(self, name: str) -> str | None:
        """Return a field's value if it is a text."""
        value = self.data.get(name)
        return value if isinstance(value, str) else None

    def span_of(self, name: str) -> Span:
        """Return where a field's value stands (quotes left out), its key where it is empty, or the mapping's first key."""
        found = self.fields.get(name)
        if found is not None:
            return word_span(found.value) if found.value.span.end > found.value.span.start else found.key.span
        return self.first

    def key_span(self, name: str) -> Span:
        """Return the span of a field's key, or that of the mapping's first key."""
        found = self.fields.get(name)
        return found.key.span if found is not None else self.first

    @property
    def first(self) -> Span:
        """The span that stands for the whole mapping: its first key, or the node itself."""
        if isinstance(self.node, MappingNode) and self.node.entries:
            return self.node.entries[0].key.span
        return self.node.span


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Step:
    """One item of `steps`: its facts, and where they lie. ``id`` and ``type`` are None unless they are texts.

    ``alias`` is the document span of the alias when the item is one (its facts then lie at the anchor).
    """

    index: int
    base: int
    facts: Facts
    id: str | None
    type: str | None
    alias: Span | None = None

    def place(self, span: Span) -> Span:
        """Return a relative span in document offsets."""
        return span.shift(self.base)

    @property
    def name_span(self) -> Span:
        """The document span that stands for the step: its id, else its first key."""
        if self.alias is not None:
            return self.alias
        found = self.facts.fields.get("id")
        return self.place(found.via if found is not None and found.via is not None else self.facts.span_of("id"))

    @property
    def needs(self) -> tuple[str, ...]:
        """The names of the steps that it waits for, as written."""
        return tuple([dependency.name for dependency in self.facts.dependencies])


class Child(NamedTuple):
    """The workflow behind a subworkflow step.

    ``document`` is None when there is no file to read (``missing`` says why, in plain words). ``loop`` lists the files of a
    ring that leads back to the document's own file. ``path`` is None for inline children, whose spans are the parent's.
    """

    path: Path | None
    document: WorkflowDocument | None = None
    missing: str | None = None
    loop: tuple[Path, ...] = ()


@record(slots=False)
class WorkflowDocument:
    """One analysed version of a file.

    ``kind`` is None when the text is neither a workflow nor an agent file (no checks then). ``children`` maps step ids to the
    workflows that they run, ``agents`` paths as written to the agent files that they name. ``files`` lists every file that was read. ``base`` is where the head's unit begins (0 but for
    inline children). ``inline`` tells that the workflow is written in place below a step of another.
    """

    source: Source
    context: Context
    tree: Tree
    kind: FileKind | None
    head: Facts
    steps: tuple[Step, ...] = ()
    graph: Graph = field(default_factory=lambda: Graph({}))
    children: Mapping[str, Child] = field(default_factory=dict)
    agents: Mapping[str, Child] = field(default_factory=dict)
    files: frozenset[Path] = frozenset()
    base: int = 0
    diagnostics: tuple[Diagnostic, ...] = ()
    inline: bool = False

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

    @cached_property
    def path(self) -> Path | None:
        """The file on disk, if the document is one."""
        return self.context.path_of(self.source.uri)

    @property
    def ok(self) -> bool:
        """Whether the engine takes it: no error among the diagnostics."""
        return not has_errors(self.diagnostics)

    @cached_property
    def data(self) -> Mapping[str, Any]:
        """The whole file as plain values."""
        if "steps" not in self.head.data:
            return self.head.data
        return {**self.head.data, "steps": [dict(step.facts.data) for step in self.steps]}

    @cached_property
    def view(self) -> Workflow:
        """The workflow with its defaults, read like the typed model but made without pydantic. Only for documents that are ``ok``."""
        from agentloom.model.view import view_workflow

        return view_workflow(self.data)

    @cached_property
    def workflow(self) -> Workflow:
        """The typed model. Only for documents that are ``ok``; raises ``WorkflowError`` for others."""
        from agentloom.model.workflow import build_workflow

        return build_workflow(dict(self.data))
