"""Texts that arrive in pieces: when an attempt comes again, its text begins anew and is not shown twice as one."""

from __future__ import annotations

from agentloom.cli.turns import Turns


def shown(*pieces: tuple[str, int, int, str]) -> str:
    """Return what is shown of pieces: step, attempt, number and text."""
    written: list[str] = []
    turns = Turns(written.append, lambda step: f"--- {step}", "(again)")
    for piece in pieces:
        turns.text(*piece)
    turns.close()
    return "".join(written)


def test_pieces_follow_each_other() -> None:
    """One attempt: one text."""
    assert shown(("a", 1, 0, "Hello"), ("a", 1, 1, ", "), ("a", 1, 2, "you.")) == "--- a\nHello, you.\n"


def test_a_higher_attempt_begins_anew() -> None:
    """What came before stays, and is told apart."""
    assert shown(("a", 1, 0, "Hel"), ("a", 2, 0, "Hello")) == "--- a\nHel\n(again)\nHello\n"


def test_an_attempt_comes_again_after_its_worker_died() -> None:
    """It has the same number, and its pieces are numbered from 0 again."""
    assert shown(("a", 1, 0, "Hel"), ("a", 1, 1, "lo"), ("a", 1, 0, "Hel"), ("a", 1, 1, "lo.")) == (
        "--- a\nHello\n(again)\nHello.\n"
    )
