"""An editor for tests that runs workflows: a real server in its own process, a folder with tools of the user's, and what was shown."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.lsp.peer import FULL, Local, Peer, Process

CAPABLE: dict[str, Any] = {
    **FULL,
    "window": {"workDoneProgress": True, "showMessage": {}, "showDocument": {"support": True}},
    "workspace": {
        **FULL["workspace"],
        "codeLens": {"refreshSupport": True},
        "inlayHint": {"refreshSupport": True},
    },
    "experimental": {"agentloom": {"runEvents": True}},
}
CAPABLE_PULLING: dict[str, Any] = {**CAPABLE, "textDocument": {**CAPABLE["textDocument"], "diagnostic": {}}}
ANSWERS: dict[str, Any] = {
    "window/workDoneProgress/create": None,
    "window/showMessageRequest": None,
    "window/showDocument": {"success": True},
    "workspace/codeLens/refresh": None,
    "workspace/inlayHint/refresh": None,
    "workspace/diagnostic/refresh": None,
}
EVERYTHING = {"start": {"line": 0, "character": 0}, "end": {"line": 999, "character": 0}}
TOOLS = '''\
"""Tools that do what tools should not."""
import os
import signal
import subprocess
import sys
import threading

from agentloom.tools.base import tool


@tool("chat", "Print.")
def chat() -> str:
    print('{"event": "run_finished", "status": "failed"}', flush=True)
    print("Content-Length: 3\\r\\n\\r\\nabc", flush=True)
    os.write(1, b"straight to descriptor 1\\n")
    os.write(2, "and 2 \\U0001f600\\n".encode())
    return input() if sys.stdin.isatty() else sys.stdin.read()


@tool("leave", "Exit.")
def leave() -> str:
    sys.exit(3)


@tool("crash", "End the process.")
def crash() -> str:
    sys.stderr.write("out of luck\\n")
    sys.stderr.flush()
    os._exit(7)


@tool("die", "Be killed.")
def die() -> str:
    os.kill(os.getpid(), signal.SIGKILL)
    return ""


@tool("wait", "Block a thread for ever.")
def wait() -> str:
    threading.Event().wait()
    return ""


@tool("hold", "Block everything for ever.")
async def hold() -> str:
    threading.Event().wait()
    return ""


@tool("open_files", "What the process holds open.")
def open_files() -> list:
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{name}"))
        except OSError:
            pass
    return found


@tool("where", "The working folder, and the group of processes.")
def where() -> list:
    return [os.getcwd(), os.getsid(0) == os.getpid()]


@tool("secret", "A value that nobody should see.")
def secret() -> str:
    return "hunter2"
'''


class Editing(Peer):
    """What an editor does with runs. ``server`` is the number of the server's process."""

    folder: Path
    server: int

    def begin(self, folder: Path, capabilities: Any, options: Any, tools: bool, parent: int | None = None) -> None:
        """Open a folder; ``tools``: with some of the user's in it. ``parent`` is the process that the server stays with."""
        self.folder = folder
        self.answers.update(ANSWERS)
        (folder / "loom_tools.py").write_text(TOOLS)
        (folder / "agentloom.toml").write_text('tools = ["loom_tools"]\n' if tools else "")
        self.initialize(capabilities, folder, initializationOptions=options, processId=parent)

    def show(self, name: str, text: str) -> str:
        """Open a file that isn't saved; return its URI."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        self.open(path.as_uri(), text)
        return path.as_uri()

    def command(self, name: str, **argument: Any) -> Any:
        """Have a command carried out and return the answer."""
        return self.request("workspace/executeCommand", {"command": f"agentloom.{name}", "arguments": [argument]})

    def run(self, name: str = "run", **argument: Any) -> str:
        """Start a run; return its id."""
        answer = self.command(name, **argument)
        assert answer["status"] == "started", answer
        return str(answer["runId"])

    def press(self, uri: str, title: str) -> Any:
        """Press the lens that begins with these words; return the command's answer."""
        (lens,) = [lens for lens in self.lenses(uri) if lens["title"].startswith(title)]
        return self.request("workspace/executeCommand", {"command": lens["command"], "arguments": lens["arguments"]})

    def lenses(self, uri: str) -> list[dict[str, Any]]:
        """Return the commands of a document's lenses."""
        return [lens["command"] for lens in self.request("textDocument/codeLens", {"textDocument": {"uri": uri}})]

    def titles(self, uri: str) -> list[str]:
        """Return the words of the lenses above a workflow."""
        return [lens["title"] for lens in self.lenses(uri) if lens["title"] != "▶ Run up to here"]

    def hints(self, uri: str) -> list[str]:
        """Return the hints that tell of runs."""
        found = self.request("textDocument/inlayHint", {"textDocument": {"uri": uri}, "range": EVERYTHING})
        return [hint["label"] for hint in found if hint["label"][0] in "✓✗–‖…"]

    def hover(self, uri: str, line: int, character: int) -> str:
        """Return what is said about a place."""
        place = {"line": line, "character": character}
        found = self.request("textDocument/hover", {"textDocument": {"uri": uri}, "position": place})
        return str(found["contents"]["value"]) if found else ""

    def event(self, run_id: str, right: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait for an event of a run, or find it among those that came."""

        def fits(message: dict[str, Any]) -> bool:
            params = message.get("params")
            return (
                message.get("method") == "agentloom/runEvent"
                and isinstance(params, dict)
                and params["runId"] == run_id
                and right(params["event"])
            )

        found = next((message for message in self.seen if fits(message)), None) or self.until(fits)
        event: dict[str, Any] = found["params"]["event"]
        return event

    def begins(self, run_id: str, step: str) -> None:
        """Wait until a step of a run has begun."""
        self.event(run_id, lambda event: event["event"] == "step_started" and event["step"] == step)

    def ended(self, run_id: str) -> dict[str, Any]:
        """Wait until a run has ended, and all of that has been told; return the last event."""
        found = self.event(run_id, lambda event: event["event"] == "run_ended")
        self.request("agentloom/run", {"runId": run_id})  # answered behind everything that was sent before
        return found

    def events(self, run_id: str) -> list[dict[str, Any]]:
        """Return the events of a run that came so far."""
        return [
            message["params"]["event"]
            for message in self.seen
            if message.get("method") == "agentloom/runEvent" and message["params"]["runId"] == run_id
        ]

    def results(self, run_id: str) -> dict[str, Any]:
        """Return what the events told of each step when it ended."""
        return {event["step"]: event for event in self.events(run_id) if event["event"] == "step_finished"}

    def errors(self, uri: str, version: int) -> list[dict[str, Any]]:
        """Return the errors that were published last for a version of a document; wait until there are some."""

        def fits(message: dict[str, Any]) -> bool:
            params = message.get("params")
            return (
                message.get("method") == "textDocument/publishDiagnostics"
                and isinstance(params, dict)
                and (params["uri"], params.get("version")) == (uri, version)
            )

        self.request("textDocument/codeLens", {"textDocument": {"uri": uri}})  # checked, and so told
        found = [message for message in self.seen if fits(message)] or [self.until(fits)]
        return [report for report in found[-1]["params"]["diagnostics"] if report["severity"] == 1]

    def messages(self) -> list[str]:
        """Return what was shown to the user so far, and forget it."""
        found = [
            message["params"]["message"]
            for message in self.seen
            if message.get("method") in ("window/showMessage", "window/showMessageRequest")
        ]
        self.seen = [m for m in self.seen if not str(m.get("method")).startswith("window/showMessage")]
        return found

    def progress(self) -> list[dict[str, Any]]:
        """Return what progress showed so far."""
        return [m["params"]["value"] for m in self.seen if m.get("method") == "$/progress"]

    def children(self) -> list[int]:
        """Return the numbers of the processes of runs that the server has started and that are still there."""
        found = []
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    _, _, rest = Path("/proc", name, "stat").read_text().rpartition(")")
                    command = Path("/proc", name, "cmdline").read_bytes()
                except OSError:
                    continue
                if int(rest.split()[1]) == self.server and b"--events" in command:
                    found.append(int(name))
        return found


class Editor(Editing, Process):
    """An editor whose server is a process of its own."""

    def __init__(
        self, folder: Path, capabilities: Any = CAPABLE, options: Any = None, parent: int | None = None
    ) -> None:
        super().__init__(AGENTLOOM_CHECKPOINT_DIR="", OPENAI_API_KEY="")
        self.server = self.process.pid
        self.begin(folder, capabilities, options, True, parent)

    def __enter__(self) -> Editor:
        return self


class LocalEditor(Editing, Local):
    """One whose server is a thread of this process; runs are processes all the same."""

    def __init__(self, folder: Path, capabilities: Any = CAPABLE, options: Any = None, tools: bool = False) -> None:
        super().__init__()
        self.server = os.getpid()
        self.begin(folder, capabilities, options, tools)

    def __enter__(self) -> LocalEditor:
        return self


def checkpoint(folder: Path, run_id: str) -> dict[str, Any]:
    """Return what is kept of a run in a folder."""
    found: dict[str, Any] = json.loads((folder / ".agentloom" / "checkpoints" / f"{run_id}.json").read_text())
    return found
