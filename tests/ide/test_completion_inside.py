"""Completion of what stands inside values: state paths, conditions, names, arguments, files, schemas."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentloom.analysis.analyze import analyze
from agentloom.analysis.context import Context
from agentloom.analysis.document import WorkflowDocument
from agentloom.analysis.settings import Settings
from agentloom.analysis.values import valid_values
from agentloom.diagnostics import apply_edits
from agentloom.ide.completion.complete import complete
from agentloom.ide.completion.documentation import explain
from agentloom.ide.completion.items import Item, filled
from agentloom.providers.catalogue import known_models
from agentloom.text import Source
from agentloom.tools.catalogue import BUILTIN_TOOLS
from tests.ide.marked import cut

HEAD = """\
name: w
config: {provider: openai, model: gpt-4o-mini}
state: {ticket: My invoice, user: {name: Ann, tags: [a, b]}}
agents:
  helper: {system_prompt: Be nice.}
steps:
  - id: fetch
    type: tool
    tool_name: http_request
    tool_args: {url: u}
    output: report
  - id: classify
    type: llm_call
    depends_on: [fetch]
    prompt: hi
    response_schema:
      type: json_schema
      schema: {type: object, properties: {label: {type: string, enum: [billing, tech]}}, required: [label]}
    output: verdict
  - id: side
    type: llm_call
    prompt: hi
    output: extra
"""
USE = HEAD + "  - id: use\n    type: llm_call\n    depends_on: [classify]\n"
TOOL = HEAD + "  - id: use\n    type: tool\n    depends_on: [classify]\n    tool_name: http_request\n"
ROUTER = (
    HEAD
    + "  - id: use\n    type: router\n    depends_on: [classify]\n    default: side\n    conditions:\n      - target: side\n"
)


def document_of(text: str, path: Path | None = None, settings: Settings | None = None) -> WorkflowDocument:
    uri = str(path) if path is not None else "untitled:x"
    return analyze(Source(uri, text), Context(settings or Settings(), tools=BUILTIN_TOOLS), None, "workflow")


def offered(marked: str, path: Path | None = None, settings: Settings | None = None) -> list[Item]:
    text, offset = cut(marked)
    return complete(document_of(text, path, settings), offset)


def labels(marked: str, path: Path | None = None, settings: Settings | None = None) -> list[str]:
    return [item.label for item in offered(marked, path, settings)]


def item_of(marked: str, label: str, path: Path | None = None) -> Item:
    found = [item for item in offered(marked, path) if item.label == label]
    assert found, (label, [item.label for item in offered(marked, path)])
    return found[0]


def explained(marked: str, label: str) -> str:
    """Return what an editor shows beside an item."""
    return explain(item_of(marked, label).about, document_of(cut(marked)[0]))


def chosen(marked: str, label: str, path: Path | None = None) -> str:
    """Return the text after an item was chosen."""
    item = item_of(marked, label, path)
    text = filled(item.edit.text) if item.snippet else item.edit.text
    return apply_edits(cut(marked)[0], [item.edit._replace(text=text), *item.additional])


def line(marked: str, label: str, path: Path | None = None) -> str:
    """Return the line of the cursor after an item was chosen."""
    text, offset = cut(marked)
    return chosen(marked, label, path).splitlines()[len(text[:offset].splitlines()) - (text[:offset][-1:] != "\n")]


# ── templates ──

STYLES = [
    ('"hi {state.¦}"', '"hi {state.report}"'),
    ('"hi {state.¦"', '"hi {state.report}"'),
    ('"hi {state.¦', '"hi {state.report}'),
    ("'it''s {state.re¦}'", "'it''s {state.report}'"),
    ('"\\u00e9\\n {state.¦po}"', '"\\u00e9\\n {state.report}"'),
    ("hi {state.¦", "hi {state.report}"),
    ("hi {state.¦ and more", "hi {state.report} and more"),
    ("{state.¦", '"{state.report}"'),
    ("{state.¦}", '"{state.report}"'),
    ("hi {¦", "hi {state.report}"),
    ('"{¦}"', '"{state.report}"'),
    ('"{st¦}"', '"{state.report}"'),
    ('"{rep¦}"', '"{state.report}"'),
    ("😀é {state.¦}", "😀é {state.report}"),
    ('"{state.ticket} {state.¦} {state.user}"', '"{state.ticket} {state.report} {state.user}"'),
    ('"{state.rep¦ort.body}"', '"{state.report.body}"'),
]


@pytest.mark.parametrize(("typed", "written"), STYLES)
def test_state_paths_in_every_style(typed: str, written: str) -> None:
    """Complete, half typed, without its brace, without the quotes that YAML needs, after wide characters and escapes."""
    label = "state.report" if "state." not in typed.split("¦")[0].rpartition("{")[2] else "report"
    assert line(USE + f"    prompt: {typed}\n", label) == f"    prompt: {written}"


@pytest.mark.parametrize(
    ("typed", "written"),
    [
        ("{url: {state.¦}}", '{url: "{state.report}"}'),
        ("{url: {state.¦}, method: GET}", '{url: "{state.report}", method: GET}'),
        ("{url: {state.¦", '{url: "{state.report}"'),
        ("{url: [{state.¦}, b]}", '{url: ["{state.report}", b]}'),
        ("{url: {state.re¦, method: GET}", '{url: "{state.report}", method: GET}'),
    ],
)
def test_quotes_in_brackets_end_behind_the_path(typed: str, written: str) -> None:
    """What follows belongs to the brackets around it."""
    assert line(TOOL + f"    tool_args: {typed}\n", "report") == f"    tool_args: {written}"


def test_a_step_whose_type_is_not_written_yet() -> None:
    """The keys that some type has mean what they mean there."""
    step = HEAD + "  - id: z\n    depends_on: [fetch]\n"
    assert line(step + "    prompt: '{state.¦'\n", "report") == "    prompt: '{state.report}'"
    assert "http_request" in labels(step + "    tool_name: ¦\n")


@pytest.mark.parametrize("header", ["|", "|-", ">", ">-", "|2"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_case_block_texts(header: str, newline: str) -> None:
    """Editor case: line repair broke block texts. Paths complete in them, and keys don't."""
    marked = (USE + f"    prompt: {header}\n      one\n      hi {{state.¦\n    temperature: 1\n").replace("\n", newline)
    assert line(marked, "report") == "      hi {state.report}"
    assert "model" not in labels(marked)
    assert labels((USE + f"    prompt: {header}\n      mo¦\n").replace("\n", newline)) == []


