"""What a workflow needs of the workers of a place, and which of them have it: told by ``validate --on``."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from agentloom.cli.cells import visible
from agentloom.cli.console import Look
from agentloom.cli.tables import columns, count
from agentloom.cli.worlds import lacking
from agentloom.core.loader import load_workflow
from agentloom.core.needs import Needs, needs_of
from agentloom.core.preparation import prepare
from agentloom.durable.dbos.archive import Archive
from agentloom.durable.dbos.place import Place
from agentloom.durable.dbos.staff import Answers, answers, ask

PATIENCE_S = 5.0
"""How long the workers have to answer, in seconds."""

LOOK_S = 0.1


def needed(place: Place, file: Path, look: Look) -> Iterator[str]:
    """Yield the lines about a workflow without errors. Raises what loading it raises, and ``WorkflowError`` for a database that can't be used."""
    document = load_workflow(file)
    needs = needs_of(prepare(document), document.context.tools, document.context.tools_complete)
    found = Answers(1, [lacking(needs, file.parent)]) if place.file is not None else _asked(place, needs)
    who = "this machine" if place.file is not None else count(found.living, "worker")
    yield f"  needs of a run in {visible(place.name, look.encoding)}, {who}"
    words = [("provider", name) for name in needs.providers] + [("tool", name) for name in needs.tools]
    if not words:
        yield "    nothing but a worker"
    rows = [(f"  {kind} {name}", _had(f"{kind} `{name}`", found, place.file is not None)) for kind, name in words]
    yield from columns([(visible(name, look.encoding), visible(text, look.encoding)) for name, text in rows])


def _asked(place: Place, needs: Needs) -> Answers:
    with Archive(place) as archive:
        assert archive.engine is not None
        if needs:
            ask(archive.engine, needs)
        until = time.monotonic() + PATIENCE_S
        while True:
            found = answers(archive.engine, needs)
            if not needs or len(found.lacks) >= found.living or time.monotonic() > until:
                return found
            time.sleep(LOOK_S)


def _had(word: str, found: Answers, is_here: bool) -> str:
    """Return who has what a word names, and what those lack that haven't."""
    lacks = {lack: number for lack, number in found.lacking.items() if lack.startswith(word)}
    having = len(found.lacks) - sum(lacks.values())
    whys = ", ".join(lack.removeprefix(word).strip(" ()") for lack in lacks).strip(", ")
    if is_here:
        return "there" if having else f"lacking{f': {whys}' if whys else ''}"
    silent = found.living - len(found.lacks)
    quiet = f", {silent} didn't answer" if silent else ""
    return f"on {having} of {count(found.living, 'worker')}{f': {whys}' if whys else ''}{quiet}"
