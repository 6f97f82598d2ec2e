"""Definitions, references and highlights: in one file, in all its awkward forms, and across files."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentloom.ide.navigation import definition, highlights, references
from agentloom.ide.rename import rename
from agentloom.ide.results import FileLocation, Location
from agentloom.text import LineTable
from tests.analysis.checking import A, H
from tests.ide.marked import opened
from tests.ide.project import Files
from tests.ide.test_rename_corpus import FOLDERS, check, every_place, files

B = "  - id: b\n    type: llm_call\n    depends_on: [a]\n    prompt: '{state.x}'\n"


def said(place: Location | FileLocation, marked: str = "") -> str:
    """Return a place as file, line (from 1), column (from 1) and text."""
    if isinstance(place, FileLocation):
        return place.path.name
    line, column = LineTable(place.source.text).position(place.span.start)
    word = place.source.text[slice(*place.span)]
    name = place.source.uri.rsplit("/", 1)[-1]
    return f"{'' if name == 'untitled:x' else name + ':'}{line + 1}:{column + 1} {word}"


def defined(marked: str) -> list[str]:
    document, offset = opened(marked)
    found = definition(document, offset)
    return [said(target) for target in found.targets] if found is not None else []


def used(marked: str) -> list[str]:
    document, offset = opened(marked)
    return [said(place) for place in references(document, offset)]


@pytest.mark.parametrize(
    ("marked", "places"),
    [
        (H + A + B.replace("[a]", "[a¦]"), ["3:9 a"]),
        (H + A + B.replace("[a]", "[¦a]"), ["3:9 a"]),
        (H + A + B.replace("[a]", "['a¦']"), ["3:9 a"]),
        (H + A + B.replace("[a]", '\n    - "a¦"'), ["3:9 a"]),
        (H + A + B.replace("[a]", "¦a"), ["3:9 a"]),
        (H + A.replace("id: a", 'id: "¦a"') + B, ["3:10 a"]),
        (H + A + "  - id: r\n    type: router\n    default: ¦a\n", ["3:9 a"]),
        (H + A + "  - id: r\n    type: router\n    conditions: [{expression: 'True', target: a¦}]\n", ["3:9 a"]),
        (H + A + B.replace("state.x", "state.steps.a¦.output"), ["3:9 a"]),
        (H + A + B.replace("state.x", "state.steps.a.out¦put"), ["3:9 a"]),
        (H + A + B.replace("state.x", "state[steps][a¦][output]"), ["3:9 a"]),
        (
            H + A + "  - id: r\n    type: router\n    conditions:\n    - {expression: \"steps.a¦.status == 'x'\"}\n",
            ["3:9 a"],
        ),
        (H + A + "  - id: r\n    type: router\n    conditions:\n    - {expression: \"steps['¦a'].x\"}\n", ["3:9 a"]),
        (H + A + B.replace("[a]", "[nope¦]"), []),
        ("state: {x: 1}\n" + H + B.replace("state.x", "state.x¦"), ["1:9 x"]),
        ("state: {x: 1}\n" + H + B.replace("state.x", "x¦"), ["1:9 x"]),
        ("state:\n  'x': {y: 1}\n" + H + B.replace("state.x", "state.x.¦y"), ["2:9 y"]),
        ("state:\n  x: {y: 1}\n" + H + B.replace("state.x", "state.¦x.y"), ["2:3 x"]),
        ("state: {x: [{y: 1}, {y: 2}]}\n" + H + B.replace("state.x", "state.x[-1].¦y"), ["1:14 y", "1:22 y"]),
        (H + A + "    output: x\n" + B.replace("state.x", "state.x¦"), ["6:13 x"]),
        (H + A + "    output: 'x.y'\n" + B.replace("state.x", "state.x.¦y"), ["6:16 y"]),
        (H + A + "    output: x\n" + B.replace("state.x", "state.x.b¦ody"), ["6:13 x"]),
        (H + A + "    conversation: x\n" + B.replace("state.x", "state.x¦"), ["6:19 x"]),
        (H + "  - id: e\n    type: embed\n    inputs: '{¦x}'\n" + A + "    output: x\n", ["9:13 x"]),
        ("state_schema: {¦x: {redact: true}}\nstate: {x: 1}\n" + H + A, ["2:9 x"]),
        ("agents: {w: {system_prompt: hi}}\n" + H + "  - id: a\n    type: agent\n    agent: ¦w\n", ["1:10 w"]),
        (H + "  - &b\n    id: a\n    type: llm_call\n    prompt: hi\n    depends_on: [¦b]\n" + B, ["8:9 b"]),
        ("x: &y {timeout: 3}\n" + H + A + "    <<: *¦y\n", ["1:5 y"]),
        ("x: &y {timeout: 3}\n" + H + A + "    <<: ¦*y\n", ["1:5 y"]),
        (H + "  - &s {id: a, type: llm_call, prompt: hi}\n  - *¦s\n", ["3:6 s"]),
        (H + A + "    <<: *¦nope\n", []),
        ("state: {x: 1}\n" + H + A.replace("hi", "'{state.¦x'"), ["1:9 x"]),
        ("state: {x: 1}\n" + H + A.replace("hi", "|\n      {state.¦x\n      and so on"), ["1:9 x"]),
        (H + A + B.replace("'{state.x}'", "'{state.steps.¦a.output'"), ["3:9 a"]),
        (H + "  - id: a\n    type: tool\n    tool_name: http_¦request\n", []),
        (H + A.replace("hi", "{state.¦}"), []),
        ("na¦me: w\n", []),
        ("¦", []),
        ("# a¦\n" + H + A, []),
    ],
)
def test_where_something_is_defined(marked: str, places: list[str]) -> None:
    """Step ids, state keys, agents and anchors, from every form in which they are named; nothing where nothing is known.

    An anchor of the same word as a step is never taken for the step.
    """
    assert defined(marked) == places


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("start", ["", "\ufeff", "# 😀 é\u2028\n", "%YAML 1.2\n---\n"])
def test_whatever_surrounds_it(ends: str, start: str) -> None:
    """Line ends, marks, directives and wide characters change nothing."""
    document, offset = opened((start + H + A + B.replace("[a]", "[¦a]")).replace("\n", ends))
    found = definition(document, offset)
    assert found is not None
    (target,) = found.targets
    assert isinstance(target, Location)
    text = document.source.text
    assert (text[slice(*target.span)], text[slice(*found.origin)]) == ("a", "a")
    assert text[target.span.start - 4 : target.span.start] == "id: "
    assert target.whole is not None
    assert text[slice(*target.whole)].startswith("id: a" + ends)


@pytest.mark.parametrize(
    "broken",
    [
        H + A + "    pro\n" + B.replace("[a]", "[¦a]"),
        H + A + B.replace("[a]", "[¦a]") + "  - id: c\n    prompt: 'open\n",
        H + A + B.replace("[a]", "[¦a") + "  - id: c\n",
        H + A + "  - [\n" + B.replace("[a]", "[¦a]"),
        H + A + "  - na\n" + B.replace("[a]", "[¦a]") + "---\nfoo: 1\n",
    ],
)
def test_in_a_file_that_does_not_parse(broken: str) -> None:
    """A broken line elsewhere takes nothing away."""
    assert defined(broken) == ["3:9 a"]


EVERYWHERE = """\
state: {x: {y: 1}}
name: w
steps:
  - id: a
    type: llm_call
    prompt: |
      ✓ {state.x.y} and {x}
    output: "x.z"
  - id: r
    type: router
    depends_on: ["a"]
    conditions:
      - expression: "state.x['y'] == 1 and state.get('x') and \\u0041"
        target: b
    default: 'b'
  - {id: b, type: tool, depends_on: [r, 'a'], tool_name: t, tool_args: {u: state.x.y, v: ["{x[y]}"]}}
