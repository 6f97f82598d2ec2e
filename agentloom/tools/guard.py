"""The guard: a process that waits for the end of this one, however it comes, and kills the commands which are then left.

A process that is killed with SIGKILL can't end its commands itself. The guard reads from a pipe which groups of processes there are; when
nobody holds the other end any more, it kills them. It is a shell of less than a megabyte, begun with the first command of a process.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress

# `+ 123` and `- 123` say that a group has begun and ended; the number of an ended one may be given to somebody else.
_WATCH = """
groups=' '
while read -r sign group; do
  case $groups in *" $group "*) groups="${groups%% $group *} ${groups#* $group }" ;; esac
  case $sign in +) groups="$groups$group " ;; esac
done
for group in $groups; do kill -s KILL -- "-$group"; done
"""

# Says its own number to the guard, before anything else happens: this process may be gone as soon as it has begun another.
_ANNOUNCE = "{ trap '' PIPE; echo + $$ >&0; trap - PIPE; } 2>/dev/null; "
_EXEC = 'exec "$@" </dev/null'
_BARE = "unset PWD OLDPWD SHLVL; "

_lock = threading.Lock()
_groups: set[int] = set()
_guard: subprocess.Popen[bytes] | None = None
_way = -1  # the end of the pipe that is ours


def announced(program: Sequence[str], bare: bool = False) -> Sequence[str]:
    """Return the command line that runs ``program`` once it has told the guard of itself. Its standard input must be `guard()`.

    ``bare``: the program's environment has nothing of the shell's that does this.
    """
    return "/bin/sh", "-c", _ANNOUNCE + _BARE * bare + _EXEC, "sh", *program


def guard() -> int:
    """Return the descriptor through which the guard is told; it is begun if there is none. Raises ``OSError`` when it can't be."""
    global _guard, _way
    with _lock:
        if _guard is None or _guard.poll() is not None:
            _close()
            reading, writing = os.pipe()
            try:
                os.set_blocking(writing, False)  # a guard that somebody has stopped must not stop us
                _guard = subprocess.Popen(
                    ("/bin/sh", "-c", _WATCH),
                    stdin=reading,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd="/",
                    env={},
                    start_new_session=True,  # what kills our group leaves it alone
                )
            except BaseException:
                os.close(writing)
                raise
            finally:
                os.close(reading)
            _way = writing
            for group in _groups:
                _say("+", group)
        return _way


def watch(group: int) -> None:
    """Let the guard kill a group of processes when this process is gone."""
    with _lock:
        _groups.add(group)
        _say("+", group)


def forget(group: int) -> None:
    """A group has ended: its number may be somebody else's from now on."""
    with _lock:
        _groups.discard(group)
        _say("-", group)


def _say(sign: str, group: int) -> None:
    if _way >= 0:
        with suppress(OSError):  # it is gone, and the next command begins another; or it doesn't read
            os.write(_way, f"{sign} {group}\n".encode())


def _close() -> None:
    global _way
    if _way >= 0:
        os.close(_way)
        _way = -1


def _end() -> None:
    if _guard is None:
        return
    if not _groups:
        _guard.kill()
    _close()
    with suppress(subprocess.TimeoutExpired):  # a copy of this process, made without a word to Python, holds the pipe
        _guard.wait(1)


def _forked() -> None:
    """In a copy of this process: the guard is not for it, and must not wait for it."""
    global _guard, _lock
    _lock = threading.Lock()
    if _guard is not None:
        _guard.returncode = 0
        _guard = None
    _groups.clear()
    _close()


atexit.register(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
