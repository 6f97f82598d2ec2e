"""Hints between the words: what they say, where, and what their tooltips explain."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import pytest

from agentloom.analysis.analyze import analyze
from agentloom.analysis.context import Context
from agentloom.analysis.document import WorkflowDocument
from agentloom.ide.hints import HintKind, hints
from agentloom.ide.prose.durations import duration
from agentloom.ide.prose.form import plain
from agentloom.text import Source, Span
from tests.analysis.checking import A, H, check

T = TypeVar("T")
KINDS: tuple[HintKind, ...] = ("layer", "model", "attempts")
CALL = "  - id: a\n    type: llm_call\n    prompt: hi\n"


def shown(text: str, *kinds: HintKind) -> str:
    """Return a text with its hints in it."""
    for hint in reversed(hints(check(text), Span(0, len(text)), kinds or KINDS)):
        text = f"{text[: hint.offset]} ‹{hint.label}›{text[hint.offset :]}"
    return text


def told(text: str, *kinds: HintKind) -> list[str]:
    return [plain(hint.tooltip) for hint in hints(check(text), Span(0, len(text)), kinds or KINDS)]


@pytest.mark.parametrize(
    "expected",
    [
        H + "  - id: a ‹layer 1›\n    type: tool\n  - {id: 'b' ‹layer 2›, type: tool, depends_on: [a]}\n",
        # without a layer: on a cycle, a second step of one name, a step behind an alias
        H + "  - id: a\n    type: tool\n    depends_on: [b]\n  - id: b\n    depends_on: [a]\n",
        H + "  - &x\n    id: a ‹layer 1›\n    type: tool\n  - {id: a, type: tool}\n  - *x\n",
        H + "  - {type: tool}\n  - na\n  - id:\n  - id: &n a ‹layer 1›\n",
        H
        + "  - id: s ‹layer 1›\n    type: subworkflow\n    workflow_inline:\n      steps:\n        - {id: q ‹layer 1›, type: tool}\n"
        "        - {id: r ‹layer 2›, depends_on: [q]}\n",
        "",
        "steps: [{id: a ‹layer 1›",
    ],
)
def test_layers(expected: str) -> None:
    """Behind each name, where the step has one; those of a workflow written in place are its own."""
    text = expected.replace(" ‹layer 1›", "").replace(" ‹layer 2›", "")
    assert shown(text, "layer") == expected


def test_layers_are_explained() -> None:
    """When a layer starts, and who runs at the same time."""
    text = H + "  - {id: a}\n  - {id: b, depends_on: [a]}\n  - {id: c, depends_on: [a]}\n"
    assert told(text, "layer") == [
        "Layer 1 of 2: it starts at once, alone.",
        "Layer 2 of 2: it starts when the layer before it is done, together with `c`.",
        "Layer 2 of 2: it starts when the layer before it is done, together with `b`.",
    ]


def test_of_a_crowded_layer_a_few_are_named() -> None:
    """As many as a sentence holds, and the number of the others."""
    text = H + "".join(f"  - {{id: s{n:02}}}\n" for n in range(12))
    first, *_, last = told(text, "layer")
    names = [f"`s{n:02}`" for n in range(12)]
    assert first == f"Layer 1 of 1: it starts at once, together with {', '.join(names[1:9])} and 3 more."
    assert last == f"Layer 1 of 1: it starts at once, together with {', '.join(names[:8])} and 3 more."


@pytest.mark.parametrize(
    ("config", "step", "expected"),
    [
        ("", "{id: a, type: llm_call}", "{id: a, type: llm_call ‹gpt-4o-mini (openai)›}"),
        ("{model: claude-x}", "{id: a, type: llm_call}", "{id: a, type: llm_call ‹claude-x (anthropic)›}"),
        ("{provider: mock}", "{id: a, type: embed}", "{id: a, type: embed ‹gpt-4o-mini (mock)›}"),
        ("{provider: mine, model: m}", "{id: a, type: llm_call}", "{id: a, type: llm_call ‹m (mine)›}"),
        ("{model: m}", "{id: a, type: llm_call}", "{id: a, type: llm_call ‹m›}"),
        ("{provider: mock}", "{id: a, type: llm_call, model: 'm'}", "{id: a, type: llm_call, model: 'm' ‹mock›}"),
        ("", "{id: a, type: llm_call, model: gemini-2}", "{id: a, type: llm_call, model: gemini-2 ‹google›}"),
        ("", "{id: a, type: llm_call, model: ~}", "{id: a, type: llm_call ‹gpt-4o-mini (openai)›, model: ~}"),
        ("", "{id: a, type: llm_call, model: 5}", "{id: a, type: llm_call, model: 5}"),
        ("", "{id: a, type: tool}", "{id: a, type: tool}"),
        ("", "{id: a, type: agent, agent: w}", "{id: a, type: agent ‹gpt-4o-mini (openai)›, agent: w}"),
        ("", "{id: a, type: agent, agent: v}", "{id: a, type: agent ‹gpt-4o (openai)›, agent: v}"),
        ("", "{id: a, type: agent, agent: ./x.agent.yaml}", "{id: a, type: agent, agent: ./x.agent.yaml}"),
        ("{provider: [], model: 1}", "{id: a, type: llm_call}", "{id: a, type: llm_call ‹gpt-4o-mini (openai)›}"),
    ],
)
def test_models(config: str, step: str, expected: str) -> None:
    """Of steps that call a model: what they inherit, and who is asked first."""
    head = f"config: {config}\nagents: {{w: {{system_prompt: hi}}, v: {{model: gpt-4o}}}}\nsteps:\n  - "
    assert shown(head + step, "model").removeprefix(head) == expected


def test_models_of_agents_in_files() -> None:
    """An agent's file says which model it runs on; one that can't be read says nothing."""
    agents = {
        "v.agent.yaml": "model: gpt-4o\nsystem_prompt: hi\n",
        "w.agent.yaml": "system_prompt: hi\n",
        "x.yaml": H + A,
    }

    class Files:
        def documents(self, mentioning: str = "") -> Iterable[WorkflowDocument]:
            return ()

        def each(self, function: Callable[[WorkflowDocument], T]) -> Iterable[T]:
            return ()

        def document(self, path: Path) -> WorkflowDocument | None:
            text = agents.get(path.name)
            return analyze(Source(str(path), text), Context()) if text is not None else None

    steps = ("v", "w.agent.yaml", "gone.agent.yaml", "x.yaml")
    text = "agents: {v: v.agent.yaml}\nsteps:\n" + "".join(
        f"  - {{id: s{n}, type: agent, agent: {a}}}\n" for n, a in enumerate(steps)
    )
    document = analyze(
        Source("/f/w.loom.yaml", text), Context(exists=lambda path: path.name != "gone.agent.yaml"), None, "workflow"
    )
    found = hints(document, Span(0, len(text)), ("model",), Files())
    assert [hint.label for hint in found] == ["gpt-4o (openai)", "gpt-4o-mini (openai)"]
    assert plain(found[0].tooltip).startswith("Model `gpt-4o`, from the agent `v`.")
    assert hints(document, Span(0, len(text)), ("model",)) == []


def test_models_are_explained() -> None:
    """Where each comes from."""
    assert told(H + CALL, "model") == [
        "Model `gpt-4o-mini`, the default unless a workflow that runs this one sets another.\n\n"
        "Provider `openai`, the default unless a workflow that runs this one sets another; it is tried first."
    ]
    inner = "    type: subworkflow\n    workflow_inline:\n      config: {model: claude-x}\n      steps: [{id: q, type: llm_call}]\n"
    assert told("config: {provider: openai}\nsteps:\n  - id: s\n" + inner, "model") == [
        "Model `claude-x`, from `config.model`.\n\n`openai` doesn't serve `claude-x`, so `anthropic` does."
    ]
    assert told("config: {provider: mock}\nsteps:\n  - id: s\n" + inner, "model") == [
        "Model `claude-x`, from `config.model`.\n\nProvider `mock`, from the workflow around it: `config.provider`; it is tried first."
    ]


@pytest.mark.parametrize(
    "expected",
    [
        H + CALL,
        H + CALL + "    retry: ‹up to 3 attempts, 7.5 s of waits›\n      max_retries: 2\n",
        H + CALL + "    retry: {max_retries: 1, jitter: false} ‹up to 2 attempts, 2 s of waits›\n",
        H + CALL + "    retry: {max_retries: 0} ‹1 attempt›\n",
        H + CALL + "    retry: ‹up to 4 attempts, 17.5 s of waits›\n",
        H + CALL + "    retry : ‹up to 4 attempts, 6 s of waits›  # why\n      backoff_max: 2\n      jitter: false\n",
        "config: {max_retries: 1 ‹up to 2 attempts, 2.5 s of waits›}\n" + H + CALL,
        "config: {max_retries: 1 ‹up to 2 attempts, 2.5 s of waits›}\n" + H + CALL + "    retry: {jitter: false} ‹up to 2 attempts, 2 s of waits›\n",
        "config: {max_retries: -1}\n" + H + CALL,
        H + "  - id: s\n    type: subworkflow ‹up to 16 attempts inside›\n    workflow_inline:\n      steps: [{id: q, type: tool}]\n",
        H + "  - id: s\n    type: subworkflow\n    workflow_inline:\n      steps: [{id: q, type: router}]\n",
    ],
)  # fmt: skip
def test_attempts(expected: str) -> None:
    """Behind a `retry`, behind `config.max_retries`, and behind the type of a step that multiplies the attempts of others."""
    text = ""
    for piece in expected.split(" ‹"):
        text += piece.partition("›")[2] if "›" in piece else piece
    assert shown(text, "attempts") == expected


def test_attempts_are_explained() -> None:
    """How many, why, how long the waits are, and how long it takes where that is limited."""
    step = CALL + "    timeout: 30\n    retry: {max_retries: 3}\n"
    assert told(H + step, "attempts") == [
        "Worst case: the first attempt, and 3 retries, from this block.\n\nThe waits between them take up to 17.5 s in all.\n\n"
        "A provider that asks for more patience can make that 3 min.\n\nAn attempt takes up to 30 s, so the step takes up to 2 min 18 s in all."
    ]
    inside = H + "  - id: s\n    type: subworkflow\n    workflow_inline:\n      steps: [{id: q, type: tool}]\n"
    assert told(inside, "attempts") == [
        "Worst case: `s.q` is attempted 16 times, since this step runs it 4 times, each time with its own retries."
    ]


def test_only_the_range() -> None:
    """Nothing of what is out of sight."""
    text = H + "".join(A.replace("id: a", f"id: s{n}") for n in range(9))
    document = check(text)
    found = hints(document, Span(text.index("id: s3"), text.index("id: s5")), KINDS)
    assert [text[text.rindex(":", 0, hint.offset) + 2 : hint.offset] for hint in found] == [
        "s3",
        "llm_call",
        "s4",
        "llm_call",
    ]
    assert hints(document, Span(0, 3), KINDS) == []
    assert hints(document, Span(10**6, 10**7), KINDS) == []


def test_agent_files_have_none() -> None:
    """An agent file has no steps."""
    document = analyze(Source("untitled:x", "name: a\nsystem_prompt: hi\n"), Context(), None, "agent")
    assert hints(document, Span(0, 99), KINDS) == []


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (0.04, "0 s"),
        (2, "2 s"),
        (17.5, "17.5 s"),
        (99.96, "1 min 40 s"),
        (180, "3 min"),
        (3_599.6, "1 h"),
        (3_780, "1 h 3 min"),
        (90_000, "1 d 1 h"),
        (1e300, "more than 10 years"),
    ],
)
def test_times_in_words(seconds: float, words: str) -> None:
    """At most two units."""
    assert duration(seconds) == words
