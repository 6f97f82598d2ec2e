"""One file that a command works on: read, with its settings, and checked."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from agentloom.analysis.analyze import analyze
from agentloom.analysis.document import FileKind, WorkflowDocument
from agentloom.analysis.rules.registry import settings_problems
from agentloom.analysis.settings import Settings, find_settings
from agentloom.cli.check import context_of, source_of
from agentloom.cli.collect import STDIN
from agentloom.cli.reading import Unreadable, read_file, read_stdin
from agentloom.errors import UsageError, WorkflowError


def load(
    file: str,
    stdin_filename: str | None,
    kind: FileKind | None = None,
    changed: Callable[[Settings], Settings] = lambda settings: settings._replace(remote=False),
) -> tuple[str, WorkflowDocument]:
    """Return what a file (or `-`, standard input) is called, and its document with whatever was found in it. ``changed`` returns other
    settings to check it by.

    Raises ``WorkflowError`` when it can't be read, ``UsageError`` for settings that are wrong, or a name for standard input without it.
    """
    if stdin_filename is not None and file != STDIN:
        raise UsageError("`--stdin-filename` goes with `-`, which reads standard input")
    name = stdin_filename if file == STDIN else file
    shown = name or "<stdin>"
    try:
        read = read_stdin() if file == STDIN else read_file(file)
    except Unreadable as error:
        raise WorkflowError(f"{shown} can't be read: {error}") from error
    path = None if name is None else Path(os.path.abspath(name))
    context = context_of(changed(find_settings(path or Path(os.path.abspath("stdin")))))
    if problems := settings_problems(context.settings):
        raise UsageError("; ".join(problems))
    return shown, analyze(source_of(read.text, path), context, kind=kind, found=read.faults)
