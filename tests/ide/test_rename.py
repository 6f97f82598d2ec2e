"""Renaming: what is edited and what is kept, what is refused and why, across files and in recordings."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentloom.analysis.settings import Settings
from agentloom.diagnostics import apply_edits
from agentloom.ide.rename import prepare_rename, rename
from agentloom.ide.results import Refusal
from tests.analysis.checking import A, H
from tests.ide.marked import cut, opened
from tests.ide.project import Files

B = "  - id: b\n    type: llm_call\n    depends_on: [a]\n    prompt: hi\n"
R = "  - id: r\n    type: router\n    depends_on: [a]\n    conditions: [{expression: \"state.x == 1\", target: b}]\n    default: 'b'\n"


def renamed(marked: str, word: str) -> str:
    document, offset = opened(marked)
    text = document.source.text
    for change in rename(document, offset, word):
        assert change.source is document.source
        text = apply_edits(text, change.edits)
    return text


def refused(marked: str, word: str = "fresh") -> str:
    document, offset = opened(marked)
    with pytest.raises(Refusal) as reason:
        rename(document, offset, word)
    return str(reason.value)


@pytest.mark.parametrize(
    ("marked", "word", "becomes"),
    [
        (H + A + B.replace("[a]", '["¦a"]'), "c", H + A.replace("id: a", "id: c") + B.replace("[a]", '["c"]')),
        (
            H + A + B.replace("[a]", "\n    - '¦a'"),
            "c",
            H + A.replace("id: a", "id: c") + B.replace("[a]", "\n    - 'c'"),
        ),
        (H + A + B.replace("[a]", "¦a"), "c", H + A.replace("id: a", "id: c") + B.replace("[a]", "c")),
        (H + A.replace("id: a", "id: '¦a' # a"), "c", H + A.replace("id: a", "id: 'c' # a")),
        (H + A + B.replace("[a]", "[¦a]") + R, "c", (H + A + B + R).replace("[a]", "[c]").replace("id: a", "id: c")),
        (
            H + A + B.replace("id: b", "id: ¦b") + R,
            "d",
            H + A + (B + R).replace("id: b", "id: d").replace("t: b", "t: d").replace("'b'", "'d'"),
        ),
        (
            H + A + B.replace("hi", "|\n      ✓ {state.steps.¦a.output}\n      {state[steps][a]} {steps.a}"),
            "c-d",
            H
            + A.replace("id: a", "id: c-d")
            + B.replace("[a]", "[c-d]").replace(
                "hi", "|\n      ✓ {state.steps.c-d.output}\n      {state[steps][c-d]} {steps.c-d}"
            ),
        ),
        (
            H + A + R.replace("state.x == 1", "steps.¦a.output == steps['a'].x"),
            "c_1",
            H
            + A.replace("id: a", "id: c_1")
            + R.replace("state.x == 1", "steps.c_1.output == steps['c_1'].x").replace("[a]", "[c_1]"),
        ),
        (
            H
            + A
            + B.replace("hi", '"\\t\\u00e9 {state.steps.\\u0061.output} ¦" '.replace(" ¦", "")).replace("[a]", "[¦a]"),
            "é",
            H
            + A.replace("id: a", "id: é")
            + B.replace("[a]", "[é]").replace("hi", '"\\t\\u00e9 {state.steps.é.output}" '),
        ),
        (
            H + A + B.replace("hi", "'it''s {state.steps.a.output}'").replace("[a]", "[¦a]"),
            "cc",
            H
            + A.replace("id: a", "id: cc")
            + B.replace("[a]", "[cc]").replace("hi", "'it''s {state.steps.cc.output}'"),
        ),
        (
            H + A + B.replace("hi", ">\n      one\n      {state.steps.a.output} two\n").replace("[a]", "[¦a]"),
            "cc",
            H
            + A.replace("id: a", "id: cc")
            + B.replace("[a]", "[cc]").replace("hi", ">\n      one\n      {state.steps.cc.output} two\n"),
        ),
        (
            H + "  - &b\n" + A.replace("- ", "  ") + B.replace("[a]", "[*x]").replace("id: b", "id: &x ¦b"),
            "c",
            H + "  - &b\n" + A.replace("- ", "  ") + B.replace("[a]", "[*x]").replace("id: b", "id: &x c"),
        ),
        ("x: &y {timeout: 3}\n" + H + A + "    <<: *¦y\n", "z", "x: &z {timeout: 3}\n" + H + A + "    <<: *z\n"),
        (
            "x: &¦y {timeout: 3}\nz: &y {timeout: 4}\n" + H + A + "    <<: *y\n",
            "q",
            "x: &q {timeout: 3}\nz: &y {timeout: 4}\n" + H + A + "    <<: *y\n",
        ),
        (
            "agents: {'w': {system_prompt: hi, tools: [{agent: w}]}}\n" + H + "  - {id: a, type: agent, agent: ¦w}\n",
            "v",
            "agents: {'v': {system_prompt: hi, tools: [{agent: v}]}}\n" + H + "  - {id: a, type: agent, agent: v}\n",
        ),
        (H + A + A.replace("id: a", "id: ¦a") + B, "c", H + A + A.replace("id: a", "id: c") + B),
        (H + A.replace("id: a", "id: ¦a") + A + B, "c", H + A.replace("id: a", "id: c") + A + B.replace("[a]", "[c]")),
    ],
)
def test_steps_agents_and_anchors(marked: str, word: str, becomes: str) -> None:
    """Only the name changes: between its quotes, of whatever kind, in lists, scalars, targets, templates and expressions.

    Through an alias the place is where the anchor stands; an anchor of the same word is left alone.
    """
    assert renamed(marked, word) == becomes


STATE = """\
state_schema: {x: {redact: true}, 'x.k': {redact: true}}
state: {x: {'k': 1, z: {k: 2}}, k: 3}
name: w
steps:
  - {id: a, type: embed, inputs: x.k, output: "x.k.v"}
  - {id: b, type: llm_call, conversation: x.z, prompt: "{state.x.k} {x.k} {x[k]:>3} {k} {state.k} {state.x.z.k}"}
  - {id: r, type: router, conditions: [{expression: "state.x['k'] and state.x.get('k', state.k)", target: t}]}
  - {id: t, type: tool, tool_name: t, tool_args: {k: state.x.k, q: [{k: "a {state.x.k}"}]}}
