"""The server as an editor starts it: a process over standard input and output, or TCP; and how it ends."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import pytest_lsp
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities, make_test_lsp_client

from tests.lsp.peer import FULL, ROOT, SERVER, Peer, Process, Refused

URI = "file:///nowhere/flow.loom.yaml"
BAD = "name: w\nsteps:\n  - id: a\n    type: llm_call\n    prompt: hi\n    depends_on: [zz]\n"
EMOJI = 'name: w\nsteps:\n  - {id: a, type: llm_call, prompt: "😀é", depends_on: [zz]}\n'


def make_client() -> LanguageClient:
    """A client that lets servers register for more, as editors do."""
    client = make_test_lsp_client()
    client.feature(types.CLIENT_REGISTER_CAPABILITY)(lambda params: None)
    return client


CONFIG = ClientServerConfig(
    client_factory=make_client, server_command=list(SERVER), server_env={"PYTHONPATH": f"{ROOT}:{ROOT / 'lsp'}"}
)


@pytest_lsp.fixture(config=CONFIG, params=["utf-8", "utf-16", "utf-32"])
async def encoded(lsp_client: LanguageClient, request: pytest.FixtureRequest) -> Any:
    """A client that counts characters in its own way."""
    kind = types.PositionEncodingKind(request.param)
    capabilities = types.ClientCapabilities(general=types.GeneralClientCapabilities(position_encodings=[kind]))
    result = await lsp_client.initialize_session(types.InitializeParams(capabilities=capabilities))
    assert result.capabilities.position_encoding == kind
    yield
    await lsp_client.shutdown_session()


@pytest.mark.asyncio
async def test_quick_edits_and_emoji_in_every_encoding(encoded: LanguageClient, request: pytest.FixtureRequest) -> None:
    """Open, twenty quick edits, close: only the last version's diagnostics, in the right place behind an emoji."""
    kind = request.node.callspec.params["encoded"]
    before = EMOJI.splitlines()[2].split("zz")[0]
    at = _size(before, kind)
    encoded.text_document_did_open(
        types.DidOpenTextDocumentParams(types.TextDocumentItem(URI, types.LanguageKind.Yaml, 0, EMOJI))
    )
    await encoded.wait_for_notification("textDocument/publishDiagnostics")
    for version in range(1, 21):
        end = at + _size("zz" if version == 1 else f"x{version - 1}😀", kind)
        change = types.TextDocumentContentChangePartial(
            range=types.Range(types.Position(2, at), types.Position(2, end)), text=f"x{version}😀"
        )
        encoded.text_document_did_change(
            types.DidChangeTextDocumentParams(types.VersionedTextDocumentIdentifier(version, URI), [change])
        )
    seen = []
    while not seen or seen[-1] != 20:
        params = await encoded.wait_for_notification("textDocument/publishDiagnostics")
        seen.append(params.version)
    assert seen == sorted(seen)
    (report,) = [d for d in params.diagnostics if d.code == "AL202"]
    assert "`x20😀`" in report.message
    assert (report.range.start.line, report.range.start.character) == (2, at)
    assert (report.range.end.line, report.range.end.character) == (2, at + _size("x20😀", kind))
    encoded.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(URI)))
    params = await encoded.wait_for_notification("textDocument/publishDiagnostics")
    assert len(params.diagnostics) == 0


