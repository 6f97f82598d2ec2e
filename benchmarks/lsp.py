"""Measure the language server as an editor feels it, beside yaml-language-server with our schema, and write the table.

Both are real processes over stdio and take turns, so a busy machine slows both alike. Both get the same edits and must show what
they should: a misspelled key is one diagnostic, and the next edit takes it back. Figures only: nothing fails because a machine is slow.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))

import generate
import machine
from editor import Editor, Program
from servers import agentloom, yaml_language_server

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- make bench-lsp writes from here -->\n", "<!-- to here -->\n"
PAUSE = 0.4
"""Seconds that a person stops between two edits, so that neither is part of a burst."""
STARTS, EDITS, ASKED, BURSTS = 9, 10, 10, 5
KEYSTROKES, BURST_SECONDS = 20, 0.6
MANY_EDITS, EDITS_AT_ONCE = 1000, 20
SIZES = (700, 3_500, 14_000)


class Times(NamedTuple):
    """Seconds of several repetitions."""

    seconds: Sequence[float]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def __str__(self) -> str:
        return f"{_ms(self.median)}, worst {_ms(max(self.seconds))}"


class Row(NamedTuple):
    """A line of the table: ours and theirs as text, the ratio where both are one kind of number, and what is aimed at."""

    what: str
    ours: str
    theirs: str = ""
    ratio: str = ""
    aim: str = ""


def timed(what: str, ours: Times, theirs: Times | None = None, aim: str = "") -> Row:
    """Return a line that compares times."""
    if theirs is None:
        return Row(what, str(ours), aim=aim)
    return Row(what, str(ours), str(theirs), f"{ours.median / theirs.median:.2f}x", aim)


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.{1 if seconds < 0.01 else 0}f} ms"


class Place(NamedTuple):
    """Where a text is edited and asked about: a line with a key in the middle, and a line without anything below it."""

    uri: str
    text: str
    key_line: int
    empty_line: int
    needs_line: int
    prompt_line: int


def place(folder: Path, name: str, lines: int) -> Place:
    """Return a workflow of about that many lines with an empty line, at the indentation of a step's keys, in a step in the middle."""
    made = generate.many_steps(lines).split("\n")
    middle = len(made) // 2
    at = next(number for number in range(middle, len(made)) if made[number].startswith("    temperature:"))
    made.insert(at + 1, "    ")
    text = "\n".join(made)
    return Place((folder / name).as_uri(), text, at, at + 1, at - 1, at + 2)


def start(programs: Sequence[Program], folder: Path) -> list[Row]:
    """From the start of a process to its first answer, and to the diagnostics of the first file."""
    spot = place(folder, "first.loom.yaml", 700)
    broken = spot.text.replace("    temperature:", "    temprature:", 1)
    answered: list[list[float]] = [[] for _ in programs]
    shown: list[list[float]] = [[] for _ in programs]
    offered: list[list[float]] = [[] for _ in programs]
    for _ in range(STARTS):
        for number, program in enumerate(programs):
            with Editor(program, folder) as editor:
                answered[number].append(editor.initialized)
                since = editor.open(spot.uri, broken)
                shown[number].append(editor.shown(spot.uri, since, 1).at - editor.started)
                question(editor, "textDocument/completion", spot, spot.empty_line, 4)
                offered[number].append(time.perf_counter() - editor.started)
    return [
        timed("start → initialize answered", *map(Times, answered), aim="≤ 400 ms"),
        timed("start → diagnostics of a first file of 700 lines", *map(Times, shown)),
        timed("start → completion in that file", *map(Times, offered)),
    ]


def edits(editors: Sequence[Editor], folder: Path, lines: int, aim: str) -> list[Row]:
    """One change after a pause → its diagnostics, whatever the server waits for included."""
    spot = place(folder, f"edits-{lines}.loom.yaml", lines)
    for editor in editors:
        editor.shown(spot.uri, editor.open(spot.uri, spot.text), 0)
    taken: list[list[float]] = [[] for _ in editors]
    for turn in range(EDITS):
        for number, editor in enumerate(editors):
            time.sleep(PAUSE)
            taken[number].append(keystroke(editor, spot, turn % 2 == 0))
    for editor in editors:
        editor.close(spot.uri)
    return [timed(f"{lines:,} lines, one change → diagnostics", *map(Times, taken), aim=aim)]


def keystroke(editor: Editor, spot: Place, wrong: bool) -> float:
    """Misspell a key, or mend it; return the seconds until the diagnostics say so."""
    since = editor.edit(spot.uri, spot.key_line, 4, 0 if wrong else 1, "q" if wrong else "")
    return editor.shown(spot.uri, since, int(wrong)).at - since


