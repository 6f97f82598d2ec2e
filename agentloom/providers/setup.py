"""Sets up the gateway of a run: which providers are registered, from the environment or from the project's settings."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentloom.errors import UsageError, WorkflowError
from agentloom.providers.base import Provider
from agentloom.providers.fields import base_url, faults
from agentloom.providers.gateway import (
    PRIORITY_CHOSEN,
    PRIORITY_FALLBACK,
    PRIORITY_OTHER,
    Absent,
    ProviderGateway,
)
from agentloom.providers.mock import LatencyModel, MockProvider
from agentloom.providers.rates import NO_LIMIT, REQUESTS_A_MINUTE, TOKENS_A_MINUTE, Limit
from agentloom.providers.recording import Recording, load_recording
from agentloom.providers.secret import Secret
from agentloom.providers.table import BY_NAME, PROVIDER_NAMES, PROVIDERS, ProviderSpec
from agentloom.records import record
from agentloom.similar import closest

if TYPE_CHECKING:
    from agentloom.providers.pricing import PriceTable

OLLAMA_FALLBACK_ENV = "AGENTLOOM_OLLAMA_FALLBACK"

log = logging.getLogger(__name__)


@record()
class _Plan:
    """One provider to register, as the environment or the settings describe it."""

    spec: ProviderSpec
    name: str
    priority: int
    is_fallback: bool = False
    base_url: str | None = None
    key_env: str | None = None
    models: tuple[str, ...] | None = None
    model_aliases: Mapping[str, str] = field(default_factory=dict)
    stated: Limit = NO_LIMIT


def gateway_for(
    config_provider: str,
    environ: Mapping[str, str],
    settings_providers: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    responses: Path | Recording | None = None,
    latency_model: LatencyModel = "constant",
    latency_ms: float = 0.0,
    seed: int | None = None,
    strict: bool = False,
    offline: bool = False,
    into: ProviderGateway | None = None,
) -> ProviderGateway:
    """Return the gateway for a run whose `config.provider` is ``config_provider``.

    `mock` stands alone: nothing else is registered, so such a run never touches the network; ``responses`` is its recording, to which it
    keeps in every word if ``strict``. ``offline`` is for replays: nothing reaches out, webhooks included.
    ``into`` is a gateway to be set up, instead of a new one.
    Otherwise the providers of ``settings_providers``, or without any those that ``environ`` sets up. Keys are read from ``environ`` only.
    Raises ``WorkflowError`` for an unknown provider and for a responses file that is missing or malformed, ``UsageError`` for
    settings, variables and price tables that can't be used.
    """
    gateway = ProviderGateway(offline=offline) if into is None else into
    if config_provider == "mock":
        recording = load_recording(responses) if isinstance(responses, Path) else responses
        if offline and recording is not None:
            gateway.downloads = recording.downloads
        mock = MockProvider(
            recording, latency_model=latency_model, latency_ms=latency_ms, seed=seed, strict=strict, by_attempt=offline
        )
        gateway.register(mock, PRIORITY_CHOSEN, max_rpm=None, max_tpm=None)
        return gateway
    from agentloom.providers.pricing import prices_for  # a mock run pays by its recording

    settings = settings_providers or {}
    _check_chosen(config_provider, settings)
    plans = (
        _plans_from_settings(config_provider, settings) if settings else _plans_from_environ(config_provider, environ)
    )
    prices = prices_for(environ)
    for plan in plans:
        _register(gateway, plan, environ, prices, chosen=plan.name == config_provider)
    if settings and config_provider not in settings:
        gateway.mark_absent(
            Absent(
                config_provider, f"add `providers.{config_provider}` to the settings", BY_NAME[config_provider].serves
            )
        )
    if config_provider not in gateway.providers and gateway.providers:
        cure = gateway.cure_for(config_provider)
        log.warning("Provider '%s' is not available%s", config_provider, f": {cure}" if cure else "")
    return gateway


def _check_chosen(name: str, settings: Mapping[str, Mapping[str, Any]]) -> None:
    spec = BY_NAME.get(name)
    if spec is None:
        if name in settings:
            return
        known = (*PROVIDER_NAMES, *settings)
        near = closest(name, known)
        cure = f"did you mean `{near}`?" if near else "known are " + ", ".join(f"`{word}`" for word in PROVIDER_NAMES)
        raise WorkflowError(f"unknown provider `{name}`; {cure}")


def _plans_from_environ(chosen: str, environ: Mapping[str, str]) -> list[_Plan]:
    plans: list[_Plan] = []
    for spec in PROVIDERS:
        if spec.name == "mock":
            continue
        fallback = spec.name == "ollama" and spec.name != chosen
        if fallback and environ.get(OLLAMA_FALLBACK_ENV, "").strip().lower() not in ("1", "true", "yes", "on"):
            continue
        priority = PRIORITY_CHOSEN if spec.name == chosen else PRIORITY_FALLBACK if fallback else PRIORITY_OTHER
        plans.append(_Plan(spec, spec.name, priority, fallback, key_env=spec.key_env))
    return plans


def _plans_from_settings(chosen: str, settings: Mapping[str, Mapping[str, Any]]) -> list[_Plan]:
    plans: list[_Plan] = []
    for name, table in settings.items():
        if fault := next(faults(name, table), None):
            raise UsageError(fault[1])
        spec = BY_NAME.get(name) or BY_NAME["generic_openai"]
        fallback = table.get("fallback") is True
        priority = table.get("priority") or (PRIORITY_FALLBACK if fallback else PRIORITY_OTHER)
        if name == chosen:
            # What the workflow chose is tried first, whatever the project prefers.
            priority, fallback = PRIORITY_CHOSEN, False
        plans.append(
            _Plan(
                spec,
                name,
                priority,
                fallback,
                table.get("base_url"),
                table.get("api_key_env") or (spec.key_env if spec.name == name else None),
                table.get("models"),
                table.get("model_aliases") or {},
                _limit(table),
            )
        )
    return plans


def stated_limits(gateway: ProviderGateway, settings_providers: Mapping[str, Mapping[str, Any]]) -> dict[str, Limit]:
    """Return the limits that settings state of a gateway's providers, by name; what isn't stated has its default there, and isn't in it."""
    found = {name: _limit(table) for name, table in settings_providers.items() if name in gateway.providers}
    return {name: limit for name, limit in found.items() if limit != NO_LIMIT}


