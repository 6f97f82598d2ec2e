"""``agentloom validate``: check workflow and agent files."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from agentloom.analysis.rules.registry import RULE_BY_CODE
from agentloom.cli.cells import visible
from agentloom.cli.check import NONE, Counts, Order, Outcome, check_all
from agentloom.cli.collect import STDIN, collect
from agentloom.cli.console import BOLD, GREEN, RED, YELLOW, ColorChoice, Look, look_of
from agentloom.cli.options import COLOR, ON, SHARED, STDIN_FILENAME, elsewhere, place
from agentloom.cli.repair import Repair
from agentloom.cli.reports import FORMATS, Data, Gathered, at_once, in_the_end
from agentloom.cli.selection import parse_codes
from agentloom.cli.tables import count, in_words
from agentloom.diagnostics import SEVERITY_BY_WORD
from agentloom.errors import UsageError

if TYPE_CHECKING:
    from agentloom.durable.dbos.place import Place

CLEAN, FINDINGS, UNUSABLE, NOTHING = 0, 1, 2, 3


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="For people, or machines.",
)
@click.option("--fix", is_flag=True, help="Carry out the safe fixes.")
@click.option("--diff", is_flag=True, help="Show what --fix would change, and change nothing.")
@click.option("--unsafe-fixes", is_flag=True, help="With --fix or --diff: also fixes that may change what is meant.")
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
@click.option("--statistics", is_flag=True, help="Count findings by code instead of showing them.")
@ON
@SHARED
@click.option("--exit-zero", is_flag=True, help="Exit with 0 whatever is found.")
@STDIN_FILENAME
@COLOR
@click.pass_context
def command(
    context: click.Context,
    files: tuple[str, ...],
    format_: str,
    fix: bool,
    diff: bool,
    unsafe_fixes: bool,
    strict: bool,
    severity: str,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    statistics: bool,
    on: str | None,
    shared: str | None,
    exit_zero: bool,
    stdin_filename: str | None,
    color: ColorChoice,
) -> None:
    """Check workflow and agent files without running them. With --on, check them for workers on other machines.

    FILE is a file (checked whatever it looks like), a folder (its workflows and agent files, hidden folders and node_modules left
    out), a glob pattern in quotes, or `-` for standard input. A valid file given alone is described: its steps, layers and plan; with
    --on also which providers and tools its runs need, and how many of the workers there have them.

    Exit codes: 0 no findings that count; 1 errors, or warnings with --strict, or changes with --diff; 2 wrong usage, or a file that
    can't be read; 3 no workflow or agent file in what was named.
    """
    if stdin_filename is not None and STDIN not in files:
        raise UsageError("`--stdin-filename` goes with `-`, which reads standard input")
    if strict and severity == "error":
        raise UsageError("`--strict` counts warnings, which `--severity error` leaves out; give one of them")
    repair = _repair(fix, diff, unsafe_fixes, format_, STDIN in files)
    if statistics and (format_ != "text" or diff):
        raise UsageError("`--statistics` is a text of its own; leave out `--format` and `--diff`")
    where = place(on)
    found = collect(files, stdin_filename)
    order = Order(
        look=look_of(sys.stdout, color),
        as_data=format_ != "text",
        least=SEVERITY_BY_WORD[severity],
        select=parse_codes("--select", select),
        ignore=parse_codes("--ignore", ignore),
        with_card=format_ == "text" and len(found.targets) == 1 and not diff and not statistics,
        with_codes=statistics,
        repair=repair,
        change=None if where is None else partial(elsewhere, where=where, shared=shared),
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
            for line in _lines_of(outcome, format_, diff, statistics):
                print(line)
    if order.as_data:
        gathered = Gathered(tally.data, tally.names, tally.counts, tuple(problems.said), strict)
        for line in in_the_end(format_, gathered, order.look):
            print(line)
    elif diff:
        _print_changes(tally)
    elif tally.names:
        _print_end(tally, order, statistics)
        if not (strict and tally.counts[1]):
            for line in tally.card:
                print(line)
        has_plan = "  plan" in tally.card  # a workflow, and one that can be run
        # AGENTLOOM_ON alone isn't enough: a check on every save asks no database.
        is_asked = context.get_parameter_source("on") is ParameterSource.COMMANDLINE
        if where is not None and is_asked and has_plan and files != (STDIN,):
            _print_needed(where, files[0], order.look)
    if not tally.names and not problems.said:
        print(f"no workflow or agent file in {', '.join(files)}", file=sys.stderr)
        raise click.exceptions.Exit(NOTHING)
    errors, warnings, _, _ = tally.counts
    if problems.said:
        raise click.exceptions.Exit(UNUSABLE)
    failed = errors or (strict and warnings) or (diff and tally.changed)
    raise click.exceptions.Exit(FINDINGS if failed and not exit_zero else CLEAN)


def _repair(fix: bool, diff: bool, unsafe: bool, format_: str, is_stdin: bool) -> Repair | None:
    """Return what the options say about fixing. Raises ``UsageError`` for what can't go together."""
    if unsafe and not fix and not diff:
        raise UsageError("`--unsafe-fixes` goes with `--fix` or `--diff`")
    if diff and format_ != "text":
        raise UsageError("`--diff` prints a difference; leave out `--format`")
    if fix and not diff and is_stdin:
        raise UsageError("`--fix` changes files; for standard input there is `--diff`")
    return Repair(write=not diff, unsafe=unsafe) if fix or diff else None


