"""A project's own tools in the editor: learned in a process of their own, checked, completed, explained, and learned again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tests.lsp.peer import FULL, Local

TOOLS = """\
import sys
from enum import Enum
from typing import Literal
from pydantic import BaseModel
from agentloom.tools.base import tool

print("Content-Length: 5\\r\\n\\r\\nnoise")
sys.stdout.flush()


@tool("weather", "Tell the weather.")
def weather(city: str, days: int = 1, unit: Literal["C", "F"] = "C") -> str:
    return city


class Sky(Enum):
    CLEAR = "clear"
    GREY = "grey"


class Spot(BaseModel):
    lake: str
    sky: Sky | None = None


@tool("picnic", "Plan a picnic.")
def picnic(sky: Sky, at: Spot | None = None, others: list[Spot] | None = None) -> str:
    return ""
"""
FLOW = "name: w\nconfig: {provider: mock, model: m, max_retries: 0}\nsteps:\n  - id: a\n    type: tool\n    "
MODULE = "lsp_tools_of_the_test"


def project(folder: Path, code: str = TOOLS, modules: str = f'["{MODULE}"]') -> Path:
    """Write a project; return its workflow's path."""
    (folder / "agentloom.toml").write_text(f"tools = {modules}\n")
    (folder / f"{MODULE}.py").write_text(code)
    return folder / "w.loom.yaml"


def told(peer: Local, uri: str, *messages: str) -> None:
    """Wait until a document has these findings and no others, if it hasn't already."""
    shown = [
        message["params"]["diagnostics"]
        for message in peer.seen
        if message.get("method") == "textDocument/publishDiagnostics" and message["params"]["uri"] == uri
    ]
    latest = shown[-1] if shown else None
    while latest is None or sorted(report["message"] for report in latest) != sorted(messages):
        latest = peer.published(uri)


def changed(peer: Local, *paths: Path) -> None:
    """Tell the server of changed files."""
    peer.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": p.as_uri(), "type": 2} for p in paths]})


TOWN = ("`weather` takes no `town`; it takes `city`, `days`, `unit`", "`weather` needs `city`; add it")


def test_names_and_arguments_are_checked_completed_and_explained(tmp_path: Path) -> None:
    """As those of the built-in tools; what a module prints reaches nobody."""
    path = project(tmp_path)
    uri = path.as_uri()
    with Local() as peer:
        peer.initialize(folder=tmp_path)
        peer.open(uri, FLOW + "tool_name: weather\n    tool_args: {town: Oslo}\n")
        told(peer, uri, *TOWN)
        assert MODULE not in sys.modules

        def completed(text: str) -> dict[str, Any]:
            peer.change(uri, text.replace("¦", ""))
            before = text.partition("¦")[0]
            at = {"line": before.count("\n"), "character": len(before.rpartition("\n")[2])}
            answer = peer.request("textDocument/completion", {"textDocument": {"uri": uri}, "position": at})
            items = answer["items"] if isinstance(answer, dict) else answer
            return {item["label"]: item for item in items}

        assert "weather" in completed(FLOW + "tool_name: ¦\n")
        keys = completed(FLOW + "tool_name: weather\n    tool_args:\n      ¦\n")
        assert {"city", "days", "unit"} <= set(keys)
        assert {"C", "F"} <= set(completed(FLOW + "tool_name: weather\n    tool_args: {city: Oslo, unit: ¦}\n"))
        picnic = FLOW + "tool_name: picnic\n    tool_args: "
        assert {"clear", "grey"} <= set(completed(picnic + "{sky: ¦}\n"))
        (lake,) = [item for label, item in completed(picnic + "{sky: clear, at: {¦}}\n").items() if label == "lake"]
        assert "needed" in str(peer.request("completionItem/resolve", lake)["documentation"])
        assert {"lake", "sky"} <= set(completed(picnic + "{sky: clear, others: [{¦}]}\n"))
        assert {"clear", "grey"} <= set(completed(picnic + "{sky: clear, others: [{lake: x, sky: ¦}]}\n"))
        asked = FLOW.replace("type: tool", "type: llm_call") + "prompt: hi\n    tools:\n      - name: ¦\n"
        assert "weather" in completed(asked)
        peer.change(uri, FLOW + "tool_name: weather\n    tool_args: {city: Oslo}\n")
        answer = peer.request(
            "textDocument/hover", {"textDocument": {"uri": uri}, "position": {"line": 5, "character": 17}}
        )
        words = str(answer["contents"])
        assert "Tell the weather." in words
        assert "days" in words
        assert peer.leave() == 0


