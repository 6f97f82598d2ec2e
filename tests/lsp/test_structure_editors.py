"""What real editors say they can do, and what they get: outlines, folds, links, colours, hints. Breaking the specification is an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import pytest_lsp
from lsprotocol import types
from pytest_lsp import LanguageClient, client_capabilities

from tests.lsp.test_process import CONFIG

TEXT = "# https://a.test\nname: w\nsteps:\n  - id: a\n    type: llm_call\n    prompt: '{state.x}'\n    retry: {max_retries: 2}\n"


@pytest_lsp.fixture(config=CONFIG, params=["visual_studio_code", "neovim", "emacs"])
async def editor(lsp_client: LanguageClient, request: pytest.FixtureRequest) -> Any:
    """An editor, by the capabilities that were recorded of it."""
    await lsp_client.initialize_session(
        types.InitializeParams(capabilities=client_capabilities(request.param), root_uri=Path("/nowhere").as_uri())
    )
    yield
    await lsp_client.shutdown_session()


@pytest.mark.asyncio
async def test_real_editors_get_what_they_understand(editor: LanguageClient) -> None:
    """Trees or lists of symbols, links with tooltips or without, whole lines to fold."""
    uri = "file:///nowhere/structure.loom.yaml"
    document = types.TextDocumentIdentifier(uri)
    editor.text_document_did_open(
        types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, types.LanguageKind.Yaml, 1, TEXT))
    )
    assert editor.capabilities
    assert editor.capabilities.text_document
    said = editor.capabilities.text_document.document_symbol
    symbols = await editor.text_document_document_symbol_async(types.DocumentSymbolParams(document))
    assert symbols
    trees = bool(said and said.hierarchical_document_symbol_support)
    assert isinstance(symbols[0], types.DocumentSymbol if trees else types.SymbolInformation)
    links = await editor.text_document_document_link_async(types.DocumentLinkParams(document))
    assert [link.target for link in links or ()] == ["https://a.test"]
    folds = await editor.text_document_folding_range_async(types.FoldingRangeParams(document))
    assert [(fold.start_line, fold.end_line) for fold in folds or ()] == [(2, 6), (3, 6)]
    tokens = await editor.text_document_semantic_tokens_full_async(types.SemanticTokensParams(document))
    assert tokens
    assert len(tokens.data) == 5 * 6
    whole = types.Range(types.Position(0, 0), types.Position(99, 0))
    hints = await editor.text_document_inlay_hint_async(types.InlayHintParams(document, whole))
    assert [hint.label for hint in hints or ()] == [
        "layer 1",
        "gpt-4o-mini (openai)",
        "up to 3 attempts, 7.5 s of waits",
    ]
    grown = await editor.text_document_selection_range_async(
        types.SelectionRangeParams(document, [types.Position(3, 8)])
    )
    assert grown
    items = await editor.text_document_prepare_call_hierarchy_async(
        types.CallHierarchyPrepareParams(document, types.Position(3, 8))
    )
    assert [item.name for item in items or ()] == ["a"]
    found = await editor.workspace_symbol_async(types.WorkspaceSymbolParams("a"))
    assert [symbol.name for symbol in found or ()] == ["a"]
