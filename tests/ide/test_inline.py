"""Subworkflows inlined: the text that comes out, and the reasons for which it is refused."""

from __future__ import annotations

import pytest

from agentloom.analysis.document import WorkflowDocument
from agentloom.diagnostics import apply_edits
from agentloom.ide.refactor.inline import inline
from agentloom.ide.results import Refusal, TextEdits
from tests.ide.runs import read
from tests.ide.variants import VARIANTS, same_line_ends

PATH = "/nowhere/flow.loom.yaml"
CHILD = "/nowhere/parts/child.loom.yaml"
PARENT = """\
# head
name: w
config: {provider: mock, model: m}
state:
  lamp: {kind: floor}
steps:
  - id: look
    type: llm_call
    prompt: "{state.lamp.kind}"
    output: seen

  # runs the child
  - id: sub
    type: subworkflow
    depends_on: [look]
    workflow_path: parts/child.loom.yaml # its file
    isolated_state: true
    input:
      what: "{state.seen}"
      kind: state.lamp.kind
      tone: calm
      both: "{state.seen}, {state.lamp.kind}"
    return_keys: [text]
    output: result

  - id: end
    type: llm_call
    depends_on:
      - sub # after it
    prompt: "{state.result.text}"
"""
INNER = """\
name: child
state: {what: "", kind: "", tone: "", both: "", most: 3}
steps:
    # thinks
    - id: look
      type: llm_call
      prompt: |
        {state.what} {kind}

        {state.both}
      output: idea
    - id: pick
      type: router
      depends_on: [look]
      conditions:
        - expression: state.kind == 'x' and steps.look.output and state["what"] != ''
          target: write
      default: write
    - id: write
      type: llm_call
      depends_on: ["pick"]  # then
      prompt: "{state.idea} {state.tone} {state.steps.look.output} {state.most}"
      attachments: [{type: image, source: pics/a.png}, {type: image, source: "https://e.com/{state.what}.png"}]
      output: text
"""


def opened(parent: str, child: str = INNER) -> WorkflowDocument:
    return read(PATH, {PATH: parent, CHILD: child, "/nowhere/parts/pics/a.png": ""})


def done(parent: str, child: str = INNER, step: str = "sub") -> str:
    document = opened(parent, child)
    (change,) = inline(document, document.by_id[step])
    assert isinstance(change, TextEdits)
    return apply_edits(parent, change.edits)


NO_WAIT = PARENT[: PARENT.index("\n  - id: end")]
INLINED = """\
# head
name: w
config: {provider: mock, model: m}
state:
  lamp: {kind: floor}
  tone: calm
  most: 3
steps:
  - id: look
    type: llm_call
    prompt: "{state.lamp.kind}"
    output: seen

  # runs the child
  # its file
  # thinks
  - id: sub_look
    type: llm_call
    depends_on: [look]
    prompt: |
      {state.seen} {lamp.kind}

      {state.seen}, {state.lamp.kind}
    output: idea
  - id: pick
    type: router
    depends_on: [sub_look]
    conditions:
      - expression: state.lamp.kind == 'x' and steps.sub_look.output and state["seen"] != ''
        target: write
    default: write
  - id: write
    type: llm_call
    depends_on: ["pick"]  # then
    prompt: "{state.idea} {state.tone} {state.steps.sub_look.output} {state.most}"
    attachments: [{type: image, source: parts/pics/a.png}, {type: image, source: "https://e.com/{state.seen}.png"}]
    output: result.text
"""


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("child", VARIANTS)
def test_a_file(variant: str, child: str) -> None:
    """Ids made unique, input put in place, the output's path, paths of files, indentation, comments; line ends of the parent."""
    parent = VARIANTS[variant](NO_WAIT)
    inner = VARIANTS[child](INNER)
    assert done(parent, inner) == VARIANTS[variant](INLINED)
    assert same_line_ends(parent, done(parent, inner))


