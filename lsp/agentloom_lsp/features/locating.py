"""Places in files as the protocol writes them, for features that answer with several files."""

from __future__ import annotations

from typing import Any

from agentloom.ide.results import FileLocation, Location
from agentloom.text import LineTable, Source, Span
from agentloom_lsp.convert import Places
from agentloom_lsp.features.editing import as_shown, uri_of
from agentloom_lsp.session import Session

START = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}


class Locating:
    """Turns places of several files into the protocol's; for one answer. Lines of each file are counted once."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._tables: dict[Source, tuple[Places, int]] = {}

    def range(self, source: Source, span: Span) -> dict[str, Any]:
        """Return a span of a text as a range."""
        known = self._tables.get(source)
        if known is None:
            text, shift = as_shown(source)
            known = self._tables[source] = Places(LineTable(text), self._session.client.encoding), shift
        table, shift = known
        return table.range(span.shift(-shift))

    def location(self, place: Location | FileLocation) -> dict[str, Any]:
        """Return a place as a `Location`."""
        if isinstance(place, FileLocation):
            return {"uri": self._session.workspace.uri_of(place.path), "range": START}
        return {"uri": uri_of(self._session, place.source), "range": self.range(place.source, place.span)}

    def link(self, place: Location | FileLocation, origin: dict[str, Any]) -> dict[str, Any]:
        """Return a place as a `LocationLink` from ``origin``, a range."""
        if isinstance(place, FileLocation):
            target = {"targetUri": self._session.workspace.uri_of(place.path), "targetRange": START}
            return {**target, "targetSelectionRange": START, "originSelectionRange": origin}
        return {
            "originSelectionRange": origin,
            "targetUri": uri_of(self._session, place.source),
            "targetRange": self.range(place.source, place.whole or place.span),
            "targetSelectionRange": self.range(place.source, place.span),
        }
