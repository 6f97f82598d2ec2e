"""Steps extracted to a subworkflow: the text that comes out, and the reasons for which it is refused."""

from __future__ import annotations

import sys
from types import FrameType

import pytest

from agentloom.analysis.document import WorkflowDocument
from agentloom.diagnostics import apply_edits
from agentloom.ide.refactor.extract import extract, steps_in, why_not
from agentloom.ide.results import NewFile, Refusal, TextEdits
from agentloom.text import Span
from tests.analysis.checking import check
from tests.ide.runs import read
from tests.ide.variants import VARIANTS, same_line_ends

PATH = "/nowhere/flow.loom.yaml"
FLOW = """\
# head
name: w
config:
  provider: mock # by hand
  model: m
  stream: true
state:
  ticket: Broken lamp
  more: {a: 1}
steps:
  - id: fetch
    type: llm_call
    prompt: "{state.ticket}"
    output: page

  # reads the page
  - id: sum
    type: llm_call
    depends_on: [fetch]  # why
    prompt: |
      {state.page} {state.ticket}
    output: summary.text  # the text

  - id: label
    type: llm_call
    depends_on:
      - fetch
      - "sum"
    prompt: "{summary.text} {state.more.a}"
    output: label
  - id: note
    type: llm_call
    depends_on: ['label', fetch]
    prompt: >
      {state.summary.text} and
      {state.label}
    output: note
  - id: last
    type: router
    depends_on: [note]
    conditions:
      - expression: state["summary"]["text"] == 'x' and state.get("label")
        target: end
    default: end
  - {id: end, type: llm_call, prompt: 'say "{state.label}"', depends_on: [last]}
"""


def opened(text: str) -> WorkflowDocument:
    return read(PATH, {PATH: text})


def done(text: str, *ids: str, to_file: bool = True) -> tuple[str, str]:
    """Return the text and that of the new file."""
    document = opened(text)
    changes = extract(document, ids, to_file)
    (edits,) = [c.edits for c in changes if isinstance(c, TextEdits) and c.source == document.source]
    made = [change.text for change in changes if isinstance(change, NewFile)]
    return apply_edits(text, edits), made[0] if made else ""


def test_to_a_file() -> None:
    """Comments, quotes and block texts move as they are; dependencies, reads and the new step's fields follow."""
    flow = FLOW.replace('.get("label")', "['label']")
    text, child = done(flow, "sum", "label")
    assert child == (
        "name: label_part\n"
        "config:\n"
        "  stream: true\n"
        "\n"
        "state:\n"
        '  page: ""\n'
        "  ticket: Broken lamp\n"
        "  more: {}\n"
        "\n"
        "steps:\n"
        "  # reads the page\n"
        "  - id: sum\n"
        "    type: llm_call\n"
        "    depends_on: []  # why\n"
        "    prompt: |\n"
        "      {state.page} {state.ticket}\n"
        "    output: summary.text  # the text\n"
        "\n"
        "  - id: label\n"
        "    type: llm_call\n"
        "    depends_on:\n"
        '      - "sum"\n'
        '    prompt: "{summary.text} {state.more.a}"\n'
        "    output: label\n"
    )
    new = (
        "  - id: label_part\n"
        "    type: subworkflow\n"
        "    depends_on: [fetch]\n"
        "    workflow_path: label_part.loom.yaml\n"
        "    isolated_state: true\n"
        "    input:\n"
        '      page: "{state.page}"\n'
        '      ticket: "{state.ticket}"\n'
        '      more: "{state.more}"\n'
        "    return_keys: [summary, label]\n"
        "    output: label_part\n"
        "    retry: {max_retries: 0}\n"
        "\n"
    )
    start, end = flow.index("  # reads the page"), flow.index("  - id: note")
    rest = (
        flow[end:]
        .replace("['label', fetch]", "[label_part, fetch]")
        .replace("{state.summary.text} and", "{state.label_part.summary.text} and")
        .replace("{state.label}\n", "{state.label_part.label}\n")
        .replace('{state.label}"', '{state.label_part.label}"')
        .replace('state["summary"]["text"]', 'state["label_part"]["summary"]["text"]')
        .replace("state['label']", "state['label_part']['label']")
    )
    assert text == flow[:start] + new + rest


def test_what_get_reads_stays_put() -> None:
    """`state.get("label")` can't follow a key into a mapping, so it is refused by name."""
    with pytest.raises(Refusal, match=r'state\.get\("label"\)'):
        done(FLOW, "label")
    done(FLOW.replace('.get("label")', ".label"), "label")


