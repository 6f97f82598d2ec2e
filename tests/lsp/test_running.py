"""Runs from the editor, over real pipes: a server, its child processes, and what the user sees of them."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lsp.editor import Editor, checkpoint

MOCK = "name: flow\nconfig: {provider: mock, max_retries: 0}\n"
TWO = MOCK + (
    "steps:\n"
    "  - {id: one, type: llm_call, prompt: hi, output: first}\n"
    '  - {id: two, type: llm_call, depends_on: [one], prompt: "{state.first}", output: second}\n'
)
SLOW = (
    "name: slow\nconfig: {provider: mock, latency_ms: 600000}\n"
    "steps:\n"
    "  - {id: quick, type: tool, tool_name: where, output: place}\n"
    "  - {id: long, type: llm_call, depends_on: [quick], prompt: hi}\n"
)
GATE = MOCK + (
    "steps:\n"
    "  - {id: ask, type: approval_gate, output: verdict}\n"
    '  - {id: after, type: llm_call, depends_on: [ask], prompt: "{state.verdict}"}\n'
)


def tool(name: str) -> str:
    """Return a workflow with one step that calls a tool of the user's."""
    return MOCK + f"steps:\n  - {{id: it, type: tool, tool_name: {name}, output: out}}\n"


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    """A server for all tests that leave it as it was."""
    with Editor(tmp_path_factory.mktemp("space"), options={"run": {"grace": 400}}) as editor:
        yield editor
        assert editor.leave() == 0


@pytest.fixture(autouse=True)
def forgets(request: pytest.FixtureRequest) -> None:
    """Let what earlier tests showed go."""
    if "editor" in request.fixturenames:
        request.getfixturevalue("editor").seen.clear()


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A file's name that no other test has."""
    return f"{request.node.name.replace('[', '-').strip(']')}.loom.yaml"


def test_run_with_mock_by_the_lens(editor: Editor, name: str) -> None:
    """The lens above the workflow runs the text of the editor; events, progress and hints tell how it goes."""
    uri = editor.show(name, TWO.replace("mock", "openai"))
    assert editor.titles(uri) == ["▶ Run", "▶ Run with mock"]
    run_id = editor.press(uri, "▶ Run with mock")["runId"]
    assert editor.ended(run_id)["status"] == "success"
    kinds = [event["event"] for event in editor.events(run_id)]
    step = ["step_started", "step_finished"]
    assert kinds == ["run_started", *step, *step, "run_finished", "run_ended"]
    assert {event["run_id"] for event in editor.events(run_id)} == {run_id}
    assert [hint.split()[0] for hint in editor.hints(uri)] == ["✓", "✓"]
    shown = editor.progress()
    assert (shown[0]["kind"], shown[0]["title"], shown[0]["cancellable"]) == ("begin", "Running flow", True)
    assert "step 2 of 2: two" in [value.get("message") for value in shown]
    assert shown[-1]["kind"] == "end"
    assert shown[-1]["message"].startswith("`flow` is done: 2 steps, ")
    assert editor.messages() == []
    kept = checkpoint(editor.folder, run_id)
    assert (kept["status"], kept["source"]) == ("success", str(editor.folder / name))
    assert "⏵" not in "".join(editor.titles(uri))  # nothing is left to do


def test_what_is_not_saved_is_what_runs(editor: Editor, name: str) -> None:
    """Neither an older text on the disk, nor the text before the last keystroke."""
    (editor.folder / name).write_text(TWO.replace("two", "old"))
    uri = editor.show(name, TWO)
    editor.change(uri, "new", 4, 9, 4, 12)
    run_id = editor.run(uri=uri)
    editor.ended(run_id)
    assert set(editor.results(run_id)) == {"one", "new"}


def test_a_file_that_is_not_open(editor: Editor, name: str) -> None:
    """Runs from the disk."""
    path = editor.folder / "closed" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(TWO)
    run_id = editor.run(uri=path.as_uri())
    assert editor.ended(run_id)["status"] == "success"


