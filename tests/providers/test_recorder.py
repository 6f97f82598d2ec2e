"""Recording: what is written of each call, when, and what becomes of the rest of the file."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentloom.errors import ProviderError, UsageError, WorkflowError
from agentloom.providers.base import (
    BaseProvider,
    EmbeddingRequest,
    EmbeddingResponse,
    Message,
    OnDelta,
    Request,
    Response,
    ToolCall,
    Usage,
)
from agentloom.providers.gateway import ProviderGateway
from agentloom.providers.hashes import request_hash
from agentloom.providers.mock import MockProvider
from agentloom.providers.recorder import Recorder, RecordingProvider
from agentloom.providers.recording import load_recording
from agentloom.providers.recording_file import RecordingFile
from agentloom.providers.surroundings import in_attempt

pytestmark = pytest.mark.anyio

KEY = "sk-0123456789"


class Model(BaseProvider):
    """A provider that gives the replies of a list, one after the other; a number is a refusal with that status."""

    name = "openai"
    embeds = True

    def __init__(self, *replies: Any) -> None:
        self.replies = list(replies)
        self.asked: list[Any] = []

    async def complete(self, request: Request, on_delta: OnDelta | None = None) -> Response:
        """Give the next one; streamed in pieces of three characters."""
        self.asked.append(request)
        reply = self.replies.pop(0)
        if isinstance(reply, int):
            raise ProviderError(f"no: {reply}", status_code=reply)
        if isinstance(reply, Response):
            return reply
        if on_delta is not None:
            for at in range(0, len(reply), 3):
                await on_delta(reply[at : at + 3])
        first = 1.5 if on_delta is not None else None
        return Response(reply, "gpt-4o-mini-2024", self.name, Usage(3, 4, 7), 0.1 + 0.2, "stop", 12.0, first)

    async def embed(self, request: EmbeddingRequest) -> EmbeddingResponse:
        """Give a vector a text."""
        return EmbeddingResponse([[0.1, 1 / 3]] * len(request.inputs), "m-1", self.name, Usage(5, 0, 5), 0.25, 3.0)


def ask(step: str = "a", text: str = "hello", **more: Any) -> Request:
    return Request("gpt-4o-mini", [Message("user", text)], step_id=step, **more)


def recorder_of(path: Path, tools: bool = False) -> Recorder:
    file = RecordingFile(path)
    file.open(tools)
    return Recorder(file, tools=tools, hidden=(KEY,))


def held(path: Path) -> dict[str, Any]:
    return json.loads(path.read_bytes())


async def show(text: str) -> None:
    """Take a piece of a streamed reply."""


async def test_a_reply_comes_back_as_it_was(tmp_path: Path) -> None:
    """RP-2: text, model, usage, cost, finish reason, tool calls, reasoning and pieces; and it is there at once."""
    path = tmp_path / "r.json"
    call = ToolCall("c1", "look_up", {"q": "grüße"}, fault="bad JSON")
    whole = Response(
        "Thinking…", "gpt", "openai", Usage(9, 8, 17, 2), 1e-7, "tool_calls", 5.0, None, (call,), "because"
    )
    provider = RecordingProvider(Model(whole, "Dear Ann 👋\ud83d"), recorder_of(path))
    await provider.complete(ask("a"))
    assert list(held(path)) == ["_version", "a"]
    pieces: list[str] = []

    async def keep(text: str) -> None:
        pieces.append(text)

    await provider.complete(ask("b", stream=True), keep)
    mock = MockProvider(load_recording(path), strict=True, latency_model="replay")
    again = await mock.complete(ask("a"))
    assert (again.content, again.model, again.usage, again.cost_usd, again.finish_reason, again.reasoning) == (
        "Thinking…",
        "gpt",
        Usage(9, 8, 17, 2),
        1e-7,
        "tool_calls",
        "because",
    )
    assert again.tool_calls == (call,)
    seen: list[str] = []

    async def see(text: str) -> None:
        seen.append(text)

    streamed = await mock.complete(ask("b", stream=True), see)
    assert seen == pieces == ["Dea", "r A", "nn ", "👋\ud83d"]
    assert streamed.cost_usd == 0.1 + 0.2
    assert streamed.time_to_first_token_ms == 1.5
    assert (await mock.complete(ask("b"))).content == "Dear Ann 👋\ud83d"


async def test_vectors_come_back_to_the_last_bit(tmp_path: Path) -> None:
    """EM: and are refused to other texts."""
    path = tmp_path / "r.json"
    provider = RecordingProvider(Model(), recorder_of(path))
    request = EmbeddingRequest("m", ["x", "y"], step_id="e")
    first = await provider.embed(request)
    mock = MockProvider(load_recording(path), strict=True)
    again = await mock.embed(request)
    assert [list(vector) for vector in again.vectors] == [list(vector) for vector in first.vectors]
    assert (again.usage, again.cost_usd, again.model) == (Usage(5, 0, 5), 0.25, "m-1")
    mock = MockProvider(load_recording(path), strict=True)
    with pytest.raises(ProviderError, match="its number of texts is `1`, it was `2`"):
        await mock.embed(EmbeddingRequest("m", ["x"], step_id="e"))


async def test_turns_of_a_step_are_a_list_and_failures_are_none(tmp_path: Path) -> None:
    """Turns in order; a refused call leaves nothing."""
    path = tmp_path / "r.json"
    provider = RecordingProvider(Model("1", 500, "2"), recorder_of(path))
    await provider.complete(ask(text="one"))
    with pytest.raises(ProviderError):
        await provider.complete(ask(text="two"))
    await provider.complete(ask(text="two"))
    assert [entry["content"] for entry in held(path)["a"]] == ["1", "2"]


async def test_another_attempt_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    """What a failed attempt asked isn't asked again in a replay."""
    path = tmp_path / "r.json"
    provider = RecordingProvider(Model("1", "2", "3", "4"), recorder_of(path))
    with in_attempt("a", 1):
        await provider.complete(ask(text="one"))
        await provider.complete(ask(text="two"))
    with in_attempt("a", 2):
        await provider.complete(ask(text="one"))
        await provider.complete(ask(text="three"))
    assert [entry["content"] for entry in held(path)["a"]] == ["3", "4"]