"""


def test_a_nested_key_is_renamed_at_every_path_with_its_prefix() -> None:
    """`x.k` at every place, and neither `k` nor `x.z.k`, nor an argument of that name."""
    becomes = (
        STATE.replace("'x.k'", "'x.new'")
        .replace("{'k'", "{'new'")
        .replace("inputs: x.k", "inputs: x.new")
        .replace('"x.k.v"', '"x.new.v"')
        .replace("state.x.k", "state.x.new")
        .replace("{x.k}", "{x.new}")
        .replace("{x[k]", "{x[new]")
        .replace("['k']", "['new']")
        .replace("get('k'", "get('new'")
    )
    assert renamed(STATE.replace("inputs: x.k", "inputs: x.¦k"), "new") == becomes
    assert renamed(becomes.replace("inputs: x.new", "inputs: x.¦new"), "k") == STATE


def test_a_top_key_is_renamed_with_and_without_state_in_front() -> None:
    """Short names `{k}` read the same key."""
    text = renamed(STATE.replace(" k: 3", " ¦k: 3"), "top")
    assert text == STATE.replace(" k: 3", " top: 3").replace("{k}", "{top}").replace(
        "{state.k}", "{state.top}"
    ).replace(", state.k)", ", state.top)")


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("start", ["", "\ufeff", "# 😀 é\u2028 a\n"])
def test_line_ends_marks_and_wide_characters_stay(ends: str, start: str) -> None:
    """Everything but the name is kept, byte for byte."""
    text = (start + H + A + B.replace("hi", '"😀 {state.steps.a.output}"')).replace("\n", ends)
    at = text.index("[a]") + 1
    becomes = text.replace("id: a", "id: step").replace("[a]", "[step]").replace("steps.a.", "steps.step.")
    assert renamed(text[:at] + "¦" + text[at:], "step") == becomes


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("a b", "`a b` can't be read back by templates; use letters, digits, `_` and `-`"),
        ("", "the new name is empty; write one"),
        ("a.b", "`a.b` is a path; rename one key at a time, without dots"),
        ("b", "a step `b` is there already (line 6); choose another name"),
        ("nope", "line 10 names a step `nope`, which would be this one then; choose another name"),
        ("on", "`on` isn't a text to every reader of YAML; choose a name that needs no quotes"),
        ("017", "`017` isn't a text to every reader of YAML; choose a name that needs no quotes"),
        ("null", "`null` isn't a text to every reader of YAML; choose a name that needs no quotes"),
        ("-a", "`-a` isn't a text to every reader of YAML; choose a name that needs no quotes"),
        ("__a", "`__a` is reserved: names with two underscores in front are never read; choose another"),
        ("a\nb", "`a b` can't be read back by templates; use letters, digits, `_` and `-`"),
        ("{a}", "`{a}` can't be read back by templates; use letters, digits, `_` and `-`"),
        ("'", "`'` can't be read back by templates; use letters, digits, `_` and `-`"),
    ],
)
def test_words_that_are_no_name_or_taken(word: str, reason: str) -> None:
    """The reason names the word and the cure."""
    assert (
        refused(H + A.replace("id: a", "id: ¦a") + B + "  - {id: c, type: llm_call, depends_on: [nope]}\n", word)
        == reason
    )


@pytest.mark.parametrize(
    ("marked", "word", "reason"),
    [
        (STATE.replace("{x: {'", "{¦x: {'"), "steps", "`steps` is reserved in the state; choose another name"),
        (STATE.replace("{x: {'", "{¦x: {'"), "k", "the state key `k` is there already (line 2); choose another name"),
        (STATE.replace("{'k'", "{'¦k'"), "z", "the state key `z` is there already (line 2); choose another name"),
        (STATE.replace("{'k'", "{'¦k'"), "v", ""),
        (
            STATE.replace("{x: {'", "{¦x: {'"),
            "class",
            "`class` would be read as something else in line 7; choose another name",
        ),
        (
            STATE.replace("{x: {'", "{¦x: {'"),
            "a-b",
            "`a-b` would be read as something else in line 7; choose another name",
        ),
        (
            STATE.replace("{x: {'", "{¦x: {'"),
            "_a",
            "`_a` would be read as something else in line 7; choose another name",
        ),
        (
            "x: &y {timeout: 3}\n" + H + A + "    <<: *¦y\n",
            "é",
            "`é` is no name for an anchor; use letters, digits, `_` and `-`",
        ),
        (
            "x: &y {a: 3}\nz: &w {b: 4}\n" + H + A + "    <<: *¦y\n",
            "w",
            "the anchor `&w` is there already; choose another name",
        ),
        (
            "agents: {w: {}, v: {}}\n" + H + "  - {id: a, type: agent, agent: ¦w}\n",
            "v",
            "an agent `v` is there already (line 1); choose another name",
        ),
        (
            "state: {n: 1}\n" + H + "  - {id: t, type: tool, tool_args: {q: '{¦n}'}}\n",
            "1n",
            "`1n` would be read as something else in line 4; choose another name",
        ),
        (
            "state_schema: {'*_key': {redact: true}}\nstate: {¦api_key: 1}\n" + H + A,
            "token",
            "`*_key` in `state_schema` covers `api_key`, but not `token`; change it there first",
        ),
        (
            "state_schema: {'*_key': {redact: true}}\nstate: {¦token: 1}\n" + H + A,
            "a_key",
            "`*_key` in `state_schema` would cover `a_key`; choose another name",
        ),
    ],
)
def test_words_that_do_not_fit(marked: str, word: str, reason: str) -> None:
    """Keys beside it, what the engine keeps, what an expression can't say, patterns that hide secrets."""
    if reason:
        assert refused(marked, word) == reason
    else:
        assert renamed(marked, word)


