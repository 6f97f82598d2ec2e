"""What ``agentloom validate`` prints for machines: each format is one line here, described in ``docs/json.md``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from agentloom.cli.console import Look, is_unicode

Data = dict[str, Any]

FORMATS = ("text", "json", "jsonl", "sarif", "github", "junit")


class Gathered(NamedTuple):
    """Everything that was found: diagnostics as in ``report_json``, names of the files, counts, what couldn't be checked."""

    diagnostics: list[Data]
    files: Sequence[str]
    counts: tuple[int, int, int, int]
    problems: tuple[str, ...] = ()
    strict: bool = False


def at_once(format_: str, diagnostics: Iterable[Data]) -> Iterator[str]:
    """Yield the lines that a format has for each diagnostic by itself; none for formats of one piece."""
    if format_ == "jsonl":
        for diagnostic in diagnostics:
            yield json.dumps(diagnostic)
    elif format_ == "github":
        from agentloom.cli.report_github import annotation

        yield from map(annotation, diagnostics)


def in_the_end(format_: str, gathered: Gathered, look: Look) -> Iterator[str]:
    """Yield the lines of formats that are of one piece."""
    spelled = not is_unicode(look.encoding)
    if format_ == "json":
        from agentloom.cli.report_json import report

        yield json.dumps(report(gathered.diagnostics, len(gathered.files), gathered.counts), ensure_ascii=spelled)
    elif format_ == "sarif":
        from agentloom.cli.report_sarif import sarif

        yield json.dumps(sarif(gathered.diagnostics, gathered.problems), ensure_ascii=spelled, indent=1)
    elif format_ == "junit":
        from agentloom.cli.report_junit import junit

        yield junit(gathered.files, gathered.diagnostics, gathered.problems, gathered.strict)
