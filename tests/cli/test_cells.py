"""How lines look in a terminal: cells, tabs, invisible characters, and cutting long lines."""

from __future__ import annotations

import pytest

from agentloom.cli.cells import draw, visible, window

# (what, text, cells)
WIDTHS = [
    ("ascii", "abc", 3),
    ("empty", "", 0),
    ("east asian", "漢字", 4),
    ("full width", "Ａ", 2),
    ("half width kana", "ｱ", 1),
    ("emoji", "😀", 2),
    ("combining accent", "e\u0301", 1),
    ("two combining marks", "a\u0300\u0323b", 2),
    ("emoji with skin tone", "👍🏽", 2),
    ("skin tone alone", "🏽", 2),
    ("family joined", "👨‍👩‍👧", 2),
    ("joined with a text symbol", "👩‍❤️‍👨", 2),
    ("two families", "👨‍👩‍👧👨‍👩‍👧", 4),
    ("text symbol as emoji", "❤\ufe0f", 2),
    ("text symbol", "❤", 1),
    ("flag of two letters", "🇩🇪", 2),
    ("hangul from parts", "\u1112\u1161\u11ab", 2),
    ("devanagari with joiner", "क्\u200dष", 2),
    ("tab at the start", "\tx", 5),
    ("tab up to the next stop", "abc\tx", 5),
    ("tab after wide", "漢\tx", 5),
    ("escape", "\x1b[31m", 5),
    ("nul", "\x00", 1),
    ("right-to-left override", "\u202e", 8),
    ("line separator", "\u2028", 8),
    ("next line", "\x85", 8),
    ("zero width space", "\u200b", 8),
    ("lone surrogate", "\udcff", 8),
]


@pytest.mark.parametrize(("text", "cells"), [case[1:] for case in WIDTHS], ids=[case[0] for case in WIDTHS])
def test_width(text: str, cells: int) -> None:
    """Each kind of character takes the cells that terminals give it."""
    assert draw(text).width == cells


@pytest.mark.parametrize("text", [case[1] for case in WIDTHS], ids=[case[0] for case in WIDTHS])
def test_nothing_shown_can_steer_a_terminal(text: str) -> None:
    """No control character, no direction mark and no line break reaches the output, in any encoding."""
    for encoding in ("utf-8", "ascii", "latin-1", "cp1252"):
        for shown in ("".join(draw(text, encoding).pieces), visible(text, encoding)):
            shown.encode(encoding)
            assert not any(c < " " or "\x7f" <= c < "\xa0" or c in "\u2028\u2029\u202e\u200b" for c in shown)


def test_what_can_not_be_encoded_is_spelled_out_at_its_width() -> None:
    """On an ASCII terminal the marks still line up, because the spelled-out text is what is counted."""
    drawn = draw("é x", "ascii")
    assert "".join(drawn.pieces) == "<U+00E9> x"
    assert drawn.underline(2, 3) == (9, 10)


def test_underline_takes_at_least_one_cell() -> None:
    """Empty ranges, ranges past the end and ranges of combining characters are still marked."""
    drawn = draw("e\u0301x")
    assert drawn.underline(0, 0) == (0, 1)
    assert drawn.underline(1, 2) == (1, 2)
    assert drawn.underline(9, 12) == (2, 3)


@pytest.mark.parametrize("width", range(8, 60, 3))
@pytest.mark.parametrize("text", ["abcdefghij" * 12, "漢字かな😀" * 12, "\ta漢" * 30], ids=["ascii", "wide", "tabs"])
def test_window_shows_the_range_within_the_width(text: str, width: int) -> None:
    """Wherever the range is, the cut line fits and what the range covers is at the place that is returned."""
    drawn = draw(text)
    for start in range(0, len(text), 7):
        left, right = drawn.underline(start, start + 1)
        shown, new_left, new_right = window(drawn, left, right, width)
        assert draw(shown).width <= width
        assert new_right <= width
        assert new_right - new_left == right - left
        at = draw(shown).starts.index(new_left)
        assert shown[at] == (text[start] if text[start] != "\t" else " ")


def test_window_keeps_a_line_that_fits() -> None:
    """Nothing is cut, and nothing moves, where there is room."""
    assert window(draw("abc"), 1, 2, 3) == ("abc", 1, 2)


def test_window_marks_both_cuts_and_clips_a_range_that_is_too_long() -> None:
    """The marks end where the text does."""
    shown, left, right = window(draw("x" * 100), 40, 90, 20)
    assert shown == "…" + "x" * 18 + "…"
    assert (left, right) == (1, 19)
