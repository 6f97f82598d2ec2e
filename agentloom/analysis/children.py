"""The workflows behind subworkflow steps: written in place, or in files of their own that are read through the context."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from agentloom.analysis.context import Context
from agentloom.analysis.document import Child, Step, WorkflowDocument
from agentloom.files import Unsuitable
from agentloom.syntax.nodes import Alias, Mapping, Sequence
from agentloom.syntax.tree import Placed, Tree
from agentloom.syntax.values import entries
from agentloom.text import Source

MOST_CHILDREN = 500
"""Files read for one document; more is surely a ring of some kind, and a check has to end."""


def inline_child(step: Step) -> Tree | None:
    """Return the tree of a workflow written in place, in offsets of the step's unit; None when there is none."""
    located = step.facts.fields.get("workflow_inline")
    node = located.value if located else None
    if isinstance(node, Alias):
        node = node.target
    if not isinstance(node, Mapping):
        return None
    unit = step.facts.unit
    steps: tuple[Placed, ...] = ()
    listed = next((value for key, value, _ in entries(node) if key.value == "steps"), None)
    if isinstance(listed, Alias):
        listed = listed.target
    if isinstance(listed, Sequence):
        steps = tuple(Placed(step.base, unit, item) for item in listed.items)
    return Tree(unit.text, node, steps)


Analyze = Callable[[Source, "ChildReader"], WorkflowDocument]


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class ChildReader:
    """Reads child files for one analysis; ``stack`` holds the files that lead here, ``seen`` every file asked for."""

    context: Context
    stack: tuple[Path, ...] = ()
    seen: set[Path] = field(default_factory=set)
    done: dict[Path, WorkflowDocument] = field(default_factory=dict)
    count: list[int] = field(default_factory=lambda: [0])

    def child(self, written: str, parent: Source, analyze: Analyze) -> Child:
        """Return the workflow that a step of ``parent`` names; ``analyze`` checks its text."""
        home = self.context.path_of(parent.uri)
        if home is None:
            return Child(None, missing="save this file first, paths are relative to it")
        me = Path(os.path.abspath(home))
        path = Path(os.path.abspath(me.parent / written))
        trail = (*self.stack, me)
        if path in trail:
            return Child(path, loop=(*trail[trail.index(path) :], path))
        self.seen.add(path)
        if path in self.done:
            return Child(path, self.done[path], loop=())
        try:
            text = self.context.read_text(path)
        except UnicodeError:
            return Child(path, missing="it is not UTF-8 text")
        except IsADirectoryError:
            return Child(path, missing="it is a folder")
        except (OSError, ValueError) as error:
            return Child(path, missing=_reason(error))
        self.count[0] += 1
        if self.count[0] > MOST_CHILDREN:
            return Child(path, missing=f"more than {MOST_CHILDREN} files are involved")
        below = ChildReader(self.context, trail, set(), self.done, self.count)
        document = analyze(Source(str(path), text), below)
        self.seen |= below.seen
        loop = loop_through(document, me)
        if not _has_loop(document):
            self.done[path] = document
        return Child(path, document, loop=loop)


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "it does not exist"
    if isinstance(error, PermissionError):
        return "it can't be read: permission denied"
    if isinstance(error, Unsuitable):
        return error.strerror or ""
    return "it can't be read"


def loop_through(document: WorkflowDocument, me: Path, seen: set[int] | None = None) -> tuple[Path, ...]:
    """Return the ring of files below a document that leads back to ``me``; empty when there is none."""
    seen = set() if seen is None else seen
    for child in (*document.children.values(), *document.agents.values()):
        if me in child.loop:
            at = child.loop.index(me)
            ring = child.loop[at:-1] + child.loop[:at] if child.loop[0] == child.loop[-1] else child.loop
            return (*ring, me)
        if child.document is None or id(child.document) in seen:
            continue
        seen.add(id(child.document))
        if found := loop_through(child.document, me, seen):
            return found
    return ()


def _has_loop(document: WorkflowDocument) -> bool:
    seen: set[int] = set()
    todo = [document]
    while todo:  # each workflow once, however many steps run it
        at = todo.pop()
        for child in (*at.children.values(), *at.agents.values()):
            if child.loop:
                return True
            if child.document is not None and id(child.document) not in seen:
                seen.add(id(child.document))
                todo.append(child.document)
    return False
