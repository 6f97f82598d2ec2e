"""``agentloom lsp``: start the language server."""

from __future__ import annotations

import click

from agentloom.errors import UsageError


@click.command()
@click.option("--stdio", is_flag=True, help="Talk over standard input and output (the default).")
@click.option("--tcp", metavar="HOST:PORT", help="Listen on a socket instead, for debugging.")
def command(stdio: bool, tcp: str | None) -> None:
    """Start the language server. Editors do this; lsp/README.md shows how to set each of them up."""
    if tcp is not None and stdio:
        raise UsageError("`--stdio` and `--tcp` contradict each other; give one of them")
    address = None if tcp is None else parse_address(tcp)
    from agentloom_lsp.server import serve

    serve(address)


def parse_address(text: str) -> tuple[str, int]:
    """Return host and port of ``HOST:PORT`` (``[::1]:4000`` for IPv6, ``:4000`` for loopback). Raises ``UsageError``."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise UsageError(f"`--tcp {text}` is not HOST:PORT, such as 127.0.0.1:4000")
    return host.strip("[]") or "127.0.0.1", int(port)
