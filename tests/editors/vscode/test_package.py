"""The `.vsix`: small, nothing in it that users don't need, and its settings and commands are those of the server."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from agentloom import __version__
from agentloom_lsp.handshake import COMMANDS
from agentloom_lsp.options import OPTIONS

MOST = 400_000
"""Bytes of the package; pictures of the README are not in it."""
FOLDERS = {"dist", "media", "walkthrough"}
KINDS = {".js", ".css", ".json", ".png", ".svg", ".md", ".txt"}
OF_WINDOWS = {"server.path", "server.environment", "interpreter", "trace.server", "yaml.schema", "graph.direction"}
"""Settings that are the extension's own."""
BETWEEN_PROGRAMS = {"agentloom.graph", "run.events"}
"""What the extension asks of the server by itself."""


@pytest.fixture(scope="module")
def files(vsix: Path) -> dict[str, bytes]:
    """What is in the package, by the name below the extension."""
    with zipfile.ZipFile(vsix) as archive:
        named = {name.removeprefix("extension/"): archive.read(name) for name in archive.namelist()}
    return {name: data for name, data in named.items() if name not in ("[Content_Types].xml", "extension.vsixmanifest")}


@pytest.fixture(scope="module")
def manifest(files: dict[str, bytes]) -> dict[str, Any]:
    """Its package.json."""
    found: dict[str, Any] = json.loads(files["package.json"])
    return found


def test_only_what_users_need(vsix: Path, files: dict[str, bytes]) -> None:
    """No sources, no modules of others, no source maps, no tests; and not much of anything."""
    assert vsix.stat().st_size < MOST
    strange = [name for name in files if "/" in name and name.split("/")[0] not in FOLDERS]
    assert strange == []
    assert {Path(name).suffix for name in files} <= KINDS
    assert {
        "dist/extension.js",
        "dist/graph.js",
        "dist/graph.css",
        "media/icon.png",
        "readme.md",
        "LICENSE.txt",
    } <= set(files)
    assert not any(b"sourceMappingURL=data:" in data for data in files.values())


def test_what_the_manifest_names_is_there(files: dict[str, bytes], manifest: dict[str, Any]) -> None:
    """Main file, icons, pages of the walkthrough."""

    def names(value: Any) -> list[str]:
        if isinstance(value, dict):
            return [name for item in value.values() for name in names(item)]
        if isinstance(value, list):
            return [name for item in value for name in names(item)]
        looks_like = isinstance(value, str) and value.removeprefix("./").startswith(("dist/", "media/", "walkthrough/"))
        return [value.removeprefix("./")] if looks_like else []

    assert {"dist/extension.js", "media/icon.png"} <= set(names(manifest))
    assert [name for name in names(manifest) if name not in files] == []


def test_the_version_is_that_of_agentloom(manifest: dict[str, Any]) -> None:
    """Both are released together."""
    assert manifest["version"] == __version__


def test_settings_are_those_of_the_server(manifest: dict[str, Any]) -> None:
    """Every option of the server can be set, with the same default and meaning; each further setting is the extension's own."""
    settings = manifest["contributes"]["configuration"]["properties"]
    for option in OPTIONS:
        if option.name in BETWEEN_PROGRAMS:
            continue
        setting = settings[f"agentloom.{option.name}"]
        assert setting["default"] == option.default, option.name
        told = setting["markdownDescription"].rstrip(".")
        assert told[:1].lower() + told[1:] == option.meaning, option.name
    ours = {f"agentloom.{option.name}" for option in OPTIONS} | {f"agentloom.{name}" for name in OF_WINDOWS}
    assert set(settings) <= ours


def test_commands_are_titled_once(manifest: dict[str, Any]) -> None:
    """Every command has a title, and none is there twice."""
    commands = [command["command"] for command in manifest["contributes"]["commands"]]
    assert len(commands) == len(set(commands))
    assert all(
        command["title"] and command["category"] == "agentloom" for command in manifest["contributes"]["commands"]
    )


def test_commands_of_the_server_are_in_the_palette(manifest: dict[str, Any]) -> None:
    """What the server can do can be asked for by name."""
    commands = {command["command"] for command in manifest["contributes"]["commands"]}
    assert set(COMMANDS) - BETWEEN_PROGRAMS <= commands
