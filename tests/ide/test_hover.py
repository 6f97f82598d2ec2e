"""Hover: what is said about a place, and the range that it is said about."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agentloom.analysis.analyze import analyze
from agentloom.analysis.context import Context
from agentloom.analysis.document import FileKind, WorkflowDocument
from agentloom.analysis.rules.registry import RULES
from agentloom.analysis.settings import Settings
from agentloom.diagnostics import Severity
from agentloom.ide.hover import Hover, hover_at
from agentloom.ide.prose.fields import of_field
from agentloom.ide.prose.form import markdown, plain
from agentloom.model.catalogue import catalogue
from agentloom.text import Source
from agentloom.tools.catalogue import BUILTIN_TOOLS
from tests.ide.marked import cut
from tests.ide.project import Files
from tests.ide.test_anywhere import ENDS, TEXTS

H = "name: w\nsteps:\n"
A = "  - id: a\n    type: llm_call\n    prompt: hi\n"
FETCH = "  - {id: fetch, type: tool, tool_name: http_request, tool_args: {url: u}, output: report}\n"
ROUTER = """\
  - id: r
    type: router
    depends_on: [a]
    conditions:
      - expression: "{}"
        target: b
    default: c
"""


def document_of(text: str, path: Path | None = None, settings: Settings | None = None) -> WorkflowDocument:
    uri = str(path) if path is not None else "untitled:x"
    return analyze(Source(uri, text), Context(settings or Settings(), tools=BUILTIN_TOOLS), None, "workflow")


def hovered(marked: str, settings: Settings | None = None, path: Path | None = None) -> tuple[str, Hover | None]:
    text, offset = cut(marked)
    return text, hover_at(document_of(text, path, settings), offset)


def told(marked: str, settings: Settings | None = None, path: Path | None = None) -> tuple[str, str]:
    """Return the text that is hovered, and what is said about it."""
    text, found = hovered(marked, settings, path)
    assert found is not None, marked
    return text[found.span.start : found.span.end], plain(found.prose)


@pytest.mark.parametrize(
    ("marked", "word", "said"),
    [
        ("config:\n  max_con¦current_steps: 5\nsteps: []\n", "max_concurrent_steps", "whole number, 1 to 1024"),
        ("config:\n  max_con¦current_steps: 5\nsteps: []\n", "max_concurrent_steps", "Default: 10."),
        (H + A + "    temperature: ¦0.2\n", "0.2", "number, 0 to 2"),
        (H + A.replace("prompt", "pro¦mpt"), "prompt", "What the model is asked"),
        (H + A.replace("prompt", '"pro¦mpt"'), "prompt", "What the model is asked"),
        ("na¦me: w\n" + H[8:] + A, "name", "text, not empty, needed"),
        (H + A + "    retry: {jit¦ter: true}\n", "jitter", "true or false"),
        (H + A + "    retry:\n      backoff_max: 6¦0\n", "60", "The longest wait between two attempts"),
        (H + "  - id: a\n    type: llm¦_call\n    prompt: hi\n", "llm_call", "One model call"),
        (
            "config: {on_step_failure: 'cont¦inue'}\n" + H + A,
            "continue",
            "Runs the steps that depend on the failed one",
        ),
        ("config: {on_step_failure: con¦t}\n" + H + A, "cont", "`skip_downstream`: Skips every step"),
        (H + A + "    tool_choice: {na¦me: x}\n", "name", "The tool that the model must call"),
        (H + A + "    depends_on: []\n    timeo¦ut:\n", "timeout", "The time that each attempt may take"),
    ],
)
def test_keys_and_values(marked: str, word: str, said: str) -> None:
    """A key, and a value whose meaning is that of its key: type, bounds, default, choices."""
    assert told(marked)[0] == word
    assert said in told(marked)[1]


def test_a_key_leads_to_its_page() -> None:
    """The link ends at the section of the block, that of all steps for what all steps have."""
    page = "https://github.com/agentloom/agentloom/blob/main/docs/workflow-files.md"
    for marked, section in (
        ("con¦fig: {}\n" + H + A, "a-workflow-file"),
        (H + A.replace("prompt", "pro¦mpt"), "llm_call-step"),
        (H + A + "    out¦put: x\n", "keys-of-every-step"),
    ):
        text, found = hovered(marked)
        assert found is not None, text
        assert f"]({page}#{section})" in markdown(found.prose)


def test_every_link_leads_to_a_heading() -> None:
    """The page on workflow files has a section for every block that a key may be in; the rules have pages."""
    page = Path("docs/workflow-files.md").read_text(encoding="utf-8")
    headings = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in re.findall(r"(?m)^#+ (.+)$", page)}
    for block in catalogue().blocks.values():
        for field in block.fields.values():
            said = markdown(of_field(block, field))
            (anchor,) = re.findall(r"workflow-files\.md#([\w-]+)\)", said)
            assert anchor in headings, (block.name, field.name)
            assert field.description in said
    for rule in RULES:
        assert Path("docs/rules", rule.url.rpartition("/")[2]).exists()


def test_a_step_where_it_is_named() -> None:
    """On its id, in `depends_on`, as a target, in a path of its result: the same words."""
    text = H + FETCH + A + "    depends_on: [fetch]\n    output: label\n"
    text += ROUTER.format("steps.a.output == '{state.x}'").replace("{state.x}", "x") + A.replace("id: a", "id: b")
    text += "    depends_on: [r]\n    system_prompt: '{state.label} {state.steps.a.output}'\n" + A.replace(
        "id: a", "id: c"
    )
    expected = "Step `a`, `llm_call`: One model call"
    places = ["id: ¦a\n", "depends_on: [¦a]", "steps.¦a.output ==", "{state.steps.¦a.output}"]
    for place in places:
        word, said = told(text.replace(place.replace("¦", ""), place, 1))
        assert (word, said.startswith(expected)) == ("a", True), place
        for line in ("Layer 2 of 4", "Depends on `fetch`", "Needed by `r`", "Writes `label`"):
            assert f"- {line}" in said
    word, said = told(text.replace("target: b", "target: ¦b"))
    assert (word, "Reads `label`, `steps.a.output`" in said) == ("b", True)
    word, said = told(text.replace("type: router", "type: router").replace("id: r", "id: ¦r"))
    assert "Chooses among `b`, `c`" in said


@pytest.mark.parametrize(
    ("marked", "word", "said"),
    [
        ("{state.re¦port.body}", "report", "`fetch`, layer 1 of 3"),
        ("{state.report.bo¦dy}", "body", "`fetch`, layer 1 of 3, as `report`: text"),
        ("{state.report.no¦pe}", "nope", "as `report`, which holds `status_code`, `headers`, `body`"),
        ("{state.rep¦ort}", "report", "layer 1 of 3, holds `status_code`, `headers`, `body`"),
        ("{state.tick¦et}", "ticket", "Set in `state`: `My invoice`"),
        ("{tick¦et}", "ticket", "Set in `state`: `My invoice`"),
        ("{state.user.na¦me}", "name", "Set in `state`: `Ann`"),
        ("{state.us¦er[name]}", "user", '`{"name": "Ann"}`'),
        ("{state.nob¦ody}", "nobody", "No step writes it"),
        ("{state.given¦}", "given", "Declared in the settings"),
        ("{state.la¦ter}", "later", "not upstream of this step"),
        ("{st¦ate.ticket}", "state", "when this step's layer began"),
        ("{state.steps.fetch.sta¦tus}", "status", "of a step that failed or didn't run"),
        ("{state.steps.nob¦ody.output}", "nobody", "No step is called `nobody`"),
    ],
)
@pytest.mark.parametrize(
    "style",
    ["plain {}", "'it''s {}'", '"\\u00e9\\n {}"', "|\n      é😀\n      two {}", ">-\n      folded\n      lines {}\n"],
)
def test_template_variables_in_every_style(marked: str, word: str, said: str, style: str) -> None:
    """Who writes it and in which layer, or what it begins as; in plain, quoted and block texts."""
    head = "name: w\nstate: {ticket: My invoice, user: {name: Ann}}\nsteps:\n"
    use = "  - id: use\n    type: llm_call\n    depends_on: [fetch]\n    prompt: " + style.format(marked) + "\n"
    late = "  - {id: late, type: llm_call, prompt: hi, depends_on: [use], output: later}\n"
    found = told(head + FETCH + use + late, Settings(known_state=("given",)))
    assert found[0] == word
    assert said in found[1]


def test_a_workflow_written_in_place_sees_what_is_around_it() -> None:
    """A path that the parent gives is told with who writes it there, or as handed over."""
    inner = "workflow_inline: {name: k, steps: [{id: q, type: llm_call, prompt: '{}'}]}"
    text = H + FETCH + "  - {id: s, type: subworkflow, depends_on: [fetch], input: {lang: en}, " + inner + "}\n"
    word, said = told(text.replace("{}", "{state.re¦port}"))
    assert (word, "From the workflow around this one:\n\nWritten by\n\n- `fetch`, layer 1 of 2" in said) == (
        "report",
        True,
    )
    assert "Handed over by `input` of step `s`." in told(text.replace("{}", "{state.la¦ng}"))[1]
    isolated = text.replace("type: subworkflow", "type: subworkflow, isolated_state: true")
    assert "No step writes it" in told(isolated.replace("{}", "{state.re¦port}"))[1]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ("", "At most 4 attempts, by default; waits of up to 17.5 s in all"),
        ("retry: {max_retries: 0}", "At most one attempt, by its `retry`"),
        (
            "retry: {max_retries: 1, jitter: false}, timeout: 90",
            "waits of up to 2 s in all; each attempt up to 1 min 30 s",
        ),
        ("retry: {max_retries: 400, backoff_max: 3600}", "in all"),
    ],
)
def test_the_worst_case_of_a_step(fields: str, said: str) -> None:
    """How often it may be tried, how long it waits, how long each attempt may take."""
    step = f"  - {{id: ¦a, type: llm_call, prompt: hi, {fields}}}\n"
    assert said in told(H + step)[1]
    assert "Layer 1 of 1" in told(H + "  - {id: ¦a, type: tool, tool_name: {x: 1}}\n")[1]
    router = "  - {id: ¦r, type: router, default: a}\n" + A
    assert "attempt" not in told(H + router)[1]


def test_routes_of_a_writer() -> None:
    """Two branches of a router write one key: each is told with the choice that it needs."""
    text = H + A + ROUTER.format("state.x") + "  - {id: b, type: llm_call, prompt: hi, depends_on: [r], output: o}\n"
    text += "  - {id: c, type: llm_call, prompt: hi, depends_on: [r], output: o}\n"
    said = told(text + "  - {id: d, type: llm_call, prompt: '{state.¦o}', depends_on: [b, c]}\n")[1]
    assert "`b`, layer 3 of 4, if `r` chooses `b`\n" in said
    assert "`c`, layer 3 of 4, if `r` chooses `c`" in said


@pytest.mark.parametrize(
    ("marked", "word", "said"),
    [
        ("le¦n(state.x) > 1", "len", "`len(value)`\n\nThe number of characters, items or keys."),
        ("state.x.low¦er() == 'a'", "lower", "`lower()` of a text"),
        ("state.x.ind¦ex('a') == 1", "index", "of a list: Where a value stands first"),
        ("state.x is n¦ot None", "is not", "not the same"),
        ("state.x not i¦n 'abc'", "not in", "holds it not"),
        ("state.x a¦nd state.y", "and", "True if both sides are."),
        ("st¦eps.a.status == 'success'", "steps", "The results of steps"),
        ("isinstance(state.x, st¦r)", "str", "a text"),
        ("state['cat¦egory'] == 'x'", "category", "State key `category`"),
        ("state.get('cat¦egory') == 'x'", "category", "State key `category`"),
        ("state.x == 'a' and le¦n(", "len", "The number of characters"),
        ("No¦ne is state.x", "None", "No value"),
    ],
)
@pytest.mark.parametrize("style", ['"{}"', "|-\n          {}"])
def test_expressions(marked: str, word: str, said: str, style: str) -> None:
    """Functions with their signatures, methods, words of the language, names, keys; also where the condition is broken."""
    router = ROUTER.replace('"{}"', style.format(marked))
    found = told(H + A + router + A.replace("id: a", "id: b") + A.replace("id: a", "id: c"))
    assert found[0] == word
    assert said in found[1]


@pytest.mark.parametrize(
    ("marked", "word", "said"),
    [
        ("config: {model: gpt-4o-¦mini}\n", "gpt-4o-mini", "$0.15 in, $0.60 out, per million tokens"),
        ("config: {model: 'my¦-own'}\n", "my-own", "No price is known"),
        ("config: {provider: ollama, model: ll¦ama3}\n", "llama3", "Costs nothing."),
        ("config: {provider: anth¦ropic}\n", "anthropic", "`ANTHROPIC_API_KEY`"),
        (
            "agents: {hel¦per: {system_prompt: Be nice., model: gpt-4o, tools: [file_read]}}\n",
            "helper",
            "Tools: `file_read`.",
        ),
    ],
)
def test_names_in_the_head(marked: str, word: str, said: str) -> None:
    """Models with their price, providers, agents."""
    found = told(marked + H + A)
    assert found[0] == word
    assert said in found[1]


@pytest.mark.parametrize(
    ("marked", "word", "said"),
    [
        (
            FETCH.replace("http_request", "http¦_request"),
            "http_request",
            "`method` (one of `GET`, `POST`, `PUT`, `DELETE`, default `GET`)",
        ),
        (FETCH.replace("url: u", "ur¦l: u"), "url", "text, needed\n\nThe address"),
        (FETCH.replace("url: u", "url: u, time¦out: 3"), "timeout", "Default: `30`."),
        (A + "    tools: [{name: file_¦read}]\n", "file_read", "Read a text file"),
    ],
)
def test_tools_and_their_arguments(marked: str, word: str, said: str) -> None:
    """What a tool does, what it takes; an argument's type, default and description."""
    found = told(H + marked)
    assert found[0] == word
    assert said in found[1]


