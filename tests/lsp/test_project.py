"""All files of a workspace as features see them: open ones as in the editor, closed ones from disk, within bounds of memory."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentloom.analysis.analyze import AnalysisCache, analyze
from agentloom.analysis.document import WorkflowDocument
from agentloom.text import Source
from agentloom_lsp import closed, uris
from agentloom_lsp.client import Client
from agentloom_lsp.session import Session
from agentloom_lsp.wire import Wire
from agentloom_lsp.worker import CLOSED, OPEN, SEARCH, Worker
from tests.lsp.peer import PULLING, Local

H = "name: w\nsteps:\n"
A = "  - id: a\n    type: llm_call\n    prompt: hi\n"
GOOD = H + A
AGENT = "name: writer\nsystem_prompt: hi\n"
USES = H + "  - id: s\n    type: subworkflow\n    workflow_path: {}\n"


class Files:
    """A session over a folder, without a client; ``checks`` lists the names of the files that were checked, in order."""

    def __init__(self, *folders: Path, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.checks: list[str] = []
        mine = loop is None
        loop = loop or asyncio.new_event_loop()
        client = Client(folders=tuple(folder.as_uri() for folder in folders))
        self.session = Session(loop, client, Wire(loop, lambda message: None), self._door, AnalysisCache)
        if mine:
            loop.close()
        self.project = self.session.project

    def _door(self, source: Source, *rest: Any) -> WorkflowDocument:
        self.checks.append(source.uri.rsplit("/", 1)[-1])
        return analyze(source, *rest)

    def open(self, path: Path, text: str) -> None:
        self.session.documents.open(path.as_uri(), "yaml", 1, text)

    def names(self, mentioning: str = "") -> list[str]:
        return sorted(document.source.uri.rsplit("/", 1)[-1] for document in self.project.documents(mentioning))


def write(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        path = folder / name.replace("__", "/").replace("_yaml", ".yaml")
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)


def ids(document: WorkflowDocument) -> tuple[str, ...]:
    return tuple(document.by_id)


def test_all_files_of_ours(tmp_path: Path) -> None:
    """Workflows and agents, in folders below too; not what belongs to others, nor what lies in hidden folders."""
    write(
        tmp_path,
        w_yaml=GOOD,
        sub__v_yaml=GOOD,
        x_yaml=AGENT,
        compose_yaml="services: {}\n",
        **{".git__y_yaml": GOOD},
    )
    files = Files(tmp_path)
    assert files.names() == ["v.yaml", "w.yaml", "x.yaml"]
    assert sorted(document.kind or "" for document in files.project.documents()) == ["agent", "workflow", "workflow"]


def test_open_files_are_as_in_the_editor(tmp_path: Path) -> None:
    """A file that is open is given once, as in the editor; also one that isn't saved yet, and one outside the folders."""
    folder = tmp_path / "in"
    write(folder, w_yaml=GOOD)
    files = Files(folder)
    files.open(folder / "w.yaml", GOOD.replace("id: a", "id: edited"))
    files.open(folder / "new.yaml", GOOD)
    files.open(tmp_path / "outside.yaml", GOOD)
    assert sorted(ids(document) for document in files.project.documents()) == [("a",), ("a",), ("edited",)]
    found = files.project.document(folder / "w.yaml")
    assert found is not None
    assert ids(found) == ("edited",)


def test_files_outside_that_are_named(tmp_path: Path) -> None:
    """A subworkflow or an agent outside the folders belongs to the project as soon as something inside names it."""
    write(tmp_path, out__child_yaml=USES.format("../far/grandchild.yaml"), far__grandchild_yaml=GOOD)
    write(tmp_path, out__writer_yaml=AGENT, out__other_yaml=GOOD)
    write(tmp_path, **{"in__w_yaml": USES.format("../out/child.yaml") + "agents: {x: ../out/writer.yaml}\n"})
    files = Files(tmp_path / "in")
    assert files.names() == ["child.yaml", "grandchild.yaml", "w.yaml", "writer.yaml"]
    assert Files(tmp_path / "in").names("id: a") == ["grandchild.yaml"]


def test_only_what_mentions_a_word_is_checked(tmp_path: Path) -> None:
    """A search for a word doesn't pay for files without it."""
    write(tmp_path, a_yaml=GOOD, b_yaml=GOOD.replace("hi", "needle"), c_yaml=GOOD)
    files = Files(tmp_path)
    assert files.names("needle") == ["b.yaml"]
    assert files.checks == ["b.yaml"]


