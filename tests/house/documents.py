"""Reading the project's Markdown: fenced blocks, console sessions in them, links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=indent)```[ ]*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!\!)\[[^\]]*\]\((?P<target>[^)\s]+)\)|!\[[^\]]*\]\((?P<image>[^)\s]+)\)")
HEADING = re.compile(r"^#+\s+(?P<text>.+?)\s*$", re.MULTILINE)
# What differs from one run to the next, and from one machine to the next.
VARYING = (
    (re.compile(r"\b\d+(?:\.\d+)? ?(?:ms|s)\b"), "0 ms"),
    (re.compile(r"\b[0-9a-f]{12}\b"), "0" * 12),
    (re.compile(r"\bPython 3\.\d+\.\d+\b"), "Python 3"),
)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its words after the fence, its text, where the text starts in the file (offset) and on which line."""

    path: Path
    words: tuple[str, ...]
    text: str
    start: int
    line: int

    def __str__(self) -> str:
        return f"{self.path.name}:{self.line}"


@dataclass(frozen=True, slots=True)
class Typed:
    """One command of a console block and what it should print; ``...`` on a line of its own stands for any lines."""

    command: str
    output: str

    def matches(self, printed: str) -> bool:
        """Tell whether the output is as expected, apart from times and ids."""
        wanted = "".join(
            r"(?:.*\n)*" if line == "..." else re.escape(line) + r"\n"
            for line in steady(self.output).rstrip("\n").split("\n")
        )
        return re.fullmatch(wanted, steady(printed).rstrip("\n") + "\n") is not None


def steady(text: str) -> str:
    """Return the text with durations, run ids and the interpreter's version made equal, and without blanks at line ends."""
    for pattern, word in VARYING:
        text = pattern.sub(word, text)
    return "\n".join(line.rstrip() for line in text.splitlines())


def documents(root: Path) -> list[Path]:
    """Return the Markdown files that people read; the rule pages are generated and have tests of their own."""
    found = [root / "README.md", root / "CONTRIBUTING.md", root / "CHANGELOG.md", root / "examples" / "README.md"]
    found += sorted((root / "docs").glob("*.md")) + sorted((root / "lsp").glob("*.md"))
    return [path for path in found if path.exists()]


def blocks(path: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a file."""
    text = path.read_text(encoding="utf-8")
    for hit in FENCE.finditer(text):
        yield Block(
            path, tuple(hit["info"].split()), hit["body"], hit.start("body"), text.count("\n", 0, hit.start()) + 1
        )


def session(block: Block) -> list[Typed]:
    """Return the commands of a console block; what stands before the first ``$`` is an error of the document."""
    typed: list[Typed] = []
    for line in block.text.splitlines(keepends=True):
        if line.startswith("$ "):
            typed.append(Typed(line[2:].rstrip("\n"), ""))
        elif typed:
            typed[-1] = Typed(typed[-1].command, typed[-1].output + line)
        else:
            raise ValueError(f"{block}: a console block starts with `$ `")
    return typed


def anchors(path: Path) -> set[str]:
    """Return the anchors of a file's headings, as GitHub makes them."""
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    found = set()
    for hit in HEADING.finditer(text):
        words = re.sub(r"[^\w\- ]", "", hit["text"].lower())
        found.add(words.replace(" ", "-"))
    return found
