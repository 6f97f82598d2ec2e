"""The one door: text and context in, checked document out. The command line, the engine's loader and the server all call it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentloom.analysis.agents import agent_files
from agentloom.analysis.children import ChildReader, inline_child
from agentloom.analysis.classify import classify
from agentloom.analysis.context import Context
from agentloom.analysis.document import Child, Facts, FileKind, Step, WorkflowDocument
from agentloom.analysis.graph import Graph, build_graph
from agentloom.analysis.lower import FOUND_WORDS, collection_span, empty_head, kind_of, lower_head, lower_step
from agentloom.analysis.rules.registry import DOCUMENT_RULES, MAPPING_RULES, STEP_RULES, Rule
from agentloom.analysis.stamp import stamp
from agentloom.diagnostics import Diagnostic, Finding
from agentloom.syntax.nodes import Alias, Mapping, Node, Scalar
from agentloom.syntax.nodes import Sequence as SequenceNode
from agentloom.syntax.reader import Reader, collector_rests
from agentloom.syntax.tree import Placed, Tree, Unit
from agentloom.text import Source, Span

RAISE_CRASHES = False
"""Whether a crash inside a rule is raised rather than reported as AL900; the tests set it."""


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class AnalysisCache:
    """What one open document keeps between its versions, so that an edit costs its own piece. Not for concurrent use."""

    reader: Reader = field(default_factory=Reader)
    steps: dict[int, tuple[Node, Facts, tuple[Finding, ...]]] = field(default_factory=dict)
    children: dict[Path, AnalysisCache] = field(default_factory=dict)
    last: WorkflowDocument | None = None


def analyze(
    source: Source,
    context: Context,
    cache: AnalysisCache | None = None,
    kind: FileKind | None = None,
    found: Sequence[Finding] = (),
) -> WorkflowDocument:
    """Return the checked document of a text. Never raises for anything in the text.

    ``kind`` says what the file is when the caller knows; otherwise it is told by name and looks, and a text that looks like
    neither is checked as a workflow. ``cache`` is kept by callers that check one document again and again. ``found`` is what
    was wrong before there was a text: its encoding (``agentloom.syntax.decode``).
    """
    if kind is None:
        kind = classify(source.text, context.path_of(source.uri), context.settings) or "workflow"
    with collector_rests(source.text):
        return _analyze(source, context, cache or AnalysisCache(), kind, ChildReader(context), found)


def _analyze(
    source: Source,
    context: Context,
    cache: AnalysisCache,
    kind: FileKind,
    reader: ChildReader,
    found: Sequence[Finding] = (),
) -> WorkflowDocument:
    tree = cache.reader.read(source.text)
    findings = [*found, *tree.findings]
    parts = _Parts(source, context, cache, reader)
    document = parts.document(tree, kind, 0, findings)
    cache.steps = parts.kept
    object.__setattr__(document, "diagnostics", stamp(findings, tree, document.lines, context.settings))
    object.__setattr__(document, "files", frozenset(reader.seen))
    cache.last = document
    return document


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class _Parts:
    """Builds a document, and those of its inline children, from a tree; gathers findings in document offsets."""

    source: Source
    context: Context
    cache: AnalysisCache
    reader: ChildReader
    kept: dict[int, tuple[Node, Facts, tuple[Finding, ...]]] = field(default_factory=dict)

    def document(
        self, tree: Tree, kind: FileKind, base: int, findings: list[Finding], inline: bool = False
    ) -> WorkflowDocument:
        unit = Unit(tree.text, tree.top)
        top = tree.top
        if not isinstance(top, Mapping):
            head = empty_head(unit)
            if top is not None or not findings:  # else the syntax errors say why there is nothing
                findings.append(_no_mapping(top, tree.text, kind))
            return WorkflowDocument(self.source, self.context, tree, kind, head, base=base, inline=inline)
        if kind == "agent":
            head = lower_head(top, unit, "agent", frozenset())
            findings.extend(head.findings)
            agents = self._agents(kind, head, ())
            document = WorkflowDocument(self.source, self.context, tree, kind, head, agents=agents, base=base)
        else:
            head = lower_head(top, unit, "workflow", frozenset({"steps"}))
            findings.extend(finding.shift(base) for finding in head.findings)
            findings.extend(_shape_of_steps(tree, base))
            steps = tuple(self._steps(tree.steps, findings))
            needs: dict[str, Sequence[str]] = {}
            for step in steps:
                if step.id is not None:
                    needs.setdefault(step.id, step.needs)
            graph = build_graph(needs)
            children = self._children(steps, findings)
            agents = self._agents(kind, head, steps)
            document = WorkflowDocument(
                self.source, self.context, tree, kind, head, steps, graph, children, agents, base=base, inline=inline
            )
            if (
                not inline and self.cache.last is not None
            ):  # what the data flow found stays, where nothing of it changed
                document.__dict__["_flow_before"] = self.cache.last.__dict__.get("_flow_tables")
        for rule in MAPPING_RULES:
            findings.extend(finding.shift(base) for finding in _run(rule, head, head))
        for rule in DOCUMENT_RULES:
            findings.extend(_run(rule, document, head, base))
        return document

    def _steps(self, placed: Iterable[Placed], findings: list[Finding]) -> Iterator[Step]:
        for index, item in enumerate(placed):
            node = item.node
            alias = None
            if isinstance(node, Alias):
                alias = node.span.shift(item.base)
                if node.target is None:
                    continue
                node = node.target
            if not isinstance(node, Mapping):
                findings.append(_no_step(node, alias or node.span.shift(item.base), item.unit.text))
                continue
            facts, own = self._facts(node, item.unit)
            if own:
                findings.extend(finding.shift(item.base) for finding in own)
            id_, type_ = facts.data.get("id"), facts.data.get("type")
            yield Step(
                index=index,
                base=item.base,
                facts=facts,
                id=id_ if isinstance(id_, str) and id_ else None,
                type=type_ if isinstance(type_, str) else None,
                alias=alias,
            )

    def _facts(self, node: Mapping, unit: Unit) -> tuple[Facts, tuple[Finding, ...]]:
        known = self.cache.steps.get(id(node)) or self.kept.get(id(node))
        if known is None or known[0] is not node:
            facts = lower_step(node, unit)
            found = list(facts.findings)
            for rule in STEP_RULES:
                found.extend(_run(rule, facts, facts))
            known = (node, facts, tuple(found))
        self.kept[id(node)] = known
        return known[1], known[2]

    def _children(self, steps: Sequence[Step], findings: list[Finding]) -> dict[str, Child]:
        found: dict[str, Child] = {}
        for step in steps:
            if step.type != "subworkflow" or step.id is None or step.id in found:
                continue
            inline = inline_child(step)
            if inline is not None:
                document = self.document(inline, "workflow", step.base, findings, True)
                found[step.id] = Child(None, document)
            path = step.facts.text("workflow_path")
            if path and inline is None:
                found[step.id] = self.reader.child(path, self.source, self._child)
        return found

    def _agents(self, kind: FileKind, head: Facts, steps: Sequence[Step]) -> dict[str, Child]:
        found: dict[str, Child] = {}
        if "agents" in head.fields or kind == "agent" or any(step.type == "agent" for step in steps):
            for path in agent_files(kind, head, (step.facts for step in steps if step.type == "agent")):
                if path not in found:
                    found[path] = self.reader.child(path, self.source, self._agent)
        return found

    def _agent(self, source: Source, reader: ChildReader) -> WorkflowDocument:
        return self._child(source, reader, "agent")

    def _child(self, source: Source, reader: ChildReader, kind: FileKind = "workflow") -> WorkflowDocument:
        path = self.context.path_of(source.uri)
        cache = self.cache.children.setdefault(path, AnalysisCache()) if path else AnalysisCache()
        last = cache.last
        if last is not None and last.source.text == source.text and last.context is self.context and not last.files:
            return last
        return _analyze(source, self.context, cache, kind, reader)


def _run(rule: Rule, subject: Any, where: Facts, base: int = 0) -> list[Finding]:
    """Return what a rule finds; a crash becomes one AL900, told at ``where``, and a log line; what it found before that stays."""
    check: Callable[[Any], Iterator[Finding]] | None = rule.check
    found: list[Finding] = []
    try:
        if check is not None and (rule.gate is None or rule.gate(subject)):
            found.extend(check(subject))
    except Exception:
        if RAISE_CRASHES:
            raise
        import logging  # 4 ms, for what should never happen

        logging.getLogger(__name__).exception("rule %s crashed", rule.code)
        found.append(
            Finding(
                "AL900",
                where.first.shift(base),
                f"internal error in the check {rule.code}; the other checks ran, please report it",
            )
        )
    return found


def _no_mapping(top: Node | None, text: str, kind: FileKind) -> Finding:
    word = "an agent file" if kind == "agent" else "a workflow"
    needs = "a `system_prompt`" if kind == "agent" else "`name` and `steps`"
    if top is None or kind_of(top) == "null":
        at = 1 if text.startswith("\ufeff") else 0
        return Finding("AL008", Span(at, at), f"the file is empty; {word} is a mapping with {needs}")
    what = FOUND_WORDS[kind_of(top)]
    end = text.find("\n", top.span.start, top.span.end)
    span = Span(top.span.start, end if end >= 0 else top.span.end)
    return Finding("AL008", span, f"the file is {what} at the top; {word} is a mapping with {needs}")


def _no_step(node: Node, span: Span, text: str) -> Finding:
    if isinstance(node, Scalar) and not node.raw:
        dash = text.rfind("-", 0, node.span.start)
        if dash >= 0 and not text[dash + 1 : node.span.start].strip():
            span = Span(span.start - (node.span.start - dash), span.end - (node.span.start - dash - 1))
        return Finding("AL105", span, "this step is empty; give it an `id` and a `type`")
    what = FOUND_WORDS[kind_of(node)]
    return Finding("AL105", span, f"a step is a mapping, this is {what}; give it an `id` and a `type`")


def _shape_of_steps(tree: Tree, base: int) -> Iterator[Finding]:
    found = tree.entry("steps")
    if found is None:
        return  # AL101 comes from the head's shape
    key, node = found
    if isinstance(node, Alias) and node.target is not None:
        node = node.target
    if isinstance(node, SequenceNode):
        if not tree.steps and not node.items:
            span = collection_span(node, key, tree.text)
            yield Finding("AL106", span.shift(base), "`steps` is empty; add at least one step")
    elif isinstance(node, Mapping):
        yield Finding(
            "AL105", key.span.shift(base), "`steps` is a mapping; it must be a list of steps, each with an `id`"
        )
    elif isinstance(node, Scalar):
        if node.raw:
            yield Finding("AL105", node.span.shift(base), "`steps` is a text; it must be a list of steps")
        else:
            yield Finding("AL105", key.span.shift(base), "`steps` has no value yet; give it a list of steps")


__all__ = ["AnalysisCache", "Diagnostic", "Graph", "analyze"]
