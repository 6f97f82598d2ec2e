"""The published schema in a real yaml-language-server: what is offered, shown and underlined for people without our own server.

`¦` is the cursor. Quirks of the server that are no business of the schema: a missing key is underlined on the first letter of
the mapping only, and at the end of a mapping an item named like the block (`tool step`) inserts whatever is still needed.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from ruamel.yaml import YAML

from agentloom.model.catalogue import catalogue
from agentloom.model.snippets import STEP_SNIPPETS
from agentloom.model.workflow import build_workflow
from tests.schema.yls import Editor, Item

TYPES = list(STEP_SNIPPETS)
SNIPPETS = [f"{type_} step" for type_ in TYPES]
COMMON = ["depends_on", "output", "retry", "timeout"]
H = "name: w\nsteps:\n"

# Document with a cursor -> the labels that are offered, in any order.
OFFERS: dict[str, list[str]] = {
    "¦": ["agentloom workflow", "name", "steps", "version", "description", "config", "state", "state_schema", "agents"],
    H + "  - ¦": [*SNIPPETS, "step", "id", "type", *COMMON],
    H + "  - id: a\n    ¦": [*SNIPPETS, "step", "type", *COMMON],
    H + "  - id: a\n    type: ¦": TYPES,
    H + "  - id: a\n    type: llm_call\n    thinking:\n      ¦": [
        "enabled",
        "budget_tokens",
        "level",
        "capture_reasoning",
    ],
    H + "  - id: a\n    type: llm_call\n    tool_choice: ¦": ["auto", "required", "none"],
    H + "  - id: a\n    type: llm_call\n    tool_choice:\n      ¦": ["name", "tool choice"],
    H + "  - id: a\n    type: llm_call\n    response_schema:\n      type: ¦": [
        "json_object",
        "json_schema",
        "pydantic",
    ],
    H + "  - id: a\n    type: llm_call\n    tools:\n      - ¦": [
        "name",
        "description",
        "parameters",
        "tool definition",
    ],
    H + "  - id: a\n    type: router\n    retry:\n      max_retries: 1\n      ¦": [
        "backoff_base",
        "backoff_max",
        "jitter",
        "retryable_status_codes",
    ],
    H + "  - id: a\n    type: router\n    conditions:\n      - target: b\n        ¦": ["expression", "condition"],
    H + "  - id: a\n    type: approval_gate\n    on_timeout: ¦": ["approve", "reject", "null"],
    # The type may stand below the cursor; a key that is there is not offered again.
    H + "  - id: a\n    ¦\n    type: router\n": ["conditions", "default", *COMMON],
    H + "  - id: a\n    type: router\n    default: b\n    ¦": ["conditions", *COMMON],
    "name: w\nconfig:\n  on_step_failure: ¦": ["skip_downstream", "continue"],
    "name: w\nagents:\n  helper:\n    tools:\n      - ¦": [
        "name",
        "description",
        "parameters",
        "tool definition",
        "agent",
    ],
    # A workflow inside a workflow.
    H
    + "  - id: s\n    type: subworkflow\n    workflow_inline:\n      name: x\n      steps:\n        - id: r\n          type: router\n          ¦": [
        "conditions",
        "default",
        *COMMON,
    ],
}

# Document with a cursor -> what the hover says, line by line as far as it is told here.
HOVERS: dict[str, list[str]] = {
    H + "  - id: a\n    type: rou¦ter\n": [
        "What kind of step it is.",
        "* `router`: Chooses which branch runs next, from conditions on the state.",
        "* `llm_call`: One model call: a prompt or a conversation, with optional attachments, tools and structured output.",
    ],
    H + "  - id: a\n    type: router\n    ret¦ry:\n      max_retries: 3\n": [
        "How often and how patiently the step is tried again after a transient failure.",
    ],
    H + "  - id: a\n    type: router\n    retry:\n      max_re¦tries: 3\n": [
        "Retries after the first attempt: 3 allows four attempts, 0 only one. Default: `config.max_retries`.",
    ],
    H + "  - id: a\n    type: llm_call\n    pro¦mpt: hi\n": [
        "What the model is asked; a template such as `{state.ticket}`. Needed unless `conversation` is set.",
    ],
    H + "  - id: a\n    type: llm_call\n    tool_choice: au¦to\n": [
        "Whether the model may or must call tools, or `name: tool` for a certain one. Default: auto.",
        "* `auto`: The model decides whether to call a tool.",
    ],
    "config:\n  on_step_failure: con¦tinue\n": [
        "* `continue`: Runs the steps that depend on the failed one all the same.",
    ],
    "con¦fig:\n  provider: openai\n": ["What every step inherits, and how the run as a whole behaves."],
}

TYPE_FAULT = 'Value is not accepted. Valid values: "llm_call", "router", "tool", "subworkflow", "approval_gate", "embed", "agent".'

# Document -> (what is underlined, message): all of them and nothing else, in the order of the text.
FAULTS: dict[str, list[tuple[str, str]]] = {
    H + "  - id: a\n    type: llm_call\n    prompt: hi\n": [],
    H + "  - id: a\n    type: router\n    prompt: x\n    default: b\n": [("prompt", "Property prompt is not allowed.")],
    # The wrong-branch case: three keys of another type outvote `type` in every schema that is a plain union.
    H
    + "  - id: a\n    type: router\n    tool_choice: auto\n    thinking: {}\n    response_schema: {}\n    default: b\n": [
        ("tool_choice", "Property tool_choice is not allowed."),
        ("thinking", "Property thinking is not allowed."),
        ("response_schema", "Property response_schema is not allowed."),
    ],
    H + "  - id: a\n    type: routr\n    default: b\n": [("routr", TYPE_FAULT)],
    H + "  - id: a\n    prompt: b\n": [("i", 'Missing property "type".')],
    H + "  - \n": [("", 'Incorrect type. Expected "step".')],
    H + "  - just text\n": [("just text", 'Incorrect type. Expected "step".')],
    H + "  - id: a\n    type: tool\n": [("i", 'Missing property "tool_name".')],
    H + "  - id: a\n    type: tool\n    tool_name: x\n    retry:\n      max_retry: 3\n": [
        ("max_retry", "Property max_retry is not allowed."),
    ],
    H + "  - id: a\n    type: llm_call\n    timeout: -1\n    temperature: 3\n    max_tokens: '5'\n": [
        ("-1", "Value is below the minimum of 0."),
        ("3", "Value is above the maximum of 2."),
        ("'5'", "Incorrect type. Expected one of integer, null."),
    ],
    H + "  - id: a\n    type: llm_call\n    tool_choice: {nam: x}\n": [
        ("tool_choice", 'Missing property "name".'),
        ("nam", "Property nam is not allowed."),
    ],
    H + "  - id: a\n    type: llm_call\n    retry:\n    depends_on:\n    output:\n": [],
    "name: w\nsteps: []\n": [("[]", "Array has too few items. Expected 1 or more.")],
    "name: w\nversion: 1.0\nconfig:\nstate:\nsteps:\n  - {id: a, type: embed, inputs: x}\n": [],
    "name: w\nconfig: {budgt_usd: 1}\nsteps:\n  - {id: a, type: embed, inputs: x}\n": [
        ("budgt_usd", "Property budgt_usd is not allowed."),
    ],
    "name: w\nagents: {a: {system_prompt: x, tools: [t, {agent: b}, {agent: b, extra: 1}, {nam: c}]}}\nsteps:\n  - {id: a, type: embed, inputs: x}\n": [
        ("extra", "Property extra is not allowed."),
        ("{", 'Missing property "name".'),
        ("nam", "Property nam is not allowed."),
    ],
}


def filled(snippet: str) -> str:
    """Return a snippet with its blanks filled in as proposed, or with `x`."""
    text = re.sub(r"\$\{\d+:((?:[^}\\]|\\.)*)\}", r"\1", snippet)
    return re.sub(r"\$\{?\d+\}?", "x", text).replace("\\}", "}")


def load(text: str) -> Any:
    """Return YAML as plain data."""
    return YAML(typ="safe").load(text)


@pytest.mark.parametrize("marked", OFFERS)
def test_offers(editor: Editor, marked: str) -> None:
    """Exactly what fits there, nothing foreign, nothing twice."""
    labels = [item.label for item in editor.complete(marked)]
    assert sorted(labels) == sorted(OFFERS[marked])


@pytest.mark.parametrize("type_", TYPES)
def test_keys_of_a_type(editor: Editor, type_: str) -> None:
    """After `type: x` every key of x that is not there yet, the needed ones among them, with its text, and no key of another type."""
    block = catalogue().step(type_)
    assert block is not None
    items = {item.label: item for item in editor.complete(f"{H}  - id: a\n    type: {type_}\n    ¦")}
    # The server's own item for all that is still needed.
    skeleton = items.pop(f"{type_} step", None)
    assert set(items) == set(block.fields) - {"id", "type"}
    needed = {name for name, field in block.fields.items() if field.required} - {"id", "type"}
    assert (skeleton is not None) is bool(needed)
    assert needed <= set(items)
    for name, item in items.items():
        assert item.documentation.startswith(block.fields[name].description), name
        assert item.inserted.startswith(f"{name}:")


@pytest.mark.parametrize("start", ["  - ¦", "  - id: a\n    ¦"])
@pytest.mark.parametrize("type_", TYPES)
def test_step_snippets(editor: Editor, start: str, type_: str) -> None:
    """Before `type` a whole step is offered, once; with its blanks filled in it is a valid step of that type."""
    (item,) = [item for item in editor.complete(H + start) if item.label == f"{type_} step"]
    (step,) = load(filled(item.result))["steps"]
    assert step["type"] == type_
    assert set(step) == set(STEP_SNIPPETS[type_])
    build_workflow({"name": "w", "steps": [step]})


def test_chosen_keys_are_yaml(editor: Editor) -> None:
    """Whatever key is chosen, the document still says what it said, plus that key."""
    marked = H + "  - id: a\n    type: llm_call\n    ¦"
    items: list[Item] = editor.complete(marked)
    assert len(items) > 10
    for item in items:
        (step,) = load(filled(item.result))["steps"]
        assert {"id": "a", "type": "llm_call", item.label: step[item.label]} == step, item


@pytest.mark.parametrize("marked", HOVERS)
def test_hovers(editor: Editor, marked: str) -> None:
    """The field's own text, and for choices what each value means, the one in the file first."""
    shown = editor.hover(marked).splitlines()
    at = -1
    for line in HOVERS[marked]:
        assert line in shown[at + 1 :], shown
        at = shown.index(line, at + 1)


