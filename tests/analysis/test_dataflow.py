"""The data flow: who writes what a step reads, on which routes, and what may be offered to it."""

from __future__ import annotations

import pytest

from agentloom.analysis.analyze import AnalysisCache, analyze
from agentloom.analysis.context import Context
from agentloom.analysis.dataflow import Flow, Reaching, dataflow
from agentloom.analysis.document import Step, WorkflowDocument
from agentloom.analysis.settings import Settings
from agentloom.text import Source
from tests.analysis import checking

HEAD = "name: w\n"
NOTHING_GIVEN = Settings()


def check(text: str, settings: Settings | None = None) -> WorkflowDocument:
    """Return the document of a text, for whose keys no settings speak."""
    return checking.check(text, settings or Settings())


def flow_of(steps: str, head: str = "", settings: Settings | None = None) -> Flow:
    """Return the data flow of a workflow whose steps stand one a line, such as ``a: [b] x <- {state.y}``.

    Behind the id come the dependencies, the output, and behind the arrow the prompt; a line with ``?`` is a router that picks from
    the names behind it.
    """
    lines = [f"{HEAD}{head}steps:"]
    for line in steps.strip().splitlines():
        left, _, prompt = line.strip().partition(" <- ")
        name, _, rest = left.partition(":")
        needs, _, output = rest.strip().removeprefix("[").partition("]")
        lines.append(f"  - id: {name}\n    depends_on: [{needs}]")
        if "?" in output:
            targets = output.split("?")[1].split()
            lines.append("    type: router\n    conditions:")
            for number, target in enumerate(targets[:-1]):
                lines.append(f"      - {{expression: state.pick == {number}, target: {target}}}")
            lines.append(f"    default: {targets[-1]}")
        else:
            lines.append(f'    type: llm_call\n    prompt: "{prompt or "hi"}"')
            if output.strip():
                lines.append(f"    output: {output.strip()}")
    document = check("\n".join(lines) + "\n", settings)
    assert not [d for d in document.diagnostics if d.severity == 1], document.diagnostics
    return dataflow(document)


def step(flow: Flow, name: str) -> Step:
    """Return a step by its id."""
    return flow.document.by_id[name]


def reached(flow: Flow, name: str, *parts: str | int) -> Reaching:
    """Return what reaches a read of a path by a step."""
    return flow.reaching(step(flow, name), parts)


CERTAINTIES = [
    ("written upstream", "a: [] x\nb: [a]", "b", ("x",), "always"),
    ("through a step between", "a: [] x\nm: [a]\nb: [m]", "b", ("x",), "always"),
    ("below what is written", "a: [] x\nb: [a]", "b", ("x", "deep", 0), "always"),
    ("above what is written", "a: [] x.y\nb: [a]", "b", ("x",), "always"),
    ("beside what is written", "a: [] x.y\nb: [a]", "b", ("x", "z"), "never"),
    ("in the same layer", "a: [] x\nb: []", "b", ("x",), "unordered"),
    ("in a later layer", "b: []\na: [b] x", "b", ("x",), "unordered"),
    ("by itself only", "a: [] x", "a", ("x",), "never"),
    ("in an earlier layer, not upstream", "a: [] x\nm: []\nb: [m]", "b", ("x",), "sometimes"),
    ("the result of a step upstream", "a: []\nb: [a]", "b", ("steps", "a", "output"), "always"),
    ("a field that no result has", "a: []\nb: [a]", "b", ("steps", "a", "outptu"), "never"),
    ("the result of no step", "a: []", "a", ("steps", "z", "output"), "never"),
    ("its own result", "a: []", "a", ("steps", "a", "output"), "never"),
    ("on its own branch", "r: [] ? a c\na: [r] x\nc: [r]\nb: [a]", "b", ("x",), "always"),
    ("on the other branch", "r: [] ? a c\na: [r] x\nc: [r]\nb: [c]", "b", ("x",), "excluded"),
    (
        "on one branch, read behind both",
        "r: [] ? a c\na: [r] x\nc: [r]\nm: []\nn: [m]\nb: [n]",
        "b",
        ("x",),
        "sometimes",
    ),
]


@pytest.mark.parametrize(
    ("steps", "name", "parts", "certainty"), [c[1:] for c in CERTAINTIES], ids=[c[0] for c in CERTAINTIES]
)
def test_what_reaches_a_read(steps: str, name: str, parts: tuple[str | int, ...], certainty: str) -> None:
    """One case of each verdict."""
    assert reached(flow_of(steps), name, *parts).certainty == certainty


