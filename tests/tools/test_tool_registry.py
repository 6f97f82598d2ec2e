"""Tools: schemas from type hints, checked arguments, the registry."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import typing
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio
import jsonschema
import pytest
from pydantic import BaseModel, Field, create_model
from typing_extensions import TypedDict

from agentloom.errors import ToolNotFoundError, UsageError, ValidationError
from agentloom.tools.base import BaseTool, FunctionTool, as_tool, tool
from agentloom.tools.builtin import BUILTINS, register_builtins
from agentloom.tools.catalogue import BUILTIN_TOOLS
from agentloom.tools.info import ToolInfo
from agentloom.tools.registry import ToolRegistry, register_module

pytestmark = pytest.mark.anyio


# ── schemas ──


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: int = 0


class Person(BaseModel):
    name: str
    age: int | None = None


class Options(TypedDict):
    deep: bool


HINTS: list[tuple[Any, dict[str, Any]]] = [
    (str, {"type": "string"}),
    (int, {"type": "integer"}),
    (float, {"type": "number"}),
    (bool, {"type": "boolean"}),
    (list[int], {"type": "array", "items": {"type": "integer"}}),
    (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
    (str | None, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
    (list[int] | str, {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "string"}]}),
    (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
    (Any, {}),
    (Annotated[int, "how many"], {"type": "integer", "description": "how many"}),
    (
        Annotated[int, "how many", {"minimum": 1, "maximum": 9}],
        {"type": "integer", "description": "how many", "minimum": 1, "maximum": 9},
    ),
    (
        Annotated[int, Field(gt=0, description="how many")],
        {"type": "integer", "description": "how many", "exclusiveMinimum": 0},
    ),
    (
        tuple[int, str],
        {"type": "array", "minItems": 2, "maxItems": 2, "prefixItems": [{"type": "integer"}, {"type": "string"}]},
    ),
]


@pytest.mark.parametrize(("hint", "schema"), HINTS, ids=lambda value: str(value)[:40])
def test_type_hints_become_json_schema(hint: Any, schema: dict[str, Any]) -> None:
    """Not everything is a "string"."""

    def function(x: Any) -> None: ...

    function.__annotations__["x"] = hint
    parameters = tool("t")(function).info.parameters
    assert parameters == {
        "type": "object",
        "properties": {"x": schema},
        "required": ["x"],
        "additionalProperties": False,
    }
    jsonschema.Draft202012Validator.check_schema(parameters)


class Mixed(typing.TypedDict, total=False):
    deep: typing.Required[bool]
    inner: Annotated[list[Inner] | None, "more"]


class Inner(typing.TypedDict):
    word: str
    size: typing.NotRequired[int]


def test_typed_dictionaries_of_the_standard_library() -> None:
    """Also before Python 3.12, alone and inside other types; keys that need not be given, and those of another one."""

    def function(x: dict[str, Mixed], y: tuple[Inner, ...] = ()) -> None: ...

    found = tool("t")(function)
    mixed = found.info.parameters["properties"]["x"]["additionalProperties"]
    assert mixed["required"] == ["deep"]
    inner = mixed["properties"]["inner"]["anyOf"][0]["items"]
    assert inner["required"] == ["word"]
    assert inner["properties"]["size"] == {"type": "integer"}
    good = {"x": {"a": {"deep": True, "inner": [{"word": "w"}]}}}
    assert found.signature.check(good) == good
    with pytest.raises(ValidationError, match=r"^argument `x\.a\.inner\.0\.word` is missing$"):
        found.signature.check({"x": {"a": {"deep": True, "inner": [{"size": 1}]}}})


@pytest.mark.parametrize("hint", [Colour, Point, Person, Options, list[Person]])
def test_types_of_ones_own(hint: Any) -> None:
    """Models, dataclasses, typed dictionaries and enumerations keep their shape, in place: readers that know no references understand it."""

    def function(x: Any) -> None: ...

    function.__annotations__["x"] = hint
    parameters = tool("t")(function).info.parameters
    assert "$" not in str(parameters)
    validator = jsonschema.Draft202012Validator(parameters)
    good = {Colour: "red", Point: {"x": 1}, Person: {"name": "Ann"}, Options: {"deep": True}}.get(
        hint, [{"name": "Ann"}]
    )
    assert validator.is_valid({"x": good})
    assert not validator.is_valid({"x": 5})
    assert not validator.is_valid({"x": good, "y": 1})


class Tree(BaseModel):
    name: str
    below: list[Tree] = []


def test_types_that_contain_themselves_keep_their_definitions() -> None:
    """There is no other way to write them; and so does what would become large."""

    def function(x: Tree) -> None: ...

    parameters = tool("t")(function).info.parameters
    assert parameters["properties"]["x"] == {"$ref": "#/$defs/Tree"}
    assert jsonschema.Draft202012Validator(parameters).is_valid({"x": {"name": "a", "below": [{"name": "b"}]}})
    wide: Any = Person
    for level in range(12):
        wide = create_model(f"Level{level}", a=(wide, ...), b=(wide, ...))
    function.__annotations__["x"] = wide
    assert len(str(tool("t")(function).info.parameters)) < 10_000


def test_defaults_are_shown_and_optional() -> None:
    """A default that JSON can't hold is left out; names that pydantic uses itself are fine."""
    thing = object()

    @tool("t", "Does it.")
    def function(
        schema: int, model_config: str = "a", copy: list[str] | None = None, _x: Any = thing, json: float = 1
    ) -> None: ...

    info = function.info
    assert (info.name, info.description) == ("t", "Does it.")
    assert info.parameters == {
        "type": "object",
        "properties": {
            "schema": {"type": "integer"},
            "model_config": {"type": "string", "default": "a"},
            "copy": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}], "default": None},
            "_x": {},
            "json": {"type": "number", "default": 1},
        },
        "required": ["schema"],
        "additionalProperties": False,
    }