def test_a_module_that_changes_is_learned_again(tmp_path: Path) -> None:
    """And one that can't be used is told in the settings file, until it can; a module that hangs holds nobody up."""
    path = project(tmp_path)
    uri, settings, module = path.as_uri(), tmp_path / "agentloom.toml", tmp_path / f"{MODULE}.py"
    with Local() as peer:
        peer.initialize(folder=tmp_path)
        peer.open(uri, FLOW + "tool_name: weather\n    tool_args: {town: Oslo}\n")
        told(peer, uri, *TOWN)
        module.write_text(TOOLS.replace("city", "town"))
        changed(peer, module)
        told(peer, uri)
        module.write_text("1 / 0\n")
        changed(peer, module)
        told(peer, settings.as_uri(), f"tools module `{MODULE}` can't be imported: ZeroDivisionError: division by zero")
        module.write_text(TOOLS)
        changed(peer, module)
        told(peer, settings.as_uri())
        told(peer, uri, *TOWN)
        settings.write_text("")
        changed(peer, settings)
        told(
            peer,
            uri,
            "tool `weather` is not known; correct the name, or name the module that registers it under `tools` in the settings",
        )
        assert peer.leave() == 0


def test_nothing_is_imported_where_nobody_may(tmp_path: Path) -> None:
    """`tools.learn: false` from the start holds, whatever the configuration says later; unknown names aren't told then."""
    code = f"open({str(tmp_path / 'imported')!r}, 'w').close()\n{TOOLS}"
    uri = project(tmp_path, code).as_uri()
    with Local() as peer:
        peer.answers["workspace/configuration"] = [{"tools.learn": True}]
        peer.initialize(folder=tmp_path, initializationOptions={"tools.learn": False})
        peer.open(uri, FLOW + "tool_name: weather\n    tool_args: {town: Oslo}\n    timeout: -1\n")
        told(peer, uri, "`timeout` is `-1`; it must be 0 or more")
        changed(peer, tmp_path / f"{MODULE}.py")
        peer.change(uri, FLOW + "tool_name: weather\n    tool_args: {town: Oslo}\n")
        told(peer, uri)
        assert not (tmp_path / "imported").exists()
        assert peer.leave() == 0


def test_its_files_are_watched(tmp_path: Path) -> None:
    """Those that were imported, where they are."""
    path = project(tmp_path, f"import helper_of_the_test\n{TOOLS}")
    (tmp_path / "helper_of_the_test.py").write_text("")
    capabilities = {
        **FULL,
        "workspace": {
            **FULL["workspace"],
            "didChangeWatchedFiles": {"dynamicRegistration": True, "relativePatternSupport": True},
        },
    }
    with Local() as peer:
        peer.initialize(capabilities, folder=tmp_path)
        peer.open(path.as_uri(), FLOW + "tool_name: weather\n    tool_args: {town: Oslo}\n")
        told(peer, path.as_uri(), *TOWN)
        watched = {
            watcher["globPattern"]["pattern"]
            for message in peer.seen
            if message.get("method") == "client/registerCapability"
            for one in message["params"]["registrations"]
            if one["method"] == "workspace/didChangeWatchedFiles"
            for watcher in one["registerOptions"]["watchers"]
            if isinstance(watcher["globPattern"], dict)
        }
        assert {f"{MODULE}.py", "helper_of_the_test.py"} <= watched
        assert peer.leave() == 0
