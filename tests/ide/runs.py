"""Workflows that really run: made at random or taken as they are, with a provider that answers by what it is asked."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import anyio

from agentloom.analysis.analyze import analyze
from agentloom.analysis.context import Context
from agentloom.analysis.document import WorkflowDocument
from agentloom.core.engine import WorkflowEngine
from agentloom.core.events import RunEvent, StepStarted
from agentloom.diagnostics import apply_edits
from agentloom.ide.results import Changes, NewFile, TextEdits
from agentloom.providers.base import BaseProvider, OnDelta, Request, Response, Usage
from agentloom.providers.gateway import ProviderGateway
from agentloom.text import Source


class Ran(NamedTuple):
    """What a run did: its status, what each step asked, which steps began, and the state it ended with."""

    status: str
    asked: Mapping[str, str]
    began: frozenset[str]
    state: Mapping[str, Any]


class Echo(BaseProvider):
    """A provider whose answer follows from the question alone, so that whatever a step saw shows in the state."""

    name = "mock"

    def __init__(self) -> None:
        self.asked: dict[str, str] = {}

    def serves(self, model: str) -> bool:
        return True

    async def complete(self, request: Request, on_delta: OnDelta | None = None) -> Response:
        question = "\n".join(f"{message.role}: {message.content}" for message in request.messages)
        assert request.step_id is not None
        self.asked[request.step_id] = f"{request.model} {question}"
        answer = hashlib.sha256(question.encode()).hexdigest()[:6]
        return Response(answer, request.model, self.name, Usage(), 0.0, "stop")

    async def close(self) -> None:
        """Hold nothing."""


class Bench:
    """Tools that give back what they are handed."""

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        return {"tool": name, "body": str(dict(arguments)), **arguments}


def read(path: str, files: Mapping[str, str] | None = None) -> WorkflowDocument:
    """Return the checked document of a file; ``files`` are some that are not on the disk."""
    known = {str(name): text for name, text in (files or {}).items()}

    def read_text(name: Path) -> str:
        return known[str(name)] if str(name) in known else name.read_bytes().decode("utf-8")

    context = Context(read_text=read_text, exists=lambda name: str(name) in known or name.exists())
    return analyze(Source(path, read_text(Path(path))), context, kind="workflow")


def changed(document: WorkflowDocument, changes: Changes) -> WorkflowDocument:
    """Return the document after changes, with their new files beside it."""
    files = {str(change.path): change.text for change in changes if isinstance(change, NewFile)}
    (edits,) = [c.edits for c in changes if isinstance(c, TextEdits) and c.source == document.source]
    old = document.context

    def read_text(name: Path) -> str:
        return files[str(name)] if str(name) in files else old.read_text(name)

    context = replace(old, read_text=read_text, exists=lambda name: str(name) in files or old.exists(name))
    source = document.source._replace(text=apply_edits(document.source.text, edits))
    return analyze(source, context, kind="workflow")


def run(document: WorkflowDocument, state: Mapping[str, Any] | None = None) -> Ran:
    """Run a document and return what it did."""
    provider = Echo()
    gateway = ProviderGateway()
    gateway.register(provider)
    began: set[str] = set()

    async def keep(event: RunEvent) -> None:
        if isinstance(event, StepStarted):
            began.add(event.step)

    async def main() -> Any:
        engine = WorkflowEngine(document, provider_gateway=gateway, tool_registry=Bench(), on_event=keep)
        return await engine.run(state)

    result = anyio.run(main)
    kept = {key: value for key, value in result.final_state.items() if key != "steps"}
    return Ran(result.status, provider.asked, frozenset(began), kept)


def below(ran: Ran, step: str) -> Ran:
    """Return a run as if the steps of a subworkflow step stood in its place."""
    prefix = f"{step}."
    return ran._replace(
        asked={name.removeprefix(prefix): text for name, text in ran.asked.items()},
        began=frozenset(name.removeprefix(prefix) for name in ran.began if name != step),
    )


def made(chance: random.Random) -> str:
    """Return a workflow: steps in a graph, some of them routers, that read and write a few keys."""
    keys = [f"k{n}" for n in range(chance.randint(2, 6))]
    lines = ["name: made", "config:", "  provider: mock", "  model: m"]
    if chance.random() < 0.2:
        lines.append("  max_concurrent_steps: 2")
    lines.append("state:")
    lines.append("  flag: 1")
    for key in keys:
        if chance.random() < 0.5:
            lines.append(f"  {key}: {chance.choice(['start', '{x: 1}', '7'])}")
    lines.append("steps:")
    gates: dict[str, str] = {}
    written: dict[str, tuple[str, ...]] = {}
    names: list[str] = []
    count = chance.randint(3, 9)
    for number in range(count):
        name = f"s{number}"
        needs = chance.sample(names, min(len(names), chance.choice([0, 1, 1, 2])))
        if chance.random() < 0.2:
            lines.append(f"  # about {name}")
        lines.append(f"  - id: {name}")
        router = chance.random() < 0.15 and number < count - 1
        lines.append(f"    type: {'router' if router else 'llm_call'}")
        if needs:
            lines.append(f"    depends_on: [{', '.join(needs)}]" if chance.random() < 0.7 else "    depends_on:")
            if lines[-1].endswith(":"):
                lines.extend(f"      - {need}" for need in needs)
        if router:
            gates[name] = f"s{chance.randint(number + 1, count - 1)}"
            test = chance.choice(["state.flag == 1", "state.flag == 2", "state.k0 == 'start'", "'a' in str(state.k1)"])
            lines += ["    conditions:", f'      - expression: "{test}"', f"        target: {gates[name]}"]
            lines.append(f"    default: {gates[name] if chance.random() < 0.3 else 's' + str(count - 1)}")
        else:
            forms = ["{state.%s}", "{%s}", "{state.%s.x}", "{state.%s}"]
            known = [own for need in needs for own in (f"v{need}", *written.get(need, ()))] or keys
            pick = [chance.choice(known if chance.random() < 0.7 else keys) for _ in range(chance.randint(0, 3))]
            reads = " ".join(chance.choice(forms) % key for key in pick)
            text = f"{name} {reads}".strip()
            lines.append(
                f'    prompt: "{text}"' if chance.random() < 0.6 else f"    prompt: |\n      {text}\n      end"
            )
            if chance.random() < 0.8:
                kind = chance.random()
                key = f"v{name}" if kind < 0.6 else f"o.{name}" if kind < 0.75 else chance.choice(keys)
                lines.append(f"    output: {key}")
                written[name] = (key, "o") if key.startswith("o.") else (key,)
        names.append(name)
        for gate, target in gates.items():
            if target == name and gate not in needs and chance.random() < 0.9:
                at = next(
                    i
                    for i in range(len(lines) - 1, -1, -1)
                    if lines[i] == f"    type: {'router' if router else 'llm_call'}"
                )
                has = at + 1 < len(lines) and lines[at + 1].startswith("    depends_on")
                if not has:
                    lines.insert(at + 1, f"    depends_on: [{gate}]")
        if chance.random() < 0.3:
            lines.append("")
    return "\n".join(lines) + "\n"


def made_with_children(chance: random.Random) -> str:
    """Return a workflow some of whose steps run workflows in place: with shared and isolated state, inputs, and what comes back."""
    keys = ["k0", "k1", "k2"]
    lines = [
        "name: made",
        "config: {provider: mock, model: m}",
        "state:",
        "  flag: 1",
        "  k0: start",
        "  deep: {x: 5, y: [1, 2]}",
    ]
    lines.append("steps:")
    names: list[str] = []
    outs: list[str] = []
    for number in range(chance.randint(3, 6)):
        name = f"s{number}"
        needs = chance.sample(names, min(len(names), chance.choice([0, 1, 1, 2])))
        depends = [f"    depends_on: [{', '.join(needs)}]"] if needs else []
        seen = [*keys, "deep.x", "deep", *outs]
        reads = " ".join(f"{{state.{chance.choice(seen)}}}" for _ in range(chance.randint(0, 2)))
        if chance.random() < 0.5:
            lines += [f"  - id: {name}", "    type: llm_call", *depends, f'    prompt: "{name} {reads}"']
            lines.append(f"    output: {chance.choice([f'v{name}', *keys])}")
        else:
            lines += [f"  - id: {name}", "    type: subworkflow", *depends, *_call(chance, name, seen)]
            outs.append(f"out{name}.{chance.choice(['r0', 'r1', 'k0', 'deep'])}")
        names.append(name)
    return "\n".join(lines) + "\n"


def _call(chance: random.Random, name: str, seen: list[str]) -> list[str]:
    isolated = chance.random() < 0.6
    lines = ["    isolated_state: true"] if isolated else []
    given: list[str] = []
    if isolated or chance.random() < 0.3:
        values = [
            '"{state.k0}"',
            "state.deep.x",
            '"{state.deep}"',
            "plain words",
            '"of {state.k0} and {state.deep.x}"',
            "[1, {a: 2}]",
        ]
        given = chance.sample(["i0", "i1", "k1", "deep"], chance.randint(0, 3))
        if given:
            lines += ["    input:", *(f"      {key}: {chance.choice(values)}" for key in given)]
    if chance.random() < 0.8:
        lines.append(f"    return_keys: [{', '.join(chance.sample(['r0', 'r1', 'k0'], chance.randint(1, 3)))}]")
    if chance.random() < 0.9:
        lines.append(f"    output: out{name}")
    lines += ["    workflow_inline:", "      name: kid"]
    own = [key for key in ("d0", "k2") if chance.random() < 0.3]
    if own:
        lines += ["      state:", *(f"        {key}: {chance.choice(['7', 'own', '{x: 1}'])}" for key in own)]
    lines.append("      steps:")
    kids: list[str] = []
    for number in range(chance.randint(1, 3)):
        kid = chance.choice([f"c{number}", f"s{number}"])
        if kid in kids:
            kid = f"c{number}"
        needs = chance.sample(kids, min(len(kids), chance.choice([0, 1, 1])))
        known = [
            *given,
            *own,
            "r0",
            "r1",
            *(["k0", "deep.x"] if not isolated else []),
            *[f"steps.{k}.output" for k in needs],
        ]
        forms = ["{state.%s}", "{%s}", "{state.%s}"]
        reads = " ".join(chance.choice(forms) % chance.choice(known) for _ in range(chance.randint(0, 3)))
        lines += [f"        - id: {kid}", "          type: llm_call"]
        if needs:
            lines.append(f"          depends_on: [{', '.join(needs)}]")
        text = f"{name} {number} {reads}".strip()
        lines += (
            [f'          prompt: "{text}"'] if chance.random() < 0.5 else ["          prompt: |", f"            {text}"]
        )
        if chance.random() < 0.85:
            lines.append(f"          output: {chance.choice(['r0', 'r1', 'r0.x', 'k0', 'note'])}")
        kids.append(kid)
    return lines