def test_name_and_description_come_from_the_function() -> None:
    """Where they aren't given."""

    @tool()
    def add(a: int, b: int) -> int:
        """Add two
        numbers.

        Quickly.
        """
        return a + b

    assert (add.name, add.description) == ("add", "Add two numbers.")
    assert add(1, b=2) == 3, "it is still the function"
    with pytest.raises(UsageError, match="with parentheses"):
        tool(add)  # type: ignore[arg-type]


async def test_whatever_can_be_called_can_be_a_tool() -> None:
    """Methods, partial functions, objects: their types count as well."""

    class Shop:
        async def price(self, item: str, count: int = 1) -> str:
            return f"{count} {item}"

        async def __call__(self, item: str) -> str:
            return f"the {item}"

    shop = Shop()
    for function, arguments, result in (
        (shop.price, {"item": "pen", "count": "2"}, "2 pen"),
        (partial(shop.price, count=3), {"item": "pen"}, "3 pen"),
        (shop, {"item": "pen"}, "the pen"),
    ):
        made = as_tool(function, "t", "")
        assert made.info.parameters["properties"]["item"] == {"type": "string"}
        assert await made.call(arguments) == result


def test_functions_that_cannot_be_tools() -> None:
    """Told when the schema is first asked for, with the tool's name."""

    def stars(*parts: str) -> None: ...

    def position(a: int, /) -> None: ...

    def odd(lock: threading.Lock) -> None: ...

    def unknown(a: Any) -> None: ...

    unknown.__annotations__["a"] = "Nowhere"
    for function, fault in (
        (stars, "tool `stars`: `parts` can't be given by name"),
        (position, "tool `position`: `a` can't be given by name"),
        (odd, "tool `odd`: its arguments can't be described in JSON Schema; use types that JSON can hold"),
        (unknown, "tool `unknown`: its type hints can't be read"),
    ):
        with pytest.raises(UsageError) as caught:
            _ = tool()(function).info
        assert str(caught.value).startswith(fault)
        assert "\n" not in str(caught.value)


# ── the built-in tools as data ──


@pytest.mark.parametrize("kind", BUILTINS)
def test_the_static_catalogue_says_what_the_functions_say(kind: type[BaseTool]) -> None:
    """Checks and editors read the catalogue, runs read the functions."""
    assert kind().info == BUILTIN_TOOLS[kind.name]
    jsonschema.Draft202012Validator.check_schema(BUILTIN_TOOLS[kind.name].parameters)
    jsonschema.Draft202012Validator.check_schema(BUILTIN_TOOLS[kind.name].returns)


def test_the_catalogue_is_complete(builtins: ToolRegistry) -> None:
    """Four tools, in one order."""
    assert list(BUILTIN_TOOLS) == list(builtins) == ["http_request", "shell_command", "file_read", "file_write"]


def test_the_catalogue_imports_nothing_heavy() -> None:
    """Analysis asks for it on every check; registering asks for no HTTP either."""
    code = (
        "import sys, agentloom.tools.catalogue\n"
        "first = {'httpx', 'anyio', 'pydantic', 'asyncio', 'ssl', 'inspect', 'logging'} & set(sys.modules) - before\n"
        "from agentloom.tools.builtin import register_builtins\n"
        "from agentloom.tools.registry import ToolRegistry\n"
        "register_builtins(ToolRegistry())\n"
        "second = {'httpx', 'pydantic'} & set(sys.modules)\n"
        "sys.exit(f'{first} {second}' if first or second else 0)"
    )
    code = "import sys, dataclasses; before = set(sys.modules)\n" + code
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# ── arguments ──