"""


def test_references_of_a_step() -> None:
    """Its id first, then every place, in order; without the id if that isn't wanted."""
    marked = EVERYWHERE.replace("id: a", "id: ¦a")
    assert used(marked) == ["4:9 a", "11:19 a", "16:42 a"]
    document, offset = opened(marked)
    assert [said(place) for place in references(document, offset, declaration=False)] == ["11:19 a", "16:42 a"]


def test_references_of_a_state_key() -> None:
    """A key alone, and a nested one: exactly that segment of every path, in each of the languages."""
    xs = ["1:9 x", "7:16 x", "7:26 x", "8:14 x", "13:28 x", "13:55 x", "16:82 x", "16:93 x"]
    assert used(EVERYWHERE.replace("{x: {", "{¦x: {")) == xs
    ys = ["1:13 y", "7:18 y", "13:31 y", "16:84 y", "16:95 y"]
    assert used(EVERYWHERE.replace("state.x.y,", "state.x.¦y,")) == ys


def test_highlights_tell_reading_from_writing() -> None:
    """Keys of `state` and outputs write; templates and expressions read. Ids are written where they are given."""
    document, offset = opened(EVERYWHERE.replace("{x: {", "{¦x: {"))
    assert [found.kind for found in highlights(document, offset)] == ["write", "read", "read", "write", *["read"] * 4]
    document, offset = opened(EVERYWHERE.replace("default: 'b", "default: '¦b"))
    found = [(document.source.text[slice(*f.span)], f.kind) for f in highlights(document, offset)]
    assert found == [("b", "read"), ("b", "read"), ("b", "write")]
    document, offset = opened(H + A + "    conversation: ¦chat\n")
    assert [found.kind for found in highlights(document, offset)] == ["write"]


