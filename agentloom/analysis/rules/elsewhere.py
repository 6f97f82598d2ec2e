"""The rule about files of one machine in workflows that are performed on others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from agentloom.analysis.document import Step, WorkflowDocument
from agentloom.analysis.effort import mapping
from agentloom.analysis.rules.places import span_at
from agentloom.diagnostics import Finding, Severity
from agentloom.language.arguments import find_references_deep
from agentloom.text import Span

PATHS = {"file_read": "path", "file_write": "path", "shell_command": "cwd"}
"""The built-in tools that work with files of the machine they are called on, and the argument that names the file or the folder."""

_HERE = ("", ".", "./")


def local_path(document: WorkflowDocument) -> Iterator[Finding]:
    """A tool works with files of the machine it is called on, and the run is performed on another one.

    Runs on a server (`--on postgresql://…`, or `remote = true` in the settings) are taken by any of its workers, and a resume by another
    one. What one of them writes, the others don't have. Attachments and recordings go along by themselves. A command without `cwd` runs in
    an empty folder.

    Give a folder that is the same on all machines, with `--shared DIR` to `run` and `worker` or as `shared` in the settings: relative paths
    start there.
    """
    if not document.context.settings.remote:
        return
    shared = document.context.settings.shared
    for step in document.steps:
        yield from _called(step, shared) if step.type == "tool" else ()
    if shared is not None:
        return
    for facts, base in ((document.head, document.base), *((step.facts, step.base) for step in document.steps)):
        for place in facts.occurrences:
            offered = (
                place.kind == "tool" and place.role == "refer" and place.key not in ("tool_name", "tool_choice.name")
            )
            if offered and place.name in ("file_read", "file_write"):
                yield _finding(place.span.shift(base), f"`{place.name}` works with files of whichever worker calls it")


def _called(step: Step, shared: Path | None) -> Iterator[Finding]:
    """Yield what is wrong with the paths of a tool step."""
    tool = step.facts.text("tool_name") or ""
    name = PATHS.get(tool)
    value = mapping(step.facts.data.get("tool_args")).get(name) if name is not None else None
    if name is None or not isinstance(value, str) or (tool == "shell_command" and value in _HERE):
        return
    span = step.place(span_at(step.facts, "tool_args", name))
    if shared is None:
        kind = "a folder" if tool == "shell_command" else "a file"
        yield _finding(span, f"`{value}` is {kind} of whichever worker performs the step")
    elif os.path.isabs(value) and not find_references_deep(value) and not _lies_in(value, shared):
        yield Finding(
            "AL707",
            span,
            f"`{value}` lies outside of the shared folder `{shared}`: each worker has its own; write a path relative to that folder",
            severity=Severity.WARNING,
        )


def _lies_in(path: str, folder: Path) -> bool:
    return Path(os.path.normpath(path)).is_relative_to(os.path.normpath(folder))


def _finding(span: Span, what: str) -> Finding:
    return Finding("AL707", span, f"{what}; give a folder that is the same on all machines, with `--shared DIR`")