def test_who_waited() -> None:
    """What depended on the step depends on the child's last steps; a comment at its line stays."""
    child = INNER[: INNER.index("    - id: pick")].replace("output: idea", "output: text")
    text = done(PARENT, child)
    assert "    depends_on:\n      - sub_look # after it\n" in text
    two = child + "    - id: other\n      type: llm_call\n      prompt: hi\n"
    text = done(PARENT, two)
    assert "    depends_on:\n      - sub_look\n      - other # after it\n" in text
    assert "  - id: other\n    type: llm_call\n    depends_on: [look]\n" in text
    with pytest.raises(Refusal, match="`end` waits for the step, and `write` at the child's end runs only if"):
        done(PARENT)


def test_a_workflow_in_place() -> None:
    """With a state of the parent's: what it wrote for itself gets names that nothing has, and comments inside are kept."""
    parent = """\
name: w
steps:
  - id: a
    type: llm_call
    prompt: hi
    output: key
  - id: sub
    type: subworkflow
    depends_on: [a]
    output: out.sub
    # about the child
    workflow_inline:
      name: kid # its name
      steps:
        - id: b
          type: llm_call
          prompt: "{state.key}"
          output: other
        # then
        - {id: c, type: llm_call, prompt: "{state.other}{state.key}", depends_on: [b], output: key.deep}
    return_keys: [key]
    retry: {max_retries: 0}
"""
    assert (
        done(parent)
        == """\
name: w
steps:
  - id: a
    type: llm_call
    prompt: hi
    output: key
  # about the child
  # its name
  - id: b
    type: llm_call
    depends_on: [a]
    prompt: "{state.key}"
    output: other
  # then
  - {id: c, type: llm_call, prompt: "{state.other}{state.key}", depends_on: [b], output: out.sub.key.deep}
"""
    )


SHORT = """\
name: w
config: {provider: mock}
steps:
  - {id: a, type: llm_call, prompt: hi, output: key}
  - id: sub
    type: subworkflow
    depends_on: [a]
    workflow_path: parts/child.loom.yaml
    output: out
  - {id: z, type: llm_call, prompt: "{state.out.text}", depends_on: [sub]}
"""
KID = """\
name: kid
steps:
  - {id: k, type: llm_call, prompt: "{state.key}", output: text}
"""


def test_it_can_be_done() -> None:
    """The file that the refusals below are variants of."""
    assert "depends_on: [a]}" in done(SHORT, KID)
    assert "output: out.text" in done(SHORT, KID)


