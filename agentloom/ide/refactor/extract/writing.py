"""The text of an extraction: the new step, the new workflow, and what changes in the steps around."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from agentloom.analysis.document import Step
from agentloom.diagnostics import Edit
from agentloom.ide.refactor.accesses import Access
from agentloom.ide.refactor.chunks import Chunk, chunks_of, cut, indented, joined, steps_of
from agentloom.ide.refactor.extract.interface import Interface
from agentloom.ide.refactor.extract.selection import Selection
from agentloom.ide.refactor.naming import child_file, targets_of
from agentloom.ide.refactor.rewriting import Change, depending, renamed, spelled
from agentloom.ide.results import Changes, NewFile, Refusal, TextEdits
from agentloom.model.catalogue import catalogue
from agentloom.syntax.quoting import quote
from agentloom.text import newline_of

FROM_PARENT = frozenset(
    ["provider", "model", "budget_usd", "timeout", "sandbox", "responses_file", "latency_model", "latency_ms"]
)
"""Settings that hold for a child as they do for its parent, so that it needs none of its own."""
LONGEST_DEFAULT = 80
"""Code points of an initial value that a new file repeats, so that it also runs by itself."""


@dataclass(eq=False, repr=False)
class Writing:
    """Writes one extraction."""

    selection: Selection
    interface: Interface

    def changes(self, to_file: bool) -> Changes:
        """Return the edits of the file and, if it is asked for, a new one. Raises ``Refusal``."""
        document, text = self.selection.document, self.selection.document.source.text
        home = document.path
        if to_file and home is None:
            raise Refusal("save the file first, the new one is to stand beside it")
        chunks = chunks_of(document, steps_of(document))
        chosen = [(at, item) for at, item in enumerate(chunks.items) if self.selection.has(at)]
        inner = [edit for name in self.selection.ids for edit in self._inner_edits(self.selection.step(name))]
        break_ = newline_of(text, chunks.items[0].span.start)
        moved = joined([(item, cut(text, item, inner)) for _, item in chosen], break_)
        files: tuple[NewFile, ...] = ()
        path = None
        if to_file:
            assert home is not None
            path = Path(os.path.abspath(child_file(document, home, self.selection.name)))
            state = self._state_lines("")
            # Without a copy of the parent's state at hand, the file by itself would seem to read what nobody writes.
            expects = (
                [f"# agentloom: state[{', '.join(map(str, self.interface.inputs))}]"]
                if self.interface.shared and self.interface.inputs
                else []
            )
            body = [*expects, *self._head(""), "", *state, *[""] * bool(state), "steps:"]
            files = (NewFile(path, "".join(line + break_ for line in body) + moved),)
        lines = self._new_step(chunks.column, path.name if path is not None else None)
        new = "".join(line + break_ for line in lines)
        if path is None:
            new += indented(moved, 6)
        edits = [*self._outer_edits(), *self._replaced(chosen, new, path is None and chosen[-1][1].open)]
        return (*files, TextEdits(document.source, tuple(sorted(edits))))

    def _inner_edits(self, step: Step) -> Iterator[Edit]:
        yield from depending(step, lambda name: (name,) if name in self.selection.inside else ())

    def _outer_edits(self) -> Iterator[Edit]:
        by_step: dict[str, list[Change]] = {}
        for name, change in self.interface.moved:
            by_step.setdefault(name, []).append(change)
        targets = dict.fromkeys(self.selection.ids, self.selection.name)
        for name, step in self.selection.document.by_id.items():
            if name not in self.selection.inside and self.selection.inside.intersection(targets_of(step)):
                by_step.setdefault(name, []).extend(renamed(step, "step", targets))
        for name, changes in by_step.items():
            yield from spelled(self.selection.step(name), changes)
        for name, needs in self.selection.graph.dependencies.items():
            if name not in self.selection.inside and needs != self.selection.expected[name]:
                yield from depending(self.selection.step(name), partial(self.selection.outer_need, name))

    def _replaced(self, chosen: list[tuple[int, Chunk]], new: str, keeps_end: bool) -> Iterator[Edit]:
        """Yield the edits that put the new step in the first one's place; ``keeps_end``: its last blank lines belong to a value."""
        text = self.selection.document.source.text
        first = chosen[0][1]
        last = (
            first
            if any(at > chosen[0][0] and not self.selection.has(at) for at in self.selection.by_index)
            else chosen[-1][1]
        )
        old = text[last.span.start : last.span.end]
        behind = old[len(old.rstrip(" \t\r\n")) :]
        if last.open:
            behind = newline_of(text, first.span.start)
        yield Edit(first.span, new if keeps_end else new.rstrip("\r\n") + behind)
        yield from (Edit(chunk.span, "") for _, chunk in chosen[1:])

    def _new_step(self, column: int, path: str | None) -> list[str]:
        fields = [f"id: {self.selection.name}", "type: subworkflow"]
        needs = self.selection.expected[self.selection.name]
        if needs:
            fields.append(f"depends_on: [{', '.join(quote(need, flow=True) for need in needs)}]")
        if path is not None:
            fields.append(f"workflow_path: {quote(path)}")
        if not self.interface.shared:
            fields.append("isolated_state: true")
            if self.interface.inputs:
                fields.append("input:")
                fields.extend(f'  {quote(str(key))}: "{{state.{key}}}"' for key in self.interface.inputs)
        fields.append(f"return_keys: [{', '.join(quote(str(key), flow=True) for key in self.interface.returned)}]")
        if self.interface.returned:
            fields.append(f"output: {self.selection.name}")
        fields.append("retry: {max_retries: 0}")  # its steps have retries of their own, and they would multiply
        lines = [f"{'- ' if at == 0 else '  '}{line}" for at, line in enumerate(fields)]
        if path is None:
            lines.append("  workflow_inline:")
            lines.extend(self._head("    "))
            lines.extend(self._state_lines("    "))
            lines.append("    steps:")
        return [" " * column + line for line in lines]

    def _head(self, pad: str) -> list[str]:
        lines = [f"{pad}name: {self.selection.name}"]
        config = self.selection.document.head.data.get("config")
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
        both = (*self.selection.accesses.reads, *self.selection.accesses.writes)
        return [access for access in both if access.step in self.selection.inside and access.parts]

    def _state_lines(self, pad: str) -> list[str]:
        """Return a `state` that names what the child is handed, so that it can be read and tried by itself."""
        if self.interface.shared or not self.interface.inputs:
            return []
        state = self.selection.document.head.data.get("state")
        known = state if isinstance(state, dict) else {}
        lines = [f"{pad}state:"]
        for key in self.interface.inputs:
            deeper = [access.parts[1] for access in self._inner_accesses if access.parts[0] == key and access.parts[1:]]
            value = known.get(key, {} if deeper and isinstance(deeper[0], str) else [] if deeper else "")
            short = isinstance(value, (str, int, float, bool)) and len(str(value)) <= LONGEST_DEFAULT
            lines.append(f"{pad}  {quote(str(key))}: {_scalar(value) if short else _empty(value)}")
        return lines


def _scalar(value: object) -> str:
    return quote(value) if isinstance(value, str) and value else json.dumps(value)


def _empty(value: object) -> str:
    return "{}" if isinstance(value, dict) else "[]" if isinstance(value, list) else '""'