@pytest.mark.parametrize(
    ("marked", "written"),
    [
        (TOOL + '    tool_args: {url: "state.¦"}\n', '    tool_args: {url: "state.report"}'),
        (TOOL + "    tool_args:\n      url: state.¦\n", "      url: state.report"),
        (TOOL + "    tool_args:\n      headers:\n        A: [x, 'b {state.¦']\n", "        A: [x, 'b {state.report}']"),
        (TOOL + '    tool_args: {headers: {A: "{state.¦"}}\n', '    tool_args: {headers: {A: "{state.report}"}}'),
        (ROUTER + '        expression: "state.¦"\n', '        expression: "state.report"'),
        (ROUTER + "        expression: state.¦\n", "        expression: state.report"),
        (HEAD + "  - id: use\n    type: embed\n    depends_on: [fetch]\n    inputs: ¦\n", "    inputs: report"),
        (HEAD + "  - id: use\n    type: embed\n    depends_on: [fetch]\n    inputs: '{¦}'\n", "    inputs: '{report}'"),
        (USE + "    conversation: re¦\n", "    conversation: report"),
        (
            USE.replace("llm_call\n    depends_on: [cl", "agent\n    agent: helper\n    depends_on: [cl")
            + "    input: '{state.¦'\n",
            "    input: '{state.report}'",
        ),
        (
            USE.replace("llm_call\n    depends_on: [cl", "subworkflow\n    depends_on: [cl")
            + "    input: {a: 'state.¦'}\n",
            "    input: {a: 'state.report'}",
        ),
        (HEAD.replace("Be nice.", "'Be {state.¦'"), "  helper: {system_prompt: 'Be {state.report}'}"),
    ],
)
def test_case_every_form_of_a_reference(marked: str, written: str) -> None:
    """Editor case: completion keyed on one delimiter missed the other forms. Arguments at any depth, conditions, paths, agents."""
    assert line(marked, "report") == written


