"""Recordings: replies kept in a JSON file, found again by step id or by a hash of the request.

The file is one JSON object. `_version` says how requests are hashed (2; 1 when it is missing), other keys with a leading underscore
are metadata, and every further key is a step id or a request's hash. Its value is one entry or a list of turns. An entry has `content`
and may have `model`, `usage`, `cost_usd`, `latency_ms`, `finish_reason`, `tool_calls`, `provider`, `request_hash`, `asked`, `chunks`,
`time_to_first_token_ms`, `reasoning` and `embeddings`. `_tools` holds what tools gave, by step.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from agentloom.errors import WorkflowError
from agentloom.files import RepeatedKey, read_bytes, unique_keys
from agentloom.providers.base import EmbeddingRequest, Request, ToolCall, Usage
from agentloom.providers.hashes import NEWEST_VERSION, request_hash
from agentloom.records import record

_TOO_MUCH = 1e15
"""No number of a recording is as large: beyond it, fractions of a token, a cent or a millisecond get lost."""
_USAGE_KEYS = ("prompt_tokens", "completion_tokens", "total_tokens", "reasoning_tokens")


@record()
class Entry:
    """One recorded reply. ``latency_ms`` is how long the real call took, ``cost_usd`` what it cost.

    ``chunks`` are the pieces in which a streamed reply came. ``downloads`` are the attachments that were downloaded for it: by a hash of
    their address, their `media_type` and `sha256`. ``asked`` tells what the request was, as far as it is needed to say what
    has changed since.
    """

    content: str
    model: str | None = None
    provider: str | None = None
    usage: Usage = field(default_factory=Usage)
    cost_usd: float = 0.0
    latency_ms: float = 0.0
    finish_reason: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    request_hash: str | None = None
    embeddings: tuple[tuple[float, ...], ...] | None = None
    chunks: tuple[str, ...] = ()
    time_to_first_token_ms: float | None = None
    reasoning: str | None = None
    asked: Mapping[str, Any] = field(default_factory=dict)
    downloads: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@record()
class ToolEntry:
    """What one call of a tool gave: its result, or the error that it raised (`type`, `message`)."""

    name: str
    arguments: Any
    result: Any = None
    error: Mapping[str, str] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the call as a recording holds it."""
        outcome = {"result": self.result} if self.error is None else {"error": dict(self.error)}
        return {"name": self.name, "arguments": self.arguments, **outcome}


@record()
class Recording:
    """The replies of one file: turns by step id or by request hash. ``version`` says which hash its keys are.

    ``tools`` holds the calls of tools by the path of their step; None where tools weren't recorded.
    """

    path: Path | None = None
    version: int = NEWEST_VERSION
    turns: Mapping[str, tuple[Entry, ...]] = field(default_factory=dict)
    tools: Mapping[str, tuple[ToolEntry, ...]] | None = None

    @property
    def downloads(self) -> dict[str, Mapping[str, str]]:
        """The attachments that were downloaded for any of the replies."""
        return {
            key: about for turns in self.turns.values() for entry in turns for key, about in entry.downloads.items()
        }

    def key_of(self, request: Request | EmbeddingRequest) -> tuple[str, str] | None:
        """Return the key that answers a request, and how it was found (`step_id` or `request_hash`); None on a miss.

        A step of a subworkflow is found by its whole path (`sub.s1`) or by its own id (`s1`).
        """
        step = request.step_id
        for name in (step, step.rpartition(".")[2]):
            if name and name in self.turns:
                return name, "step_id"
        if self.turns:
            key = request_hash(request, self.version)
            if key in self.turns:
                return key, "request_hash"
        return None


