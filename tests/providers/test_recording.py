"""Responses files: hashes, and every way in which a file can be wrong."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from agentloom.errors import WorkflowError
from agentloom.providers.base import Message, Request, ToolCall
from agentloom.providers.hashes import request_hash
from agentloom.providers.recording import load_recording, read_recording

REQUEST = Request(
    "gpt-4o-mini", [Message("system", "be brief"), Message("user", "grüße")], temperature=0.5, step_id="a"
)
MESSAGES = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "grüße"}]


def digest(value: Any) -> str:
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def test_hash_v2_covers_the_whole_request() -> None:
    """RP-3: messages, model, temperature, max_tokens, extra; not the step's id."""
    whole = {"messages": MESSAGES, "model": "gpt-4o-mini", "temperature": 0.5, "max_tokens": None, "extra": {}}
    assert request_hash(REQUEST) == digest(whole)


def test_hash_v1_covers_the_messages_only() -> None:
    """RP-3."""
    assert request_hash(REQUEST, 1) == digest(MESSAGES)


def test_recordings_that_agentloom_0_4_made_are_found() -> None:
    """The keys that its `run --record` wrote for these two requests."""
    recording = read_recording(
        {
            "ebdba0392e81062b62c1b230dc1a0d541cd975e9e96b01d648ad9c78bf342528": {"content": "a"},
            "0be331a7453e9604c13f46d551d57e29db8fd2e356b428f807e8156304ea3c99": {"content": "b"},
        }
    )
    user = Message("user", "say grüße")
    for messages, content in (([user], "a"), ([Message("system", "be brief"), user], "b")):
        found = recording.key_of(Request("gpt-4o-mini", messages, temperature=0.5))
        assert found is not None
        assert recording.turns[found[0]][0].content == content


@pytest.mark.parametrize("version", [{"_version": 2}, {"_version": 1}, {}])
def test_the_files_version_decides_which_hash_is_looked_up(version: dict[str, int]) -> None:
    """A file without `_version` is of version 1."""
    number = version.get("_version", 1)
    recording = read_recording({**version, request_hash(REQUEST, number): {"content": "x"}})
    assert recording.version == number
    assert recording.key_of(REQUEST) == (request_hash(REQUEST, number), "request_hash")
    other = read_recording({**version, request_hash(REQUEST, 3 - number): {"content": "x"}})
    assert other.key_of(REQUEST) is None


def test_metadata_keys_are_no_entries(tmp_path: Path) -> None:
    """Keys with a leading underscore are skipped, whatever they hold; a byte order mark is, too."""
    path = tmp_path / "r.json"
    path.write_bytes(
        b"\xef\xbb\xbf" + json.dumps({"_version": 2, "_model": [1], "_note": "x", "a": {"content": ""}}).encode()
    )
    recording = load_recording(path)
    assert (recording.path, list(recording.turns)) == (path, ["a"])


def test_an_entry_with_tool_calls_or_embeddings_needs_no_content() -> None:
    """They are replies by themselves."""
    call = {"id": "c1", "name": "look_up", "arguments": {"q": "x"}}
    recording = read_recording({"a": {"content": None, "tool_calls": [call]}, "b": {"embeddings": [[1, 0.5], []]}})
    assert recording.turns["a"][0].tool_calls == (ToolCall(**call),)
    assert recording.turns["b"][0].embeddings == ((1.0, 0.5), ())


