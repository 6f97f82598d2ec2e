"""The models that are known by name: for completion in editors and for checks. What isn't listed may exist all the same."""

from __future__ import annotations

from functools import cache
from typing import Literal

from agentloom.providers.pricing import Price, bundled_prices
from agentloom.providers.table import home_of
from agentloom.records import record


@record()
class ModelInfo:
    """One model: the provider whose it is, what it makes, and its price."""

    name: str
    provider: str
    kind: Literal["chat", "embedding"]
    price: Price


@cache
def known_models() -> tuple[ModelInfo, ...]:
    """Return the models of the bundled price table, in its order: by vendor, the newest first."""
    return tuple(
        ModelInfo(name, provider, "embedding" if "embedding" in name else "chat", price)
        for name, price in bundled_prices().prices.items()
        if (provider := home_of(name)) is not None
    )
