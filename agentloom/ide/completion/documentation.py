"""What an editor shows beside an item when it is looked at, as Markdown; worked out when asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agentloom.ide.prose import calls, names
from agentloom.ide.prose.form import markdown

Explainer = Callable[[tuple[str, ...]], str]

EXPLAINERS: Mapping[str, Explainer] = {
    "text": lambda words: words[0],
    "model": lambda words: markdown(names.of_model(words[0], words[1] if len(words) > 1 else None)),
    "provider": lambda words: markdown(names.of_provider(words[0])),
    "function": lambda words: markdown(calls.of_function(words[0])),
    "method": lambda words: markdown(calls.of_method(words[0])),
    "name": lambda words: markdown(calls.of_root(words[0])),
}
"""By the first word of ``Item.about``; the others are handed over."""


def explain(about: tuple[str, ...]) -> str:
    """Return the Markdown about what an item names; empty when there is nothing to say."""
    explainer = EXPLAINERS.get(about[0]) if about else None
    return explainer(about[1:]) if explainer is not None else ""
