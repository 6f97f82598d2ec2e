"""What is read of files that users name, and how they are written: never what has no end, never more than a file of ours can hold, no key of JSON twice."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from errno import EBUSY, EFBIG, EINVAL
from stat import S_ISDIR, S_ISFIFO, S_ISREG
from typing import Any, NoReturn, Protocol

MOST_MIB = 64
MOST_BYTES = MOST_MIB << 20
"""The most that is read of one file. Workflows, recordings and states are kilobytes; beyond this the name is a mistake."""

_PIECE = 1 << 20


class Unsuitable(OSError):
    """A file that isn't read although it could be; ``strerror`` says why in plain words, for use behind "it can't be read: "."""


class RepeatedKey(ValueError):
    """A JSON object says one key twice; the message names it, for use behind the file's name and a colon."""


def in_plain_words(error: Exception) -> str:
    """Return why something couldn't be read or written, for use behind a colon."""
    reason = (error.strerror if isinstance(error, OSError) else str(error)) or type(error).__name__
    return reason if reason[1:2].isupper() else f"{reason[:1].lower()}{reason[1:]}"


def no_number(name: str) -> NoReturn:
    """Refuse `NaN` and `Infinity`, which Python reads as JSON and JSON doesn't have: ``parse_constant`` for ``json.loads``."""
    raise ValueError(f"`{name}` is no JSON")


class _Bytes(Protocol):
    def read(self, size: int, /) -> bytes | None: ...


def read_bytes(path: str | os.PathLike[str], *, pipes: bool = False, ours: bool = False) -> bytes:
    """Return what a file holds. Raises ``Unsuitable`` for devices and for more than ``MOST_BYTES``, ``OSError`` as the system does.

    ``ours`` is for files that this program wrote: those are read whatever their size, or what was kept would be lost.

    Pipes are refused too: to read one may take forever. ``pipes`` takes them, for names that a user types himself and that a shell
    may put there (``<(command)``).
    """
    status = os.stat(path)
    mode = status.st_mode
    if (
        not S_ISREG(mode) and not S_ISDIR(mode) and not (pipes and S_ISFIFO(mode))
    ):  # to open a folder has words of its own
        raise Unsuitable(EINVAL, "it is a device" if pipes else "it is a pipe or a device", os.fspath(path))
    if S_ISREG(mode) and status.st_size > MOST_BYTES and not ours:
        raise _too_large()
    with open(path, "rb", buffering=0) as file:
        if ours:
            return file.readall()
        return read_stream(file, min(status.st_size + 1, _PIECE))


def read_stream(stream: _Bytes, first: int = _PIECE) -> bytes:
    """Return what a stream holds up to its end, read in pieces of which the first has up to ``first`` bytes.

    Raises ``Unsuitable`` for more than ``MOST_BYTES``.
    """
    pieces: list[bytes] = []
    left = MOST_BYTES
    size = first
    while piece := stream.read(size):
        left -= len(piece)
        if left < 0:
            raise _too_large()
        pieces.append(piece)
        size = _PIECE
    return b"".join(pieces)


class Changed(OSError):
    """A file isn't what it was when it was read; ``strerror`` says so."""


def replace_file(path: str | os.PathLike[str], data: bytes, expected: bytes) -> None:
    """Write a file that holds ``expected``, at once or not at all: a crash or a full disk leaves the old one.

    A link stays a link, and the file keeps its mode. Raises ``Changed`` when it holds something else by now, ``OSError`` as the system does.
    """
    from shutil import copymode  # heavy, and few commands write
    from tempfile import mkstemp

    real = os.path.realpath(path)
    with open(real, "r+b", buffering=0) as old:  # opened for writing: it may be protected where its folder isn't
        if read_stream(old) != expected:
            raise Changed(EBUSY, "it was changed meanwhile; run the command again", os.fspath(path))
    handle, beside = mkstemp(prefix=".agentloom-", suffix=".tmp", dir=os.path.dirname(real))
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        copymode(real, beside)
        os.replace(beside, real)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise


def write_new(path: str | os.PathLike[str], data: bytes, mode: int = 0o666, sync: bool = True) -> None:
    """Write a file at once or not at all, in the place of one that may be there; ``mode`` as for ``os.open``.

    A crash or a full disk leaves what was there; without ``sync``, which is much quicker, a power cut may leave an empty file. Raises ``OSError`` as the system does.
    """
    folder, name = os.path.split(os.fspath(path))
    beside = os.path.join(folder, f".{name[:100]}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if sync:
                os.fsync(file.fileno())
        os.replace(beside, path)
        if sync:
            sync_folder(folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise


def remove_unfinished(folder: str | os.PathLike[str], begin: str) -> None:
    """Remove what ``write_new`` has left of files whose names begin so, in processes that were killed."""
    with suppress(OSError):
        for found in os.listdir(folder):
            if found.startswith(f".{begin}") and found.endswith(".tmp") and not _is_alive(found.split(".")[-3:-2]):
                with suppress(OSError):
                    os.unlink(os.path.join(folder, found))


def _is_alive(process: list[str]) -> bool:
    """Tell whether a process, given as text, goes on; where that can't be told it does."""
    if os.name == "nt" or not process or not process[0].isdecimal():
        return True
    try:
        os.kill(int(process[0]), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Have the names in a folder written to the disk, where the system can do that."""
    if os.name == "nt":
        return
    handle = os.open(folder or ".", os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _too_large() -> Unsuitable:
    return Unsuitable(EFBIG, f"it is larger than {MOST_MIB} MiB")


def unique_keys(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object's pairs as a mapping: an ``object_pairs_hook``. Raises ``RepeatedKey``, where Python takes the last one."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            shown = key if len(key) <= 40 else f"{key[:39]}…"
            raise RepeatedKey(f"the key `{shown}` stands twice in one object; keep one of them")
        found[key] = value
    return found