def load_recording(path: Path) -> Recording:
    """Read a responses file. Raises ``WorkflowError`` that names the file and what is wrong in it."""
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except FileNotFoundError:
        raise WorkflowError(f"responses file `{path}` does not exist") from None
    except IsADirectoryError:
        raise WorkflowError(f"responses file `{path}` is a folder; name a JSON file") from None
    except UnicodeDecodeError:
        raise WorkflowError(f"responses file `{path}` is not UTF-8 text") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise WorkflowError(f"responses file `{path}` can't be read: {reason}") from None
    try:
        data = json.loads(text, object_pairs_hook=unique_keys)
    except json.JSONDecodeError as error:
        raise WorkflowError(
            f"responses file `{path}:{error.lineno}:{error.colno}` is not valid JSON: {_plain(error)}"
        ) from None
    except RepeatedKey as error:
        raise WorkflowError(f"responses file `{path}`: {error}") from None
    except (RecursionError, ValueError):
        raise WorkflowError(
            f"responses file `{path}` is not usable JSON: it is nested too deeply, or a number is too long"
        ) from None
    try:
        return read_recording(data, path)
    except _Malformed as error:
        raise WorkflowError(f"responses file `{path}`: {error}") from None


def read_recording(data: Any, path: Path | None = None) -> Recording:
    """Return the recording that parsed JSON holds. Raises ``WorkflowError`` that says what is wrong."""
    if not isinstance(data, dict):
        raise _Malformed(f"the top must be an object of step ids or request hashes, not {_kind(data)}")
    version = data.get("_version", 1)
    if type(version) is not int or version < 1:
        raise _Malformed(f"`_version` must be 1 or 2, not `{_short(version)}`")
    if version > NEWEST_VERSION:
        raise _Malformed(
            f"`_version` {version} is newer than this agentloom reads; the newest it knows is {NEWEST_VERSION}"
        )
    turns: dict[str, tuple[Entry, ...]] = {}
    for key, value in data.items():
        if key.startswith("_"):
            continue
        if isinstance(value, list):
            if not value:
                raise _Malformed(f"`{key}` is an empty list; give it one entry a turn")
            turns[key] = tuple(_entry(f"{key}[{index}]", item) for index, item in enumerate(value))
        else:
            turns[key] = (_entry(key, value),)
    return Recording(path, version, turns, _tools(data["_tools"]) if "_tools" in data else None)


class _Malformed(WorkflowError):
    """What is wrong inside a responses file, without the file's name."""


def _entry(where: str, value: Any) -> Entry:
    if not isinstance(value, dict):
        cure = '; write `{"content": …}`' if isinstance(value, str) else ""
        raise _Malformed(f"`{where}` must be an object with `content`, not {_kind(value)}{cure}")
    embeddings = _embeddings(where, value.get("embeddings"))
    calls = _tool_calls(where, value.get("tool_calls"))
    content = value.get("content")
    if content is None and (calls or embeddings is not None):
        content = ""
    if not isinstance(content, str):
        found = f"must be a text, not {_kind(content)}" if "content" in value else "is missing"
        raise _Malformed(f"`{where}.content` {found}")
    return Entry(
        content=content,
        model=_text(where, value, "model"),
        provider=_text(where, value, "provider"),
        usage=_usage(where, value.get("usage")),
        cost_usd=_number(where, value, "cost_usd"),
        latency_ms=_number(where, value, "latency_ms"),
        finish_reason=_text(where, value, "finish_reason"),
        tool_calls=calls,
        request_hash=_text(where, value, "request_hash"),
        embeddings=embeddings,
        chunks=_chunks(where, value.get("chunks")),
        time_to_first_token_ms=None
        if value.get("time_to_first_token_ms") is None
        else _number(where, value, "time_to_first_token_ms"),
        reasoning=_text(where, value, "reasoning"),
        asked=_object(where, value, "asked"),
        downloads=_downloads(where, value),
    )


