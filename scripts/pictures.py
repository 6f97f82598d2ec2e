"""Takes the pictures in `docs/images` from the program's real output: `agentloom` runs on a pseudo-terminal, what the screen
shows at the end becomes an SVG.
"""

from __future__ import annotations

import io
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from fcntl import ioctl
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
WIDTH = 100
NARROWEST = 80
# (picture, folder it is taken in, what is typed)
PICTURES = (
    ("validate.svg", "docs/mistakes", ("validate", "spelling.loom.yaml")),
    ("run.svg", "examples", ("run", "app-localisation.loom.yaml")),
)
CELL = 12.2
"""Width of a character in rich's pictures."""

_BLANK = "&#160;"
_LEADING = re.compile(
    r'(?P<head><text [^>]*)x="(?P<x>[\d.]+)"(?P<between>[^>]*)textLength="(?P<length>[\d.]+)"(?P<after>[^>]*)>(?P<blanks>(?:&#160;)+)(?!<)'
)
_CONTROL = re.compile(r"\x1b\[(?P<numbers>[?\d;]*)(?P<letter>[A-Za-z])|\x1b[=>78]|\r|\n|[^\x1b\r\n]+")


def screen(raw: str) -> list[str]:
    """Return the lines that a terminal shows after ``raw``, colour codes kept; knows what rich's live display sends."""
    lines: list[str] = [""]
    row = 0
    fresh = True  # the cursor stands at the line's beginning: what comes replaces the line
    for hit in _CONTROL.finditer(raw):
        token, letter = hit.group(), hit["letter"]
        if token == "\n":
            row += 1
            fresh = True
            if row == len(lines):
                lines.append("")
        elif token == "\r":
            fresh = True
        elif letter == "A":
            row = max(0, row - int(hit["numbers"] or 1))
        elif letter == "K":
            lines[row] = ""
        elif letter in ("h", "l") or token in ("\x1b=", "\x1b>", "\x1b7", "\x1b8"):
            continue
        elif letter is not None and letter != "m":
            raise ValueError(f"the screen doesn't know {token!r}")
        else:
            lines[row] = token if fresh else lines[row] + token
            fresh = False
    return lines


def type_in(folder: Path, arguments: tuple[str, ...]) -> str:
    """Run agentloom on a pseudo-terminal and return everything it sent."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 60, WIDTH, 0, 0))
    keep = {
        name: value for name, value in os.environ.items() if not name.startswith("AGENTLOOM_") and name != "NO_COLOR"
    }
    environment = {**keep, "TERM": "xterm-256color", "COLORTERM": "truecolor", "COLUMNS": str(WIDTH)}
    environment["PYTHONPATH"] = f"{ROOT}{os.pathsep}{ROOT / 'lsp'}"
    command = [sys.executable, "-m", "agentloom", *arguments]
    process = subprocess.Popen(command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    sent = bytearray()
    while True:
        ready, _, _ = select.select([ours], [], [], 60)
        try:
            chunk = os.read(ours, 65536) if ready else b""
        except OSError:  # the other end has closed
            chunk = b""
        if not chunk:
            break
        sent += chunk
    process.wait(10)
    os.close(ours)
    return sent.decode("utf-8").replace("\r\n", "\n")


def take(name: str) -> str:
    """Return a picture as SVG text."""
    place, arguments = next((place, arguments) for file, place, arguments in PICTURES if file == name)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "shot"
        shutil.copytree(ROOT / place, folder)
        lines = screen(type_in(folder, arguments))
    while lines and not Text.from_ansi(lines[-1]).plain.strip():
        lines.pop()
    texts = [Text(f"$ agentloom {' '.join(arguments)}", style="bold"), *map(Text.from_ansi, lines)]
    console = Console(
        record=True,
        width=max(NARROWEST, *(text.cell_len + 1 for text in texts)),
        file=io.StringIO(),
        color_system="truecolor",
        force_terminal=True,
    )
    for text in texts:
        console.print(text, soft_wrap=True)
    return _LEADING.sub(_moved, console.export_svg(title="agentloom", unique_id=name.removesuffix(".svg")))


def _moved(found: re.Match[str]) -> str:
    """Return a text that starts where its first letter stands: not every viewer keeps blanks at the beginning."""
    blanks = len(found["blanks"]) // len(_BLANK) * CELL
    x, length = float(found["x"]) + blanks, float(found["length"]) - blanks
    return f'{found["head"]}x="{x:.1f}"{found["between"]}textLength="{length:.1f}"{found["after"]}>'


def words(svg: str) -> list[str]:
    """Return the words of a picture with every number made equal: what two takes have in common."""
    text = " ".join(re.findall(r"<text[^>]*>([^<]*)</text>", svg)).replace("&#160;", " ")
    return re.sub(r"\d+(?:\.\d+)? ?m?s\b", "0 ms", re.sub(r"\b[0-9a-f]{12}\b", "id", text)).split()
