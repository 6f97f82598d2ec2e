"""One mistake is told once: what follows from it stays silent, and of two codes only the more specific one speaks."""

from __future__ import annotations

import re

import pytest

from tests.analysis.checking import H, places

ROUTER = "  - {id: route, type: router, default: a, conditions: [{expression: state.x, target: b}]}\n"
A = "  - {id: a, type: llm_call, prompt: hi, depends_on: [route]}\n"
B = "  - {id: b, type: llm_call, prompt: hi, depends_on: [route]}\n"
GOOD = H + ROUTER + A + B

# What is changed in the good file, into what, and the one thing that is told.
MISTAKES: tuple[tuple[str, str, str, str], ...] = (
    ("a dependency on the router is misspelled", "depends_on: [route]}\n" + B, "depends_on: [rotue]}\n" + B, "AL202 rotue"),
    ("the dependencies' key is misspelled", "hi, depends_on: [route]}\n" + B, "hi, dependson: [route]}\n" + B, "AL102 dependson"),
    ("another format's word for it", "hi, depends_on: [route]}\n" + B, "hi, needs: [route]}\n" + B, "AL102 needs"),
    ("a lone text in place of the list", "hi, depends_on: [route]}\n" + B, "hi, depends_on: route}\n" + B, "AL105 route"),
    ("a target is misspelled", "target: b", "target: bb", "AL207 bb"),
    ("the default is misspelled", "default: a", "default: aa", "AL207 aa"),
    ("the default's key is misspelled", "default: a", "defalt: a", "AL102 defalt"),
    ("the router's type is misspelled", "type: router", "type: ruoter", "AL103 ruoter"),
    ("the type's key is misspelled", "type: router", "tpye: router", "AL102 tpye"),
    ("the id's key is written with a capital", "{id: route", "{Id: route", "AL102 Id"),
    ("the id's key has another name", "{id: route", "{name: route", "AL102 name"),
    ("the conditions' key is misspelled", "conditions:", "condition:", "AL102 condition"),
    ("the prompt's key is misspelled", "id: a, type: llm_call, prompt", "id: a, type: llm_call, promt", "AL102 promt"),
    ("the prompt has no value yet", "id: a, type: llm_call, prompt: hi", "id: a, type: llm_call, prompt: ", "AL109 prompt"),
    ("the prompt is an alias to nothing", "id: a, type: llm_call, prompt: hi", "id: a, type: llm_call, prompt: *x", "AL003 *x"),
    ("the prompt is an unquoted template", "id: a, type: llm_call, prompt: hi", "id: a, type: llm_call, prompt: {state.x}", "AL011 {state.x}"),
    ("with two braces", "id: a, type: llm_call, prompt: hi", "id: a, type: llm_call, prompt: {{state.x}}", "AL011 {{state.x}}"),
    ("with an index", "id: a, type: llm_call, prompt: hi", "id: a, type: llm_call, prompt: {state.items[0]}", "AL011 {state.items[0]}"),
    ("a number as id", "id: a, type: llm_call, prompt: hi", "id: a, output: 5, type: llm_call, prompt: hi", "AL105 5"),
    ("a number that others read as text", "id: a, type: llm_call", "id: a, output: 5E3, type: llm_call", "AL105 5E3"),
    ("a state key that is reserved", "id: a, type: llm_call", "id: a, output: steps.x, type: llm_call", "AL407 steps.x"),
    ("a malformed state key", "id: a, type: llm_call", "id: a, output: x., type: llm_call", "AL107 x."),
    ("a condition without expression", "expression: state.x, target: b", "target: b", "AL101 target"),
    ("a condition that can't be read", "expression: state.x,", "expression: state.x ==,", "AL301 =="),
    ("an always true condition before others", "expression: state.x,", "expression: state.x or 'y',", "AL305 state.x or 'y'"),
    ("a step depends on itself twice", "prompt: hi, depends_on: [route]}\n" + B, "prompt: hi, depends_on: [route, a]}\n" + B, "AL203 a"),
    ("a key is there twice", "prompt: hi, depends_on: [route]}\n" + B, "prompt: hi, prompt: hi, depends_on: [route]}\n" + B, "AL002 prompt"),
    ("a step's number of retries beside `retry`", "id: a, type: llm_call", "id: a, max_retries: 2, type: llm_call", "AL108 max_retries"),
    ("a negative number of retries", "id: a, type: llm_call", "id: a, retry: {max_retries: -2}, type: llm_call", "AL106 -2"),
    ("a negative base of waits", "id: a, type: llm_call", "id: a, retry: {backoff_base: -2}, type: llm_call", "AL510 -2"),
    ("waits that don't grow", "id: a, type: llm_call", "id: a, retry: {backoff_base: 1, backoff_max: 0.5}, type: llm_call", "AL501 1"),
    ("the key of the steps", "steps:\n", "step:\n", "AL102 step"),
    ("the key of the name", "name: w\n", "nmae: w\n", "AL102 nmae"),
    ("what `<<` merges is a text", "prompt: hi, depends_on: [route]}\n" + B, "prompt: hi, <<: x, depends_on: [route]}\n" + B, "AL105 x"),
    ("an id with a blank, named everywhere", "route", "my route", "AL107 my route"),
)  # fmt: skip


def test_the_good_file_is_good() -> None:
    """Each mistake is the only one in its text."""
    assert places(GOOD) == []


@pytest.mark.parametrize(("old", "new", "told"), [m[1:] for m in MISTAKES], ids=[m[0] for m in MISTAKES])
def test_one_mistake_one_diagnostic(old: str, new: str, told: str) -> None:
    """Exactly one, with the code and the words that are marked."""
    assert old in GOOD
    text = re.sub(r"\broute\b", new, GOOD) if old == "route" else GOOD.replace(old, new, 1)
    assert [f"{code} {marked}" for code, _, marked in places(text)] == [told]
