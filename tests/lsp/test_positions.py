"""Positions and texts: the server's copy equals the client's, and places mean the same in every encoding."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentloom.text import LineTable, Span
from agentloom_lsp.convert import Encoding, Places, Position, code_points, units
from agentloom_lsp.documents import Change, Document, Documents, split_lines

ENCODINGS = list(Encoding)
ALPHABET = [
    "a",
    "{",
    " ",
    ":",
    "é",
    "✓",
    "😀",
    "\U0001f469\u200d\U0001f4bb",
    "\n",
    "\r\n",
    "\r",
    "\u2028",
    "\u0085",
    "\ufeff",
    "\t",
]
TEXTS = st.lists(st.sampled_from(ALPHABET), max_size=30).map("".join)


class ClientLine(NamedTuple):
    """A line as an editor knows it: where it starts and where its content ends, in the editor's own units."""

    start: int
    end: int


class Client:
    """An editor, written independently of the server: it holds its text as a list of units of the encoding."""

    def __init__(self, text: str, encoding: Encoding) -> None:
        self.width = {Encoding.UTF8: 1, Encoding.UTF16: 2, Encoding.UTF32: 4}[encoding]
        self.codec = {Encoding.UTF8: "utf-8", Encoding.UTF16: "utf-16-le", Encoding.UTF32: "utf-32-le"}[encoding]
        self.data = text.encode(self.codec)

    @property
    def text(self) -> str:
        return self.data.decode(self.codec)

    def lines(self) -> list[ClientLine]:
        found, start, at = [], 0, 0
        data, width = self.data, self.width
        cr, lf = "\r".encode(self.codec), "\n".encode(self.codec)
        while at < len(data):
            unit = data[at : at + width]
            if unit not in (cr, lf):
                at += width
                continue
            found.append(ClientLine(start, at))
            at += width
            if unit == cr and data[at : at + width] == lf:
                at += width
            start = at
        found.append(ClientLine(start, len(data)))
        return found

    def places(self) -> list[tuple[Position, int]]:
        """Every position at a character's border, with its byte offset; and for each line one far past its end."""
        found: list[tuple[Position, int]] = []
        for number, line in enumerate(self.lines()):
            at = line.start
            for char in self.data[line.start : line.end].decode(self.codec):
                found.append((Position(number, (at - line.start) // self.width), at))
                at += len(char.encode(self.codec))
            found.append((Position(number, (at - line.start) // self.width), at))
            found.append((Position(number, 10_000), line.end))
        found.append((Position(number + 1, 3), len(self.data)))
        return found

    def replace(self, start: int, end: int, text: str) -> None:
        self.data = self.data[:start] + text.encode(self.codec) + self.data[end:]


@given(st.sampled_from(ENCODINGS), TEXTS, st.lists(st.tuples(st.integers(0), st.integers(0), TEXTS), max_size=8))
@example(Encoding.UTF16, "a\rb\nc", [(2, 4, "")])
@example(Encoding.UTF8, "a\r", [(5, 5, "\n")])
def test_random_edits_keep_the_server_equal_to_the_client(
    encoding: Encoding, text: str, edits: list[tuple[int, int, str]]
) -> None:
    """After any run of incremental edits, at any places, in one message or several, both hold the same text."""
    client, document = Client(text, encoding), Document("untitled:x", "yaml", 0, text)
    for version, (one, other, new) in enumerate(edits):
        places = client.places()
        (start, at), (end, to) = sorted((places[one % len(places)], places[other % len(places)]), key=lambda p: p[1])
        client.replace(at, to, new)
        document.apply([Change(new, start, end)], version, encoding)
        assert document.source.text == client.text
        assert document.lines == split_lines(client.text)
    assert [len(line) for line in document.lines] == [
        *(b - a for a, b in zip(LineTable(client.text).starts, LineTable(client.text).starts[1:], strict=False)),
        len(client.text) - LineTable(client.text).starts[-1],
    ]


@given(st.sampled_from(ENCODINGS), TEXTS)
def test_positions_and_offsets_are_each_others_inverse(encoding: Encoding, text: str) -> None:
    """Each place of the client is the same place here, and comes back as it was said."""
    client, table = Client(text, encoding), LineTable(text)
    for position, at in client.places():
        offset = Places(table, encoding).offset(*position)
        assert text[:offset].encode(client.codec) == client.data[:at]
        if position.character < 10_000 and position.line < len(table):
            assert Places(table, encoding).position(offset) == position


@given(st.sampled_from(ENCODINGS), TEXTS, st.lists(st.integers(0, 60), max_size=10))
def test_the_order_of_questions_does_not_matter(encoding: Encoding, text: str, offsets: list[int]) -> None:
    """A converter that has answered before answers like a fresh one."""
    table = LineTable(text)
    used = Places(table, encoding)
    for offset in offsets:
        assert used.position(offset) == Places(table, encoding).position(offset)


@pytest.mark.parametrize(
    ("encoding", "text", "offset", "character"),
    [
        (Encoding.UTF8, "😀é {", 3, 7),
        (Encoding.UTF16, "😀é {", 3, 4),
        (Encoding.UTF32, "😀é {", 3, 3),
    ],
)
def test_characters_are_counted_in_the_units_agreed_on(
    encoding: Encoding, text: str, offset: int, character: int
) -> None:
    """An emoji before the place: four bytes, two code units or one code point."""
    assert Places(LineTable(text), encoding).position(offset) == (0, character)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_emoji_on_an_earlier_line_moves_nothing(encoding: Encoding) -> None:
    """Editor case: offset wrong when an earlier line holds a character outside the basic plane."""
    text = "# 😀\nname: w\n"
    assert Places(LineTable(text), encoding).position(text.index("w")) == (1, 6)
    assert Places(LineTable(text), encoding).offset(1, 6) == text.index("w")


@pytest.mark.parametrize(
    ("encoding", "count", "expected"),
    [
        (Encoding.UTF8, 1, 0),
        (Encoding.UTF8, 3, 0),
        (Encoding.UTF8, 4, 1),
        (Encoding.UTF8, 5, 1),
        (Encoding.UTF8, 6, 2),
        (Encoding.UTF16, 1, 0),
        (Encoding.UTF16, 2, 1),
        (Encoding.UTF16, 3, 2),
        (Encoding.UTF32, 1, 1),
    ],
)
def test_a_place_inside_a_character_is_its_start(encoding: Encoding, count: int, expected: int) -> None:
    """A client that points between two halves of a character points at the character."""
    assert code_points("😀é", count, encoding) == expected


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("text", ["\ud83d", "a\udc00b", "\udc00\ud83d"])
def test_lone_halves_of_characters_are_counted(encoding: Encoding, text: str) -> None:
    """JSON can carry half a character; counting it neither raises nor goes wrong."""
    size = {Encoding.UTF8: 3, Encoding.UTF16: 1, Encoding.UTF32: 1}[encoding]
    half = next(at for at, char in enumerate(text) if "\ud800" <= char <= "\udfff")
    assert units(text[: half + 1], encoding) == half + size
    assert code_points(text, half + size, encoding) == half + 1


def test_two_halves_typed_one_after_the_other_are_one_character() -> None:
    """An editor that sends an emoji in two edits means the emoji."""
    document = Document("untitled:x", "yaml", 0, "a: \n")
    document.apply([Change("\ud83d", Position(0, 3), Position(0, 3))], 1, Encoding.UTF16)
    document.apply([Change("\ude00", Position(0, 4), Position(0, 4))], 2, Encoding.UTF16)
    assert document.source.text == "a: 😀\n"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("a", ["a"]),
        ("a\n", ["a\n", ""]),
        ("a\r\nb\rc", ["a\r\n", "b\r", "c"]),
        ("\n\r", ["\n", "\r", ""]),
        ("a\u2028b\u0085c\x0bd\x0ce\n", ["a\u2028b\u0085c\x0bd\x0ce\n", ""]),
    ],
)
def test_lines_end_where_editors_end_them(text: str, lines: list[str]) -> None:
    """LF, CRLF and CR end lines; U+2028, U+0085, vertical tab and form feed don't."""
    assert split_lines(text) == lines


def test_a_range_the_wrong_way_round_is_turned() -> None:
    """A client that sends end before start still means that piece of text."""
    document = Document("untitled:x", "yaml", 0, "abc\ndef")
    document.apply([Change("X", Position(1, 1), Position(0, 1))], 1, Encoding.UTF16)
    assert document.source.text == "aXef"


def test_a_thousand_edits_in_one_message_stay_linear() -> None:
    """Replacing a word in 2,000 places comes as 2,000 changes; the text is put together once."""
    text = "".join(f"  - id: step{n}\n" for n in range(2_000))
    document = Document("untitled:x", "yaml", 0, text)
    edits = [Change("STEP", Position(n, 8), Position(n, 12)) for n in reversed(range(2_000))]
    document.apply(edits, 1, Encoding.UTF16)
    assert document.source.text == text.replace("step", "STEP")


def test_the_whole_text_can_be_sent() -> None:
    """A change without a range replaces everything."""
    document = Document("untitled:x", "yaml", 0, "abc")
    document.apply([Change("x\r\ny"), Change("z", Position(1, 0), Position(1, 1))], 1, Encoding.UTF8)
    assert (document.source.text, document.source.version) == ("x\r\nz", 1)


def test_an_opened_version_never_changes() -> None:
    """What a check was given stays as it was while the editor goes on."""
    documents = Documents()
    documents.open("file:///a.yaml", "yaml", 1, "a: 1\n")
    document = documents.get("file:///a.yaml")
    assert document is not None
    before = document.source
    document.apply([Change("2", Position(0, 3), Position(0, 4))], 2, Encoding.UTF16)
    assert (before.text, before.version) == ("a: 1\n", 1)
    assert (document.source.text, document.source.version) == ("a: 2\n", 2)


def test_spans_are_ranges_in_both_directions() -> None:
    """A span goes out as a range and comes back as itself."""
    places = Places(LineTable("a: 😀\nb: x\n"), Encoding.UTF16)
    assert places.range(Span(3, 4)) == {"start": {"line": 0, "character": 3}, "end": {"line": 0, "character": 5}}
    assert places.span(Position(0, 5), Position(0, 3)) == Span(3, 4)