def test_what_upstream_steps_write_comes_first() -> None:
    """Each with its writer and layer; then what is there from the start; then the rest, with what is missing."""
    found = {item.label: item for item in offered(USE + '    prompt: "{state.¦}"\n')}
    order = list(found)
    assert order.index("report") < order.index("ticket") < order.index("extra")
    assert found["report"].detail == "fetch, layer 1"
    assert found["verdict"].detail == "classify, layer 2"
    assert found["ticket"].detail == "= My invoice"
    assert found["extra"].detail == "side, layer 1 · not upstream: add `depends_on`"


def test_what_is_known_below_a_path() -> None:
    """Keys of `state`, of a tool's result, of a reply's schema, of a child; nothing below what nothing is known of."""
    assert {"user.name", "user.tags", "report.body", "verdict.label"} <= set(labels(USE + '    prompt: "{state.¦}"\n'))
    assert labels(USE + '    prompt: "{state.user.¦}"\n') == ["name", "tags", "tags[0]", "tags[1]"]
    assert labels(USE + '    prompt: "{state.report.¦"\n') == ["status_code", "headers", "body"]
    assert labels(USE + '    prompt: "{state.verdict.¦}"\n') == ["label"]
    assert labels(USE + '    prompt: "{state.ticket.¦}"\n') == []
    assert labels(USE + '    prompt: "{state.nobody.¦}"\n') == []
    assert labels(USE + '    prompt: "{state.steps.fetch.output.¦}"\n') == ["status_code", "headers", "body"]
    assert labels(USE + '    prompt: "{state.steps.¦}"\n')[:2] == ["fetch.output", "fetch.status"]
    inline = "  - {id: kid, type: subworkflow, workflow_inline: {name: k, steps: [{id: q, type: llm_call, prompt: hi, output: out}]}, output: kid}\n"
    assert labels(HEAD + inline + "  - {id: z, type: llm_call, depends_on: [kid], prompt: '{state.kid.¦}'}\n") == [
        "out"
    ]


def test_choosing_what_is_not_upstream_adds_the_dependency() -> None:
    """The step that writes it goes into `depends_on`; not where that would close a cycle, nor on the line that is typed."""
    after = chosen(USE + '    prompt: "{state.¦}"\n', "extra")
    assert '    depends_on: [classify, side]\n    prompt: "{state.extra}"\n' in after
    assert not [d for d in document_of(after).diagnostics if d.code in ("AL402", "AL408", "AL202", "AL204")]
    cycle = HEAD.replace("id: side\n    type: llm_call", "id: side\n    type: llm_call\n    depends_on: [use]")
    marked = cycle + '  - {id: use, type: llm_call, prompt: "{state.¦}"}\n'
    assert (item_of(marked, "extra").additional, item_of(marked, "extra").detail) == (
        (),
        "side, layer 2 · runs after this step",
    )
    assert item_of(HEAD + '  - {id: use, type: llm_call, prompt: "{state.¦}"}\n', "extra").additional == ()


def test_the_step_itself_is_not_its_own_writer() -> None:
    """What only the step at the cursor writes is told so, and adds nothing."""
    item = item_of(USE + '    output: mine\n    prompt: "{state.¦}"\n', "mine")
    assert (item.detail, item.additional) == ("written by this step itself", ())


def test_a_workflow_written_in_place_sees_what_is_around_it() -> None:
    """The parent's state as its step sees it, but nothing of it when it is isolated; what `input` hands over always."""
    inner = "    workflow_inline:\n      name: k\n      steps:\n        - {id: q, type: llm_call, prompt: '{state.¦}', output: o}\n"
    outer = HEAD + "  - id: s\n    type: subworkflow\n    depends_on: [fetch]\n    input: {lang: en}\n"
    found = {item.label: item.detail for item in offered(outer + inner)}
    assert found["lang"] == "from `input` of s"
    assert (found["report"], found["ticket"]) == ("from around", "from around · begins as My invoice")
    assert "verdict" not in found
    assert {"lang", "o"} == set(labels(outer + "    isolated_state: true\n" + inner)) - {"steps"}


def test_outputs_are_names_of_the_schema_that_nobody_writes() -> None:
    """What a step writes is its own to name; `state_schema` may have named it already."""
    schema = "state_schema: {token: {redact: true}, report: {}, a.b: {}}\nagents:"
    marked = "# agentloom: state[lang]\n" + USE.replace("agents:", schema) + "    prompt: hi\n    output: ¦\n"
    assert labels(marked, None, Settings(known_state=("given",))) == ["token", "a.b"]


