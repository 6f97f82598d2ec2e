"""Tools that misbehave: the caller gets an exception that it can handle, and goes on."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from agentloom.errors import ValidationError
from agentloom.tools import calling
from agentloom.tools.base import tool
from agentloom.tools.registry import ToolRegistry

pytestmark = pytest.mark.anyio


class Weird(BaseException):
    """No `Exception`."""


async def outcome(function: Callable[..., Any], **arguments: Any) -> Any:
    """Call a function as a tool."""
    registry = ToolRegistry()
    registry.register(tool("it")(function))
    return await registry.call("it", arguments)


def raising(error: BaseException) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """A function and a coroutine function that raise it."""

    def plain() -> None:
        raise error

    async def coroutine() -> None:
        raise error

    return plain, coroutine


@pytest.mark.parametrize("how", [0, 1])
@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        (ValueError("no"), ValueError, "no"),
        (Weird("odd\nwords"), RuntimeError, "it raised Weird: odd words"),
        (SystemExit(3), SystemExit, "3"),
        (BaseExceptionGroup("both", [Weird()]), RuntimeError, "it raised BaseExceptionGroup: both"),
    ],
)
async def test_whatever_is_raised_can_be_handled(
    how: int, error: BaseException, kind: type[BaseException], says: str
) -> None:
    """Only attempts to end the program are told as such, for the step to report."""
    with pytest.raises(kind, match=f"^{says}"):
        await outcome(raising(error)[how])


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (KeyboardInterrupt(), "it raised KeyboardInterrupt"),
        (StopIteration("x"), "it raised StopIteration: x"),
        (GeneratorExit(), "it raised GeneratorExit"),
        (asyncio.CancelledError(), "it was cancelled from inside"),
    ],
)
async def test_what_would_end_something_else_is_an_error(error: BaseException, says: str) -> None:
    """In a thread it is nobody's but the tool's own."""
    with pytest.raises(RuntimeError, match=f"^{says}$"):
        await outcome(raising(error)[0])


async def test_a_tool_that_hangs_is_given_up() -> None:
    """The thread is left behind, and the program doesn't wait for it."""
    begun, gate = threading.Event(), threading.Event()

    def hang() -> None:
        begun.set()
        gate.wait()

    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(outcome, hang)
            while not begun.is_set():
                await anyio.sleep(0)
            scope.cancel()
    assert scope.cancelled_caught
    (thread,) = [one for one in threading.enumerate() if one.name == "agentloom-tool"]
    assert thread.daemon
    gate.set()
    thread.join(30)


@pytest.mark.parametrize("waits", [False, True])
async def test_a_copy_of_the_process_ends_where_the_tool_does(waits: bool) -> None:
    """A tool that forks and returns in both: only one of them goes on with the run."""
    read, write = os.pipe()

    def fork() -> int:
        return os.fork()

    async def fork_and_wait() -> int:
        return os.fork()

    pid = await outcome(fork_and_wait if waits else fork)
    os.write(write, b"x")  # by each that comes here
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    os.close(write)
    assert os.read(read, 10) == b"x"
    os.close(read)


def shared() -> Any:
    """Few lists that stand for ten thousand million."""
    value: Any = ["x"]
    for _ in range(10):
        value = [value] * 10
    return value


def recursive() -> Any:
    """A list with itself in it, twice."""
    value: list[Any] = []
    value += [value, value]
    return value


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda: "x" * (64 * 1024 * 1024 + 1), "its result is larger than 64 MB"),
        (lambda: {"x" * (64 * 1024 * 1024 + 1): 1}, "its result is larger than 64 MB"),
        (lambda: ["x" * 1024 * 1024] * 65, "its result is larger than 64 MB"),
        (lambda: list(range(1_000_001)), "its result holds more than 1,000,000 values"),
        (shared, "its result holds more than 1,000,000 values"),
        (recursive, "its result holds more than 1,000,000 values"),
    ],
)
async def test_results_are_bounded(made: Callable[[], Any], says: str) -> None:
    """In size and in number, also where little memory stands for much; what to do instead is told."""
    with pytest.raises(ValidationError, match=f"^{says}; write it to a file and return its path$"):
        await outcome(made)


async def test_results_up_to_the_bounds_are_taken() -> None:
    """Ten megabytes, ten thousand levels (which are no plain data, as whoever keeps them says), odd objects."""
    assert len(await outcome(lambda: "x" * 10_000_000)) == 10_000_000
    deep: Any = []
    for _ in range(10_000):
        deep = [deep]
    assert isinstance(await outcome(lambda: deep), list)
    value = object()
    assert await outcome(lambda: value) is value
    assert (calling.MOST_CHARACTERS, calling.MOST_VALUES) == (64 * 1024 * 1024, 1_000_000)


async def test_arguments_of_ten_thousand_levels() -> None:
    """They are refused in words where they don't fit, and handed over where anything does."""
    deep: Any = []
    for _ in range(10_000):
        deep = [deep]

    def numbers(x: list[int] | None = None, y: list[list[int]] | None = None) -> None: ...

    def anything(x: object) -> bool:
        return isinstance(x, list)

    for name in ("x", "y"):
        with pytest.raises(ValidationError, match=rf"^argument `{name}` holds a value of another type than it must$"):
            await outcome(numbers, **{name: deep})
    assert await outcome(anything, x=deep)
    with pytest.raises(ValidationError, match=r"^argument `x` must be a list or null, not a whole number$"):
        await outcome(numbers, x=10**5000)


@pytest.mark.parametrize("name", ["", "a b", "a\nb", "a\0", "grün", "a" * 65, "-a", "a/b", "a`b", "\x1b[0m", 3])
def test_names_that_nobody_could_use(name: Any) -> None:
    """They would stand in files, prompts and messages: refused when they are registered, and shown harmlessly."""
    from agentloom.errors import UsageError

    made = tool("it")(lambda: None)
    made.name = name
    with pytest.raises(UsageError) as caught:
        ToolRegistry().register(made)
    text = str(caught.value)
    assert text.isprintable()
    assert text.isascii()
    assert len(text) < 200
