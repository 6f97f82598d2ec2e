"""What an editor shows beside an item when it is looked at, as Markdown; worked out when asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping

Explainer = Callable[[tuple[str, ...]], str]

EXPLAINERS: Mapping[str, Explainer] = {
    "text": lambda words: words[0],
}
"""By the first word of ``Item.about``; the others are handed over."""


def explain(about: tuple[str, ...]) -> str:
    """Return the Markdown about what an item names; empty when there is nothing to say."""
    explainer = EXPLAINERS.get(about[0]) if about else None
    return explainer(about[1:]) if explainer is not None else ""