def test_thousands_of_names() -> None:
    """As many as can be shown; while the name is typed, those that fit it."""
    steps = "".join(f"  - {{id: s{n}, type: llm_call, prompt: hi, output: out_{n}}}\n" for n in range(3_000))
    marked = "name: w\nsteps:\n" + steps + "  - {id: z, type: llm_call, depends_on: [s7], prompt: '{state.¦}'}\n"
    found = labels(marked)
    assert 400 < len(found) < 1_000
    assert found[0] == "out_7"
    typed = labels(marked.replace("¦", "ou2999¦"))
    assert "out_2999" in typed
    assert len(typed) < 10


def test_each_step_of_a_workflow_written_in_place() -> None:
    """The step at the cursor is the one that is meant, also where others follow it."""
    inner = "".join(
        f"        - id: q{n}\n          type: llm_call\n          prompt: '{{state.}}'\n          output: o{n}\n"
        for n in range(3)
    )
    text = HEAD + "  - id: s\n    type: subworkflow\n    workflow_inline:\n      name: k\n      steps:\n" + inner
    for number in range(3):
        marked = text.replace("{state.}", "{state.¦}", number + 1).replace("{state.¦}", "{state.}", number)
        own = [item.label for item in offered(marked) if item.detail == "written by this step itself"]
        assert own == [f"o{number}"]


def test_an_agent_reads_when_its_step_runs() -> None:
    """In an agent's text the state is that of the first step that runs it."""
    marked = HEAD.replace("Be nice.", "'{state.¦'") + "  - {id: z, type: agent, agent: helper, depends_on: [fetch]}\n"
    found = {item.label: item.detail for item in offered(marked)}
    assert found["report"] == "fetch, layer 1"
    assert found["extra"].endswith("not upstream: add `depends_on`")
    assert labels(marked).index("report") < labels(marked).index("ticket") < labels(marked).index("extra")


def test_declared_keys_count() -> None:
    """Keys of the settings, of `state_schema` and of a comment are there like those of `state`."""
    marked = "# agentloom: state[lang]\n" + USE.replace(
        "agents:", "state_schema: {token: {redact: true}, '*_key': {}}\nagents:"
    )
    found = {
        item.label: item.detail
        for item in offered(marked + '    prompt: "{state.¦}"\n', None, Settings(known_state=("given",)))
    }
    assert {found["lang"], found["token"], found["given"]} == {"declared"}
    assert "*_key" not in found


@pytest.mark.parametrize(
    "typed",
    [
        '"{{state.¦}}"',
        '"{\\"a\\": ¦}"',
        '"hi ¦"',
        '"{state.ticket:¦}"',
        '"{state.ticket}¦"',
        '"{state.a b¦}"',
        "hi # {state.¦",
        '"{state.user[¦]}"',
    ],
)
def test_no_paths_where_none_are_meant(typed: str) -> None:
    """Doubled braces, JSON, prose, format specs, comments."""
    assert labels(USE + f"    prompt: {typed}\n") == []


def test_the_body_of_a_webhook() -> None:
    """What it has besides the state."""
    gate = HEAD + "  - {id: g, type: approval_gate, notify: {url: 'https://x', body_template: '{¦}'}}\n"
    assert {"run_id", "step_id", "workflow_name", "state.ticket"} <= set(labels(gate))
    assert "run_id" not in labels(USE + '    prompt: "{¦}"\n')


# ── conditions ──


