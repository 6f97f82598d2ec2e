"""A loopback server that speaks a vendor's wire format, OpenAI's by default, and speaks it badly when asked to.

By hand: ``python tests/wire/server.py --port 8901 --mode stream --pause 0.05``, then
``OPENAI_BASE_URL=http://127.0.0.1:8901 OPENAI_API_KEY=any agentloom run …``. In tests: ``with WireServer("503", "ok") as server``;
`--format` chooses another vendor. Each request takes the next mode, the last one stays; ``says`` is what the model says, one reply a request. Strict about requests: whatever the wire format doesn't know is a 400.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import socket
import struct
import sys
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # by hand: the folder of the tests isn't on the path
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.wire.anthropic_format import AnthropicFormat
from tests.wire.formats import KEY, REPLY, Format, Received, Refused, Say
from tests.wire.google_format import GoogleFormat
from tests.wire.ollama_format import OllamaFormat
from tests.wire.openai_format import OpenAIFormat

__all__ = [
    "ANTHROPIC",
    "GOOGLE",
    "KEY",
    "MODES",
    "OLLAMA",
    "OPENAI",
    "REPLY",
    "Received",
    "Refused",
    "Say",
    "WireServer",
    "body_of",
    "events_of",
]

OPENAI: Format = OpenAIFormat()
OLLAMA: Format = OllamaFormat()
ANTHROPIC: Format = AnthropicFormat()
GOOGLE: Format = GoogleFormat()
FORMATS: Mapping[str, Format] = {"openai": OPENAI, "ollama": OLLAMA, "anthropic": ANTHROPIC, "google": GOOGLE}


@dataclass
class Exchange:
    """One request and the connection to answer on."""

    received: Received
    request: dict[str, Any]
    writer: asyncio.StreamWriter
    server: WireServer
    turn: int = 0
    chunked: bool = False
    complete: bool = False

    @property
    def streams(self) -> bool:
        return self.server.format.streams(self.request)

    def write(self, data: bytes) -> None:
        """Send bytes of the body, in a chunk of their own where the body is chunked."""
        self.writer.write(b"%x\r\n%s\r\n" % (len(data), data) if self.chunked else data)

    async def send(self, data: bytes) -> None:
        self.write(data)
        await self.writer.drain()

    def head(self, status: int, headers: Mapping[str, str], *, length: int | None = None) -> None:
        """Send the status line and the headers; without a length the body is chunked."""
        self.chunked = length is None
        framing = "Transfer-Encoding: chunked" if self.chunked else f"Content-Length: {length}"
        phrase = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "Overloaded"
        lines = [f"HTTP/1.1 {status} {phrase}", framing, *(f"{name}: {value}" for name, value in headers.items())]
        self.writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))

    async def end(self) -> None:
        """Finish the answer, so that the connection can take another request."""
        if self.chunked:
            self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()
        self.complete = True

    async def whole(self, status: int, body: bytes, content_type: str = "application/json", **headers: str) -> None:
        """Send a whole answer of known length."""
        self.head(status, {"Content-Type": content_type, **headers}, length=len(body))
        self.writer.write(body)
        await self.end()

    def abort(self) -> None:
        """Drop the connection hard: the client sees a reset."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def held(self) -> None:
        """Wait until the test lets go, or the server stops."""
        self.server.holding += 1
        await self.server.gate.wait()

    @property
    def first(self) -> int:
        """The number of the event with the first words."""
        return self.server.format.first

    def beginning(self) -> bytes:
        """Return a streamed reply as far as its first words."""
        return b"".join(self.frames()[: self.first + 1])

    def half(self) -> bytes:
        """Return a streamed reply as far as its first words, and the beginning of the event after them."""
        return self.beginning() + self.frames()[self.first + 1][:36]

    @property
    def say(self) -> Say:
        """What the model says this time."""
        says = self.server.says
        return says[min(self.turn, len(says) - 1)] if says else Say(self.server.reply)

    def completion(self) -> bytes:
        """Return the whole reply as JSON."""
        data = self.server.format.whole(self.received, self.request, self.say)
        return json.dumps(data, ensure_ascii=False).encode()

    def frames(self) -> list[bytes]:
        """Return a streamed reply, event by event."""
        return self.server.format.frames(self.request, self.say)

    def frame(self, data: str) -> bytes:
        """Return one event of that data."""
        return self.server.format.frame(data)

    def start_events(self) -> None:
        self.head(200, {"Content-Type": self.server.format.stream_type})


