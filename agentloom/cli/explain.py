"""``agentloom explain``: a diagnostic's page, offline."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

import click

from agentloom.analysis.rules.registry import RULES, Rule
from agentloom.cli.console import BOLD, CYAN, ColorChoice, Look, look_of
from agentloom.cli.options import COLOR
from agentloom.cli.selection import find_rule, unknown_rule
from agentloom.cli.shipped import shipped
from agentloom.cli.tables import columns
from agentloom.errors import AgentLoomError, UsageError

_LINK = re.compile(r"!?\[([^\]]+)\]\(([^)\s]+)\)")
_STRONG = re.compile(r"\*\*(.+?)\*\*")


@click.command()
@click.argument("code", required=False)
@click.option("--list", "list_", is_flag=True, help="List all codes.")
@COLOR
def command(code: str | None, list_: bool, color: ColorChoice) -> None:
    """Explain a diagnostic: CODE is its code (AL204) or its name (dependency-cycle)."""
    if (code is None) != list_:
        raise UsageError("give one code or name, or `--list`")
    look = look_of(sys.stdout, color)
    if code is None:
        for line in columns(
            [(f"{rule.code}  {rule.severity.word:11}  {rule.name}", rule.summary) for rule in RULES], indent=0
        ):
            print(line)
        return
    rule = find_rule(code)
    if rule is None:
        raise UsageError(unknown_rule(code))
    for line in plain(page_of(rule), look):
        print(line)


def page_of(rule: Rule) -> str:
    """Return a rule's page as Markdown. Raises ``AgentLoomError`` when this installation lacks it."""
    path = shipped("docs", "rules", f"{rule.code}.md")
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise AgentLoomError(f"the page of {rule.code} is missing from this installation: {path}") from error


def plain(markdown: str, look: Look) -> Iterator[str]:
    """Yield the lines of a page as text for a terminal: headings stand out, code is set in, marks and comments are gone."""
    in_code = False
    blank = True
    for line in markdown.splitlines():
        if line.startswith("```"):
            in_code = not in_code
            continue
        if in_code:
            yield f"    {line}".rstrip()
            blank = False
            continue
        if line.startswith("<!--") or (not line.strip() and blank):
            continue
        blank = not line.strip()
        if line.startswith("#"):
            yield look.paint(_inline(line.lstrip("#").strip()), BOLD if line.startswith("##") else CYAN)
        else:
            yield _inline(line)


def _inline(line: str) -> str:
    line = _LINK.sub(lambda m: m[1] if m[1] == m[2] or m[2].startswith("#") else f"{m[1]} ({m[2]})", line)
    return _STRONG.sub(r"\1", line)
