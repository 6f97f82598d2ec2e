"""Inline a subworkflow: its steps take the place of the step that ran them.

Ids are made unique; what the child wrote stands where the step's `output` put it; what it read by `input` is read where that came
from. All of it is refused, with the reason, where the workflow wouldn't do the same as before. (What can't be kept: an `input` that
leads nowhere failed the step, and now renders empty.)
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from agentloom.analysis.document import Step, WorkflowDocument
from agentloom.analysis.graph import build_graph
from agentloom.analysis.symbols import Occurrence
from agentloom.diagnostics import Edit
from agentloom.ide.refactor.accesses import Access, Accesses, Parts, keep_races, overlap
from agentloom.ide.refactor.checked import after
from agentloom.ide.refactor.chunks import Chunk, chunks_of, cut, indented, joined, steps_of, with_breaks
from agentloom.ide.refactor.constants import literal_of, lone_path, with_state
from agentloom.ide.refactor.naming import free_name, state_keys
from agentloom.ide.refactor.replies import replies_after
from agentloom.ide.refactor.rewriting import Change, depending, moved_path, renamed, renamed_part, spelled
from agentloom.ide.refactor.settings import check_settings
from agentloom.ide.results import Changes, Project, Refusal, TextEdits
from agentloom.language.arguments import find_references_deep
from agentloom.language.paths import Part, PathFault, format_path, parse_output_path
from agentloom.syntax.aliases import walk
from agentloom.syntax.nodes import Alias, Node
from agentloom.syntax.values import find
from agentloom.text import Span, newline_of

HANDLED = frozenset(
    (
        "id",
        "type",
        "depends_on",
        "output",
        "workflow_path",
        "workflow_inline",
        "isolated_state",
        "input",
        "return_keys",
        "retry",
        "timeout",
    )
)
"""Fields of a subworkflow step whose meaning is kept, or whose loss is refused."""


def inline(document: WorkflowDocument, step: Step, project: Project | None = None) -> Changes:
    """Return the changes that put a subworkflow's steps in its place, recordings included. Raises ``Refusal``."""
    plan = _Plan(document, step)
    plan.check()
    edits = plan.edits()
    result = after(document, edits, known=plan.child.diagnostics)
    found = {name: frozenset(needs) for name, needs in result.graph.dependencies.items()}
    if found != plan.expected:
        raise Refusal("the order of the steps would change")
    return (TextEdits(document.source, edits), *replies_after(document, project, plan.me, plan.ids))


def why_not(document: WorkflowDocument, step: Step) -> str | None:
    """Return the reason for which a subworkflow can't be inlined; None when nothing speaks against it at first sight."""
    try:
        _Plan(document, step).check()
    except Refusal as refusal:
        return str(refusal)
    return None