def test_keywords_of_json_schemas() -> None:
    """Where a schema stands; names of properties are no keywords."""
    step = A + "    response_schema: {type: json_schema, schema: {type: object, properties: {type: {enum: [a]}}}}\n"
    assert told(H + step.replace(" schema: {type", " schema: {ty¦pe"))[1] == "`type`: What kind of value it is."
    assert told(H + step.replace("enum", "en¦um"))[1] == "`enum`: The values that are allowed."
    assert hovered(H + step.replace("{type: {enum", "{ty¦pe: {enum"))[1] is None


def test_codes_in_comments() -> None:
    """A code, a name and a family in a suppression; with the page where there is one."""
    text = H + A + "    # agentloom: ignore[AL{}]\n    output: x\n"
    assert told(text.replace("AL{}", "AL20¦4")) == ("AL204", told(text.replace("AL{}", "AL204¦"))[1])
    assert "dependency-cycle" in told(text.replace("AL{}", "AL20¦4"))[1]
    assert "docs/rules/AL204.md" in told(text.replace("AL{}", "AL20¦4"))[1]
    assert told(text.replace("AL{}", "AL204, dependency¦-cycle"))[0] == "dependency-cycle"
    assert "All codes that begin with `AL5`." in told(text.replace("AL{}", "AL¦5"))[1]
    assert "No check is called `AL999`" in told(text.replace("AL{}", "AL¦999"))[1]
    settings = Settings(ignore=("AL5",), severity={"repeated-dependency": Severity.ERROR, "AL204": Severity.HINT})
    assert "a warning; an error by the settings" in told(text.replace("AL{}", "AL20¦5"), settings)[1]
    assert ", an error\n" in told(text.replace("AL{}", "AL20¦4"), settings)[1]
    assert "a warning; left out by the settings" in told(text.replace("AL{}", "AL50¦1"), settings)[1]
    assert hovered("# a com¦ment\n" + H + A)[1] is None