async def test_the_hash_is_of_what_the_step_asked_whatever_the_provider_calls_it(tmp_path: Path) -> None:
    """An alias is the provider's business: a replay asks for the step's own name of the model."""
    path = tmp_path / "r.json"
    model = Model("x")
    gateway = ProviderGateway()
    gateway.register(model, model_aliases={"gpt-4o-mini": "azure-deployment-7"})
    gateway.wrap(lambda provider: RecordingProvider(provider, recorder_of(path)))
    await gateway.complete(ask())
    assert model.asked[0].model == "azure-deployment-7"
    assert held(path)["a"][0]["request_hash"] == request_hash(ask())
    assert (await MockProvider(load_recording(path), strict=True).complete(ask())).content == "x"


async def test_keys_are_never_written(tmp_path: Path) -> None:
    """A model or a tool that repeats a provider's key doesn't get it into the recording."""
    path = tmp_path / "r.json"
    recorder = recorder_of(path, tools=True)
    await RecordingProvider(Model(f"your key is {KEY}!"), recorder).complete(ask(stream=True), show)
    await recorder.keep_tool("t", {"name": "env", "arguments": {}, "result": {"key": [KEY]}})
    assert KEY not in path.read_text()
    assert held(path)["a"][0]["content"] == "your key is <REDACTED:key>!"


HAND_MADE = """\
{ "_version": 2,
\t"_note": "by hand",

  "a": {"content": "old", "cost_usd": 0.10},   "z": [ {"content": "stays",
"cost_usd": 1e-5} ]
}

"""


async def test_the_rest_of_the_file_keeps_every_byte(tmp_path: Path) -> None:
    """RP-5: steps that ran are replaced, others stay as they are; new ones are added at the end."""
    path = tmp_path / "r.json"
    path.write_text(HAND_MADE)
    provider = RecordingProvider(Model("new", "b"), recorder_of(path))
    assert path.read_text() == HAND_MADE
    await provider.complete(ask("a"))
    before, after = HAND_MADE.split('{"content": "old", "cost_usd": 0.10}')
    text = path.read_text()
    assert text.startswith(before)
    assert text.endswith(after)
    assert held(path)["a"][0]["content"] == "new"
    await provider.complete(ask("b"))
    assert '"z": [ {"content": "stays",\n"cost_usd": 1e-5} ]' in path.read_text()
    assert list(held(path)) == ["_version", "_note", "a", "z", "b"]


@settings(deadline=None, max_examples=40)
@given(
    st.dictionaries(st.text(max_size=6), st.integers() | st.text(max_size=5), max_size=5),
    st.sampled_from([None, 1, "\t"]),
    st.lists(st.text(min_size=1, max_size=4).filter(lambda key: not key.startswith("_")), max_size=3, unique=True),
)
def test_any_file_can_be_added_to(
    tmp_path_factory: pytest.TempPathFactory, metadata: dict[str, Any], indent: int | str | None, keys: list[str]
) -> None:
    """Whatever its layout is: the keys that were there keep their values, and the new ones are there."""
    path = tmp_path_factory.mktemp("any") / "r.json"
    data = {"_version": 2, **{f"_{key}": value for key, value in metadata.items() if key not in ("version", "tools")}}
    path.write_text(json.dumps(data, indent=indent))
    file = RecordingFile(path)
    file.open()
    for key in keys:
        file.set(key, [{"content": key}])
        file.write()
    assert held(path) == {**data, **{key: [{"content": key}] for key in keys}}


