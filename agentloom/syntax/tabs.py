"""AL006: tabs that indent. A tab stands for as many columns as make the text around it fit."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from agentloom.diagnostics import Edit, Finding, Fix
from agentloom.syntax.edited import Edited
from agentloom.text import Span

WIDTHS = (2, 4, 8, 3, 1, 0)
"""Columns that a tab may stand for, the likely ones first."""

_LINE = re.compile(r"(?P<lead>[ \t]*(?:-[ \t]+)*)(?P<rest>[^\r\n]*)(?:\r\n|\r|\n|\Z)")
_BLOCK = re.compile(r"(?:.*[ \t])?[|>](?:[+-]?[1-9]?|[1-9][+-])[ \t]*(?:#.*)?\Z")


@dataclass(frozen=True, slots=True)
class _Tabbed:
    start: int
    lead: str
    number: int
    """Of the line, to tell neighbours."""


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
        edits = [_spaces(line, width) for line in tabbed]
        edited = Edited(text, edits)
        if composes(edited.text):
            best = edits
            break
        fitting = sum(len(edit.text) in columns for edit in edits)
        if fitting > score:
            best, score = edits, fitting
    return Edited(text, best), _findings(tabbed, best)


def _spaces(line: _Tabbed, width: int) -> Edit:
    dash = line.lead.find("-")
    before, behind = (line.lead, "") if dash < 0 else (line.lead[:dash], line.lead[dash:])
    written = before.replace("\t", " " * width) + behind.replace("\t", " ")
    return Edit(Span(line.start, line.start + len(line.lead)), written)


def _scan(text: str) -> tuple[list[_Tabbed], set[int]]:
    """Return the lines that tabs indent, and the columns at which words begin in the others."""
    tabbed: list[_Tabbed] = []
    columns: set[int] = set()
    block_column = -1
    block_indent = -1
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
            tabbed.append(_Tabbed(match.start(), lead, number))
        else:
            columns.update((len(lead), spaces))
        if _BLOCK.match(rest):
            block_column, block_indent = spaces, -1
        elif "\t" not in lead:
            block_column = -1
    return tabbed, columns


def _findings(tabbed: list[_Tabbed], edits: list[Edit]) -> list[Finding]:
    findings: list[Finding] = []
    run: list[Edit] = []
    for at, (line, edit) in enumerate(zip(tabbed, edits, strict=True)):
        run.append(edit)
        if at + 1 < len(tabbed) and tabbed[at + 1].number == line.number + 1:
            continue
        first = tabbed[at + 1 - len(run)]
        start = first.start + first.lead.index("\t")
        end = start
        while end < first.start + len(first.lead) and first.lead[end - first.start] == "\t":
            end += 1
        title = "indent with spaces" if len(run) == 1 else f"indent these {len(run)} lines with spaces"
        findings.append(
            Finding("AL006", Span(start, end), "a tab can't indent YAML; use spaces", fixes=(Fix(title, tuple(run)),))
        )
        run = []
    return findings
