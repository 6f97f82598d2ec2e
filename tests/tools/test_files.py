"""`file_read` and `file_write`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentloom.errors import ValidationError
from agentloom.tools.builtin import register_builtins
from agentloom.tools.catalogue import BUILTIN_TOOLS
from agentloom.tools.files import FileRead, FileWrite
from agentloom.tools.registry import ToolRegistry

pytestmark = pytest.mark.anyio


async def test_what_was_written_is_read(builtins: ToolRegistry, tmp_path: Path) -> None:
    """The result counts characters, repeats the path, and missing folders are made."""
    path = str(tmp_path / "a" / "b" / "note.txt")
    text = "Grüße 👋\r\nend\n\n"
    written = {"written": len(text), "path": path}
    assert await builtins.call("file_write", {"path": path, "content": text}) == written
    assert list(written) == list(BUILTIN_TOOLS["file_write"].returns["properties"])
    assert Path(path).read_bytes() == text.encode()
    assert await builtins.call("file_read", {"path": path}) == text
    assert await builtins.call("file_write", {"path": path, "content": "é", "encoding": "latin-1"}) == {
        "written": 1,
        "path": path,
    }
    assert Path(path).read_bytes() == b"\xe9"
    assert await builtins.call("file_read", {"path": path, "encoding": "latin-1"}) == "é"


@given(st.text())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
def test_any_text_survives(tmp_path: Path, text: str) -> None:
    """Line ends, NUL and all; lone surrogates are refused with a word."""
    path = str(tmp_path / "x")
    try:
        data = text.encode()
    except UnicodeEncodeError:
        with pytest.raises(ValueError, match="can't be written in `utf-8`"):
            FileWrite().execute(path, text)
        return
    assert FileWrite().execute(path, text)["written"] == len(text)
    assert Path(path).read_bytes() == data
    assert FileRead().execute(path) == text


async def test_relative_paths_start_at_the_folder(tmp_path: Path) -> None:
    """That of the workflow, say, wherever the command line stands."""
    registry = ToolRegistry()
    register_builtins(registry, folder=tmp_path)
    assert await registry.call("file_write", {"path": "data/x.txt", "content": "1"}) == {
        "written": 1,
        "path": "data/x.txt",
    }
    assert (tmp_path / "data" / "x.txt").read_text() == "1"
    assert await registry.call("file_read", {"path": "data/x.txt"}) == "1"
    assert (await registry.call("shell_command", {"command": "pwd -P", "cwd": "data"}))[
        "stdout"
    ] == f"{tmp_path.resolve()}/data\n"


async def test_without_a_folder_they_start_at_the_working_directory(
    builtins: ToolRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it is when the tool runs."""
    monkeypatch.chdir(tmp_path)
    await builtins.call("file_write", {"path": "x.txt", "content": "here"})
    assert (tmp_path / "x.txt").read_text() == "here"


@pytest.fixture
def places(tmp_path: Path) -> dict[str, str]:
    """Paths that can't be read or written as asked."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "bytes").write_bytes(b"ab\xff\xfe")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    names = {name: str(tmp_path / name) for name in ("folder", "bytes", "pipe", "loop", "missing")}
    return names | {"below": str(tmp_path / "bytes" / "x"), "long": str(tmp_path / ("x" * 300))}


READING: list[tuple[str, dict[str, Any], type[Exception], str]] = [
    ("missing", {}, FileNotFoundError, "`{path}` does not exist"),
    ("folder", {}, OSError, "`{path}` can't be read: Is a directory"),
    ("pipe", {}, OSError, "`{path}` is not a regular file"),
    ("loop", {}, OSError, "`{path}` can't be read: Too many levels of symbolic links"),
    ("below", {}, OSError, "`{path}` can't be read: Not a directory"),
    ("long", {}, OSError, "`{path}` can't be read: File name too long"),
    ("bytes", {}, ValueError, "`{path}` is not text in `utf-8`: byte 3 does not fit"),
    (
        "bytes",
        {"encoding": "utf-9"},
        ValidationError,
        "argument `encoding` must name a text encoding such as `utf-8`, not `utf-9`",
    ),
    (
        "bytes",
        {"encoding": "base64"},
        ValidationError,
        "argument `encoding` must name a text encoding such as `utf-8`, not `base64`",
    ),
    ("bytes", {"encoding": "utf-8\0"}, ValidationError, "argument `encoding` must name a text encoding"),
]


@pytest.mark.parametrize(("name", "more", "kind", "fault"), READING)
async def test_what_cannot_be_read(
    builtins: ToolRegistry, places: dict[str, str], name: str, more: dict[str, Any], kind: type[Exception], fault: str
) -> None:
    """A clear word; nothing blocks."""
    with pytest.raises(kind) as caught:
        await builtins.call("file_read", {"path": places[name], **more})
    assert str(caught.value).startswith(fault.format(path=places[name]))


@pytest.mark.parametrize("path", ["", "a\0b"])
@pytest.mark.parametrize("name", ["file_read", "file_write"])
async def test_a_path_that_names_nothing(builtins: ToolRegistry, name: str, path: str) -> None:
    """An argument that can't be right."""
    more = {"content": ""} if name == "file_write" else {}
    with pytest.raises(ValidationError, match="argument `path` must name a file"):
        await builtins.call(name, {"path": path, **more})


@pytest.mark.parametrize(
    ("name", "fault"),
    [("folder", "Is a directory"), ("below", "Not a directory"), ("loop", "Too many levels of symbolic links")],
)
async def test_what_cannot_be_written(builtins: ToolRegistry, places: dict[str, str], name: str, fault: str) -> None:
    """The path as it was given, and the reason."""
    with pytest.raises(OSError, match="can't be written") as caught:
        await builtins.call("file_write", {"path": places[name], "content": "x"})
    assert str(caught.value).startswith(f"`{places[name]}` can't be written: ")
    if name != "below":
        assert fault in str(caught.value)


async def test_a_text_that_cannot_be_encoded_costs_nothing(builtins: ToolRegistry, tmp_path: Path) -> None:
    """The file keeps what it held."""
    path = tmp_path / "x"
    path.write_text("before")
    with pytest.raises(ValueError, match="`content` can't be written in `ascii`: character 3 does not fit"):
        await builtins.call("file_write", {"path": str(path), "content": "Größe", "encoding": "ascii"})
    with pytest.raises(ValidationError, match="must name a text encoding"):
        await builtins.call("file_write", {"path": str(path), "content": "x", "encoding": "rot13"})
    assert path.read_text() == "before"


async def test_a_file_that_is_too_large(tmp_path: Path, builtins: ToolRegistry) -> None:
    """Nor an endless one: `/dev/zero` is no regular file."""
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(65 * 1024 * 1024)
    with pytest.raises(OSError, match="is larger than 64 MB"):
        await builtins.call("file_read", {"path": str(path)})
    with pytest.raises(OSError, match="`/dev/zero` is not a regular file"):
        await builtins.call("file_read", {"path": "/dev/zero"})
