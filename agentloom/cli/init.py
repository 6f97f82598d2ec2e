"""``agentloom init``: the files that a project starts with. Nothing that is there is touched."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import click

from agentloom import __version__
from agentloom.errors import UsageError


class Starter(NamedTuple):
    """A file of a new project: its name below the folder, its text, and what it is for."""

    name: str
    text: str
    purpose: str


WORKFLOW = """\
# agentloom
# Check it:  agentloom validate hello.loom.yaml
# Run it:    agentloom run hello.loom.yaml        (offline: replies come from the recording)
# For real:  agentloom run hello.loom.yaml --provider openai --model gpt-4o-mini     (needs OPENAI_API_KEY)
name: hello
version: "1.0"

config:
  provider: mock
  model: mock-model
  responses_file: ./recordings/hello.json

state:
  topic: "why the sky is blue"

steps:
  - id: draft
    type: llm_call
    prompt: "Explain in two sentences {state.topic}."
    output: draft

  - id: judge
    type: llm_call
    depends_on: [draft]
    prompt: |
      Is this clear to a child of ten? Answer with one word, yes or no.

      {state.draft}
    output: verdict

  - id: check
    type: router
    depends_on: [judge]
    conditions:
      - expression: "'no' in state.verdict.lower()"
        target: simplify
    default: publish

  - id: simplify
    type: llm_call
    depends_on: [check]
    prompt: "Say this in words for a child of ten: {state.draft}"
    output: simple

  - id: publish
    type: llm_call
    depends_on: [check]
    prompt: "Give this a title: {state.draft}"
    output: title
"""

RECORDING = """\
{
  "draft": {
    "content": "Sunlight is made of all colours, and air scatters blue far more than red. So blue reaches us from the whole sky."
  },
  "judge": {"content": "No"},
  "simplify": {"content": "Air bounces blue light around the most, so wherever you look up you see blue."},
  "publish": {"content": "Blue all over"}
}
"""

SETTINGS = """\
# Settings of agentloom: docs/settings.md. They hold for this folder and those below it.

# Files that are workflows although their names don't end in .loom.yaml:
# workflows = ["flows/**/*.yaml"]

# State keys that the command line gives (`--state question=…`):
# known_state = ["question"]
"""

HOOKS = f"""\
# Run once: pre-commit install
repos:
  - repo: https://github.com/agentloom/agentloom
    rev: v{__version__}
    hooks:
      - id: agentloom-validate
"""

RECOMMENDATIONS = """\
{
  "recommendations": ["redhat.vscode-yaml"]
}
"""

STARTERS = (
    Starter("hello.loom.yaml", WORKFLOW, "a workflow that runs offline"),
    Starter("recordings/hello.json", RECORDING, "the replies that it gets offline"),
    Starter("agentloom.toml", SETTINGS, "settings, all at their defaults"),
    Starter(".pre-commit-config.yaml", HOOKS, "the check before each commit"),
    Starter(".vscode/extensions.json", RECOMMENDATIONS, "what VS Code offers to install"),
)


@click.command()
@click.argument("folder", type=click.Path(file_okay=False), default=".")
def command(folder: str) -> None:
    """Start a project in FOLDER, which is made if it isn't there: a workflow that runs offline, settings, hooks.

    Nothing is overwritten: if one of the files is there already, nothing is written at all.

    Exit codes: 0 done; 2 a file is there already, or can't be written.
    """
    root = Path(folder)
    there = [
        starter.name for starter in STARTERS if (root / starter.name).exists() or (root / starter.name).is_symlink()
    ]
    if there:
        names = ", ".join(f"`{name}`" for name in there)
        raise UsageError(f"{names} {'is' if len(there) == 1 else 'are'} there already; nothing was written")
    written: list[Path] = []
    made: list[Path] = []
    try:
        for starter in STARTERS:
            path = root / starter.name
            for parent in reversed(path.parents):
                if not parent.exists():
                    parent.mkdir()
                    made.append(parent)
            with path.open("x", encoding="utf-8", newline="") as file:
                written.append(path)
                file.write(starter.text)
    except OSError:
        for path in reversed(written):
            path.unlink(missing_ok=True)
        for parent in reversed(made):
            parent.rmdir()
        raise
    edge = max(len(starter.name) for starter in STARTERS)
    for starter in STARTERS:
        print(f"  {starter.name:{edge}}  {starter.purpose}")
    where = "" if root.resolve() == Path.cwd() else f"cd {folder} && "
    sys.stdout.write(f"Next: {where}agentloom run hello.loom.yaml\n")
