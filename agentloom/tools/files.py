"""The built-in tools that read and write files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

from agentloom.errors import ValidationError
from agentloom.tools.base import BaseTool
from agentloom.tools.catalogue import BUILTIN_TOOLS
from agentloom.tools.policy import Policy, current_policy, narrowed
from agentloom.tools.trees import READ, is_regular

MAX_FILE_BYTES = 64 * 1024 * 1024
"""The largest file that is read: what it holds becomes state, and state is kept in memory and in checkpoints."""

Encoding = Annotated[str, "The name of the text encoding."]


class FileRead(BaseTool):
    """`file_read`. Relative paths start at ``folder``, without one at the working directory."""

    name = "file_read"
    description = BUILTIN_TOOLS[name].description
    returns = BUILTIN_TOOLS[name].returns

    def __init__(self, policy: Policy | None = None, folder: Path | None = None) -> None:
        self._policy = policy
        self._folder = folder or Path()

    def execute(self, path: Annotated[str, "The file to read."], encoding: Encoding = "utf-8") -> str:
        """Return the file's text. Line ends stay as they are."""
        place = _place(self._folder, path)
        data = read_file(place, narrowed(self._policy, current_policy()), shown=path)
        try:
            return data.decode(encoding)
        except UnicodeError as error:
            raise ValueError(f"`{path}` is not text in `{encoding}`: {_reason(error)}") from None
        except (LookupError, ValueError):
            raise ValidationError(_no_encoding(encoding)) from None


class FileWrite(BaseTool):
    """`file_write`. Relative paths start at ``folder``, without one at the working directory."""

    name = "file_write"
    description = BUILTIN_TOOLS[name].description
    returns = BUILTIN_TOOLS[name].returns

    def __init__(self, policy: Policy | None = None, folder: Path | None = None) -> None:
        self._policy = policy
        self._folder = folder or Path()

    def execute(
        self,
        path: Annotated[str, "The file to write; what it held before is lost."],
        content: Annotated[str, "The text to write."],
        encoding: Encoding = "utf-8",
    ) -> dict[str, Any]:
        """Return how many characters were written, and the path as it was given."""
        place = _place(self._folder, path)
        try:
            # Before the file is opened: a text that can't be encoded must not cost what the file held.
            data = content.encode(encoding)
        except UnicodeError as error:
            raise ValueError(f"`content` can't be written in `{encoding}`: {_reason(error)}") from None
        except (LookupError, ValueError):
            raise ValidationError(_no_encoding(encoding)) from None
        policy = narrowed(self._policy, current_policy())
        try:
            if policy is None:
                place.parent.mkdir(parents=True, exist_ok=True)
            with open(place if policy is None else policy.open_to_write(place, len(data), shown=path), "wb") as file:
                file.write(data)
        except OSError as error:
            if error.strerror is None:
                raise
            raise OSError(f"`{path}` can't be written: {error.strerror}") from error
        return {"written": len(content), "path": path}


def _place(folder: Path, path: str) -> Path:
    if not path or "\0" in path:
        raise ValidationError("argument `path` must name a file")
    return folder / path


def read_file(
    place: Path,
    policy: Policy | None = None,
    who: str = "file_read",
    limit: int = MAX_FILE_BYTES,
    shown: str | None = None,
) -> bytes:
    """Return the bytes of a regular file of at most ``limit`` bytes, read under a policy if there is one.

    ``who`` is named in refusals, ``shown`` is the path as the user wrote it. Raises ``SandboxViolationError`` and ``OSError``.
    """
    path = str(place) if shown is None else shown
    try:
        descriptor = os.open(place, READ) if policy is None else policy.open_to_read(place, who, shown)
        with open(descriptor, "rb") as file:
            if not is_regular(descriptor):
                raise OSError(f"`{path}` is not a regular file")
            data = file.read(limit + 1)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"`{path}` does not exist") from error
    except OSError as error:
        if error.strerror is None:
            raise
        raise OSError(f"`{path}` can't be read: {error.strerror}") from error
    if len(data) > limit:
        raise OSError(f"`{path}` is larger than {limit // 1024 // 1024} MB")
    return data


def _no_encoding(name: str) -> str:
    return f"argument `encoding` must name a text encoding such as `utf-8`, not `{name}`"


def _reason(error: UnicodeError) -> str:
    if isinstance(error, UnicodeDecodeError | UnicodeEncodeError):
        unit = "byte" if isinstance(error, UnicodeDecodeError) else "character"
        return f"{unit} {error.start + 1} does not fit"
    return str(error)