def _size(text: str, kind: str) -> int:
    width = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[kind]
    return len(text.encode({"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}[kind])) // width


@pytest_lsp.fixture(config=CONFIG, params=["visual-studio-code", "neovim", "emacs"])
async def editor(lsp_client: LanguageClient, request: pytest.FixtureRequest) -> Any:
    """A client with the recorded capabilities of a real editor."""
    await lsp_client.initialize_session(
        types.InitializeParams(capabilities=client_capabilities(request.param), root_uri=Path("/nowhere").as_uri())
    )
    yield
    await lsp_client.shutdown_session()


@pytest.mark.asyncio
async def test_real_editors_capabilities(editor: LanguageClient) -> None:
    """VS Code, Neovim and Emacs get diagnostics the way they want them; breaking the specification is an error here."""
    editor.text_document_did_open(
        types.DidOpenTextDocumentParams(types.TextDocumentItem(URI, types.LanguageKind.Yaml, 1, BAD))
    )
    assert editor.capabilities
    pulls = editor.capabilities.text_document and editor.capabilities.text_document.diagnostic
    if pulls:
        report = await editor.text_document_diagnostic_async(
            types.DocumentDiagnosticParams(types.TextDocumentIdentifier(URI))
        )
        assert isinstance(report, types.RelatedFullDocumentDiagnosticReport)
        items = report.items
    else:
        items = (await editor.wait_for_notification("textDocument/publishDiagnostics")).diagnostics
    assert [item.code for item in items] == ["AL202"]
    actions = await editor.text_document_code_action_async(
        types.CodeActionParams(types.TextDocumentIdentifier(URI), items[0].range, types.CodeActionContext(items))
    )
    assert actions
    assert all(isinstance(action, types.CodeAction) for action in actions)


NOISY = """
import os, subprocess, sys
from agentloom_lsp import server

def noisy(channel, loaded, real=server.run):
    print("stray words from a module")
    sys.__stdout__.write("and past the guard")
    sys.__stdout__.flush()
    os.write(1, b"and from C")
    subprocess.run([sys.executable, "-c", "print('and from a child'); import sys; sys.stdin.read()"], check=True)
    return real(channel, loaded)

server.run = noisy
server.serve()
"""


def test_stray_output_cannot_reach_the_protocol() -> None:
    """Editor case: a stray print on stdout breaks the protocol. It goes to standard error; a child can't eat messages either.

    And a parent that can't be seen (the server runs in a container, say) isn't waited for.
    """
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with Process(sys.executable, "-c", NOISY) as peer:
        peer.initialize(processId=gone.pid)
        peer.open(URI, BAD)
        assert [report["code"] for report in peer.published(URI)] == ["AL202"]
        assert peer.leave() == 0
        assert peer.process.stderr
        said = peer.process.stderr.read()
        for words in (b"stray words", b"past the guard", b"from C", b"from a child"):
            assert words in said


def test_the_server_ends_with_its_parent() -> None:
    """When the process named at the start is gone, the server goes too, although its streams stay open."""
    parent = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with Process() as peer:
        peer.initialize(processId=parent.pid)
        peer.open(URI, BAD)
        peer.published(URI)
        assert peer.process.poll() is None
        parent.communicate(b"\n")
        assert peer.process.wait(30) == 1


@pytest.mark.parametrize("early", [True, False], ids=["before-initialize", "after-initialize"])
def test_leaving_without_a_shutdown_is_an_error(early: bool) -> None:
    """`exit` alone ends the process with 1; nothing is left on standard error."""
    with Process() as peer:
        if not early:
            peer.initialize()
        peer.notify("exit")
        assert peer.process.wait(30) == 1
        assert peer.process.stderr
        assert peer.process.stderr.read() == b""


def test_requests_that_come_before_all_is_loaded_are_answered() -> None:
    """Edits and diagnostics don't wait for the protocol's library; requests do, and can be cancelled meanwhile."""
    with Process() as peer:
        peer.initialize()
        cancelled = peer.start("textDocument/codeAction", {})
        peer.notify("$/cancelRequest", {"id": cancelled})
        peer.open(URI, BAD)
        place = {"line": 5, "character": 18}
        context = {"range": {"start": place, "end": place}, "context": {"diagnostics": []}}
        number = peer.start("textDocument/codeAction", {"textDocument": {"uri": URI}, **context})
        assert [report["code"] for report in peer.published(URI, 1)] == ["AL202"]
        assert peer.answer(number)[0]["kind"] == "quickfix"
        with pytest.raises(Refused) as caught:
            peer.answer(cancelled)
        assert caught.value.code == -32800
        assert peer.leave() == 0


def test_the_end_of_input_ends_the_server() -> None:
    """An editor that crashed closes the stream; the server doesn't stay behind."""
    with Process() as peer:
        peer.initialize()
        assert peer.process.stdin
        peer.process.stdin.close()
        assert peer.process.wait(30) == 1


def test_tcp() -> None:
    """`--tcp HOST:PORT` serves one client on that address."""
    with Process(*SERVER, "--tcp", "127.0.0.1:0") as process:
        assert process.process.stderr
        address = process.process.stderr.readline().decode().rsplit(" ", 1)[1].strip()
        with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2]))) as connection:
            peer = Peer(connection.makefile("rb"), connection.sendall)
            peer.initialize(FULL)
            peer.open(URI, BAD)
            assert [report["code"] for report in peer.published(URI)] == ["AL202"]
            peer.request("shutdown")
            peer.notify("exit")
            assert process.process.wait(30) == 0
            peer._read.close()


@pytest.mark.parametrize("arguments", [["--tcp"], ["--tcp", "here"], ["--tcp", "x:99999"], ["--nonsense"]])
def test_wrong_arguments(arguments: list[str]) -> None:
    """A call that makes no sense is answered with how to call it, and 2."""
    done = subprocess.run([*SERVER, *arguments], cwd=ROOT, env=environment(), capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: ")


def test_the_first_answer_needs_nothing_heavy() -> None:
    """Until `initialize` is answered, neither the protocol's library nor the analysis is loaded."""
    code = "import sys, json, agentloom_lsp.server; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in json.loads(done.stdout)}
    assert not loaded & {
        "pygls",
        "lsprotocol",
        "attrs",
        "cattrs",
        "ruamel",
        "pydantic",
        "httpx",
        "asyncio",
        "click",
        "rich",
    }
    assert not [name for name in json.loads(done.stdout) if name.startswith("agentloom.analysis")]


def environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "lsp")))}