def test_a_loss_names_the_decision() -> None:
    """A value that only one branch writes is lost where the router picks the other."""
    flow = flow_of("r: [] ? a c\na: [r] x\nc: [r]\nm: []\nn: [m]\nb: [n]")
    found = reached(flow, "b", "x")
    assert found.loss is not None
    assert found.loss.picks == (("r", "c", "a"),)
    assert [writer.id for writer in found.writers] == ["a"]


def test_branches_that_all_write_are_as_one_writer() -> None:
    """Only a failure loses what every branch writes; the workflow that ends well has it."""
    flow = flow_of("r: [] ? a c\na: [r] x\nc: [r] x\nm: []\nn: [m]\nb: [n]")
    found = reached(flow, "b", "x")
    assert found.loss is not None
    assert found.loss.picks == ()
    assert found.loss.fails == ("a", "c")
    assert flow.at_end(("x",)).certainty == "always"


def test_routers_that_decide_alike() -> None:
    """Of two routers with the same conditions over the same value, one's branch implies the other's."""
    flow = flow_of("q: [] ? a c\na: [q] x\nc: [q]\nm: []\nr: [m] ? b d\nb: [r]\nd: [r]")
    assert reached(flow, "b", "x").loss == ((), ("a",), None)
    assert reached(flow, "d", "x").certainty == "excluded"


def test_a_step_that_goes_on_after_failures() -> None:
    """Under `continue` what is upstream may have failed, but for routers."""
    flow = flow_of("a: [] x\nb: [a]\nr: [b] ? c d\nc: [r]\nd: [r]", "config: {on_step_failure: continue}\n")
    found = reached(flow, "b", "x")
    assert (found.certainty, found.loss) == ("sometimes", ((), ("a",), None))
    assert reached(flow, "c", "steps", "r", "output").certainty == "always"


def test_a_router_that_asks_first() -> None:
    """A value that the router before the reader looks at is guarded."""
    flow = flow_of("q: [] ? a c\na: [q] pick\nc: [q]\nm: []\nr: [m] ? b d\nb: [r]\nd: [r]")
    assert reached(flow, "b", "pick").guarded


@pytest.mark.parametrize(
    ("head", "parts", "origin"),
    [
        ("state: {q: hi}\n", ("q",), "state"),
        ("state: {q: {}}\n", ("q", "any"), "state"),
        ("state: {q: }\n", ("q", "any"), "state"),
        ("state: {q: [1]}\n", ("q", 5), "state"),
        ("state: {q: {a: 1}}\n", ("q", "b"), None),
        ("state: {q: text}\n", ("q", "b"), None),
        ("state_schema: {q: {redact: true}}\n", ("q",), "state_schema"),
        ("state_schema: {'q*': {redact: true}}\n", ("query",), "state_schema"),
        ("state_schema: {'*': {redact: true}}\n", ("query",), None),
        ("# agentloom: state[q, lang]\n", ("lang",), "comment"),
        ("# agentloom: state[q.a]\n", ("q", "a", "b"), "comment"),
        ("# agentloom: state[q.a]\n", ("q", "z"), None),
        ("description: 'agentloom: state[q]'\n", ("q",), None),
        ("", ("_approval", "gate"), "engine"),
        ("", ("steps",), "engine"),
    ],
)
def test_what_is_there_from_the_start(head: str, parts: tuple[str | int, ...], origin: str | None) -> None:
    """`state:`, the schema of the state, comments and the engine declare keys."""
    assert reached(flow_of("a: []", head), "a", *parts).origin == origin


def test_keys_that_settings_declare() -> None:
    """`known_state` in the settings is for the keys that come from the command line."""
    flow = flow_of("a: []", settings=Settings(known_state=("question", "user.name", "env_*")))
    assert reached(flow, "a", "env_host", "port").origin == "settings"
    assert reached(flow, "a", "question").origin == "settings"
    assert reached(flow, "a", "user", "name").origin == "settings"
    assert reached(flow, "a", "user", "age").certainty == "never"


NESTED = """\
name: w
state: {topic: bees}
steps:
  - id: before
    type: llm_call
    prompt: hi
    output: facts
  - id: sub
    type: subworkflow
    depends_on: [before]
    output: result
    %s
    workflow_inline:
      name: child
      steps:
        - {id: pick, type: router, conditions: [{expression: state.facts == 'x', target: long}], default: short}
        - {id: long, type: llm_call, depends_on: [pick], prompt: "{state.facts}", output: text}
        - {id: short, type: llm_call, depends_on: [pick], prompt: "{state.topic}", output: text}
        - {id: extra, type: llm_call, depends_on: [long], prompt: hi, output: more}
  - id: after
    type: llm_call
    depends_on: [sub]
    prompt: hi
"""


