"""Checkpoints and journals that were damaged, or written by somebody else: clear words, no traceback, nothing overwritten that can't be read."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentloom.durable.journal import Journal
from tests.cli.conftest import Call

FLOW = """\
name: damaged
config: {provider: mock, model: m, budget_usd: 2}
state: {token: hunter2, docs: [x, y]}
state_schema: {token: {redact: true}, chat: {redact: true}}
agents: {helper: {name: helper, system_prompt: "You help."}}
steps:
  - {id: a, type: llm_call, prompt: "a", output: x, conversation: chat}
  - {id: b, type: agent, agent: helper, input: hi, output: q, depends_on: [a]}
  - {id: e, type: embed, inputs: docs, output: v}
  - {id: r, type: router, conditions: [{expression: "True", target: s}], default: z, depends_on: [b, e]}
  - {id: z, type: llm_call, prompt: z, depends_on: [r]}
  - id: s
    type: subworkflow
    depends_on: [r]
    output: sub
    workflow_inline:
      name: inner
      steps:
        - {id: one, type: llm_call, prompt: one, output: one}
        - {id: gate, type: approval_gate, depends_on: [one]}
        - {id: two, type: llm_call, prompt: two, depends_on: [gate]}
  - {id: end, type: llm_call, prompt: "end {state.x}", depends_on: [s]}
"""
ODD: tuple[Any, ...] = (
    None, True, 3, -1, 1e308, float("inf"), "x", "", [1], [], {"a": 1}, {}, "\x00\x1b[31m", "\ud800", 10**400,
)  # fmt: skip
FOLDER = Path(".agentloom") / "checkpoints"


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call) -> list[dict[str, Any]]:
    """The lines of the journal of a run that a kill ended at its gate; the checkpoint that a later kill would have left is beside it."""
    monkeypatch.chdir(tmp_path)
    Path("flow.yaml").write_text(FLOW, encoding="utf-8")
    seen: list[bytes] = []
    end = Journal.end

    def look(self: Journal, status: str) -> None:
        seen.append(self.path.read_bytes())
        end(self, status)

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "end", look)
        assert call("run", "flow.yaml", "--checkpoint", "--run-id", "r", "--no-history").code == 0
    return [json.loads(line) for line in seen[0].splitlines()]


def write(lines: list[Any], checkpoint: bytes | None = None) -> None:
    """Leave a journal, and nothing else but a checkpoint."""
    for path in FOLDER.iterdir():
        path.unlink()
    (FOLDER / "r.journal").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    if checkpoint is not None:
        (FOLDER / "r.json").write_bytes(checkpoint)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of everything inside a value."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*path, key)
        yield from places(item, (*path, key))


@pytest.mark.parametrize("of", ["journal", "checkpoint"])
def test_any_value_replaced_by_an_odd_one(lines: list[dict[str, Any]], call: Call, of: str) -> None:
    """Listings, `runs show` and a resume end with 0 or 1, whatever stands there, and hand no control codes to the terminal."""
    whole: Any = lines if of == "journal" else json.loads((FOLDER / "r.json").read_bytes())
    chance = random.Random(7)
    known = list(places(whole))
    told = [(0, "paused_since"), (0, "workflow_definition", "config"), (1, "path"), (0, "workflow_definition", "steps")]
    ids = [(at, "result", "step_id") for at, line in enumerate(lines) if line["kind"] == "outcome"]
    chosen = [*(told + ids[:2] if of == "journal" else ()), *chance.sample(known, 40)]
    for path in chosen:
        changed = copy.deepcopy(whole)
        at = changed
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = odd = chance.choice(ODD)
        write(changed if of == "journal" else [])
        if of == "checkpoint":
            (FOLDER / "r.json").write_text(json.dumps(changed), encoding="utf-8")
        for command in (("runs",), ("runs", "show", "r"), ("resume", "r", "--no-history", "--state", "token=x")):
            done = call(*command)
            assert done.code in (0, 1), (path, odd, command, done)
            assert "\x1b" not in done.out + done.err, (path, odd, command)


@pytest.mark.parametrize(
    ("first", "words"),
    [
        ({"kind": "run", "version": 2}, "it was written by a newer agentloom (version 2, this one reads 1)"),
        ({"kind": "something"}, "it is no journal"),
        ("{", "it is no journal"),
    ],
)
@pytest.mark.parametrize("beside", [False, True])
def test_a_journal_that_cannot_be_read_is_not_overwritten(
    lines: list[dict[str, Any]], call: Call, first: Any, words: str, beside: bool
) -> None:
    """Case: a newer agentloom's, say. The checkpoint that it goes on from is older: to go on from that would do everything again."""
    checkpoint = (FOLDER / "r.json").read_bytes() if beside else None
    write([first if isinstance(first, str) else {**lines[0], **first}, *lines[1:]], checkpoint)
    if first == "{":
        (FOLDER / "r.journal").write_text('{"kind": "run"\n' + json.dumps(lines[1]) + "\n", encoding="utf-8")
        words = "its first line is damaged"
    before = (FOLDER / "r.journal").read_bytes()
    for command in (("resume", "r"), ("resume", "r", "--approve"), ("runs", "show", "r")):
        done = call(*command)
        assert (done.code, done.out) == (1, "")
        assert words in done.err
    listed = call("runs")
    assert listed.code == 0
    assert words in listed.err
    assert (FOLDER / "r.journal").read_bytes() == before


def test_a_line_in_the_middle_is_damaged(lines: list[dict[str, Any]], call: Call) -> None:
    """No kill leaves that: what was before it counts, what came after runs again, and that is said."""
    at = next(at for at, line in enumerate(lines) if line["kind"] == "outcome" and line["path"] == "b")
    write([*lines[:at], "x", *lines[at + 1 :]])
    done = call("resume", "r", "--no-history")
    assert done.code == 0
    assert "is damaged after its first" in done.err
    assert "b: done" in done.out
    assert "a: done" not in done.out
    write(lines[:at])
    assert "damaged" not in call("resume", "r", "--no-history").err