def test_in_place() -> None:
    """Indented below `workflow_inline`, kept blank lines of a last text included."""
    text = FLOW.replace('"{summary.text} {state.more.a}"\n    output: label\n', "|+\n      {state.more.a}\n\n\n")
    text = text.replace('.get("label")', ".ticket").replace("{state.label}", "x")
    after, child = done(text, "sum", "label", to_file=False)
    assert child == ""
    inner = after[after.index("    workflow_inline:") : after.index("  - id: note")]
    assert inner == (
        "    workflow_inline:\n"
        "      name: label_part\n"
        "      config:\n"
        "        stream: true\n"
        "      state:\n"
        '        page: ""\n'
        "        ticket: Broken lamp\n"
        "        more: {}\n"
        "      steps:\n"
        "        # reads the page\n"
        "        - id: sum\n"
        "          type: llm_call\n"
        "          depends_on: []  # why\n"
        "          prompt: |\n"
        "            {state.page} {state.ticket}\n"
        "          output: summary.text  # the text\n"
        "\n"
        "        - id: label\n"
        "          type: llm_call\n"
        "          depends_on:\n"
        '            - "sum"\n'
        "          prompt: |+\n"
        "            {state.more.a}\n"
        "\n"
        "\n"
    )
    result = opened(after).children["label_part"].document
    assert result is not None
    assert result.by_id["label"].facts.data["prompt"] == "{state.more.a}\n\n\n"


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("to_file", [True, False])
def test_line_ends_and_wide_characters(variant: str, to_file: bool) -> None:
    """CRLF, a byte order mark, emoji before and inside: the same change, in the file's own line ends."""
    flow = FLOW.replace('.get("label")', ".label").replace(
        "{state.page} {state.ticket}", "✓ 😀 {state.page} {state.ticket}"
    )
    text, child = done(VARIANTS[variant](flow), "sum", "label", to_file=to_file)
    plain_text, plain_child = done(flow, "sum", "label", to_file=to_file)
    assert text == VARIANTS[variant](plain_text)
    assert child == VARIANTS["windows"](plain_child)[1:] if variant == "windows" and to_file else child == plain_child
    assert same_line_ends(VARIANTS[variant](flow), text)


def test_comments_between_steps_stay() -> None:
    """A heading that stands apart from the step below it belongs to the list; one directly above goes along."""
    text = FLOW.replace('.get("label")', ".label").replace(
        "  # reads the page\n", "  # --- reading\n\n  # it reads\n  # the page\n"
    )
    after, child = done(text, "fetch", "sum", "label")
    assert "\n  # --- reading\n\n" in after
    assert "it reads" not in after
    assert "\n\n  # it reads\n  # the page\n  - id: sum\n" in child
    assert "--- reading" not in child


def test_names_are_new() -> None:
    """Neither an id, nor a key of the state, nor a file that is there."""
    text = FLOW.replace("id: fetch", "id: sum_part").replace("fetch", "sum_part")
    text = text.replace("ticket: Broken lamp", "ticket: Broken lamp\n  sum_part_2: x")
    files = {PATH: text, "/nowhere/sum_part_3.loom.yaml": ""}
    document = read(PATH, files)
    (made,) = [change for change in extract(document, ["sum"], True) if isinstance(change, NewFile)]
    assert made.path.name == "sum_part_4.loom.yaml"


def test_a_branch_of_a_router() -> None:
    """All that follows one choice: the router chooses the new step instead."""
    text, child = done(FLOW, "end")
    assert "        target: end_part\n    default: end_part\n" in text
    assert "depends_on" not in child
    assert "{id: end, type: llm_call, prompt: 'say \"{state.label}\"'}" in child


def test_keys_that_may_be_missing() -> None:
    """What only the command line may set can't be handed over by name, which fails where it is missing: a copy of the state does."""
    text, child = done(FLOW.replace("{state.more.a}", "{state.given}").replace('.get("label")', ".label"), "label")
    assert "isolated_state" not in text
    assert "input" not in text
    assert "return_keys: [label]" in text
    assert "\nstate:" not in child


@pytest.mark.parametrize(
    ("text", "ids", "why"),
    [
        (FLOW, ("fetch", "label"), "step `sum` runs between the selected ones"),
        (FLOW, ("last",), "router `last` chooses `end`, which isn't selected"),
        (FLOW, ("note", "end"), "step `last` runs between"),
        (FLOW.replace("{state.label}\n", "{state.steps.sum.output}\n"), ("sum",), "`note` reads the result of `sum`"),
        (FLOW.replace("{state.label}\n", "{state.steps.sum.output}\n"), ("note",), "`note` reads the result of `sum`"),
        (FLOW.replace("{state.label}\n", "{state}\n"), ("sum",), "`note` reads the whole state"),
        (FLOW.replace("{state.more.a}", "{state}"), ("label",), "`label` reads the whole state"),
        (
            FLOW.replace("Broken lamp", "&l Broken lamp").replace("output: page", "system_prompt: *l"),
            ("fetch",),
            "`*l`",
        ),
        (FLOW.replace("depends_on: ['label', fetch]", "depends_on: [nope]"), ("sum",), "the file has errors"),
        (FLOW.replace("output: note", "output: page"), ("sum", "label"), ""),
        (
            FLOW.replace("output: label", "output: label").replace(
                "depends_on: ['label', fetch]\n", "depends_on: [fetch]\n"
            ),
            ("label",),
            "`note` reads `label`, which `label` writes in no certain order",
        ),
        (
            FLOW.replace(
                "    depends_on: ['label', fetch]\n    prompt", "    depends_on: [fetch]\n    x: 1\n    prompt"
            ),
            ("sum",),
            "err",
        ),
    ],
)
def test_refused_with_a_reason(text: str, ids: tuple[str, ...], why: str) -> None:
    """Paths that leave and come back, routers across the border, results, anchors, races, errors."""
    if not why:
        assert done(text.replace('.get("label")', ".label"), *ids)
        return
    with pytest.raises(Refusal) as caught:
        done(text, *ids)
    assert why in str(caught.value)