def test_a_text_without_a_file(editor: Editor) -> None:
    """An untitled buffer runs too, is kept, and its lens finds it again."""
    uri = "untitled:Untitled-1"
    editor.open(uri, GATE)
    run_id = editor.run(uri=uri)
    assert editor.ended(run_id)["status"] == "paused"
    assert checkpoint(editor.folder, run_id)["source"] is None
    editor.seen.clear()
    assert editor.press(uri, "✓ Approve")["runId"] == run_id
    assert editor.ended(run_id)["status"] == "success"
    editor.close_document(uri)


def test_run_up_to_here(editor: Editor, name: str) -> None:
    """The lens of a step runs that step and what it waits for; a resume goes on to the end."""
    uri = editor.show(name, TWO)
    lens = next(lens for lens in editor.lenses(uri) if lens["title"] == "▶ Run up to here")
    assert lens["arguments"] == [{"uri": uri, "until": "one"}]
    run_id = editor.run(**lens["arguments"][0])
    editor.ended(run_id)
    assert set(editor.results(run_id)) == {"one"}
    assert len(editor.hints(uri)) == 1
    editor.seen.clear()
    assert editor.press(uri, "⏵ Resume")["runId"] == run_id
    assert editor.ended(run_id)["status"] == "success"
    assert set(editor.results(run_id)) == {"two"}
    assert len(editor.hints(uri)) == 2  # what ran before is still told


def test_the_button_of_the_progress_cancels(editor: Editor, name: str) -> None:
    """The run ends with a checkpoint; the lens resumes it, without what is done already."""
    uri = editor.show(name, SLOW)
    run_id = editor.run(uri=uri)
    editor.begins(run_id, "long")
    assert editor.titles(uri)[0] == f"■ Cancel {run_id[:6]} (1 of 2)"
    assert editor.hints(uri)[1] == "… running"
    (token,) = {m["params"]["token"] for m in editor.seen if m.get("method") == "$/progress"}
    editor.notify("window/workDoneProgress/cancel", {"token": token})
    assert editor.ended(run_id)["status"] == "cancelled"
    assert checkpoint(editor.folder, run_id)["status"] == "cancelled"
    assert [hint.split()[0] for hint in editor.hints(uri)] == ["✓", "✗"]
    assert editor.progress()[-1] == {"kind": "end", "message": "`slow` was cancelled; it can be resumed"}
    assert editor.titles(uri) == ["▶ Run", "▶ Run with mock", f"⏵ Resume {run_id[:6]} (cancelled)"]
    editor.seen.clear()
    editor.press(uri, "⏵ Resume")
    editor.begins(run_id, "long")
    assert set(editor.results(run_id)) == set()
    assert editor.command("resume", runId=run_id)["refused"] == "not-started"  # it goes on already
    assert editor.command("cancel", uri=uri) == {"cancelled": [run_id]}
    assert editor.ended(run_id)["status"] == "cancelled"
    assert editor.command("cancel", runId=run_id) == {"cancelled": []}


@pytest.mark.parametrize(("title", "verdict"), [("✓ Approve", "approved"), ("✗ Reject", "rejected")])
def test_a_gate(editor: Editor, name: str, title: str, verdict: str) -> None:
    """A run that waits is decided by its lens."""
    uri = editor.show(name, GATE)
    run_id = editor.run(uri=uri)
    assert editor.ended(run_id)["status"] == "paused"
    assert editor.messages() == ["`flow` waits at `ask`; approve or reject it above its first line"]
    short = run_id[:6]
    assert editor.titles(uri)[2:] == [f"✓ Approve {short} at ask", f"✗ Reject {short} at ask"]
    assert editor.hints(uri) == ["‖ waits"]
    editor.seen.clear()
    editor.press(uri, title)
    assert editor.ended(run_id)["status"] in ("success", "failed")
    assert checkpoint(editor.folder, run_id)["step_results"]["ask"]["output"] == verdict
    assert editor.titles(uri)[2:3] in ([], [f"⏵ Resume {short} (failed)"])


