"""What the editors are given: the file that they open, and the set-up that `lsp/README.md` tells their users to write."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.conftest import ROOT
from tests.house.documents import Block, blocks

GUIDE = ROOT / "lsp" / "README.md"
NAME = "tickets.loom.yaml"
TICKETS = """\
name: tickets
config:
  provider: mock
state:
  ticket: My invoice is wrong
steps:
  - id: classify
    type: llm_call
    prompt: "One word for {state.ticket}"
    output: category

  - id: answer
    type: llm_call
    depends_on: [classify]
    temprature: 0
    prompt: "Answer {state.ticket}, a question of {state.category}"
    output: reply

  - id: check
    type: llm_call
    depends_on: []
    prompt: "Is this polite? {state.ticket}"
    output: verdict
"""
RUNS = """\
name: tickets
config:
  provider: mock
steps:
  - id: classify
    type: llm_call
    prompt: "One word"
    output: category

  - id: wait
    type: tool
    depends_on: [classify]
    tool_name: shell_command
    tool_args: {command: "test -f go || sleep 600", timeout: 0}

  - id: ask
    type: approval_gate
    depends_on: [wait]

  - id: answer
    type: llm_call
    depends_on: [ask]
    prompt: "Answer, a question of {state.category}"
"""
"""A workflow that is slow until there is a file called `go`."""
PATIENCE = 60
"""Seconds after which an editor is given up; its script gives up a single wait earlier, and says for what it waited."""


def snippets(heading: str, language: str, page: Path = GUIDE) -> list[str]:
    """Return the blocks of a language under a heading of the guide, or of another page."""
    text = page.read_text(encoding="utf-8")
    start = text.index(f"\n## {heading}\n")
    end = text.find("\n## ", start + 1)
    end = len(text) if end < 0 else end

    def meant(block: Block) -> bool:
        return block.words[:1] == (language,) and start < block.start < end

    return [block.text for block in blocks(page) if meant(block)]


def drive(
    command: Sequence[str | Path],
    acts: Sequence[str],
    folder: Path,
    path: str,
    environment: Mapping[str, str],
    text: str = TICKETS,
) -> dict[str, Any]:
    """Start an editor beside a workflow, have its script do some acts, and return what it wrote down of them.

    The script finds in its environment what to do (DRIVE_ACTS), with which file (DRIVE_FILE), and where to report (DRIVE_REPORT).
    """
    work = folder / "work"
    work.mkdir()
    (work / "agentloom.toml").write_text("")
    (work / NAME).write_text(text, encoding="utf-8")
    report = folder / "report.json"
    done = subprocess.run(
        list(command),
        cwd=work,
        env={
            "PATH": path,
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            **{name: os.environ[name] for name in ("TMPDIR", "SYSTEMROOT") if name in os.environ},
            "DRIVE_ACTS": " ".join(acts),
            "DRIVE_FILE": str(work / NAME),
            "DRIVE_REPORT": str(report),
            **environment,
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    assert report.exists(), f"{command[0]} ended with {done.returncode} and said:\n{done.stdout}"
    seen: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    fault = seen.get("fault")
    assert not fault, f"in `{seen.get('act')}`: {fault}\n{done.stdout}\nThe text:\n{seen['text']}"
    return seen
