"""``agentloom validate``: check workflow and agent files."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from agentloom.cli.cells import visible
from agentloom.cli.check import NONE, Counts, Order, Outcome, check_all
from agentloom.cli.collect import STDIN, collect
from agentloom.cli.console import BOLD, COLOR_CHOICES, GREEN, RED, YELLOW, ColorChoice, Look, is_unicode, look_of
from agentloom.cli.report_json import report
from agentloom.cli.selection import parse_codes
from agentloom.cli.tables import count, in_words
from agentloom.diagnostics import SEVERITY_BY_WORD
from agentloom.errors import UsageError

CLEAN, FINDINGS, UNUSABLE, NOTHING = 0, 1, 2, 3


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--format", "format_", type=click.Choice(["text", "json"]), default="text", help="For people, or machines."
)
@click.option("--strict", is_flag=True, help="Let warnings fail the check too.")
@click.option(
    "--severity",
    type=click.Choice(list(SEVERITY_BY_WORD)),
    default="information",
    show_default=True,
    help="The mildest severity to report.",
)
@click.option(
    "--select", multiple=True, metavar="CODES", help="Report only these warnings and hints: AL208,AL5 or names."
)
@click.option("--ignore", multiple=True, metavar="CODES", help="Leave these warnings and hints out.")
@click.option("--stdin-filename", metavar="PATH", help="What `-` is called, and whose folder and settings it takes.")
@click.option("--color", type=click.Choice(COLOR_CHOICES), default="auto", help="When to use colours.")
def command(
    files: tuple[str, ...],
    format_: str,
    strict: bool,
    severity: str,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    stdin_filename: str | None,
    color: ColorChoice,
) -> None:
    """Check workflow and agent files without running them.

    FILE is a file (checked whatever it looks like), a folder (its workflows and agent files, hidden folders and node_modules left
    out), a glob pattern in quotes, or `-` for standard input. A valid file given alone is described: its steps, layers and plan.

    Exit codes: 0 no findings that count; 1 errors, or warnings with --strict; 2 wrong usage, or a file that can't be read; 3 no
    workflow or agent file in what was named.
    """
    if stdin_filename is not None and STDIN not in files:
        raise UsageError("`--stdin-filename` goes with `-`, which reads standard input")
    if strict and severity == "error":
        raise UsageError("`--strict` counts warnings, which `--severity error` leaves out; give one of them")
    found = collect(files, stdin_filename)
    order = Order(
        look=look_of(sys.stdout, color),
        as_data=format_ == "json",
        least=SEVERITY_BY_WORD[severity],
        select=parse_codes("--select", select),
        ignore=parse_codes("--ignore", ignore),
        with_card=format_ == "text" and len(found.targets) == 1,
    )
    problems = _Problems()
    for name, why in found.problems:
        problems.say(f"{name}: {why}")
    tally = _Tally()
    for outcome in check_all(found.targets, order):
        for problem in outcome.settings_problems:
            problems.say(problem)
        if outcome.problem is not None:
            problems.say(f"{outcome.target.shown}: {outcome.problem}")
        elif outcome.ours:
            tally.add(outcome)
            for line in outcome.text:
                print(line)
    if order.as_data:
        print(
            json.dumps(report(tally.data, tally.files, tally.counts), ensure_ascii=not is_unicode(order.look.encoding))
        )
    elif tally.files:
        _print_end(tally, order.look)
        if not (strict and tally.counts[1]):
            for line in tally.card:
                print(line)
    if not tally.files and not problems.said:
        print(f"no workflow or agent file in {', '.join(files)}", file=sys.stderr)
        raise click.exceptions.Exit(NOTHING)
    errors, warnings, _, _ = tally.counts
    if problems.said:
        raise click.exceptions.Exit(UNUSABLE)
    raise click.exceptions.Exit(FINDINGS if errors or (strict and warnings) else CLEAN)


class _Tally:
    """What was found so far."""

    def __init__(self) -> None:
        self.files = 0
        self.counts: Counts = NONE
        self.with_findings: list[tuple[str, Counts]] = []
        self.data: list[dict[str, Any]] = []
        self.card: tuple[str, ...] = ()

    def add(self, outcome: Outcome) -> None:
        """Add one file."""
        self.files += 1
        a, b = self.counts, outcome.counts
        self.counts = (a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3])
        if any(b):
            self.with_findings.append((outcome.target.shown, b))
        self.data.extend(outcome.data)
        self.card = outcome.card


class _Problems:
    """Says on standard error what can't be checked, each once."""

    def __init__(self) -> None:
        self.said: set[str] = set()

    def say(self, problem: str) -> None:
        """Write one problem, unless it was written before."""
        if problem not in self.said:
            self.said.add(problem)
            sys.stdout.flush()
            print(f"error: {visible(problem, sys.stderr.encoding or 'utf-8')}", file=sys.stderr)


def _print_end(tally: _Tally, look: Look) -> None:
    """Print what comes after the findings: a line per file that has some when there are several, the summary."""
    if len(tally.with_findings) > 1:
        for name, counts in tally.with_findings:
            print(f"{visible(name, look.encoding)}: {in_words(counts)}")
    errors, warnings, *_ = tally.counts
    style = RED if errors else YELLOW if warnings else GREEN
    checked = look.paint(f"{count(tally.files, 'file')} checked", BOLD)
    print(f"{checked}: {look.paint(in_words(tally.counts), style)}")
