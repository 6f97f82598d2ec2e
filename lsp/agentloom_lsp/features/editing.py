"""Edits of several files as the protocol writes them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from agentloom.ide.results import NewFile, TextEdits
from agentloom.text import LineTable, Source
from agentloom_lsp.convert import Places
from agentloom_lsp.session import Session

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


def uri_of(session: Session, source: Source) -> str:
    """Return a text's URI as the client spells it; texts of files that aren't ours come with a plain path."""
    return source.uri if _SCHEME.match(source.uri) else session.workspace.uri_of(Path(source.uri))


def as_shown(source: Source) -> tuple[str, int]:
    """Return a text as an editor would show it, and how many code points that takes off its beginning.

    An editor takes a byte order mark off the files that it opens; one that is in a text of the editor's own stays.
    """
    if source.version is None and source.text.startswith("\ufeff"):
        return source.text[1:], 1
    return source.text, 0


def workspace_edit(session: Session, changes: Iterable[TextEdits | NewFile]) -> dict[str, Any]:
    """Return changes as a `WorkspaceEdit`, with the versions they were made for where the client takes them.

    New files come first, each made and then written; only for clients that make files.
    """
    made: list[dict[str, Any]] = []
    edited: list[dict[str, Any]] = []
    for change in changes:
        if isinstance(change, NewFile):
            made.extend(_creation(session.workspace.uri_of(change.path), change.text))
            continue
        text, shift = as_shown(change.source)
        places = Places(LineTable(text), session.client.encoding)
        ranges = places.ranges([edit.span.shift(-shift) for edit in change.edits])
        texts = [{"range": place, "newText": edit.text} for edit, place in zip(change.edits, ranges, strict=True)]
        identifier = {"uri": uri_of(session, change.source), "version": change.source.version}
        edited.append({"textDocument": identifier, "edits": texts})
    if session.client.versioned_edits:
        return {"documentChanges": [*made, *edited]}
    return {"changes": {change["textDocument"]["uri"]: change["edits"] for change in edited}}


def _creation(uri: str, text: str) -> Iterator[dict[str, Any]]:
    """Yield the steps that make a file: it must not be there, and then gets its text."""
    start = {"line": 0, "character": 0}
    yield {"kind": "create", "uri": uri, "options": {"overwrite": False, "ignoreIfExists": False}}
    insertion = {"range": {"start": start, "end": start}, "newText": text}
    yield {"textDocument": {"uri": uri, "version": None}, "edits": [insertion]}