class Recorder(BaseTool):
    """A tool as a class, which keeps what it was called with."""

    name = "recorder"
    description = "Keeps its arguments."

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    def execute(
        self,
        path: str,
        count: Annotated[int, {"minimum": 1}] = 3,
        tags: list[str] | None = None,
        mode: Literal["fast", "slow"] = "fast",
        person: Person | None = None,
    ) -> int:
        self.calls.append({"path": path, "count": count, "tags": tags, "mode": mode, "person": person})
        return len(self.calls)


async def test_arguments_arrive_as_the_types_want_them() -> None:
    """Defaults are the function's own; numbers in text, as templates make them, are numbers."""
    recorder = Recorder()
    assert await recorder.call({"path": "a"}) == 1
    assert (
        await recorder.call({"path": "b", "count": "7", "tags": ["x"], "person": {"name": "Ann"}, "mode": "slow"}) == 2
    )
    assert recorder.calls == [
        {"path": "a", "count": 3, "tags": None, "mode": "fast", "person": None},
        {"path": "b", "count": 7, "tags": ["x"], "mode": "slow", "person": Person(name="Ann")},
    ]


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({}, "argument `path` is missing"),
        ({"path": None}, "argument `path` must be a text, not null"),
        ({"path": {"a": 1}}, "argument `path` must be a text, not an object"),
        ({"path": [1]}, "argument `path` must be a text, not a list"),
        ({"path": True}, "argument `path` must be a text, not true"),
        ({"path": "a", "count": 0}, "argument `count` must be a whole number from 1 up, not `0`"),
        ({"path": "a", "count": 1.5}, "argument `count` must be a whole number from 1 up, not `1.5`"),
        ({"path": "a", "count": "many"}, "argument `count` must be a whole number from 1 up, not a text"),
        ({"path": "a", "tags": "x"}, "argument `tags` must be a list or null, not a text"),
        ({"path": "a", "mode": "medium"}, "argument `mode` must be one of `fast`, `slow`, not `medium`"),
        ({"path": "a", "mode": "m" * 90}, "argument `mode` must be one of `fast`, `slow`, not a text"),
        ({"pth": "a", "path": "a"}, "unknown argument `pth`; did you mean `path`?"),
        (
            {"path": "a", "zzz": 1},
            "unknown argument `zzz`; known are `path`, `count`, `tags`, `mode`, `person`",
        ),
        (
            {"count": 0, "zzz": 1},
            "argument `path` is missing; argument `count` must be a whole number from 1 up, not `0`",
        ),
    ],
)
async def test_arguments_that_do_not_fit(arguments: dict[str, Any], fault: str) -> None:
    """In our words, before the tool runs; values that may be secret are not repeated."""
    recorder = Recorder()
    with pytest.raises(ValidationError) as caught:
        await recorder.call(arguments)
    assert str(caught.value).startswith(fault)
    assert recorder.calls == []


async def test_faults_inside_a_value_name_their_place() -> None:
    """Keys and indices of the user's own."""

    @tool()
    def send(headers: dict[str, str], people: list[Person]) -> None: ...

    with pytest.raises(ValidationError) as caught:
        await send.call({"headers": {"X-Count": 5}, "people": [{"name": "Ann"}, {"name": 7, "age": "old"}]})
    assert str(caught.value) == (
        "argument `headers.X-Count` must be a text, not `5`; argument `people.1.name` must be a text, not `7`; "
        "argument `people.1.age` must be a whole number, not a text"
    )


async def test_a_function_may_take_any_arguments() -> None:
    """`**rest` opens the schema."""

    @tool()
    def keep(a: int, **rest: Any) -> dict[str, Any]:
        return {"a": a, **rest}

    assert keep.info.parameters["additionalProperties"] is True
    assert await keep.call({"a": 1, "b": [2], "a0": 3}) == {"a": 1, "b": [2], "a0": 3}


# ── running ──


async def test_sync_functions_run_in_a_thread_and_async_ones_in_the_loop() -> None:
    """Both get their result back; a blocking one doesn't stop the others."""
    entered, leave = threading.Event(), threading.Event()
    here = threading.get_ident()

    @tool()
    def block() -> bool:
        entered.set()
        assert leave.wait(20)
        return threading.get_ident() != here

    @tool()
    async def free() -> bool:
        leave.set()
        return threading.get_ident() == here

    results: list[bool] = []

    async def run(which: FunctionTool) -> None:
        results.append(await which.call({}))

    async with anyio.create_task_group() as group:
        group.start_soon(run, block)
        await anyio.to_thread.run_sync(entered.wait)
        group.start_soon(run, free)
    assert results == [True, True]


