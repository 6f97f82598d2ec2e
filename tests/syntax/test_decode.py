"""Bytes to text: every encoding that YAML knows, and a clear word about the others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentloom.syntax.decode import decode
from tests.syntax.support import check_ranges

TEXT = "name: é\nsteps: 😀\n"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (TEXT.encode(), TEXT),
        (b"\xef\xbb\xbf" + TEXT.encode(), "\ufeff" + TEXT),
        (b"\xff\xfe" + TEXT.encode("utf-16-le"), "\ufeff" + TEXT),
        (b"\xfe\xff" + TEXT.encode("utf-16-be"), "\ufeff" + TEXT),
        (b"\xff\xfe\0\0" + TEXT.encode("utf-32-le"), "\ufeff" + TEXT),
        (b"\0\0\xfe\xff" + TEXT.encode("utf-32-be"), "\ufeff" + TEXT),
        (b"", ""),
        (b"a\0b: c\n", "a\0b: c\n"),
    ],
)
def test_known_encodings(data: bytes, text: str) -> None:
    """UTF-8, with a mark or without; UTF-16 and UTF-32 with one. Null bytes here and there are the reader's business."""
    assert decode(data) == (text, None)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_no_mark(encoding: str) -> None:
    """UTF-16 and UTF-32 without a mark are told by their null bytes, read all the same, and refused with the cure."""
    text, finding = decode(TEXT.encode(encoding))
    assert text == TEXT
    assert finding is not None
    assert finding.message == f"this file is {encoding[:6].upper()} without a byte order mark; save the file as UTF-8"
    assert text[slice(*finding.span)] == "name:"


@pytest.mark.parametrize(
    ("data", "text", "at", "message"),
    [
        (
            b"a: b\nc: caf\xe9 x\n",
            "a: b\nc: caf\ufffd x\n",
            11,
            "byte 0xE9 (number 12 of the file, on line 2) is not UTF-8",
        ),
        ("é: ".encode() + b"\xff", "é: \ufffd", 3, "byte 0xFF (number 5 of the file, on line 1) is not UTF-8"),
        (b"a: \xe2\x82", "a: \ufffd", 3, "byte 0xE2 (number 4 of the file, on line 1) is not UTF-8"),
        (b"\xff\xfea\0b", "\ufeffa\ufffd", 2, "byte 0x62 (number 5 of the file, on line 1) is not UTF-16"),
    ],
)
def test_what_cannot_be_decoded(data: bytes, text: str, at: int, message: str) -> None:
    """The first bad byte is named and placed, and the rest can be read."""
    found, finding = decode(data)
    assert found == text
    assert finding is not None
    assert (finding.code, finding.span.start, finding.message) == ("AL001", at, f"{message}; save the file as UTF-8")


@given(st.binary(max_size=60))
def test_any_bytes(data: bytes) -> None:
    """Never an exception; a text without U+FFFD or a finding inside the text."""
    text, finding = decode(data)
    if finding is not None:
        check_ranges(text, finding)
    else:
        assert text.encode("utf-8", "surrogatepass").decode("utf-8", "surrogatepass") == text