@pytest.mark.parametrize(
    ("typed", "some", "none"),
    [
        ("¦", ["state", "steps", "len(value)", "not", "None"], ["lower()", "and"]),
        ("le¦", ["len(value)", "state"], ["and"]),
        ("state.ticket ¦", ["and", "or", "in", "not in", "is None"], ["len(value)", "state"]),
        ("state.ticket a¦", ["and"], ["state"]),
        ("not ¦", ["state", "len(value)"], ["or"]),
        ("state.¦", ["report", "ticket", "user", "extra"], ["and", "lower()"]),
        ("state.ticket.¦", ["lower()", "startswith(prefix)"], ["keys()", "and"]),
        ("state.user.¦", ["name", "tags", "get(key, default)", "keys()"], ["lower()"]),
        ("state.user.tags.¦", ["index(value)", "count(value)"], ["lower()"]),
        ("state.report.¦", ["body", "lower()", "keys()"], []),
        ("state.ticket.strip().lo¦", ["lower()"], ["ticket"]),
        ("steps.¦", ["fetch", "classify"], ["use", "lower()"]),
        ("steps.fetch.¦", ["output", "status"], ["lower()"]),
        ("steps.fetch.output.¦", ["body", "lower()"], []),
        ("state['¦']", ["report", "user"], ["len(value)"]),
        ("state.user['¦", ["name"], ["report"]),
        ("state.get('¦')", ["report"], []),
        ("len(state.¦) > 1 and state.x", ["report"], []),
        ("state.verdict.label == '¦'", ["billing", "tech"], ["state"]),
        ("state.verdict.label in ['tech', '¦", ["billing"], []),
        ("steps.fetch.status == '¦'", ["success"], ["failed"]),
        ("state.ticket == '¦'", [], ["billing", "state"]),
        ("state.verdict.label == ¦", ["'billing'", "'tech'", "state"], ["and"]),
        ("state.ticket == ¦", ["state", "len(value)", "None"], ["and"]),
        ("state.x == 1.¦", [], ["state", "lower()"]),
        ("state.x # ¦", [], ["state"]),
        ("'a'.¦", [], ["state"]),
    ],
)
@pytest.mark.parametrize("style", ['"{}"', "{}", "|-\n          {}", "'{}'"])
def test_conditions(typed: str, some: list[str], none: list[str], style: str) -> None:
    """Names, functions, keys, methods of what the value is, words of the language, texts that are known."""
    if style == "{}" and (" #" in typed or typed.startswith("'")):
        return  # a comment, or a quoted text, to YAML
    inside = typed.replace("'", "''") if style == "'{}'" else typed
    found = labels(ROUTER + "        expression: " + style.format(inside) + "\n")
    assert set(some) <= set(found), found
    assert not set(none) & set(found), found


@pytest.mark.parametrize(
    ("typed", "label", "written"),
    [
        ('"state.ticket.lo¦"', "lower()", '"state.ticket.lower()"'),
        ('"state.ticket.lo¦() == 1"', "lower()", '"state.ticket.lower() == 1"'),
        ('"state.ticket.sta¦"', "startswith(prefix)", '"state.ticket.startswith(prefix)"'),
        ('"le¦"', "len(value)", '"len(value)"'),
        ("'state[¦'", "'report'", "'state[''report'''"),
        ("\"state['¦']\"", "report", "\"state['report']\""),
        ('"tick¦"', "state.ticket", '"state.ticket"'),
        ("¦", "state", "state"),
    ],
)
def test_what_choosing_writes_in_a_condition(typed: str, label: str, written: str) -> None:
    """Arguments as blanks, brackets not twice, quotes as the whole needs them."""
    assert line(ROUTER + f"        expression: {typed}\n", label) == f"        expression: {written}"


def test_in_the_margin_nothing_can_be_written() -> None:
    """In the indentation of a further line of a text."""
    assert labels(ROUTER + "        expression: >-\n    ¦      state.x and\n          state.y\n") == []
    assert "state" in labels(ROUTER + "        expression: >-\n          ¦state.x and\n")
    assert labels(ROUTER + "        expression: state.x and\n    ¦      state.y\n") == []


def test_an_agent_ends_its_turn_on_its_reply() -> None:
    """In `exit_condition` there is `reply`, and no `steps`."""
    found = labels(HEAD.replace("Be nice.}", "Be nice., loop_policy: {exit_condition: \"'x' in ¦\"}}"))
    assert {"state", "reply"} <= set(found)
    assert labels(HEAD.replace("Be nice.}", "Be nice., loop_policy: {exit_condition: ¦}}"))[0] == "no_tool_call"
    assert "steps" not in found


# ── names ──


def test_tools() -> None:
    """With what they do; those in the list left out; in the quotes that are there."""
    for place in ("    type: tool\n    tool_name: '¦'\n", "    type: tool\n    tool_name: http¦\n"):
        assert labels(HEAD + "  - id: use\n" + place) == list(BUILTIN_TOOLS)
    item = item_of(HEAD + "  - id: use\n    type: tool\n    tool_name: ¦\n", "file_read")
    assert item.detail == "Read a text file and return its text"
    assert "`path`" in explain(item.about, document_of(HEAD))
    agent = HEAD.replace("Be nice.", "Be nice., tools: [file_read, ¦]")
    assert "file_read" not in labels(agent)
    assert "file_write" in labels(agent)
    assert "http_request" in labels(USE + "    prompt: hi\n    tools: [{name: ¦}]\n")
    offering = USE + "    prompt: hi\n    tools: [{name: file_read}, {name: mine}]\n"
    assert labels(offering + "    tool_choice: {name: ¦}\n") == ["file_read", "mine"]
    assert "http_request" in labels(USE + "    prompt: hi\n    tool_choice: {name: ¦}\n")