@pytest.mark.parametrize(
    ("marked", "count"),
    [
        (H + "  - id: a\n    type: tool\n    tool_name: ¦t\n" + "  - id: b\n    type: tool\n    tool_name: t\n", 2),
        ("config: {model: m}\n" + H + A + "    model: ¦m\n", 2),
        ("x: &y {timeout: 3}\n" + H + A + "    <<: *y\n" + B + "    <<: *¦y\n", 3),
        ("x: &y {timeout: 3}\nz: &y {timeout: 4}\n" + H + A + "    <<: *y\n" + B + "    <<: *¦y\n", 3),
        (H + "  - &s {id: a, type: llm_call, prompt: '{state.k}'}\n  - *s\n  - <<: *s\n    id: c\n    output: ¦k\n", 2),
        (
            "state: {run_id: 1}\n"
            + H
            + "  - id: g\n    type: approval_gate\n    notify: {url: u, body_template: '{run_¦id}'}\n",
            0,
        ),
        (
            "state: {run_¦id: 1}\n"
            + H
            + "  - id: g\n    type: approval_gate\n    notify: {url: u, body_template: '{run_id}'}\n",
            1,
        ),
    ],
)
def test_how_many_places(marked: str, count: int) -> None:
    """Tools, models, anchors (given twice: the nearest above counts), merged steps (once), and names that webhooks bring."""
    assert len(used(marked)) == count


PARENT = """\
name: parent
state: {ticket: hi, report: {title: t}}
steps:
  - id: a
    type: llm_call
    prompt: "{state.ticket}"
    output: topic
  - id: s
    type: subworkflow
    depends_on: [a]
    workflow_path: child.loom.yaml
    isolated_state: true
    input: {subject: "{state.topic}", doc: "{state.report}"}
    return_keys: [answer]
    output: result
  - id: b
    type: llm_call
    depends_on: [s]
    prompt: "{state.result.answer} {state.steps.s.output.answer}"
"""
CHILD = """\
name: child
state: {subject: nothing}
steps:
  - {id: q, type: llm_call, prompt: "{state.subject} {state.doc.title}", output: answer}
"""


