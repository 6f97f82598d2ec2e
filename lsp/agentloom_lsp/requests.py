"""Every request that the server answers, and what it answers when a handler fails. Parameters are the protocol's own types."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from agentloom.analysis.document import WorkflowDocument
from agentloom.ide.names.calls import links_of
from agentloom_lsp import pull
from agentloom_lsp.features import (
    actions,
    colour,
    commands,
    completion,
    graph,
    hierarchy,
    hints,
    hover,
    kept,
    lenses,
    navigation,
    rename,
    structure,
    symbols,
)
from agentloom_lsp.session import Session


class Request(NamedTuple):
    """One method: its handler, and the empty answer. ``late``: it is answered for the text as it was, whatever was typed since."""

    method: str
    handle: Callable[[Session, Any], Awaitable[Any]]
    empty: Any = None
    late: bool = False


EXPECTED: tuple[Callable[[Session], Callable[[WorkflowDocument], Any]], ...] = (
    lambda session: symbols.TOLD[session.client.encoding],
    lambda session: links_of,
)
"""What requests ask of every file of the workspace, and is remembered of closed ones."""

REQUESTS: tuple[Request, ...] = (
    Request("textDocument/diagnostic", pull.document_diagnostic, {"kind": "full", "items": []}),
    Request("workspace/diagnostic", pull.workspace_diagnostic, {"items": []}),
    Request("workspace/executeCommand", commands.execute),
    Request("textDocument/codeAction", actions.code_action),
    Request("codeAction/resolve", actions.resolve),
    Request("textDocument/completion", completion.completion, late=True),
    Request("completionItem/resolve", completion.resolve),
    Request("textDocument/hover", hover.hover),
    Request("textDocument/documentSymbol", symbols.document_symbol),
    Request("workspace/symbol", symbols.workspace_symbol),
    Request("textDocument/definition", navigation.go_to_definition),
    Request("textDocument/references", navigation.find_references),
    Request("textDocument/documentHighlight", navigation.document_highlight),
    Request("textDocument/prepareRename", rename.prepare),
    Request("textDocument/rename", rename.rename_symbol),
    Request("workspace/willRenameFiles", rename.will_rename_files),
    Request("textDocument/foldingRange", structure.folding_range),
    Request("textDocument/selectionRange", structure.selection_range),
    Request("textDocument/documentLink", structure.document_link),
    Request("textDocument/prepareCallHierarchy", hierarchy.prepare),
    Request("callHierarchy/incomingCalls", hierarchy.incoming_calls),
    Request("callHierarchy/outgoingCalls", hierarchy.outgoing_calls),
    Request("textDocument/semanticTokens/full", colour.full),
    Request("textDocument/semanticTokens/full/delta", colour.delta),
    Request("textDocument/semanticTokens/range", colour.for_range),
    Request("textDocument/inlayHint", hints.inlay_hint),
    Request("textDocument/codeLens", lenses.code_lens),
    Request("agentloom/graph", graph.graph),
    Request("agentloom/runs", kept.runs, {"runs": [], "problems": []}),
    Request("agentloom/run", kept.run),
)
