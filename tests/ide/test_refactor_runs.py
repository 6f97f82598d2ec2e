"""Refactorings against real runs: extracted and inlined again, a workflow asks the same questions in the same steps.

The engine runs each version offline, with a provider whose answers follow from the questions. So whatever a step sees, and whatever it
writes, shows in the questions of the steps behind it and in the state at the end.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentloom.analysis.document import WorkflowDocument
from agentloom.core.engine import WorkflowEngine
from agentloom.diagnostics import Severity, apply_edits
from agentloom.ide.refactor.extract import extract
from agentloom.ide.refactor.inline import inline
from agentloom.ide.results import Changes, NewFile, Refusal
from agentloom.providers.gateway import ProviderGateway
from agentloom.providers.mock import MockProvider
from agentloom.providers.recording import load_recording
from tests.conftest import ROOT
from tests.ide.runs import Ran, below, changed, made, made_with_children, read, run

EXAMPLES = sorted((ROOT / "examples").rglob("*.loom.yaml"))
HERE = "/nowhere/made.loom.yaml"


@pytest.mark.parametrize("seed", range(16))
def test_made_at_random(seed: int) -> None:
    """Workflows with routers, shared keys and nested ones: a few selections of each."""
    chance = random.Random(seed)
    document = read(HERE, {HERE: made(chance)})
    if not document.ok:
        return
    ids = [step.id for step in document.steps if step.id]
    before = run(document)
    for _ in range(4):
        count = chance.randint(1, min(4, len(ids)))
        start = chance.randint(0, len(ids) - count)
        chosen = (
            ids[start : start + count] if chance.random() < 0.6 else sorted(chance.sample(ids, count), key=ids.index)
        )
        _there_and_back(document, before, chosen, chance.random() < 0.5)


@pytest.mark.parametrize("seed", range(16))
def test_children_made_at_random(seed: int) -> None:
    """Subworkflows with shared and isolated state, inputs of all kinds, ids and keys that others have, too: inlined one by one."""
    chance = random.Random(seed)
    document = read(HERE, {HERE: made_with_children(chance)})
    before = run(document)
    if not document.ok or before.status != "success":
        return
    for step in document.steps:
        if step.type != "subworkflow":
            continue
        try:
            inlined = changed(document, inline(document, step))
        except Refusal:
            continue
        after = run(inlined)
        said = f"{step.id}\n{document.source.text}\n{inlined.source.text}"
        assert (after.status, sorted(after.asked.values())) == (before.status, sorted(before.asked.values())), said
        own = {name: text for name, text in before.asked.items() if "." not in name}
        assert own.items() <= after.asked.items(), said
        kept = {key: value for key, value in before.state.items() if key != f"out{step.id}"}
        assert kept.items() <= after.state.items(), said
    ids = [step.id for step in document.steps if step.id]
    for _ in range(2):
        start = chance.randint(0, len(ids) - 1)
        _there_and_back(document, before, ids[start : start + chance.randint(1, 3)], chance.random() < 0.5)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples(path: Path) -> None:
    """Every stretch of one to four steps of every example."""
    document = read(str(path))
    ids = [step.id for step in document.steps if step.id]
    before = run(document)
    done = 0
    for length in (1, 2, 3, 4):
        for start in range(len(ids) - length + 1):
            done += _there_and_back(document, before, ids[start : start + length], start % 2 == 0)
    assert done or len(ids) == 1, "not one stretch of it can be extracted"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_subworkflows_of_examples(path: Path) -> None:
    """Every subworkflow step of every example can be inlined, one after the other, and nothing asks for anything else."""
    document = read(str(path))
    before = run(document)
    while step := next((step for step in document.steps if step.type == "subworkflow"), None):
        changes = inline(document, step)
        document = changed(document, changes)
        after = run(document)
        assert sorted(after.asked.values()) == sorted(before.asked.values())
        assert _leaves(before.state) <= _leaves(after.state)


def test_recordings_answer_all_the_same(tmp_path: Path) -> None:
    """With the recordings of the examples: extracted steps find theirs by their own ids, and inlined ones under their new names."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    for name, chosen in (("quarterly-report", ["people"]), ("code-review", ["security", "clarity", "weigh"])):
        path = tmp_path / "examples" / f"{name}.loom.yaml"
        told = [d.code for d in read(str(path)).diagnostics if d.severity is not Severity.HINT]
        before = _played(path)
        _write(extract(read(str(path)), chosen, True), path)
        assert set(_values(_played(path))) == set(_values(before)), "extracted"
        while step := next((step for step in read(str(path)).steps if step.type == "subworkflow"), None):
            _write(inline(read(str(path)), step), path)
        assert [d.code for d in read(str(path)).diagnostics if d.severity is not Severity.HINT] == told
        after = _played(path)
        assert set(_values(before)) <= set(_values(after)), "inlined"
        assert "Mock response" not in str(after)