def _register(
    gateway: ProviderGateway, plan: _Plan, environ: Mapping[str, str], prices: PriceTable, *, chosen: bool
) -> None:
    spec = plan.spec
    key = _key(plan.key_env, environ)
    url, url_name = _address(plan, environ)
    if missing := _missing(plan, key, url):
        gateway.mark_absent(Absent(plan.name, missing, spec.serves, chosen or spec.match != "any"))
        return
    address = base_url(url or spec.default_url or "", url_name, spec.bare_path)
    gateway.register(
        _build(plan, address, key, prices),
        plan.priority,
        plan.is_fallback,
        plan.models,
        plan.model_aliases,
        plan.stated.requests or REQUESTS_A_MINUTE,
        plan.stated.tokens or TOKENS_A_MINUTE,
        max_concurrent=plan.stated.concurrent,
    )


def _address(plan: _Plan, environ: Mapping[str, str]) -> tuple[str | None, str]:
    """Return the address that is given for a provider, and the name of the setting or variable that it comes from."""
    url_env = plan.spec.url_env if plan.spec.name == plan.name else None
    if plan.base_url is None and url_env is not None:
        return environ.get(url_env, "").strip() or None, url_env
    return plan.base_url, f"providers.{plan.name}.base_url"


def _missing(plan: _Plan, key: Secret | None, url: str | None) -> str:
    """Return what is to be set before a provider can be asked; nothing when all is there."""
    spec = plan.spec
    if (spec.key_needed or (plan.key_env and plan.key_env != spec.key_env)) and key is None:
        return f"set {plan.key_env} to use `{plan.name}`"
    if url is None and spec.default_url is None:
        return f"set {spec.url_env if spec.name == plan.name else None} to use `{plan.name}`"
    return ""


def missing_for(
    name: str, environ: Mapping[str, str], settings_providers: Mapping[str, Mapping[str, Any]] | None = None
) -> str:
    """Return what is to be set before a provider can be asked in a run that chose it; nothing when all is there.

    Raises ``UsageError`` for settings and variables that can't be used.
    """
    settings = settings_providers or {}
    plans = _plans_from_settings(name, settings) if settings else _plans_from_environ(name, environ)
    for plan in plans:
        if plan.name == name:
            return _missing(plan, _key(plan.key_env, environ), _address(plan, environ)[0])
    return f"add `providers.{name}` to the settings"


def _build(plan: _Plan, address: str, key: Secret | None, prices: PriceTable) -> Provider:
    """Return the client. Its module is imported only here: a mock run needs no HTTP."""
    if plan.spec.module == "openai":
        from agentloom.providers.openai import OpenAIProvider

        return OpenAIProvider(address, key, name=plan.name, spec=plan.spec, prices=prices)
    if plan.spec.module == "anthropic":
        from agentloom.providers.anthropic import AnthropicProvider

        return AnthropicProvider(address, key, name=plan.name, spec=plan.spec, prices=prices)
    if plan.spec.module == "google":
        from agentloom.providers.google import GoogleProvider

        return GoogleProvider(address, key, name=plan.name, spec=plan.spec, prices=prices)
    from agentloom.providers.ollama import OllamaProvider

    return OllamaProvider(address, key, name=plan.name)


def _key(name: str | None, environ: Mapping[str, str]) -> Secret | None:
    if name is None:
        return None
    value = environ.get(name, "").strip()
    if not value:
        return None
    if not (value.isascii() and value.isprintable()) or " " in value:
        raise UsageError(f"`{name}` holds characters that no key has; set it again without spaces and line breaks")
    return Secret(value)


def _limit(table: Mapping[str, Any]) -> Limit:
    """Return the limits that are stated."""
    return Limit(*(table.get(key) for key in ("max_rpm", "max_tpm", "max_concurrent")))
