"""Completion of structure: keys, choices, step ids, whole steps, codes; what is offered, and the text after choosing it."""

from __future__ import annotations

import random
import re
import sys
from typing import Any

import pytest

from agentloom.analysis.analyze import analyze
from agentloom.analysis.context import Context
from agentloom.analysis.document import WorkflowDocument
from agentloom.analysis.settings import Settings
from agentloom.diagnostics import apply_edits
from agentloom.ide.completion.complete import answer, complete
from agentloom.ide.completion.documentation import explain
from agentloom.ide.completion.items import Item, filled
from agentloom.model.catalogue import catalogue
from agentloom.syntax.reader import read
from agentloom.syntax.values import plain_value
from agentloom.text import Source
from tests.analysis.checking import check, codes
from tests.house.corpus import files
from tests.ide.marked import cut, opened

H = "name: w\nsteps:\n"
A = "  - id: a\n    type: llm_call\n    prompt: hi\n"
B = A.replace("id: a", "id: b")
TYPES = list(catalogue().steps)


def offered(marked: str) -> list[Item]:
    return complete(*opened(marked))


def labels(marked: str, kind: str | None = None) -> list[str]:
    return [item.label for item in offered(marked) if kind is None or item.kind == kind]


def chosen(marked: str, label: str, kind: str | None = None) -> str:
    """Return the text after choosing an item, its blanks filled with what they propose."""
    items = [item for item in offered(marked) if item.label == label and kind in (None, item.kind)]
    assert items, labels(marked)
    item = items[0]
    text = filled(item.edit.text) if item.snippet else item.edit.text
    return apply_edits(cut(marked)[0], [item.edit._replace(text=text), *item.additional])


def data(text: str) -> Any:
    return plain_value(read(text).root)


# ── keys ──


@pytest.mark.parametrize("marked", ["¦", "¦\n" + H, "{}¦", "{¦}", "# hi\n¦", "---\n¦", "\ufeff¦", "na¦", "\n\n¦\n"])
def test_case_top_level_keys(marked: str) -> None:
    """Editor case: panic on an empty file, before the first node, on `{}`. The keys of a workflow."""
    present = {"name", "steps"} if "steps" in marked else set()
    assert set(labels(marked, "key")) == set(catalogue().blocks["workflow"].fields) - present


def test_an_empty_file_may_become_a_whole_workflow() -> None:
    """A file to begin with, free of mistakes, also in place of `{}`."""
    for marked in ("¦", "{}¦", "\ufeff¦", "# made by hand\n¦"):
        assert codes(chosen(marked, "workflow")) == []
    assert "workflow" not in labels("name: w\n¦")


def test_required_keys_come_first_and_those_present_are_left_out() -> None:
    """Of a router without conditions: what it can't do without, what it usually has, the rest."""
    assert labels(H + "  - id: r\n    ¦\n", "key")[0] == "type"
    found = labels(H + "  - type: tool\n    id: t\n    ¦\n", "key")
    assert found[:3] == ["tool_name", "tool_args", "output"]
    assert not {"id", "type"} & set(found)


def test_case_a_key_in_the_middle_of_a_mapping() -> None:
    """Editor case: keys already below were offered, without an edit range. They are left out; the word is replaced."""
    marked = H + "  - id: a\n    ty¦\n    type: llm_call\n    prompt: hi\n"
    text, offset = cut(marked)
    items = complete(check(text), offset)
    assert "type" not in [item.label for item in items]
    assert {(item.edit.span.start, item.edit.span.end) for item in items} == {(offset - 2, offset)}


@pytest.mark.parametrize("typed", ["  - na¦\n", "  - n¦", "  -¦", "  - ¦", "  ¦", "  i¦\n"])
def test_case_keys_behind_a_dash(typed: str) -> None:
    """Editor case: completion threw on each key after `- na`. Keys of a step, the dash added where it is missing."""
    assert {"id", "type", "depends_on"} <= set(labels(H + typed, "key"))
    assert data(chosen(H + typed, "id"))["steps"] == [{"id": "step_1"}]


