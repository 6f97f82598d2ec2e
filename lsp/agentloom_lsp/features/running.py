"""Commands that start, end and show runs. Each answers at once; what becomes of a run is told as it happens."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from lsprotocol import types

from agentloom.analysis.context import path_of, read_from_disk
from agentloom.analysis.document import WorkflowDocument
from agentloom.diagnostics import Severity
from agentloom.durable.addresses import SQLITE
from agentloom.ide.last_run import files_of, texts_of
from agentloom_lsp import uris
from agentloom_lsp.features.kept import details
from agentloom_lsp.runs import arguments
from agentloom_lsp.runs.keys import what_is_missing
from agentloom_lsp.runs.places import home_of, store_of, working_folder
from agentloom_lsp.runs.run import Run
from agentloom_lsp.runs.running import new_run_id
from agentloom_lsp.runs.telling import WITH_MOCK, missing_key, outcome
from agentloom_lsp.session import ERROR, WARNING, Session
from agentloom_lsp.worker import CLOSED

Answer = dict[str, Any]


class Target(NamedTuple):
    """The workflow that is to run: as it is in the editor now, else on the disk."""

    uri: str
    path: Path | None
    document: WorkflowDocument

    @property
    def title(self) -> str:
        """What the workflow is called."""
        name = self.document.head.data.get("name")
        return name if isinstance(name, str) and name else uris.name_in(self.uri)


async def run(session: Session, params: types.ExecuteCommandParams) -> Answer:
    """`agentloom.run`: run a workflow as it is in the editor, saved or not."""
    return await start(session, arguments.one(params.arguments))


async def run_with_mock(session: Session, params: types.ExecuteCommandParams) -> Answer:
    """`agentloom.runWithMock`: the same with the provider `mock`."""
    return await start(session, {**arguments.one(params.arguments), "mock": True})


async def replay(session: Session, params: types.ExecuteCommandParams) -> Answer:
    """`agentloom.replay`: run a workflow with the replies of its recording."""
    return await start(session, {**arguments.one(params.arguments), "replay": True})


async def resume(session: Session, params: types.ExecuteCommandParams) -> Answer:
    """`agentloom.resume`: go on with a run that was kept."""
    return await go_on(session, arguments.one(params.arguments, "runId"))


async def approve(session: Session, params: types.ExecuteCommandParams) -> Answer:
    """`agentloom.approve`: approve the gate at which a run waits, and go on."""
    return await go_on(session, {**arguments.one(params.arguments, "runId"), "decision": "approve"})


async def reject(session: Session, params: types.ExecuteCommandParams) -> Answer:
    """`agentloom.reject`: reject it, and go on."""
    return await go_on(session, {**arguments.one(params.arguments, "runId"), "decision": "reject"})


async def cancel(session: Session, params: types.ExecuteCommandParams) -> Answer:
    """`agentloom.cancel`: end one run, those of a file, or all; each leaves a checkpoint."""
    asked = arguments.one(params.arguments, "runId")
    run_id, uri = arguments.text(asked, "runId"), arguments.text(asked, "uri")
    if run_id is not None and session.runs.process_id(run_id) is not None:
        found = [run_id]
    elif run_id is not None and uri is None and (on := session.database) is not None:  # somebody else follows it
        done = await session.stored_runs.cancel(on, session.home, run_id)
        session.look_at_database()
        return {"cancelled": [run_id] if done else []}
    elif (named := uri or run_id) is not None:  # a text alone may be either
        found = [run.run_id for run in session.runs.going_on(uris.key(named))]
    elif arguments.nothing(params.arguments, "runId", "uri"):
        found = [run.run_id for run in session.runs.going_on()]
    else:
        found = []
    return {"cancelled": [name for name in found if session.runs.cancel(name)]}


async def show_run(session: Session, params: types.ExecuteCommandParams) -> Any:
    """`agentloom.showRun`: open what is kept of a run, where the client can open files, and return it."""
    asked = arguments.one(params.arguments, "runId")
    found = await details(session, asked)
    if found is not None and found["checkpoint"] and session.client.shows_documents:
        uri = session.workspace.uri_of(Path(found["checkpoint"]))
        session.ask("window/showDocument", {"uri": uri, "takeFocus": True})
    return found


async def start(session: Session, asked: Mapping[str, Any]) -> Answer:
    """Start a run, unless the workflow has errors or no model can be called; say so then."""
    target = await _target(session, arguments.text(asked, "uri"))
    if target is None:
        return _refuse(session, "not-found", "there is no workflow to run; name an open file, or one on the disk")
    if refused := _errors(session, target):
        return refused
    replies = asked.get("mock") is True or asked.get("replay") is True or arguments.text(asked, "responses") is not None
    on = session.database if asked.get("replay") is not True else None  # a replay gives its result, and is kept here
    is_elsewhere = on is not None and not on.startswith(SQLITE)  # the keys are the workers'
    if not replies and not is_elsewhere and arguments.text(asked, "provider") != "mock":
        chosen = arguments.text(asked, "provider")
        missing = await session.worker.submit(lambda: what_is_missing(target.document, chosen))
        if missing is not None:
            return _offer(session, target, asked, missing)
    await _tell_unsaved(session, target)
    folder = working_folder(target.path, session.workspace.roots)
    store, run_id = store_of(folder), new_run_id()
    words = arguments.for_run(asked, run_id, target.path, store if on is None else None)
    key, document = uris.key(target.uri), target.document
    texts, files = await session.worker.submit(lambda: (texts_of(document), _files(document)))
    begun = Run(run_id, target.uri, key, target.title, store, texts, dict(asked), files, on)
    return _begin(session, begun, words, target.document.source.text, folder)


async def go_on(session: Session, asked: Mapping[str, Any]) -> Answer:
    """Go on with a kept run, in a process of its own."""
    run_id = arguments.text(asked, "runId")
    problems: list[str] = []
    known = await details(session, asked, problems)
    if run_id is None:
        return _refuse(session, "not-found", "say which run: `runId`")
    if known is None:
        return _refuse(session, "not-found", problems[0] if problems else f"there is no run `{run_id}`")
    on = session.database if "://" in known["folder"] else None
    store = Path(known["folder"]) if on is None else store_of(session.home)
    uri = known["uri"] or arguments.text(asked, "uri") or ""
    found = await _target(session, uri) if uri else None
    texts = texts_of(found.document) if found is not None else {}
    files = _files(found.document) if found is not None else {}
    title = known["workflow"] or run_id
    begun = Run(known["runId"], uri, uris.key(uri) if uri else "", title, store, texts, dict(asked), files, on)
    before = session.runs.find(known["runId"])
    if before is not None:
        begun.steps.update({path: step for path, step in before.steps.items() if step.status == "success"})
    words = arguments.for_resume(asked, known["runId"], store if on is None else None)
    return _begin(session, begun, words, None, home_of(store, session.workspace.roots))


def ended(session: Session, run: Run) -> None:
    """A run has ended: keep what its state was, for hovers, and offer the mock if all it needs is a key."""
    session.begin(_remember(session, run))
    if run.on is not None:
        session.look_at_database()
    if missing_key(run.error) is not None and session.client.shows_actions:
        resumed = "runId" in run.asked
        again = {**run.asked, "provider": "mock"} if resumed else {**run.asked, "uri": run.uri, "mock": True}
        _ask(
            session, outcome(run)[1], lambda: session.begin(go_on(session, again) if resumed else start(session, again))
        )


async def _remember(session: Session, run: Run) -> None:
    with contextlib.suppress(KeyError, ValueError):
        if run.on is not None:
            run.keep(await session.stored_runs.details(run.on, session.home, run.run_id))
            return
        run.keep(await session.worker.submit(lambda: session.kept_runs.details(run.store, run.run_id), CLOSED))


def _ask(session: Session, said: str, run: Callable[[], None]) -> None:
    """Show an error that the mock is a way around, and run with it if the user says so."""

    def chosen(answer: Any) -> None:
        if isinstance(answer, Mapping) and answer.get("title") == WITH_MOCK:
            run()

    actions = [{"title": WITH_MOCK}]
    session.ask("window/showMessageRequest", {"type": ERROR, "message": said, "actions": actions}, chosen)


def _files(document: WorkflowDocument) -> dict[str, str]:
    return {prefix: uris.path_key(path) for prefix, path in files_of(document)}


def _begin(session: Session, begun: Run, words: list[str], given: str | None, folder: Path) -> Answer:
    try:
        session.runs.start(begun, words, given, folder)
    except (OSError, RuntimeError, ValueError) as error:  # the last: arguments that no process can be given
        return _refuse(session, "not-started", f"`{begun.title}` can't be started: {error}")
    return {"runId": begun.run_id, "status": "started", "uri": begun.uri, "folder": begun.folder}


async def _target(session: Session, uri: str | None) -> Target | None:
    """Return the workflow that a URI names; without one, the only one that is open."""
    if uri is None:
        every = [found for key, _ in session.documents if (found := await _opened(session, key)) is not None]
        return every[0] if len(every) == 1 else None
    found = await _opened(session, uris.key(uri))
    path = path_of(uri)
    if found is not None or path is None:
        return found
    document = await session.worker.submit(lambda: session.project.document(path))
    return Target(uri, path, document) if document is not None and document.kind == "workflow" else None


async def _opened(session: Session, key: str) -> Target | None:
    try:
        checked = await session.scheduler.now(key)
    except KeyError:
        return None
    document = checked.document
    if document is None or document.kind != "workflow":
        return None
    return Target(document.source.uri, path_of(document.source.uri), document)


def _errors(session: Session, target: Target) -> Answer | None:
    """Say that a workflow has errors, which are in sight already; None when it has none."""
    errors = [found for found in target.document.diagnostics if found.severity is Severity.ERROR]
    if not errors:
        return None
    line = target.document.lines.line_of(errors[0].span.start) + 1
    count = "1 error" if len(errors) == 1 else f"{len(errors)} errors"
    said = f"`{target.title}` has {count}, nothing was run; line {line}: {errors[0].message}"
    return {**_refuse(session, "errors", said), "errors": len(errors)}


async def _tell_unsaved(session: Session, target: Target) -> None:
    """Say which of the files that the workflow names are read as they are on the disk, and not as they are in the editor."""

    def differs(path: Path) -> bool:
        opened = session.documents.on_path(path)
        if opened is None or path == target.path:
            return False
        try:
            return read_from_disk(path) != opened.source.text
        except (OSError, ValueError):
            return True

    files = sorted(target.document.files)
    unsaved = await session.worker.submit(lambda: [path.name for path in files if differs(path)])
    if unsaved:
        names = ", ".join(f"`{name}`" for name in unsaved)
        said = f"{names} {'is' if len(unsaved) == 1 else 'are'} not saved; the run reads what is on the disk"
        session.wire.notify("window/showMessage", {"type": WARNING, "message": said})


def _offer(session: Session, target: Target, asked: Mapping[str, Any], reason: str) -> Answer:
    said = f"`{target.title}` was not run: {reason}"
    again = {**asked, "uri": target.uri, "mock": True}
    if session.client.shows_actions:
        _ask(session, said, lambda: session.begin(start(session, again)))
    else:
        session.wire.notify("window/showMessage", {"type": ERROR, "message": f"{said}; or run it with the mock"})
    return {"runId": None, "refused": "missing-key", "message": said, "variable": missing_key(reason)}


def _refuse(session: Session, kind: str, said: str) -> Answer:
    level = ERROR if kind == "errors" else WARNING
    session.wire.notify("window/showMessage", {"type": level, "message": said})
    return {"runId": None, "refused": kind, "message": said}
