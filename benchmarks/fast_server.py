"""A server that answers model calls as fast as Python can, in a process of its own: what is measured is the client.

``python benchmarks/fast_server.py`` prints its port and serves until its standard input is closed. A body that asks for a stream gets
events, the first of them at once; every answer is the same.
"""

from __future__ import annotations

import asyncio
import json
import sys

WORDS = "The quick brown fox jumps over the lazy dog and runs away into the wood. " * 4
HEAD = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "load"}
USAGE = {"prompt_tokens": 20, "completion_tokens": 60, "total_tokens": 80}
MESSAGE = {"role": "assistant", "content": WORDS}
WHOLE = json.dumps(
    {**HEAD, "choices": [{"index": 0, "message": MESSAGE, "finish_reason": "stop"}], "usage": USAGE}
).encode()
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(WHOLE), WHOLE)


def event(delta: dict[str, str], reason: str | None = None) -> bytes:
    """Return one event of a stream, as a chunk of the body."""
    data = {**HEAD, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
    text = f"data: {json.dumps(data)}\n\n".encode()
    return b"%x\r\n%s\r\n" % (len(text), text)


STREAM = b"".join(
    [
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
        *(event({"content": f"{word} "}) for word in WORDS.split()),
        event({}, "stop"),
        b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n",
    ]
)


class Answers(asyncio.Protocol):
    """Answers every request that has arrived whole."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.data = b""

    def data_received(self, data: bytes) -> None:
        self.data += data
        while (end := self.data.find(b"\r\n\r\n")) >= 0:
            head = self.data[:end].lower()
            at = head.index(b"content-length:") + 15
            length = int(head[at : head.find(b"\r\n", at) if b"\r\n" in head[at:] else None])
            if len(self.data) < end + 4 + length:
                return
            body = self.data[end + 4 : end + 4 + length]
            self.data = self.data[end + 4 + length :]
            self.transport.write(STREAM if b'"stream":true' in body else ANSWER)  # type: ignore[attr-defined]


async def main() -> None:
    """Serve until nobody listens any more."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Answers, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