def test_several_at_once(editor: Editor, name: str) -> None:
    """One file twice, and another: each run has its own events, and ending one leaves the others."""
    one, other = editor.show(name, SLOW), editor.show(f"other-{name}", SLOW)
    runs = [editor.run(uri=one), editor.run(uri=one), editor.run(uri=other)]
    for run_id in runs:
        editor.begins(run_id, "long")
    assert len(editor.children()) == 3
    assert [title[:8] for title in editor.titles(one)[:3]] == ["■ Cancel", "■ Cancel", "▶ Run"]
    above = [lens["range"] for lens in editor.request("textDocument/codeLens", {"textDocument": {"uri": one}})][:4]
    assert {place["start"]["line"] for place in above} == {0}
    assert [place["start"]["character"] for place in above] == [0, 1, 2, 3]  # Neovim sorts by this, in no other order
    assert editor.command("cancel", runId=runs[0]) == {"cancelled": [runs[0]]}
    assert editor.ended(runs[0])["status"] == "cancelled"
    for named in (7, [], {"runId": 7}, {"uri": 5}, {"runId": ["x"]}, "file:///other.loom.yaml", {"uri": "file:///o"}):
        asked = {"command": "agentloom.cancel", "arguments": [named]}
        assert editor.request("workspace/executeCommand", asked) == {"cancelled": []}, named
    assert {run["runId"] for run in editor.request("agentloom/runs", {})["runs"] if run["ongoing"]} == set(runs[1:])
    alone = {"command": "agentloom.cancel", "arguments": [other]}
    assert editor.request("workspace/executeCommand", alone) == {"cancelled": [runs[2]]}
    assert runs[1] in editor.command("cancel")["cancelled"]
    for run_id in runs[1:]:
        assert editor.ended(run_id)["status"] == "cancelled"
    assert editor.children() == []


@pytest.mark.parametrize(
    "asked", [{"until": "\0"}, {"state": {"key": "\ud800"}}, {"model": "a\0b"}, {"model": "x" * 3_000_000}]
)
def test_what_no_process_can_be_given(editor: Editor, asked: dict[str, object]) -> None:
    """The user is told that nothing was started, and no progress goes on for ever."""
    uri = editor.show("odd.loom.yaml", TWO)
    answer = editor.command("run", uri=uri, **asked)
    assert (answer["runId"], answer["refused"]) == (None, "not-started")
    assert editor.messages() == [answer["message"]]
    assert answer["message"].startswith("`flow` can't be started: ")
    assert [value["kind"] for value in editor.progress()][-1:] in ([], ["end"])
    assert editor.titles(uri) == ["▶ Run", "▶ Run with mock"]
    editor.close_document(uri)


def test_a_checkpoint_that_cannot_be_read_is_named(editor: Editor) -> None:
    """Resuming it says what is wrong with the file, and not that there is none."""
    path = editor.folder / ".agentloom" / "checkpoints" / "broken.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{oops")
    answer = editor.command("resume", runId="broken")
    path.unlink()
    assert answer["refused"] == "not-found"
    assert answer["message"] == f"checkpoint `{path}` can't be read: it is no JSON, or not all of it"
    assert editor.command("resume", runId="broken")["message"] == "there is no run `broken`"


def test_wrong_usage_is_told_without_its_label(editor: Editor, name: str) -> None:
    """What the command line says of an option is a sentence of its own."""
    run_id = editor.run(uri=editor.show(name, TWO), responses="/nowhere/replies.json")
    error = editor.ended(run_id)["error"]
    assert error.startswith("Invalid value for '--mock-responses'")
    assert editor.messages() == [f"`flow` was not run: {error}"]


def test_the_child_is_killed(editor: Editor, name: str) -> None:
    """From outside, in the middle of a step: told as such, without a checkpoint, and resumed from the journal."""
    uri = editor.show(name, SLOW)
    run_id = editor.run(uri=uri)
    editor.begins(run_id, "long")
    (number,) = editor.children()
    os.kill(number, signal.SIGKILL)
    ended = editor.ended(run_id)
    assert (ended["status"], ended["exit_code"]) == ("interrupted", -9)
    assert editor.messages() == ["`slow` broke off: the process was ended by SIGKILL; it can be resumed"]
    assert editor.hints(uri)[1] == "✗ interrupted"
    assert not Path(f"/proc/{number}").exists()  # not even as a zombie
    assert editor.titles(uri)[2] == f"⏵ Resume {run_id[:6]} (interrupted)"
    editor.seen.clear()
    editor.press(uri, "⏵ Resume")
    editor.begins(run_id, "long")
    assert set(editor.results(run_id)) == set()
    editor.command("cancel", runId=run_id)
    editor.ended(run_id)


