"""Links: the files that a workflow names, the schema of its first lines, and web addresses. Only what is there is a link."""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterator
from pathlib import Path
from typing import NamedTuple

from agentloom.analysis.document import Facts, WorkflowDocument
from agentloom.ide.nested import documents_in
from agentloom.language.template import parse_template
from agentloom.model.sources import source_kind
from agentloom.syntax.scalars import text_span
from agentloom.text import Span

TOOLTIPS = {
    "workflow": "Open the workflow",
    "agent": "Open the agent",
    "recording": "Open the recording",
    "attachment": "Open the attachment",
}
"""By what a `file` mark says; the sandbox's paths, which may be folders, are none."""

LONGEST_PATH = 1_000
"""Longer texts, such as pictures written out, are not looked for on disk."""

_ADDRESS = re.compile(r"\bhttps?://[^\s\"'<>{}|\\^`\[\]\x00-\x20]+", re.IGNORECASE)
_SCHEMA = re.compile(r"#[ \t]*(?:yaml-language-server:[ \t]*)?\$schema[ \t]*[:=][ \t]*(\S+)")


class Link(NamedTuple):
    """A word of the text and what it leads to: a file, or an address of the web."""

    span: Span
    target: Path | str
    tooltip: str = ""


def links(document: WorkflowDocument) -> list[Link]:
    """Return the links of a document in order; none touches another."""
    kept: list[Link] = []
    every = [*_files(document), *_schemas(document), *_addresses(document.source.text)]
    for link in sorted(every, key=lambda link: (link.span.start, -link.span.end, isinstance(link.target, str))):
        if not kept or kept[-1].span.end <= link.span.start:
            kept.append(link)
    return kept


def resolve_path(document: WorkflowDocument, written: str) -> Path | None:
    """Return the file that a document means by a path, if there is one: relative to the file it stands in."""
    home = document.path
    if home is None or not written.strip() or len(written) > LONGEST_PATH:
        return None
    try:
        target = Path(os.path.normpath(Path(os.path.abspath(home)).parent / written))
        return target if document.context.exists(target) else None
    except (OSError, ValueError):
        return None


def _files(document: WorkflowDocument) -> Iterator[Link]:
    """Yield the values that name files. A step behind an alias names them at its anchor."""
    for owner in documents_in(document):
        agents = owner.head.data.get("agents")
        names = agents if isinstance(agents, dict) else {}
        yield from _of(document, owner.head, owner.base, names)
        for step in owner.steps:
            if step.alias is None:
                yield from _of(document, step.facts, step.base, names)


def _of(document: WorkflowDocument, facts: Facts, base: int, agents: Container[str]) -> Iterator[Link]:
    if not facts.files:
        return
    for leaf in facts.leaves:
        mark = leaf.shape.mark("file")
        if mark is None or mark.of not in TOOLTIPS or not isinstance(leaf.value, str):
            continue
        written = leaf.node.value
        if leaf.shape.mark("ref") is not None and written in agents:
            continue
        made_in_the_run = leaf.shape.mark("template") is not None and bool(parse_template(written).placeholders)
        if made_in_the_run or source_kind(written) in ("data", "base64"):
            continue
        target = resolve_path(document, written)
        if target is not None:
            yield Link(text_span(leaf.node, 0, len(written)).shift(base), target, TOOLTIPS[mark.of])


def _schemas(document: WorkflowDocument) -> Iterator[Link]:
    """Yield the schema that a comment names, for other tools, if it is a file that is there."""
    if "$schema" not in document.source.text:
        return
    for comment in document.tree.comments:
        said = _SCHEMA.match(comment.text)
        if said is None:
            continue
        target = resolve_path(document, said[1].removeprefix("file://"))
        if target is not None:
            start = comment.span.start
            yield Link(Span(start + said.start(1), start + said.end(1)), target, "Open the schema")


def _addresses(text: str) -> Iterator[Link]:
    """Yield the addresses in a text that are whole: one that goes on with a template is known in the run only."""
    for found in _ADDRESS.finditer(text):
        start, end = found.span()
        if text[end : end + 1] == "{":
            continue
        unopened = text.count(")", start, end) - text.count("(", start, end)
        while text[end - 1] in ",;:.!?" or (text[end - 1] == ")" and unopened > 0):
            unopened -= text[end - 1] == ")"
            end -= 1
        if end > start + len("https://"):
            yield Link(Span(start, end), text[start:end])
