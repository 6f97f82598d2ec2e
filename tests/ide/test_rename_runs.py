"""A renamed workflow runs as before: every name of some examples is changed, in all files, and the run repeated offline."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from click.testing import CliRunner

from agentloom.analysis.analyze import analyze
from agentloom.analysis.context import Context
from agentloom.analysis.document import WorkflowDocument
from agentloom.cli.app import app
from agentloom.diagnostics import apply_edits
from agentloom.ide.names.scope import Name, Place
from agentloom.ide.rename import rename
from agentloom.ide.results import Refusal
from agentloom.text import Source
from tests.conftest import ROOT
from tests.ide.test_rename_corpus import FRESH, every_place

T = TypeVar("T")
EXAMPLES = ["quarterly-report", "support-triage"]


class Folder:
    """The workflows of a folder on disk."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def document(self, path: Path) -> WorkflowDocument | None:
        return analyze(Source(str(path), path.read_bytes().decode()), Context()) if path.is_file() else None

    def documents(self, mentioning: str = "") -> Iterator[WorkflowDocument]:
        for path in sorted(self.home.rglob("*.loom.yaml")):
            document = self.document(path)
            if document is not None and mentioning in document.source.text:
                yield document

    def each(self, function: Callable[[WorkflowDocument], T]) -> Iterable[T]:
        return [value for document in self.documents() if (value := function(document)) is not None]


def outcome(path: Path) -> Any:
    """Run a workflow; return what its steps and its state became."""
    done = CliRunner().invoke(app, ["run", "--json", str(path)])
    assert done.exit_code == 0, done.output
    assert "placeholder" not in done.stderr
    result = json.loads(done.stdout)
    steps = {name: (step["status"], step["output"]) for name, step in result["step_results"].items()}
    return [steps, result["final_state"], result["total_tokens"]]


def names_of(project: Folder, path: Path) -> Iterator[tuple[WorkflowDocument, Name, Place]]:
    """Yield every name of a workflow and of the files that it runs."""
    document = project.document(path)
    assert document is not None
    for file in (path, *document.files):
        inner = project.document(file)
        assert inner is not None
        for thing, place in every_place(inner):
            yield inner, thing, place


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_renamed_workflow_runs_as_before(name: str, tmp_path: Path) -> None:
    """The same results under the new name; recordings still answer, in this workflow and in those that it runs."""
    home = tmp_path / "examples"
    shutil.copytree(ROOT / "examples", home, ignore=shutil.ignore_patterns("out"))
    path = home / f"{name}.loom.yaml"
    project = Folder(home)
    before = json.dumps(outcome(path), sort_keys=True)
    renamed = 0
    for document, thing, place in names_of(project, path):
        try:
            changes = rename(document, place.span.start, FRESH, project)
        except Refusal:
            continue
        kept = {Path(change.source.uri): change.source.text for change in changes}
        for change in changes:
            Path(change.source.uri).write_bytes(apply_edits(change.source.text, change.edits).encode())
        after = json.dumps(json.loads(json.dumps(outcome(path)).replace(FRESH, thing.word)), sort_keys=True)
        assert after == before, thing
        for changed, text in kept.items():
            changed.write_bytes(text.encode())
        renamed += 1
    assert renamed > 5
