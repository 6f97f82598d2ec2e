"""Real editors' ways: with the recorded capabilities of VS Code and Neovim, every method over all of an example, over stdio.

pytest-lsp reads each answer as the protocol's own type, and warns of everything that the client didn't say it can take; warnings are
errors here.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import pytest_lsp
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities, make_test_lsp_client

from tests.lsp.asking import FOLLOWING, STANDARD, items_of, params_of
from tests.lsp.peer import ROOT, SERVER

EXAMPLE = "invoice-extraction.loom.yaml"
BROKEN = "    depends_on: [zz]\n"
STEP = 7
"""Characters that the place which is asked about moves on with each line."""
MAY_REFUSE = ("textDocument/rename", "textDocument/prepareRename", "codeAction/resolve")
"""Requests that are refused with a reason where they make no sense."""
NOTHING_TO_SAY = (
    "textDocument/semanticTokens/full/delta",
    "textDocument/semanticTokens/range",
    "workspace/diagnostic",
    "workspace/willRenameFiles",
)
"""Requests whose answer may be short; what they say is tested elsewhere."""


def make_client() -> LanguageClient:
    """A client that takes what editors take."""
    client = make_test_lsp_client()
    for method in (
        types.CLIENT_REGISTER_CAPABILITY,
        types.WORKSPACE_INLAY_HINT_REFRESH,
        types.WORKSPACE_CODE_LENS_REFRESH,
    ):
        client.feature(method)(lambda *params: None)
    return client


CONFIG = ClientServerConfig(
    client_factory=make_client, server_command=list(SERVER), server_env={"PYTHONPATH": f"{ROOT}:{ROOT / 'lsp'}"}
)


@pytest_lsp.fixture(config=CONFIG, params=["visual-studio-code", "neovim"])
async def editor(lsp_client: LanguageClient, request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A client with the recorded capabilities of a real editor, and the examples as its folder."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    folder = types.WorkspaceFolder((tmp_path / "examples").as_uri(), "examples")
    await lsp_client.initialize_session(
        types.InitializeParams(capabilities=client_capabilities(request.param), workspace_folders=[folder])
    )
    yield
    await lsp_client.shutdown_session()


class Session:
    """Asks for everything, and keeps what the server gave, for the questions that follow from it. ``said`` holds who had an answer."""

    def __init__(self, client: LanguageClient, uri: str) -> None:
        self.client = client
        self.uri = uri
        self.converter = client.protocol._converter
        self.kept: dict[str, Any] = {}
        self.ids: dict[str, str] = {}
        self.said: set[str] = set()

    async def ask(self, method: str, line: int, character: int, lines: list[str]) -> None:
        kept = self.kept.get(FOLLOWING.get(method, ""))
        if method in FOLLOWING and kept is None:
            return
        here = {"line": line, "character": character}
        there = {"line": min(line + 3, len(lines) - 1), "character": 0}
        before = self.ids.get(method.removesuffix("/delta"), "")
        plain = params_of(method, self.uri, here, there, kept, before)
        answer, refused = await self._answer(method, self.converter.structure(plain, types.METHOD_TO_TYPES[method][2]))
        assert not refused or method in MAY_REFUSE, (method, here, refused)
        data = self.converter.unstructure(answer)
        if data not in (None, [], {}):
            self.said.add(method)
        if isinstance(data, dict) and isinstance(data.get("resultId"), str):
            self.ids[method.removesuffix("/delta")] = data["resultId"]
        if items := items_of(data):
            self.kept[method] = items[-1]

    async def _answer(self, method: str, params: Any) -> tuple[Any, str | None]:
        try:
            return await self.client.protocol.send_request_async(method, params), None
        except JsonRpcException as error:
            return None, str(error)


@pytest.mark.asyncio
async def test_every_method_over_an_example(editor: LanguageClient, tmp_path: Path) -> None:
    """A place in every line of an example with a mistake in it: answers of the right kind, and from everyone."""
    path = tmp_path / "examples" / EXAMPLE
    text = path.read_text(encoding="utf-8") + BROKEN
    lines = text.split("\n")
    item = types.TextDocumentItem(path.as_uri(), types.LanguageKind.Yaml, 1, text)
    editor.text_document_did_open(types.DidOpenTextDocumentParams(item))
    session = Session(editor, path.as_uri())
    for line, words in enumerate(lines):
        for request in STANDARD:
            # Those that name no place are asked now and then.
            if line % 10 == 0 or "textDocument/" in request.method:
                await session.ask(request.method, line, STEP * line % (len(words) + 1), lines)
    silent = {request.method for request in STANDARD} - session.said - set(NOTHING_TO_SAY)
    assert silent <= {method for method, before in FOLLOWING.items() if before not in session.kept}, silent
    assert "textDocument/documentSymbol" in session.said
    assert not editor.log_messages
