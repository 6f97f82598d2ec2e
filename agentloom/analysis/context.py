"""What a verdict depends on besides the text: settings, known tools, and a way to look at other files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Protocol

from agentloom.analysis.settings import Settings, tool_problems
from agentloom.files import read_bytes
from agentloom.records import record
from agentloom.syntax.decode import decode
from agentloom.tools.catalogue import BUILTIN_TOOLS

ReadText = Callable[[Path], str]


def read_from_disk(path: Path) -> str:
    """Return a file's text. Raises ``OSError`` when it can't be read, ``UnicodeError`` when it is no text.

    Pipes and devices are refused (``Unsuitable``): a file that names one must not stop an editor.
    """
    text, fault = decode(read_bytes(path))
    if fault is not None:
        raise UnicodeError(fault.message)
    return text


def list_on_disk(folder: Path) -> tuple[str, ...]:
    """Return the names in a folder, sorted; none when it can't be read."""
    try:
        return tuple(sorted(entry.name for entry in folder.iterdir()))
    except OSError:
        return ()


def is_folder_on_disk(path: Path) -> bool:
    """Tell whether there is a folder at a path."""
    try:
        return path.is_dir()
    except OSError:
        return False


class ToolLike(Protocol):
    """What is known of a tool without running it: its description and the JSON Schema of its arguments."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def parameters(self) -> Mapping[str, Any]: ...


@record()
class Context:
    """The surroundings of one document. Never the working directory, the clock, the network or the environment.

    ``read_text`` reads open buffers first and the disk second; ``list_folder`` serves did-you-mean among neighbours, and
    with ``is_folder`` completion of paths. ``tools_complete`` is false while it isn't known which other tools there are: a module that the
    settings name can't be used, or wasn't looked at yet.
    """

    settings: Settings = Settings()
    read_text: ReadText = read_from_disk
    exists: Callable[[Path], bool] = Path.exists
    list_folder: Callable[[Path], Iterable[str]] = list_on_disk
    tools: Mapping[str, ToolLike] = field(default_factory=dict)
    is_folder: Callable[[Path], bool] = is_folder_on_disk
    tools_complete: bool = True

    def path_of(self, uri: str) -> Path | None:
        """Return the file that a URI or a plain path names; None for untitled buffers and standard input."""
        return path_of(uri)


def context_for(settings: Settings, read_text: ReadText = read_from_disk) -> Context:
    """Return the context of a program that checks, or checks and runs: with the tools of the settings' modules.

    What is wrong with a module is a problem of the settings.
    """
    if not settings.tools:
        return Context(settings, read_text, tools=BUILTIN_TOOLS)
    from agentloom.tools.learning import learned_once  # only for projects with tools of their own

    learned = learned_once(settings.tools, settings.folder)
    problems = (*settings.problems, *tool_problems(settings, learned.faults))
    return Context(
        settings._replace(problems=problems), read_text, tools=learned.tools, tools_complete=learned.complete
    )


def path_of(uri: str) -> Path | None:
    """Return the file that a ``file:`` URI or a plain path names; None for everything else (``untitled:``, ``<stdin>``)."""
    if uri.startswith("file:"):
        from urllib.parse import unquote, urlsplit  # editors only: the command line names plain paths

        try:
            parts = urlsplit(uri)
        except ValueError:
            return None
        text = unquote(parts.path)
        if parts.netloc and parts.netloc != "localhost":
            return Path(f"//{parts.netloc}{text}")
        if len(text) > 2 and text[0] == "/" and text[2] == ":":
            text = text[1:]
        return Path(text)
    if not uri or uri.startswith("<"):
        return None
    head = uri.split("/", 1)[0]
    if ":" in head and not (len(head) > 1 and head[1] == ":") and not Path(uri).exists():
        return None
    return Path(uri)