@pytest.mark.parametrize(
    ("marked", "reason"),
    [
        (
            H + "  - {id: a, type: tool, tool_name: http_¦request}\n",
            "the tool `http_request` is built in; it can't be renamed",
        ),
        (
            H + "  - {id: a, type: tool, tool_name: my_¦tool}\n",
            "the tool `my_tool` is named where it is registered, in Python; rename it there",
        ),
        (H + A + "    model: gp¦t\n", "models are named by those who offer them; choose another one where it stands"),
        (
            H + A + B.replace("hi", "'{state.steps.a.¦output}'"),
            "`output` is what the engine calls this part of the state; it can't be renamed",
        ),
        (
            H + A + B.replace("hi", "'{state.¦steps.a}'"),
            "`steps` is what the engine calls this part of the state; it can't be renamed",
        ),
        (
            H + A + B.replace("hi", "'{state.steps.a.output.¦k}'"),
            "`k` is part of what step `a` gives; its name isn't given in this file",
        ),
        (
            H + A + "    output: o\n" + B.replace("hi", "'{state.o.¦k}'"),
            "`k` is part of what step `a` writes to `o`; its name isn't given in this file",
        ),
        (
            "state: {c: {messages: []}}\n" + H + A + "    conversation: c\n" + B.replace("hi", "'{state.c.¦messages}'"),
            "`messages` is part of what step `a` writes to `c`; its name isn't given in this file",
        ),
        (H + A + B.replace("[a]", "[no¦pe]"), "step `nope` is not defined; there is nothing to rename"),
        (H + "  - {id: a, type: agent, agent: no¦pe}\n", "agent `nope` is not defined; there is nothing to rename"),
        (H + A + "    <<: *no¦pe\n", "no `&nope` stands before `*nope`; there is nothing to rename"),
        (H + A + "    workflow_path: c.lo¦om.yaml\n", ""),
        (
            H + "  - {id: a, type: subworkflow, workflow_path: c.lo¦om.yaml}\n",
            "this is the path of a file; rename the file, and the editor changes every path to it",
        ),
        (
            "state: {h: {¦Accept: x}}\n"
            + H
            + "  - {id: t, type: tool, tool_name: http_request, tool_args: {headers: '{state.h}'}}\n",
            "`Accept` goes to the tool of step `t` as part of `h`; its name means something there",
        ),
        ("na¦me: w\n", "nothing that can be renamed stands here; choose a step id, a state key, an agent or an anchor"),
        ("¦", "nothing that can be renamed stands here; choose a step id, a state key, an agent or an anchor"),
        (
            H + A + B.replace("[a]", "[¦a]") + "    - a\n",
            "line 10 can't be read, and `a` stands there; mend it first",
        ),
        (H + A + B.replace("[a]", "[¦a") + R, "line 8 can't be read as it is, and `a` stands there; mend it first"),
        (
            "state: {k: &m {u: 1}}\n"
            + H
            + A.replace("hi", "'{state.k.¦u}'")
            + "  - {id: t, type: tool, tool_name: http_request, tool_args: *m}\n",
            "",
        ),
    ],
)
def test_what_can_not_be_renamed(marked: str, reason: str) -> None:
    """Said before a new name is asked for, wherever that can be known."""
    document, offset = opened(marked)
    if not reason:
        return
    assert refused(marked) == reason
    with pytest.raises(Refusal) as early:
        prepare_rename(document, offset)
    assert str(early.value) == reason


