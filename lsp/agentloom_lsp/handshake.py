"""The first answer: what the server can do, said before the heavy parts are loaded.

Loading the protocol's library takes several times longer than everything else, and the answer to `initialize` needs none of it.
So it is given from here, with the standard library alone, and the rest is loaded while the client takes it in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentloom import __version__
from agentloom_lsp.client import Client, read_client

NAME = "agentloom"
ACTION_KINDS = {
    "fix": "quickfix",
    "fix_all": "source.fixAll.agentloom",
    "rewrite": "refactor.rewrite",
    "extract": "refactor.extract",
    "inline": "refactor.inline",
}
"""The protocol's names for what may be offered."""
VALIDATE_WORKSPACE = "agentloom.validateWorkspace"
RUN = "agentloom.run"
RUN_WITH_MOCK = "agentloom.runWithMock"
REPLAY = "agentloom.replay"
RESUME = "agentloom.resume"
APPROVE = "agentloom.approve"
REJECT = "agentloom.reject"
CANCEL = "agentloom.cancel"
GRAPH = "agentloom.graph"
SHOW_RUN = "agentloom.showRun"
COMMANDS = (
    VALIDATE_WORKSPACE,
    RUN,
    RUN_WITH_MOCK,
    REPLAY,
    RESUME,
    APPROVE,
    REJECT,
    CANCEL,
    GRAPH,
    SHOW_RUN,
)
OF_OUR_OWN = ("graph", "run", "runEvent", "runs")
"""Methods that the protocol doesn't know: `agentloom/graph` and so on."""
NOT_INITIALIZED = -32002
INCREMENTAL = 2
TOKEN_TYPES = (
    "namespace",
    "type",
    "class",
    "enumMember",
    "variable",
    "property",
    "parameter",
    "function",
    "method",
    "keyword",
    "string",
    "number",
    "regexp",
    "operator",
)
TOKEN_MODIFIERS = ("definition", "readonly", "modification", "defaultLibrary")


TRIGGERS = " {[.,\"'/*"
"""Characters behind which something can be chosen at once. No `:`, behind which most people press Enter, and no `-`, part of ids."""


def capabilities(client: Client) -> dict[str, Any]:
    """Return what the server can do, in the protocol's JSON form. A test holds it against the handlers there are."""
    said: dict[str, Any] = {
        "positionEncoding": client.encoding.value,
        "textDocumentSync": {"openClose": True, "change": INCREMENTAL, "save": {"includeText": False}},
        "diagnosticProvider": {
            "identifier": NAME,
            "interFileDependencies": True,
            "workspaceDiagnostics": True,
            "workDoneProgress": True,
        },
        "hoverProvider": True,
        "completionProvider": {"triggerCharacters": list(TRIGGERS), "resolveProvider": True},
        "documentSymbolProvider": {"label": NAME},
        "workspaceSymbolProvider": True,
        "definitionProvider": True,
        "referencesProvider": True,
        "documentHighlightProvider": True,
        "renameProvider": {"prepareProvider": True} if client.prepares_renames else True,
        "foldingRangeProvider": True,
        "selectionRangeProvider": True,
        "documentLinkProvider": {"resolveProvider": False},
        "semanticTokensProvider": {
            "legend": {"tokenTypes": TOKEN_TYPES, "tokenModifiers": TOKEN_MODIFIERS},
            "range": True,
            "full": {"delta": True},
        },
        "inlayHintProvider": {"resolveProvider": False},
        "codeLensProvider": {"resolveProvider": False},
        "callHierarchyProvider": True,
        "executeCommandProvider": {"commands": COMMANDS, "workDoneProgress": True},
        "experimental": {NAME: dict.fromkeys(OF_OUR_OWN, True)},
        "workspace": {"workspaceFolders": {"supported": True, "changeNotifications": True}},
    }
    if client.file_operations:
        everything = {"filters": [{"pattern": {"glob": "**"}}]}
        said["workspace"]["fileOperations"] = dict.fromkeys(sorted(client.file_operations), everything)
    if client.literal_actions:
        said["codeActionProvider"] = {
            "codeActionKinds": list(ACTION_KINDS.values()),
            "resolveProvider": client.resolves_actions,
        }
    if client.asks_before_moves:
        every: list[dict[str, Any]] = [
            {"scheme": "file", "pattern": {"glob": "**", "matches": kind}} for kind in ("file", "folder")
        ]
        said["workspace"].setdefault("fileOperations", {})["willRename"] = {"filters": every}
    return said


def shake_hands(receive: Callable[[], Any], send: Callable[[Any], None]) -> Client | None:
    """Answer messages until the client has introduced itself, and return what it can do; None when it left instead.

    Other requests are refused for now, and other notifications dropped, as the protocol asks.
    """
    while True:
        message = receive()
        if message is None:
            return None
        if not isinstance(message, dict):
            continue
        method, number = message.get("method"), message.get("id")
        if method == "exit":
            return None
        if method == "initialize" and number is not None:
            client = read_client(message.get("params"))
            server = {"name": NAME, "version": __version__}
            send(
                {"jsonrpc": "2.0", "id": number, "result": {"capabilities": capabilities(client), "serverInfo": server}}
            )
            return client
        if method is not None and number is not None:
            error = {"code": NOT_INITIALIZED, "message": "the first request must be `initialize`"}
            send({"jsonrpc": "2.0", "id": number, "error": error})
