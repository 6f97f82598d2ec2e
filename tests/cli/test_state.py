"""`--state key=value` and `--state-file`: what becomes a number, what stays a text, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentloom.cli.state import initial_state, parse_pair, read_state_file
from agentloom.errors import UsageError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("95", 95),
        ("9.5", 9.5),
        ("-1e3", -1000.0),
        ("true", True),
        ("null", None),
        ('["a", 1]', ["a", 1]),
        ('{"a": {"b": 1}}', {"a": {"b": 1}}),
        ('"95"', "95"),
        ("", ""),
        ("hello world", "hello world"),
        ("True", "True"),
        ("yes", "yes"),
        ("007", "007"),
        ("NaN", "NaN"),
        ("-Infinity", "-Infinity"),
        ("[1, NaN]", "[1, NaN]"),
        ("a=b=c", "a=b=c"),
        ("{state.x}", "{state.x}"),
        ("1" * 5_000, "1" * 5_000),
        ("[" * 100_000, "[" * 100_000),
        ("日本", "日本"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_values(text: str, value: Any) -> None:
    """What is JSON is read as JSON (`score=95` is a number that a router can compare); all else is a text."""
    key, read = parse_pair(f"k={text}")
    assert key == "k"
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize("pair", ["ticket", "", "=x", "  =x"])
def test_pairs_without_key_or_equals_are_refused(pair: str) -> None:
    """The message shows what was given and what is meant."""
    with pytest.raises(UsageError, match="key=value"):
        parse_pair(pair)


def test_later_wins_and_the_file_s_own_state_stays_untouched() -> None:
    """The workflow's `state:` is the ground; a dotted key reaches into a mapping without losing its neighbours."""
    own = {"user": {"name": "Ann", "id": 1}, "n": 1, "keep": True}
    state = initial_state(own, [], [("n", 2), ("n", 3), ("user.name", "Bob"), ("new.deep.key", "x")])
    assert state == {"user": {"name": "Bob", "id": 1}, "n": 3, "keep": True, "new": {"deep": {"key": "x"}}}
    assert own == {"user": {"name": "Ann", "id": 1}, "n": 1, "keep": True}


def test_a_whole_value_replaces() -> None:
    """Only dotted keys reach inside."""
    assert initial_state({"user": {"id": 1}}, [], [("user", {"name": "Bob"})]) == {"user": {"name": "Bob"}}


def test_a_dotted_key_through_a_text_is_refused() -> None:
    """The same rule as for `output:`."""
    with pytest.raises(UsageError, match="goes through `user`, which is no mapping"):
        initial_state({"user": "Ann"}, [], [("user.name", "Bob")])


def test_files_come_before_pairs(tmp_path: Path) -> None:
    """JSON and YAML files both; later files win over earlier ones, pairs over files."""
    (tmp_path / "a.json").write_text('{"a": 1, "b": 1, "c": 1}', encoding="utf-8")
    (tmp_path / "b.yaml").write_text("b: 2\nc: 2\nlist:\n  - x\n  - {y: 1.5}\n", encoding="utf-8")
    files = [str(tmp_path / "a.json"), str(tmp_path / "b.yaml")]
    assert initial_state({}, files, [("c", 3)]) == {"a": 1, "b": 2, "c": 3, "list": ["x", {"y": 1.5}]}


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("gone.yaml", None, "no such file"),
        ("a.json", b"{", "not JSON \\(line 1, column 2\\)"),
        ("a.json", b"[1]", "must hold a mapping"),
        ("a.json", b'{"a": NaN}', "not JSON"),
        ("a.json", b'{"a": {"b": 1, "b": 2}}', "the key `b` stands twice in one object; keep one of them"),
        ("a.yaml", b"- a\n", "must hold a mapping"),
        ("a.yaml", b"just text\n", "must hold a mapping"),
        ("a.yaml", b"a: 1\nb: [\n", "not YAML \\(line 2\\)"),
        ("a.yaml", b"\xff\xfea", "UTF-16"),
        ("a.yaml", b"a: \xe9\n", "0xE9 .* on line 1"),
    ],
)
def test_files_that_hold_no_state(tmp_path: Path, name: str, content: bytes | None, words: str) -> None:
    """Each has a sentence with the file's name in it."""
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=words) as raised:
        read_state_file(str(path))
    assert name in str(raised.value)


@pytest.mark.parametrize("content", ["", "# nothing\n", "---\n", "{}\n"])
def test_an_empty_file_is_an_empty_state(tmp_path: Path, content: str) -> None:
    """So a template with all its lines commented out still works."""
    path = tmp_path / "s.yaml"
    path.write_text(content, encoding="utf-8")
    assert read_state_file(str(path)) == {}