def test_providers_and_agents() -> None:
    """All that there are, and those of the settings."""
    marked = HEAD.replace("provider: openai", "provider: ¦")
    assert labels(marked)[:3] == ["openai", "anthropic", "google"]
    assert "OPENAI_API_KEY" in explained(marked, "openai")
    assert "house" in labels(marked, None, Settings(providers={"house": {"models": ["house-1"]}}))
    assert "helper" in labels(HEAD + "  - id: use\n    type: agent\n    agent: ¦\n")


def test_models_with_their_price() -> None:
    """Those of the chosen provider first; embedding models only where vectors are made."""
    found = offered(HEAD.replace("gpt-4o-mini", "¦"))
    names = [item.label for item in found]
    assert names.index("gpt-4o-mini") < names.index("claude-sonnet-4-5")
    other = labels(HEAD.replace("provider: openai", "provider: anthropic").replace("gpt-4o-mini", "¦"))
    assert other[0].startswith("claude")
    item = found[names.index("gpt-4o-mini")]
    assert item.detail == "openai · $0.15 in, $0.60 out, per million tokens"
    assert "per million tokens" in explain(item.about, document_of(HEAD))
    assert set(labels(HEAD + "  - id: use\n    type: embed\n    model: ¦\n")) == {
        model.name for model in known_models() if model.kind == "embedding"
    }
    assert not any("embedding" in name for name in names)


def test_case_a_name_that_needs_quotes() -> None:
    """Editor case: values that YAML reads as something else are inserted in quotes."""
    settings = Settings(providers={"x": {"models": ["on", "1e3", "a: b", "#x", "plain"]}})
    text, offset = cut("config:\n  model: ¦\n" + HEAD.replace("config:", "x:"))
    found = {item.label: item for item in complete(document_of(text, settings=settings), offset)}
    for name in ("on", "1e3", "a: b", "#x"):
        after = apply_edits(text, [found[name].edit])
        assert f"  model: '{name}'\n" in after
        assert document_of(after).head.data["config"]["model"] == name
    assert "  model: plain\n" in apply_edits(text, [found["plain"].edit])


def test_what_is_offered_is_what_rules_know() -> None:
    """Completion and rules ask one source for names."""
    document = document_of(HEAD, settings=Settings(providers={"house": {"model_aliases": {"fast": "x"}}}))
    assert {model.name for model in known_models()} | {"fast"} == set(valid_values(document, "model"))
    assert [*labels(HEAD + "  - {id: z, type: tool, tool_name: ¦}\n")] == list(valid_values(document, "tool"))
    assert labels(HEAD.replace("openai", "¦"))[:6] == list(valid_values(document, "provider"))[:6]


# ── arguments, children, schemas ──


def test_arguments_of_tools() -> None:
    """Needed ones first, those that are there left out; with type and what they are for."""
    found = offered(TOOL + "    tool_args:\n      ¦\n")
    assert [item.label for item in found] == ["url", "method", "headers", "body", "timeout"]
    assert found[0].detail == "text, needed"
    assert "The address" in explain(found[0].about, document_of(HEAD))
    assert "url" not in labels(TOOL + "    tool_args:\n      url: u\n      ¦\n")
    assert "url" not in labels(TOOL + "    tool_args: {url: u, ¦}\n")
    assert labels(TOOL.replace("http_request", "mine") + "    tool_args:\n      ¦\n") == []
    assert all(name.startswith("state.") for name in labels(TOOL + "    tool_args:\n      headers:\n        ¦\n"))
    assert line(TOOL + "    tool_args:\n      me¦\n", "method") == "      method: "
    assert line(TOOL + "    tool_args:\n      me¦: GET\n", "method") == "      method: GET"


