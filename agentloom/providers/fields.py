"""What settings may say of a provider: checked the same by who reads the settings and by who sets providers up.

Importable without any client: analysis and editors ask it too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentloom.providers.table import BY_NAME, PROVIDER_NAMES
from agentloom.similar import closest

TEXT, FLAG, COUNT, TEXTS, ALIASES = (
    "a text",
    "true or false",
    "a whole number from 1 up",
    "a list of texts",
    "a table of texts",
)
FIELDS: Mapping[str, str] = {
    "base_url": TEXT,
    "api_key_env": TEXT,
    "models": TEXTS,
    "model_aliases": ALIASES,
    "priority": COUNT,
    "fallback": FLAG,
    "max_rpm": COUNT,
    "max_tpm": COUNT,
    "max_concurrent": COUNT,
}
"""The keys of a provider's table, and what the value of each must be."""


def faults(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the keys of a provider's table whose values can't be used, and what each must be. None stands for a key that isn't there."""
    for key, wanted in FIELDS.items():
        value = table.get(key)
        if value is not None and not _fits(value, wanted):
            yield key, wanted


def why_unknown(name: str, table: Mapping[str, Any]) -> str | None:
    """Return why a provider of that name can't be set up; None when it can. A name of one's own is an OpenAI-compatible server."""
    if name == "mock":
        return "`providers.mock` can't be set up in the settings; choose it with `provider: mock`"
    if name in BY_NAME or table.get("base_url") is not None:
        return None
    near = closest(name, PROVIDER_NAMES)
    cure = f"did you mean `{near}`?" if near else "an OpenAI-compatible server needs a `base_url`"
    return f"unknown provider `{name}` in the settings; {cure}"


def _fits(value: Any, wanted: str) -> bool:
    if wanted == TEXT:
        return isinstance(value, str) and value != ""
    if wanted == FLAG:
        return isinstance(value, bool)
    if wanted == COUNT:
        return type(value) is int and value >= 1
    if wanted == TEXTS:
        return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
    return isinstance(value, Mapping) and all(isinstance(item, str) for item in value.values())
