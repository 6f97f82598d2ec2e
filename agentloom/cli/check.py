"""Check one file after another, here or in several processes; what comes back is ready to print."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agentloom.analysis.analyze import analyze
from agentloom.analysis.classify import classify
from agentloom.analysis.context import Context, ReadText, context_for, read_from_disk
from agentloom.analysis.document import WorkflowDocument
from agentloom.analysis.rules.registry import settings_problems
from agentloom.analysis.settings import Settings, SettingsFinder
from agentloom.cli import collect_garbage
from agentloom.cli.card import card
from agentloom.cli.collect import Target
from agentloom.cli.console import Look
from agentloom.cli.reading import Read, Unreadable, name_of, read_file, read_stdin
from agentloom.cli.render import Place, render
from agentloom.cli.repair import Repair, Unwritten, repair
from agentloom.cli.report_json import diagnostic_json
from agentloom.diagnostics import Diagnostic, Severity
from agentloom.text import LineTable, Source

BYTES_WORTH_A_PROCESS = 150_000
"""Less text than this is checked in one process: forking and collecting would take longer."""

MOST_KEPT = 16_000_000
"""Characters of files' texts that are kept for other files that run them."""

Counts = tuple[int, int, int, int]
"""Errors, warnings, informations, hints."""

NONE: Counts = (0, 0, 0, 0)


class Order(NamedTuple):
    """What is wanted of a check.

    ``least`` is the mildest severity that is reported; ``select`` and ``ignore`` take the place of the settings' own where they
    aren't empty; ``with_card`` asks for what a valid file holds, ``with_codes`` for how often each code was found.
    """

    look: Look
    as_data: bool = False
    least: Severity = Severity.INFORMATION
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    with_card: bool = False
    with_codes: bool = False
    repair: Repair | None = None
    change: Callable[[Settings], Settings] | None = None
    """Returns other settings to check by."""


class Outcome(NamedTuple):
    """What became of one file.

    ``problem`` says why it couldn't be checked, ``settings_problems`` what is wrong in the settings that hold for it; ``ours`` that it
    is a workflow or agent file. ``text`` has the lines to print, or ``data`` the diagnostics as plain data; ``codes`` counts them.
    ``fixable`` are those left that a safe fix would cure, ``curable`` any fix; ``fixed`` those that were cured, or would be:
    ``difference`` is then the change.
    """

    target: Target
    problem: str | None = None
    settings_problems: tuple[str, ...] = ()
    ours: bool = True
    counts: Counts = NONE
    text: tuple[str, ...] = ()
    data: tuple[dict[str, Any], ...] = ()
    card: tuple[str, ...] = ()
    codes: tuple[tuple[str, int], ...] = ()
    fixable: int = 0
    curable: int = 0
    fixed: int = 0
    difference: str = ""


class Checker:
    """Checks files by one order. Remembers settings per folder, and texts: a child that many files run is read once."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self._finder = SettingsFinder()
        self._texts = Texts()

    def learn(self, targets: Iterable[Target]) -> None:
        """Learn the tools of all projects, before the work is divided among processes that would each do so."""
        for target in targets:
            if target.path:
                context_of(self._settings(Path(os.path.abspath(target.path))))

    def check(self, target: Target) -> Outcome:
        """Read and analyse one file; a file that can't be checked doesn't stop the others."""
        try:
            read = read_stdin() if target.is_stdin else read_file(target.path, pipes=target.named)
            return self._check(target, read)
        except (Unreadable, Unwritten) as error:
            return Outcome(target, problem=str(error))
        except Exception as error:
            import logging  # 4 ms, for what should never happen

            logging.getLogger(__name__).debug("The check of %s crashed", target.shown, exc_info=True)
            return Outcome(target, problem=f"internal error, please report it: {type(error).__name__}: {error}")

    def _check(self, target: Target, read: Read) -> Outcome:
        path = Path(os.path.abspath(target.path)) if target.path else None
        settings = self._settings(path)
        if not target.named and classify(read.text, path, settings) is None:
            return Outcome(target, ours=False)
        if path is not None and read.fault is None and not target.is_stdin:
            self._texts.keep(path, read.text)
        context = context_of(settings, self._texts.read)
        document = analyze(source_of(read.text, path), context, found=read.faults)
        if self.order.repair is None:
            return self._outcome(target, document)
        if read.fault is not None:
            return self._outcome(target, document)  # the text isn't what the bytes say; nothing may be written
        repaired = repair(document, target.shown, read.data, self.order.repair, self.order.least)
        return self._outcome(target, repaired.document)._replace(fixed=repaired.number, difference=repaired.difference)

    def _settings(self, path: Path | None) -> Settings:
        """Return the settings for a file, those of the working directory for standard input without a name."""
        settings = self._finder.find(path or Path(os.path.abspath("stdin")))
        order = self.order
        if order.select or order.ignore:
            settings = settings._replace(select=order.select or settings.select, ignore=order.ignore or settings.ignore)
        if order.change is not None:
            settings = order.change(settings)
        return settings

    def _outcome(self, target: Target, document: WorkflowDocument) -> Outcome:
        order = self.order
        shown = [d for d in document.diagnostics if d.severity <= order.least]
        elsewhere = Elsewhere(document.context)
        return Outcome(
            target,
            settings_problems=settings_problems(document.context.settings),
            counts=count_severities(shown),
            text=() if order.as_data else tuple(rendered(shown, target.shown, document, order.look)),
            data=tuple(
                diagnostic_json(d, target.shown, document.lines, elsewhere.find) for d in shown if order.as_data
            ),
            card=tuple(card(document, order.look)) if order.with_card and document.ok else (),
            codes=tuple(Counter(d.code for d in shown).items()) if order.with_codes else (),
            fixable=sum(any(fix.safe for fix in d.fixes) for d in shown),
            curable=sum(bool(d.fixes) for d in shown),
        )


def rendered(diagnostics: Iterable[Diagnostic], shown: str, document: WorkflowDocument, look: Look) -> Iterator[str]:
    """Yield the lines about a document's findings, a blank one after each; ``shown`` is what the file is called."""
    elsewhere = Elsewhere(document.context)
    for diagnostic in diagnostics:
        yield from render(diagnostic, shown, document.lines, look, elsewhere.find)
        yield ""