async def test_many_sync_functions_run_at_once() -> None:
    """No pool of a few threads holds them back."""
    barrier = threading.Barrier(64)

    @tool()
    def meet() -> int:
        return barrier.wait(20)

    async with anyio.create_task_group() as group:
        for _ in range(64):
            group.start_soon(meet.call, {})


async def test_a_function_that_returns_a_coroutine_is_awaited() -> None:
    """A lambda around an async function, say."""

    async def answer() -> int:
        return 42

    assert await FunctionTool(lambda: answer(), "t", "").call({}) == 42


async def test_a_sync_function_can_be_given_up() -> None:
    """A step's timeout holds, although Python can't stop a thread."""
    entered, leave = threading.Event(), threading.Event()

    @tool()
    def block() -> None:
        entered.set()
        leave.wait(20)

    async with anyio.create_task_group() as group:
        group.start_soon(block.call, {})
        await anyio.to_thread.run_sync(entered.wait)
        group.cancel_scope.cancel()
    assert not leave.is_set()
    leave.set()


async def test_errors_of_a_tool_come_out_unchanged() -> None:
    """The step decides what they mean."""

    @tool()
    def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError, match="x"):
        await fail.call({})


# ── the registry ──


async def test_registering_getting_listing_calling() -> None:
    """The whole of it."""
    registry = ToolRegistry()

    def double(n: int) -> int:
        """Twice the number."""
        return 2 * n

    registry.register(double)
    registry.register(Recorder())
    assert [info.name for info in registry.list()] == list(registry) == ["double", "recorder"]
    assert registry.list()[0] == ToolInfo("double", "Twice the number.", registry.get("double").info.parameters)
    assert ("double" in registry, "triple" in registry, len(registry)) == (True, False, 2)
    assert await registry.call("double", {"n": 21}) == 42
    with pytest.raises(ValidationError, match="argument `n` is missing"):
        await registry.call("double")


def test_an_unknown_tool_is_named_with_its_neighbour(builtins: ToolRegistry) -> None:
    """Permanent: another attempt finds nothing else."""
    with pytest.raises(ToolNotFoundError) as caught:
        builtins.get("http_requst")
    assert str(caught.value) == "tool `http_requst` is not registered; did you mean `http_request`?"
    assert not caught.value.transient
    with pytest.raises(ToolNotFoundError, match=r"^tool `zzz` is not registered$"):
        builtins.get("zzz")


def test_replacing_warns_unless_it_is_meant(builtins: ToolRegistry, caplog: pytest.LogCaptureFixture) -> None:
    """The later one counts either way."""
    mine = tool("file_read", "Mine.")(lambda: "mine")
    builtins.register(mine, replace=True)
    assert caplog.messages == []
    builtins.register(mine)
    assert caplog.messages == ["Tool 'file_read' is registered already and is replaced"]
    assert builtins.get("file_read") is mine
    assert len(builtins) == 4


def test_a_tool_without_a_name_or_a_function() -> None:
    """Told when it is registered, or first asked."""

    class Nameless(BaseTool):
        def execute(self) -> None: ...

    class Idle(BaseTool):
        name = "idle"

    with pytest.raises(UsageError, match="a tool needs a name: Nameless has none"):
        ToolRegistry().register(Nameless())
    with pytest.raises(UsageError, match="tool `idle` has no `execute`"):
        _ = Idle().info


async def test_a_module_of_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What the settings' `tools` name: every tool at the module's top."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "loom_tools_a.py").write_text(
        "from agentloom.tools.base import tool\n@tool('shout', 'Shout.')\ndef shout(text: str) -> str:\n    return text.upper()\n",
        encoding="utf-8",
    )
    (tmp_path / "loom_tools_b.py").write_text("x = 1\n", encoding="utf-8")
    (tmp_path / "loom_tools_c.py").write_text("1 / 0\n", encoding="utf-8")
    registry = ToolRegistry()
    register_module(registry, "loom_tools_a")
    assert await registry.call("shout", {"text": "hi"}) == "HI"
    for name, fault in (
        ("loom_tools_b", "tools module `loom_tools_b` defines no tool; make one with `@tool(name, description)`"),
        ("loom_tools_c", "tools module `loom_tools_c` can't be imported: ZeroDivisionError: division by zero"),
        (
            "loom_tools_d",
            "tools module `loom_tools_d` can't be imported: ModuleNotFoundError: No module named 'loom_tools_d'",
        ),
    ):
        with pytest.raises(UsageError) as caught:
            register_module(registry, name)
        assert str(caught.value) == fault


def test_builtins_go_where_they_are_told(tmp_path: Path) -> None:
    """Registering over what is there says so."""
    registry = ToolRegistry()
    register_builtins(registry, folder=tmp_path)
    assert len(registry) == 4
    assert logging.getLogger("agentloom.tools.registry").level == logging.NOTSET
