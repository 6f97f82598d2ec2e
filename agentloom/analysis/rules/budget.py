"""Rules about `budget_usd`: budgets that never stop anything, and one that stops everything."""

from __future__ import annotations

from collections.abc import Iterator

from agentloom.analysis.document import WorkflowDocument
from agentloom.analysis.effort import mapping, number
from agentloom.analysis.rules.places import config_span
from agentloom.diagnostics import Finding
from agentloom.text import Span

_CALLING = ("llm_call", "embed")


def budget_never_binds(document: WorkflowDocument) -> Iterator[Finding]:
    """A model has no price, so calls of it cost nothing, and `budget_usd` never stops them.

    Prices come from a table that ships with agentloom; a model newer than the table, or with a mistake in its name, costs 0 there. Local
    models are free and not meant, unless no model of the file has a price.

    Correct the model's name, or give it a price in a table of your own (`AGENTLOOM_PRICING_FILE`).
    """
    config = mapping(document.head.data.get("config"))
    budget = number(config.get("budget_usd"))
    if budget is None or budget <= 0:
        return
    from agentloom.providers.pricing import bundled_prices  # only for files with a budget
    from agentloom.providers.table import home_of

    prices = bundled_prices()
    default = config.get("model", "gpt-4o-mini")
    provider = config.get("provider", "openai")
    priced = 0
    local: list[str] = []
    told: set[Span] = set()
    for step in document.steps:
        if step.type not in _CALLING:
            priced += step.type in ("agent", "subworkflow")  # what these cost isn't known here
            continue
        own = step.facts.data.get("model")
        model = own or default
        if not isinstance(model, str) or prices.find(model) is not None:
            priced += 1
            continue
        if provider in ("ollama", "generic_openai") or home_of(model) is None:
            local.append(model)
            continue
        priced += 1
        span = step.place(step.facts.span_of("model")) if own else config_span(document, "model")
        if span is not None and span not in told:
            told.add(span)
            yield Finding(
                "AL511",
                span,
                f"`{model}` has no price, so it costs 0 and `budget_usd` never stops it; correct the name or price it",
            )
    span = config_span(document, "budget_usd")
    if local and not priced and provider != "mock" and span is not None:
        yield Finding(
            "AL511",
            span,
            f"no model here has a price (`{local[0]}` costs 0), so this budget never stops anything; remove it",
        )


def budget_stops_everything(document: WorkflowDocument) -> Iterator[Finding]:
    """`budget_usd` is 0, so the first step is refused.

    A step is refused once the spend has reached the limit, and 0 is reached before anything ran.

    Raise it, or remove it for no limit.
    """
    budget = number(mapping(document.head.data.get("config")).get("budget_usd"))
    span = config_span(document, "budget_usd")
    if budget == 0 and span is not None:
        yield Finding(
            "AL512", span, "a budget of 0 is reached before the first step, so nothing runs; raise or remove it"
        )
