"""Start of the server: takes over the streams, answers the first request, then loads the rest and serves.

``agentloom lsp`` and ``python -m agentloom_lsp`` both end up here. Only the standard library is loaded before the first answer.
"""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Callable
from typing import NoReturn

from agentloom_lsp.handshake import shake_hands
from agentloom_lsp.transport import Channel, accept_tcp, take_stdio

SWITCH = 0.001
"""Seconds that the checking thread may keep the interpreter while the one that answers the client waits; Python's own 0.005 is
felt twice in every answer."""


def serve(address: tuple[str, int] | None = None) -> NoReturn:
    """Serve one client over standard input and output, or over TCP at (host, port), and end the process.

    The exit code is 0 after an orderly shutdown, 1 when the client just left, 2 when the address can't be had.
    """
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="agentloom lsp: %(message)s")
    logging.getLogger("pygls").setLevel(logging.CRITICAL)  # what it logs is answered or logged by us
    gc.disable()  # loading makes many objects and no garbage
    sys.setswitchinterval(SWITCH)
    try:
        code = run(take_stdio() if address is None else accept_tcp(*address, _say_address), _stay_loaded)
    except OSError as error:
        logging.error("%s", error)
        code = 2
    except KeyboardInterrupt:
        code = 130
    raise SystemExit(code)


def run(channel: Channel, loaded: Callable[[], None] = lambda: None) -> int:
    """Serve the client on a channel until it leaves; return the exit code. ``loaded`` is called when everything is."""
    client = shake_hands(channel.receive, channel.send)
    if client is None:
        return 1
    # Heavy, and not needed for the first answer.
    from agentloom.analysis.analyze import AnalysisCache, analyze
    from agentloom_lsp.dispatch import run_session

    return run_session(channel, client, analyze, AnalysisCache, loaded)


def _stay_loaded() -> None:
    """Have the collector of garbage leave alone what is loaded, which stays for good, and look less often at the rest.

    A large document is some hundred thousand objects and hardly a cycle among them; looking through them all doubled the time
    of every tenth check.
    """
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)
    gc.enable()


def _say_address(host: str, port: int) -> None:
    sys.stderr.write(f"agentloom lsp: listening on {host}:{port}\n")
    sys.stderr.flush()
