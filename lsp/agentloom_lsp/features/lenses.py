"""`textDocument/codeLens`: what can be done with a workflow, above its name and above its steps."""

from __future__ import annotations

from collections import Counter
from typing import Any

from lsprotocol import types

from agentloom.analysis.context import path_of
from agentloom.analysis.recordings import default_recording
from agentloom.ide.lenses import KeptRun, OngoingRun, Runs, lenses
from agentloom_lsp import uris
from agentloom_lsp.asking import asked
from agentloom_lsp.runs.kept import latest_first
from agentloom_lsp.runs.places import stores_of
from agentloom_lsp.session import Session
from agentloom_lsp.worker import WHOLE


async def code_lens(session: Session, params: types.CodeLensParams) -> list[dict[str, Any]] | None:
    """`textDocument/codeLens`: whole, each with its command, since they cost little to make."""
    options = session.options
    if not (options.lens_workflow or options.lens_steps):
        return []
    found = await asked(session, params.text_document)
    if found is None:
        return None
    document, places = found.document, found.places
    key, path = uris.key(document.source.uri), path_of(document.source.uri)
    stores = list(stores_of(path, session.workspace.roots))
    here = {run.run_id: run for run in session.runs.all()}
    ongoing = [OngoingRun(run.run_id, run.done, run.total) for run in session.runs.going_on(key)]
    moving = frozenset(run.run_id for run in session.runs.going_on())

    url = session.database if options.lens_workflow else None
    if url is not None and session.stored_runs.is_old(url):
        session.look_at_database()
    stored = [run for run in session.stored_runs.known(url).runs if run.run_id not in moving] if url is not None else []

    def work() -> list[dict[str, Any]]:
        kept: list[KeptRun] = []
        found = session.kept_runs.in_folders(stores, without=moving)[0] if options.lens_workflow else []
        for run in latest_first(stored, found):
            own = here[run.run_id].key if run.run_id in here else None
            if own != key and (run.source is None or uris.path_key(run.source) != key):
                continue
            if run.status == "paused" or run.resumable:
                waits = run.paused_step if run.status == "paused" else None
                kept.append(KeptRun(run.run_id, run.status, waits, str(run.folder)))
        recording = default_recording(document) if options.lens_workflow else None
        offered = Runs(ongoing, kept, str(recording) if recording is not None else None)
        every = lenses(document, offered, options.lens_steps, options.lens_workflow)
        ranges = _one_behind_the_other([places.range(lens.span) for lens in every])
        return [
            {
                "range": place,
                "command": {"title": lens.title, "command": lens.command, "arguments": [dict(lens.argument)]},
            }
            for place, lens in zip(ranges, every, strict=True)
        ]

    return await session.worker.submit(work, WHOLE)


def _one_behind_the_other(ranges: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return ranges of which none begins where an earlier one does, as far as there is room: Neovim orders a line's lenses by that alone."""
    found: list[dict[str, Any]] = []
    begun: Counter[tuple[int, int]] = Counter()
    for place in ranges:
        start, end = place["start"], place["end"]
        character = start["character"] + begun[start["line"], start["character"]]
        begun[start["line"], start["character"]] += 1
        if start["line"] == end["line"]:
            character = min(character, end["character"])
        found.append({"start": {"line": start["line"], "character": character}, "end": end})
    return found
