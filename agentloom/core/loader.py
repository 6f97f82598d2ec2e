"""From a file, a text or plain data to a document that the engine runs: the same door as `validate`, and closed to errors."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agentloom.analysis.analyze import analyze
from agentloom.analysis.context import Context, context_for, path_of
from agentloom.analysis.document import WorkflowDocument
from agentloom.analysis.settings import find_settings
from agentloom.core.plain import plain
from agentloom.core.preparation import accepted
from agentloom.diagnostics import Finding
from agentloom.errors import WorkflowError
from agentloom.files import read_bytes
from agentloom.syntax.decode import decode
from agentloom.text import Source

# What JSON writes as it is and YAML doesn't take, or takes for a line break: C1 controls, line separators, marks, lone surrogates.
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")


def load_workflow(path: str | os.PathLike[str], context: Context | None = None) -> WorkflowDocument:
    """Return the checked document of a file.

    Without a ``context``, the settings are those that hold for the file, and the tools the built-in ones and those of the settings. Raises ``WorkflowError`` when
    the file can't be read, and ``InvalidWorkflow``, which carries the document, when it has errors.
    """
    file = Path(path)
    try:
        text, fault = decode(read_bytes(file, pipes=True))
    except FileNotFoundError:
        raise WorkflowError(f"`{file}` does not exist") from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise WorkflowError(f"`{file}` can't be read: {reason[:1].lower()}{reason[1:]}") from None
    return _load(text, str(file), context, () if fault is None else (fault,))


def load_text(text: str, uri: str = "<text>", context: Context | None = None) -> WorkflowDocument:
    """Return the checked document of a text; ``uri`` says where it lives, which paths in it are relative to."""
    return _load(text, uri, context)


def _load(text: str, uri: str, context: Context | None, found: Sequence[Finding] = ()) -> WorkflowDocument:
    context = context or context_for(find_settings(path_of(uri))._replace(remote=False))  # it runs here
    return accepted(analyze(Source(uri, text), context, kind="workflow", found=found))


def load_data(data: Mapping[str, Any], uri: str = "<data>", context: Context | None = None) -> WorkflowDocument:
    """Return the checked document of a workflow in plain data, the same structure as in a file.

    It is written as JSON, which YAML takes, so that places in messages are lines of that text. Raises ``UsageError`` for what is no
    plain data, ``InvalidWorkflow`` for what the format refuses.
    """
    written = json.dumps(plain(data, "workflow"), ensure_ascii=False, indent=2)
    return load_text(_ESCAPED.sub(lambda found: f"\\u{ord(found.group()):04x}", written), uri, context)
