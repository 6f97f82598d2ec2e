"""Calling a tool's function, whatever it does: functions that aren't coroutines run in threads of their own.

A tool may hang, end the program, raise what nobody catches or make a copy of the process; the run has to go on.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import copy_context
from typing import Any

from agentloom.errors import ValidationError

MOST_CHARACTERS = 64 * 1024 * 1024
MOST_VALUES = 1_000_000
"""The largest result that is taken: it becomes state, which is kept in memory and in checkpoints."""

DEEPEST = 200
"""How deep a result is counted; what nests deeper is refused as no plain data."""


async def call(function: Callable[..., Any], values: Mapping[str, Any]) -> Any:
    """Return what a function gives, coroutine function or not. Raises what it raises.

    ``SystemExit`` and ``KeyboardInterrupt`` of a coroutine stay what they are; anything else that is no ``Exception`` becomes a ``RuntimeError``.
    """
    process = os.getpid()
    try:
        if inspect.iscoroutinefunction(function):
            result = await function(**values)
        else:
            result = await _in_thread(function, values)
            if inspect.isawaitable(result):
                result = await result
    except (Exception, asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        raise _tamed(error) from error
    finally:
        if os.getpid() != process:  # a copy of this process, which the tool has made and forgotten to end
            os._exit(0)
    return result


def check_size(result: Any) -> None:
    """Raise ``ValidationError`` for a result that is too large to be kept."""
    characters = values = 0
    todo = [(result, 0)]
    while todo:
        value, depth = todo.pop()
        values += 1
        if isinstance(value, str | bytes | bytearray):
            characters += len(value)
        elif depth < DEEPEST and isinstance(value, Mapping):
            characters += sum(len(key) for key in value if isinstance(key, str))
            todo.extend((item, depth + 1) for item in value.values())
        elif depth < DEEPEST and isinstance(value, list | tuple):
            todo.extend((item, depth + 1) for item in value)
        if characters > MOST_CHARACTERS:
            raise ValidationError(
                f"its result is larger than {MOST_CHARACTERS // 1024 // 1024} MB; write it to a file and return its path"
            )
        if values + len(todo) > MOST_VALUES:
            raise ValidationError(
                f"its result holds more than {MOST_VALUES:,} values; write it to a file and return its path"
            )


async def _in_thread(function: Callable[..., Any], values: Mapping[str, Any]) -> Any:
    """Call a function in a thread of its own.

    A call that is given up leaves its thread behind, since Python can't stop one: a step's timeout must hold, and so must the end of the
    program, which doesn't wait for such threads.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    process = os.getpid()
    context = copy_context()

    def settle(result: Any, error: BaseException | None) -> None:
        if future.done():
            return  # given up
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    def work() -> None:
        result: Any = None
        error: BaseException | None = None
        try:
            result = context.run(function, **values)
        except SystemExit as raised:
            error = raised
        except BaseException as raised:
            error = _tamed(raised)
        if os.getpid() != process:
            os._exit(0)
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=work, name="agentloom-tool", daemon=True).start()
    return await future


def _tamed(error: BaseException) -> Exception:
    """Return an exception that can be handed on: not one that ends programs, loops or generators."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration | StopAsyncIteration):
        return error
    if isinstance(error, asyncio.CancelledError):
        return RuntimeError("it was cancelled from inside")
    text = " ".join(str(error).split())
    made = RuntimeError(f"it raised {type(error).__name__}" + (f": {text}" if text else ""))
    made.__cause__ = error
    return made
