"""State paths: their grammar with places (ST-2), and look-up that never leaves plain data (TP-4)."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from types import MappingProxyType
from typing import Any

import pytest

from agentloom.language.paths import (
    MISSING,
    PathFault,
    StatePath,
    format_path,
    get,
    is_name,
    parse_output_path,
    parse_path,
)

GOOD = [
    ("a", ("a",)),
    ("a.b[0].c", ("a", "b", 0, "c")),
    ("a[-1]", ("a", -1)),
    ("a[name]", ("a", "name")),
    ("first-name.x_y", ("first-name", "x_y")),
    ("a[0][1].b", ("a", 0, 1, "b")),
    ("naïve.日本", ("naïve", "日本")),
    ("2024", ("2024",)),
    ("_approval.gate", ("_approval", "gate")),
]

BAD = [
    ("", (0, 0), "empty"),
    (".a", (0, 1), "can't begin"),
    ("a.", (1, 2), "must follow the dot"),
    ("a..b", (1, 2), "must follow the dot"),
    ("a[", (1, 2), "never closed"),
    ("a[]", (1, 3), "is empty"),
    ("a[0]b", (4, 5), "write a dot"),
    ("a b", (1, 2), "can't stand here"),
    ("a.b c", (3, 4), "can't stand in a state path"),
    ("a.{b}", (2, 3), "can't stand in a state path"),
    ("a:b", (1, 2), "can't stand in a state path"),
    ("a.__class__", (2, 11), "reserved"),
    ("__class__", (0, 9), "reserved"),
]


@pytest.mark.parametrize(("text", "parts"), GOOD)
def test_path_parts_and_places(text: str, parts: tuple[str | int, ...]) -> None:
    path = parse_path(text)
    assert isinstance(path, StatePath)
    assert path.parts == parts
    assert [text[span.start : span.end] for span in path.spans] == [str(part) for part in parts]
    again = parse_path(format_path(parts))
    assert isinstance(again, StatePath)
    assert again.parts == parts


@pytest.mark.parametrize(("text", "span", "words"), BAD)
def test_path_faults(text: str, span: tuple[int, int], words: str) -> None:
    fault = parse_path(text)
    assert isinstance(fault, PathFault)
    assert fault.span == span
    assert words in fault.message


def test_a_path_can_start_further_on() -> None:
    path = parse_path("state.a.b", 6)
    assert path == StatePath(("a", "b"), ((6, 7), (8, 9)))  # type: ignore[arg-type]  # spans are tuples


@pytest.mark.parametrize("text", ["report.summary", "items[0].name", "items[-1]", "a-b"])
def test_output_path(text: str) -> None:
    assert isinstance(parse_output_path(text), StatePath)


def test_output_path_takes_numbers_in_brackets_only() -> None:
    fault = parse_output_path("user[name]")
    assert fault == PathFault((4, 10), "an output path takes numbers in brackets only; write `.name`")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "readable"),
    [
        ("a", True),
        ("a-b", True),
        ("a b", False),
        ("a.b", False),
        ("", False),
        ("__x", False),
        ("{x}", False),
        ("é", True),
    ],
)
def test_names_that_templates_read_back(name: str, readable: bool) -> None:
    assert is_name(name) is readable


class Sly:
    """An object whose internals no path may reach."""

    secret = "leaked"

    def __getitem__(self, key: Any) -> str:
        return "leaked"


LOOKUPS: list[tuple[Any, tuple[str | int, ...], Any]] = [
    ({"a": {"b": [1, 2]}}, ("a", "b", 1), 2),
    ({"a": [1, 2]}, ("a", -2), 1),
    ({"a": [1, 2]}, ("a", -3), MISSING),
    ({"a": [1, 2]}, ("a", 2), MISSING),
    ({"a": None}, ("a",), None),
    ({"a": None}, ("a", "b"), MISSING),
    ({"a": {0: "zero", "0": "text"}}, ("a", 0), MISSING),
    ({"a": "text"}, ("a", 0), MISSING),
    ({"a": "text"}, ("a", "upper"), MISSING),
    ({"a": [1]}, ("a", "0"), MISSING),
    ({"é": 1}, ("e\u0301",), MISSING),
    ({"__class__": 1}, ("__class__",), MISSING),
    ({"a": Sly()}, ("a", "secret"), MISSING),
    ({"a": Sly()}, ("a", 0), MISSING),
    (MappingProxyType({"a": OrderedDict(b=(7,))}), ("a", "b", 0), 7),
    (defaultdict(list), ("a",), MISSING),
    ({}, (), {}),
]


@pytest.mark.parametrize(("value", "parts", "expected"), LOOKUPS)
def test_lookup(value: Any, parts: tuple[str | int, ...], expected: Any) -> None:
    found = get(value, parts)
    assert found is expected or (found == expected and found is not MISSING)


def test_lookup_leaves_a_defaultdict_alone() -> None:
    state: defaultdict[str, list[int]] = defaultdict(list)
    assert get(state, ("a", 0)) is MISSING
    assert state == {}