def asked(editors: Sequence[Editor], folder: Path, lines: int, aims: tuple[str, str]) -> list[Row]:
    """Completion and hover in the middle of a file: of a text that has come to rest, and right after a keystroke."""
    spot = place(folder, f"asked-{lines}.loom.yaml", lines)
    for editor in editors:
        editor.shown(spot.uri, editor.open(spot.uri, spot.text), 0)
    ours = editors[:1]
    questions: list[tuple[str, str, Sequence[Editor], int, int, str]] = [
        ("completion of a key", "completion", editors, spot.empty_line, 4, aims[0]),
        ("completion of a step's name", "completion", ours, spot.needs_line, len("    depends_on: [step_"), aims[0]),
        ("completion in a template", "completion", ours, spot.prompt_line, spot_of(spot, "{state."), aims[0]),
        ("hover over a key", "hover", editors, spot.key_line, 6, aims[1]),
        ("hover over a step's name", "hover", ours, spot.needs_line, len("    depends_on: [st"), aims[1]),
    ]
    rows = []
    for what, method, whom, line, character, aim in questions:
        taken = [
            [question(editor, f"textDocument/{method}", spot, line, character) for _ in range(ASKED)] for editor in whom
        ]
        rows.append(timed(f"{lines:,} lines, {what}", *map(Times, taken), aim=aim))
    rows.append(timed(f"{lines:,} lines, completion right after a keystroke", *map(Times, typed(editors, spot))))
    for editor in editors:
        editor.close(spot.uri)
    return rows


def spot_of(spot: Place, words: str) -> int:
    """Return the column behind some words on the line of the prompt."""
    return spot.text.split("\n")[spot.prompt_line].index(words) + len(words)


def question(editor: Editor, method: str, spot: Place, line: int, character: int) -> float:
    """Ask once; return the seconds. An empty answer is no answer."""
    answer, seconds = editor.ask_at(method, spot.uri, line, character)
    if not answer or (isinstance(answer, dict) and not (answer.get("items") or answer.get("contents"))):
        raise RuntimeError(f"{editor.program.name} has nothing to say to {method} at {line + 1}:{character + 1}")
    return seconds


def typed(editors: Sequence[Editor], spot: Place) -> list[list[float]]:
    """Type the first letter of a key and ask for the rest at once; return the seconds from the key to the answer."""
    taken: list[list[float]] = [[] for _ in editors]
    for _ in range(ASKED):
        for number, editor in enumerate(editors):
            since = editor.edit(spot.uri, spot.empty_line, 4, 0, "m")
            question(editor, "textDocument/completion", spot, spot.empty_line, 5)
            taken[number].append(time.perf_counter() - since)
            editor.shown(spot.uri, since)
            editor.shown(spot.uri, editor.edit(spot.uri, spot.empty_line, 4, 1, ""), 0)
    return taken


def everything(editor: Editor, folder: Path, lines: int) -> Row:
    """A keystroke and all that VS Code asks after one: the time until the last answer is there, diagnostics apart."""
    spot = place(folder, f"everything-{lines}.loom.yaml", lines)
    editor.shown(spot.uri, editor.open(spot.uri, spot.text), 0)
    document = {"textDocument": {"uri": spot.uri}}
    here = {"start": {"line": spot.key_line, "character": 4}, "end": {"line": spot.key_line, "character": 4}}
    screen = {
        "start": {"line": spot.key_line - 30, "character": 0},
        "end": {"line": spot.key_line + 30, "character": 0},
    }
    asks: list[tuple[str, dict[str, Any]]] = [
        ("textDocument/semanticTokens/full", {}),
        ("textDocument/inlayHint", {"range": screen}),
        ("textDocument/documentSymbol", {}),
        ("textDocument/foldingRange", {}),
        ("textDocument/documentLink", {}),
        ("textDocument/codeAction", {"range": here, "context": {"diagnostics": [], "triggerKind": 2}}),
        ("textDocument/documentHighlight", {"position": here["start"]}),
    ]
    taken = []
    for turn in range(ASKED):
        time.sleep(PAUSE)
        wrong = turn % 2 == 0
        since = editor.edit(spot.uri, spot.key_line, 4, 0 if wrong else 1, "q" if wrong else "")
        for end in [editor.begin(method, {**document, **more}) for method, more in asks]:
            end()
        taken.append(time.perf_counter() - since)
        editor.shown(spot.uri, since, int(wrong))
    editor.close(spot.uri)
    return timed(f"{lines:,} lines, one change → {len(asks)} questions of VS Code answered", Times(taken))


