"""Framed messages, in pieces and out of order, without a process around them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentloom_lsp.transport import Broken, Channel
from agentloom_lsp.worker import CLOSED, OPEN, Worker


def channel(*chunks: bytes) -> tuple[Channel, list[bytes]]:
    """Return a channel that receives these pieces, and what is sent on it."""
    waiting, sent = list(chunks), []  # type: tuple[list[bytes], list[bytes]]
    return Channel(lambda size: waiting.pop(0) if waiting else b"", sent.append, lambda: None), sent


def framed(message: Any) -> bytes:
    body = json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


@settings(max_examples=40)
@given(st.lists(st.text(), max_size=5), st.lists(st.integers(1, 40), min_size=1))
def test_messages_survive_any_cutting(texts: list[str], sizes: list[int]) -> None:
    """However a stream is cut into pieces, the same messages come out."""
    data = b"".join(framed({"text": text}) for text in texts)
    chunks = []
    for number in range(len(data)):
        if not data:
            break
        size = sizes[number % len(sizes)]
        chunks.append(data[:size])
        data = data[size:]
    mine, _ = channel(*chunks)
    found = []
    while (message := mine.receive()) is not None:
        found.append(message["text"])
    assert found == texts


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 2\r\n\r\n",
        b"content-length:2\r\n\r\n",
        b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 2\r\n\r\n",
        b"Content-Length: 2\r\nX: y\r\n\r\n",
        b"\r\n\r\nContent-Length: 2\r\n\r\n",
        b"Content-Length: two\r\n\r\nContent-Length: 2\r\n\r\n",
    ],
)
def test_headers(head: bytes) -> None:
    """Either order, any case; a head without a length is passed over."""
    mine, _ = channel(head + b"{}")
    assert mine.receive() == {}
    assert mine.receive() is None


def test_broken_messages_are_passed_over_before_the_introduction() -> None:
    """No JSON, JSON without end, an empty body: the next message counts."""
    mine, _ = channel(b"Content-Length: 1\r\n\r\n{Content-Length: 0\r\n\r\n" + framed([1]))
    assert mine.receive() == [1]


def test_what_came_early_is_handed_over_in_order() -> None:
    """Messages that came before anybody listened come first, then the later ones, then the end."""

    async def main() -> None:
        loop, more, got = asyncio.get_running_loop(), SimpleQueue[bytes](), []
        ended = loop.create_future()
        mine = Channel(lambda size: more.get(), lambda data: None, lambda: None)
        more.put(b"".join(framed(n) for n in range(200)))
        assert mine.receive() == 0
        mine.attach(loop, got.append, lambda: ended.set_result(None))
        more.put(framed(200))
        more.put(b"Content-Length: 1\r\n\r\n{")
        more.put(b"")
        await ended
        assert got[:200] == list(range(1, 201))
        assert isinstance(got[200], Broken)

    asyncio.run(main())


def test_a_client_that_is_gone_is_no_error() -> None:
    """Writing to a broken pipe is survived; the reader notices the end."""

    def refuse(data: bytes) -> None:
        raise BrokenPipeError

    Channel(lambda size: b"", refuse, lambda: None).send({})


def test_work_for_open_documents_comes_first() -> None:
    """The worker takes open documents before closed ones, in order, and leaves out what was cancelled."""

    async def main() -> None:
        worker, gate, done = Worker(asyncio.get_running_loop()), threading.Event(), []  # type: ignore[var-annotated]

        def note(name: str) -> Callable[[], None]:
            return lambda: done.append(name)

        first = worker.submit(lambda: (gate.wait(), None)[1])
        futures = [
            worker.submit(note(name), rank)
            for name, rank in (("c1", CLOSED), ("o1", OPEN), ("gone", OPEN), ("o2", OPEN))
        ]
        futures[2].cancel()
        failing: asyncio.Future[None] = worker.submit(lambda: Path("/nowhere").read_text() and None, CLOSED)
        gate.set()
        await first
        await asyncio.gather(*futures, return_exceptions=True)
        assert done == ["o1", "o2", "c1"]
        with pytest.raises(FileNotFoundError):
            await failing

    asyncio.run(main())
