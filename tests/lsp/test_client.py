"""What the server makes of a client's introduction, nonsense included."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentloom_lsp.client import Client, read_client
from agentloom_lsp.convert import Encoding
from agentloom_lsp.handshake import capabilities
from tests.lsp.peer import FULL, PULLING

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "capabilities",
                    "general",
                    "textDocument",
                    "workspace",
                    "uri",
                    "processId",
                    "positionEncodings",
                    "workspaceFolders",
                    "publishDiagnostics",
                    "tagSupport",
                    "valueSet",
                    "rootUri",
                    "clientInfo",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(JSON)
def test_no_introduction_is_too_odd(params: Any) -> None:
    """Whatever stands in `initialize`, there is a client and an answer."""
    assert capabilities(read_client(params))["textDocumentSync"]["openClose"] is True


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        (None, Encoding.UTF16),
        ([], Encoding.UTF16),
        (["utf-8", "utf-16"], Encoding.UTF8),
        (["utf-32", "utf-8"], Encoding.UTF32),
        (["utf-7", "utf-32"], Encoding.UTF32),
        (["utf-7"], Encoding.UTF16),
        ("utf-8", Encoding.UTF16),
        ([8, None], Encoding.UTF16),
    ],
)
def test_the_encoding_is_the_first_that_both_know(offered: Any, chosen: Encoding) -> None:
    """The client's order counts; UTF-16 is what everybody speaks."""
    client = read_client({"capabilities": {"general": {"positionEncodings": offered}}})
    assert client.encoding is chosen
    assert capabilities(client)["positionEncoding"] == chosen.value


@pytest.mark.parametrize(
    ("params", "folders"),
    [
        ({}, ()),
        ({"rootPath": "/tmp/my flows"}, ("file:///tmp/my%20flows",)),
        ({"rootUri": "file:///a", "rootPath": "/b"}, ("file:///a",)),
        ({"rootUri": "file:///a", "workspaceFolders": [{"uri": "file:///b"}, {"uri": 3}, None]}, ("file:///b",)),
        ({"rootUri": "file:///a", "workspaceFolders": []}, ("file:///a",)),
        ({"rootUri": None, "workspaceFolders": None}, ()),
    ],
)
def test_folders(params: dict[str, Any], folders: tuple[str, ...]) -> None:
    """Workspace folders, else the root, else none; as the client spells them."""
    assert read_client(params).folders == folders


def test_what_a_client_can_do() -> None:
    """The whole table, once yes and once no."""
    client = read_client(
        {"processId": 42, "capabilities": PULLING, "clientInfo": {"name": "x"}, "initializationOptions": {"a": 1}}
    )
    assert client == Client(
        name="x",
        process_id=42,
        options={"a": 1},
        pulls=True,
        related=True,
        unnecessary=True,
        code_pages=True,
        data=True,
        literal_actions=True,
        versioned_edits=True,
        configuration=True,
        register_configuration=True,
        register_watching=True,
        refreshes_diagnostics=True,
    )
    assert not read_client({"capabilities": FULL}).pulls
    assert read_client({"processId": -1, "capabilities": {}}) == Client()


def test_what_a_pulling_client_says_of_its_diagnostics_counts() -> None:
    """A client that only pulls says there what it understands."""
    client = read_client(
        {"capabilities": {"textDocument": {"diagnostic": {"relatedInformation": True, "dataSupport": True}}}}
    )
    assert (client.pulls, client.related, client.data, client.code_pages) == (True, True, True, False)