def test_values_of_arguments() -> None:
    """What the schema lists; then the paths that can be handed over with their type."""
    found = labels(TOOL + "    tool_args:\n      method: ¦\n")
    assert found[:5] == ["GET", "POST", "PUT", "DELETE", "state.report"]
    assert line(TOOL + "    tool_args: {url: ¦}\n", "state.report") == "    tool_args: {url: state.report}"
    assert labels(TOOL + "    tool_args: {url: ¦data/x.txt}\n") == []
    assert "state.user.tags[0]" not in labels(TOOL + "    tool_args: {url: state.user.¦}\n")
    assert line(TOOL + '    tool_args: {method: "¦"}\n', "PUT") == '    tool_args: {method: "PUT"}'


def test_what_a_child_takes_and_gives(tmp_path: Path) -> None:
    """Keys of `input` are those that the child reads, `return_keys` those that it ends with."""
    child = tmp_path / "child.loom.yaml"
    child.write_text(
        "name: k\nstate: {lang: en}\nsteps:\n  - {id: q, type: llm_call, prompt: '{state.text}', output: out}\n"
    )
    here = tmp_path / "here.loom.yaml"
    sub = HEAD + "  - id: s\n    type: subworkflow\n    workflow_path: child.loom.yaml\n"
    assert labels(sub + "    input:\n      ¦\n", here) == ["text", "lang"]
    assert labels(sub + "    input: {text: a, ¦}\n", here) == ["lang"]
    assert labels(sub + "    return_keys: [¦]\n", here) == ["out", "lang"]
    assert labels(sub + "    return_keys:\n      - out\n      - ¦\n", here) == ["lang"]


SCHEMA = USE + "    prompt: hi\n    response_schema:\n      type: json_schema\n      schema:\n"


@pytest.mark.parametrize(
    ("typed", "some", "none"),
    [
        ("        ¦\n", ["type", "properties", "required", "additionalProperties"], []),
        ("        type: object\n        ¦\n", ["properties"], ["type"]),
        ("        type: ¦\n", ["string", "object", "null"], ["properties"]),
        ("        type: object\n        properties:\n          ¦\n", [], ["type", "properties"]),
        ("        type: object\n        properties:\n          a:\n            ¦\n", ["type", "description"], []),
        ("        properties: {a: {ty¦}}\n", ["type"], []),
        ("        properties: {a: {type: string, format: ¦}}\n", ["date-time", "email"], []),
        ("        properties: {a: {}, b: {}}\n        required: [a, ¦]\n", ["b"], ["a"]),
        ("        additionalProperties: ¦\n", ["false"], ["true"]),
        ("        properties: {a: {additionalProperties: ¦}}\n", ["true", "false"], []),
        ("        anyOf:\n          - ¦\n", [], ["date-time"]),
        ("        enum: [¦]\n", [], ["string", "type"]),
    ],
)
def test_json_schemas(typed: str, some: list[str], none: list[str]) -> None:
    """Keywords where a schema stands, types and formats, names of properties under `required`; nothing among names."""
    found = labels(SCHEMA + typed)
    assert set(some) <= set(found), found
    assert not set(none) & set(found), found


def test_keys_of_the_state_that_nobody_writes() -> None:
    """Under `state` those are offered that steps read and nobody sets."""
    text = (
        HEAD.replace("state: {", "state: {¦, ") + "  - {id: z, type: llm_call, prompt: '{state.lang} {state.ticket}'}\n"
    )
    assert labels(text) == ["lang"]


def test_results_in_a_text_without_its_quotes() -> None:
    """The closing quote comes with the end of the path: behind `steps.` the path goes on."""
    found = item_of(USE + "    prompt: {state.¦\n", "steps")
    assert (found.edit.text, found.additional, found.retrigger) == ("steps.", (), True)
    after = item_of(USE + "    prompt: {state.steps.¦\n", "classify.output")
    assert after.edit.text == 'classify.output}"'


# ── files ──