def source_of(text: str, path: Path | None) -> Source:
    """Return a text as the source that the analysis takes; without a path it has no folder either."""
    return Source("<stdin>" if path is None else str(path), text)


def context_of(settings: Settings, read_text: ReadText = read_from_disk) -> Context:
    """Return what the command line knows besides the text."""
    return context_for(settings, read_text)


class Texts:
    """Texts of files, read once as long as they stay the same. Holds up to ``MOST_KEPT`` characters, and then begins anew."""

    def __init__(self) -> None:
        self._kept: dict[Path, tuple[tuple[int, int, int], str]] = {}
        self._size = 0

    def read(self, path: Path) -> str:
        """Return a file's text. Raises what ``read_from_disk`` raises."""
        known = self._kept.get(path)
        if known is not None and known[0] == _stamp(path):
            return known[1]
        text = read_from_disk(path)
        self.keep(path, text)
        return text

    def keep(self, path: Path, text: str) -> None:
        """Keep a text that was just read."""
        stamp = _stamp(path)
        if stamp is None:
            return
        self._size += len(text)
        if self._size > MOST_KEPT:
            self._kept.clear()
            self._size = len(text)
        self._kept[path] = (stamp, text)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """Return what changes when a file does."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


class Elsewhere:
    """Names and lines of other files that findings point into, each read once."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._known: dict[str, Place] = {}

    def find(self, path: str) -> Place:
        """Return what to call a file, and its lines if it can be read."""
        if path not in self._known:
            try:
                lines: LineTable | None = LineTable(self._context.read_text(Path(path)))
            except (OSError, ValueError):
                lines = None
            self._known[path] = (name_of(path), lines)
        return self._known[path]


def count_severities(diagnostics: Sequence[Diagnostic]) -> Counts:
    """Return how many of each severity there are."""
    found = [0, 0, 0, 0]
    for diagnostic in diagnostics:
        found[diagnostic.severity - 1] += 1
    return (found[0], found[1], found[2], found[3])


def check_all(targets: Sequence[Target], order: Order) -> Iterator[Outcome]:
    """Yield the outcome of each file, in order; large sets are spread over the processors."""
    checker = Checker(order)
    if len(targets) > 1:
        checker.learn(targets)
        collect_garbage()
        if _much(targets):
            from agentloom.cli.parallel import processors, spread  # only where it pays

            yield from spread(checker.check, targets, min(processors(), len(targets)), _lost)
            return
    yield from map(checker.check, targets)


def _much(targets: Sequence[Target]) -> bool:
    """Tell whether there is enough text to pay for processes. Standard input can be read by one process only."""
    total = 0
    for target in targets:
        if target.is_stdin:
            return False
        try:
            total += os.path.getsize(target.path)
        except OSError:
            continue
    return total >= BYTES_WORTH_A_PROCESS


def _lost(target: Target, why: str) -> Outcome:
    return Outcome(target, problem=why)
