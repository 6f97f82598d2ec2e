"""The bytes of a file or of standard input as text, or in plain words why not."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

from agentloom.diagnostics import Finding
from agentloom.files import read_bytes, read_stream
from agentloom.syntax.decode import decode


class Unreadable(Exception):
    """A file can't be read. The message says why, without the file's name."""


class Read(NamedTuple):
    """A file's text, the finding about its encoding if that is wrong, and the bytes that were there."""

    text: str
    fault: Finding | None = None
    data: bytes = b""

    @property
    def faults(self) -> tuple[Finding, ...]:
        """What the analysis is told besides the text."""
        return () if self.fault is None else (self.fault,)


def read_file(path: str, *, pipes: bool = True) -> Read:
    """Return what a file holds; ``pipes`` says that it may be a pipe, since the user named it. Raises ``Unreadable``."""
    try:
        data = read_bytes(path, pipes=pipes)
        return Read(*decode(data), data)
    except OSError as error:
        raise Unreadable(reason(error)) from error


def read_stdin() -> Read:
    """Return what comes in on standard input. Raises ``Unreadable``."""
    stream = sys.stdin
    if stream is None:
        raise Unreadable("standard input is closed")
    try:
        data = read_stream(stream.buffer)
        return Read(*decode(data), data)
    except OSError as error:
        raise Unreadable(reason(error)) from error


def reason(error: OSError) -> str:
    """Return why the system refuses, in its own words."""
    if error.strerror:
        return error.strerror[0].lower() + error.strerror[1:]
    return type(error).__name__


def name_of(path: str) -> str:
    """Return what to call a file that the user didn't name: relative to the working directory where it lies below it."""
    try:
        relative = os.path.relpath(path)
    except ValueError:  # another drive
        return path
    return path if relative.startswith("..") else relative
