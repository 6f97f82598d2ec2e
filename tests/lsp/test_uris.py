"""URIs: one document under all spellings, and the client's own spelling on the way back."""

from __future__ import annotations

from pathlib import PurePosixPath, PureWindowsPath

import pytest

from agentloom_lsp import uris
from agentloom_lsp.documents import Documents

SAME = [
    ("file:///c%3A/flows/a.yaml", "file:///c:/flows/a.yaml"),
    ("file:///C:/flows/a.yaml", "file:///c:/flows/a.yaml"),
    ("file:///C%3a/flows/a.yaml", "c:\\flows\\a.yaml"),
    ("file:///tmp/my%20flows/a.yaml", "file:///tmp/my flows/a.yaml"),
    ("file:///tmp/my%20flows/a.yaml", "/tmp/my flows/a.yaml"),
    ("file:///tmp/x/../a.yaml", "file:///tmp/./a.yaml"),
    ("file://localhost/tmp/a.yaml", "file:///tmp/a.yaml"),
    ("file:/tmp/a.yaml", "file:///tmp/a.yaml"),
    ("FILE:///tmp/a.yaml", "file:///tmp/a.yaml"),
    ("file://Server/share/a.yaml", "file://server/share/a.yaml"),
    ("untitled:Untitled-1", "Untitled:Untitled-1"),
    ("untitled:my%20flow", "untitled:my flow"),
    ("file:///tmp/%C3%A9.yaml", "file:///tmp/é.yaml"),
]
DIFFERENT = [
    ("file:///tmp/a.yaml", "file:///tmp/A.yaml"),
    ("file://server/share/a.yaml", "file:///share/a.yaml"),
    ("untitled:Untitled-1", "untitled:Untitled-2"),
    ("untitled:/tmp/a.yaml", "file:///tmp/a.yaml"),
    ("file:///c:/a.yaml", "file:///d:/a.yaml"),
    ("file:///tmp/a%2520b.yaml", "file:///tmp/a%20b.yaml"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_spellings_of_one_document_meet(one: str, other: str) -> None:
    """Editor case: `file:///c%3A/…` and `file:///c:/…` treated as two files."""
    assert uris.key(one) == uris.key(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_documents_stay_apart(one: str, other: str) -> None:
    """What is not the same file is not taken for it."""
    assert uris.key(one) != uris.key(other)


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        (PurePosixPath("/tmp/my flows/é #1?.yaml"), "file:///tmp/my%20flows/%C3%A9%20%231%3F.yaml"),
        (PureWindowsPath("C:\\flows\\a b.yaml"), "file:///C:/flows/a%20b.yaml"),
        (PureWindowsPath("\\\\Server\\share\\a b.yaml"), "file://Server/share/a%20b.yaml"),
    ],
)
def test_paths_become_uris(path: PurePosixPath | PureWindowsPath, uri: str) -> None:
    """POSIX paths, drives and network shares, with what a URI must escape."""
    assert uris.from_path(path) == uri
    assert uris.path_key(path) == uris.key(uri)


@pytest.mark.parametrize(
    ("folder", "path", "uri"),
    [
        ("file:///tmp/my%20flows", PurePosixPath("/tmp/my flows/x y.yaml"), "file:///tmp/my%20flows/x%20y.yaml"),
        ("file:///c%3A/flows/", PureWindowsPath("C:\\flows\\sub\\a.yaml"), "file:///c%3A/flows/sub/a.yaml"),
        ("file:///tmp/flows", PurePosixPath("/tmp/flows2/a.yaml"), None),
    ],
)
def test_files_in_a_folder_are_named_as_the_client_names_the_folder(
    folder: str, path: PurePosixPath | PureWindowsPath, uri: str | None
) -> None:
    """The folder's spelling is echoed for the files in it."""
    assert uris.below(folder, path) == uri


def test_a_document_is_found_under_any_spelling_and_keeps_its_own() -> None:
    """Opened with one spelling, asked for with the other."""
    documents = Documents()
    documents.open("file:///c%3A/Flows/a.yaml", "yaml", 1, "")
    for spelling in ("file:///C:/Flows/a.yaml", "file:///c:/Flows/a.yaml"):
        found = documents.get(spelling)
        assert found is not None
        assert found.uri == "file:///c%3A/Flows/a.yaml"
    assert documents.on_path(PureWindowsPath("C:\\Flows\\a.yaml")) is not None
    assert documents.close("file:///C:/Flows/a.yaml") is not None
    assert documents.get("file:///c%3A/Flows/a.yaml") is None
