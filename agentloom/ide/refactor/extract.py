"""Extract steps to a subworkflow: a file beside this one, or a workflow in place.

What the steps read from outside becomes `input`, what others read of theirs `return_keys`, and whoever depended on one of them
depends on the new step. All of it is refused, with the reason, where the workflow wouldn't do the same as before. (One thing can't
be kept: when one of the steps fails, the new step fails as a whole, and with it what only waited for the others.)
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property, partial
from pathlib import Path

from agentloom.analysis.document import Step, WorkflowDocument
from agentloom.analysis.graph import build_graph
from agentloom.diagnostics import Edit
from agentloom.ide.refactor.accesses import Access, Accesses, Parts, keep_races, overlap
from agentloom.ide.refactor.checked import after
from agentloom.ide.refactor.chunks import Chunk, chunks_of, cut, indented, joined, steps_of
from agentloom.ide.refactor.naming import child_file, free_name, state_keys
from agentloom.ide.refactor.replies import replies_within
from agentloom.ide.refactor.rewriting import Change, depending, moved_path, renamed, spelled
from agentloom.ide.results import Changes, NewFile, Project, Refusal, TextEdits
from agentloom.language.paths import Part, format_path
from agentloom.model.catalogue import catalogue
from agentloom.syntax.aliases import walk
from agentloom.syntax.nodes import Alias
from agentloom.syntax.quoting import quote
from agentloom.text import Span, newline_of

FROM_PARENT = frozenset(
    ["provider", "model", "budget_usd", "timeout", "sandbox", "responses_file", "latency_model", "latency_ms"]
)
"""Settings that hold for a child as they do for its parent, so that it needs none of its own."""
LONGEST_DEFAULT = 80
"""Code points of an initial value that a new file repeats, so that it also runs by itself."""


def steps_in(document: WorkflowDocument, span: Span) -> tuple[str, ...]:
    """Return the ids of the steps that a selection touches, in file order."""
    found: list[str] = []
    for step in document.steps:
        place = step.alias or step.place(step.facts.node.span)
        if place.start <= span.end and span.start <= place.end and step.id is not None:
            found.append(step.id)
    return tuple(dict.fromkeys(found))


def extract(document: WorkflowDocument, ids: Sequence[str], to_file: bool, project: Project | None = None) -> Changes:
    """Return the changes that move steps to a subworkflow, recordings included. Raises ``Refusal``."""
    plan = _Plan(document, tuple(ids))
    plan.check()
    changes = plan.changes(to_file)
    edits = next(change for change in changes if isinstance(change, TextEdits)).edits
    result = after(document, edits, (change for change in changes if isinstance(change, NewFile)))
    if dict(result.graph.dependencies) != plan.expected:
        raise Refusal("the order of the steps would change")
    return (*changes, *replies_within(document, project, plan.ids, plan.name))


def why_not(document: WorkflowDocument, ids: Sequence[str]) -> str | None:
    """Return the reason for which steps can't be extracted; None when nothing speaks against it at first sight."""
    try:
        _Plan(document, tuple(ids)).check()
    except Refusal as refusal:
        return str(refusal)
    return None


