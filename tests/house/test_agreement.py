"""The promise: what the editor underlines, `validate` prints and the engine refuses is the same, over every file of ours.

Every file is taken as it is and saved in other ways (line ends, byte order mark, wide characters). Places are compared as 0-based
lines and columns in code points, the byte order mark not counted.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest
from click.testing import CliRunner

from agentloom.analysis.context import Context, context_for
from agentloom.analysis.document import WorkflowDocument
from agentloom.analysis.settings import find_settings
from agentloom.cli.app import app
from agentloom.core.engine import WorkflowEngine
from agentloom.core.events import RunEvent
from agentloom.core.loader import load_workflow
from agentloom.errors import InvalidWorkflow
from agentloom.model.workflow import Workflow
from tests.house.corpus import written
from tests.lsp.peer import FULL, PULLING, Process

SEVERITIES = {"error": 1, "warning": 2, "information": 3, "hint": 4}
BOM = "\ufeff"
ELSEWHERE = "AL707"
"""What `remote` in the settings asks for: it speaks of runs on other machines, and a run here isn't refused for it."""


class Said(NamedTuple):
    """One diagnostic as any of the readers says it."""

    code: str
    severity: int
    place: tuple[int, int, int, int]
    message: str


Verdicts = Mapping[Path, list[Said]]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Path]]:
    """The files, written to a folder of their own."""
    folder = tmp_path_factory.mktemp("corpus")
    paths = written(folder)
    yield paths
    shutil.rmtree(folder)


def command(*arguments: str, stdin: bytes = b"") -> tuple[int, str]:
    """Call the program in this process; return its exit code and what it printed to standard output."""
    done = CliRunner().invoke(app, list(arguments), input=stdin, prog_name="agentloom")
    assert done.exception is None or isinstance(done.exception, SystemExit), arguments
    return done.exit_code, done.stdout


def from_json(found: Mapping[str, Any]) -> Said:
    """Return a diagnostic of `validate --format json`."""
    place = (found["line"] - 1, found["column"] - 1, found["end_line"] - 1, found["end_column"] - 1)
    return Said(found["code"], SEVERITIES[found["severity"]], place, found["message"])


@pytest.fixture(scope="module")
def command_line(corpus: list[Path]) -> Verdicts:
    """What one call of `validate` says about all files."""
    code, out = command("validate", "--severity", "hint", "--format", "json", *map(str, corpus))
    said: dict[Path, list[Said]] = {path: [] for path in corpus}
    for found in json.loads(out)["diagnostics"]:
        said[Path(found["path"])].append(from_json(found))
    assert code == 1
    assert sum(map(len, said.values())) > len(corpus)
    return said