def test_case_a_block_in_braces() -> None:
    """Editor case: a block skeleton was inserted inside `{}`. In braces, lists and mappings are in brackets."""
    marked = H + "  - {id: a, dep¦}\n"
    found = {item.label: item.edit.text for item in offered(marked)}
    assert found["depends_on"] == "depends_on: [$0]"
    assert found["retry"] == "retry: {$0}"
    assert data(chosen(marked, "depends_on"))["steps"] == [{"id": "a", "depends_on": []}]
    assert data(chosen(H + "  - {id: a, ¦ type: tool}\n", "retry"))["steps"] == [
        {"id": "a", "retry": {}, "type": "tool"}
    ]


@pytest.mark.parametrize(
    ("marked", "label", "written"),
    [
        (H + A + "    ¦", "retry", "    retry:\n      "),
        (H + A + "    ¦", "depends_on", "    depends_on:\n      - "),
        (H + A + "    ¦", "temperature", "    temperature: 0.2"),
        (H + A + "    ¦", "stream", "    stream: "),
        (H + A + "    attachments:\n      - ¦", "attachment", "      - source: ./invoice.png"),
        (H + A + "    attachments: ¦", "attachment", "    attachments:\n      - source: ./invoice.png"),
        (H + A + "    retry:¦", "max_retries", "    retry:\n      max_retries: 3"),
        (H + A + "    retry: ¦", "jitter", "    retry:\n      jitter: "),
        (H + A + '    "out¦', "output", '    "output": '),
        (H + A + "    'out¦'", "output", "    'output': "),
        (H + A + "    out¦:", "output", "    output:"),
        (H + A + '    "out¦": x', "output", '    "output": x'),
        (H + A.replace("    ", "      ").replace("  - ", "    - ") + "      ¦", "retry", "      retry:\n          "),
        ("name: w\nsteps:\n- id: a\n  type: llm_call\n  ¦", "depends_on", "  depends_on:\n  - "),
        ("config:\n    model: x\n" + H + A + "    ¦", "retry", "    retry:\n        "),
    ],
)
def test_what_a_key_begins_with(marked: str, label: str, written: str) -> None:
    """Blocks and lists begin as the file writes them, indented by its own width and with its own line ends."""
    for text in (marked, marked.replace("\n", "\r\n")):
        end = "\r\n" if "\r" in text else "\n"
        assert chosen(text, label).endswith(end + written.replace("\n", end))


def test_lists_are_written_as_beside() -> None:
    """Where the step above writes its dependencies in brackets, so does the next one."""
    text = H + A + B + "    depends_on: [a]\n" + A.replace("id: a", "id: c") + "    ¦"
    assert chosen(text, "depends_on").endswith("    depends_on: []")


def test_keys_that_a_merge_brings_in_come_last() -> None:
    """They may be written again, which is seldom meant."""
    found = labels("x: &d {temperature: 0}\n" + H + "  - <<: *d\n    id: a\n    type: llm_call\n    ¦", "key")
    assert found[-1] == "temperature"


def test_a_key_that_cannot_stand_beside_another_is_left_out() -> None:
    """An `llm_call` has tools or a response schema, a subworkflow one workflow."""
    assert "response_schema" not in labels(H + A + "    tools: [{name: x}]\n    ¦")
    assert "workflow_inline" not in labels(H + "  - id: s\n    type: subworkflow\n    workflow_path: x.yaml\n    ¦")


def test_a_key_gets_another_name_only_if_its_value_fits() -> None:
    """Over a misspelled key: those that take the value. Over one that takes none: all."""
    found = labels(H + "  - id: a\n    type: llm_call\n    promt¦: hi\n", "key")
    assert "prompt" in found
    assert not {"temperature", "retry", "tools"} & set(found)
    assert "default" not in labels(H + "  - id¦: r\n    type: router\n", "key")


@pytest.mark.parametrize("indent", range(9))
def test_an_empty_line_belongs_to_the_mapping_of_its_indentation(indent: int) -> None:
    """At the end of a file, the columns decide what is meant: the file, the list, the step, what its last key holds."""
    found = set(labels(H + A + "    retry:\n" + " " * indent + "¦", "key"))
    meant = {0: "config", 1: "id", 2: "id", 3: "output", 4: "output"}
    assert meant.get(indent, "jitter") in found


