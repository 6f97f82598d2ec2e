"""What needs what: steps by `depends_on`, workflows through the steps that run them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from agentloom.analysis.analyze import analyze
from agentloom.analysis.context import Context
from agentloom.analysis.document import WorkflowDocument
from agentloom.ide.hierarchy import Call, callers_at, incoming, outgoing
from agentloom.text import Source
from tests.analysis.checking import H
from tests.ide.marked import opened

T = TypeVar("T")
MAIN = (
    "name: main\nsteps:\n  - {id: a, type: tool}\n  - id: b\n    depends_on: [a, 'a', zz, b]\n  - {id: c, type: tool, depends_on: [b, a]}\n"
    "  - id: s\n    type: subworkflow\n    depends_on: [c]\n    workflow_path: child.loom.yaml\n"
    "  - id: i\n    type: subworkflow\n    workflow_inline:\n      name: inner\n      steps:\n        - {id: q, type: tool}\n"
    "        - {id: r, type: subworkflow, depends_on: [q], workflow_path: child.loom.yaml}\n"
)
CHILD = "name: child\nsteps:\n  - {id: x, type: tool}\n  - {id: y, type: tool, depends_on: [x]}\n  - {id: z, type: tool, depends_on: [x]}\n"
FILES = {Path("/w/main.loom.yaml"): MAIN, Path("/w/child.loom.yaml"): CHILD}


class Files:
    """A workspace of two files."""

    def __init__(self) -> None:
        context = Context(read_text=lambda path: FILES[path], exists=lambda path: path in FILES)
        self.all = {path: analyze(Source(str(path), text), context) for path, text in FILES.items()}

    def documents(self, mentioning: str = "") -> Iterator[WorkflowDocument]:
        return iter(self.all.values())

    def each(self, function: Callable[[WorkflowDocument], T]) -> Iterator[T]:
        return map(function, self.all.values())

    def document(self, path: Path) -> WorkflowDocument | None:
        return self.all.get(path)


def told(calls: list[Call], texts: dict[str, str] | None = None, source: str = "") -> list[str]:
    """Return each call as `name: words`, the words those of the caller's text (that of ``source`` for outgoing ones)."""
    found = []
    for call in calls:
        text = source or call.end.place.source.text
        found.append(f"{call.end.name}: {' '.join(text[slice(*span)] for span in call.spans)}")
    return found


@pytest.mark.parametrize(
    ("kind", "trail", "expected"),
    [
        ("step", ["a"], []),
        ("step", ["b"], ["a: a a"]),
        ("step", ["c"], ["b: b", "a: a"]),
        ("step", ["s"], ["c: c", "child: child.loom.yaml"]),
        ("step", ["i"], ["inner: workflow_inline"]),
        ("step", ["i", "r"], ["q: q", "child: child.loom.yaml"]),
        ("workflow", [], ["s: s", "i: i"]),
        ("workflow", ["i"], ["r: r"]),
        ("step", ["gone"], []),
        ("step", ["a", "q"], []),
        ("step", [], []),
        ("workflow", ["b"], []),
        ("nonsense", [], []),
    ],
)
def test_what_something_needs(kind: str, trail: list[str], expected: list[str]) -> None:
    """Dependencies that are there, each once with all its places, then the workflow that a step runs; of a workflow, its ends."""
    files = Files()
    document = files.all[Path("/w/main.loom.yaml")]
    assert told(outgoing(document, kind, tuple(trail), files), source=MAIN) == expected


@pytest.mark.parametrize(
    ("file", "kind", "trail", "expected"),
    [
        ("main", "step", ["a"], ["b: a a", "c: a"]),
        ("main", "step", ["c"], ["s: c"]),
        ("main", "step", ["s"], ["main: s"]),
        ("main", "step", ["i", "q"], ["r: q"]),
        ("main", "step", ["i", "r"], ["inner: r"]),
        ("main", "workflow", ["i"], ["i: workflow_inline"]),
        ("main", "workflow", [], []),
        ("child", "step", ["x"], ["y: x", "z: x"]),
        ("child", "step", ["y"], ["child: y"]),
        ("child", "workflow", [], ["s: child.loom.yaml", "r: child.loom.yaml"]),
        ("child", "step", ["gone"], []),
        ("child", "workflow", ["x"], []),
    ],
)
def test_what_needs_something(file: str, kind: str, trail: list[str], expected: list[str]) -> None:
    """Dependants; of a last step its workflow; of a workflow the steps that run it, in all files."""
    files = Files()
    document = files.all[Path(f"/w/{file}.loom.yaml")]
    assert told(incoming(document, kind, tuple(trail), files)) == expected


def test_trails_lead_back() -> None:
    """What an answer names is found again by its trail, through files and places."""
    files = Files()
    document = files.all[Path("/w/main.loom.yaml")]
    (_, run) = outgoing(document, "step", ("i", "r"), files)
    child = files.document(Path(run.end.place.source.uri))
    assert child is not None
    ends = outgoing(child, run.end.kind, run.end.trail, files)
    assert [call.end.name for call in ends] == ["y", "z"]
    (above, _) = incoming(child, run.end.kind, run.end.trail, files)[::-1]
    assert above.end.trail == ("i", "r")


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        (H + "  - {id: a¦, type: tool}\n", ["a"]),
        (H + "  - {id: a, ty¦pe: tool}\n", ["a"]),
        (H + "  - {id: a}\n  - {id: b, depends_on: [¦a]}\n", ["a"]),
        (H + "  - {id: b, depends_on: [z¦z]}\n", []),
        (H + "  - {id: r, type: router, default: b¦}\n  - {id: b}\n", ["b"]),
        ("name: w¦w\nsteps: []\n", ["ww"]),
        ("na¦me: ww\nsteps: []\n", ["ww"]),
        ("config: {mo¦del: x}\nsteps: []\n", []),
        (H + "  - {type: to¦ol}\n", []),
        ("¦", []),
        ("# ¦x\n", []),
    ],
)
def test_what_is_meant_at_a_place(marked: str, expected: list[str]) -> None:
    """The step that is named there, else the one around it; a workflow at its name; nothing for a name that nobody has."""
    assert [caller.name for caller in callers_at(*opened(marked))] == expected


def test_steps_written_in_place() -> None:
    """A step inside a step has the trail of both."""
    document, offset = opened(MAIN.replace("id: r", "id: r¦"))
    (caller,) = callers_at(document, offset)
    assert (caller.trail, caller.kind, caller.detail) == (("i", "r"), "step", "subworkflow")


def test_rings_end() -> None:
    """Steps that wait for each other, and files that run themselves, have calls like others."""
    document, _ = opened(H + "  - {id: a, depends_on: [b]}\n  - {id: b, depends_on: [a]}\n¦")
    files = Files()
    assert [call.end.name for call in outgoing(document, "step", ("a",), files)] == ["b"]
    assert [call.end.name for call in incoming(document, "step", ("a",), files)] == ["b"]
    assert outgoing(document, "workflow", (), files) == []