Mode = Callable[[Exchange], Any]


async def ok(exchange: Exchange) -> None:
    """Answer as the request asks."""
    await (stream(exchange) if exchange.streams else plain(exchange))


async def plain(exchange: Exchange) -> None:
    """Answer with one JSON text, also when a stream was asked for."""
    await exchange.whole(200, exchange.completion())


async def stream(exchange: Exchange) -> None:
    """Stream; each event is sent by itself, with the server's pause before it."""
    if not exchange.streams:
        raise Refused(400, "this server only streams: set `stream`")
    exchange.start_events()
    for frame in exchange.frames():
        if exchange.server.pause:
            await asyncio.sleep(exchange.server.pause)
        await exchange.send(frame)
    await exchange.end()


async def bytewise(exchange: Exchange) -> None:
    """Send every byte of the body as a chunk of its own."""
    if exchange.streams:
        exchange.start_events()
        body = b"".join(exchange.frames())
    else:
        exchange.head(200, {"Content-Type": "application/json"})
        body = exchange.completion()
    for at in range(len(body)):
        await exchange.send(body[at : at + 1])
    await exchange.end()


async def gzipped(exchange: Exchange) -> None:
    """Compress, in two chunks that know nothing of events."""
    if "gzip" not in exchange.received.headers.get("accept-encoding", ""):
        raise Refused(400, "the client doesn't accept gzip")
    kind = exchange.server.format.stream_type if exchange.streams else "application/json"
    packed = gzip.compress(b"".join(exchange.frames()) if exchange.streams else exchange.completion())
    exchange.head(200, {"Content-Type": kind, "Content-Encoding": "gzip"})
    await exchange.send(packed[:37])
    await exchange.send(packed[37:])
    await exchange.end()


async def nested_gzip(exchange: Exchange) -> None:
    """Compress zeros three times: some hundred bytes that hold gigabytes, were they all unpacked."""
    packed = gzip.compress(gzip.compress(gzip.compress(bytes(64 * 1024 * 1024))))
    kind = exchange.server.format.stream_type if exchange.streams else "application/json"
    exchange.head(200, {"Content-Type": kind, "Content-Encoding": "gzip, gzip, gzip"})
    await exchange.send(packed)
    await exchange.end()


async def bad_gzip(exchange: Exchange) -> None:
    """Say gzip and send something else."""
    await exchange.whole(200, b"this is no gzip", **{"Content-Encoding": "gzip"})


async def odd_stream(exchange: Exchange) -> None:
    """Stream with everything the format allows: byte order mark, CRLF and CR, comments, names, ids, data over several lines."""
    exchange.start_events()
    await exchange.send("\ufeff: welcome\r\nretry: 1000\r\n\r\n".encode())
    for at, frame in enumerate(exchange.frames()):
        data = frame.decode().removeprefix("data: ").strip()
        spread = data.replace('"choices"', '\n"choices"')
        lines = [f"id: {at}", "event: chunk", *(f"data:{line}" for line in spread.split("\n")), ": ping", "unknown"]
        await exchange.send(("\r\n", "\n", "\r")[at % 3].join([*lines, "", ""]).encode())
    await exchange.end()


async def no_done(exchange: Exchange) -> None:
    """Stream without `[DONE]`, and without the last empty line."""
    exchange.start_events()
    await exchange.send(b"".join(exchange.frames()[:-1]).rstrip(b"\n"))
    await exchange.end()


async def cut_event(exchange: Exchange) -> None:
    """End the stream inside an event, with a proper end of the body."""
    exchange.start_events()
    await exchange.send(exchange.half())
    await exchange.end()


async def cut_between_events(exchange: Exchange) -> None:
    """End the stream after an event, without a reason and without `[DONE]`."""
    exchange.start_events()
    await exchange.send(exchange.beginning())
    await exchange.end()


async def cut_connection(exchange: Exchange) -> None:
    """Close the connection inside an event."""
    exchange.start_events()
    await exchange.send(exchange.half())


