"""The command line: one file a command, loaded when it is called."""

from __future__ import annotations

import gc
import os
import sys
from typing import NoReturn

RUNNING = ("run", "resume", "replay")
"""The commands that a signal to stop ends as Ctrl-C does, from the first moment on: whoever stops a run gets 130."""


def main() -> NoReturn:
    """Run the program that the process's arguments name, and end the process with its exit code.

    Most calls last as long as it takes to start: nothing they make is garbage, and there is no need to take the interpreter apart
    at the end. Together that is a tenth of the time. Commands that go on for longer call ``collect_garbage``.
    """
    gc.disable()
    code = 130
    try:
        if sys.argv[1:2] and sys.argv[1] in RUNNING:
            from agentloom.cli.signals import heed_signals

            heed_signals()
        from agentloom.cli.app import app

        app.main(prog_name="agentloom")
    except SystemExit as done:
        code = done.code if isinstance(done.code, int) else 1
    except KeyboardInterrupt:  # while loading
        pass
    os._exit(code)  # both outputs are flushed


def collect_garbage() -> None:
    """Collect garbage from here on; what is loaded by now stays for good."""
    gc.freeze()
    gc.enable()
