"""Diagnostics as the protocol writes them: plain JSON, made for what this client understands.

Plain JSON and not the protocol's classes, because a list of them is sent, hashed and compared as a whole, for files with
thousands of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from agentloom.analysis.document import WorkflowDocument
from agentloom.analysis.rules.registry import RULE_BY_CODE
from agentloom.diagnostics import Diagnostic, Fix, Related
from agentloom.ide.last_run import LastRun, failures
from agentloom.text import LineTable, Span
from agentloom_lsp.client import Client
from agentloom_lsp.convert import Places

SOURCE = "agentloom"
UNNECESSARY = 1
RUN_FAILED = "run-failed"
"""The code of a diagnostic that tells where the last run failed. It is no finding of a check, and refuses no run."""

Report: TypeAlias = dict[str, Any]
"""One diagnostic in the protocol's JSON form."""


class Reporter:
    """Writes the diagnostics of one document for one client.

    ``read_text`` and ``uri_of`` are asked about other files that a diagnostic points into.
    """

    def __init__(
        self,
        document: WorkflowDocument,
        client: Client,
        read_text: Callable[[Path], str],
        uri_of: Callable[[Path], str],
    ) -> None:
        self._document = document
        self._client = client
        self._read_text = read_text
        self._uri_of = uri_of
        self._places = Places(document.lines, client.encoding)
        self._elsewhere: dict[str, Places | None] = {}

    def reports(self) -> list[Report]:
        """Return all diagnostics of the document, in its order."""
        return [self.report(diagnostic) for diagnostic in self._document.diagnostics]

    def report(self, diagnostic: Diagnostic) -> Report:
        """Return one diagnostic; what the client didn't say it understands is left out."""
        client = self._client
        report: Report = {
            "range": self._places.range(diagnostic.span),
            "severity": int(diagnostic.severity),
            "code": diagnostic.code,
            "source": SOURCE,
            "message": diagnostic.message,
        }
        if client.code_pages:
            report["codeDescription"] = {"href": RULE_BY_CODE[diagnostic.code].url}
        if diagnostic.tags and client.unnecessary:
            report["tags"] = [UNNECESSARY]
        if diagnostic.related and client.related:
            report["relatedInformation"] = [self._related(related) for related in diagnostic.related]
        if client.data:
            report["data"] = {"name": diagnostic.name, "fixes": [self._fix(fix) for fix in diagnostic.fixes]}
        return report

    def failures(self, last: LastRun | None) -> Iterator[Report]:
        """Yield a report on each step that failed in the last run, and wasn't edited since."""
        for span, step in failures(self._document, last) if last is not None else ():
            report = {
                "range": self._places.range(span),
                "severity": 1,
                "code": RUN_FAILED,
                "source": SOURCE,
                "message": step.error or f"the step is {step.status}",
            }
            if self._client.data:
                report["data"] = {"name": RUN_FAILED, "fixes": []}
            yield report

    def edits(self, fix: Fix) -> list[dict[str, Any]]:
        """Return a fix's edits, in the protocol's form."""
        return [{"range": self._places.range(edit.span), "newText": edit.text} for edit in fix.edits]

    def _fix(self, fix: Fix) -> dict[str, Any]:
        return {"title": fix.title, "safe": fix.safe, "edits": self.edits(fix)}

    def _related(self, related: Related) -> dict[str, Any]:
        if related.path is None:
            location = {"uri": self._document.source.uri, "range": self._places.range(related.span)}
        else:
            location = self._location(related.path, related.span)
        return {"location": location, "message": related.message}

    def _location(self, written: str, span: Span) -> dict[str, Any]:
        home = self._document.path
        path = Path(written) if home is None else home.parent / written
        if written not in self._elsewhere:
            try:
                self._elsewhere[written] = Places(LineTable(self._read_text(path)), self._client.encoding)
            except (OSError, ValueError):
                self._elsewhere[written] = None
        places = self._elsewhere[written] or Places(LineTable(""), self._client.encoding)
        return {"uri": self._uri_of(path), "range": places.range(span)}


def result_id(reports: Sequence[Report]) -> str:
    """Return a name for a list of diagnostics; equal lists have equal names."""
    return hashlib.blake2b(json.dumps(reports, sort_keys=True).encode(), digest_size=12).hexdigest()