def test_branches_that_may_be_skipped() -> None:
    """What waits for a branch would no longer be skipped with it; what doesn't would be skipped, too."""
    head = "name: w\nsteps:\n  - {id: r, type: router, conditions: [{expression: state.x, target: a}], default: b}\n"
    branch = "  - {id: %s, type: llm_call, prompt: hi, depends_on: [%s]}\n"
    text = head + branch % ("a", "r") + branch % ("b", "r") + branch % ("c", "a") + branch % ("d", "c")
    text += "  - {id: free, type: llm_call, prompt: hi}\n"
    with pytest.raises(Refusal, match="`c` depends on `a`, which runs only if `r` chooses so"):
        done(text, "r", "a", "b")
    with pytest.raises(Refusal, match="step `free` runs even if `c` is skipped"):
        done(text, "d", "free")
    assert "target: c_part" in done(text, "a", "c")[0]
    assert "depends_on: [a]" in done(text, "c", "d")[0]
    assert done(text, "r", "a", "b", "c", "d")


def test_agents_of_the_file() -> None:
    """A step that runs an agent of this file has to stay."""
    text = "name: w\nagents:\n  me: {name: me, system_prompt: hi}\nsteps:\n  - {id: a, type: agent, agent: me, input: hi}\n"
    with pytest.raises(Refusal, match="the agent `me`, which this file defines"):
        done(text, "a")


def test_flow_lists_of_steps() -> None:
    """Steps in brackets stay there."""
    with pytest.raises(Refusal, match="write them as a list with dashes"):
        done("name: w\nsteps: [{id: a, type: llm_call, prompt: hi}]\n", "a")


def test_unsaved_files() -> None:
    """There is no place for a new file beside one that has none; in place it works."""
    unsaved = check(FLOW)
    with pytest.raises(Refusal, match="save the file first"):
        extract(unsaved, ["end"], True)
    assert extract(unsaved, ["end"], False)


def test_what_a_selection_touches() -> None:
    """Every step that the selection lies in, begins in or ends in; the cursor alone means its step."""
    document = opened(FLOW)
    at = FLOW.index("page\n")
    assert steps_in(document, Span(at, at)) == ("fetch",)
    assert steps_in(document, Span(at, FLOW.index("prompt: |"))) == ("fetch", "sum")
    assert steps_in(document, Span(0, 5)) == ()
    assert len(steps_in(document, Span(0, len(FLOW)))) == 6


def _work(steps: int) -> int:
    """Return how many calls it takes to tell whether a chain of so many steps may be extracted as a whole."""
    text = "name: w\nsteps:\n" + "".join(
        f"  - {{id: s{at}, type: llm_call, prompt: 'hi {{state.k{at - 1}}}', output: k{at}, depends_on: [{before}]}}\n"
        for at, before in enumerate(["", *(f"s{at}" for at in range(steps - 1))])
    )
    document = check(text)
    why_not(document, tuple(document.by_id))  # what is made once for a document
    calls = 0

    def counted(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += 1

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        why_not(document, tuple(document.by_id))
    finally:
        sys.setprofile(before)
    return calls


def test_large_selections_cost_what_they_hold() -> None:
    """Everything selected in a long workflow: twice the steps are twice the work, not four times."""
    assert _work(200) < 2.6 * _work(100)


CONVERSATION = """name: t
config: {provider: mock, model: m}
steps:
  - {id: a, type: llm_call, conversation: chat, prompt: hi}
  - {id: b, type: llm_call, depends_on: [a], conversation: chat, prompt: and}
"""


def test_a_conversation_stays_in_one_place() -> None:
    """Who goes on with it reads and writes it: moved apart, one half of it would be lost. Both together move."""
    with pytest.raises(Refusal, match="`b` goes on with `chat`, which would stand elsewhere; choose it as well"):
        extract(check(CONVERSATION), ["a"], False)
    assert extract(check(CONVERSATION), ["a", "b"], False)
