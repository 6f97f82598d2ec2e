"""What is not broken stays: one broken line in one step, and every other step keeps its diagnostics, each at its place.

A document of steps that each have a fault of their own, not one that another step could change; every line of every step is broken
in every way of a table.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agentloom.diagnostics import Diagnostic
from tests.house.corpus import check, sound

HEAD = "name: w\nstate: {x: 1, y: {z: 2}}\nsteps:\n"

# Steps, and the code of the fault that each one has.
STEPS = (
    ("AL102", "  - id: one\n    type: llm_call\n    prompt: hi\n    foo: 1\n"),
    ("AL103", "  - id: two\n    type: bad\n    prompt: hi\n"),
    ("AL304", '  - id: three\n    type: llm_call\n    prompt: "{state.x"\n    stream: true\n'),
    ("AL202", "  - id: four\n    type: llm_call\n    prompt: hi\n    depends_on:\n      - zzz\n"),
    (
        "AL301",
        "  - id: five\n    type: router\n    conditions:\n      - expression: state.x ==\n        target: zzz\n    default: zz\n",
    ),
    ("AL105", "  - id: six\n    type: llm_call\n    prompt: |\n      it's: {{ \"text\n      [\n    temperature: hot\n"),
    ("AL302", "  - {id: seven, type: router, default: zz, conditions: [{expression: 'lambda: 0', target: zzz}]}\n"),
    ("AL202", "  - id: eight\n    type: llm_call\n    depends_on: [zzz, zzz] # why\n    prompt: hi # why\n"),
    (
        "AL106",
        "  - id: nine\n    type: tool\n    tool_name: file_read\n    tool_args:\n      path: a.txt\n    retry:\n      max_retries: -1\n",
    ),
)


def blank(line: str) -> str:
    """Return what a line is indented by, a dash counted as blanks."""
    return " " * (len(line) - len(line.lstrip(" -")))


# What becomes of a line of a step; the line's break is not part of it.
WAYS = {
    "half a key below": lambda line: f"{line}\n{blank(line)}pro",
    "half a key above": lambda line: f"{blank(line)}pro\n{line}",
    "a key and its colon below": lambda line: f"{line}\n{blank(line)}prompt2:",
    "an open quote below": lambda line: f'{line}\n{blank(line)}note: "open',
    "an open single quote below": lambda line: f"{line}\n{blank(line)}note: 'open",
    "an open bracket below": lambda line: f"{line}\n{blank(line)}note: [a, b",
    "an open brace below": lambda line: f"{line}\n{blank(line)}note: {{a: b",
    "a stray bracket below": lambda line: f"{line}\n{blank(line)}[",
    "a stray closing bracket": lambda line: f"{line} ]",
    "a stray closing brace": lambda line: f"{line} }}",
    "a tab for blanks": lambda line: "\t" + line.lstrip(" "),
    "a tab in front": lambda line: "\t" + line,
    "an item without meaning": lambda line: f"{line}\n  - na",
    "an empty item": lambda line: f"{line}\n  -",
    "a colon in plain text": lambda line: f"{line}\n{blank(line)}note: a: b",
    "a template without quotes": lambda line: f"{line}\n{blank(line)}note: {{state.x}} and more",
    "an alias of nothing": lambda line: f"{line}\n{blank(line)}note: *nothing",
    "a character that begins nothing": lambda line: f"{line}\n{blank(line)}note: @x",
    "a percent sign": lambda line: f"{line}\n{blank(line)}note: %x",
    "less indented by one": lambda line: line[1:],
    "more indented by one": lambda line: " " + line,
    "cut in the middle": lambda line: line[: len(line) // 2],
    "gone up to its blanks": lambda line: blank(line),
    "its last character gone": lambda line: line[:-1],
    "a null character": lambda line: line + "\0",
    "two colons": lambda line: line.replace(": ", ":: ", 1),
    "a quote in the middle": lambda line: line.replace(": ", ': "', 1),
}

AT_LINES_OF_FIELDS = ("half a key above", "a tab in front", "cut in the middle", "gone up to its blanks")
"""Ways that say something else at the line of a dash: there they take the step itself away, or belong to the one above."""

TEXT = HEAD + "".join(text for _, text in STEPS)


def places() -> list[tuple[int, int]]:
    """Return where each step begins and ends."""
    found, at = [], len(HEAD)
    for _, text in STEPS:
        found.append((at, at + len(text)))
        at += len(text)
    return found


def broken(way: str) -> Iterator[tuple[str, int, int, int]]:
    """Yield the document with one line broken, the range of the broken step in the text before, and how much longer it is now."""
    for start, end in places():
        at = start
        for line in TEXT[start:end].splitlines(keepends=True):
            bare = line[:-1]
            if not bare.startswith("  - ") or way not in AT_LINES_OF_FIELDS:
                text = TEXT[:at] + WAYS[way](bare) + TEXT[at + len(bare) :]
                yield text, start, end, len(text) - len(TEXT)
            at += len(line)


def seen(diagnostics: tuple[Diagnostic, ...], start: int, end: int, by: int = 0) -> list[tuple[str, int, int, str]]:
    """Return the diagnostics outside a range, those behind it moved back by some characters."""
    found = []
    for d in diagnostics:
        if d.span.start < start:
            found.append((d.code, d.span.start, d.span.end, d.message))
        elif d.span.start >= end + by:
            found.append((d.code, d.span.start - by, d.span.end - by, d.message))
    return found


def test_each_step_has_its_fault() -> None:
    """The document says what it should before anything is broken."""
    diagnostics = check(TEXT).diagnostics
    for (code, _), (start, end) in zip(STEPS, places(), strict=True):
        assert code in {d.code for d in diagnostics if start <= d.span.start < end}


@pytest.mark.parametrize("way", WAYS)
def test_a_broken_line_leaves_the_other_steps_alone(way: str) -> None:
    """Nothing goes dark, and nothing is said twice or by mistake, outside the step that is broken."""
    whole = check(TEXT).diagnostics
    for text, start, end, longer in broken(way):
        document = check(text)
        sound(document)
        assert seen(document.diagnostics, start, end, longer) == seen(whole, start, end), text