def test_anchors_and_aliases() -> None:
    """An anchor tells how often it is used; an alias shows the first lines of what it stands for."""
    text = "x: &re¦try\n  max_retries: 2\n  jitter: false\n" + H + A + "    retry: *retry\n"
    assert told(text) == ("&retry", "Anchor `&retry`. Used once.\n\n    max_retries: 2\n    jitter: false")
    word, said = told(text.replace("¦", "").replace("*retry", "*re¦try"))
    assert (word, said) == ("*retry", "The value marked with `&retry`\n\n    max_retries: 2\n    jitter: false")
    assert "Merge key" in told(text.replace("¦", "").replace("retry: *retry", "retry:\n      <¦<: *retry"))[1]
    aliased = H + "  - &s {id: a, type: llm_call, prompt: hi}\n  - *¦s\n"
    assert told(aliased)[0] == "*s"


def test_files(tmp_path: Path) -> None:
    """A path is told with the file it leads to and whether it is there; a child with its name and what it takes and gives."""
    child = tmp_path / "child.loom.yaml"
    child.write_text(
        "name: kid\nstate: {lang: en}\nsteps:\n  - {id: k, type: llm_call, prompt: '{state.text}', output: out}\n"
    )
    here = tmp_path / "parent.loom.yaml"
    text = (
        H + "  - {id: s, type: subworkflow, workflow_path: ./chi¦ld.loom.yaml, input: {text: hi}, return_keys: [out]}\n"
    )
    word, said = told(text, path=here)
    assert word == "./child.loom.yaml"
    assert said.startswith(f"`{child}`\n\nRuns `kid`, 1 step.\n\nTakes `text`, `lang`.\n\nEnds with `out`, `lang`.")
    plain_text = text.replace("¦", "")
    assert told(plain_text.replace("{text: hi}", "{te¦xt: hi}"), path=here)[1].endswith("Read there by `k`.")
    assert told(plain_text.replace("[out]", "[ou¦t]"), path=here)[1].endswith("Written there by `k`.")
    missing = "config: {responses_file: no¦pe.json}\n" + H + A
    assert told(missing, path=here) == ("nope.json", f"`{tmp_path}/nope.json`\n\nThere is no such file.")
    assert "save it first" in told(missing)[1]