async def cut_character(exchange: Exchange) -> None:
    """Close the connection inside a character."""
    exchange.start_events()
    event = exchange.frames()[exchange.first]
    await exchange.send(exchange.beginning())
    await exchange.send(event[: event.index("ü".encode()) + 1])


async def cut_body(exchange: Exchange) -> None:
    """Close the connection before the announced length."""
    body = exchange.completion()
    exchange.head(200, {"Content-Type": "application/json"}, length=len(body))
    await exchange.send(body[:-20])


async def reset(exchange: Exchange) -> None:
    """Reset the connection instead of answering."""
    exchange.abort()


async def reset_stream(exchange: Exchange) -> None:
    """Reset the connection after the first words, once the test has seen them."""
    exchange.start_events()
    await exchange.send(exchange.beginning())
    await exchange.held()
    exchange.abort()


async def close(exchange: Exchange) -> None:
    """Close the connection instead of answering."""


async def not_http(exchange: Exchange) -> None:
    """Answer with something that is no HTTP."""
    exchange.writer.write(b"220 mail.example.org ESMTP\r\n")


async def malformed(exchange: Exchange) -> None:
    """Answer with JSON that isn't; streamed: inside an event."""
    if exchange.streams:
        exchange.start_events()
        await exchange.send(exchange.beginning() + exchange.frame('{"choices": [}'))
        await exchange.end()
    else:
        await exchange.whole(200, exchange.completion().replace(b":", b"=", 1))


def body_of(text: str, status: int = 200, content_type: str = "application/json") -> Mode:
    """Return a mode that answers with that text."""

    async def mode(exchange: Exchange) -> None:
        await exchange.whole(status, text.encode(), content_type)

    return mode


def events_of(*data: str) -> Mode:
    """Return a mode that streams events of that data."""

    async def mode(exchange: Exchange) -> None:
        exchange.start_events()
        await exchange.send(b"".join(map(exchange.frame, data)))
        await exchange.end()

    return mode


async def slow(exchange: Exchange) -> None:
    """Answer only once the test lets go."""
    await exchange.held()
    await ok(exchange)


async def slow_body(exchange: Exchange) -> None:
    """Send the head and the first half; the rest once the test lets go."""
    body = exchange.completion()
    exchange.head(200, {"Content-Type": "application/json"}, length=len(body))
    await exchange.send(body[:50])
    await exchange.held()
    await exchange.send(body[50:])


async def slow_stream(exchange: Exchange) -> None:
    """Send the first words; the rest once the test lets go."""
    exchange.start_events()
    await exchange.send(exchange.beginning())
    await exchange.held()
    for frame in exchange.frames()[exchange.first + 1 :]:
        await exchange.send(frame)
    await exchange.end()


async def lingering(exchange: Exchange) -> None:
    """Stream to the end, and then keep the connection open without ending the body."""
    exchange.start_events()
    for frame in exchange.frames():
        await exchange.send(frame)
    await exchange.held()
    await exchange.end()


async def drip(exchange: Exchange) -> None:
    """Send a space every now and then, for ever: no single wait is long."""
    exchange.head(200, {"Content-Type": "application/json"})
    while not exchange.server.gate.is_set():
        await exchange.send(b" ")
        await asyncio.sleep(0.01)


async def huge(exchange: Exchange) -> None:
    """Answer with a text of 64 MB, or until the client has had enough."""
    kind = exchange.server.format.stream_type if exchange.streams else "application/json"
    exchange.head(200, {"Content-Type": kind})
    await exchange.send(exchange.frame('{"x": "').rstrip(b"\r\n") if exchange.streams else b'{"x": "')
    for _ in range(1024):
        await exchange.send(b"x" * 65536)
    await exchange.send(b'"}\n\n')
    await exchange.end()


async def bomb(exchange: Exchange) -> None:
    """Answer with few bytes that decompress to very many."""
    await exchange.whole(200, BOMB, **{"Content-Encoding": "gzip"})


async def huge_error(exchange: Exchange) -> None:
    """Refuse with an endless page."""
    exchange.head(500, {"Content-Type": "text/html"})
    for _ in range(1024):
        await exchange.send(b"<p>internal \x1b[31m error</p>\n" * 2048)
    await exchange.end()