WRONG_CONTENT: list[tuple[Any, str]] = [
    ([], "the top must be an object of step ids or request hashes, not a list"),
    ("x", "the top must be an object of step ids or request hashes, not a text"),
    (None, "the top must be an object of step ids or request hashes, not null"),
    ({"_version": "2"}, '`_version` must be 1 or 2, not `"2"`'),
    ({"_version": True}, "`_version` must be 1 or 2, not `true`"),
    ({"_version": 0}, "`_version` must be 1 or 2, not `0`"),
    ({"_version": 3}, "`_version` 3 is newer than this agentloom reads; the newest it knows is 2"),
    ({"a": "billing"}, '`a` must be an object with `content`, not a text; write `{"content": …}`'),
    ({"a": 5}, "`a` must be an object with `content`, not a number"),
    ({"a": []}, "`a` is an empty list; give it one entry a turn"),
    ({"a": [{"content": "x"}, None]}, "`a[1]` must be an object with `content`, not null"),
    ({"a": {}}, "`a.content` is missing"),
    ({"a": {"content": None}}, "`a.content` must be a text, not null"),
    ({"a": {"content": ["x"]}}, "`a.content` must be a text, not a list"),
    ({"a": {"content": "x", "model": 4}}, "`a.model` must be a text, not a number"),
    ({"a": {"content": "x", "cost_usd": "0.1"}}, "`a.cost_usd` must be a number, not a text"),
    ({"a": {"content": "x", "cost_usd": True}}, "`a.cost_usd` must be a number, not true or false"),
    ({"a": {"content": "x", "latency_ms": -1}}, "`a.latency_ms` must be a number from 0 up, not `-1`"),
    ({"a": {"content": "x", "usage": 5}}, "`a.usage` must be an object of token counts, not a number"),
    (
        {"a": {"content": "x", "usage": {"prompt_tokens": 1.5}}},
        "`a.usage.prompt_tokens` must be a whole number, not `1.5`",
    ),
    (
        {"a": {"content": "x", "usage": {"prompt_tokens": {}}}},
        "`a.usage.prompt_tokens` must be a number, not an object",
    ),
    ({"a": {"content": "x", "tool_calls": {}}}, "`a.tool_calls` must be a list, not an object"),
    (
        {"a": {"content": "x", "tool_calls": [{"id": "1"}]}},
        "`a.tool_calls[0]` must be an object with `name` and `arguments`",
    ),
    ({"a": {"embeddings": [1, 2]}}, "`a.embeddings` must be a list of lists of numbers"),
    ({"a": {"content": "x", "request_hash": 1}}, "`a.request_hash` must be a text, not a number"),
    ({"a": {"content": "x", "chunks": ["x", 1]}}, "`a.chunks` must be a list of texts"),
    ({"a": {"content": "x", "asked": 1}}, "`a.asked` must be an object, not a number"),
    ({"_tools": []}, "`_tools` must be an object of step ids, not a list"),
    ({"_tools": {"a": {}}}, "`_tools.a` must be a list of calls, not an object"),
    ({"_tools": {"a": [{"result": 1}]}}, "`_tools.a[0]` must be an object with `name`, `arguments` and `result`"),
    (
        {"_tools": {"a": [{"name": "t", "error": "no"}]}},
        "`_tools.a[0].error` must be an object with `type` and `message`",
    ),
]


@pytest.mark.parametrize(("content", "fault"), WRONG_CONTENT)
def test_a_malformed_file_says_what_is_wrong_and_where(tmp_path: Path, content: Any, fault: str) -> None:
    """A load error with the path and the place in it."""
    path = tmp_path / "r.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(WorkflowError) as caught:
        load_recording(path)
    assert str(caught.value) == f"responses file `{path}`: {fault}"
    assert caught.value.exit_code == 1


WRONG_BYTES: list[tuple[bytes, str]] = [
    (b"", "`{path}:1:1` is not valid JSON: expecting value"),
    (b'{"a": {"content": "x"},\n}', "`{path}:2:1` is not valid JSON: "),
    (b'{"a": "\xff"}', "`{path}` is not UTF-8 text"),
    (b"[" * 200_000, "`{path}` is not usable JSON: it is nested too deeply, or a number is too long"),
    (b'{"a": ' + b"9" * 5000 + b"}", "`{path}` is not usable JSON: it is nested too deeply, or a number is too long"),
    (b'{"a": {"content": "x", "cost_usd": NaN}}', "`{path}`: `a.cost_usd` must be a number from 0 up, not `nan`"),
    (b'{"a": {"content": "x", "latency_ms": 1e308}}', "`{path}`: `a.latency_ms` must be below 1e15, not `1e+308`"),
    (
        b'{"a": {"content": "x", "usage": {"total_tokens": 1000000000000000}}}',
        "`{path}`: `a.usage.total_tokens` must be",
    ),
    (b'{"a": {"content": "x"}, "a": {"content": "y"}}', "`{path}`: the key `a` stands twice in one object; keep one"),
    (b'{"a": {"content": "x", "content": "y"}}', "`{path}`: the key `content` stands twice in one object; keep one"),
    (b'{"a": {"content": "x", "cost_usd": 1e999}}', "`{path}`: `a.cost_usd` must be a number from 0 up, not `inf`"),
]


@pytest.mark.parametrize(("content", "fault"), WRONG_BYTES)
def test_a_file_that_is_no_json_is_refused(tmp_path: Path, content: bytes, fault: str) -> None:
    """Truncated, binary, too deep: never a traceback."""
    path = tmp_path / "r.json"
    path.write_bytes(content)
    with pytest.raises(WorkflowError) as caught:
        load_recording(path)
    assert str(caught.value).startswith("responses file " + fault.format(path=path))


def test_a_missing_file_a_folder_and_an_impossible_path(tmp_path: Path) -> None:
    """Each is a load error of its own words."""
    with pytest.raises(WorkflowError, match=r"responses file `.*no\.json` does not exist"):
        load_recording(tmp_path / "no.json")
    with pytest.raises(WorkflowError, match=r"is a folder; name a JSON file"):
        load_recording(tmp_path)
    with pytest.raises(WorkflowError, match=r"can't be read"):
        load_recording(Path("a\0b"))