def test_a_tool_that_prints(editor: Editor, name: str) -> None:
    """Whatever it writes, and wherever, is neither an event nor a message of the protocol; it is kept to be looked at."""
    uri = editor.show(name, tool("chat"))
    run_id = editor.run(uri=uri)
    assert editor.ended(run_id)["status"] == "success"
    assert editor.results(run_id)["it"]["output"] == ""
    output = editor.request("agentloom/run", {"runId": run_id})["output"]
    assert "straight to descriptor 1" in output
    assert "and 2 😀" in output


def test_a_tool_that_exits(editor: Editor, name: str) -> None:
    """Its step fails; the run goes on to its end, and the server with it."""
    uri = editor.show(name, tool("leave"))
    run_id = editor.run(uri=uri)
    assert editor.ended(run_id)["status"] == "failed"
    assert editor.results(run_id)["it"]["status"] == "failed"


@pytest.mark.parametrize(("which", "words"), [("crash", "exit code 7"), ("die", "SIGKILL")])
def test_a_tool_that_ends_the_process(editor: Editor, name: str, which: str, words: str) -> None:
    """The run broke off; its last words are told."""
    uri = editor.show(name, tool(which))
    run_id = editor.run(uri=uri)
    ended = editor.ended(run_id)
    assert ended["status"] == "interrupted"
    assert words in ended["error"]
    assert ("out of luck" in ended["error"]) == (which == "crash")
    assert editor.hints(uri) == ["✗ interrupted"]


@pytest.mark.parametrize("which", ["wait", "hold"])
def test_a_tool_that_blocks_for_ever(editor: Editor, name: str, which: str) -> None:
    """In a thread, or with everything else: a cancel ends it all the same, and it can be resumed."""
    uri = editor.show(name, tool(which))
    run_id = editor.run(uri=uri)
    editor.begins(run_id, "it")
    editor.command("cancel", runId=run_id)
    assert editor.ended(run_id)["status"] == "cancelled"
    assert editor.children() == []
    assert editor.titles(uri)[2].startswith(f"⏵ Resume {run_id[:6]}")


def test_what_the_child_has(editor: Editor, name: str) -> None:
    """The workspace folder to work in, a session of its own, and nothing of the server's pipes."""
    uri = editor.show(f"deep/er/{name}", MOCK + (
        "steps:\n  - {id: files, type: tool, tool_name: open_files}\n  - {id: where, type: tool, tool_name: where}\n"
    ))  # fmt: skip
    run_id = editor.run(uri=uri)
    editor.ended(run_id)
    results = editor.results(run_id)
    assert results["where"]["output"] == [str(editor.folder), True]
    assert editor.process.stdin is not None
    assert editor.process.stdout is not None
    ours = {os.readlink(f"/proc/self/fd/{pipe.fileno()}") for pipe in (editor.process.stdin, editor.process.stdout)}
    assert len(ours) == 2
    assert not ours & set(results["files"]["output"])


def test_a_workflow_with_errors(editor: Editor, name: str) -> None:
    """Its errors are told, and nothing starts."""
    uri = editor.show(name, TWO.replace("[one]", "[zz]"))
    answer = editor.command("run", uri=uri)
    assert (answer["runId"], answer["refused"], answer["errors"]) == (None, "errors", 1)
    assert editor.messages() == [answer["message"]]
    assert answer["message"].startswith("`flow` has 1 error, nothing was run; line 5: ")
    assert editor.children() == []
    assert "▶ Run" in editor.titles(uri)