def test_half_typed_placeholders_go_along() -> None:
    """A brace that isn't closed yet makes no difference."""
    text = "state: {¦x: 1}\n" + H + A.replace("hi", "'{state.x} {state.x'")
    assert renamed(text, "y1") == cut(text)[0].replace("x", "y1")


def test_a_broken_line_elsewhere_is_no_hindrance() -> None:
    """Neither comments nor a second document nor a broken line without the name count."""
    text = H + A + "    pro # a\n" + B.replace("[a]", "[¦a]") + "---\na: [\n"
    assert renamed(text, "c") == text.replace("¦", "").replace("id: a", "id: c").replace("[a]", "[c]")


def test_what_is_prepared() -> None:
    """The range without quotes, and the word as it is; an escape stands for what it means."""
    document, offset = opened(H + A.replace("id: a", 'id: "¦\\u0061b"') + B)
    found = prepare_rename(document, offset)
    assert (document.source.text[slice(*found.span)], found.word) == ("\\u0061b", "ab")


def test_the_same_name_changes_nothing() -> None:
    """No edits, whatever the name is."""
    document, offset = opened(H + A.replace("id: a", "id: ¦on"))
    assert rename(document, offset, "on") == ()


def test_keys_that_a_program_sets_are_not_renamed() -> None:
    """`known_state` in the settings names them outside of the files."""
    files = Files(
        {"w.yaml": H + A.replace("hi", "'{state.tic¦ket}'")},
        Settings(known_state=("ticket",), path=Path("/x/agentloom.toml")),
    )
    with pytest.raises(Refusal) as reason:
        rename(*files.asked(), "fresh", files)
    assert str(reason.value) == "`ticket` is declared in `agentloom.toml`, since a program sets it; rename it there"