def test_an_agent_in_a_file_of_its_own() -> None:
    """With what the file says about it, as the workspace knows it."""
    agent = "name: h\ndescription: Answers questions.\nsystem_prompt: hi\nmodel: gpt-4o\n"
    for marked in (
        H + "  - {id: s, type: agent, agent: ./hel¦per.agent.yaml}\n",
        "agents: {h: ./hel¦per.agent.yaml}\n" + H + A,
        "agents: {h: ./helper.agent.yaml}\n" + H + "  - {id: s, type: agent, agent: ¦h}\n",
    ):
        files = Files({"helper.agent.yaml": agent, "flow.loom.yaml": marked})
        document, offset = files.asked()
        found = hover_at(document, offset, project=files)
        assert found is not None
        assert "Answers questions." in plain(found.prose)
        assert "Model: `gpt-4o`." in plain(found.prose)


def test_nothing_where_nothing_is_meant() -> None:
    """Prose, blank places, places past the end."""
    for marked in (
        H + A.replace("hi", "hi the¦re"),
        H + "¦" + A,
        "¦",
        "{}¦",
        H + A + "¦",
        "# ¦\n",
        H + A + "    tool_args: {a: {b: 'x¦'}}\n",
    ):
        assert hovered(marked)[1] is None, marked
    document = document_of(H + A)
    assert hover_at(document, 10_000) is None