def test_what_the_command_line_refuses(editor: Editor, name: str) -> None:
    """Its own words are told: here of a tools module that can't be imported."""
    uri = editor.show(f"lost/{name}", TWO)
    (editor.folder / "lost" / "agentloom.toml").write_text('tools = ["nowhere_to_be_found"]\n')
    run_id = editor.run(uri=uri)
    ended = editor.ended(run_id)
    assert (ended["status"], ended["exit_code"]) == ("refused", 2)
    assert "nowhere_to_be_found" in ended["error"]
    assert editor.messages() == [f"`flow` was not run: {ended['error']}"]
    assert editor.titles(uri) == ["▶ Run", "▶ Run with mock"]


def test_odd_arguments(editor: Editor, name: str) -> None:
    """Nothing to run, nothing to resume: a word to the user, and no error of the protocol."""
    for command, argument in (
        ("run", {"uri": "file:///nowhere/at-all.loom.yaml"}),
        ("run", {"uri": "untitled:nothing"}),
        ("run", {"uri": 3}),
        ("resume", {}),
        ("resume", {"runId": "nobody"}),
        ("approve", {"runId": "../../etc/passwd"}),
    ):
        answer = editor.command(command, **argument)
        assert (answer["runId"], answer["refused"]) == (None, "not-found"), (command, argument)
        assert editor.messages() == [answer["message"]]
    assert editor.command("showRun", runId="nobody") is None
    assert editor.request("agentloom/run", None) is None
    assert editor.request("agentloom/graph", {"textDocument": {"uri": "untitled:nothing"}}) is None
    assert editor.request("workspace/executeCommand", {"command": "agentloom.cancel"}) == {"cancelled": []}


def test_state_and_models_from_the_command(editor: Editor, name: str) -> None:
    """What the editor's user gives for one run: values of every kind."""
    uri = editor.show(name, MOCK + 'steps:\n  - {id: a, type: llm_call, prompt: "{state.x} {state.n} {state.l}"}\n')
    run_id = editor.run(uri=uri, state={"x": "007", "n": 5, "l": ["é 😀", None]}, model="other", budget=2)
    editor.ended(run_id)
    kept = checkpoint(editor.folder, run_id)
    assert {key: kept["state"][key] for key in "xnl"} == {"x": "007", "n": 5, "l": ["é 😀", None]}
    assert editor.results(run_id)["a"]["model"] == "other"
    assert kept["workflow_definition"]["config"]["budget_usd"] == 2


def test_a_large_state_from_the_command(editor: Editor) -> None:
    """More than a command line holds, and nothing of it in the list of processes: for a run and a resume."""
    uri = editor.show("large.loom.yaml", GATE)
    large = {"text": "x" * 2_000_000, "user.name": "Ann", "list": ["é 😀", None, {"a=b": 1}], "secret": "hush-hush"}
    first = editor.run(uri=uri, state=large, mock=True)
    assert editor.ended(first)["status"] == "paused"
    kept = checkpoint(editor.folder, first)["state"]
    assert (kept["text"], kept["user"], kept["list"]) == (large["text"], {"name": "Ann"}, large["list"])
    editor.seen.clear()
    assert editor.run("resume", runId=first, decision="approve", state={"text": "y" * 1_000_000}) == first
    assert editor.ended(first)["status"] == "success"
    assert checkpoint(editor.folder, first)["state"]["text"] == "y" * 1_000_000
    uri = editor.show("slow-large.loom.yaml", SLOW)
    third = editor.run(uri=uri, state=large)
    editor.begins(third, "long")
    (number,) = editor.children()
    assert b"hush" not in Path(f"/proc/{number}/cmdline").read_bytes()
    editor.command("cancel", runId=third)
    editor.ended(third)


def test_a_failure_is_a_diagnostic_until_its_step_is_edited(editor: Editor, name: str) -> None:
    """With the provider's message, on the step's name; edits elsewhere move it, an edit of the step takes it away."""
    text = TWO.replace("{id: two, type: llm_call", "{id: two, type: tool, tool_name: leave").replace(
        ', prompt: "{state.first}"', ""
    )
    uri = editor.show(name, text)
    run_id = editor.run(uri=uri)
    ended = editor.ended(run_id)
    (report,) = editor.errors(uri, 1)
    assert (report["code"], report["source"], report["range"]["start"]) == (
        "run-failed",
        "agentloom",
        {"line": 4, "character": 9},
    )
    assert report["message"] in ended["error"]
    assert report["message"] == editor.results(run_id)["two"]["error"]
    version = editor.change(uri, "# a comment\n", 0, 0, 0, 0)
    (moved,) = editor.errors(uri, version)
    assert moved["range"]["start"] == {"line": 5, "character": 9}
    version = editor.change(uri, "four", 5, 9, 5, 12)
    assert editor.errors(uri, version) == []
    editor.seen.clear()
    assert editor.ended(editor.press(uri, "▶ Run with")["runId"])["status"] == "failed"  # it was no error of the file