def _played(path: Path) -> Any:
    """Return the state at the end of an offline run with its recording."""
    document = read(str(path))
    gateway = ProviderGateway()
    name = document.head.data["config"]["responses_file"]
    gateway.register(MockProvider(load_recording(path.parent / name)))

    async def main() -> Any:
        return await WorkflowEngine(document, provider_gateway=gateway).run()

    result = anyio.run(main)
    assert result.status == "success", result.error
    return {key: value for key, value in result.final_state.items() if key != "steps"}


def _values(state: Any) -> list[str]:
    return sorted(value for _, value in _leaves(state) if len(value) > 20)


def _write(changes: Changes, path: Path) -> None:
    for change in changes:
        if isinstance(change, NewFile):
            assert not change.path.exists()
            change.path.write_bytes(change.text.encode())
        else:
            file = Path(change.source.uri)
            file.write_bytes(apply_edits(change.source.text, change.edits).encode())
    assert path.exists()


def _there_and_back(document: WorkflowDocument, before: Ran, chosen: list[str], to_file: bool) -> bool:
    changes = _possible(document, chosen, to_file)
    if changes is None:
        return False
    extracted = changed(document, changes)
    (name,) = {step.id or "" for step in extracted.steps} - {step.id or "" for step in document.steps}
    ran = run(extracted)
    after = below(ran, name)
    said = f"{chosen}\n{document.source.text}\n{extracted.source.text}"
    assert (after.status, after.asked, after.began) == (before.status, before.asked, before.began), said
    try:
        inlined = changed(extracted, inline(extracted, extracted.by_id[name]))
    except Refusal:
        return True
    back = run(inlined)
    said += f"\n{inlined.source.text}"
    assert (back.status, back.asked, back.began) == (before.status, before.asked, before.began), said
    copies = {
        (path, value)
        for path, value in _leaves(ran.state)
        if path[0] == name and (path[1:], value) in _leaves(ran.state)
    }
    assert _leaves(ran.state) - copies <= _leaves(back.state), said
    return True


def _keeps_order(document: WorkflowDocument, inlined: WorkflowDocument, chosen: list[str], said: str) -> None:
    """Whoever waited for a step still does; a step alone comes back to its layer, and so do all others."""
    for above in document.graph.layer_of:
        for name in document.graph.descendants(above):
            assert inlined.graph.is_upstream(above, name), said
    if len(chosen) == 1:
        assert inlined.graph.layers == document.graph.layers, said


def _possible(document: WorkflowDocument, chosen: list[str], to_file: bool) -> Changes | None:
    try:
        return extract(document, chosen, to_file)
    except Refusal as refusal:
        why = str(refusal)
    assert why[0].islower() or why[0] == "`", why
    assert not why.endswith("."), why
    return None


def _leaves(value: Any, path: tuple[str, ...] = ()) -> frozenset[tuple[tuple[str, ...], str]]:
    return frozenset(_walk(value, path))


def _walk(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _walk(item, (*path, key))
    else:
        yield path, repr(value)
