"""AL006: tabs that indent. A tab stands for as many columns as make the text around it fit."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from agentloom.diagnostics import Edit, Finding, Fix
from agentloom.syntax.edited import Edited
from agentloom.text import Span

WIDTHS = (2, 4, 8, 3, 1, 0)
"""Columns that a tab may stand for, the likely ones first."""

_LINE = re.compile(r"(?P<lead>[ \t]*(?:-[ \t]+)*)(?P<rest>[^\r\n]*)(?:\r\n|\r|\n|\Z)")
_RUN = re.compile(r"[ \t]*\t[ \t]*")
_OPENS = re.compile(r":[ \t]*(?:#.*)?\Z")
_BLOCK = re.compile(r"(?:.*[ \t])?[|>](?:[+-]?[1-9]?|[1-9][+-])[ \t]*(?:#.*)?\Z")


class _Tabbed(NamedTuple):
    start: int
    lead: str
    number: int
    """Of the line, to tell neighbours."""

    above: tuple[int, bool]
    """The column of the words in the line above, and whether that line opens a block."""

    def follows(self, width: int) -> bool:
        """Tell whether the line then stands where the line above lets it stand."""
        column, opens = self.above
        return self.column(width) > column if opens else self.column(width) == column

    def spaces(self, width: int) -> list[Edit]:
        """Return the edits that put ``width`` spaces for each tab, and one for a tab behind a dash."""
        dash = self.lead.find("-")
        edits: list[Edit] = []
        for run in _RUN.finditer(self.lead):
            per_tab = width if dash < 0 or run.start() < dash else 1
            edits.append(Edit(Span(*run.span()).shift(self.start), run[0].replace("\t", " " * per_tab)))
        return edits

    def column(self, width: int) -> int:
        """Return the column at which the line's words begin when a tab is ``width`` columns wide."""
        return len(self.lead) + sum(len(edit.text) - (edit.span.end - edit.span.start) for edit in self.spaces(width))


def without_tabs(text: str, composes: Callable[[str], bool]) -> tuple[Edited, list[Finding]]:
    """Return the text with spaces for the tabs that indent it, and a finding for every run of lines that has some.

    Findings are in offsets of ``text``; their fixes write the same spaces.
    """
    if "\t" not in text:
        return Edited(text), []
    tabbed, columns = _scan(text)
    if not tabbed:
        return Edited(text), []
    best: list[Edit] = []
    score = -1
    for width in WIDTHS:
        edits = [edit for line in tabbed for edit in line.spaces(width)]
        edited = Edited(text, edits)
        if composes(edited.text):
            best = edits
            break
        fitting = sum(line.column(width) in columns for line in tabbed) + len(tabbed) * tabbed[0].follows(width)
        if fitting > score:
            best, score = edits, fitting
    return Edited(text, best), _findings(tabbed, best)


def _scan(text: str) -> tuple[list[_Tabbed], set[int]]:
    """Return the lines that tabs indent, and the columns at which words begin in the others."""
    tabbed: list[_Tabbed] = []
    columns: set[int] = set()
    block_column = -1
    block_indent = -1
    above = (0, False)
    for number, match in enumerate(_LINE.finditer(text)):
        lead, rest = match["lead"], match["rest"]
        if not rest or rest[0] == "#":
            continue
        spaces = len(lead) - len(lead.lstrip(" "))
        if block_column >= 0:
            if block_indent < 0 and spaces > block_column:
                block_indent = spaces
            if 0 <= block_indent <= spaces:
                continue
            if "\t" not in lead[:-1] and not lead.endswith("\t"):
                block_column = -1
        if "\t" in lead:
            tabbed.append(_Tabbed(match.start(), lead, number, above))
        else:
            columns.update((len(lead), spaces))
            above = (len(lead), _OPENS.search(rest) is not None)
        if _BLOCK.match(rest):
            block_column, block_indent = spaces, -1
        elif "\t" not in lead:
            block_column = -1
    return tabbed, columns


def _findings(tabbed: list[_Tabbed], edits: list[Edit]) -> list[Finding]:
    """Return a finding for each run of lines, on its first tabs, with the edits of the whole run as its fix."""
    findings: list[Finding] = []
    first = 0
    for at, line in enumerate(tabbed):
        if at + 1 < len(tabbed) and tabbed[at + 1].number == line.number + 1:
            continue
        run = tabbed[first : at + 1]
        first = at + 1
        begin = run[0].start + run[0].lead.index("\t")
        tabs = len(run[0].lead[begin - run[0].start :]) - len(run[0].lead[begin - run[0].start :].lstrip("\t"))
        cure = tuple(edit for edit in edits if run[0].start <= edit.span.start <= line.start + len(line.lead))
        title = "indent with spaces" if len(run) == 1 else f"indent these {len(run)} lines with spaces"
        message = "a tab can't indent YAML; use spaces"
        findings.append(Finding("AL006", Span(begin, begin + tabs), message, fixes=(Fix(title, cure),)))
    return findings