@dataclass(eq=False, repr=False)
class _Plan:
    """One extraction; ``ids`` are in file order."""

    document: WorkflowDocument
    ids: tuple[str, ...]
    inputs: dict[Part, None] = field(default_factory=dict)
    returned: dict[Part, None] = field(default_factory=dict)
    moved: list[tuple[str, Change]] = field(default_factory=list)
    retargeted: list[str] = field(default_factory=list)
    shared: bool = False

    def __post_init__(self) -> None:
        self.inside = frozenset(self.ids)
        self.graph = self.document.graph

    @cached_property
    def accesses(self) -> Accesses:
        return Accesses(self.document)

    @cached_property
    def name(self) -> str:
        """The new step's id, which is also its state key and its file's name."""
        last = [name for name in self.ids if not self.inside.intersection(self.graph.dependents[name])]
        base = f"{last[-1] if last else self.ids[-1]}_part"
        home = self.document.path
        taken: set[str] = set()
        if home is not None:
            while self.document.context.exists(child_file(self.document, home, free_name(base, *self._taken, taken))):
                taken.add(free_name(base, *self._taken, taken))
        return free_name(base, *self._taken, taken)

    @cached_property
    def _taken(self) -> tuple[frozenset[str], frozenset[str]]:
        return frozenset(self.document.by_id), state_keys(self.document)

    @cached_property
    def outer_needs(self) -> tuple[str, ...]:
        """What the new step depends on: all that its steps depended on outside."""
        found = [need for name in self.ids for need in self.graph.dependencies[name] if need not in self.inside]
        return tuple(
            need
            for need in dict.fromkeys(found)
            if self._step(need).type == "router" or not any(self.graph.is_upstream(need, other) for other in found)
        )

    @cached_property
    def outer_dependents(self) -> tuple[str, ...]:
        found = (name for inner in self.ids for name in self.graph.dependents[inner] if name not in self.inside)
        return tuple(dict.fromkeys(found))

    @cached_property
    def expected(self) -> dict[str, tuple[str, ...]]:
        """The dependencies that the result must have."""
        expected: dict[str, tuple[str, ...]] = {}
        for name, needs in self.graph.dependencies.items():
            if name not in self.inside:
                expected[name] = tuple(dict.fromkeys(new for need in needs for new in self._outer_need(name, need)))
            elif name == self.ids[0]:
                expected[self.name] = self.outer_needs
        return expected

    def _outer_need(self, name: str, need: str) -> tuple[str, ...]:
        """Return what a step outside depends on instead: the new step, unless another dependency implies it."""
        needs = self.graph.dependencies[name]
        others = [other for other in needs if other not in self.inside]
        implied = any(self.graph.is_upstream(n, other) for other in others for n in self.ids)
        if need in self.inside:
            return () if implied else (self.name,)
        new = not implied and len(others) < len(needs) and not any(self.graph.is_upstream(need, o) for o in needs)
        if new and self._step(need).type != "router" and any(self.graph.is_upstream(need, n) for n in self.ids):
            return ()  # the new step waits for it
        return (need,)

    # --- what may stand against it

    def check(self) -> None:
        """Raise ``Refusal`` where the workflow wouldn't do the same afterwards."""
        document = self.document
        if not self.ids:
            raise Refusal("no step is selected")
        if not document.ok:
            raise Refusal("the file has errors; mend them first")
        chunks_of(document, steps_of(document))
        self._check_anchors()
        self._check_order()
        self._check_routers()
        self._check_reads()
        self._check_agents()

    def _step(self, name: str) -> Step:
        return self.document.by_id[name]

    def _check_anchors(self) -> None:
        if any(self._step(name).alias is not None for name in self.ids):
            raise Refusal("a selected step is an alias of another one")
        if "&" not in self.document.source.text:
            return
        items = chunks_of(self.document, steps_of(self.document)).items
        inside = {id(node) for at, item in enumerate(items) if self._at(at) in self.inside for node in walk(item.node)}
        for node in walk(self.document.tree.root):
            if (
                isinstance(node, Alias)
                and node.target is not None
                and (id(node) in inside) != (id(node.target) in inside)
            ):
                raise Refusal(f"`*{node.name}` and its anchor would stand in different workflows")

    def _at(self, index: int) -> str | None:
        return self._by_index.get(index)

    @cached_property
    def _by_index(self) -> dict[int, str | None]:
        return {step.index: step.id for step in self.document.steps}

    def _check_order(self) -> None:
        below: set[str] = set()
        above: set[str] = set()
        for name in self.ids:
            below |= self.graph.descendants(name)
            above |= self.graph.ancestors(name)
        between = [
            name for name in self.graph.dependencies if name in below and name in above and name not in self.inside
        ]
        if between:
            raise Refusal(f"step `{between[0]}` runs between the selected ones; select it, too")

    def _check_routers(self) -> None:
        choices = self.accesses.choices
        for name, step in self.document.by_id.items():
            targets = _targets(step)
            if name in self.inside:
                outside = [target for target in targets if target not in self.inside]
                if outside:
                    raise Refusal(f"router `{name}` chooses `{outside[0]}`, which isn't selected")
            elif self.inside.intersection(targets):
                entries = self.inside.intersection(targets)
                entry = next(iter(entries))
                if len(entries) > 1 or any(n != entry and not self.graph.is_upstream(entry, n) for n in self.ids):
                    raise Refusal(
                        f"router `{name}` chooses `{entry}`, and not all selected steps wait for that one alone"
                    )
                self.retargeted.append(name)
        for name in self.ids:
            own = {router for router in choices.get(name, {}) if router in self.inside}
            waiting = [other for other in self.graph.dependents[name] if other not in self.inside]
            if waiting and (own or self._step(name).type == "router"):
                why = f"runs only if `{next(iter(own))}` chooses so" if own else "is a router"
                raise Refusal(f"step `{waiting[0]}` depends on `{name}`, which {why}; a subworkflow always ends")
        for need in self.outer_needs:
            if not choices.get(need) and self._step(need).type != "router":
                continue
            if self._step(need).type == "router":
                targets = _targets(self._step(need))
                never = [n for n in self.ids if need in self.graph.dependencies[n] and n not in targets]
                if never:
                    raise Refusal(f"step `{never[0]}` depends on router `{need}`, which never chooses it")
            free = [n for n in self.ids if not self.graph.is_upstream(need, n)]
            if free:
                raise Refusal(f"step `{free[0]}` runs even if `{need}` is skipped, and the new step wouldn't")

    def _check_reads(self) -> None:
        accesses = self.accesses
        written = [write for write in accesses.writes if write.step in self.inside]
        for write in written:
            for other in accesses.overlapping(write.parts):
                if other.step not in self.inside and self._unordered(write.step, other.step):
                    raise Refusal(
                        f"`{write.step}` and `{other.step}` both write `{_text(write.parts)}` in no certain order"
                    )
        self._check_races()
        for read in accesses.reads:
            inner = read.step in self.inside
            if read.parts[:1] in ((), ("steps",)):
                self._check_results(read, inner)
                continue
            seen = accesses.seen(read.step, read.parts)
            racers = [name for name in seen.racing if (name in self.inside) != inner]
            if racers:
                raise Refusal(
                    f"`{read.step}` reads `{_text(read.parts)}`, which `{racers[0]}` writes in no certain order"
                )
            from_inside = [name for name in seen.writers if name in self.inside]
            from_outside = [name for name in seen.writers if name not in self.inside]
            before = seen.before and accesses.begins_with(read.parts[0])
            if inner:
                if from_outside or seen.before:
                    self.inputs[read.parts[0]] = None
            elif from_inside:
                if seen.racing:
                    raise Refusal(
                        f"`{read.step}` reads `{_text(read.parts)}`, of which `{seen.racing[0]}` writes a part, too"
                    )
                self._read_of_ours(read, before, from_outside, from_inside)
        self._choose_form()
        read_inside = [read.parts for read in accesses.reads if read.step in self.inside]
        for write in written:
            if not any(overlap(write.parts, parts) for parts in read_inside):
                self.returned[write.parts[0]] = None  # nobody here reads it: a result
        schema = self.document.head.data.get("state_schema")
        for pattern in schema if isinstance(schema, dict) else ():
            for write in written:
                if fnmatchcase(str(write.parts[0]), str(pattern)) or fnmatchcase(_text(write.parts), str(pattern)):
                    raise Refusal(f"`state_schema` says what holds for `{_text(write.parts)}`, which would move")

    def _check_races(self) -> None:
        """Where only layers decide what comes first, they must go on to say the same."""
        outside = [name for name in self.graph.dependencies if name not in self.inside]
        layers = build_graph(self.expected).layer_of
        keep_races(self.accesses.races(frozenset(outside)), self.graph.layer_of, layers)
        inner = {name: [need for need in self.graph.dependencies[name] if need in self.inside] for name in self.ids}
        keep_races(self.accesses.races(self.inside), self.graph.layer_of, build_graph(inner).layer_of)

    def _check_results(self, read: Access, inner: bool) -> None:
        """Results under `steps` belong to one workflow; the whole state looks different afterwards."""
        if len(read.parts) > 1:
            about = read.parts[1]
            if inner and about not in self.inside and about in self.document.by_id:
                raise Refusal(f"`{read.step}` reads the result of `{about}`; let it read its `output` instead")
            if not inner and about in self.inside:
                raise Refusal(f"`{read.step}` reads the result of `{about}`; let it read its `output` instead")
            return
        related = any(self.graph.is_upstream(name, read.step) for name in self.ids)
        if inner or related or not any(self.graph.is_upstream(read.step, name) for name in self.ids):
            raise Refusal(f"`{read.step}` reads the whole state, which would look different")

    def _read_of_ours(self, read: Access, before: bool, outside: list[str], inside: list[str]) -> None:
        key = read.parts[0]
        if read.occurrence is None:
            raise Refusal(f"`{_text(read.parts)}` is read by what `{read.step}` runs, and would stand elsewhere")
        if outside or before:
            late = [name for name in outside if not all(self.graph.is_upstream(name, inner) for inner in inside)]
            if late:
                raise Refusal(f"`{read.step}` reads `{_text(read.parts)}`, of which `{late[0]}` writes a part, too")
            self.inputs[key] = None
        self.returned[key] = None
        self.moved.append((read.step, moved_path(read.occurrence, 1, (self.name, key))))

    def _unordered(self, one: str, other: str) -> bool:
        if self.accesses.excluded(one, other):
            return False
        return not (self.graph.is_upstream(one, other) or self.graph.is_upstream(other, one))

    def _choose_form(self) -> None:
        """Decide whether the child gets its keys by name, which fails where one isn't there, or a copy of the whole state."""
        config = self.document.head.data.get("config")
        goes_on = isinstance(config, dict) and config.get("on_step_failure") == "continue"
        for key in self.inputs:
            written = not goes_on and any(
                write.parts[0] == key and all(self.graph.is_upstream(write.step, name) for name in self._first)
                for write in self.accesses.overlapping((key,))
                if write.step not in self.inside
            )
            if not written and not self.accesses.begins_with(key):
                self.shared = True
        if any(self._step(name).type in ("subworkflow", "agent") and self._copies(name) for name in self.ids):
            self.shared = True

    def _copies(self, name: str) -> bool:
        return self._step(name).facts.data.get("isolated_state") is not True

    @cached_property
    def _first(self) -> tuple[str, ...]:
        """Those of the steps that wait for none of the others; what is certain for one of them is certain for the new step."""
        return tuple(name for name in self.ids if not self.inside.intersection(self.graph.dependencies[name]))

    def _check_agents(self) -> None:
        agents = self.document.head.data.get("agents")
        for name in self.ids:
            for found in self._step(name).facts.occurrences:
                if found.kind == "agent" and isinstance(agents, dict) and found.name in agents:
                    raise Refusal(f"step `{name}` runs the agent `{found.name}`, which this file defines")

    # --- the change itself

    def changes(self, to_file: bool) -> Changes:
        document, text = self.document, self.document.source.text
        home = document.path
        if to_file and home is None:
            raise Refusal("save the file first, the new one is to stand beside it")
        chunks = chunks_of(document, steps_of(document))
        chosen = [(at, item) for at, item in enumerate(chunks.items) if self._at(at) in self.inside]
        inner = [edit for name in self.ids for edit in self._inner_edits(self._step(name))]
        break_ = newline_of(text, chunks.items[0].span.start)
        moved = joined([(item, cut(text, item, inner)) for _, item in chosen], break_)
        files: tuple[NewFile, ...] = ()
        path = None
        if to_file:
            assert home is not None
            path = Path(os.path.abspath(child_file(document, home, self.name)))
            state = self._state_lines("")
            # Without a copy of the parent's state at hand, the file by itself would seem to read what nobody writes.
            expects = [f"# agentloom: state[{', '.join(map(str, self.inputs))}]"] if self.shared and self.inputs else []
            body = [*expects, *self._head(""), "", *state, *[""] * bool(state), "steps:"]
            files = (NewFile(path, "".join(line + break_ for line in body) + moved),)
        lines = self._new_step(chunks.column, path.name if path is not None else None)
        new = "".join(line + break_ for line in lines)
        if path is None:
            new += indented(moved, 6)
        edits = [*self._outer_edits(), *self._replaced(chosen, new, path is None and chosen[-1][1].open)]
        return (*files, TextEdits(document.source, tuple(sorted(edits))))

    def _inner_edits(self, step: Step) -> Iterator[Edit]:
        yield from depending(step, lambda name: (name,) if name in self.inside else ())

    def _outer_edits(self) -> Iterator[Edit]:
        by_step: dict[str, list[Change]] = {}
        for name, change in self.moved:
            by_step.setdefault(name, []).append(change)
        targets = dict.fromkeys(self.ids, self.name)
        for name in self.retargeted:
            by_step.setdefault(name, []).extend(renamed(self._step(name), "step", targets))
        for name, changes in by_step.items():
            yield from spelled(self._step(name), changes)
        for name in self.outer_dependents:
            yield from depending(self._step(name), partial(self._outer_need, name))

    def _replaced(self, chosen: list[tuple[int, Chunk]], new: str, keeps_end: bool) -> Iterator[Edit]:
        """Yield the edits that put the new step in the first one's place; ``keeps_end``: its last blank lines belong to a value."""
        text = self.document.source.text
        first = chosen[0][1]
        last = (
            first
            if any(at > chosen[0][0] and self._at(at) not in self.inside for at in self._by_index)
            else chosen[-1][1]
        )
        old = text[last.span.start : last.span.end]
        behind = old[len(old.rstrip(" \t\r\n")) :]
        if last.open:
            behind = newline_of(text, first.span.start)
        yield Edit(first.span, new if keeps_end else new.rstrip("\r\n") + behind)
        yield from (Edit(chunk.span, "") for _, chunk in chosen[1:])

    def _new_step(self, column: int, path: str | None) -> list[str]:
        fields = [f"id: {self.name}", "type: subworkflow"]
        if self.outer_needs:
            fields.append(f"depends_on: [{', '.join(quote(need, flow=True) for need in self.outer_needs)}]")
        if path is not None:
            fields.append(f"workflow_path: {quote(path)}")
        if not self.shared:
            fields.append("isolated_state: true")
            if self.inputs:
                fields.append("input:")
                fields.extend(f'  {quote(str(key))}: "{{state.{key}}}"' for key in self.inputs)
        fields.append(f"return_keys: [{', '.join(quote(str(key), flow=True) for key in self.returned)}]")
        if self.returned:
            fields.append(f"output: {self.name}")
        fields.append("retry: {max_retries: 0}")  # its steps have retries of their own, and they would multiply
        lines = [f"{'- ' if at == 0 else '  '}{line}" for at, line in enumerate(fields)]
        if path is None:
            lines.append("  workflow_inline:")
            lines.extend(self._head("    "))
            lines.extend(self._state_lines("    "))
            lines.append("    steps:")
        return [" " * column + line for line in lines]

    def _head(self, pad: str) -> list[str]:
        lines = [f"{pad}name: {self.name}"]
        config = self.document.head.data.get("config")
        given = catalogue().blocks["config"].fields
        kept = {
            key: value
            for key, value in (config if isinstance(config, dict) else {}).items()
            if key in given and key not in FROM_PARENT
        }
        if kept:
            lines.append(f"{pad}config:")
            lines.extend(f"{pad}  {key}: {_scalar(value)}" for key, value in kept.items())
        return lines

    @cached_property
    def _inner_accesses(self) -> list[Access]:
        both = (*self.accesses.reads, *self.accesses.writes)
        return [access for access in both if access.step in self.inside and access.parts]

    def _state_lines(self, pad: str) -> list[str]:
        """Return a `state` that names what the child is handed, so that it can be read and tried by itself."""
        if self.shared or not self.inputs:
            return []
        state = self.document.head.data.get("state")
        known = state if isinstance(state, dict) else {}
        lines = [f"{pad}state:"]
        for key in self.inputs:
            deeper = [access.parts[1] for access in self._inner_accesses if access.parts[0] == key and access.parts[1:]]
            value = known.get(key, {} if deeper and isinstance(deeper[0], str) else [] if deeper else "")
            short = isinstance(value, (str, int, float, bool)) and len(str(value)) <= LONGEST_DEFAULT
            lines.append(f"{pad}  {quote(str(key))}: {_scalar(value) if short else _empty(value)}")
        return lines


def _targets(step: Step) -> tuple[str, ...]:
    """Return the steps that a step names besides its dependencies: the targets of a router."""
    return tuple(
        found.name
        for found in step.facts.occurrences
        if found.kind == "step" and found.role == "refer" and found.key.split(".", 1)[0] != "depends_on"
    )


def _text(parts: Parts) -> str:
    return format_path(parts) or "state"


def _scalar(value: object) -> str:
    return quote(value) if isinstance(value, str) and value else json.dumps(value)


def _empty(value: object) -> str:
    return "{}" if isinstance(value, dict) else "[]" if isinstance(value, list) else '""'
