"""The sandbox: what a built-in tool asks before it touches anything. Without a policy nothing is checked.

A policy is made of `config.sandbox`; what isn't listed there is refused. It holds while a tool is called inside ``enforced``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextvars import ContextVar, Token
from pathlib import Path
from typing import Protocol

from agentloom.errors import SandboxViolationError
from agentloom.records import record
from agentloom.tools.addresses import Reach
from agentloom.tools.trees import READ, WRITE, Swapped, Unresolvable, inside, is_regular, open_real, real_path

_LONGEST_SHOWN = 200
"""Characters of a path that are shown: the last ones tell more."""

_KEPT = ("PATH", "HOME", "LANG", "TMPDIR", *(("SYSTEMROOT", "PATHEXT") if os.name == "nt" else ()))


class Rules(Protocol):
    """`config.sandbox`."""

    @property
    def enabled(self) -> bool: ...
    @property
    def allowed_commands(self) -> Sequence[str]: ...
    @property
    def allowed_paths(self) -> Sequence[str]: ...
    @property
    def readable_paths(self) -> Sequence[str]: ...
    @property
    def writable_paths(self) -> Sequence[str]: ...
    @property
    def allow_network(self) -> bool: ...
    @property
    def allowed_domains(self) -> Sequence[str]: ...
    @property
    def allowed_schemes(self) -> Sequence[str]: ...
    @property
    def max_write_bytes(self) -> int | None: ...
    @property
    def danger_opt_in(self) -> Sequence[str]: ...


@record()
class Policy:
    """What tools may do. ``reads`` and ``writes`` are real paths of folders and files; empty ``domains`` allow every public host.

    ``trusted`` hosts may have internal addresses.

    ``who`` is the tool that asks, ``shown`` the path as the user wrote it; both stand in refusals, which are ``SandboxViolationError``.
    """

    commands: frozenset[str] = frozenset()
    danger: frozenset[str] = frozenset()
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    network: bool = True
    domains: tuple[str, ...] = ()
    trusted: tuple[str, ...] = ()
    schemes: tuple[str, ...] = ("http", "https")
    max_write_bytes: int | None = None

    def readable(self, path: str | Path, who: str = "file_read", shown: str | None = None) -> str:
        """Return where a path leads that may be read."""
        found = self._resolved(path, who, shown)
        if not inside(found, self.reads):
            raise refuse(who, f"`{_shown(shown or path)}` may not be read; add its folder to `readable_paths`")
        return found

    def writable(self, path: str | Path, size: int = 0, who: str = "file_write", shown: str | None = None) -> str:
        """Return where a path leads that may be written with ``size`` bytes."""
        found = self._resolved(path, who, shown)
        if not inside(found, self.writes):
            raise refuse(who, f"`{_shown(shown or path)}` may not be written; add its folder to `writable_paths`")
        if self.max_write_bytes is not None and size > self.max_write_bytes:
            raise refuse(who, f"{size} bytes are more than `max_write_bytes` ({self.max_write_bytes}) allows")
        return found

    def open_to_read(self, path: str | Path, who: str = "file_read", shown: str | None = None) -> int:
        """Open a file that may be read; return its descriptor. Raises ``OSError``, too; it may be no regular file."""
        try:
            return open_real(self.readable(path, who, shown), READ)
        except Swapped:
            raise refuse(who, f"`{_shown(shown or path)}` changed while it was opened") from None

    def open_to_write(self, path: str | Path, size: int, who: str = "file_write", shown: str | None = None) -> int:
        """Open a file that may be written with ``size`` bytes, empty, its folders made; return its descriptor. Raises ``OSError``, too."""
        found = self.writable(path, size, who, shown)
        try:
            descriptor = open_real(found, WRITE, make_folders=True)
        except Swapped:
            raise refuse(who, f"`{_shown(shown or path)}` changed while it was opened") from None
        try:
            if not is_regular(descriptor):
                raise OSError(f"`{_shown(shown or path)}` is not a regular file")
            os.ftruncate(descriptor, 0)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def reach(self, who: str = "http_request") -> Reach:
        """Return where requests may go."""
        return Reach(who, self.network, self.domains, self.trusted, schemes=self.schemes)

    def environment(self) -> dict[str, str]:
        """Return the environment that a command gets: nothing of this process's own but what every program needs."""
        import tempfile  # only for commands in a sandbox

        found = {name: os.environ[name] for name in _KEPT if name in os.environ}
        return {"PATH": os.defpath, "LANG": "C.UTF-8", "TMPDIR": tempfile.gettempdir()} | found

    def _resolved(self, path: object, who: str, shown: str | None) -> str:
        try:
            return real_path(path, os.getcwd())
        except Unresolvable as error:
            raise refuse(who, f"`{_shown(shown or path)}` can't be resolved: {error}") from None