async def redirect(exchange: Exchange) -> None:
    """Send the client elsewhere."""
    await exchange.whole(308, b"", Location="https://user:pass@elsewhere.example/v1/chat?key=secret")


async def echo_key(exchange: Exchange) -> None:
    """Refuse the key, and repeat it."""
    key = exchange.received.headers.get("authorization", "").removeprefix("Bearer ")
    await exchange.whole(401, json.dumps({"error": {"message": f"Incorrect API key provided: {key}."}}).encode())


def status(code: int, after: str = "") -> Mode:
    """Return a mode that refuses with a status; ``after`` is a Retry-After, `date` for one half a minute after the server's clock."""

    async def mode(exchange: Exchange) -> None:
        headers = {}
        if after == "date":
            # The server's clock is an hour off, as clocks are.
            now = datetime.now(UTC) + timedelta(hours=1)
            headers = {"Date": format_datetime(now, usegmt=True)}
            headers["Retry-After"] = format_datetime(
                parsedate_to_datetime(headers["Date"]) + timedelta(seconds=30), usegmt=True
            )
        elif after:
            headers = {"Retry-After": after}
        error = exchange.server.format.error(code, f"refused with {code}", f"code_{code}")
        await exchange.whole(code, json.dumps(error).encode(), **headers)

    return mode


BOMB = gzip.compress(b'{"x": "' + b"x" * 8 * 1024 * 1024 + b'"}', 1)
ERROR_EVENT = json.dumps({"error": {"message": "the model is overloaded", "type": "server_error", "code": None}})
LIMIT_EVENT = json.dumps({"error": {"message": "slow down", "code": 429}})

MODES: Mapping[str, Mode] = {
    "ok": ok,
    "plain": plain,
    "stream": stream,
    "bytewise": bytewise,
    "gzip": gzipped,
    "bad-gzip": bad_gzip,
    "nested-gzip": nested_gzip,
    "odd-stream": odd_stream,
    "no-done": no_done,
    "cut-event": cut_event,
    "cut-between-events": cut_between_events,
    "cut-connection": cut_connection,
    "cut-character": cut_character,
    "cut-body": cut_body,
    "reset": reset,
    "reset-stream": reset_stream,
    "close": close,
    "not-http": not_http,
    "malformed": malformed,
    "html": body_of("<html><body>Welcome to nginx</body></html>", content_type="text/html"),
    "empty": body_of(""),
    "array": body_of("[1, 2]"),
    "no-choices": body_of('{"object": "chat.completion", "choices": []}'),
    "odd-content": body_of('{"choices": [{"message": {"content": [1]}}]}'),
    "refusal": body_of(
        '{"choices": [{"message": {"content": null, "refusal": "I can\'t."}, "finish_reason": "stop"}]}'
    ),
    "bare": body_of('{"choices": [{"message": {"content": "bare"}}]}'),
    "error-in-body": body_of('{"error": {"message": "model not loaded"}}'),
    "error-event": events_of(ERROR_EVENT),
    "limit-event": events_of(LIMIT_EVENT),
    "odd-event": events_of('{"choices": [{"delta": {"content": 7}}]}'),
    "slow": slow,
    "slow-body": slow_body,
    "slow-stream": slow_stream,
    "lingering": lingering,
    "drip": drip,
    "huge": huge,
    "bomb": bomb,
    "huge-error": huge_error,
    "redirect": redirect,
    "echo-key": echo_key,
    **{str(code): status(code) for code in (400, 401, 403, 404, 408, 409, 422, 429, 500, 502, 503, 504, 529)},
}


def mode_named(name: str) -> Mode:
    """Return a mode by name; `429/7` and `503/date` add a Retry-After."""
    code, slash, after = name.partition("/")
    return status(int(code), after) if slash else MODES[name]