def test_case_crlf_behind_a_comment_line() -> None:
    """Editor case: hover was empty in CRLF files after a comment line."""
    marked = H + "#\n" + A.replace("prompt", "pro¦mpt")
    assert told(marked.replace("\n", "\r\n")) == told(marked)
    assert told("\ufeff# 😀\n" + marked) == told(marked)


@pytest.mark.parametrize(
    ("good", "broken"),
    [
        (A.replace("type", "ty¦pe"), A.replace("type: llm_call", 'ty¦pe: llm_call "')),
        (
            A.replace("hi", '"{state.x}"').replace("prompt", "pro¦mpt"),
            A.replace("hi", '"{state.x}').replace("prompt", "pro¦mpt"),
        ),
        (A.replace("hi", "'{state.¦x} y'"), A.replace("hi", "'{state.¦x} y")),
        (A.replace("hi", "'{state.¦x}'"), A.replace("hi", "'{state.¦x}'").replace("type: llm_call", "type: [")),
    ],
)
def test_broken_lines_are_told_from_the_last_good_version(good: str, broken: str) -> None:
    """A line that can't be read for the moment says what it said before."""
    before = document_of(cut(H + good)[0])
    text, offset = cut(H + broken)
    found, then = hover_at(document_of(text), offset, before), hover_at(before, cut(H + good)[1])
    assert found is not None
    assert then is not None
    assert found.prose[0] == then.prose[0]
    assert text[found.span.start : found.span.end] == before.source.text[then.span.start : then.span.end]


def test_what_a_file_says_cannot_become_markdown() -> None:
    """Values with marks of Markdown and HTML stay text, in code that nothing closes."""
    evil = "`x` ``y`` [a](http://evil) <img src=x onerror=1>\n```\n# b"
    text = f"name: w\nstate: {{k: {evil!r}}}\nsteps:\n" + A.replace("hi", "'{state.¦k}'")
    _, found = hovered(text.replace("\\n", "\\\\n"))
    assert found is not None
    said = markdown(found.prose)
    assert "\n````\n" in said + "\n" or "````" in said
    outside = said.split("````")[0] + said.split("````")[-1]
    assert "evil" not in outside
    assert "<img" not in outside


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("name", TEXTS)
def test_every_place_of_odd_texts(name: str, ends: str) -> None:
    """Whole and cut off anywhere: what is said has words, and the range holds the place and lies on something."""
    text = ENDS[ends](TEXTS[name])
    kind: FileKind = "agent" if name == "agent" else "workflow"
    for end in (*range(len(text) % 23, len(text), 23), len(text)):
        document = analyze(Source("untitled:x", text[:end]), Context(tools=BUILTIN_TOOLS), None, kind)
        for offset in range(0 if end == len(text) else max(0, end - 12), end + 1, 3):
            found = hover_at(document, offset)
            if found is not None:
                assert 0 <= found.span.start < found.span.end <= end
                assert found.span.contains(offset)
                assert markdown(found.prose)
                assert plain(found.prose)
