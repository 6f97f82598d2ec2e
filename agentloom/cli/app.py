"""The program: its commands, and what becomes of errors that reach the top.

Exit codes: 0 done; 1 findings, or a run that failed; 2 wrong usage or unreadable input; 3 nothing to check in what was named;
70 a fault in agentloom itself; 130 interrupted; 141 the reader of the output has gone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

import click

from agentloom import __version__
from agentloom.cli.cells import visible
from agentloom.cli.console import open_channels, silence
from agentloom.errors import AgentLoomError

INTERNAL_ERROR = 70
INTERRUPTED = 130
READER_GONE = 141


class CommandEntry(NamedTuple):
    """One command: its name, which is its module's too (`-` for `_`), and what it does in a line."""

    name: str
    summary: str


COMMANDS = (
    CommandEntry("run", "Run a workflow."),
    CommandEntry("replay", "Repeat a recorded run, offline."),
    CommandEntry("record", "Bring a recording up to date."),
    CommandEntry("resume", "Go on with a run from where it stopped."),
    CommandEntry("runs", "List the runs that were kept."),
    CommandEntry("cancel", "Stop a run that a database holds."),
    CommandEntry("worker", "Perform the runs that a database holds."),
    CommandEntry("history", "List the runs of this project, with filters."),
    CommandEntry("callback-server", "Take decisions about paused runs over HTTP."),
    CommandEntry("validate", "Check workflow and agent files."),
    CommandEntry("plan", "Show what a workflow will do, and what it may cost."),
    CommandEntry("graph", "Draw a workflow."),
    CommandEntry("init", "Start a project: a first workflow, settings, hooks."),
    CommandEntry("explain", "Explain a diagnostic code."),
    CommandEntry("schema", "Print the JSON Schema of workflow or agent files."),
    CommandEntry("info", "Show versions, extras and which keys are set."),
    CommandEntry("lsp", "Start the language server."),
)

OTHER_NAMES = {"visualize": "graph"}
"""Other names of commands, which no list shows."""


class App(click.Group):
    """The group of ``COMMANDS``. A command's module is imported when the command is called, not before."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of ``COMMANDS``."""
        return [entry.name for entry in COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command's module and return its ``command``."""
        cmd_name = OTHER_NAMES.get(cmd_name, cmd_name)
        if any(entry.name == cmd_name for entry in COMMANDS):
            command: click.Command = import_module(f"agentloom.cli.{cmd_name.replace('-', '_')}").command
            return command
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the arguments begin with, or say which one may be meant."""
        names = self.list_commands(ctx)
        if args[0] not in (*names, *OTHER_NAMES) and not args[0].startswith("-"):
            from agentloom.similar import closest

            near = closest(args[0], names)
            cure = f"did you mean `{near}`?" if near else "`agentloom --help` lists them"
            ctx.fail(f"unknown command `{args[0]}`; {cure}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(entry.name, entry.summary) for entry in COMMANDS])

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any) -> NoReturn:  # type: ignore[override]
        """Run a command and end the process (raise ``SystemExit``) with its exit code; no error gets past with a traceback."""
        open_channels()
        prog = prog_name or "agentloom"
        try:
            try:
                code = self._call(prog, args, extra)
            except OSError:
                raise
            except Exception as error:  # a fault of ours: said in a line, shown in full on request
                code = _internal_error(error)
            sys.stdout.flush()
            sys.stderr.flush()
        except BrokenPipeError:
            silence()
            code = READER_GONE
        except KeyboardInterrupt:
            code = INTERRUPTED
        except OSError as error:
            silence()
            code = 2
            what = "the output can't be written" if error.filename is None else str(error.filename)
            _say(f"{what}: {error.strerror or type(error).__name__}")
        sys.exit(code)

    def _call(self, prog: str, args: Sequence[str] | None, extra: dict[str, Any]) -> int:
        try:
            if "_AGENTLOOM_COMPLETE" in os.environ:  # the shell asks what could come next
                super().main(args, prog, standalone_mode=False, **extra)
                return 0
            with self.make_context(prog, list(sys.argv[1:] if args is None else args), **extra) as context:
                return self.invoke(context) or 0
        except click.exceptions.Exit as done:
            return done.exit_code
        except click.ClickException as error:
            error.show()
            return error.exit_code
        except (click.Abort, KeyboardInterrupt):
            print("interrupted", file=sys.stderr)
            return INTERRUPTED
        except AgentLoomError as error:
            _say(str(error))
            return error.exit_code


def _say(message: str) -> None:
    """Write an error that ends the program."""
    print(f"error: {visible(message, sys.stderr.encoding or 'utf-8')}", file=sys.stderr)


def _internal_error(error: Exception) -> int:
    if os.environ.get("AGENTLOOM_LOG_LEVEL", "").upper() == "DEBUG":
        import traceback

        traceback.print_exception(error)
    words = " ".join(str(error).split())
    _say(f"internal error: {type(error).__name__}: {words}")
    print("This is a fault in agentloom. AGENTLOOM_LOG_LEVEL=DEBUG shows where; please report it.", file=sys.stderr)
    return INTERNAL_ERROR


@click.group(
    cls=App,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="`agentloom COMMAND --help` shows a command's options.",
)
@click.version_option(__version__, prog_name="agentloom", message="%(prog)s %(version)s")
@click.pass_context
def app(context: click.Context) -> None:
    """LLM workflows as YAML: checked while you type, the same in the editor, on the command line and at run time."""
    if any(name.startswith("AGENTLOOM_LOG_") for name in os.environ):
        from agentloom.cli.logs import logging_to_stderr

        context.with_resource(logging_to_stderr())
