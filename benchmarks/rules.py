"""Print how each rule's time grows: on files of 500 and of 2,000 steps, made of what the rule's own fixture gets wrong.

Times are those of the processor, the best of a few; a rule that is linear takes four times as long for four times as many steps. What a rule
needs of the analyses that rules share (graph, data flow) counts to each that needs it. Rules that the reader and the check of shapes tell are
measured as the whole check of such a file; the others also on a file without faults. Only those that grow faster than the bound, or take long,
have a line of their own, unless ``--all`` is given.
"""

from __future__ import annotations

import gc
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import generate

from agentloom.analysis.analyze import analyze
from agentloom.analysis.context import Context
from agentloom.analysis.document import WorkflowDocument
from agentloom.analysis.rules.registry import RULES, Rule
from agentloom.analysis.settings import find_settings
from agentloom.text import Source
from agentloom.tools.catalogue import BUILTIN_TOOLS

FIXTURES = Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "rules"
FEW, MANY = 500, 2_000
BOUND = 6.0
"""How many times as long 2,000 steps may take as 500: four times would be linear."""
WORTH = 0.05
"""Seconds for 2,000 steps from which a rule has a line of its own."""
LEAST = 0.005
"""Seconds below which the steps of the clock count for more than the rule."""


def repeated(text: str, count: int) -> str | None:
    """Return a workflow whose steps are repeated until there are ``count``, under names of their own; None for files that have none."""
    text = re.sub(r"^[ \t]*#.*\n", "", text, flags=re.MULTILINE) + "\n"
    found = re.search(r"^steps:[ \t]*\n(?P<steps>(?:(?:[ \t-].*)?\n)+)", text, re.MULTILINE)
    if found is None:
        return None
    steps = found["steps"]
    size = len(re.findall(r"^ *- (?:&\w+\s+|\{)?(?:id|type)\b", steps, re.MULTILINE)) or steps.count("- ") or 1
    names = set(re.findall(r"\b(?:id|output): *[\"']?([A-Za-z_][\w-]*)", steps))
    choice = "|".join(sorted(map(re.escape, names), key=len, reverse=True)) or "(?!)"
    word = re.compile(rf"(?<![\w-])({choice})(?![\w-])")
    parts = [word.sub(rf"\g<1>_{at}", steps) for at in range(max(1, count // size))]
    return text[: found.start("steps")] + "".join(parts) + text[found.end("steps") :]


def check(text: str, path: Path) -> WorkflowDocument:
    """Return the document of a text that might lie at a path."""
    return analyze(Source(str(path), text), Context(settings=find_settings(path), tools=BUILTIN_TOOLS), kind="workflow")


def seconds(rule: Rule, make: Callable[[], WorkflowDocument], turns: int) -> float:
    """Return the processor's seconds for one rule, on a document of which other rules have told it nothing; the best of some turns."""
    best = float("inf")
    document = make() if rule.check is not None else None
    for _ in range(turns):
        if document is not None:
            for name in [name for name in document.__dict__ if name.startswith("_")]:
                del document.__dict__[name]
        start = time.process_time()
        if document is None or rule.check is None:
            make()
        elif rule.scope == "document":
            list(rule.check(document))
        else:
            facts = [step.facts for step in document.steps]
            for one in [document.head, *facts] if rule.scope == "mapping" else facts:
                list(rule.check(one))
        best = min(best, time.process_time() - start)
    return best


def growth(rule: Rule, clean: dict[int, WorkflowDocument]) -> list[tuple[str, float, float]]:
    """Return for each file that a rule is tried on what it is, and the seconds for few and for many steps."""
    path = FIXTURES / rule.code / "bad.yaml"
    text = path.read_text(encoding="utf-8") if path.exists() and rule.scope != "driver" else ""
    found: list[tuple[str, float, float]] = []
    few, many = repeated(text, FEW), repeated(text, MANY)
    if few is not None and many is not None:
        found.append(
            ("its own", seconds(rule, lambda: check(few, path), 3), seconds(rule, lambda: check(many, path), 2))
        )
    if rule.check is not None:
        found.append(("clean", seconds(rule, lambda: clean[FEW], 3), seconds(rule, lambda: clean[MANY], 2)))
    return found


def rules(everything: bool = False) -> int:
    """Print the table; return how many rules grow faster than they may."""
    chains = Path("chains.loom.yaml")
    clean = {count: check(generate.many_steps(count * 7), chains) for count in (FEW, MANY)}
    gc.freeze()
    print(f"{'rule':<34} {'file':<8} {FEW:>9} {MANY:>9}   ratio  bound: {BOUND:g}x")
    tried, beyond, fastest = 0, 0, (0.0, "")
    for rule in RULES:
        for name, few, many in growth(rule, clean):
            ratio = many / max(few, 1e-6)
            matters = many > LEAST
            over = matters and ratio > BOUND
            tried, beyond = tried + 1, beyond + over
            if matters:
                fastest = max(fastest, (ratio, f"{rule.code}, {name}"))
            if everything or over or many > WORTH:
                what = f"{rule.code} {rule.name:<28} {name:<8} {few * 1e3:6.1f} ms {many * 1e3:6.1f} ms"
                print(f"{what} {ratio:6.1f}x{'  <--' * over}", flush=True)
    print(f"{tried} measurements; the fastest growth is {fastest[0]:.1f}x ({fastest[1]}); {beyond} beyond the bound")
    return beyond


if __name__ == "__main__":
    rules("--all" in sys.argv)