def across(name: str, marked: str, **others: str) -> Files:
    texts = {"parent.loom.yaml": PARENT, "child.loom.yaml": CHILD}
    texts.update({key.replace("__", "."): text for key, text in others.items()})
    texts[name] = marked
    return Files(texts)


@pytest.mark.parametrize(
    ("name", "old", "new", "places"),
    [
        ("parent", "{subject: ", "{¦subject: ", ["child.loom.yaml:2:9 subject"]),
        ("parent", "[answer]", "[¦answer]", ["child.loom.yaml:4:82 answer"]),
        ("parent", "state.result.answer", "state.result.¦answer", ["child.loom.yaml:4:82 answer"]),
        ("parent", "output.answer", "output.¦answer", ["child.loom.yaml:4:82 answer"]),
        ("parent", "state.result.", "state.¦result.", ["parent.loom.yaml:15:13 result"]),
        ("parent", "path: child", "path: c¦hild", ["child.loom.yaml"]),
        ("child", "state.subject", "state.¦subject", ["child.loom.yaml:2:9 subject"]),
        ("child", "state.doc.", "state.¦doc.", ["parent.loom.yaml:13:39 doc"]),
        ("child", "doc.title", "doc.¦title", ["parent.loom.yaml:2:30 title"]),
    ],
)
def test_definitions_in_other_files(name: str, old: str, new: str, places: list[str]) -> None:
    """Keys of a child lead into the child, and what a child is handed leads to where it is handed over."""
    name += ".loom.yaml"
    text = {"parent.loom.yaml": PARENT, "child.loom.yaml": CHILD}[name]
    project = across(name, text.replace(old, new, 1))
    found = definition(*project.asked(), project)
    assert found is not None
    assert [said(target) for target in found.targets] == places


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("parent", "[answer]", "[¦answer]"),
        ("child", "output: answer", "output: ¦answer"),
        ("parent", "result.a", "result.¦a"),
    ],
)
def test_references_through_what_is_given_back(name: str, old: str, new: str) -> None:
    """From the parent and from the child, the same places; the own file's come first."""
    name += ".loom.yaml"
    text = {"parent.loom.yaml": PARENT, "child.loom.yaml": CHILD}[name]
    project = across(name, text.replace(old, new, 1))
    found = [said(place) for place in references(*project.asked(), project)]
    assert sorted(found) == [
        "child.loom.yaml:4:82 answer",
        "parent.loom.yaml:14:19 answer",
        "parent.loom.yaml:19:28 answer",
        "parent.loom.yaml:19:58 answer",
    ]
    assert found[0].startswith(name)


def test_shared_state_reaches_into_the_child_and_out_of_it() -> None:
    """Without `isolated_state` both mean one key, but for keys that `input` sets; other files that run the child count too."""
    shared = PARENT.replace("    isolated_state: true\n", "")
    child = CHILD.replace("{state.subject}", "{state.subject} {state.ticket}")
    other = shared.replace("name: parent", "name: other").replace("state.ticket", "state.t¦icket")
    project = Files({"parent.loom.yaml": shared, "child.loom.yaml": child, "other.loom.yaml": other})
    assert sorted(said(place) for place in references(*project.asked(), project)) == [
        "child.loom.yaml:4:61 ticket",
        "other.loom.yaml:2:9 ticket",
        "other.loom.yaml:6:21 ticket",
        "parent.loom.yaml:2:9 ticket",
        "parent.loom.yaml:6:21 ticket",
    ]


def test_a_workflow_written_in_place_has_its_own_steps() -> None:
    """Equal ids inside and outside are two steps; the state is shared unless it is isolated."""
    inner = "    workflow_inline:\n      name: k\n      steps:\n        - {id: a, type: llm_call, prompt: '{state.x}'}\n        - {id: b, type: llm_call, prompt: hi, depends_on: [¦a]}\n"
    text = "state: {x: 1}\n" + H + A + "  - id: s\n    type: subworkflow\n" + inner
    assert used(text) == ["12:16 a", "13:60 a"]
    assert len(used(text.replace("¦", "").replace("{x: 1}", "{¦x: 1}"))) == 2
    assert len(used(text.replace("¦", "").replace("{x: 1}", "{¦x: 1}") + "    isolated_state: true\n")) == 1