async def test_what_another_program_writes_meanwhile_is_kept(tmp_path: Path) -> None:
    """Two runs into one file, or an editor that renames a step: neither loses what the other wrote."""
    path = tmp_path / "r.json"
    one, two = (RecordingProvider(Model("x", "y"), recorder_of(path)) for _ in range(2))
    await one.complete(ask("a"))
    await two.complete(ask("b"))
    await one.complete(ask("c"))
    assert sorted(held(path)) == ["_version", "a", "b", "c"]


async def test_a_new_recording_is_private_and_an_old_one_keeps_its_mode(tmp_path: Path) -> None:
    """Replies are nobody else's business; a file that was shared stays so."""
    new, old = tmp_path / "deep" / "new.json", tmp_path / "old.json"
    old.write_text('{"_version": 2}')
    old.chmod(0o664)
    for path in (new, old):
        await recorder_of(path).keep("a", {"content": "x"})
    assert stat.S_IMODE(new.stat().st_mode) == 0o600
    assert stat.S_IMODE(old.stat().st_mode) == 0o664
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep", "old.json"]  # nothing is left beside them


async def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """The file behind it is written."""
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text('{"_version": 2}')
    link.symlink_to(real)
    await recorder_of(link).keep("a", {"content": "x"})
    assert link.is_symlink()
    assert list(held(real)) == ["_version", "a"]


def test_what_cannot_be_recorded_into(tmp_path: Path) -> None:
    """Told before anything runs, and nothing is overwritten."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match=r"recording `.*file/r\.json` can't be written: file exists"):
        recorder_of(tmp_path / "file" / "r.json")
    with pytest.raises(WorkflowError, match="is a folder"):
        recorder_of(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    for name in ("pipe", "link"):
        with pytest.raises(UsageError, match="it is a pipe or a device"):
            recorder_of(tmp_path / name)
    assert (tmp_path / "pipe").is_fifo()
    with pytest.raises(WorkflowError, match="is not valid JSON"):
        recorder_of(tmp_path / "file")
    old = tmp_path / "old.json"
    old.write_text('{"a": {"content": "x"}}')
    with pytest.raises(WorkflowError, match="is of version 1, and can't be added to; record into a new file"):
        recorder_of(old)
    assert old.read_text() == '{"a": {"content": "x"}}'
    assert (tmp_path / "file").read_text() == "x"


def test_an_empty_file_is_a_new_recording(tmp_path: Path) -> None:
    """As `mktemp` makes one."""
    path = tmp_path / "r.json"
    path.touch()
    recorder_of(path, tools=True)
    assert held(path) == {"_version": 2, "_tools": {}}


async def test_a_disk_that_fills_up_is_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run goes on, and what was recorded stays."""
    path = tmp_path / "r.json"
    provider = RecordingProvider(Model("1", "2", "3"), recorder_of(path))
    await provider.complete(ask("a"))

    def full(*arguments: Any, **more: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("agentloom.providers.recording_file.write_new", full)
    await provider.complete(ask("b"))
    await provider.complete(ask("c"))
    assert caplog.messages == [f"Recording '{path}' can't be written any more: no space left on device"]
    assert list(held(path)) == ["_version", "a"]


async def test_steps_with_an_underscore_are_known_by_their_request(tmp_path: Path) -> None:
    """Keys with a leading underscore are metadata."""
    path = tmp_path / "r.json"
    await RecordingProvider(Model("x"), recorder_of(path)).complete(ask("_private"))
    assert (await MockProvider(load_recording(path), strict=True).complete(ask("_private"))).content == "x"


async def test_calls_at_the_same_time_are_written_together_and_before_they_return(tmp_path: Path) -> None:
    """A hundred at once: each is in the file when it returns, with far fewer writes; also one that is called off meanwhile."""
    path = tmp_path / "r.json"
    file = RecordingFile(path)
    file.open()
    writes = 0
    write_down = file.write_down

    def counted(*arguments: Any) -> None:
        nonlocal writes
        writes += 1
        write_down(*arguments)

    file.write_down = counted  # type: ignore[method-assign]
    provider = RecordingProvider(Model(*map(str, range(100))), Recorder(file))

    async def one(number: int) -> None:
        await provider.complete(ask(f"s{number}"))
        assert f"s{number}" in held(path)

    async with anyio.create_task_group() as group:
        for number in range(99):
            group.start_soon(one, number)
    assert writes < 20
    with anyio.CancelScope() as scope:
        scope.cancel()
        await provider.complete(ask("last"))
    assert "last" in held(path)
