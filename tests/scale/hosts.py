"""Hosts as network namespaces: a bridge, and behind each of its ports a namespace with an address of its own, whose link can be cut.

The test's process sits on the bridge itself, so it reaches every host whose link is up. Names carry its process id: what a killed process
left is found and removed by the next one.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.durable.postgres import Server, missing, programs

_SPACE = "loom-{pid}-{name}"
_BRIDGE = "lb{pid}"
_PORT = "lp{pid}x{number}"  # the bridge's end of a host's link; at most 15 letters
_NET = "198.18.{net}.{host}"  # set apart for tests of networks


class Network:
    """Hosts on one bridge."""

    def __init__(self, *names: str) -> None:
        remove_leftovers()
        pid = os.getpid()
        self._net = _free_net()
        self._bridge = _BRIDGE.format(pid=pid)
        self._ports = {name: _PORT.format(pid=pid, number=number) for number, name in enumerate(names, 1)}
        self._spaces = {name: _SPACE.format(pid=pid, name=name) for name in names}
        self.addresses = {name: _NET.format(net=self._net, host=number) for number, name in enumerate(names, 1)}
        try:
            _ip("link", "add", self._bridge, "type", "bridge")
            _ip("address", "add", f"{_NET.format(net=self._net, host=254)}/24", "dev", self._bridge)
            _ip("link", "set", self._bridge, "up")
            for name in names:
                space, port = self._spaces[name], self._ports[name]
                _ip("netns", "add", space)
                _ip("link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", space)
                _ip("link", "set", port, "master", self._bridge, "up")
                for command in (
                    f"address add {self.addresses[name]}/24 dev eth0",
                    "link set eth0 up",
                    "link set lo up",
                ):
                    _ip("-netns", space, *command.split())
        except BaseException:
            self.close()
            raise

    def on(self, name: str) -> tuple[str, ...]:
        """Return what stands before a command so that it runs on a host."""
        return ("ip", "netns", "exec", self._spaces[name])

    def cut(self, name: str) -> None:
        """Cut a host's link, as if its cable was pulled: nothing goes in or out, and nobody is told."""
        _ip("link", "set", self._ports[name], "down")

    def heal(self, name: str) -> None:
        """Make a host's link whole again."""
        _ip("link", "set", self._ports[name], "up")

    def close(self) -> None:
        """Remove it all, and kill what still runs on a host."""
        for space in self._spaces.values():
            _remove_space(space)
        for name in (*self._ports.values(), self._bridge):
            subprocess.run(["ip", "link", "delete", name], capture_output=True, check=False)


def remove_leftovers() -> None:
    """Remove what processes left that are gone."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    for space, pid in re.findall(r"^(loom-(\d+)-\S+)", listed, re.MULTILINE):
        if not _lives(int(pid)):
            _remove_space(space)
    links = subprocess.run(["ip", "-o", "link", "show"], capture_output=True, text=True, check=True).stdout
    for name, pid in re.findall(r"^\d+: (l[bp](\d+)(?:x\d+)?)[@:]", links, re.MULTILINE):
        if not _lives(int(pid)):
            subprocess.run(["ip", "link", "delete", name], capture_output=True, check=False)


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    """A database's host, three of workers, and one of somebody who asks for runs."""
    if sys.platform != "linux" or os.geteuid() != 0:
        missing("root on Linux, for network namespaces,")
    if shutil.which("ip") is None:
        missing("iproute2 (`ip`)")
    network = Network("db", "a", "b", "c", "desk")
    try:
        yield network
    finally:
        network.close()


@pytest.fixture(scope="module")
def far_server(network: Network) -> Iterator[Server]:
    """PostgreSQL on a host of its own."""
    server = Server(programs(), network.addresses["db"], network.on("db"))
    try:
        yield server
    finally:
        network.heal("db")
        server.close()


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {' '.join(arguments)}: {done.stderr}"


def _free_net() -> int:
    shown = subprocess.run(["ip", "-o", "-4", "address", "show"], capture_output=True, text=True, check=True).stdout
    taken = {int(net) for net in re.findall(r"inet 198\.18\.(\d+)\.", shown)}
    return next(net for net in ((os.getpid() + more) % 256 for more in range(256)) if net not in taken)


def _remove_space(space: str) -> None:
    found = subprocess.run(["ip", "netns", "pids", space], capture_output=True, text=True, check=False)
    for pid in found.stdout.split():
        with suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)
    subprocess.run(["ip", "netns", "delete", space], capture_output=True, check=False)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
