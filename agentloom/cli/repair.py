"""Fixing a file: the text after all fixes, written in its place at once, or shown as a difference."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from agentloom.analysis.analyze import AnalysisCache, analyze
from agentloom.analysis.document import WorkflowDocument
from agentloom.diagnostics import Severity

_QUOTED_IN_HEADERS = re.compile(r'^ |[\x00-\x1f\x7f"\\\ud800-\udfff]')
_LINE = r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z"


class Repair(NamedTuple):
    """How to fix what is found: in the files, or only shown as a difference; with fixes that aren't safe or without."""

    write: bool
    unsafe: bool = False


class Repaired(NamedTuple):
    """A document after its fixes, and how many findings they cured. ``difference`` is the change, where it wasn't written."""

    document: WorkflowDocument
    number: int
    difference: str = ""


class Unwritten(Exception):
    """A fixed file can't be written. The message says why, without the file's name."""


def repair(document: WorkflowDocument, shown: str, data: bytes, order: Repair, least: Severity) -> Repaired:
    """Return a document after its fixes; ``data`` are its bytes, ``shown`` what it is called, ``least`` the mildest severity to fix.

    Raises ``Unwritten`` when the file can't be written; it is then as it was.
    """
    from agentloom.analysis.fixing import fix_all  # few calls fix anything

    cache = AnalysisCache()
    source, context, kind = document.source, document.context, document.kind

    def again(text: str) -> WorkflowDocument:
        return analyze(source._replace(text=text), context, cache, kind)

    if not any(diagnostic.fixes for diagnostic in document.diagnostics):
        return Repaired(document, 0)
    fixed = fix_all(document, again, order.unsafe, lambda diagnostic: diagnostic.severity <= least)
    number = sum(fixed.cured.values())
    if fixed.document is document:
        return Repaired(document, 0)
    if not order.write:
        return Repaired(fixed.document, number, "".join(difference(source.text, fixed.document.source.text, shown)))
    _write(source.uri, fixed.document.source.text, data)
    return Repaired(fixed.document, number)


def _write(path: str, text: str, before: bytes) -> None:
    from agentloom.cli.reading import reason
    from agentloom.files import replace_file
    from agentloom.syntax.decode import encode_like

    try:
        replace_file(path, encode_like(text, before), before)
    except UnicodeEncodeError as error:
        raise Unwritten(f"it can't be written: {error.reason}") from error
    except OSError as error:
        raise Unwritten(f"it can't be written: {reason(error)}") from error


def difference(before: str, after: str, name: str) -> Iterator[str]:
    """Yield the lines of a unified difference, which `patch` takes. Lines end as in YAML: U+2028 ends none."""
    from difflib import unified_diff

    old, new = re.findall(_LINE, before), re.findall(_LINE, after)
    header = _header(name)
    for line in unified_diff(old, new, header, header, lineterm="\n"):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _header(name: str) -> str:
    """Return a file's name as `patch` and git read it: a tab ends one with spaces; quotes, controls and bytes that are no text are in C's notation."""
    if not _QUOTED_IN_HEADERS.search(name):
        return f"{name}\t" if " " in name else name
    written = _QUOTED_IN_HEADERS.sub(lambda found: "".join(f"\\{byte:03o}" for byte in os.fsencode(found[0])), name)
    return f'"{written}"'