@pytest.mark.parametrize(
    ("fields", "parts", "certainty"),
    [
        ("isolated_state: false", ("result", "text"), "always"),
        ("isolated_state: false", ("result", "more"), "sometimes"),
        ("isolated_state: false", ("result", "facts"), "always"),
        ("isolated_state: false", ("result", "txt"), "never"),
        ("isolated_state: true", ("result", "facts"), "never"),
        ("isolated_state: true", ("result", "steps", "pick", "output"), "always"),
        ("return_keys: [more]", ("result", "text"), "never"),
        ("return_keys: [text]", ("steps", "sub", "output", "text"), "always"),
        ("return_keys: [text]", ("steps", "sub", "output", "more"), "never"),
        ("return_keys: [text]", ("text",), "never"),
    ],
)
def test_what_a_subworkflow_gives_back(fields: str, parts: tuple[str, ...], certainty: str) -> None:
    """Below a subworkflow's output lies what its workflow writes, or what `return_keys` lets through."""
    assert reached(dataflow(check(NESTED % fields)), "after", *parts).certainty == certainty


@pytest.mark.parametrize(
    ("fields", "key", "certainty", "origin"),
    [
        ("isolated_state: false", "facts", "always", None),
        ("isolated_state: false", "topic", "declared", "state"),
        ("isolated_state: true", "facts", "never", None),
        ("isolated_state: true", "topic", "never", None),
        ("{isolated_state: true, input: {topic: x}}", "topic", "declared", "input"),
    ],
)
def test_what_a_child_is_handed(fields: str, key: str, certainty: str, origin: str | None) -> None:
    """A child sees its parent's state unless it is isolated; `input` hands over the rest."""
    lines = fields.strip("{}").replace("true, ", "true\n    ")
    flow = dataflow(check(NESTED % lines))
    child = flow.child(step(flow, "sub"))
    assert child is not None
    found = child.reaching(child.document.by_id["long"], (key,))
    assert (found.certainty, found.origin) == (certainty, origin)


def test_a_loss_inside_a_child() -> None:
    """The decision that loses a value is one of the child's routers."""
    found = reached(dataflow(check(NESTED % "isolated_state: false")), "after", "result", "more")
    assert found.loss is not None
    assert found.loss.child == "sub"
    assert found.loss.picks == (("pick", "short", "extra"),)


def test_agents_read_for_their_steps() -> None:
    """What an agent's prompt reads is read by the steps that run it, and what the agents read that it calls."""
    flow = dataflow(
        check(
            "name: w\nagents:\n  one: {system_prompt: '{state.tone}', tools: [{agent: two}]}\n  two: {system_prompt: '{state.style}'}\n"
            "steps:\n  - {id: a, type: agent, agent: one, input: '{state.q}'}\n"
        )
    )
    assert [read.occurrence.name for read in flow.reads(step(flow, "a"))] == ["q", "tone", "style"]
    text = flow.document.source.text
    assert [text[slice(*read.span)] for read in flow.reads(step(flow, "a"))] == ["state.q", "state.tone", "state.style"]


def test_a_conversation_may_have_yet_to_begin() -> None:
    """A conversation is read and written by one field; its absence is no fault."""
    flow = dataflow(check("name: w\nsteps:\n  - {id: a, type: llm_call, prompt: hi, conversation: chat}\n"))
    assert [(read.occurrence.name, read.optional) for read in flow.reads(step(flow, "a"))] == [("chat", True)]


def test_what_may_be_offered() -> None:
    """Upstream writers first, the nearest before the others; then what is there from the start; then the rest, its own output not."""
    flow = flow_of("a: [] x\nb: [a] y\nc: [b] z\nd: [] w", "state: {q: {deep: 1}}\n")
    offers = flow.in_scope(step(flow, "c"))
    assert [(offer.name, offer.writers, offer.layer, offer.certainty) for offer in offers] == [
        ("y", ("b",), 1, "always"),
        ("x", ("a",), 0, "always"),
        ("q", (), None, "declared"),
        ("q.deep", (), None, "declared"),
        ("w", ("d",), 0, "sometimes"),
    ]
    assert [offer.name for offer in flow.results_in_scope(step(flow, "b"))] == [
        "steps.a.output",
        "steps.d.output",
        "steps.c.output",
    ]