@pytest.mark.parametrize("ask", [lambda p: list(p.documents()), lambda p: list(p.each(ids))], ids=["documents", "each"])
def test_nothing_is_checked_twice(tmp_path: Path, ask: Callable[[Any], Any]) -> None:
    """A second walk costs no check; after a change of a file, it and what reads it are checked, and nothing else."""
    write(tmp_path, a_yaml=USES.format("b.yaml"), b_yaml=GOOD, c_yaml=GOOD)
    files = Files(tmp_path)
    ask(files.project)
    assert sorted(files.checks) == ["a.yaml", "b.yaml", "c.yaml"]
    files.checks.clear()
    ask(files.project)
    assert files.checks == []
    (tmp_path / "b.yaml").write_text(GOOD + A.replace("id: a", "id: longer"))
    ask(files.project)
    assert sorted(files.checks) == ["a.yaml", "b.yaml"]
    files.checks.clear()
    (tmp_path / "agentloom.toml").write_text('ignore = ["AL205"]\n')
    files.session.workspace.forget_settings()
    ask(files.project)
    assert sorted(files.checks) == ["a.yaml", "b.yaml", "c.yaml"]


def test_what_each_gives_is_up_to_date(tmp_path: Path) -> None:
    """Values of closed files follow the disk, those of open ones the editor; files that are gone give none."""
    write(tmp_path, a_yaml=GOOD, b_yaml=GOOD.replace("id: a", "id: b"))
    files = Files(tmp_path)
    assert sorted(files.project.each(ids)) == [("a",), ("b",)]
    (tmp_path / "a.yaml").write_text(GOOD.replace("id: a", "id: other"))
    files.open(tmp_path / "b.yaml", GOOD.replace("id: a", "id: typed"))
    assert sorted(files.project.each(ids)) == [("other",), ("typed",)]
    (tmp_path / "a.yaml").unlink()
    assert sorted(files.project.each(ids)) == [("typed",)]


def test_a_file_that_is_asked_for_is_a_workflow(tmp_path: Path) -> None:
    """What a subworkflow step names is a workflow even where its looks don't tell; what can't be read is none."""
    write(tmp_path, empty_yaml="", **{"dir__w_yaml": GOOD})
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\xfa")
    files = Files(tmp_path)
    found = files.project.document(tmp_path / "empty.yaml")
    assert found is not None
    assert found.kind == "workflow"
    for name in ("missing.yaml", "dir", "bytes.yaml", "bytes.yaml/x", "nul\0.yaml"):
        assert files.project.document(tmp_path / name) is None, name
    os.mkfifo(tmp_path / "pipe.yaml")
    assert files.project.document(tmp_path / "pipe.yaml") is None
    assert files.names() == ["w.yaml"]


def test_memory_stays_within_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many files there are, only so many documents are alive; those in use stay, a walk doesn't throw them out."""
    monkeypatch.setattr(closed, "MOST_KEPT", 10 * len(GOOD))
    for number in range(60):
        (tmp_path / f"w{number:02}.yaml").write_text(GOOD)
    files = Files(tmp_path)
    used = files.project.document(tmp_path / "w59.yaml")
    alive: weakref.WeakSet[WorkflowDocument] = weakref.WeakSet()

    def walk(found: Iterable[WorkflowDocument]) -> None:
        for document in found:
            alive.add(document)

    for _ in range(3):
        walk(files.project.documents())
        list(files.project.each(ids))
    gc.collect()
    assert len(alive) <= 10
    assert used in alive
    files.checks.clear()
    assert files.project.document(tmp_path / "w59.yaml") is used
    assert files.checks == []


def test_a_search_lets_checks_pass() -> None:
    """Long work is put aside for checks of open documents, and ends when nobody waits for it any more."""
    done: list[str] = []
    began, go = threading.Event(), threading.Event()

    async def main() -> None:
        worker = Worker(asyncio.get_running_loop())

        def search() -> str:
            began.set()
            go.wait(10)
            worker.breathe()
            done.append("search")
            return "found"

        def endless() -> None:
            endless_began.set()
            while True:
                worker.breathe()

        found = worker.submit(search, SEARCH)
        await asyncio.to_thread(began.wait, 10)
        others = [
            worker.submit(lambda: done.append("closed"), CLOSED),
            worker.submit(lambda: done.append("second search"), SEARCH),
            worker.submit(lambda: done.append("check"), OPEN),
        ]
        go.set()
        assert await found == "found"
        await asyncio.gather(*others)
        assert done == ["check", "search", "second search", "closed"]
        endless_began = threading.Event()
        lost = worker.submit(endless, SEARCH)
        await asyncio.to_thread(endless_began.wait, 10)
        lost.cancel()
        assert await worker.submit(lambda: "goes on") == "goes on"

    asyncio.run(main())