def _lines_of(outcome: Outcome, format_: str, diff: bool, statistics: bool) -> Iterable[str]:
    """Return what is printed as soon as a file is checked."""
    if format_ != "text":
        return at_once(format_, outcome.data)
    if diff:
        return [outcome.difference.removesuffix("\n")] if outcome.difference else []
    return [] if statistics else outcome.text


class _Tally:
    """What was found so far."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.counts: Counts = NONE
        self.with_findings: list[tuple[str, Counts]] = []
        self.data: list[Data] = []
        self.card: tuple[str, ...] = ()
        self.codes: Counter[str] = Counter()
        self.fixable = 0
        self.curable = 0
        self.fixed = 0
        self.changed = 0

    def add(self, outcome: Outcome) -> None:
        """Add one file."""
        self.names.append(outcome.target.shown)
        a, b = self.counts, outcome.counts
        self.counts = (a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3])
        if any(b):
            self.with_findings.append((outcome.target.shown, b))
        self.data.extend(outcome.data)
        self.card = outcome.card
        self.codes.update(dict(outcome.codes))
        self.fixable += outcome.fixable
        self.curable += outcome.curable
        self.fixed += outcome.fixed
        self.changed += bool(outcome.fixed)


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


def _print_changes(tally: _Tally) -> None:
    """Say on standard error what a difference comes to: standard output holds nothing else, so that it can be applied."""
    if tally.changed:
        sys.stdout.flush()
        print(f"{count(tally.changed, 'file')} would change: {count(tally.fixed, 'fix', 'fixes')}", file=sys.stderr)


def _print_end(tally: _Tally, order: Order, statistics: bool) -> None:
    """Print what comes after the findings: a line per file that has some when there are several, the summary."""
    look = order.look
    if statistics:
        for line in _statistics(tally.codes):
            print(line)
    elif len(tally.with_findings) > 1:
        for name, counts in tally.with_findings:
            print(f"{visible(name, look.encoding)}: {in_words(counts)}")
    errors, warnings, *_ = tally.counts
    style = RED if errors else YELLOW if warnings else GREEN
    checked = look.paint(f"{count(len(tally.names), 'file')} checked", BOLD)
    cured = f"{tally.fixed} fixed, " if tally.fixed else ""
    left = " left" if tally.fixed else ""
    print(f"{checked}: {cured}{look.paint(in_words(tally.counts), style)}{left}")
    if tally.fixable and order.repair is None:
        more = f" ({tally.curable} with `--unsafe-fixes`)" if tally.curable > tally.fixable else ""
        print(f"{look.paint('fix:', GREEN)} `--fix` cures {tally.fixable} of them{more}; `--diff` shows how")


def _print_needed(where: Place, file: str, look: Look) -> None:
    """Say what a workflow needs of the workers of a place."""
    from agentloom.cli.needed import needed

    for line in needed(where, Path(file), look):
        print(line)


def _statistics(codes: Counter[str]) -> Iterable[str]:
    """Yield a line for each code, the most frequent first."""
    width = len(str(max(codes.values(), default=0)))
    for code, number in sorted(codes.items(), key=lambda item: (-item[1], item[0])):
        rule = RULE_BY_CODE[code]
        yield f"  {number:>{width}}  {code}  {rule.severity.word:11}  {rule.name}"
