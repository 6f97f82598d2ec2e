"""``python -m agentloom_lsp``: the language server without the command line around it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

from agentloom_lsp.server import serve

USAGE = "usage: python -m agentloom_lsp [--stdio | --tcp HOST:PORT]\n"


def main(arguments: Sequence[str]) -> NoReturn:
    """Start the server; `--stdio` is the default and what many clients pass."""
    if list(arguments) in ([], ["--stdio"]):
        serve()
    if len(arguments) == 2 and arguments[0] == "--tcp":
        host, colon, port = arguments[1].rpartition(":")
        if colon and port.isascii() and port.isdigit() and int(port) < 65536:
            serve((host.strip("[]") or "127.0.0.1", int(port)))
    sys.stderr.write(USAGE)
    raise SystemExit(2)


if __name__ == "__main__":
    main(sys.argv[1:])
