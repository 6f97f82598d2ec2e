"""The bytes of a file or of standard input as text, or in plain words why not."""

from __future__ import annotations

import os
import sys

MARKS_OF_OTHERS = (
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)


class Unreadable(Exception):
    """A file can't be read, or is no text. The message says why, without the file's name."""


def read_file(path: str) -> str:
    """Return a file's text. Raises ``Unreadable``."""
    try:
        with open(path, "rb") as file:
            return decode(file.read())
    except OSError as error:
        raise Unreadable(reason(error)) from error


def read_stdin() -> str:
    """Return the text on standard input. Raises ``Unreadable``."""
    stream = sys.stdin
    if stream is None:
        raise Unreadable("standard input is closed")
    try:
        return decode(stream.buffer.read())
    except OSError as error:
        raise Unreadable(reason(error)) from error


def decode(data: bytes) -> str:
    """Return UTF-8 bytes as text, a byte order mark kept. Raises ``Unreadable`` with the place of what is no UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        for mark, name in MARKS_OF_OTHERS:
            if data.startswith(mark):
                raise Unreadable(f"the file is {name}; save it as UTF-8") from error
        line = data.count(b"\n", 0, error.start) + 1
        raise Unreadable(f"not UTF-8: byte 0x{data[error.start]:02x} on line {line}; save it as UTF-8") from error


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
