"""Bytes of a file to text. YAML is UTF-8, or UTF-16 or UTF-32 with a byte order mark; everything else gets a clear word."""

from __future__ import annotations

import re

from agentloom.diagnostics import Finding
from agentloom.text import LineTable, Span

_MARKS: tuple[tuple[bytes, str], ...] = (
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_LOOK_AT = 1_000
"""Bytes looked at for telling UTF-16 without a mark."""

_FIRST_WORD = r"\S+"
CURE = "save the file as UTF-8"


def decode(data: bytes) -> tuple[str, Finding | None]:
    """Return the text of a file, a byte order mark kept as its first character, and what is wrong with its encoding.

    What can't be decoded becomes U+FFFD, so that the rest of the file can be read and checked.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _decoded(data, encoding)
    if guess := _unmarked(data):
        text = data.decode(guess, "replace")
        name = "UTF-16" if guess.startswith("utf-16") else "UTF-32"
        return text, Finding("AL001", _first_word(text), f"this file is {name} without a byte order mark; {CURE}")
    return _decoded(data, "utf-8")


def encode_like(text: str, data: bytes) -> bytes:
    """Return a text in the encoding of the bytes that ``decode`` read without a fault; its own mark is its first character."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return text.encode(encoding)
    return text.encode("utf-8")


def _decoded(data: bytes, encoding: str) -> tuple[str, Finding | None]:
    try:
        return data.decode(encoding), None
    except UnicodeDecodeError as error:
        before = len(data[: error.start].decode(encoding))
        text = data.decode(encoding, "replace")
        line = LineTable(text).line_of(before) + 1
        what = f"byte 0x{data[error.start]:02X} (number {error.start + 1:,} of the file, on line {line:,})"
        name = encoding.upper().removesuffix("-LE").removesuffix("-BE")
        return text, Finding("AL001", Span(before, min(before + 1, len(text))), f"{what} is not {name}; {CURE}")


def _unmarked(data: bytes) -> str | None:
    """Return the encoding of a text that has a null byte beside nearly every character, as Western text in UTF-16 has."""
    head = data[:_LOOK_AT]
    if len(head) < 4 or b"\0" not in head:
        return None
    nulls = [head[at::4].count(0) / len(head[at::4]) for at in range(4)]
    for encoding, pattern in (
        ("utf-32-le", "0111"),
        ("utf-32-be", "1110"),
        ("utf-16-le", "0101"),
        ("utf-16-be", "1010"),
    ):
        if all((share > 0.8) if wanted == "1" else (share < 0.2) for share, wanted in zip(nulls, pattern, strict=True)):
            return encoding
    return None


def _first_word(text: str) -> Span:
    found = re.search(_FIRST_WORD, text)
    return Span(*found.span()) if found else Span(0, 0)
