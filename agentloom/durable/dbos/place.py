"""Where durable runs live: a SQLite file that one process works on, or a PostgreSQL database that many share."""

from __future__ import annotations

import os
import time
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from agentloom.durable.addresses import SQLITE, without_password
from agentloom.errors import UsageError, WorkflowError
from agentloom.records import record

CURE = "install it with `pip install 'agentloom[dbos]'`"

SCHEMA = "agentloom"
"""The schema of our tables in a PostgreSQL database."""

_POSTGRES = ("postgresql://", "postgres://")

TRIES, PAUSE_S = 10, 0.02
"""How often a lock is tried that is held, and how many seconds are in between."""


@record()
class Place:
    """A database by its address. ``file`` is that of a SQLite database, None for PostgreSQL; ``name`` is the address without a password."""

    url: str
    name: str
    file: Path | None


def place_of(url: str) -> Place:
    """Return the place of an address. Raises ``UsageError`` for one that is none, ``WorkflowError`` when DBOS isn't installed."""
    from importlib.util import find_spec

    url = url.strip()
    if url.startswith(SQLITE) and len(url) > len(SQLITE):
        file = Path(url[len(SQLITE) :]).absolute()
        place = Place(SQLITE + quote(str(file), safe="/\\:"), url, file)  # the name of a file, whatever stands in it
    elif url.startswith(_POSTGRES):
        _check(url)
        place = Place("postgresql://" + url.partition("://")[2], without_password(url), None)
    else:
        shown = without_password(url)
        raise UsageError(f"`--on {shown}` is no database; give `sqlite:///FILE` or `postgresql://USER@HOST/NAME`")
    if find_spec("dbos") is None:
        raise WorkflowError(f"`--on` needs the package `dbos`, which isn't installed; {CURE}")
    return place


def _check(url: str) -> None:
    """Raise ``UsageError`` for an address in which a password can't be told from what comes after it: it must not get into a message."""
    try:
        found = urlsplit(url)
        clear = found.port is None or found.port > 0
    except ValueError:
        clear = False
    if not clear or (found.password or "").count(":") or "@" in found.path + found.fragment:
        raise UsageError(
            f"`--on {without_password(url)}` can't be read: write what is special in a password as `%40` for `@`, `%3A` for `:`,"
            " `%2F` for `/`, or leave the password to PGPASSWORD or ~/.pgpass"
        )


def hidden(text: str, place: Place) -> str:
    """Return a text of the database's without the password of the address, should it be there."""
    if place.file is not None:
        return text
    found = urlsplit(place.url)
    secrets = [found.password, *(value for name, value in parse_qsl(found.query) if name.endswith("password"))]
    for secret in secrets:
        for written in {secret, unquote(secret)} if secret else ():
            text = text.replace(written, "***")
    return text


class Busy(WorkflowError):
    """Another process works on a SQLite file. ``is_worker`` tells that it takes on what is asked of it."""

    def __init__(self, message: str, is_worker: bool) -> None:
        super().__init__(message)
        self.is_worker = is_worker


class FileLock:
    """Holds a SQLite database for this process; the system lets go when the process ends, however it ends."""

    def __init__(self, file: Path, is_worker: bool) -> None:
        """Take the lock. Raises ``Busy`` when another process has it, ``WorkflowError`` when there can be none."""
        path = file.with_name(f"{file.name}.lock")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise WorkflowError(f"`{path}` can't be written: {error.strerror}") from None
        try:
            _lock_patiently(self._handle)
        except OSError:
            holder = os.pread(self._handle, 100, 0).decode("utf-8", "replace") if hasattr(os, "pread") else ""
            os.close(self._handle)
            kind, _, pid = holder.partition(" ")
            raise Busy(
                f"process {pid or '?'} works on `{file}`, and one at a time can; "
                f"start `agentloom worker --on {SQLITE}{file}`, which takes on several runs",
                kind == "worker",
            ) from None
        os.ftruncate(self._handle, 0)
        os.write(self._handle, f"{'worker' if is_worker else 'run'} {os.getpid()}".encode())

    def close(self) -> None:
        """Let go."""
        os.close(self._handle)


def _lock_patiently(handle: int) -> None:
    """Lock a file, or raise ``OSError``. Who looks whether it is held holds it for a moment."""
    for _ in range(TRIES - 1):
        try:
            return _lock(handle)
        except OSError:
            time.sleep(PAUSE_S)
    _lock(handle)


def is_held(file: Path) -> bool:
    """Tell whether a process works on a SQLite database."""
    try:
        handle = os.open(file.with_name(f"{file.name}.lock"), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        _lock(handle)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def _lock(handle: int) -> None:
    """Lock a file, or raise ``OSError``."""
    if os.name == "nt":
        import msvcrt

        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        return
    import fcntl

    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
