"""No text makes the check raise or point nowhere: every prefix, every deletion of a line or a character, and random edits.

The texts follow each other as in an editor, with one cache per file, so that each costs its own piece; now and then the answer is
compared with that of a check from nothing, which has to be the same. The fixtures are gone through completely. Examples are longer
and less varied: of their characters, a sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random

import pytest

from agentloom.analysis.analyze import AnalysisCache
from agentloom.analysis.document import WorkflowDocument
from tests.conftest import ROOT
from tests.house.corpus import FIXTURES, FOLDERS, check, files, sound
from tests.rule_fixtures import read_fixture

EVERY = 29
"""One text in so many is checked from nothing as well."""

SAMPLE = 61
"""One character in so many is taken out of, or the end of, an example."""

FOLDERS_OF_FIXTURES = sorted({path.parent for path in files(FIXTURES)})
LONGER = files(*(folder for folder in FOLDERS if folder != FIXTURES))


def name(path: Path) -> str:
    """Return a test's name for a file or folder."""
    return str(path.relative_to(ROOT).as_posix())


def text_of(path: Path) -> str:
    """Return a file's text, line ends kept; of a fixture, without the comments that say what is expected of it."""
    return read_fixture(path)[0]


def follow(path: Path, texts: Iterable[str], seen: set[str]) -> None:
    """Check texts one after the other, those seen before left out."""
    cache = AnalysisCache()
    for text in texts:
        if text in seen:
            continue
        seen.add(text)
        document = check(text, path, cache)
        sound(document)
        if len(seen) % EVERY == 0:
            assert told(document) == told(check(text, path)), text


def told(document: WorkflowDocument) -> list[object]:
    """Return everything a document says, in its own offsets: diagnostics with their cures, steps, where their names stand."""
    said: list[object] = list(document.diagnostics)
    head = [(o.kind, o.role, o.name, o.span.shift(document.base), o.key, o.parts) for o in document.head.occurrences]
    said.append((repr(document.head.data), head))
    for step in document.steps:
        names = [(o.kind, o.role, o.name, step.place(o.span), o.key, o.form, o.parts) for o in step.facts.occurrences]
        keys = [
            (key, step.place(found.key.span), step.place(found.value.span)) for key, found in step.facts.fields.items()
        ]
        said.append((step.index, step.id, step.type, step.name_span, repr(step.facts.data), names, keys))
    said.append((document.graph.dependencies, document.graph.layers))
    said.append(sorted(document.children))
    return said


def without_lines(text: str) -> Iterator[str]:
    """Yield a text without each of its lines."""
    lines = text.splitlines(keepends=True)
    return ("".join(lines[:at] + lines[at + 1 :]) for at in range(len(lines)))


@pytest.mark.parametrize("folder", FOLDERS_OF_FIXTURES, ids=lambda folder: folder.name)
def test_fixtures_as_if_typed(folder: Path) -> None:
    """Every prefix of every fixture."""
    seen: set[str] = set()
    for path in files(name(folder)):
        text = text_of(path)
        follow(path, (text[:end] for end in range(len(text) + 1)), seen)


@pytest.mark.parametrize("folder", FOLDERS_OF_FIXTURES, ids=lambda folder: folder.name)
def test_fixtures_with_something_missing(folder: Path) -> None:
    """Every fixture without each single line, and without each single character."""
    seen: set[str] = set()
    for path in files(name(folder)):
        text = text_of(path)
        follow(path, without_lines(text), seen)
        follow(path, (text[:at] + text[at + 1 :] for at in range(len(text))), seen)


@pytest.mark.parametrize("path", LONGER, ids=name)
def test_examples_as_if_typed_and_with_something_missing(path: Path) -> None:
    """Up to the end of every line and to characters between, and without every line, and single characters."""
    text = text_of(path)
    ends = {at + 1 for at, char in enumerate(text) if char == "\n"} | {
        at for at, char in enumerate(text) if char == "\n"
    }
    seen: set[str] = set()
    follow(path, (text[:end] for end in sorted(ends | set(range(0, len(text), SAMPLE)))), seen)
    follow(path, without_lines(text), seen)
    follow(path, (text[:at] + text[at + 1 :] for at in range(0, len(text), SAMPLE)), seen)


TYPED = (
    *(
        "\n",
        " ",
        ":",
        "- ",
        "#",
        '"',
        "'",
        "[",
        "]",
        "{",
        "}",
        ",",
        "&a ",
        "*a",
        "<<: ",
        "|",
        ">",
        "!",
        "%",
        "---\n",
        "\t",
    ),
    *(
        "pro",
        "    pro\n",
        "  - na\n",
        "  - id: new\n    type: llm_call\n",
        "    depends_on: [",
        "x\r\ny",
        "\ufeff",
        "😀",
        "\x85",
    ),
    *("steps:\n", "steps: []\n", "    output: a.b\n", "{state.x}", "type: router\n", "workflow_inline:\n"),
)


@pytest.mark.parametrize("seed", range(12))
def test_random_edits_cost_nothing_in_truth(seed: int) -> None:
    """A long sequence of edits through one cache says, at every stop, exactly what a check of that text from nothing says."""
    random = Random(seed)
    path = random.choice(LONGER)
    text = original = text_of(path)
    cache = AnalysisCache()
    for number in range(60):
        start = random.randrange(len(text) + 1)
        kind = random.randrange(6)
        end = min(len(text), start + random.choice((0, 0, 1, 3, 40)))
        if kind == 0:
            text = text[:start] + text[end:]
        elif kind == 1:
            lines = text.splitlines(keepends=True)
            at = random.randrange(len(lines) + 1)
            text = "".join([*lines[:at], *random.sample(lines, min(len(lines), 2)), *lines[at + random.randrange(2) :]])
        elif kind == 2:
            text = original if random.random() < 0.3 else text
        else:
            text = text[:start] + random.choice(TYPED) + text[end:]
        document = check(text, path, cache)
        sound(document)
        if number % 2:
            assert told(document) == told(check(text, path)), text
