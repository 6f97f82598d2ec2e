"""What a run came to, in a few lines: status, duration, tokens, cost, one line per step, the keys of the final state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agentloom.cli.cells import draw, visible
from agentloom.cli.console import BOLD, DIM, GREEN, RED, YELLOW, Look
from agentloom.cli.tables import columns, count
from agentloom.core.results import StepResult, WorkflowResult

RUN_MARKS = {
    "success": "[OK]",
    "failed": "[FAIL]",
    "timeout": "[TIMEOUT]",
    "budget_exceeded": "[BUDGET]",
    "paused": "[PAUSED]",
    "cancelled": "[CANCELLED]",
}
STEP_MARKS = {"success": "[OK]", "skipped": "[SKIP]", "paused": "[PAUSED]"}
OTHER_STEP_MARK = "[FAIL]"

MARK_STYLES = {"[OK]": GREEN, "[SKIP]": DIM, "[PAUSED]": YELLOW}

LONGEST_ERROR = 400
"""Characters of an error that are shown; the whole of it is in the log and in ``--json``."""

MOST_KEYS = 20


def summary(result: WorkflowResult, look: Look, resumed: bool = False) -> Iterator[str]:
    """Yield the lines about a finished run; where it was ``resumed``, a step that ran out of time has a mark of its own."""
    mark = RUN_MARKS.get(result.status, "[FAIL]")
    yield f"{look.paint(mark, MARK_STYLES.get(mark, RED))} {look.paint(visible(result.workflow_name, look.encoding), BOLD)}"
    rows = [
        ("status", result.status),
        ("duration", seconds(result.total_duration_ms)),
        ("tokens", str(result.total_tokens)),
        ("cost", dollars(result.total_cost_usd)),
    ]
    if result.error:
        rows.append(("error", one_line(result.error, look)))
    yield from columns(rows)
    yield from _steps(result, look, {**STEP_MARKS, "timeout": RUN_MARKS["timeout"]} if resumed else STEP_MARKS)
    keys = [key for key in result.final_state if key != "steps"]
    more = f" and {len(keys) - MOST_KEYS} more" if len(keys) > MOST_KEYS else ""
    yield from columns([("state", visible(", ".join(keys[:MOST_KEYS]), look.encoding) + more or "empty")], gap=5)


def _steps(result: WorkflowResult, look: Look, marks: Mapping[str, str]) -> Iterator[str]:
    if not result.step_results:
        return
    yield "  steps"
    edge = max(draw(visible(name, look.encoding), look.encoding).width for name in result.step_results)
    told = {name: marks.get(step.status, OTHER_STEP_MARK) for name, step in result.step_results.items()}
    widest = max(8, *map(len, told.values()))
    for name, step in result.step_results.items():
        mark = told[name]
        shown = visible(name, look.encoding)
        pad = " " * (edge - draw(shown, look.encoding).width)
        line = (
            f"    {look.paint(f'{mark:{widest}}', MARK_STYLES.get(mark, RED))} {shown}{pad}  {step_facts(step, look)}"
        )
        yield line.rstrip()


def step_facts(step: StepResult, look: Look) -> str:
    """Return how long a step took and what it cost, or what went wrong."""
    facts = [] if step.status == "skipped" else [seconds(step.duration_ms)]
    if step.token_usage.total_tokens:
        facts.append(count(step.token_usage.total_tokens, "token"))
    if step.cost_usd:
        facts.append(dollars(step.cost_usd))
    if step.error:
        facts.append(one_line(step.error, look))
    return "  ".join(facts)


def one_line(text: str, look: Look) -> str:
    """Return a text on one line, cut at a length that can be read."""
    line = visible(" ".join(text.split()), look.encoding)
    return line if len(line) <= LONGEST_ERROR else line[:LONGEST_ERROR] + look.more


def seconds(milliseconds: float) -> str:
    """Return a duration for people: `42ms`, `1.42s`, `12.3s`, `2m 05s`."""
    value = milliseconds / 1000
    if milliseconds < 999.5:
        return f"{milliseconds:.0f}ms"
    if value < 10:
        return f"{value:.2f}s"
    if value < 99.95:
        return f"{value:.1f}s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes:02}m {rest:02}s" if hours else f"{minutes}m {rest:02}s"


def dollars(amount: float) -> str:
    """Return a sum in US dollars with four decimals, as budgets are reported; with six where those would show next to nothing."""
    return f"${amount:.6f}" if 0 < amount < 0.001 else f"${amount:.4f}"