def test_an_empty_line_never_tears_what_goes_on_below() -> None:
    """On a blank line at the margin between two steps a step is meant; inside one, its keys. What is chosen gets its indentation."""
    text = chosen(H + A + "¦\n" + B, "tool step")
    assert [step["id"] for step in data(text)["steps"]] == ["a", "step_3", "b"]
    text = chosen(H + "  - id: a\n¦\n    type: llm_call\n    prompt: hi\n", "output")
    assert list(data(text)["steps"][0]) == ["id", "output", "type", "prompt"]


def test_case_no_keys_in_texts() -> None:
    """Editor case: line repair broke block strings. In texts of any style there are no keys."""
    for prompt in ("|\n      ¦", "|\n      pro¦\n", ">-\n      a\n      ¦\n", '"¦"', "'re¦'", "plain ¦", "a\n      ¦b"):
        assert labels(H + A.replace("hi", prompt)) == [], prompt


@pytest.mark.parametrize("comment", ["# ¦", "#¦", "# state.¦", "# agentloom: ¦", "# agentloom: ignore ¦"])
def test_case_nothing_in_comments(comment: str) -> None:
    """Comments get nothing, at the end of a line or on one of their own."""
    assert labels(f"name: w {comment}\n" + H) == []
    assert labels(H + A + f"    {comment}\n") == []


# ── values ──


def test_case_choices_in_braces() -> None:
    """Editor case: no enum values in flow maps until a letter is typed. All step types."""
    for marked in ("  - {id: a, type: ¦}\n", "  - {id: a, type: ¦", "  - {id: a, type:¦}\n", "  - {type: ¦ , id: a}\n"):
        assert labels(H + marked) == TYPES


@pytest.mark.parametrize(
    ("typed", "written"),
    [
        ("type: ¦", "type: tool"),
        ("type:¦", "type: tool"),
        ("type:to¦", "type: tool"),
        ("type:to¦\n    type: router", "type: tool\n    type: router"),
        ("type: to¦", "type: tool"),
        ("type: r¦outer", "type: tool"),
        ('type: "¦"', 'type: "tool"'),
        ('type: "to¦', 'type: "tool"'),
        ("type: 'ro¦uter'", "type: 'tool'"),
        ("type:\n      ¦", "type:\n      tool"),
        ("type: # why¦", None),
        ("type: &t ¦", "type: &t tool"),
        ("type: router # ¦", None),
    ],
)
def test_a_choice_replaces_exactly_the_word(typed: str, written: str | None) -> None:
    """In every style the word is replaced, and the quotes that are there stay."""
    marked = H + f"  - id: a\n    {typed}\n"
    if written is None:
        assert labels(marked) == []
    else:
        assert chosen(marked, "tool") == H + f"  - id: a\n    {written}\n"


def test_truth_values_null_and_the_default() -> None:
    """A switch has two positions, and a third where null means what stands elsewhere; the default is marked."""
    assert labels(H + A + "    stream: ¦") == ["true", "false", "null"]
    assert [(item.label, item.detail) for item in offered("config:\n  stream: ¦\n")] == [
        ("true", ""),
        ("false", "default"),
    ]
    assert labels(H + A + '    stream: "¦"') == []
    found = offered("config:\n  on_step_failure: ¦\n")
    assert [(item.label, item.preselect) for item in found] == [("skip_downstream", True), ("continue", False)]


def test_anchors_behind_an_asterisk() -> None:
    """An alias is chosen among the anchors above."""
    assert labels("x: &slow {timeout: 3}\ny: &fast {timeout: 1}\n" + H + "  - <<: *¦\n") == ["*fast", "*slow"]


ANCHORS = (
    "a: &map {timeout: 3}\nb: &below\n  timeout: 3\nc: &list [a]\nd: &lines\n  - a\ne: &text hi\nf: &long |\n  a: b\n"
)


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ("depends_on: *¦", ["*lines", "*list"]),
        ("depends_on: [*¦]", ["*long", "*text"]),
        ("output: *¦", ["*long", "*text"]),
        ("retry: *¦", ["*below", "*map"]),
        ("<<: *¦", ["*lines", "*list", "*below", "*map"]),
    ],
)
def test_anchors_of_another_kind_are_no_values(written: str, names: list[str]) -> None:
    """An alias for a mapping is not offered where a list has to stand, and so on."""
    assert [label for label in labels(ANCHORS + H + A + f"    {written}\n") if label.startswith("*")] == names