def test_files(tmp_path: Path) -> None:
    """Folder by folder, relative to the file; workflows first; ourselves, hidden files and other kinds left out."""
    for name in (
        "b.loom.yaml",
        "other.yaml",
        "notes.txt",
        "x.agent.yaml",
        "rec.json",
        ".hidden.loom.yaml",
        "here.loom.yaml",
    ):
        (tmp_path / name).write_text("")
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "c d.loom.yaml").write_text("")
    here = tmp_path / "here.loom.yaml"
    sub = HEAD + "  - id: s\n    type: subworkflow\n    workflow_path: "
    assert labels(sub + "¦\n", here) == ["b.loom.yaml", "other.yaml", "parts/", "../"]
    assert line(sub + "./b¦\n", "b.loom.yaml", here) == "    workflow_path: ./b.loom.yaml"
    assert line(sub + "'b¦'\n", "b.loom.yaml", here) == "    workflow_path: 'b.loom.yaml'"
    folder = item_of(sub + "¦\n", "parts/", here)
    assert (folder.edit.text, folder.retrigger) == ("parts/", True)
    assert line(sub + "parts/¦\n", "c d.loom.yaml", here) == "    workflow_path: parts/c d.loom.yaml"
    assert labels(sub + "parts/../¦\n", here)[0] == "b.loom.yaml"
    assert labels(sub + "nowhere/¦\n", here) == []
    agents = [
        label for label in labels(HEAD + "  - id: s\n    type: agent\n    agent: ¦\n", here) if label.endswith("l")
    ]
    assert agents == ["x.agent.yaml", "other.yaml"]
    assert "rec.json" in labels(HEAD.replace("model: gpt", "responses_file: ¦, model: gpt"), here)
    assert "notes.txt" in labels(USE + "    prompt: hi\n    attachments: [{source: ¦}]\n", here)
    assert labels(sub + "¦\n") == []


def test_before_a_value_in_brackets() -> None:
    """A value that is there is not doubled; where a key follows, a value is missing."""
    assert labels(HEAD + "  - {id: z, type:¦ tool, tool_name: file_read}\n") == []
    assert labels(HEAD + "  - {id: z, type: tool, tool_name:¦ x}\n") == []
    assert "file_read" in labels(HEAD + "  - {id: z, type: tool, tool_name: ¦ tool_args: {}}\n")


def test_comments_offer_nothing() -> None:
    """In comments nothing is meant."""
    assert labels(USE + "    prompt: hi # {state.¦\n") == []


def test_names_below_names_are_offered_for_some_of_many() -> None:
    """Each look below a name goes through the document once, so that happens a limited number of times."""
    schema = "{type: json_schema, schema: {type: object, properties: {a: {type: string}, b: {type: number}}}}"
    steps = "".join(
        f"  - {{id: s{number}, type: llm_call, prompt: hi, output: o{number}, response_schema: {schema}}}\n"
        for number in range(60)
    )
    needs = ", ".join(f"s{number}" for number in range(60))
    last = f'  - id: z\n    type: llm_call\n    depends_on: [{needs}]\n    prompt: "{{state.¦"\n'
    found = labels(f"name: w\nsteps:\n{steps}{last}")
    assert {f"o{number}" for number in range(60)} <= set(found)
    assert sum(label.endswith(".a") for label in found) == 30


TALK = """\
name: w
agents:
  judge:
    system_prompt: Judge.
    output_schema:
      type: json_schema
      schema: {type: object, properties: {label: {type: string, enum: [fair, foul]}, score: {type: integer}}}
steps:
  - {id: first, type: agent, agent: judge, input: hi, conversation: talk, output: ruling}
  - id: use
"""
LATER = "    depends_on: [first]\n"
KEPT = ["messages", "summary", "token_budget", "trim_policy", "metadata"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("state.ruling.", ["label", "score"]),
        ("steps.first.output.", ["label", "score"]),
        ("state.talk.", KEPT),
        ("state.talk.messages[0].", ["role", "content", "name"]),
    ],
)
def test_what_an_agent_gives_and_what_a_conversation_keeps(path: str, expected: list[str]) -> None:
    """The form of an agent's reply is that of its results; a conversation has a form of its own, whatever the reply's."""
    assert labels(f'{TALK}    type: llm_call\n{LATER}    prompt: "{{{path}¦}}"\n') == expected


def test_what_an_agent_can_say_is_compared_with() -> None:
    """The texts that the form of its reply lists; not at the conversation."""
    router = f"{TALK}    type: router\n{LATER}    default: first\n    conditions:\n      - target: first\n"
    assert labels(f'{router}        expression: "state.ruling.label == ¦"\n')[:2] == ["'fair'", "'foul'"]
    assert "'fair'" not in labels(f'{router}        expression: "state.talk.label == ¦"\n')


def test_what_an_argument_can_be_comes_first() -> None:
    """Before the state paths that a template might hold there."""
    assert labels(TOOL + "    tool_args: {url: u, method: ¦}\n")[:4] == ["GET", "POST", "PUT", "DELETE"]
