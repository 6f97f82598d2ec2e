"""The page of the editor's features: the methods that the server knows, no more and no fewer, with their capabilities."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from lsprotocol import types
from pygls.capabilities import ServerCapabilitiesBuilder
from pygls.protocol import default_converter

from agentloom_lsp import handshake
from agentloom_lsp.client import read_client
from agentloom_lsp.features.colour import LOOKS
from agentloom_lsp.notifications import NOTIFICATIONS
from agentloom_lsp.requests import REQUESTS
from tests.conftest import ROOT
from tests.lsp.peer import FULL

PAGE = ROOT / "docs" / "editor-features.md"
ROW = re.compile(r"\| `(?P<method>[\w$/]+)` \| (?:`(?P<capability>\w+)`)? ?\| (?P<words>.*) \|$")
SENDERS = {"notify", "ask", "_ask", "request"}


class Row(NamedTuple):
    """One line of a table."""

    method: str
    capability: str | None
    words: str


def rows() -> list[Row]:
    """Return the lines of the tables of methods, and of no other."""
    found = []
    of_methods = False
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        of_methods = line.startswith("| method |") or (of_methods and line.startswith("|"))
        if of_methods and line.startswith("| `"):
            row = ROW.match(line)
            assert row, line
            found.append(Row(**row.groupdict()))
    return found


def sent() -> Iterator[str]:
    """Yield the methods that stand in the code of the server as what is sent to the client."""
    for path in (ROOT / "lsp" / "agentloom_lsp").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SENDERS:
                for argument in node.args[:1]:
                    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                        yield argument.value


def of_connection() -> Iterator[str]:
    """Yield the methods that are answered without a session, or before there is one: the code compares with them."""
    for name in ("dispatch.py", "handshake.py"):
        for node in ast.walk(ast.parse((ROOT / "lsp" / "agentloom_lsp" / name).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name) and node.left.id == "method":
                yield from (
                    other.value for other in node.comparators if isinstance(other, ast.Constant) and other.value
                )


def test_every_method_is_on_the_page() -> None:
    """What the server answers, takes and sends, each once."""
    known = {*NOTIFICATIONS, *(request.method for request in REQUESTS), *of_connection(), *sent()}
    methods = [row.method for row in rows()]
    assert sorted(methods) == sorted(known)


def test_every_capability_is_on_the_page() -> None:
    """What is announced to a client that can do everything, each beside a method of its own."""
    announced = set(handshake.capabilities(read_client({"capabilities": FULL})))
    assert {row.capability for row in rows()} - {None} == announced


def test_capabilities_stand_beside_their_methods() -> None:
    """The protocol's library announces the same capability for a request that stands alone."""
    converter = default_converter()
    client = converter.structure(FULL, types.ClientCapabilities)
    legend = types.SemanticTokensLegend([], [])
    for row in rows():
        if row.method not in {request.method for request in REQUESTS}:
            continue
        built = ServerCapabilitiesBuilder(
            client,
            {row.method},
            {row.method: legend} if "semanticTokens" in row.method else {},
            [],
            types.TextDocumentSyncKind.Incremental,
        ).build()
        alone = {name for name, value in converter.unstructure(built).items() if value not in (None, {"commands": []})}
        alone -= {"positionEncoding", "textDocumentSync", "workspace"}
        assert alone in (set(), {row.capability}), row.method


def test_every_command_is_on_the_page() -> None:
    """What a client may have carried out."""
    page = PAGE.read_text(encoding="utf-8")
    assert all(f"`{command}`" in page for command in handshake.COMMANDS)


def test_every_method_has_its_sentence() -> None:
    """A sentence that ends like one."""
    for row in rows():
        assert re.fullmatch(r"[A-Z].{10,}\.", row.words), row


def test_colours_are_on_the_page() -> None:
    """Every look that a token can have, each once."""
    told = re.findall(r"^\| [^|]+ \| `([a-zA-Z.]+)` \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(told) == sorted({".".join([type_, *modifiers]) for type_, modifiers in LOOKS.values()})


def test_the_page_stays_with_the_limits() -> None:
    """Numbers on the page are those of the code."""
    from agentloom.ide.outline import MOST_SYMBOLS

    assert f"Past {MOST_SYMBOLS:,} names" in PAGE.read_text(encoding="utf-8")