AGENT = "name: writer\nsystem_prompt: 'Write about {state.ticket}.'\ntools: [{agent: ./other.agent.yaml}]\n"
USES = "name: w\nstate: {ticket: hi}\nagents: {writer: ./writer.agent.yaml}\nsteps:\n  - {id: a, type: agent, agent: writer, input: hi}\n"


def test_an_agent_file_reads_the_state_of_who_uses_it() -> None:
    """Definition and references go from the agent's file to the workflow and back; the path opens the file."""
    texts = {"w.loom.yaml": USES, "writer.agent.yaml": AGENT.replace("state.t", "state.¦t"), "other.agent.yaml": AGENT}
    project = Files(texts)
    found = definition(*project.asked(), project)
    assert found is not None
    assert [said(target) for target in found.targets] == ["w.loom.yaml:2:9 ticket"]
    assert len(references(*project.asked(), project)) == 3
    project = Files({**texts, "writer.agent.yaml": AGENT, "w.loom.yaml": USES.replace("./writer", "./¦writer")})
    found = definition(*project.asked(), project)
    assert found is not None
    assert [said(target) for target in found.targets] == ["writer.agent.yaml"]


def test_an_agent_file_names_agents_of_who_uses_it() -> None:
    """A name, and no path, in an agent's file is one of the workflow's agents."""
    texts = {
        "w.loom.yaml": USES.replace("agents: {", "agents: {help¦er: {system_prompt: hi}, "),
        "writer.agent.yaml": AGENT.replace("./other.agent.yaml", "helper"),
    }
    project = Files(texts)
    assert [said(place) for place in references(*project.asked(), project)] == [
        "w.loom.yaml:3:10 helper",
        "writer.agent.yaml:3:17 helper",
    ]
    changes = rename(*project.asked(), "aide", project)
    assert [(change.source.uri.rsplit("/", 1)[-1], len(change.edits)) for change in changes] == [
        ("w.loom.yaml", 1),
        ("writer.agent.yaml", 1),
    ]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_what_is_shown_around_a_definition_holds_it(folder: Path) -> None:
    """The whole of a target contains the name in it, as the protocol asks; also where aliases tear the two apart."""
    for path in files(str(folder)):
        document = check(path, path.read_bytes().decode("utf-8", "replace"))
        for _, place in every_place(document):
            found = definition(document, place.span.start)
            for target in found.targets if found is not None else ():
                if isinstance(target, Location) and target.whole is not None:
                    assert target.whole.start <= target.span.start <= target.span.end <= target.whole.end, place


def test_references_of_a_file() -> None:
    """Every place that names the file, whatever the path looks like."""
    texts = {"w.loom.yaml": USES.replace("./writer", "./¦writer"), "writer.agent.yaml": AGENT}
    texts["v.loom.yaml"] = USES.replace("{writer: ./writer.agent.yaml}", "{w: ../work-space/writer.agent.yaml}")
    project = Files(texts)
    assert [said(place) for place in references(*project.asked(), project)] == [
        "w.loom.yaml:3:18 ./writer.agent.yaml",
        "v.loom.yaml:3:13 ../work-space/writer.agent.yaml",
    ]


def test_a_workflow_that_runs_itself_comes_to_an_end() -> None:
    """A ring of files, whose outputs would nest without end."""
    text = (
        PARENT.replace("child.loom", "parent.loom")
        .replace("    isolated_state: true\n", "")
        .replace("state.topic", "state.¦topic")
    )
    project = Files({"parent.loom.yaml": text.replace("    return_keys: [answer]\n", "")})
    assert [said(place) for place in references(*project.asked(), project)] == [
        "parent.loom.yaml:7:13 topic",
        "parent.loom.yaml:12:30 topic",
    ]
