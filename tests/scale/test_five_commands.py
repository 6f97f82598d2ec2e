"""The five commands of `docs/scale.md`, as they stand there: a database, three workers and a run."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from agentloom.durable.dbos.archive import Archive
from agentloom.durable.dbos.place import place_of
from agentloom.durable.dbos.versions import living
from tests.cli.conftest import ROOT, environment
from tests.durable.postgres import Server

WORKFLOW = """\
name: release
steps:
  - {id: notes, type: llm_call, prompt: Write., output: notes}
config: {provider: mock}
"""


def test_three_workers_on_one_machine(server: Server, tmp_path: Path) -> None:
    """A shell is given them one after the other, and nothing else; the run is done, and by one of the three workers that are there."""
    text = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    found = re.search(r"in five commands.*?```text\n(.*?)```", text, re.DOTALL)
    assert found is not None
    commands = found[1].splitlines()
    assert len(commands) == 5
    (tmp_path / "release.loom.yaml").write_text(WORKFLOW)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "agentloom").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m agentloom "$@"\n')
    (programs / "agentloom").chmod(0o755)
    path = os.pathsep.join([str(programs), str(server.programs), os.environ["PATH"]])
    shell = subprocess.Popen(
        ["bash", "-e"], cwd=tmp_path, text=True, start_new_session=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env=environment(PATH=path, PGPORT=str(server.port), PGUSER="postgres", PGHOST="localhost"),
    )  # fmt: skip
    try:
        assert shell.stdin is not None
        assert shell.stdout is not None
        shell.stdin.write("\n".join([*commands, "echo the last one is done\n"]))
        shell.stdin.flush()
        said = []
        for line in shell.stdout:
            said.append(line)
            if line == "the last one is done\n":
                break
        assert "[OK] release\n" in said, said
        place = place_of(f"postgresql://postgres@localhost:{server.port}/loom")
        while sum("takes runs from postgresql://localhost/loom" in line for line in said) < 3:
            line = shell.stdout.readline()
            assert line, said
            said.append(line)
        assert living(place), "workers that live hold locks"
        with closing(Archive(place)) as archive:
            assert [row.status for row in archive.rows()] == ["success"]
    finally:
        os.killpg(shell.pid, signal.SIGKILL)
        shell.communicate()
