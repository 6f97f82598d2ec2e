"""Folders that may be used: where a path really leads, whether that is inside, and opening it without being led elsewhere meanwhile.

A path is resolved first, so that a link counts as what it points to. Then it is opened part by part, and no part may be a link: one that
took a folder's place in between is refused instead of followed.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from contextlib import suppress

MAX_PATH_BYTES = 4096
MAX_NAME_BYTES = 255

_PROCESSES = "/proc"
"""Where Linux shows every process, its environment included. It counts as inside a folder only if that lies in it, too."""

_BINARY = getattr(os, "O_BINARY", 0)
_CLOSE = getattr(os, "O_CLOEXEC", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | _NO_LINK | _CLOSE
_CAN_WALK = os.open in os.supports_dir_fd and os.mkdir in os.supports_dir_fd

READ = os.O_RDONLY | _NO_WAIT | _BINARY
WRITE = os.O_WRONLY | os.O_CREAT | _NO_WAIT | _BINARY
"""Flags to open with. Without waiting: opening a pipe with nobody at its other end would block for ever."""


class Unresolvable(ValueError):
    """A path that leads nowhere certain: a loop of links, a NUL, a name that is too long, a folder that can't be looked into."""


class Swapped(OSError):
    """Something has taken the place of a part of a path since it was resolved."""


def real_path(path: object, base: str | os.PathLike[str]) -> str:
    """Return where a path leads that starts at ``base``: absolute, without links; its end need not exist. Raises ``Unresolvable``."""
    if not isinstance(path, str | os.PathLike):
        raise Unresolvable("it is no text")
    try:
        text = os.path.abspath(os.path.join(base, path))
        data = os.fsencode(text)
        if b"\0" in data:
            raise Unresolvable("it holds a NUL")
        if len(data) > MAX_PATH_BYTES or any(len(part) > MAX_NAME_BYTES for part in data.split(os.sep.encode())):
            raise Unresolvable("it is too long")
        # Not of `text`: `link/..` is where the link's target lies, not where the link does.
        whole = os.path.join(os.path.abspath(base), path)
        try:
            return os.path.realpath(whole, strict=True)
        except FileNotFoundError:
            return os.path.realpath(whole)
    except Unresolvable:
        raise
    except OSError as error:
        raise Unresolvable(_reason(error)) from None
    except (ValueError, TypeError):  # halves of surrogate pairs; paths of bytes
        raise Unresolvable("it is no text") from None


def inside(path: str, trees: Iterable[str]) -> bool:
    """Tell whether a real path is one of the trees or lies in one; all are real paths."""
    hidden = _within(path, _PROCESSES)
    return any(_within(path, tree) and (not hidden or _within(tree, _PROCESSES)) for tree in trees)


def open_real(path: str, flags: int, *, make_folders: bool = False) -> int:
    """Open a real path and return its descriptor. Raises ``Swapped`` if it isn't real any more, and ``OSError``.

    ``make_folders`` makes the folders that are missing.
    """
    if not _CAN_WALK:  # Windows
        if make_folders:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        found = os.open(path, flags | _NO_LINK, 0o666)
        if os.path.realpath(path) != path:
            os.close(found)
            raise Swapped
        return found
    *folders, name = path.split("/")[1:]
    at = os.open("/", _FOLDER)
    try:
        for folder in folders:
            inner = _open_folder(folder, at, make_folders)
            os.close(at)
            at = inner
        return os.open(name or ".", flags | _NO_LINK | _CLOSE, 0o666, dir_fd=at)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENOTDIR):
            raise Swapped from None
        raise
    finally:
        os.close(at)


def is_regular(descriptor: int) -> bool:
    """Tell whether an open file is one with a content of its own: no folder, pipe, socket or device."""
    return stat.S_ISREG(os.fstat(descriptor).st_mode)


def _open_folder(name: str, at: int, make: bool) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=at)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=at)
    return os.open(name, _FOLDER, dir_fd=at)


def _within(path: str, tree: str) -> bool:
    return path == tree or path.startswith(tree.rstrip(os.sep) + os.sep)


def _reason(error: OSError) -> str:
    if error.errno == errno.ELOOP:
        return "its links lead in a circle"
    if error.errno == errno.ENAMETOOLONG:
        return "it is too long"
    return (error.strerror or "it can't be looked up").lower()