def test_a_value_comes_before_the_block_that_may_stand_for_it() -> None:
    """What most people mean is first in the list."""
    assert labels(H + A + "    tool_choice: ¦") == ["auto", "required", "none", "name"]


@pytest.mark.parametrize("item", ["  - id: b\n    type: subworkflow\n    ¦\n", "  - {id: b, type: subworkflow, ¦}\n"])
def test_a_workflow_in_place_begins_with_a_step(item: str) -> None:
    """Its list of steps isn't a blank to be filled in, which no text can stand for."""
    found = next(item for item in offered(H + A + item) if item.label == "workflow_inline")
    assert "type: llm_call" in found.edit.text


def test_what_is_said_beside_keys_and_snippets_is_english() -> None:
    """Lists are of texts and mappings, and what is inserted is named."""
    found = {item.label: item.detail for item in offered(H + A + "    ¦\n")}
    assert (found["depends_on"], found["tools"]) == ("list of texts", "list of mappings")
    assert {item.label: item.detail for item in offered("¦")}["agents"] == "mapping of texts or mappings"
    routes = offered(H + A + "  - id: r\n    type: router\n    conditions:\n      - ¦\n")
    assert [item.detail for item in routes if item.label == "condition"] == ["insert a whole condition"]


# ── step ids ──

CHAIN = H + A + B + "    depends_on: [a]\n" + A.replace("id: a", "id: c") + "    depends_on: [b]\n"


@pytest.mark.parametrize(
    ("written", "ids"),
    [
        ("depends_on: [a, ¦]", []),
        ("depends_on: [¦]", ["a"]),
        ("depends_on: [¦", ["a"]),
        ("depends_on: ¦", ["a"]),
        ("depends_on:¦", ["a"]),
        ("depends_on:\n      - ¦", ["a"]),
        ("depends_on:\n      ¦", ["a"]),
        ("depends_on:\n      - a\n      - ¦", []),
        ("depends_on: ['¦']", ["a"]),
    ],
)
def test_case_what_a_step_may_wait_for(written: str, ids: list[str]) -> None:
    """Editor case: an id already chosen was offered again. Itself, those that wait for it and those listed are left out."""
    text = H + A + B + f"    {written}\n" + A.replace("id: a", "id: c") + "    depends_on: [b]\n"
    assert labels(text, "step") == ids
    if ids:
        (found,) = [step for step in data(chosen(text, "a"))["steps"] if step["id"] == "b"]
        assert found["depends_on"] == ["a"]


def test_the_nearest_step_comes_first() -> None:
    """Those above, upwards; then those below."""
    text = H + "".join(A.replace("id: a", f"id: s{n}") for n in range(4)) + "    depends_on: [¦]\n" + B
    assert labels(text) == ["s2", "s1", "s0", "b"]


def test_targets_are_first_of_all_what_waits_for_the_router() -> None:
    """A router chooses among its dependants; other steps come behind."""
    router = "  - id: r\n    type: router\n    conditions:\n      - {expression: state.x, target: ¦}\n"
    text = H + A + router + B + "    depends_on: [r]\n"
    assert labels(text, "step") == ["b", "a"]
    assert labels(
        text.replace("{expression: state.x, target: ¦}", "{expression: x, target: a}\n    default: ¦"), "step"
    ) == ["b", "a"]


@pytest.mark.parametrize(
    "name", ["on", "1e3", "a: b", "#x", "no", "2024-01-01", "it's", "- x", "é ü", "null", "0x1F", "x, y"]
)
@pytest.mark.parametrize(
    "place",
    [
        "depends_on: ¦",
        "depends_on: [¦]",
        "depends_on:\n      - ¦",
        'depends_on: ["¦"]',
        "depends_on: ['¦']",
        "depends_on: ['¦",
    ],
)
def test_case_names_that_need_quotes(name: str, place: str) -> None:
    """Editor case: a value that needs quotes was inserted bare. What is inserted reads back as what was chosen."""
    spelled = '"' + name + '"'
    marked = H + A.replace("id: a", f"id: {spelled}") + B + f"    {place}\n"
    assert data(chosen(marked, name))["steps"][1]["depends_on"][0] == name