@pytest.mark.parametrize(
    ("parent", "child", "why"),
    [
        (SHORT.replace("    output", "    timeout: 5\n    output"), KID, "has a `timeout`"),
        (
            SHORT.replace("    output", "    retry: {max_retries: 2}\n    output"),
            KID,
            "`retry` runs the whole child again",
        ),
        (SHORT, KID + "config: {model: other}\n", "`config.model` is `other` in the child"),
        (SHORT, KID + "config: {budget_usd: 1}\n", "`config.budget_usd` is `1` in the child"),
        (SHORT, KID + "config: {max_retries: 1}\n", "`config.max_retries` is `1` in the child and `3` here"),
        (SHORT.replace("provider: mock", "stream: true"), KID, "`config.stream` is `False` in the child"),
        (SHORT, KID + "state_schema: {text: {redact: true}}\n", "`state_schema` of its own"),
        (SHORT, KID + "agents: {x: {name: x, system_prompt: hi}}\n", "`agents` of its own"),
        (SHORT.replace("{state.out.text}", "{state.out}"), KID, "reads the whole of `out`"),
        (SHORT.replace("{state.out.text}", "{state.out.key}"), KID, "`out.key`, which no step of the child writes"),
        (SHORT.replace("{state.out.text}", "{state.steps.sub.output}"), KID, "`z` reads the result of the step"),
        (SHORT.replace("{state.out.text}", "{state}"), KID, "`z` reads the whole state"),
        (SHORT, KID.replace("{state.key}", "{state}"), "`k` of the child reads the whole state"),
        (SHORT, KID.replace("{state.key}", "{state.steps.a.output}"), "the result of `a`, which isn't in it"),
        (
            SHORT.replace("out\n", "out\n    input: {q: state.steps.a.output}\n"),
            KID.replace(".key", ".q"),
            "hands on a result",
        ),
        (
            SHORT + "  - {id: y, type: llm_call, prompt: hi, output: key}\n",
            KID,
            "`y` writes `key`, which the child reads",
        ),
        (SHORT + "  - {id: y, type: llm_call, prompt: '{state.out.text}'}\n", KID, "without waiting for the step"),
        (SHORT.replace("prompt: hi, output: key", "prompt: hi, output: out"), KID, "`a` writes `out`, too"),
        (SHORT + "state: {out: {}}\n", KID, "`state` has a key `out`"),
        (
            SHORT.replace("[a]\n", "&d [a]\n") + "  - {id: y, type: llm_call, prompt: hi, depends_on: *d}\n",
            KID,
            "would be lost",
        ),
        (SHORT + "state: {x: &x 1, y: *x}\n", KID.replace("id: k", "id: &x k"), "both files have an anchor `&x`"),
        (SHORT, "x" + KID, "the file or its child has errors"),
        (
            SHORT.replace("out.text", "out.key"),
            KID.replace("output: text", "output: key") + '  - {id: l, type: llm_call, prompt: "{state.key}"}\n',
            "`l` of the child reads `key` both as it was and as other steps write it",
        ),
        (
            SHORT.replace("{id: a, type: llm_call, prompt: hi, output: key}", "{id: a, type: router, default: sub}"),
            KID + "  - {id: l, type: llm_call, prompt: hi}\n",
            "router `a` chooses the step, and the child begins with 2 steps",
        ),
        (
            SHORT + "  - {id: y, type: llm_call, prompt: '{state.k2}'}\n",
            KID.replace(".key", ".k2") + "state: {k2: 1}\n",
            "may or may not",
        ),
        (
            SHORT.replace("out\n", "out\n    input: {q: 'x {state.key}'}\n"),
            KID.replace("{state.key}", "{state.q:.5}"),
            "`input.q` is put together",
        ),
    ],
)
def test_refused_with_a_reason(parent: str, child: str, why: str) -> None:
    """Settings of its own, whole states, results, races, anchors, branches: each is named."""
    with pytest.raises(Refusal) as caught:
        done(parent, child)
    assert why in str(caught.value)


def test_a_missing_child() -> None:
    """There is nothing to inline."""
    with pytest.raises(Refusal, match="errors"):
        done(SHORT.replace("parts/child", "parts/nothing"), KID)


def test_a_choice_of_a_router() -> None:
    """The router chooses the child's first step instead."""
    parent = SHORT.replace("{id: a, type: llm_call, prompt: hi, output: key}", "{id: a, type: router, default: sub}")
    text = done(parent, KID.replace("{state.key}", "hi"))
    assert "{id: a, type: router, default: k}" in text
    assert '{id: k, type: llm_call, prompt: "hi", output: out.text, depends_on: [a]}' in text


def test_where_constants_go() -> None:
    """Into `state` as it is written, or a new one above `steps`; also what the child's own `state` begins with."""
    text = done(SHORT, KID.replace("{state.key}", "{state.k2}") + "state: {k2: 1}\n")
    assert "\nstate:\n  k2: 1\n\nsteps:\n" in text
    parent = SHORT.replace("out\n", "out\n    isolated_state: true\n    input: {tone: 'a: b', deep: {x: [1]}}\n")
    child = KID.replace("{state.key}", "{state.tone} {state.deep.x[0]}")
    text = done(parent, child)
    assert "state:\n  tone: 'a: b'\n  deep: {\"x\": [1]}\n\nsteps:\n" in text
    assert "state: {q: 1, tone: 'a: b', deep: {\"x\": [1]}}\n" in done("state: {q: 1}\n" + parent, child)
    text = done("state:\n  tone: 1 # mine\n" + parent, child)
    assert "state:\n  tone: 1 # mine\n  sub_tone: 'a: b'\n  deep:" in text
    assert "{state.sub_tone} {state.deep.x[0]}" in text