def changed(files: Files, word: str) -> dict[str, str]:
    """Return the files that a rename changes, by name, after it; every edit carries the version it was made for."""
    document, offset = files.asked()
    found: dict[str, str] = {}
    for change in rename(document, offset, word, files):
        path = Path(change.source.uri)
        assert change.source.text == files.texts[path]
        assert change.source.version == (7 if path.suffix == ".yaml" else None)
        found[path.name] = apply_edits(change.source.text, change.edits)
    return found


PARENT = """\
name: parent
config: {responses_file: r.json}
steps:
  - id: s
    type: subworkflow
    workflow_path: c.yaml
    input: {subject: hi}
    return_keys: [answer]
    output: result
  - {id: b, type: llm_call, depends_on: [s], prompt: "{state.result.answer} {state.shared} {state.subject}"}
"""
CHILD = """\
name: child
config: {responses_file: own.json}
state: {shared: 1}
steps:
  - {id: q, type: llm_call, prompt: "{state.subject} {state.shared}", output: answer}
"""


def family(name: str, old: str, new: str, **more: str) -> Files:
    texts = {"p.yaml": PARENT, "c.yaml": CHILD, **{key.replace("__", "."): text for key, text in more.items()}}
    assert old in texts[name]
    texts[name] = texts[name].replace(old, new, 1)
    return Files(texts)


@pytest.mark.parametrize(
    ("name", "old", "new", "parent", "child"),
    [
        ("c.yaml", "output: answer", "output: ¦answer", ["[fresh]", "result.fresh"], ["output: fresh"]),
        ("p.yaml", "result.answer", "result.¦answer", ["[fresh]", "result.fresh"], ["output: fresh"]),
        ("p.yaml", "[answer", "[¦answer", ["[fresh]", "result.fresh"], ["output: fresh"]),
        ("c.yaml", "state.subject", "state.¦subject", ["{fresh: hi"], ["state.fresh"]),
        ("p.yaml", "{subject", "{¦subject", ["{fresh: hi"], ["state.fresh"]),
        ("p.yaml", "state.shared", "state.¦shared", ["state.fresh}"], ["{fresh: 1", "state.fresh}"]),
        ("p.yaml", "state.subject", "state.¦subject", ["state.fresh}"], []),
    ],
)
def test_keys_are_renamed_in_parent_and_child(
    name: str, old: str, new: str, parent: list[str], child: list[str]
) -> None:
    """What is shared, handed over and given back; a key that `input` sets is not the parent's key of that name."""
    found = changed(family(name, old, new), "fresh")
    assert next(iter(found)) == name
    for file, before, words in (("p.yaml", PARENT, parent), ("c.yaml", CHILD, child)):
        text = found.get(file, before)
        assert text.count("fresh") == len(words)
        assert all(word in text for word in words)


def test_names_that_are_taken_in_another_file() -> None:
    """The reason says where."""
    with pytest.raises(Refusal) as reason:
        changed(family("p.yaml", "state.shared", "state.¦shared"), "answer")
    assert str(reason.value) == "the state key `answer` is there already (line 8); choose another name"


REPLIES = '{"_version": 2,\n "s.q": {"content": "q"},\n "b": [{"content": "b"}], "c": {"content": "c"}}\n'
OWN = '{"q": {"content": "q"}, "q2": {"content": "q"}}'


@pytest.mark.parametrize(
    ("name", "old", "new", "becomes"),
    [
        ("p.yaml", "id: s", "id: ¦s", {"r.json": REPLIES.replace("s.q", "fresh.q")}),
        ("p.yaml", "[s]", "[¦s]", {"r.json": REPLIES.replace("s.q", "fresh.q")}),
        ("p.yaml", "id: b", "id: ¦b", {"r.json": REPLIES.replace('"b":', '"fresh":')}),
        (
            "c.yaml",
            "id: q",
            "id: ¦q",
            {"r.json": REPLIES.replace("s.q", "s.fresh"), "own.json": OWN.replace('"q"', '"fresh"', 1)},
        ),
    ],
)
def test_recordings_go_along(name: str, old: str, new: str, becomes: dict[str, str]) -> None:
    """Keys of recordings are ids, or ways through subworkflows: in the file's own recording and in those of its callers."""
    found = changed(family(name, old, new, r__json=REPLIES, own__json=OWN), "fresh")
    assert {file: text for file, text in found.items() if file.endswith(".json")} == becomes