def test_very_many_steps_come_in_parts() -> None:
    """Of a thousand names the nearest are offered, and those that fit what is typed; the editor asks again."""
    text = H + "".join(A.replace("id: a", f"id: s{n}") for n in range(1000)) + "    depends_on: [¦]\n"
    found = answer(*opened(text))
    assert not found.complete
    assert [item.label for item in found.items[:2]] == ["s998", "s997"]
    narrowed = answer(*opened(text.replace("[¦]", "[s31¦]")))
    assert narrowed.complete
    assert "s31" in [item.label for item in narrowed.items]


# ── whole things ──


@pytest.mark.parametrize("type_", TYPES)
def test_a_whole_step_is_free_of_mistakes(type_: str) -> None:
    """Behind a dash, with the dash, between others, at the margin, in brackets: a step as the file writes them."""
    head = "name: w\nagents: {helper: {system_prompt: hi}}\nsteps:\n"
    before = {d.code for d in check(head + A + B).diagnostics}
    for place in ("  - ¦\n", "  ¦\n", "¦\n"):
        text = chosen(head + A + B + place, f"{type_} step")
        assert data(text)["steps"][2]["type"] == type_
        assert {d.code for d in check(text).diagnostics if d.severity == 1} <= before, text
    flow = chosen(
        head.replace(
            "steps:\n", "steps: [{id: a, type: llm_call, prompt: hi}, {id: b, type: llm_call, prompt: hi}, ¦]"
        ),
        f"{type_} step",
    )
    assert data(flow)["steps"][2]["type"] == type_
    assert {d.code for d in check(flow).diagnostics if d.severity == 1} <= before, flow


@pytest.mark.parametrize(
    "marked",
    [
        "  - ¦\n",
        "  ¦\n",
        A + "    attachments: ¦\n",
        A + "    attachments:¦\n",
        A + "    retry: ¦\n",
        A + "    thinking:¦\n",
    ],
)
def test_one_line_says_what_several_say(marked: str) -> None:
    """Editors that insert one line only get the same in brackets."""
    text = cut(H + marked)[0]
    for item in offered(H + marked):
        if item.in_line:
            several = apply_edits(text, [item.edit._replace(text=filled(item.edit.text)), *item.additional])
            one = apply_edits(text, [item.edit._replace(text=filled(item.in_line)), *item.additional])
            assert "\n" not in item.in_line
            if item.label != "retryable_status_codes":  # empty brackets, where below an item is begun
                assert data(one) == data(several)


def test_items_of_other_lists() -> None:
    """A condition and an attachment come with what they can't do without, and with names that are there."""
    text = chosen(H + A + "  - id: r\n    type: router\n    conditions:\n      - ¦\n", "condition")
    assert data(text)["steps"][1]["conditions"][0].keys() == {"expression", "target"}
    assert data(text)["steps"][1]["conditions"][0]["target"] == "a"
    assert "{agent: " in chosen("agents:\n  r:\n    system_prompt: hi\n    tools: [¦]\n", "agent as a tool")


def test_state_schema_speaks_of_what_the_state_holds() -> None:
    """Keys under `state`, then what steps write."""
    text = "state: {a: 1, b: 2}\nstate_schema:\n  a: {redact: true}\n  ¦\n" + H + A + "    output: answer.text\n"
    assert [(item.label, item.detail) for item in offered(text)] == [("b", "in state"), ("answer", "written by a")]


def test_codes_in_a_suppression() -> None:
    """In the brackets, by code or by name; first what is said about the lines below; no errors, which can't be hidden."""
    text = H + A + "    # agentloom: ignore[¦]\n    depends_on: []\n    output: 5319E7\n"
    found = offered(text)
    assert found[0].label == "AL009"
    assert "AL202" not in [item.label for item in found]
    assert chosen(text.replace("[¦", "[AL0¦"), "AL009").count("ignore[AL009]") == 1
    assert "AL009" not in labels(text.replace("[¦", "[AL009, ¦"))
    assert labels(text.replace("[¦]", "[] ¦")) == []