def burst(editors: Sequence[Editor], folder: Path) -> list[Row]:
    """Twenty keystrokes in 0.6 s: how often diagnostics came, and how long a hover in between took."""
    spot = place(folder, "burst.loom.yaml", 3_500)
    for editor in editors:
        editor.shown(spot.uri, editor.open(spot.uri, spot.text), 0)
    published: list[list[int]] = [[] for _ in editors]
    hovers: list[list[float]] = [[] for _ in editors]
    rests: list[list[float]] = [[] for _ in editors]
    for _ in range(BURSTS):
        for number, editor in enumerate(editors):
            time.sleep(PAUSE)
            before = len(editor.publishes)
            begin = since = time.perf_counter()
            for key in range(KEYSTROKES):
                time.sleep(max(0.0, begin + key * BURST_SECONDS / KEYSTROKES - time.perf_counter()))
                since = editor.edit(spot.uri, spot.key_line, 4 + key, 0, "q")
                if key % 5 == 3:
                    hovers[number].append(question(editor, "textDocument/hover", spot, spot.key_line + 3, 6))
            rests[number].append(editor.shown(spot.uri, since, 1).at - since)
            time.sleep(PAUSE)
            published[number].append(len(editor.publishes) - before)
            editor.shown(spot.uri, editor.edit(spot.uri, spot.key_line, 4, KEYSTROKES, ""), 0)
    for editor in editors:
        editor.close(spot.uri)
    most = [f"{max(counts)}" for counts in published]
    return [
        Row("3,500 lines, 20 keystrokes in 0.6 s: publishes", most[0], most[1], aim="≤ 2"),
        timed("3,500 lines, last of 20 keystrokes → diagnostics", *map(Times, rests)),
        timed("3,500 lines, hover during 20 keystrokes", *map(Times, hovers), aim="≤ 60 ms"),
    ]


def memory(programs: Sequence[Program], folder: Path) -> list[Row]:
    """The memory of a fresh process with 3,500 lines open, before and after a thousand edits."""
    spot = place(folder, "memory.loom.yaml", 3_500)
    before, after = [], []
    for program in programs:
        with Editor(program, folder) as editor:
            warm(editor, folder)
            editor.shown(spot.uri, editor.open(spot.uri, spot.text), 0)
            before.append(editor.memory())
            for number in range(MANY_EDITS):
                wrong = number % 2 == 0
                since = editor.edit(spot.uri, spot.key_line, 4, 0 if wrong else 1, "q" if wrong else "")
                if number % EDITS_AT_ONCE == EDITS_AT_ONCE - 2:
                    editor.shown(spot.uri, since, 1)
            editor.shown(spot.uri, since, 0)
            after.append(editor.memory())
    return [
        Row(what, f"{one:.0f} MiB", f"{other:.0f} MiB", f"{one / other:.2f}x")
        for what, (one, other) in (("memory, 3,500 lines open", before), ("memory, after 1,000 edits", after))
    ]


def measured(programs: Sequence[Program], folder: Path, say: Callable[[Row], Any]) -> None:
    """Measure everything once and hand on each line when it is known."""
    for row in start(programs, folder):
        say(row)
    with ExitStack() as stack:
        editors = [stack.enter_context(Editor(program, folder)) for program in programs]
        for editor in editors:
            warm(editor, folder)
        for lines, aim in zip(SIZES, ("≤ 150 ms", "", "≤ 400 ms"), strict=True):
            for row in edits(editors, folder, lines, aim):
                say(row)
        for lines, aims in ((700, ("≤ 15 ms", "≤ 10 ms")), (14_000, ("", ""))):
            for row in asked(editors, folder, lines, aims):
                say(row)
            say(everything(editors[0], folder, lines))
        for row in burst(editors, folder):
            say(row)
    for row in memory(programs, folder):
        say(row)


def warm(editor: Editor, folder: Path) -> None:
    """Wait until a server knows its settings and schema, so that it finds a mistake, and has answered a first question."""
    uri = (folder / "warm.loom.yaml").as_uri()
    editor.shown(uri, editor.open(uri, "name: warm\nsteps: 1\n"), 1)
    editor.ask_at("textDocument/hover", uri, 0, 1)
    editor.close(uri)


def table(rows: Sequence[Row]) -> str:
    """Return the lines as a Markdown table."""
    head = Row("what", "agentloom", "yaml-language-server", "ratio", "aim")
    return "".join(
        "| " + " | ".join(cell.strip() for cell in row) + " |\n" for row in (head, Row(*["---"] * len(head)), *rows)
    )


def main() -> None:
    """Measure, print, and write the table into the page."""
    rows: list[Row] = []

    def say(row: Row) -> None:
        rows.append(row)
        print(f"{row.what:<52} {row.ours:<26} {row.theirs:<26} {row.ratio:>6}  {row.aim}".rstrip(), flush=True)

    ours, theirs = agentloom(), yaml_language_server()
    about = f"{machine.described()}; {machine.commit(ROOT)}; {theirs.name} on Node.js {machine.version('node')}."
    print(about + "\n")
    say(Row("what", "agentloom", "yaml-language-server", "ratio", "aim"))
    rows.clear()
    with tempfile.TemporaryDirectory() as name:
        measured((ours, theirs), Path(name), say)
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    if END not in rest:
        raise SystemExit(f"{PAGE.name} has no place for the table")
    PAGE.write_text(f"{head}{BEGIN}\n{about}\n\n{table(rows)}\n{END}{tail}", encoding="utf-8")


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"`{' '.join(map(str, error.cmd))}` failed") from error