@dataclass(eq=False, repr=False)
class _Plan:
    """One inlining: ``step`` runs ``child``."""

    document: WorkflowDocument
    step: Step
    changes: dict[str, list[Change]] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)
    """What has to be added to the file's own `state`."""

    @cached_property
    def child(self) -> WorkflowDocument:
        found = self.document.children.get(self.step.id or "")
        if found is None or found.document is None or found.loop:
            raise Refusal("the workflow that it runs can't be read")
        return found.document

    @cached_property
    def folder(self) -> Path | None:
        """The child's folder; None for a workflow in place."""
        found = self.document.children[self.step.id or ""]
        return found.path.parent if found.path is not None else None

    @cached_property
    def me(self) -> str:
        return self.step.id or ""

    @cached_property
    def outer(self) -> Accesses:
        return Accesses(self.document)

    @cached_property
    def inner(self) -> Accesses:
        return Accesses(self.child)

    @cached_property
    def isolated(self) -> bool:
        return self.step.facts.data.get("isolated_state") is True

    @cached_property
    def output(self) -> Parts:
        """The path that the step's output goes to; empty when there is none."""
        path = parse_output_path(self.step.facts.text("output") or "")
        return () if isinstance(path, PathFault) else path.parts

    @cached_property
    def ids(self) -> dict[str, str]:
        """The child's ids and their new names."""
        taken = set(self.document.by_id) - {self.me}
        found: dict[str, str] = {}
        for name in self.child.by_id:
            free = name if name not in taken else free_name(f"{self.me}_{name}", taken, self.child.by_id)
            taken.add(free)
            found[name] = free
        return found

    @cached_property
    def roots(self) -> tuple[str, ...]:
        return tuple(name for name, needs in self.child.graph.dependencies.items() if not needs)

    @cached_property
    def sinks(self) -> tuple[str, ...]:
        return tuple(name for name in self.child.by_id if not self.child.graph.dependents[name])

    @cached_property
    def written(self) -> tuple[Part, ...]:
        """The keys at the top of the child's state that its steps write."""
        return tuple(dict.fromkeys(write.parts[0] for write in self.inner.writes))

    @cached_property
    def returned(self) -> frozenset[Part] | None:
        """The keys that come back; None for all of them."""
        keys = self.step.facts.data.get("return_keys")
        return frozenset(keys) if isinstance(keys, list) else None

    @cached_property
    def keys(self) -> frozenset[str]:
        """The keys at the top of the state that this file and what it runs know of."""
        others = [access for access in (*self.outer.reads, *self.outer.writes) if access.step != self.me]
        return state_keys(self.document) | {str(access.parts[0]) for access in others if access.parts}

    @cached_property
    def places(self) -> dict[Part, Parts]:
        """Where each key that the child writes stands afterwards."""
        found: dict[Part, Parts] = {}
        for key in self.written:
            back = self.returned is None or key in self.returned
            found[key] = (*self.output, key) if back and self.output else (self._free(str(key)),)
        return found

    def _free(self, key: str) -> str:
        return key if key not in self.keys else free_name(f"{self.me}_{key}", self.keys, self.inner_keys)

    @cached_property
    def inner_keys(self) -> frozenset[str]:
        return state_keys(self.child)

    @cached_property
    def expected(self) -> dict[str, frozenset[str]]:
        """The dependencies that the result must have."""
        graph = self.document.graph
        found: dict[str, frozenset[str]] = {}
        for name, needs in graph.dependencies.items():
            if name != self.me:
                found[name] = frozenset(new for need in needs for new in self._outer_need(name, need))
        for name, needs in self.child.graph.dependencies.items():
            found[self.ids[name]] = frozenset([self.ids[n] for n in needs] or graph.dependencies[self.me])
        return found

    def _outer_need(self, name: str, need: str) -> tuple[str, ...]:
        graph = self.document.graph
        if need != self.me:
            return (need,)
        if any(graph.is_upstream(self.me, other) for other in graph.dependencies[name]):
            return ()
        return tuple(self.ids[sink] for sink in self.sinks)

    # --- what may stand against it

    def check(self) -> None:
        """Raise ``Refusal`` where the workflow wouldn't do the same afterwards."""
        if not self.document.ok or not self.child.ok:
            raise Refusal("the file or its child has errors; mend them first")
        self._check_step()
        check_settings(self.document, self.child)
        self._check_order()
        self._check_text()
        self._check_output()
        others = frozenset(self.document.by_id) - {self.me}
        keep_races(self.outer.races(others), self.document.graph.layer_of, build_graph(self.expected).layer_of)
        for read in self.inner.reads:
            self._place_read(read)
        for write in self.inner.writes:
            self._place_write(write)
        whole = [read.step for read in self.outer.reads if not read.parts and read.step != self.me]
        if self.constants and whole:
            added = next(iter(self.constants))
            raise Refusal(f"`{whole[0]}` reads the whole state, and `{added}` would have to be added to it")

    def _check_step(self) -> None:
        data = self.step.facts.data
        if self.step.alias is not None:
            raise Refusal("the step is an alias of another one")
        other = next((name for name in data if name not in HANDLED), None)
        if other is not None:
            raise Refusal(f"`{other}` of the step would be lost")
        if data.get("timeout"):
            raise Refusal("the step has a `timeout` for the whole of the child")
        retry = data.get("retry")
        if isinstance(retry, dict) and retry and retry.get("max_retries") != 0:
            raise Refusal("the step's `retry` runs the whole child again")

    def _check_order(self) -> None:
        graph, choices = self.document.graph, self.inner.choices
        routers = [name for name, step in self.document.by_id.items() if self.me in _targets(step)]
        if routers and len(self.roots) > 1:
            raise Refusal(f"router `{routers[0]}` chooses the step, and the child begins with {len(self.roots)} steps")
        waiting = graph.dependents[self.me]
        if waiting:
            for name in self.sinks:
                if choices.get(name) or self.child.by_id[name].type == "router":
                    why = "runs only if a router chooses so" if choices.get(name) else "is a router"
                    raise Refusal(f"`{waiting[0]}` waits for the step, and `{name}` at the child's end {why}")
        own = self.document.by_id
        for access in self.inner.reads:
            if access.parts[:1] == ("steps",) and len(access.parts) > 1:
                about = access.parts[1]
                if about not in self.ids and about in own:
                    raise Refusal(f"`{access.step}` of the child reads the result of `{about}`, which isn't in it")

    def _check_text(self) -> None:
        """Raise ``Refusal`` where an alias would lose its anchor, or mean another one."""
        if "&" not in self.document.source.text and "&" not in self.child.source.text:
            return
        carried = {id(node) for chunk in self._chunks.items for node in walk(chunk.node)}
        anchors = {self._name_of(node) for chunk in self._chunks.items for node in walk(chunk.node) if _anchored(node)}
        for chunk in self._chunks.items:
            for node in walk(chunk.node):
                if not isinstance(node, Alias) or node.target is None or id(node.target) in carried:
                    continue
                if self.folder is not None or self._leaves(node.target):
                    raise Refusal(f"`*{node.name}` has its anchor outside of the child's steps")
        root = self.document.tree.root
        for node in walk(root):
            if isinstance(node, Alias) and node.target is not None and self._leaves(node.target):
                if id(node.target) not in carried:
                    raise Refusal(f"the anchor of `*{node.name}` would be lost")
            elif self.folder is not None and isinstance(node, Alias) and node.name in anchors:
                raise Refusal(f"both files have an anchor `&{node.name}`")

    def _leaves(self, node: Node) -> bool:
        """Tell whether a node of the file stands in the step that is taken out."""
        return id(node) in self._own_nodes

    @cached_property
    def _own_nodes(self) -> frozenset[int]:
        return frozenset(id(node) for node in walk(find(self.document.tree.root, ("steps", self.step.index))))

    def _name_of(self, node: Node) -> str:
        anchor = None if isinstance(node, Alias) else node.anchor
        return "" if anchor is None else self.child.source.text[anchor.start + 1 : anchor.end]

    def _check_output(self) -> None:
        graph, outer = self.document.graph, self.outer
        for read in outer.reads:
            if read.step == self.me:
                continue
            if read.parts[:2] == ("steps", self.me):
                raise Refusal(f"`{read.step}` reads the result of the step; let it read its `output` instead")
            if read.parts in ((), ("steps",)):
                if not graph.is_upstream(read.step, self.me):
                    raise Refusal(f"`{read.step}` reads the whole state, which would look different")
                continue
            if not self.output or not overlap(read.parts, self.output) or outer.excluded(read.step, self.me):
                continue
            if graph.is_upstream(read.step, self.me):
                continue
            if not graph.is_upstream(self.me, read.step):
                raise Refusal(f"`{read.step}` reads `{format_path(self.output)}` without waiting for the step")
            rest = read.parts[len(self.output) :]
            if not rest and not self._alone():
                raise Refusal(
                    f"`{read.step}` reads the whole of `{format_path(self.output)}`, which would look different"
                )
            if rest and (rest[0] not in self.places or self.places[rest[0]] != (*self.output, rest[0])):
                raise Refusal(f"`{read.step}` reads `{format_path(read.parts)}`, which no step of the child writes")
            if rest and self._given(rest[0]) and not any(_covers(write.parts, rest) for write in self.inner.writes):
                raise Refusal(f"`{read.step}` reads `{format_path(read.parts)}`, of which the child writes only a part")
        if self.output:
            for write in outer.overlapping(self.output):
                if write.step != self.me and not outer.excluded(write.step, self.me):
                    raise Refusal(f"`{write.step}` writes `{format_path(write.parts)}`, too")
            if outer.begins_with(self.output[0]):
                raise Refusal(f"`state` has a key `{self.output[0]}`, which the step's output replaces")

    def _alone(self) -> bool:
        """Tell whether the output is one key that is surely written, so that it looks the same as a whole."""
        if self.returned is None or len(self.returned) != 1:
            return False
        (key,) = self.returned
        return any(write.parts == (key,) and not self.inner.choices.get(write.step) for write in self.inner.writes)

    # --- what the child reads and writes

    def _place_write(self, write: Access) -> None:
        place = self.places[write.parts[0]]
        if write.occurrence is not None and place != (write.parts[0],):
            self._change(write.step, moved_path(write.occurrence, 1, place))

    def _place_read(self, read: Access) -> None:
        parts = read.parts
        if parts[:1] == ("steps",) and len(parts) > 1:
            about = str(parts[1])
            if self.ids.get(about, about) != about and read.occurrence is not None:
                self._change(read.step, renamed_part(read.occurrence, 1, self.ids[about]))
            return
        if parts[:1] in ((), ("steps",)):
            raise Refusal(f"`{read.step}` of the child reads the whole state")
        key = parts[0]
        seen = self.inner.seen(read.step, parts)
        given = self._given(key)
        if (seen.writers or seen.racing) and (not given or not (seen.before or seen.racing)):
            place: Parts | None = self.places[key]
        elif seen.writers or seen.racing:
            raise Refusal(f"`{read.step}` of the child reads `{key}` both as it was and as other steps write it")
        else:
            place = self._base(read, key)
        if place is None or place == (key,):
            return
        if read.occurrence is None:
            raise Refusal(f"`{key}` is read by what `{read.step}` of the child runs, and would stand elsewhere")
        self._change(read.step, moved_path(read.occurrence, 1, place))

    def _given(self, key: Part) -> bool:
        """Tell whether the child may find a key when it begins."""
        if key in self._input or key in self._defaults:
            return True
        return not self.isolated and key in self.keys

    @cached_property
    def _input(self) -> dict[Part, Any]:
        given = self.step.facts.data.get("input")
        return dict(given) if isinstance(given, dict) else {}

    @cached_property
    def _defaults(self) -> dict[Part, Any]:
        state = self.child.head.data.get("state")
        return dict(state) if isinstance(state, dict) else {}

    def _base(self, read: Access, key: Part) -> Parts | None:
        """Return where a key stands that the child is handed; None when the read is done with already."""
        if key in self._input:
            value = self._input[key]
            path = lone_path(value)
            if path is not None:
                if path.parts[:1] in ((), ("steps",)):
                    raise Refusal(f"`input.{key}` hands on a result, or the whole state")
                self._check_race(path.parts + read.parts[1:])
                return path.parts
            literal = literal_of(value)
            if literal is not None:
                return (self._constant(str(key), literal[0]),)
            self._composed(read, key, value)
            return None
        if self.isolated:
            if key in self._defaults:
                return (self._constant(str(key), self._defaults[key]),)
            return (self._free(str(key)),)  # nothing is there, and nothing may be there afterwards
        if key in self._defaults and not self._certain(key):
            if key in self.keys:
                raise Refusal(f"the child's `state` has a default for `{key}`, which this file may or may not have")
            return (self._constant(str(key), self._defaults[key]),)
        self._check_race(read.parts)
        return (key,)

    def _certain(self, key: Part) -> bool:
        graph = self.document.graph
        return self.outer.begins_with(key) or any(
            write.parts[0] == key and graph.is_upstream(write.step, self.me) for write in self.outer.writes
        )

    def _check_race(self, parts: Parts) -> None:
        """Raise ``Refusal`` when a step that runs beside the child writes what the child reads as it was at its beginning."""
        graph = self.document.graph
        for write in self.outer.overlapping(parts):
            if write.step == self.me or self.outer.excluded(write.step, self.me):
                continue
            if not graph.is_upstream(write.step, self.me) and not graph.is_upstream(self.me, write.step):
                raise Refusal(
                    f"`{write.step}` writes `{format_path(write.parts)}`, which the child reads, at the same time"
                )

    def _constant(self, key: str, value: Any) -> str:
        name = next((n for n, v in self.constants.items() if n in (key, f"{self.me}_{key}") and v is value), None)
        if name is None:
            name = self._free(key)
            self.constants[name] = value
        return name

    def _composed(self, read: Access, key: Part, value: Any) -> None:
        """Put a text made of several values where the child read it."""
        found = read.occurrence
        if not isinstance(value, str) or "{{" in value or "}}" in value or found is None or found.form != "template":
            raise Refusal(f"`input.{key}` is put together, and `{read.step}` of the child doesn't read it in a text")
        for placeholder in _paths_in(value):
            self._check_race(placeholder)
        span = _placeholder(found)
        if span is None or len(read.parts) > 1:
            raise Refusal(f"`input.{key}` is put together, and `{read.step}` of the child reads it in another form")
        self._change(read.step, Change(found.node, span, value))

    def _change(self, step: str, change: Change) -> None:
        kept = self.changes.setdefault(step, [])
        if any(other.node is change.node and other.inside == change.inside and other != change for other in kept):
            raise Refusal(f"step `{step}` of the child reads and writes one key, which would stand in two places")
        kept.append(change)

    # --- the change itself

    @cached_property
    def _chunks(self) -> Any:
        if self.folder is not None:
            return chunks_of(self.child, steps_of(self.child))
        path = ("steps", self.step.index, "workflow_inline", "steps")
        return chunks_of(self.document, find(self.document.tree.root, path))

    def edits(self) -> tuple[Edit, ...]:
        document, text = self.document, self.document.source.text
        outer = chunks_of(document, steps_of(document))
        mine = outer.items[self.step.index]
        break_ = newline_of(text, mine.span.start)
        inner = sorted(edit for name, step in self.child.by_id.items() for edit in self._inner_edits(name, step))
        source = self.child.source.text
        moved = joined([(chunk, cut(source, chunk, inner)) for chunk in self._chunks.items], break_)
        moved = indented(with_breaks(moved, break_), outer.column - self._chunks.column)
        old = text[mine.span.start : mine.span.end]
        behind = old[len(old.rstrip(" \t\r\n")) :]
        if not self._chunks.items[-1].open:
            moved = moved.rstrip(" \t\r\n") + (break_ if mine.open else behind)
        above = self._comments(mine, outer.column, break_)
        edits = [Edit(mine.span, above + moved), *self._outer_edits()]
        edits.extend(with_state(document, self.constants))
        return tuple(sorted(edits))

    def _inner_edits(self, name: str, step: Step) -> Iterator[Edit]:
        changes = list(self.changes.get(name, ()))
        changes.extend(renamed(step, "step", self.ids))
        if self.ids[name] != name:
            changes.extend(
                Change(found.node, found.inside, self.ids[name])
                for found in step.facts.occurrences
                if found.kind == "step" and found.role == "define"
            )
        changes.extend(self._rebased(step))
        yield from spelled(step, changes)
        more = self.step.needs if not self.child.graph.dependencies[name] else ()
        yield from depending(step, lambda need: (self.ids.get(need, need),), more)

    def _rebased(self, step: Step) -> Iterator[Change]:
        """Yield the changes of paths, which are relative to the file they stand in."""
        home = self.document.path
        if self.folder is None or home is None:
            return
        here = Path(os.path.abspath(home)).parent
        if here == self.folder:
            return
        for found in step.facts.files:
            name = found.name
            if not name or "{" in name or "://" in name or name.startswith("data:") or os.path.isabs(name):
                continue
            if found.kind == "file" and not (found.key == "agent" and "/" not in name and "." not in name):
                path = posixpath.normpath(os.path.relpath(self.folder / name, here).replace(os.sep, "/"))
                yield Change(found.node, found.inside, path)

    def _outer_edits(self) -> Iterator[Edit]:
        for name, step in self.document.by_id.items():
            if name == self.me:
                continue
            if self.me in _targets(step):
                yield from spelled(step, renamed(step, "step", {self.me: self.ids[self.roots[0]]}))
            if self.me in step.needs:
                yield from depending(step, partial(self._outer_need, name))

    def _comments(self, mine: Chunk, column: int, break_: str) -> str:
        """Return the comments of the step that don't move with the child's, each on a line above."""
        carried = [chunk.span for chunk in self._chunks.items] if self.folder is None else []
        kept = [
            comment.text.rstrip()
            for comment in self.document.tree.comments
            if mine.span.start <= comment.span.start < mine.span.end
            and not any(span.start <= comment.span.start < span.end for span in carried)
        ]
        return "".join(" " * column + comment + break_ for comment in kept)


def _targets(step: Step) -> tuple[str, ...]:
    """Return the steps that a step names besides its dependencies: the targets of a router."""
    return tuple(
        found.name
        for found in step.facts.occurrences
        if found.kind == "step" and found.role == "refer" and found.key.split(".", 1)[0] != "depends_on"
    )


def _covers(one: Parts, other: Parts) -> bool:
    return other[: len(one)] == one


def _anchored(node: Node) -> bool:
    return not isinstance(node, Alias) and node.anchor is not None


def _paths_in(value: str) -> Iterator[Parts]:
    for placeholder in find_references_deep(value):
        yield placeholder.parts


def _placeholder(found: Occurrence) -> Span | None:
    """Return the place of a whole placeholder in its value, the braces included; None when it has a format of its own."""
    value, (start, end) = found.node.value, found.inside
    if value[start - 1 : start] == "{" and value[end : end + 1] == "}":
        return Span(start - 1, end + 1)
    return Span(start, end) if (start, end) == (0, len(value)) else None
