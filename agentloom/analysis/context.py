"""What a verdict depends on besides the text: settings, known tools, and a way to read other files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from agentloom.analysis.settings import Settings

ReadText = Callable[[Path], str]


def read_from_disk(path: Path) -> str:
    """Return a file's text. Raises ``OSError`` when it can't be read, ``UnicodeDecodeError`` when it is no UTF-8."""
    return path.read_bytes().decode("utf-8")


@dataclass(frozen=True, slots=True)
class ToolInfo:
    """What is known of a tool without running it: its description and the JSON Schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Context:
    """The surroundings of one document. Never the working directory, the clock, the network or the environment."""

    settings: Settings = field(default_factory=Settings)
    read_text: ReadText = read_from_disk
    tools: Mapping[str, ToolInfo] = field(default_factory=dict)

    def path_of(self, uri: str) -> Path | None:
        """Return the file that a URI or a plain path names; None for untitled buffers and standard input."""
        if uri.startswith("file:"):
            parts = urlsplit(uri)
            text = unquote(parts.path)
            if parts.netloc and parts.netloc != "localhost":
                return Path(f"//{parts.netloc}{text}")
            if len(text) > 2 and text[0] == "/" and text[2] == ":":
                text = text[1:]
            return Path(text)
        if ":" in uri.split("/")[0] and not (len(uri) > 1 and uri[1] == ":"):
            return None
        return Path(uri) if uri and not uri.startswith("<") else None
