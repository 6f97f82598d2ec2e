"""The parser of server-sent events: the same events, wherever the bytes are cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentloom.providers.sse import Event, EventParser


def parsed(*chunks: bytes) -> list[Event]:
    parser = EventParser()
    return [event for chunk in chunks for event in parser.feed(chunk)] + parser.finish()


CASES: list[tuple[str, list[Event]]] = [
    ("data: a\n\n", [Event("a")]),
    ("data:a\n\ndata: b\n\n", [Event("a"), Event("b")]),
    ("data:  two spaces\n\n", [Event(" two spaces")]),
    ("data: a\r\n\r\ndata: b\r\rdata: c\n\n", [Event("a"), Event("b"), Event("c")]),
    ("data: a\ndata: b\ndata\ndata:\n\n", [Event("a\nb\n\n")]),
    (": comment\n\n:\n\ndata: a\n: in between\n\n", [Event("a")]),
    ("event: delta\ndata: a\n\ndata: b\n\n", [Event("a", "delta"), Event("b")]),
    ("event: only a name\n\n", []),
    ("id: 1\nretry: 5\nfoo: bar\ndata: a\n\n", [Event("a")]),
    ("\ufeffdata: a\n\n", [Event("a")]),
    ("data: \ufeffa\n\n", [Event("\ufeffa")]),
    ("data: a\u2028b\u0085c\x0bd\n\n", [Event("a\u2028b\u0085c\x0bd")]),
    ("data: grüße 👋\n\n", [Event("grüße 👋")]),
    ("data: a\n", [Event("a", complete=False)]),
    ("data: a", [Event("a", complete=False)]),
    ("data: a\r", [Event("a", complete=False)]),
    ("data: a\n\nda", [Event("a")]),
    ("\n\n\n", []),
    ("", []),
]


@pytest.mark.parametrize(("text", "events"), CASES)
def test_events(text: str, events: list[Event]) -> None:
    """As the standard says; an event without its empty line is handed on, marked."""
    assert parsed(text.encode()) == events


@pytest.mark.parametrize(("text", "events"), CASES)
def test_every_single_cut_and_every_byte_by_itself(text: str, events: list[Event]) -> None:
    """Inside a character, between CR and LF, inside a field's name."""
    data = text.encode()
    for at in range(len(data) + 1):
        assert parsed(data[:at], data[at:]) == events
    assert parsed(*(data[at : at + 1] for at in range(len(data)))) == events


def test_bytes_that_are_no_utf8_are_replaced() -> None:
    """Half a character at the end, too."""
    assert parsed(b"data: a\xffb\n\n") == [Event("a\ufffdb")]
    assert parsed(b"data: \xc3") == [Event("\ufffd", complete=False)]


PIECES = st.sampled_from(["data", ":", " ", "\n", "\r", "\r\n", "event", "x", "é", "👋", "\u2028", "\ufeff", "\n\n"])


@given(st.lists(PIECES, max_size=30).map("".join), st.data())
def test_cuts_never_change_the_events(text: str, data: st.DataObject) -> None:
    """Any text, any cuts."""
    raw = text.encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6)))
    edges = [0, *cuts, len(raw)]
    assert parsed(*(raw[a:b] for a, b in pairwise(edges))) == parsed(raw)


def test_a_long_line_in_many_pieces_costs_its_length() -> None:
    """An event of a megabyte in single bytes comes out whole."""
    size = 200_000
    events = parsed(b"data: ", *([b"x"] * size), b"\n\n")
    assert [len(event.data) for event in events] == [size]
