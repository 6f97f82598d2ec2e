"""A request of every kind, made from the method's name alone, so that features are tried as soon as they are there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentloom_lsp.requests import REQUESTS

STANDARD = tuple(request for request in REQUESTS if not request.method.startswith("agentloom/"))
"""The requests that the protocol knows, and so has types for."""
FOLLOWING = {
    "codeAction/resolve": "textDocument/codeAction",
    "codeLens/resolve": "textDocument/codeLens",
    "completionItem/resolve": "textDocument/completion",
    "documentLink/resolve": "textDocument/documentLink",
    "inlayHint/resolve": "textDocument/inlayHint",
    "workspaceSymbol/resolve": "workspace/symbol",
    "callHierarchy/incomingCalls": "textDocument/prepareCallHierarchy",
    "callHierarchy/outgoingCalls": "textDocument/prepareCallHierarchy",
}
"""Requests about something that the server gave in answer to another request."""


def params_of(
    method: str, uri: str, here: Mapping[str, int], there: Mapping[str, int], kept: Any, before: str = ""
) -> Any:
    """Return parameters that fit any method: a document, a place, a range.

    ``kept`` is an item of the request that it follows, ``before`` the result id of the last answer.
    """
    if method.endswith("/resolve"):
        return kept
    if method in FOLLOWING:
        return {"item": kept}
    return {
        "textDocument": {"uri": uri},
        "position": here,
        "positions": [here, there],
        "range": {"start": here, "end": there},
        "context": {"diagnostics": [], "includeDeclaration": True, "triggerKind": 1},
        "previousResultId": before,
        "previousResultIds": [],
        "query": "a",
        "newName": "renamed",
        "options": {"tabSize": 2, "insertSpaces": True},
        "command": "agentloom.validateWorkspace",
        "arguments": [],
        "files": [{"oldUri": uri, "newUri": f"{uri}.new"}],
    }


def items_of(answer: Any) -> list[Any]:
    """Return the items of an answer that is a list, or has one."""
    if isinstance(answer, Mapping):
        answer = answer.get("items")
    return list(answer) if isinstance(answer, list) else []


def ranges_in(data: Any, uri: str) -> Iterator[tuple[Mapping[str, int], Mapping[str, int]]]:
    """Yield start and end of every range in an answer that lies in this document."""
    if isinstance(data, Mapping):
        for name in ("uri", "targetUri"):
            if isinstance(data.get(name), str) and data[name] != uri:
                return
        identifier = data.get("textDocument")
        if isinstance(identifier, Mapping) and identifier.get("uri") != uri:
            return
        if isinstance(data.get("start"), Mapping) and isinstance(data.get("end"), Mapping):
            yield data["start"], data["end"]
        for name, value in data.items():
            if name == "changes" and isinstance(value, Mapping):
                yield from ranges_in(value.get(uri), uri)
            elif name not in ("originSelectionRange", "data") or "targetUri" not in data:
                yield from ranges_in(value, uri)
    elif isinstance(data, Sequence) and not isinstance(data, str):
        for item in data:
            yield from ranges_in(item, uri)