# ── documentation ──


def test_every_item_can_be_explained() -> None:
    """Keys tell type, default and examples; choices what they mean; steps what they do; codes their rule."""

    def told(marked: str, label: str) -> str:
        text, offset = cut(marked)
        document = check(text)
        return explain(next(item for item in complete(document, offset) if item.label == label).about, document)

    assert "Default: " in told("config:\n  ¦", "max_retries")
    assert "Example" in told(H + A + "    ¦", "temperature")
    assert "skip" in told("config:\n  on_step_failure: ¦", "skip_downstream").lower()
    assert "`a`" in told(H + A + B + "    depends_on: [¦]", "a")
    assert "condition" in told(H + "  - type: ¦", "router").lower()
    assert "AL009" in told("name: w # agentloom: ignore[¦]", "AL009")
    assert explain(("field", "nowhere", "x")) == explain(("nonsense",)) == explain(()) == ""


# ── cost ──


def calls(document: WorkflowDocument, offset: int) -> int:
    """Return how many functions are called to complete at a place."""
    count = 0

    def counted(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    complete(document, offset)  # what is kept by document is there
    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        complete(document, offset)
    finally:
        sys.setprofile(before)
    return count


def test_case_many_aliases_cost_nothing() -> None:
    """Editor case: alias-heavy files made completion take seconds. Three thousand merged steps cost what thirty cost."""
    few, many = (
        "defaults: &defaults {model: m, temperature: 0}\n"
        + H
        + "".join(
            f"  - <<: *defaults\n    id: s{n}\n    type: llm_call\n    prompt: hi\n    {typed}\n"
            for n, typed in enumerate([""] * count + ["", "timeout: ", "type: ", "re"])
        )
        for count in (30, 3000)
    )
    one, other = check(few), check(many)
    for back in (0, -1, -2, -3):
        ends = [[at.end() for at in re.finditer(r"prompt: hi\n    [a-z: ]*", text)][back - 1] for text in (few, many)]
        assert calls(other, ends[1]) < 1.5 * calls(one, ends[0])


def test_an_agent_file_has_the_keys_of_an_agent() -> None:
    """The same ways, with the other block; an empty one may become a whole agent."""
    text, offset = cut("system_prompt: hi\n¦")
    document = analyze(Source("a.agent.yaml", text), Context(Settings()), None, "agent")
    found = [item.label for item in complete(document, offset)]
    assert {"tools", "memory", "loop_policy"} <= set(found)
    assert not {"steps", "workflow", "llm_call step"} & set(found)
    empty = analyze(Source("a.agent.yaml", ""), Context(Settings()), None, "agent")
    assert complete(empty, 0)[0].label == "agent"


@pytest.mark.parametrize("seed", range(4))
def test_broken_texts_never_raise(seed: int) -> None:
    """Edits stay on the cursor's line and hold the cursor, whatever was cut out of the text or put into it."""
    chosen_by = random.Random(seed)
    junk = [
        '"',
        "'",
        "{",
        "[",
        "]",
        ":",
        "- ",
        "\n",
        "\t",
        "#",
        "&a ",
        "*a",
        "|\n",
        "<<: ",
        "é😀",
        "\r\n",
        "---\n",
        "? ",
        "${1:x}",
    ]
    for path in files("examples"):
        text = path.read_text(encoding="utf-8")
        for _ in range(3):
            at = chosen_by.randrange(len(text))
            text = text[:at] + chosen_by.choice(["", *junk]) + text[at + chosen_by.choice((0, 0, 1, 9, 60)) :]
        document = check(text)
        for offset in {at, len(text), *(chosen_by.randrange(len(text)) for _ in range(20))}:
            for item in complete(document, offset):
                span = item.edit.span
                assert span.start <= offset <= span.end
                assert not {"\n", "\r"} & set(text[slice(*span)])
                apply_edits(text, [item.edit, *item.additional])  # raises where they overlap
