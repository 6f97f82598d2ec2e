"""Made-up projects: every name in every file is renamed, and all files then say, and do, what they did before."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from agentloom.core.engine import WorkflowEngine
from agentloom.diagnostics import apply_edits
from agentloom.ide.rename import rename
from agentloom.ide.results import Refusal
from agentloom.providers.gateway import ProviderGateway
from tests.engine.virtual import run_virtual
from tests.engine.world import Script, Shelf
from tests.ide.making import HANDED, project
from tests.ide.project import Files
from tests.ide.test_rename_corpus import FRESH, every_place


def outcome(files: Files) -> str:
    """Run the first file with a model and a tool that repeat what they get; return all that came of it."""
    document = files.named("first.yaml")
    if not document.ok:
        return "refused"
    provider, gateway = Script(), ProviderGateway()
    gateway.register(provider)
    engine = WorkflowEngine(document, provider_gateway=gateway, tool_registry=Shelf({"echo": lambda value: value}))
    result = run_virtual(engine.run)
    steps = {name: [step.status, step.output, step.error] for name, step in result.step_results.items()}
    return json.dumps([steps, result.final_state, provider.prompts()], sort_keys=True)


def told(files: Files) -> dict[str, Counter[str]]:
    """Return the codes of what is said about each file."""
    return {path.name: Counter(d.code for d in files.named(path.name).diagnostics) for path in files.texts}


def under_old_name(text: str, word: str) -> str:
    """Return an outcome with the new name exchanged for the old one."""
    return text if text == "refused" else json.dumps(json.loads(text.replace(FRESH, word)), sort_keys=True)


@pytest.mark.parametrize("seed", range(8))
def test_nothing_changes_but_the_name(seed: int) -> None:
    """Prompts, results, state and diagnostics of all files; and renaming back gives the same bytes."""
    texts = project(seed)
    files = Files(texts)
    before, said = outcome(files), told(files)
    renamed = 0
    for name in texts:
        document = files.named(name)
        for thing, place in every_place(document):
            try:
                changes = rename(document, place.span.start, FRESH, files)
            except Refusal:
                continue
            edited = {Path(change.source.uri).name: apply_edits(change.source.text, change.edits) for change in changes}
            after = Files({**texts, **edited})
            assert under_old_name(outcome(after), thing.word) == before, (name, thing)
            assert told(after) == said, (name, thing)
            start = edited[name].index(FRESH)
            try:
                back = rename(after.named(name), start, thing.word, after)
            except Refusal:
                assert thing.word in HANDED  # what an `input` hid from a child, the child sees under its new name
                continue
            for change in back:
                edited[Path(change.source.uri).name] = apply_edits(change.source.text, change.edits)
            assert {**texts, **edited} == texts, (name, thing)
            renamed += 1
    assert renamed > 3