def _chunks(where: str, value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise _Malformed(f"`{where}.chunks` must be a list of texts")


def _object(where: str, value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = value.get(key)
    if found is None:
        return {}
    if isinstance(found, dict):
        return found
    raise _Malformed(f"`{where}.{key}` must be an object, not {_kind(found)}")


def _downloads(where: str, value: Mapping[str, Any]) -> Mapping[str, Mapping[str, str]]:
    found = _object(where, value, "downloads")
    for key, about in found.items():
        if not (isinstance(about, dict) and all(isinstance(about.get(name), str) for name in ("media_type", "sha256"))):
            raise _Malformed(f"`{where}.downloads.{key}` must be an object with `media_type` and `sha256`")
    return found


def _tools(value: Any) -> dict[str, tuple[ToolEntry, ...]]:
    if not isinstance(value, dict):
        raise _Malformed(f"`_tools` must be an object of step ids, not {_kind(value)}")
    found: dict[str, tuple[ToolEntry, ...]] = {}
    for step, calls in value.items():
        if not isinstance(calls, list):
            raise _Malformed(f"`_tools.{step}` must be a list of calls, not {_kind(calls)}")
        found[step] = tuple(_tool_entry(f"_tools.{step}[{index}]", call) for index, call in enumerate(calls))
    return found


def _tool_entry(where: str, value: Any) -> ToolEntry:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        raise _Malformed(f"`{where}` must be an object with `name`, `arguments` and `result`")
    error = value.get("error")
    if error is not None and not (
        isinstance(error, dict) and all(isinstance(error.get(key), str) for key in ("type", "message"))
    ):
        raise _Malformed(f"`{where}.error` must be an object with `type` and `message`")
    return ToolEntry(value["name"], value.get("arguments") or {}, value.get("result"), error)


def _text(where: str, value: Mapping[str, Any], key: str) -> str | None:
    found = value.get(key)
    if found is None or isinstance(found, str):
        return found
    raise _Malformed(f"`{where}.{key}` must be a text, not {_kind(found)}")


def _number(where: str, value: Mapping[str, Any], key: str) -> float:
    found = value.get(key)
    if found is None:
        return 0.0
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise _Malformed(f"`{where}.{key}` must be a number, not {_kind(found)}")
    if not 0 <= found < float("inf"):
        raise _Malformed(f"`{where}.{key}` must be a number from 0 up, not `{_cut(str(found))}`")
    if found >= _TOO_MUCH:
        raise _Malformed(f"`{where}.{key}` must be below 1e15, not `{_cut(str(found))}`")
    return float(found)


def _usage(where: str, value: Any) -> Usage:
    if value is None:
        return Usage()
    if not isinstance(value, dict):
        raise _Malformed(f"`{where}.usage` must be an object of token counts, not {_kind(value)}")
    counts: dict[str, int] = {}
    for key in _USAGE_KEYS:
        number = _number(f"{where}.usage", value, key)
        if number != int(number):
            raise _Malformed(f"`{where}.usage.{key}` must be a whole number, not `{number}`")
        counts[key] = int(number)
    if value.get("total_tokens") is None:
        counts["total_tokens"] = counts["prompt_tokens"] + counts["completion_tokens"]
    return Usage(**counts)


def _tool_calls(where: str, value: Any) -> tuple[ToolCall, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise _Malformed(f"`{where}.tool_calls` must be a list, not {_kind(value)}")
    return tuple(_tool_call(f"{where}.tool_calls[{index}]", call, index) for index, call in enumerate(value))


def _tool_call(where: str, call: Any, index: int) -> ToolCall:
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        raise _Malformed(f"`{where}` must be an object with `name` and `arguments`")
    arguments = call.get("arguments")
    if isinstance(arguments, str):  # as some wire formats have it
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            raise _Malformed(f"`{where}.arguments` is a text that isn't JSON") from None
    if not isinstance(arguments or {}, dict):
        raise _Malformed(f"`{where}.arguments` must be an object, not {_kind(arguments)}")
    return ToolCall(
        _text(where, call, "id") or f"call_{index}", call["name"], arguments or {}, _text(where, call, "fault") or ""
    )


def _embeddings(where: str, value: Any) -> tuple[tuple[float, ...], ...] | None:
    if value is None:
        return None
    if isinstance(value, list) and all(
        isinstance(row, list) and all(_is_number(item) for item in row) for row in value
    ):
        return tuple(tuple(float(item) for item in row) for row in value)
    raise _Malformed(f"`{where}.embeddings` must be a list of lists of numbers")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a text"
    return "a list" if isinstance(value, Sequence) else "an object"


def _short(value: Any) -> str:
    return _cut(json.dumps(value, default=str))


def _cut(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"


def _plain(error: json.JSONDecodeError) -> str:
    return error.msg[:1].lower() + error.msg[1:]
