"""Texts that a path can only be."""

from __future__ import annotations

import pytest

from agentloom.analysis.outcomes import texts_at
from agentloom.analysis.settings import Settings
from tests.analysis.checking import H, check

SCHEMA = "response_schema: {type: json_schema, schema: {type: object, properties: {l: {enum: [x, y]}, f: {const: z}, n: {enum: [1]}, s: {type: string}}}}"
STEPS = f"""\
  - {{id: call, type: llm_call, prompt: hi, output: out, {SCHEMA}}}
  - {{id: r, type: router, depends_on: [call], conditions: [{{expression: state.out, target: a}}], default: b, output: way}}
  - {{id: a, type: approval_gate, depends_on: [r], output: said}}
  - {{id: b, type: llm_call, prompt: hi, depends_on: [r], output: both}}
  - {{id: c, type: approval_gate, depends_on: [r], output: both}}
  - {{id: d, type: approval_gate, output: given}}
  - {{id: e, type: approval_gate, output: unset}}
"""
HEAD = "# agentloom: state[given]\nstate: {unset: null, ticket: hi}\n" + H


@pytest.mark.parametrize(
    ("path", "texts"),
    [
        (("out", "l"), ["x", "y"]),
        (("out", "f"), ["z"]),
        (("out", "n"), []),
        (("out", "s"), []),
        (("out", "nope"), []),
        (("out",), []),
        (("way",), ["a", "b"]),
        (("said",), ["approved", "rejected"]),
        (("both",), []),
        (("given",), []),
        (("unset",), ["approved", "rejected"]),
        (("ticket",), []),
        (("steps", "r", "output"), ["a", "b"]),
        (("steps", "call", "output", "l"), ["x", "y"]),
        (("steps", "call", "status"), ["success"]),
        (("steps", "call"), []),
        (("steps", "nope", "output"), []),
        ((), []),
    ],
)
def test_texts_of_a_path(path: tuple[str, ...], texts: list[str]) -> None:
    """By a reply's schema, a router's targets, a gate's decisions, a status; nothing where anybody else may write or give it."""
    assert [text for text, _ in texts_at(check(HEAD + STEPS, Settings()), path)] == texts