@pytest.mark.parametrize("text", FAULTS)
def test_faults(editor: Editor, text: str) -> None:
    """Each fault under its own word, and nothing else."""
    assert [(fault.text, fault.message) for fault in editor.faults(text)] == FAULTS[text]


def test_a_half_typed_key_hides_nothing(editor: Editor) -> None:
    """The rest of the document is still checked, and no key is a fault before it is finished."""
    messages = [fault.message for fault in editor.faults(H + "  - id: a\n    type: routr\n    pro\n")]
    assert TYPE_FAULT in messages
    assert not any("pro" in message and "allowed" in message for message in messages)


def test_agent_files(editor: Editor) -> None:
    """The second schema: offers, hover and faults in an agent file."""
    name = "helper.agent.yaml"
    labels = {item.label for item in editor.complete("¦", name)}
    assert labels == {"agentloom agent", *catalogue().blocks["agent"].fields}
    assert "Who the agent is and how it works" in editor.hover("system_pro¦mpt: x\n", name)
    assert editor.faults("system_prompt: x\ntools: [a, {agent: b}]\n", name) == []
    (fault,) = editor.faults("system_prompt: x\nloop_policy: {max_iteration: 3}\n", name)
    assert fault.text == "max_iteration"


def test_a_modeline_is_enough(editor: Editor, root: Any) -> None:
    """A comment on top names the schema, for files that no setting covers."""
    schema = (root / "schema" / "workflow.schema.json").as_uri()
    assert editor.faults("name: w\nfoo: 1\n", "anything.yaml") == []
    text = f"# yaml-language-server: $schema={schema}\nname: w\nfoo: 1\nsteps:\n  - {json.dumps({'id': 'a', 'type': 'agent', 'agent': 'b'})}\n"
    assert [fault.text for fault in editor.faults(text, "anything.yaml")] == ["foo"]