def test_hovers_show_the_last_values(editor: Editor, name: str) -> None:
    """Of steps and state paths; what is redacted in the checkpoint stays so."""
    text = MOCK + (
        "state_schema: {password: {redact: true}}\n"
        "steps:\n"
        "  - {id: ask, type: tool, tool_name: secret, output: password}\n"
        "  - {id: place, type: tool, tool_name: where, output: found}\n"
        '  - {id: end, type: llm_call, depends_on: [ask, place], prompt: "{state.found[0]} {state.password}"}\n'
    )
    uri = editor.show(name, text)
    run_id = editor.run(uri=uri)
    assert editor.ended(run_id)["status"] == "success"
    assert f"In run `{run_id}` it succeeded in" in editor.hover(uri, 5, 10)
    said = editor.hover(uri, 6, text.splitlines()[6].index("found") + 1)
    assert "After the last run" in said
    assert str(editor.folder) in said
    said = editor.hover(uri, 6, text.splitlines()[6].index("password") + 1)
    assert "<REDACTED:sha256=" in said
    for place in ((4, 10), (6, 10)):
        assert "hunter2" not in editor.hover(uri, *place)
    assert "hunter2" not in json.dumps(editor.seen)
    assert "hunter2" not in json.dumps(editor.request("agentloom/run", {"runId": run_id}))


def test_lists_and_details(editor: Editor, name: str) -> None:
    """What a view of runs shows: each with its file, the latest first, and all about one of them."""
    uri = editor.show(name, TWO)
    first, second = (editor.run(uri=uri) for _ in range(2))
    for run_id in (first, second):
        editor.ended(run_id)
    runs = editor.request("agentloom/runs", {"uri": uri})["runs"]
    assert {run["runId"] for run in runs} == {first, second}
    assert runs == sorted(runs, key=lambda run: run["updated"], reverse=True)
    assert all(run["uri"] == uri and run["status"] == "success" and not run["resumable"] for run in runs)
    assert [run["runId"] for run in editor.request("agentloom/runs", {"uri": uri, "limit": 1})["runs"]] == [
        runs[0]["runId"]
    ]
    details = editor.request("agentloom/run", {"runId": first, "folder": runs[0]["folder"]})
    assert details["results"]["two"]["status"] == "success"
    assert details["state"]["second"] == "Mock response"
    shown = editor.command("showRun", runId=first)
    assert shown["checkpoint"] == str(editor.folder / ".agentloom" / "checkpoints" / f"{first}.json")
    (asked,) = [m["params"]["uri"] for m in editor.seen if m.get("method") == "window/showDocument"]
    assert asked == Path(shown["checkpoint"]).as_uri()


def test_long_texts_are_cut_where_they_are_shown(editor: Editor, name: str) -> None:
    """An editor isn't sent what it could not open; the checkpoint has it all."""
    uri = editor.show(name, TWO.replace("steps:", f"state: {{long: [{{text: {'x' * 150_000}}}]}}\nsteps:"))
    run_id = editor.run(uri=uri)
    assert editor.ended(run_id)["status"] == "success"
    assert editor.request("agentloom/run", {"runId": run_id})["state"]["long"][0]["text"] == "x" * 100_000 + "…"
    assert checkpoint(editor.folder, run_id)["state"]["long"][0]["text"] == "x" * 150_000