def columns(text: str, encoding: str) -> Any:
    """Return a function from a position of the protocol to line and column in code points, the byte order mark not counted."""
    lines = [line.encode(encoding) for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    width = {"utf-8": 1, "utf-16-le": 2, "utf-32-le": 4}[encoding]

    def place(position: Mapping[str, int]) -> tuple[int, int]:
        line, character = position["line"], position["character"]
        before = lines[line][: character * width]
        assert len(before) == character * width, "a position outside its line"
        return line, len(before.decode(encoding).removeprefix(BOM if line == 0 else ""))

    return place


def from_server(report: Mapping[str, Any], place: Any) -> Said:
    """Return a diagnostic of the language server."""
    where = (*place(report["range"]["start"]), *place(report["range"]["end"]))
    return Said(report["code"], report["severity"], where, report["message"])


@pytest.mark.parametrize(("encoding", "pulls"), [("utf-8", True), ("utf-16", False), ("utf-32", True)])
def test_the_server_says_what_the_command_line_says(
    corpus: list[Path], command_line: Verdicts, encoding: str, pulls: bool
) -> None:
    """A real server over stdio, one session: the same codes, severities, ranges and messages, pushed or pulled, in every unit."""
    capabilities = {**(PULLING if pulls else FULL), "general": {"positionEncodings": [encoding]}}
    with Process() as peer:
        peer.initialize(capabilities)
        for path in corpus:
            text, uri = path.read_bytes().decode("utf-8"), path.as_uri()
            # The language says that it is ours, as naming a file on the command line does.
            peer.open(uri, text, language="agentloom")
            if pulls:
                reports = peer.request("textDocument/diagnostic", {"textDocument": {"uri": uri}})["items"]
            else:
                reports = peer.published(uri, 1)
            place = columns(text, "utf-8" if encoding == "utf-8" else f"{encoding}-le")
            said = [from_server(report, place) for report in reports]
            assert sorted(said) == sorted(command_line[path]), path
            peer.close_document(uri)
        assert peer.leave() == 0


def test_one_file_alone_ends_as_it_is(corpus: list[Path], command_line: Verdicts) -> None:
    """A file named alone, and the same text on standard input: the same findings, exit code 1 exactly with an error among them."""
    for number, path in enumerate(corpus):
        ways = [([str(path)], b""), (["-", "--stdin-filename", str(path)], path.read_bytes())]
        for arguments, text in ways if number % 3 == 0 else ways[:1]:
            code, out = command("validate", "--severity", "hint", "--format", "json", *arguments, stdin=text)
            assert [from_json(found) for found in json.loads(out)["diagnostics"]] == command_line[path], path
            assert code == any(said.severity == 1 for said in command_line[path]), path


def test_the_engine_refuses_exactly_what_has_an_error(corpus: list[Path], command_line: Verdicts) -> None:
    """The loader takes a file exactly if it has no error; a refusal carries the same diagnostics. What is taken has a model.

    By the settings as they are, as for a run on other machines, and by those of a run that is performed here.
    """
    seen: dict[bool, list[WorkflowDocument]] = {True: [], False: []}
    for path in corpus:
        if is_agent(path):
            continue
        document, refused = loaded(path)
        assert told_by(document) == sorted(here(command_line[path])), path
        assert refused == is_wrong(here(command_line[path])), path
        if here(command_line[path]) != command_line[path]:
            there, refused_there = loaded(path, context_for(find_settings(path)))
            assert told_by(there) == sorted(command_line[path]), path
            assert refused_there == is_wrong(command_line[path]), path
        if not refused:
            assert isinstance(document.workflow, Workflow)
        seen[refused].append(document)
    assert min(map(len, seen.values())) > 20
    for refused, documents in seen.items():
        assert anyio.run(refusals, documents) == [refused] * len(documents)


def test_a_run_refuses_before_any_event(corpus: list[Path], command_line: Verdicts, tmp_path: Path) -> None:
    """`agentloom run` of a file with an error: exit code 1, nothing on standard output, not one event."""
    events = tmp_path / "events.jsonl"
    for path in corpus:
        if path.is_relative_to(corpus[0].parents[3]) and is_wrong(here(command_line[path])):
            code, out = command("run", "--provider", "mock", "--json", "--events", str(events), str(path))
            assert (code, out) == (1, ""), path
            assert not events.exists(), path


def here(found: list[Said]) -> list[Said]:
    """Return what is told of a run that is performed here."""
    return [said for said in found if said.code != ELSEWHERE]


def is_wrong(found: list[Said]) -> bool:
    """Tell whether an error is among what is told."""
    return any(said.severity == 1 for said in found)


def loaded(path: Path, context: Context | None = None) -> tuple[WorkflowDocument, bool]:
    """Return a file's document, and whether the loader refuses it."""
    try:
        return load_workflow(path, context), False
    except InvalidWorkflow as error:
        return error.document, True


def is_agent(path: Path) -> bool:
    """Tell whether a file describes an agent, which is no workflow to run."""
    data = path.read_bytes()
    return path.name.endswith((".agent.yaml", ".agent.yml")) or (b"system_prompt:" in data and b"steps:" not in data)


def told_by(document: WorkflowDocument) -> list[Said]:
    """Return a document's own diagnostics, sorted."""
    text, lines = document.source.text, document.lines

    def place(offset: int) -> tuple[int, int]:
        line, column = lines.position(offset)
        return line, column - (line == 0 and column > 0 and text.startswith(BOM))

    return sorted(
        Said(d.code, int(d.severity), (*place(d.span.start), *place(d.span.end)), d.message)
        for d in document.diagnostics
    )


async def refusals(documents: list[WorkflowDocument]) -> list[bool]:
    """Tell of each document whether the engine refuses it for its errors; that there is no event to tell is held here."""
    events: list[RunEvent] = []

    async def keep(event: RunEvent) -> None:
        events.append(event)

    found: list[bool] = []
    for document in documents:
        engine = WorkflowEngine(document, on_event=keep)
        try:
            engine.check()
            found.append(False)
        except InvalidWorkflow:
            with pytest.raises(InvalidWorkflow) as caught:
                await engine.run()
            assert caught.value.document is document
            found.append(True)
    assert events == []
    return found