class WireServer:
    """The server, in a thread of its own. ``requests`` is what came in, ``url`` its base address (with `/v1`).

    ``holding`` counts the answers that it was asked to hold back.
    """

    def __init__(
        self,
        *modes: str | Mode,
        key: str | None = KEY,
        reply: str = REPLY,
        pause: float = 0.0,
        port: int = 0,
        own: bool = True,
        format: Format = OPENAI,
        says: Sequence[Say] = (),
    ) -> None:
        self.modes = [mode_named(mode) if isinstance(mode, str) else mode for mode in modes or ("ok",)]
        self.key = key
        self.reply = reply
        self.pause = pause
        self.port = port
        self.own = own
        self.format = format
        self.says = list(says)
        self.requests: list[Received] = []
        self.connections = 0
        self.holding = 0
        self.crashes: list[BaseException] = []
        self.gate: asyncio.Event
        self._arrived = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._stop: asyncio.Event
        self._thread = threading.Thread(target=self._run, name="wire server", daemon=True)

    @property
    def host(self) -> str:
        """The bare address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """The base address."""
        return f"{self.host}/v1" if self.format is OPENAI else self.host

    def __enter__(self) -> WireServer:
        self._thread.start()
        self._ready.wait()
        if self.crashes:
            raise self.crashes[0]
        return self

    def __exit__(self, *details: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        if self.crashes:
            raise self.crashes[0]

    def let_go(self) -> None:
        """Let everything that is held go on."""
        self._loop.call_soon_threadsafe(self.gate.set)

    def wait_for(self, count: int, seconds: float = 20) -> None:
        """Block until that many requests have come in."""
        with self._arrived:
            assert self._arrived.wait_for(lambda: len(self.requests) >= count, seconds), (
                f"only {len(self.requests)} came"
            )

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        except OSError as error:
            self.crashes.append(error)  # the port is taken
        finally:
            self._loop.close()
            self._ready.set()

    async def _serve(self) -> None:
        self._stop, self.gate = asyncio.Event(), asyncio.Event()
        tasks: set[asyncio.Task[None]] = set()
        transports: list[asyncio.WriteTransport] = []

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.connections += 1
            transports.append(writer.transport)
            task = self._loop.create_task(self._connection(reader, writer, self.connections))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        server = await asyncio.start_server(accept, "127.0.0.1", self.port, backlog=2048)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        while accepting := asyncio.all_tasks() - tasks - {asyncio.current_task()}:
            await asyncio.wait(accepting)  # asyncio loses the socket of a connection that is accepted after the end
        server.close()
        self.gate.set()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for transport in transports:
            transport.abort()
        await asyncio.sleep(0)  # their sockets are closed in the next turn of the loop
        await asyncio.sleep(0)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        try:
            async for received in _requests(reader, number):
                with self._arrived:
                    self.requests.append(received)
                    turn = len(self.requests) - 1
                    self._arrived.notify_all()
                exchange = Exchange(received, {}, writer, self, turn)
                try:
                    exchange.request = self.format.check(received, self.key, own=self.own)
                    await self.modes[min(turn, len(self.modes) - 1)](exchange)
                except Refused as refused:
                    error = self.format.error(refused.status, str(refused))
                    await exchange.whole(refused.status, json.dumps(error).encode())
                if not exchange.complete:
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client went away
        except Exception as error:
            self.crashes.append(error)
        finally:
            writer.close()


async def _requests(reader: asyncio.StreamReader, number: int) -> AsyncIterator[Received]:
    """Yield the requests of one connection."""
    while head := await reader.readline():
        method, path, _ = head.decode("latin-1").split()
        headers: dict[str, str] = {}
        while (line := await reader.readline()).strip():
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        yield Received(method, path, headers, body, number)


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description="A loopback server that speaks a vendor's wire format.")
    parser.add_argument("--format", choices=sorted(FORMATS), default="openai", help="whose wire format it speaks")
    parser.add_argument("--port", type=int, default=8901)
    parser.add_argument(
        "--mode", action="append", help=f"one per request, the last stays: {', '.join(MODES)}, 429/7, 429/date"
    )
    parser.add_argument("--reply", default=REPLY, help="what the model says")
    parser.add_argument("--key", help="the only key that is accepted; any is by default")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds before each event of a stream")
    options = parser.parse_args()
    with WireServer(
        *options.mode or ("ok",),
        key=options.key,
        reply=options.reply,
        pause=options.pause,
        port=options.port,
        format=FORMATS[options.format],
    ) as server:
        try:  # from here on: whoever has read the address may interrupt at once
            print(f"{options.format.upper()}_BASE_URL={server.host}", flush=True)
            threading.Event().wait()
        except KeyboardInterrupt:
            print()


if __name__ == "__main__":
    main()
