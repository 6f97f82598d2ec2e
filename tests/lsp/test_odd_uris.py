"""Documents that are no plain files: untitled ones, other schemes, old versions, one file under two names, spellings of all kinds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentloom_lsp import uris
from tests.lsp.peer import PULLING, Local

GOOD = "name: w\nsteps:\n  - id: a\n    type: llm_call\n    prompt: hi\n"
BAD = GOOD + "    depends_on: [zz]\n"
PLACE = {"line": 5, "character": 18}


@pytest.fixture
def peer() -> Iterator[Local]:
    with Local() as peer:
        peer.initialize()
        yield peer
        assert peer.leave() == 0


def codes(reports: list[dict[str, Any]]) -> list[str]:
    return [report["code"] for report in reports]


SPELLINGS = (
    "untitled:Untitled-1",
    "untitled:/home/me/new%20flow.loom.yaml",
    "file:///c%3A/flows/w.yaml",
    "file:///C:/flows/w.yaml",
    "file:///c:/flows/my%20flows/w.yaml",
    "file://server/share/flows/w.yaml",
    "file:////server/share/w.yaml",
    "file:/one/slash.yaml",
    "file:///with space.yaml",
    "file:///tmp/%C3%A9%F0%9F%98%80.yaml",
    "file:///tmp/é😀.yaml",
    "file:///tmp/a%23b%3Fc.yaml",
    "file:///tmp/100%.yaml",
    "file:///tmp/%zz%.yaml",
    "file:///tmp/%00.yaml",
    "file:///tmp/%ff%fe.yaml",
    "file://[::1/x.yaml",
    "file://",
    "vscode-remote://ssh-remote%2Bhost/home/me/w.yaml",
    "vscode-vfs://github/agentloom/agentloom/w.yaml",
    "vscode-notebook-cell:/x.ipynb#W0sZmlsZQ%3D%3D",
    "zipfile:///tmp/x.zip::w.yaml",
    "jdt://contents/x?=y/%3Cz",
    "inmemory://model/1",
    "C:\\flows\\w.yaml",
    "/plain/path.yaml",
    "relative.yaml",
    ":",
    "::::",
    "\ud800",
    "x" * 5000,
)


@pytest.mark.parametrize("uri", SPELLINGS, ids=[ascii(uri)[:40] for uri in SPELLINGS])
def test_any_uri_is_a_document(peer: Local, uri: str) -> None:
    """Whatever a document is called: it is checked, edited and answered about, and its name comes back as it was sent."""
    peer.open(uri, BAD)
    assert codes(peer.published(uri, 1)) == ["AL202"]
    version = peer.change(uri, "yy", 5, 17, 5, 19)
    assert "`yy`" in peer.published(uri, version)[0]["message"]
    about = {"textDocument": {"uri": uri}}
    assert peer.request("textDocument/hover", {**about, "position": {"line": 4, "character": 6}})
    edit = peer.request("textDocument/rename", {**about, "position": {"line": 2, "character": 8}, "newName": "b"})
    assert edit["documentChanges"][0]["textDocument"]["uri"] == uri
    peer.close_document(uri)
    assert peer.published(uri) == []


def test_a_child_of_an_untitled_document(peer: Local) -> None:
    """What lies beside a document that isn't on disk can't be known: said as a hint to save it, not as an error."""
    peer.open("untitled:Untitled-1", GOOD + "  - id: s\n    type: subworkflow\n    workflow_path: child.loom.yaml\n")
    (report,) = peer.published("untitled:Untitled-1")
    assert (report["code"], report["severity"]) == ("AL701", 3)


@pytest.mark.parametrize(
    ("uri", "language", "ours"),
    [
        ("untitled:/home/me/flow.loom.yaml", "yaml", True),
        ("vscode-vfs://github/x/flow.loom.yaml", "yaml", True),
        ("vscode-vfs://github/x/writer.agent.yaml", "yaml", True),
        ("untitled:Untitled-1", "agentloom", True),
        ("untitled:Untitled-1", "AgentLoom", True),
        ("untitled:Untitled-1", "yaml", False),
        ("untitled:Untitled-1", "yaml.docker-compose", False),
        ("file:///x/flow.loom.yaml", "", True),
        ("file:///x/flow.loom.yaml", "plaintext", True),
        ("file:///x/flow.txt", "plaintext", False),
        ("vscode-vfs://github/x/compose.yaml", "yaml", False),
    ],
)
def test_what_tells_that_a_document_is_ours(peer: Local, uri: str, language: str, ours: bool) -> None:
    """Its name, in whatever scheme, or its language; not yet its looks."""
    peer.open(uri, "x: y\n", language=language)
    assert bool(peer.published(uri, 1)) is ours


@pytest.mark.parametrize(
    "uri", ["git:/x/flow.loom.yaml?%7B%22ref%22%3A%22HEAD%22%7D", "fugitive:///x/.git//0/flow.loom.yaml"]
)
def test_old_versions_are_only_looked_at(peer: Local, uri: str) -> None:
    """The left side of a diff: nobody can mend what stands there, so nothing is underlined; everything else works."""
    peer.open(uri, BAD)
    assert peer.published(uri, 1) == []
    assert peer.request("textDocument/hover", {"textDocument": {"uri": uri}, "position": {"line": 4, "character": 6}})
    assert peer.request("textDocument/documentSymbol", {"textDocument": {"uri": uri}})
    at = {"range": {"start": PLACE, "end": PLACE}, "context": {"diagnostics": []}}
    assert not peer.request("textDocument/codeAction", {"textDocument": {"uri": uri}, **at})
    assert not [
        message for message in peer.seen if message.get("method") == "window/logMessage" and "failed" in str(message)
    ]
    peer.open("file:///x/flow.loom.yaml", BAD)
    assert codes(peer.published("file:///x/flow.loom.yaml", 1)) == ["AL202"]


def test_one_file_under_two_names(peer: Local) -> None:
    """Opened under two spellings and closed under one: it goes on under the other; closed under both, it is gone."""
    one, other = "file:///c%3A/flows/w.loom.yaml", "file:///C:/flows/w.loom.yaml"
    peer.open(one, BAD)
    assert codes(peer.published(one, 1)) == ["AL202"]
    peer.open(other, BAD, version=5)
    assert codes(peer.published(other, 5)) == ["AL202"]
    peer.close_document(other)
    assert peer.published(other) == []
    assert codes(peer.published(one, 5)) == ["AL202"]
    peer.versions[one] = 5
    version = peer.change(one, "", 5, 0, 6, 0)
    assert peer.published(one, version) == []
    peer.close_document(one)
    assert peer.published(one) == []
    assert peer.request("textDocument/hover", {"textDocument": {"uri": other}, "position": PLACE}) is None


@pytest.mark.parametrize("capabilities", [{}, PULLING], ids=["pushed", "pulled"])
def test_closed_and_opened_again(capabilities: Any, tmp_path: Path) -> None:
    """With another text and a lower version, as after `:edit!`; and twice without a close in between."""
    uri = (tmp_path / "w.loom.yaml").as_uri()
    with Local() as peer:
        peer.initialize(capabilities)

        def found(version: int) -> list[str]:
            if capabilities:
                return codes(peer.request("textDocument/diagnostic", {"textDocument": {"uri": uri}})["items"])
            return codes(peer.published(uri, version))

        peer.open(uri, BAD, version=7)
        assert found(7) == ["AL202"]
        peer.close_document(uri)
        peer.open(uri, GOOD, version=1)
        assert found(1) == []
        peer.open(uri, BAD, version=2)
        assert found(2) == ["AL202"]
        peer.notify("textDocument/didSave", {"textDocument": {"uri": uri}, "text": "nobody asked for this"})
        version = peer.change(uri, "", 5, 0, 6, 0)
        while found(version):
            pass
        assert peer.leave() == 0


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("untitled:Untitled-1", "Untitled-1"),
        ("git:/x/flow.loom.yaml?%7B%7D", "flow.loom.yaml"),
        ("vscode-vfs://github/x/my%20flow.loom.yaml#L3", "my flow.loom.yaml"),
        ("/plain/w.yaml", "w.yaml"),
        ("untitled:", None),
        ("", None),
    ],
)
def test_names_in_uris(uri: str, name: str | None) -> None:
    """The path of any scheme, without query and fragment."""
    found = uris.path_in(uri)
    assert (found.name if found else None) == name