def test_a_child_is_offered_its_parents_keys() -> None:
    """Inside a workflow that shares the state, the parent's keys are in scope."""
    flow = dataflow(check(NESTED % "isolated_state: false"))
    child = flow.child(step(flow, "sub"))
    assert child is not None
    assert {offer.name for offer in child.in_scope(child.document.by_id["long"])} >= {"facts", "topic"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "steps: 5",
        "name: w\nsteps:\n  - id: a\n    type: router\n    conditions: 5\n  - {id: b, type: llm_call, prompt: '{state.x}', depends_on: [a]}\n",
        "name: w\nsteps:\n  - {id: a, depends_on: [b]}\n  - {id: b, depends_on: [a], output: x}\n",
        "name: w\nsteps:\n  - {id: a, output: x}\n  - {id: a, output: y, depends_on: [z]}\n  - {output: z}\n",
        "name: w\nagents: [1]\nstate: [2]\nconfig: 3\nsteps: [{id: a, type: agent, agent: {x: 1}}, 4]\n",
        "name: w\nsteps:\n  - {id: a, type: subworkflow, workflow_inline: {steps: [{id: b, type: subworkflow, workflow_inline: {}}]}, input: 5}\n",
    ],
)
def test_broken_texts_have_a_flow(text: str) -> None:
    """Whatever is in the text, every read has an answer."""
    flow = dataflow(analyze(Source("untitled:x", text), Context(), kind="workflow"))
    for found in flow.document.steps:
        assert flow.in_scope(found) is not None
        for read in flow.reads(found):
            assert flow.reaching(found, read.parts).certainty
        for key in ("x", "y", "z"):
            assert flow.reaching(found, (key,)).certainty in ("unknown", "never", "unordered", "sometimes", "always")


def test_a_step_whose_place_is_not_known_is_not_judged() -> None:
    """With a dependency that doesn't exist, nothing is said about what comes before the step, or before its writer."""
    text = "name: w\nsteps:\n  - {id: a, output: x, depends_on: [typo], type: llm_call, prompt: hi}\n  - {id: b, type: llm_call, prompt: '{state.x}'}\n"
    flow = dataflow(check(text))
    assert reached(flow, "b", "x").certainty == "unknown"
    assert reached(flow, "b", "nobodys").certainty == "never"


def test_ten_thousand_ways_end() -> None:
    """Many routers in a row, many writers of one key: the search gives up, it doesn't run away."""
    lines = []
    for number in range(60):
        needs = f"b{number - 1}" if number else ""
        lines += [f"r{number}: [{needs}] ? a{number} b{number}", f"a{number}: [r{number}] x", f"b{number}: [r{number}]"]
    chain = ["m0: []", *(f"m{n}: [m{n - 1}]" for n in range(1, 130)), "end: [m129]"]
    flow = flow_of("\n".join(lines + chain))
    assert reached(flow, "end", "x").certainty in ("sometimes", "unknown")


VERSIONS = (
    "a: [] x\nb: [a] y <- {state.x}\nc: [b] <- {state.y}",
    "a: [] x\nb: [a] y <- {state.x} and more\nc: [b] <- {state.y}",
    "a: [] z\nb: [a] y <- {state.x} and more\nc: [b] <- {state.y}",
    "a: [] x\nb: [] y <- {state.x}\nc: [b] <- {state.y}",
    "a: [] x\nb: [a] y <- {state.x}\nc: [b] <- {state.y} {state.x} {state.w}",
    "a: [] x\nc: [a] <- {state.y}",
)


def test_versions_hand_on_only_what_stays_true() -> None:
    """With a cache, each version of a text is told what it is told without one."""
    cache = AnalysisCache()
    for version in (*VERSIONS, *reversed(VERSIONS), *VERSIONS[::2]):
        text = flow_of(version).document.source.text
        kept = checking.check(text, NOTHING_GIVEN, cache)
        assert kept.diagnostics == checking.check(text, NOTHING_GIVEN).diagnostics
        assert len(dataflow(kept).tables.sure) <= len(kept.steps) + 101


def test_many_edits_keep_nothing_of_old_texts() -> None:
    """What is remembered of steps stays as small as the file."""
    cache = AnalysisCache()
    for number in range(300):
        text = flow_of(f"a: [] x\nb: [a] y <- {{state.x}} {number}").document.source.text
        kept = checking.check(text, NOTHING_GIVEN, cache)
        assert len(dataflow(kept).tables.sure) <= 110


def test_a_thousand_unknown_keys_are_not_compared_with_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work grows with the number of steps, and not with its square, where every step reads a key that nobody writes."""
    offers: list[int] = []
    real = Flow._offer
    monkeypatch.setattr(Flow, "_offer", lambda *arguments: offers.append(1) or real(*arguments))
    steps = "".join(
        f"  - {{id: s{n}, type: llm_call, prompt: 'do {{state.x{n}}}', output: o{n}}}\n" for n in range(1000)
    )
    document = check(f"name: w\nsteps:\n{steps}")
    assert [d.code for d in document.diagnostics] == ["AL401"]
    assert len(offers) < 50_000