@pytest.fixture
def puller(tmp_path: Path) -> Iterator[Local]:
    with Local() as peer:
        peer.initialize(PULLING, folder=tmp_path)
        yield peer
        assert peer.leave() == 0


def test_keys_of_open_names(tmp_path: Path) -> None:
    """A folder's names are those on disk and those that are only open in the editor yet, each once."""
    write(tmp_path, a_yaml=GOOD, sub__b_yaml=GOOD)
    files = Files(tmp_path)
    files.open(tmp_path / "new.yaml", GOOD)
    files.open(tmp_path / "a.yaml", GOOD)
    files.open(tmp_path / "sub" / "c.yaml", GOOD)
    assert files.session.workspace.list_folder(tmp_path) == ("a.yaml", "new.yaml", "sub")
    assert files.session.documents.names_in(tmp_path / "sub") == ["c.yaml"]
    assert uris.path_key(tmp_path / "a.yaml") == uris.key((tmp_path / "a.yaml").as_uri())


def test_a_large_folder_is_not_walked_through_all_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where that takes long, what was found is remembered, until something is said to have changed."""
    write(tmp_path, a_yaml=GOOD)
    workspace = Files(tmp_path).session.workspace
    monkeypatch.setattr("agentloom_lsp.workspace.DEAR", 0.0)
    monkeypatch.setattr("agentloom_lsp.workspace.REST", 1e9)
    assert [path.name for path in workspace.candidates()] == ["a.yaml"]
    write(tmp_path, b_yaml=GOOD)
    assert [path.name for path in workspace.candidates()] == ["a.yaml"]
    workspace.forget_files()
    assert [path.name for path in workspace.candidates()] == ["a.yaml", "b.yaml"]


async def _results(files: Files) -> None:
    async for _ in files.session.survey.results(files.session.progress("test")):
        pass


def test_a_look_at_everything_is_enough_for_what_is_expected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the first scan a search over all files checks none again, however few documents are kept."""
    monkeypatch.setattr(closed, "MOST_KEPT", 0)
    for number in range(5):
        (tmp_path / f"w{number}.yaml").write_text(GOOD)

    async def main() -> None:
        files = Files(tmp_path, loop=asyncio.get_running_loop())
        files.project.expect(ids)
        await _results(files)
        assert len(files.checks) == 5
        for _ in range(2):
            assert await files.session.worker.submit(lambda: list(files.project.each(ids))) == [("a",)] * 5
            assert len(files.checks) == 5
            assert await files.session.worker.submit(lambda: len(list(files.project.documents()))) == 5
            files.checks = files.checks[5:]  # documents that aren't kept are made again; what was made of them stays

    asyncio.run(main())


def test_folders_that_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that is no absolute path isn't looked for in the folder that the server happens to run in."""
    write(tmp_path, sub__a_yaml=GOOD)
    monkeypatch.chdir(tmp_path)
    workspace = Files(tmp_path / "none").session.workspace
    for folder in ("sub", "file:sub", "untitled:sub", "", "vscode-vfs://github/sub", "."):
        workspace.change_folders([folder], workspace.folders)
        assert workspace.candidates() == ()


def test_a_folder_without_end_is_not_gone_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody opens `/`: so many files and folders are looked at, and what is in a hurry comes first."""
    for number in range(30):
        write(tmp_path, **{f"d{number:02}__w_yaml": GOOD})
    workspace = Files(tmp_path).session.workspace
    breaths: list[int] = []
    assert len(workspace.candidates(lambda: breaths.append(1))) == 30
    assert len(breaths) == 31
    monkeypatch.setattr("agentloom_lsp.workspace.MOST_FOLDERS", 11)
    workspace.forget_files()
    assert len(workspace.candidates()) == 10
    monkeypatch.setattr("agentloom_lsp.workspace.MOST_FILES", 4)
    workspace.forget_files()
    assert len(workspace.candidates()) == 5