TOOLS = (
    '{"_version": 2, "b": [{"content": "b"}], "b::summarize": [{"content": "s"}],\n'
    ' "_tools": {"b": [{"name": "b", "arguments": {"b": 1}, "result": "b"}], "s.q": []}, "_b": 1, "bb": {"content": "x"}}'
)


@pytest.mark.parametrize(
    ("name", "old", "new", "becomes"),
    [
        ("p.yaml", "id: b", "id: ¦b", TOOLS.replace('"b": [', '"fresh": [').replace('"b::', '"fresh::')),
        ("c.yaml", "id: q", "id: ¦q", TOOLS.replace("s.q", "s.fresh")),
    ],
)
def test_recorded_tools_and_summaries_go_along(name: str, old: str, new: str, becomes: str) -> None:
    """What tools gave stands under the steps' names as well, and so do the calls that a step makes besides."""
    found = changed(family(name, old, new, r__json=TOOLS, own__json="{}"), "fresh")
    assert found["r.json"] == becomes


def test_every_way_to_a_step_is_renamed_in_recordings() -> None:
    """Two steps that run one child, and a caller of their workflow, name its steps by different ways."""
    twice = PARENT.replace("  - {id: b,", "  - {id: t, type: subworkflow, workflow_path: c.yaml}\n  - {id: b,")
    top = "name: top\nconfig: {responses_file: top.json}\nsteps: [{id: u, type: subworkflow, workflow_path: p.yaml}]\n"
    own, over = '{"s.q": {}, "t.q": {}, "q": {}, "x.q": {}}', '{"u.s.q": {}, "u.t.q": {}, "u.q": {}, "s.q": {}}'
    files = family("c.yaml", "id: q", "id: ¦q", r__json=own, top__json=over, top__yaml=top, p__yaml=twice)
    found = changed(files, "fresh")
    assert found["r.json"] == '{"s.fresh": {}, "t.fresh": {}, "fresh": {}, "x.q": {}}'
    assert found["top.json"] == '{"u.s.fresh": {}, "u.t.fresh": {}, "u.q": {}, "s.q": {}}'


@pytest.mark.parametrize(
    ("word", "replies", "other", "reason"),
    [
        ("c", REPLIES, "", "a recording of this workflow has replies for `c` already; choose another name"),
        ("_b", REPLIES, "", "the recording `r.json` names this step, and takes no names that begin with `_`"),
        (
            "fresh",
            REPLIES,
            PARENT,
            "the recording `r.json` answers step `b` of `o.yaml` under this name, too; part the two there first",
        ),
        ("fresh", "{", "", ""),
        ("fresh", '{"b": 1', "", ""),
        ("fresh", "[]", "", ""),
        ("fresh", '{"\\u0062": 1}', "", ""),
    ],
)
def test_recordings_that_others_use_or_that_are_broken(word: str, replies: str, other: str, reason: str) -> None:
    """Replies are never taken from another step; what is no recording is left alone."""
    files = family("p.yaml", "id: b", "id: ¦b", r__json=replies, **({"o__yaml": other} if other else {}))
    if reason:
        with pytest.raises(Refusal) as said:
            changed(files, word)
        assert str(said.value) == reason
    else:
        assert set(changed(files, word)) == {"p.yaml"}


def test_a_key_behind_an_alias_means_the_same_in_both_places() -> None:
    """A mapping that stands in the state twice has one key for both."""
    text = "state: {k: &m {u: 1}, l: *m}\n" + H + A.replace("hi", "'{state.k.¦u} {state.l.u}'")
    assert renamed(text, "v") == cut(text)[0].replace("u: 1", "v: 1").replace("k.u", "k.v").replace("l.u", "l.v")


def test_a_key_behind_an_alias_that_is_an_argument_too_is_refused() -> None:
    """The arguments of a tool must not change with the state."""
    text = "state: {k: &m {url: 1}}\n" + H + A.replace("hi", "'{state.k.¦url}'")
    text += "  - {id: t, type: tool, tool_name: http_request, tool_args: *m}\n"
    assert refused(text) == "`*m` in line 7 repeats this text where it means something else; write it out there first"
    text = H + A + "    output: &o ¦k\n    speaker: *o\n"
    assert refused(text) == "`*o` in line 7 repeats this text where it means something else; write it out there first"
