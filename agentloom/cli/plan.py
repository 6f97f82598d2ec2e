"""``agentloom plan``: what a workflow will do, before it does it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import click

from agentloom.cli.cells import draw, visible
from agentloom.cli.check import NONE, count_severities, rendered
from agentloom.cli.console import BOLD, DIM, ColorChoice, Look, is_unicode, look_of, print_json
from agentloom.cli.loading import load
from agentloom.cli.options import COLOR, STDIN_FILENAME
from agentloom.cli.tables import columns, count, in_words
from agentloom.diagnostics import Severity
from agentloom.ide.overview import Overview, StepView, as_data, models_of, overview

FORMATS = ("text", "json", "mermaid", "svg")


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, readable=False, allow_dash=True))
@click.option(
    "-f", "--format", "format_", type=click.Choice(FORMATS), default="text", show_default=True, help="For whom."
)
@STDIN_FILENAME
@COLOR
def command(file: str, format_: str, stdin_filename: str | None, color: ColorChoice) -> None:
    """Show what a workflow will do: layers, critical path, worst-case attempts and times, models and costs, what flows.

    FILE may be `-` for standard input. A bound that can't be known is told as such; a budget is no bound, the last call may cross it.

    Exit codes: 0 done; 1 the file has errors, or can't be read; 2 wrong usage.
    """
    shown, document = load(file, stdin_filename, "workflow")
    if not document.ok:
        errors = [found for found in document.diagnostics if found.severity is Severity.ERROR]
        for line in rendered(errors, shown, document, look_of(sys.stderr, color)):
            print(line, file=sys.stderr)
        print(f"{shown}: {in_words((count_severities(errors)[0], *NONE[1:]))}; there is no plan", file=sys.stderr)
        raise click.exceptions.Exit(1)
    from agentloom.providers.pricing import prices_for

    view = overview(document, prices_for(os.environ))
    look = look_of(sys.stdout, color)
    if format_ == "text":
        for line in _text(view, look):
            print(line)
    elif format_ == "json":
        print_json(as_data(view))
    else:
        from agentloom.drawing import mermaid, svg
        from agentloom.ide.picture import picture

        drawn = picture(document, view.critical)
        sys.stdout.flush()
        text = svg.svg(drawn) if format_ == "svg" else mermaid.mermaid(drawn)
        sys.stdout.buffer.write(text.encode("utf-8", "replace"))
        sys.stdout.buffer.flush()


def _text(view: Overview, look: Look) -> Iterator[str]:
    yield f"{look.paint(visible(view.name, look.encoding), BOLD)}: {count(len(view.steps), 'step')}, {count(len(view.layers), 'layer')}"
    yield from columns(list(_summary(view, look)))
    names = [visible(step.id, look.encoding) for step in view.steps]
    edge = max((draw(name, look.encoding).width for name in names), default=0)
    layer = 0
    for step, name in zip(view.steps, names, strict=True):
        if step.layer != layer:
            layer = step.layer
            yield ""
            yield look.paint(f"layer {layer}", DIM)
        mark = "*" if step.critical else " "
        pad = " " * (edge - draw(name, look.encoding).width)
        yield f"{mark} {look.paint(name, BOLD)}{pad}  {step.type}{_costs(step)}; {_times(step)}"
        for word, paths in (("reads", step.reads), ("writes", step.writes)):
            if paths:
                yield f"    {word} {visible(', '.join(paths), look.encoding)}"


def _summary(view: Overview, look: Look) -> Iterator[tuple[str, str]]:
    arrow = " → " if is_unicode(look.encoding) else " -> "
    yield "critical path (*)", visible(arrow.join(view.critical), look.encoding)
    if view.worst.total is None:
        names = ", ".join(view.worst.unlimited[:3])
        more = f" and {len(view.worst.unlimited) - 3} more" if len(view.worst.unlimited) > 3 else ""
        yield "worst case", visible(f"no limit: {names}{more} may take any time", look.encoding)
    else:
        yield "worst case", seconds(view.worst.total)
    yield "waits between attempts", f"up to {seconds(view.worst.waits)}"
    if view.timeout is not None:
        yield "timeout of the run", seconds(view.timeout)
    yield "cost", _bound(view)
    for model, calls, steps in models_of(view.steps):
        price = (
            "no price, counts as free"
            if calls.price is None
            else f"${calls.price.input * 1000:g} in, ${calls.price.output * 1000:g} out per million tokens"
        )
        yield "model", visible(f"{model}: {count(steps, 'step')}, {price}", look.encoding)


def _bound(view: Overview) -> str:
    bound = "can't be known" if view.bound is None else f"at most ${view.bound:.4f}"
    return bound if view.budget is None else f"{bound}; the run stops beyond ${view.budget:.4f}"


def _costs(step: StepView) -> str:
    if step.calls is None:
        return ""
    if step.calls.price is None:
        return f", {step.calls.model}"
    return f", {step.calls.model}, " + (
        f"at most ${step.calls.bound:.4f}" if step.calls.bound is not None else f"cost unknown: {step.calls.why}"
    )


def _times(step: StepView) -> str:
    found = step.effort
    attempts = count(found.attempts, "attempt")
    if found.inside > found.attempts:
        attempts += f", {found.inside} of {'.'.join(found.path)}"
    if found.waiting:
        attempts += f", waits up to {seconds(found.waiting)}"
    if found.total is None:
        return f"{attempts}, no time limit"
    return f"{attempts}, at most {seconds(found.total)}" if found.total else attempts


def seconds(value: float) -> str:
    """Return a time in words that fit its size: `0.5 s`, `90 s`, `12 min`, `3 h 20 min`."""
    if value < 120:
        return f"{value:.1f} s".replace(".0 s", " s")
    minutes = round(value / 60)
    if minutes < 120:
        return f"{minutes} min"
    hours, left = divmod(minutes, 60)
    return f"{hours:,} h" + (f" {left} min" if left and hours < 100 else "")