def test_the_graph(editor: Editor, name: str) -> None:
    """Boxes and arrows with their places in the text, inner workflows, and how the last run went."""
    text = TWO + (
        "  - id: sub\n    type: subworkflow\n    depends_on: [two]\n    workflow_inline:\n      name: inner\n"
        "      steps:\n        - {id: deep, type: llm_call, prompt: hi}\n"
    )
    uri = editor.show(name, text)
    assert editor.request("agentloom/graph", {"textDocument": {"uri": uri}})["run"] is None
    run_id = editor.run(uri=uri)
    editor.ended(run_id)
    drawn = editor.request("agentloom/graph", {"textDocument": {"uri": uri}})
    assert drawn == editor.command("graph", uri=uri)
    assert (drawn["uri"], drawn["documentVersion"], drawn["run"]["runId"]) == (uri, 1, run_id)
    assert drawn["criticalPath"] == ["one", "two", "sub"]
    nodes = {node["id"]: node for node in drawn["nodes"]}
    assert nodes["two"]["nameRange"]["start"] == {"line": 4, "character": 9}
    assert nodes["two"]["run"]["status"] == "success"
    (deep,) = nodes["sub"]["child"]["nodes"]
    assert (deep["path"], deep["range"]["start"]["line"], deep["run"]["status"]) == ("sub.deep", 11, "success")
    assert len(editor.hints(uri)) == 4


def test_other_runs_of_the_folder(editor: Editor, name: str) -> None:
    """A lens offers only runs of its own file."""
    uri, other = editor.show(name, GATE), editor.show(f"other-{name}", GATE)
    editor.ended(editor.run(uri=uri))
    assert len(editor.titles(uri)) == 4
    assert len(editor.titles(other)) == 2


def test_files_that_are_not_saved(editor: Editor, name: str) -> None:
    """What a workflow names is read from the disk; where the editor shows something else, that is said."""
    (editor.folder / "inner.loom.yaml").write_text(TWO)
    outer = MOCK + "steps:\n  - {id: sub, type: subworkflow, workflow_path: inner.loom.yaml}\n"
    uri = editor.show(name, outer)
    inner = editor.show("inner.loom.yaml", TWO)
    editor.ended(editor.run(uri=uri))
    assert editor.messages() == []
    editor.change(inner, "new", 4, 9, 4, 12)
    run_id = editor.run(uri=uri)
    editor.ended(run_id)
    assert editor.messages() == ["`inner.loom.yaml` is not saved; the run reads what is on the disk"]
    assert set(editor.results(run_id)) == {"sub", "sub.one", "sub.two"}
    editor.close_document(inner)


def test_a_workflow_in_a_file_of_its_own(editor: Editor, name: str) -> None:
    """Where that is open, too, it shows how it went inside the run of the other, until it is run by itself."""
    (editor.folder / f"inner-{name}").write_text(tool("leave"))
    outer = MOCK + f"steps:\n  - {{id: sub, type: subworkflow, workflow_path: inner-{name}}}\n"
    uri, inner = editor.show(name, outer), editor.show(f"inner-{name}", tool("leave"))
    editor.ended(editor.run(uri=uri))
    assert editor.hints(uri)[0].startswith("✗ failed")
    assert editor.hints(inner)[0].startswith("✗ failed")
    assert len(editor.errors(uri, 1)) == len(editor.errors(inner, 1)) == 1
    editor.change(inner, "chat", 3, 36, 3, 41)
    run_id = editor.run(uri=inner)
    assert editor.ended(run_id)["status"] == "success"
    assert editor.hints(inner)[0].startswith("✓")
    assert editor.hints(uri)[0].startswith("✗ failed")
    assert editor.errors(inner, 2) == []


def test_an_old_failure_goes_when_a_run_begins(editor: Editor, name: str) -> None:
    """What failed before is no news of the run that goes on now."""
    uri = editor.show(name, tool("leave"))
    editor.ended(editor.run(uri=uri))
    assert len(editor.errors(uri, 1)) == 1
    editor.seen.clear()
    run_id = editor.run(uri=uri)
    published = editor.until(lambda m: m.get("method") == "textDocument/publishDiagnostics")["params"]["diagnostics"]
    assert [report for report in published if report["code"] == "run-failed"] == []
    editor.ended(run_id)
    assert len(editor.errors(uri, 1)) == 1
