"""What a project's own tools are, learned without importing them here: a child process imports them and tells.

The command line, the engine's loader and the language server all ask here, so that they know the same tools.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agentloom.tools.catalogue import BUILTIN_TOOLS
from agentloom.tools.info import ToolInfo

WITHIN = 5.0
"""Seconds that all modules of a project may take to be imported and described."""

MOST_BYTES = 8 * 1024 * 1024
"""How much a child process may tell."""

_ROOT = str(Path(__file__).parents[2])
# What a project's folder holds must not stand for our own modules, or for those of the standard library that we need.
_PROGRAM = """\
import sys
sys.path.insert(0, sys.argv[1])
import agentloom.tools.describe, agentloom.tools.registry
sys.path.remove(sys.argv[1])
agentloom.tools.describe.main(sys.argv[2:])
"""


class Learned(NamedTuple):
    """The tools that a project's runs know, by name, the built-in ones among them.

    ``faults`` are the modules that can't be used, each with the reason. ``files`` are what this was learned from.
    """

    tools: Mapping[str, ToolInfo] = BUILTIN_TOOLS
    faults: tuple[tuple[str, str], ...] = ()
    files: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether there are no other tools."""
        return not self.faults


def learn(modules: Sequence[str], folder: Path | None, within: float = WITHIN) -> Learned:
    """Return the tools of some modules, which are looked for in ``folder`` first. Takes at most ``within`` seconds, and never raises."""
    if not modules:
        return Learned()
    place = os.path.abspath(folder) if folder is not None else ""
    files = list(_candidates(place, modules))
    try:
        told, ended = _ask(modules, place, within)
    except OSError as error:
        why = f"the process that imports tools can't be started: {error.strerror or error}"
        return Learned(faults=tuple((module, why) for module in modules), files=tuple(files))
    tools: dict[str, ToolInfo] = dict(BUILTIN_TOOLS)
    faults: list[tuple[str, str]] = []
    for module, said in zip(modules, told, strict=False):
        files.extend(_texts(said.get("files")))
        if "fault" in said:
            faults.append((module, str(said["fault"])))
        for info in said.get("tools") or ():
            tools[str(info["name"])] = ToolInfo(**info)
    if len(told) < len(modules):
        why = f"takes longer than {within:g} s to import" if not ended else "ends the process that imports it"
        faults.append((modules[len(told)], f"tools module `{modules[len(told)]}` {why}"))
    return Learned(tools, tuple(faults), tuple(dict.fromkeys(files)))


_learned: dict[tuple[str, ...], tuple[Learned, object]] = {}


def learned_once(modules: Sequence[str], folder: Path | None) -> Learned:
    """Return what ``learn`` does, worked out once as long as the modules' files stay the same."""
    key = (os.path.abspath(folder or "."), *modules)
    known = _learned.get(key)
    if known is None or stamps(known[0].files) != known[1]:
        found = learn(modules, folder)
        known = _learned[key] = (found, stamps(found.files))
    return known[0]


def stamps(files: Iterable[str]) -> tuple[tuple[int, int] | None, ...]:
    """Return what changes when one of the files does, is made or is removed."""
    return tuple(map(_stamp, files))


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size


def _ask(modules: Sequence[str], folder: str, within: float) -> tuple[list[dict[str, Any]], bool]:
    """Return what a child process tells of the modules, in order, as far as it came, and whether it ended by itself."""
    import subprocess  # only for projects with tools of their own
    import threading

    mark = os.urandom(16).hex()
    reading, writing = os.pipe()
    try:
        process = subprocess.Popen(
            [sys.executable, "-PB", "-c", _PROGRAM, _ROOT, mark, str(within + 1), folder, *modules],
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=subprocess.DEVNULL,
            cwd=folder if os.path.isdir(folder) else None,
            start_new_session=True,
        )
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    lines: list[dict[str, Any]] = []
    # Whatever the modules start may hold the pipe open for ever, so its end is nothing to wait for.
    reader = threading.Thread(target=_read, args=(reading, mark, lines), daemon=True)
    reader.start()
    reader.join(within)
    ended = not reader.is_alive()
    _kill(process)
    told = [line for line in list(lines) if not line.get("done")]
    return told[: len(modules)], ended


def _read(descriptor: int, mark: str, lines: list[dict[str, Any]]) -> None:
    """Read the lines that begin with the mark until the last of them, and nothing else that may come."""
    data, total, start = bytearray(), 0, mark.encode()
    with open(descriptor, "rb", buffering=0) as stream:
        while chunk := stream.read(65536):
            data += chunk
            total += len(chunk)
            *whole, rest = data.split(b"\n")
            data = bytearray(rest)
            for line in whole:
                if not line.startswith(start):
                    continue
                try:
                    said = json.loads(line[len(start) :])
                except ValueError:
                    return
                if not isinstance(said, dict):
                    return
                lines.append(said)
                if said.get("done"):
                    return
            if total > MOST_BYTES:
                return


def _kill(process: Any) -> None:
    """End a child process and all that it started, if they didn't go out of its group."""
    import signal
    from contextlib import suppress

    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


def _candidates(folder: str, modules: Iterable[str]) -> Iterable[str]:
    """Yield the files that the modules may be in, there or not."""
    for module in modules:
        parts = module.split(".")
        for end in range(1, len(parts) + 1):
            path = os.path.join(folder, *parts[:end])
            yield f"{path}.py"
            yield os.path.join(path, "__init__.py")


def _texts(value: Any) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
