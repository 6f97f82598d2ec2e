"""Bodies of HTTP answers, read within bounds: also compressed ones, of which a few bytes may stand for gigabytes.

httpx decompresses each piece whole, however large it becomes, and through as many layers as a server names; so bodies are read raw and
decompressed here, piece by piece, and no more than is kept.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx

ACCEPTED = "gzip, deflate"
"""What a request says of the compressions that this module knows."""

PIECE = 64 * 1024
MOST_LAYERS = 2
MOST_MEMBERS = 4096
"""How many parts a gzip stream may have; empty ones cost much time and no space."""

_GZIP = 16 + zlib.MAX_WBITS


async def read_body(response: httpx.Response, limit: int, where: str) -> bytes:
    """Return the body of a streamed answer that has at most ``limit`` bytes, compressed and decompressed.

    Raises ``OSError`` that begins with ``where`` for one that is larger or can't be decompressed, and httpx's own errors.
    """
    layers = [
        name
        for name in reversed([part.strip().lower() for part in response.headers.get("content-encoding", "").split(",")])
        if name not in ("", "identity")
    ]
    unknown = next((name for name in layers if name not in ("gzip", "x-gzip", "deflate")), None)
    if unknown is not None or len(layers) > MOST_LAYERS:
        shown = f"`{unknown[:20]}`" if unknown is not None else f"{len(layers)} times"
        raise OSError(f"{where}: the answer is compressed in a way that isn't known ({shown})")
    inflaters = [_Inflater(name) for name in layers]
    data, received = bytearray(), 0
    try:
        async for chunk in _raw(response):
            received += len(chunk)
            if received > limit:
                raise _too_large(where, limit)
            for piece in _through(inflaters, chunk):
                data += piece
                if len(data) > limit:
                    raise _too_large(where, limit)
    except zlib.error:
        raise OSError(f"{where}: the answer can't be decompressed") from None
    if received and not all(inflater.complete for inflater in inflaters):
        raise OSError(f"{where}: the answer can't be decompressed: its end is missing")
    return bytes(data)


async def _raw(response: httpx.Response) -> AsyncIterator[bytes]:
    async for chunk in response.aiter_raw():
        yield chunk


def _through(inflaters: list[_Inflater], data: bytes) -> Iterator[bytes]:
    """Yield what comes of some bytes behind all layers, in pieces."""
    if not inflaters:
        yield data
        return
    for piece in inflaters[0].feed(data):
        yield from _through(inflaters[1:], piece)


class _Inflater:
    """One layer. ``complete`` tells whether what it was given so far ends where the compressed data does."""

    def __init__(self, name: str) -> None:
        self._gzip = name != "deflate"
        self._stream = zlib.decompressobj(_GZIP if self._gzip else zlib.MAX_WBITS)
        self._head = b""  # what was fed before anything came of it
        self._begun = False
        self._members = 1

    @property
    def complete(self) -> bool:
        return self._stream.eof

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the decompressed bytes, in pieces of bounded size."""
        piece = b""
        while data or len(piece) == PIECE:
            if self._stream.eof:
                if not self._gzip or not data.strip(b"\0"):
                    return  # what follows the end is no business of ours
                self._members += 1
                if self._members > MOST_MEMBERS:
                    raise zlib.error
                self._stream = zlib.decompressobj(_GZIP)
            try:
                piece = self._stream.decompress(data, PIECE)
            except zlib.error:
                if self._gzip or self._begun or len(self._head) > 1:
                    raise
                self._stream, self._begun = (
                    zlib.decompressobj(-zlib.MAX_WBITS),
                    True,
                )  # some servers leave the header out
                piece = self._stream.decompress(self._head + data, PIECE)
            self._head += data[:2]
            self._begun = self._begun or bool(piece)
            data = self._stream.unconsumed_tail or (self._stream.unused_data if self._stream.eof else b"")
            if piece:
                yield piece


def _too_large(where: str, limit: int) -> OSError:
    return OSError(f"{where}: the body is larger than {limit // 1024 // 1024} MB")
