"""``agentloom callback-server``: decisions about runs that wait at gates, over HTTP."""

from __future__ import annotations

import logging
import sys
from contextlib import ExitStack

import click

from agentloom.cli import collect_garbage
from agentloom.cli.options import LITE, ON, checkpoint_dir_option, place
from agentloom.cli.stores import checkpointer_of
from agentloom.errors import UsageError

TOKEN = "AGENTLOOM_CALLBACK_TOKEN"


@click.command()
@checkpoint_dir_option()
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8642,
    show_default=True,
    help="The port to listen on; 0 takes a free one.",
)
@click.option(
    "--token", envvar=TOKEN, help=f"What requests must bring; better in ${TOKEN}, where other users can't see it."
)
@click.option(
    "--max-runs", type=click.IntRange(1, 1000), default=8, show_default=True, help="How many runs go on at once."
)
@click.option(
    "--grace",
    type=click.FloatRange(0, 3600),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="How long runs may still take when the server is stopped.",
)
@ON
@LITE
def command(
    checkpoint_dir: str | None,
    host: str,
    port: int,
    token: str | None,
    max_runs: int,
    grace: float,
    on: str | None,
) -> None:
    """Take decisions about runs that wait at approval gates, over HTTP and on a page.

    GET / shows what waits, with buttons; GET /pending lists it as JSON; POST /approve/RUN and /reject/RUN decide, and the run goes on.
    Gates whose `timeout_seconds` are over are resumed by themselves.

    With --on, the runs are those of a database, and its workers go on with them; a SQLite file that nobody works on gets a worker.

    Exit codes: 0 stopped by Ctrl-C or SIGTERM; 1 the database can't be used; 2 wrong usage.
    """
    from agentloom.callbacks.access import is_loopback

    if token is not None and not token.strip():
        raise UsageError(f"the token is empty; give one with `--token` or `${TOKEN}`, or none at all")
    if token is None and not is_loopback(host):
        raise UsageError(f"`--host {host}` lets other machines in, so a token is needed: set `${TOKEN}`")
    where = place(on)
    if where is not None and checkpoint_dir is not None:
        raise UsageError("`--checkpoint-dir` doesn't go with `--on`")
    from agentloom.callbacks.server import Settings, serve

    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(message)s")
    logging.getLogger("agentloom").setLevel(logging.INFO)

    with ExitStack() as stack:
        if where is None:
            from agentloom.callbacks.deciding import in_files

            store = checkpointer_of(checkpoint_dir)
            kept, decisions = str(store.folder), in_files(store, max_runs)
        else:
            from agentloom.cli.durable import decisions_on

            kept, decisions = where.name, stack.enter_context(decisions_on(where, max_runs, grace))

        def ready(url: str) -> None:
            print(f"Waiting for decisions about the runs in {kept} on {url}", flush=True)

        collect_garbage()
        serve(Settings(decisions, host, port, token and token.strip(), grace), ready)