def policy_of(rules: Rules | None, folder: Path | None = None) -> Policy | None:
    """Return the policy for `config.sandbox`; None while it is off. Its relative paths start at ``folder``, or at the working directory."""
    if rules is None or not rules.enabled:
        return None
    both = _trees(rules.allowed_paths, folder)
    return Policy(
        commands=frozenset(rules.allowed_commands),
        danger=frozenset(rules.danger_opt_in),
        reads=both + _trees(rules.readable_paths, folder),
        writes=both + _trees(rules.writable_paths, folder),
        network=rules.allow_network,
        domains=tuple(rules.allowed_domains),
        trusted=tuple(rules.allowed_domains),
        schemes=tuple(rules.allowed_schemes),
        max_write_bytes=rules.max_write_bytes,
    )


def narrowed(one: Policy | None, other: Policy | None) -> Policy | None:
    """Return the policy that allows what both allow."""
    if one is None or other is None:
        return one or other
    domains = one.domains or other.domains
    if one.domains and other.domains:
        domains = _common(one.domains, other.domains)
    limits = [limit for limit in (one.max_write_bytes, other.max_write_bytes) if limit is not None]
    return Policy(
        commands=one.commands & other.commands,
        danger=one.danger & other.danger,
        reads=_overlap(one.reads, other.reads),
        writes=_overlap(one.writes, other.writes),
        network=one.network and other.network and bool(domains or not (one.domains and other.domains)),
        domains=domains,
        trusted=_common(one.trusted, other.trusted),
        schemes=_common(one.schemes, other.schemes),
        max_write_bytes=min(limits, default=None),
    )


def refuse(who: str, why: str) -> SandboxViolationError:
    """Return the refusal of a tool."""
    return SandboxViolationError(f"Sandbox violation ({who}): {why}")


_policy: ContextVar[Policy | None] = ContextVar("agentloom_policy", default=None)


def current_policy() -> Policy | None:
    """Return the policy of the workflow whose step runs this tool; None when nothing is checked."""
    return _policy.get()


class enforced:
    """Let the tools that are called inside the block obey a policy, in threads and tasks too."""

    __slots__ = ("_own", "_token")

    def __init__(self, policy: Policy | None) -> None:
        self._own = policy

    def __enter__(self) -> None:
        self._token: Token[Policy | None] = _policy.set(self._own)

    def __exit__(self, *_: object) -> None:
        _policy.reset(self._token)


def _trees(paths: Sequence[str], folder: Path | None) -> tuple[str, ...]:
    """Return the real paths of what is listed. What can't be resolved allows nothing, and neither does an empty text."""
    found = []
    for path in paths:
        try:
            if path.strip():
                found.append(real_path(path, os.path.abspath(folder or ".")))
        except Unresolvable:
            continue
    return tuple(found)


def _common(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in one if name in other)


def _overlap(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    found = [tree for tree in one if inside(tree, other)] + [tree for tree in other if inside(tree, one)]
    return tuple(dict.fromkeys(found))


def _shown(path: object) -> str:
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else type(path).__name__
    text = text if isinstance(text, str) else "bytes"
    text = "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)
    return text if len(text) <= _LONGEST_SHOWN else "…" + text[1 - _LONGEST_SHOWN :]
