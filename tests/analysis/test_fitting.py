"""Arguments of tools that stand in a file: what is told is what the tool's own check refuses."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from agentloom.analysis.analyze import analyze
from agentloom.analysis.context import Context
from agentloom.analysis.rules.fitting import misfits
from agentloom.errors import ValidationError
from agentloom.text import Source
from agentloom.tools.base import as_tool


class Colour(Enum):
    """Texts."""

    RED = "red"
    BLUE = "blue"


class Size(Enum):
    """Numbers."""

    S = 1
    L = 2


class Point(TypedDict):
    """Two numbers."""

    x: float
    y: float


class Tree(BaseModel):
    """Contains itself."""

    name: str
    below: list[Tree] = []


def texts(a: str = "") -> None: ...
def numbers(a: int = 0, b: float = 0, c: bool = False) -> None: ...
def lists(a: list[int] | None = None, b: dict[str, float] | None = None, c: str | None = None) -> None: ...
def choices(a: Literal["x", "y"] = "x", b: Colour = Colour.RED, c: Size = Size.S, d: Literal[1, "z"] = 1) -> None: ...
def models(a: Point | None = None, b: Tree | None = None, c: list[Point] | None = None) -> None: ...
def bounds(
    a: Annotated[int, {"minimum": 2, "maximum": 5}] = 2, b: Annotated[float, {"exclusiveMinimum": 0}] = 1
) -> None: ...
def files(
    a: Path = Path(), b: bytes = b"", c: int | str = 0, d: tuple[int, str] = (0, ""), e: set[int] | None = None
) -> None: ...
def anything(a: Any = None, b: object = None) -> None: ...


TOOLS = [as_tool(function) for function in (texts, numbers, lists, choices, models, bounds, files, anything)]
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 9),
    st.sampled_from([0.0, 1.0, 2.5, -1.5, 1e300]),
    st.sampled_from(["", "x", "y", "red", "z", "5", "2.5", "1e3", "nan", "true", "Yes", "off", "word", "state", "x.y"]),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["x", "y", "name", "below", "q"]), inner, max_size=3),
    ),
    max_leaves=6,
)


@given(st.sampled_from(TOOLS), st.sampled_from("abcde"), VALUES)
def test_what_is_told_is_refused(tool: Any, name: str, value: Any) -> None:
    """Against the check that a run makes; what it takes is never told."""
    schema = tool.signature.parameters
    if name not in schema["properties"]:
        return
    if list(misfits(value, schema["properties"][name], schema)):
        with pytest.raises(ValidationError):
            tool.signature.check({name: value})


def told(function: Callable[..., Any], args: str) -> list[str]:
    """What the check says about a step that calls a function as a tool, in YAML."""
    tool = as_tool(function)
    text = f"name: w\nstate: {{n: 1}}\nsteps:\n  - id: t\n    type: tool\n    tool_name: {tool.name}\n    tool_args: {args}\n"
    document = analyze(Source("untitled:x", text), Context(tools={tool.name: tool.info}), None, "workflow")
    return [d.message for d in document.diagnostics if d.code == "AL605"]


@pytest.mark.parametrize(
    ("function", "args", "says"),
    [
        (texts, "{a: 5}", "`a` of `texts` is a text, not a whole number"),
        (texts, "{a: null}", "`a` of `texts` is a text, not null"),
        (texts, "{a: {b: c}}", "`a` of `texts` is a text, not a mapping"),
        (numbers, "{a: many}", "`a` of `numbers` is a whole number, not a text"),
        (numbers, "{a: 1.5}", "`a` of `numbers` is a whole number, not a number"),
        (numbers, "{b: [1]}", "`b` of `numbers` is a number, not a list"),
        (numbers, "{c: maybe}", "`c` of `numbers` is true or false, not a text"),
        (lists, "{a: 1}", "`a` of `lists` is a list or null, not a whole number"),
        (choices, "{a: xx}", "`a` of `choices` is one of `x`, `y`, not `xx`"),
        (choices, "{b: 3}", "`b` of `choices` is one of `red`, `blue`, not a whole number"),
        (bounds, "{a: 7}", "`a` of `bounds` is a whole number from 2 to 5, not 7"),
        (bounds, "{b: 0}", "`b` of `bounds` is a number above 0, not 0"),
        (texts, "{b: 1}", "`texts` takes no `b`; it takes `a`"),
    ],
)
def test_words(function: Callable[..., Any], args: str, says: str) -> None:
    """What is asked for, and what stands there."""
    assert told(function, args) == [says]


@pytest.mark.parametrize(
    "args", ["{a: '{state.n}', b: state.n, c: {value: x, template: false}}", "{a: '5', b: 1, c: yes}"]
)
def test_what_may_become_anything_is_left_alone(args: str) -> None:
    """Templates, lone paths, escapes, and texts that the tool itself reads as numbers."""
    assert told(numbers, args) == []


def test_below_the_top() -> None:
    """Items of lists, fields of objects."""

    def nested(points: list[Point], names: dict[str, int]) -> None: ...

    assert told(nested, "{points: [{x: 1, y: 2}, {x: 1, y: far}], names: {a: [1]}}") == [
        "`points[1].y` of `nested` is a number, not a text",
        "`names.a` of `nested` is a whole number, not a list",
    ]
