"""The table of providers: what each is called, which models it serves, and which variables of the environment set it up.

Importable without any client: analysis and editors ask it too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from agentloom.records import record

Match = Literal["prefix", "contains", "any"]


@record()
class ProviderSpec:
    """One provider. ``names`` are matched against a model's name as ``match`` says; times are in seconds.

    ``key_needed`` is true when the provider can't be used without the variable ``key_env``; ``default_url`` is None when the address
    must be given. ``bare_path`` is added to an address that is only a host. ``module`` holds the client.
    """

    name: str
    match: Match
    names: tuple[str, ...] = ()
    key_env: str | None = None
    key_needed: bool = False
    url_env: str | None = None
    default_url: str | None = None
    bare_path: str = ""
    timeout: float = 60.0
    module: str = ""

    def serves(self, model: str) -> bool:
        """Tell whether the provider takes a model of that name."""
        name = model.lower()
        if self.match == "prefix":
            return name.startswith(self.names)
        return self.match == "any" or any(part in name for part in self.names)


PROVIDERS: tuple[ProviderSpec, ...] = (
    ProviderSpec(
        "openai",
        "prefix",
        ("gpt-", "o1", "o3", "o4", "chatgpt-", "ft:", "text-embedding-"),
        key_env="OPENAI_API_KEY",
        key_needed=True,
        url_env="OPENAI_BASE_URL",
        default_url="https://api.openai.com/v1",
        bare_path="/v1",
        module="openai",
    ),
    ProviderSpec(
        "anthropic",
        "contains",
        ("claude",),
        key_env="ANTHROPIC_API_KEY",
        key_needed=True,
        url_env="ANTHROPIC_BASE_URL",
        default_url="https://api.anthropic.com",
        module="anthropic",
    ),
    ProviderSpec(
        "google",
        "contains",
        ("gemini",),
        key_env="GOOGLE_API_KEY",
        key_needed=True,
        url_env="GOOGLE_BASE_URL",
        default_url="https://generativelanguage.googleapis.com",
        module="google",
    ),
    ProviderSpec(
        "ollama",
        "any",
        url_env="OLLAMA_BASE_URL",
        default_url="http://localhost:11434",
        timeout=120.0,
        module="ollama",
    ),
    ProviderSpec(
        "generic_openai",
        "any",
        key_env="GENERIC_OPENAI_API_KEY",
        url_env="GENERIC_OPENAI_BASE_URL",
        bare_path="/v1",
        module="openai",
    ),
    ProviderSpec("mock", "any", module="mock"),
)

PROVIDER_NAMES: tuple[str, ...] = tuple(spec.name for spec in PROVIDERS)
BY_NAME: dict[str, ProviderSpec] = {spec.name: spec for spec in PROVIDERS}


def home_of(model: str) -> str | None:
    """Return the name of the vendor whose models are called like this; None when any catch-all provider may serve it."""
    for spec in PROVIDERS:
        if spec.match != "any" and spec.serves(model):
            return spec.name
    return None


SHORTEST_KEY = 8
"""Shorter values of the variables for keys are no keys that would have to be hidden, and stand in texts by chance."""

HIDDEN_KEY = "<REDACTED:key>"
"""What stands for a provider's key, should a model or a tool repeat it."""


def keys_in(environ: Mapping[str, str], tables: Iterable[Mapping[str, Any]] = ()) -> tuple[str, ...]:
    """Return the keys of providers that the environment holds; ``tables`` are the settings of providers, which name variables of their own."""
    names = {spec.key_env for spec in PROVIDERS} | {table.get("api_key_env") for table in tables}
    found = (environ.get(name, "").strip() for name in names if isinstance(name, str))
    return tuple(sorted({key for key in found if len(key) >= SHORTEST_KEY}))
