"""A TCP proxy that is a bad network: slow, cut, half closed, or one that takes everything and never answers."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from contextlib import suppress
from random import Random
from types import TracebackType

_RESET = struct.pack("ii", 1, 0)


class Proxy:
    """Passes connections on to a server until its block ends. ``delay_s`` holds every packet, in each direction."""

    def __init__(self, host: str, port: int, delay_s: float = 0.0) -> None:
        self.delay_s = delay_s
        self.silent = False
        """Whether it takes what comes, from new connections too, and passes nothing on."""
        self.connections = 0
        self._target = host, port
        self._pairs: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy")
        self.port = 0

    def __enter__(self) -> Proxy:
        self._thread.start()
        server = asyncio.run_coroutine_threadsafe(self._begin(), self._loop).result()
        self.port = server.sockets[0].getsockname()[1]
        self._server = server
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def reset(self, random: Random | None = None) -> None:
        """Break all connections without a farewell; with ``random`` about half of them."""

        async def act() -> None:
            for pair in list(self._pairs):
                if random is None or random.random() < 0.5:
                    for writer in pair:
                        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                        writer.transport.abort()

        asyncio.run_coroutine_threadsafe(act(), self._loop).result()

    def half_close(self) -> None:
        """End what goes to the client, as if the server had said farewell; what the client sends is taken still."""

        async def act() -> None:
            for client, _ in list(self._pairs):
                with suppress(OSError):
                    client.write_eof()

        asyncio.run_coroutine_threadsafe(act(), self._loop).result()

    async def _begin(self) -> asyncio.Server:
        return await asyncio.start_server(self._serve, "127.0.0.1", 0)

    async def _end(self) -> None:
        self._server.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        self.connections += 1
        pair = None
        try:
            there, server = await asyncio.open_connection(*self._target)
            pair = client, server
            self._pairs.add(pair)
            await asyncio.gather(self._pass(reader, server), self._pass(there, client))
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            if pair is not None:
                self._pairs.discard(pair)
                pair[1].transport.abort()
            client.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            if self.silent:
                continue
            if self.delay_s:
                await asyncio.sleep(self.delay_s)
            if not self.silent:
                writer.write(data)
                await writer.drain()
        if not self.silent:
            with suppress(OSError):
                writer.write_eof()
