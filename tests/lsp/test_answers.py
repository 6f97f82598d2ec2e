"""Every answer is of the type that the protocol says, down to its last field, for clients of every ability."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.protocol import default_converter

from agentloom_lsp.handshake import VALIDATE_WORKSPACE
from tests.lsp.asking import STANDARD
from tests.lsp.peer import FULL, Local, Refused

TEXT = (
    "# https://a.test\n# two\nname: w\nconfig: {model: m}\nstate: {x: {y: 1}}\nagents: {w: {system_prompt: '{x}', tools: [{name: t}]}}\nsteps:\n"
    "  - id: a\n    type: llm_call\n    prompt: |\n      one {state.x.y} 😀\n      two\n    retry: {max_retries: 2}\n"
    "  - id: r\n    type: router\n    depends_on: [a]\n    conditions:\n      - {expression: state.x == 'a', target: b}\n"
    "  - {id: b, type: subworkflow, depends_on: [r, zz], workflow_path: child.loom.yaml}\n  - na\n"
)
RICH: dict[str, Any] = {
    **FULL,
    "textDocument": {
        **FULL["textDocument"],
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
        "documentLink": {"tooltipSupport": True},
        "definition": {"linkSupport": True},
        "rename": {"prepareSupport": True},
        "hover": {"contentFormat": ["markdown"]},
    },
}
PLACES = [(8, 8), (11, 15), (13, 14), (16, 18), (18, 30), (19, 12), (20, 5), (99, 0)]


def with_items(peer: Local, uri: str, position: dict[str, int]) -> dict[str, Any]:
    """Return parameters that come from an earlier answer, by method."""
    about = {"textDocument": {"uri": uri}, "position": position}
    items = peer.request("textDocument/prepareCallHierarchy", about) or []
    chosen = peer.request("textDocument/completion", about) or {}
    offered = chosen.get("items", []) if isinstance(chosen, dict) else chosen
    span = {"start": position, "end": position}
    actions = peer.request(
        "textDocument/codeAction", {"textDocument": {"uri": uri}, "range": span, "context": {"diagnostics": []}}
    )
    return {
        "callHierarchy/incomingCalls": [{"item": item} for item in items],
        "callHierarchy/outgoingCalls": [{"item": item} for item in items],
        "completionItem/resolve": offered[:3],
        "codeAction/resolve": (actions or [])[:3],
    }


@pytest.mark.parametrize("capabilities", [{}, RICH], ids=["poor", "rich"])
def test_answers_are_of_their_types(tmp_path: Path, capabilities: dict[str, Any]) -> None:
    """Each request at places of every kind."""
    (tmp_path / "child.loom.yaml").write_text("name: child\nsteps:\n  - {id: q, type: tool, tool_name: file_read}\n")
    uri, converter = (tmp_path / "w.loom.yaml").as_uri(), default_converter()
    with Local() as peer:
        peer.initialize(capabilities, folder=tmp_path)
        peer.open(uri, TEXT)
        answered = set()
        for line, character in PLACES:
            position = {"line": line, "character": character}
            whole = {"start": {"line": 0, "character": 0}, "end": position}
            general = {
                "textDocument": {"uri": uri},
                "position": position,
                "positions": [position],
                "range": whole,
                "context": {"includeDeclaration": True, "diagnostics": [], "triggerKind": 1},
                "newName": "fresh",
                "query": "a",
                "previousResultId": "1",
                "previousResultIds": [],
                "files": [],
                "command": VALIDATE_WORKSPACE,
            }
            items = with_items(peer, uri, position)
            for request in STANDARD:
                for params in items.get(request.method, [general]):
                    try:
                        answer = peer.request(request.method, params)
                    except Refused:
                        continue  # a rename of what can't be renamed
                    message = {"jsonrpc": "2.0", "id": 1, "result": answer}
                    typed = converter.structure(message, types.METHOD_TO_TYPES[request.method][1])
                    back = converter.unstructure(typed)["result"] if answer is not None else None
                    assert without_nulls(back) == without_nulls(answer), request.method
                    if answer:
                        answered.add(request.method)
        silent = {request.method for request in STANDARD} - answered
        assert silent <= MAY_BE_SILENT | (set() if capabilities else {"textDocument/codeAction"})
        assert peer.leave() == 0


MAY_BE_SILENT = {"workspace/willRenameFiles", "codeAction/resolve"}
"""What needs a file that moves, or an action that was left open."""


def without_nulls(value: Any) -> Any:
    """Return plain JSON without the fields that are null, which mean the same as none."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list | tuple) else value
