"""Setting up a run's gateway: from the environment or from the project's settings (PR-2, PR-4, PR-5)."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentloom.errors import AgentLoomError, ProviderError, UsageError, WorkflowError
from agentloom.providers.base import Message, Request
from agentloom.providers.fields import base_url
from agentloom.providers.gateway import ProviderGateway
from agentloom.providers.setup import gateway_for
from agentloom.providers.table import BY_NAME, PROVIDER_NAMES, home_of
from tests.wire.server import KEY, REPLY, WireServer

pytestmark = pytest.mark.anyio

OPENAI = {"OPENAI_API_KEY": KEY}
GENERIC = {"GENERIC_OPENAI_BASE_URL": "http://127.0.0.1:9"}


def ask(model: str = "gpt-4o-mini") -> Request:
    return Request(model, [Message("user", "hello")], step_id="a")


def names(gateway: ProviderGateway, model: str = "gpt-4o-mini") -> list[str]:
    return [provider.name for provider in gateway.candidates(model)]


async def refusal(gateway: ProviderGateway, model: str = "gpt-4o-mini") -> str:
    with pytest.raises(ProviderError) as caught:
        await gateway.complete(ask(model))
    assert caught.value.permanent
    return str(caught.value)


# ── which provider serves which model ──


@pytest.mark.parametrize(
    ("model", "home"),
    [
        ("gpt-4o-mini", "openai"),
        ("o1", "openai"),
        ("o3-mini", "openai"),
        ("o4-mini", "openai"),
        ("claude-sonnet-4-5", "anthropic"),
        ("us.anthropic.claude-opus-4", "anthropic"),
        ("gemini-2.5-pro", "google"),
        ("models/gemini-3-flash", "google"),
        ("text-embedding-3-small", "openai"),
        ("gemini-embedding-001", "google"),
        ("llama3.2", None),
        ("mistral-large", None),
        ("my-gpt-4", None),
        ("o2", None),
        ("", None),
    ],
)
def test_models_have_a_home(model: str, home: str | None) -> None:
    """PR-1, PR-3; what nobody owns goes to Ollama or an OpenAI-compatible server."""
    assert home_of(model) == home
    for name in ("ollama", "generic_openai", "mock"):
        assert BY_NAME[name].serves(model)


# ── from the environment ──


def test_providers_are_discovered_from_the_environment() -> None:
    """The chosen first, the others after it; nothing without its key or its address."""
    assert gateway_for("openai", {}).providers == ()
    assert gateway_for("openai", OPENAI).providers == ("openai",)
    assert gateway_for("openai", OPENAI | GENERIC).providers == ("openai", "generic_openai")
    assert gateway_for("generic_openai", OPENAI | GENERIC).providers == ("generic_openai", "openai")
    assert names(gateway_for("generic_openai", OPENAI | GENERIC), "llama3") == ["generic_openai"]


@pytest.mark.parametrize("word", ["1", "true", "YES", " on "])
def test_ollama_takes_part_if_it_is_chosen_or_may_be_the_last_resort(word: str) -> None:
    """PR-2: needs no key and no address; after all others unless it is chosen."""
    assert gateway_for("ollama", {}).providers == ("ollama",)
    assert gateway_for("ollama", OPENAI).providers == ("ollama", "openai")
    last = {"AGENTLOOM_OLLAMA_FALLBACK": word}
    assert gateway_for("openai", OPENAI | GENERIC | last).providers == ("openai", "generic_openai", "ollama")
    assert names(gateway_for("openai", last)) == ["ollama"]


@pytest.mark.parametrize("word", ["", "0", "no", "false", "2"])
def test_ollama_stays_away_otherwise(word: str) -> None:
    """PR-2: nobody wants to wait for a server that doesn't run."""
    assert gateway_for("openai", OPENAI | {"AGENTLOOM_OLLAMA_FALLBACK": word}).providers == ("openai",)


def test_ollama_in_the_settings() -> None:
    """PR-5: with an address of its own, aliases and a key of a proxy."""
    table = {
        "ollama": {"base_url": "http://gpu:11434", "model_aliases": {"gpt-4o-mini": "llama3.2"}, "api_key_env": "PROXY"}
    }
    gateway = gateway_for("ollama", {"PROXY": "secret"}, table)
    assert gateway.providers == ("ollama",)
    assert gateway_for("ollama", {}, table).providers == ()


@pytest.mark.parametrize("value", ["", "  ", "\n"])
def test_an_empty_variable_is_no_variable(value: str) -> None:
    """As in shells."""
    assert gateway_for("openai", {"OPENAI_API_KEY": value, "GENERIC_OPENAI_BASE_URL": value}).providers == ()


async def test_a_missing_key_is_named() -> None:
    """The variable to set, and no other provider."""
    said = await refusal(gateway_for("openai", {}))
    assert said == "No provider registered for model 'gpt-4o-mini'; set OPENAI_API_KEY to use `openai`"
    said = await refusal(gateway_for("generic_openai", {}), "llama3")
    assert said == "No provider registered for model 'llama3'; set GENERIC_OPENAI_BASE_URL to use `generic_openai`"
    said = await refusal(gateway_for("openai", OPENAI), "claude-sonnet-4-5")
    assert said == ("No provider registered for model 'claude-sonnet-4-5'; set ANTHROPIC_API_KEY to use `anthropic`")
    assert await refusal(gateway_for("openai", OPENAI), "llama3") == "No provider registered for model 'llama3'"


def test_a_chosen_provider_that_is_not_available_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """When another one will answer instead, nobody should be surprised."""
    assert names(gateway_for("openai", GENERIC)) == ["generic_openai"]
    assert caplog.messages == ["Provider 'openai' is not available: set OPENAI_API_KEY to use `openai`"]


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("opnai", "did you mean `openai`?"),
        ("OpenAI", "did you mean `openai`?"),
        ("bedrock", "known are `openai`, `anthropic`, `google`, `ollama`, `generic_openai`, `mock`"),
    ],
)
def test_an_unknown_provider_is_refused(name: str, cure: str) -> None:
    """Whatever keys there are: never another provider in its place."""
    with pytest.raises(WorkflowError) as caught:
        gateway_for(name, OPENAI)
    assert caught.value.exit_code == 1
    assert str(caught.value) == f"unknown provider `{name}`; {cure}"
    assert len(PROVIDER_NAMES) == 6


async def test_a_whole_call_through_the_environment() -> None:
    """A bare host gets `/v1`; the price table is the user's."""
    with WireServer() as server:
        gateway = gateway_for("openai", {"OPENAI_API_KEY": f" {KEY}\n", "OPENAI_BASE_URL": server.host})
        response = await gateway.complete(ask())
        await gateway.close()
    assert response.content == REPLY
    assert response.cost_usd == pytest.approx((1 * 0.00015 + 8 * 0.0006) / 1000)
    assert server.requests[0].path == "/v1/chat/completions"


async def test_prices_of_ones_own(tmp_path: Path) -> None:
    """`AGENTLOOM_PRICING_FILE` is read when the gateway is set up; a broken one is told at once."""
    path = tmp_path / "prices.yaml"
    path.write_text("gpt-4o-mini: {input: 1000, output: 0}\n", encoding="utf-8")
    with WireServer() as server:
        environ = {**OPENAI, "OPENAI_BASE_URL": server.url, "AGENTLOOM_PRICING_FILE": str(path)}
        gateway = gateway_for("openai", environ)
        assert (await gateway.complete(ask())).cost_usd == 1.0
        await gateway.close()
    path.write_text("gpt-4o-mini:\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"prices\.yaml:1`: `gpt-4o-mini` has no `input`"):
        gateway_for("openai", environ)


# ── addresses and keys ──


@pytest.mark.parametrize(
    ("url", "whole"),
    [
        ("http://localhost:8000", "http://localhost:8000/v1"),
        ("http://localhost:8000/", "http://localhost:8000/v1"),
        ("https://host/v1", "https://host/v1"),
        ("https://host/v1/", "https://host/v1"),
        ("https://host/openai/deployments/x?api-version=1", "https://host/openai/deployments/x?api-version=1"),
        ("https://host?x=1#part", "https://host/v1?x=1"),
        ("http://[::1]:8000", "http://[::1]:8000/v1"),
    ],
)
def test_a_bare_host_gets_v1_and_any_path_is_kept(url: str, whole: str) -> None:
    """PR-4."""
    assert base_url(url, "X", "/v1") == whole


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8000",
        "ftp://host",
        "https://",
        "http://[broken",
        "http://host:99999",
        "http://a b",
        "https://h/\nx",
        "sk-key",
    ],
)
def test_an_address_that_is_none_is_refused_without_repeating_it(url: str) -> None:
    """It may be a key in the wrong variable."""
    with pytest.raises(UsageError) as caught:
        gateway_for("openai", {**OPENAI, "OPENAI_BASE_URL": url})
    assert str(caught.value) == "`OPENAI_BASE_URL` must be an address such as `https://host/v1`"


def test_a_user_name_in_the_address_is_refused() -> None:
    """It would replace the key, and stand in every error."""
    with pytest.raises(UsageError, match="`OPENAI_BASE_URL` must not hold a user name or a password") as caught:
        gateway_for("openai", {**OPENAI, "OPENAI_BASE_URL": "https://me:secret@host/v1"})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("key", ["sk-a b", "sk-ä", "sk-a\nX-Other: 1", "sk-\x00"])
def test_a_key_that_no_header_can_carry_is_refused_without_repeating_it(key: str) -> None:
    """A line break inside a key would be a header of its own."""
    with pytest.raises(UsageError) as caught:
        gateway_for("openai", {"OPENAI_API_KEY": key})
    assert str(caught.value) == (
        "`OPENAI_API_KEY` holds characters that no key has; set it again without spaces and line breaks"
    )


# ── from the settings ──


def with_settings(chosen: str, settings: Mapping[str, Mapping[str, Any]], **environ: str) -> ProviderGateway:
    return gateway_for(chosen, environ, settings)


def test_settings_replace_the_environment() -> None:
    """PR-5: only what the table names; the keys still come from the environment."""
    gateway = with_settings("openai", {"openai": {}}, **OPENAI, **GENERIC)
    assert gateway.providers == ("openai",)
    assert with_settings("openai", {}, **OPENAI, **GENERIC).providers == ("openai", "generic_openai")
    assert with_settings("openai", {"openai": {}}).providers == ()


async def test_what_the_settings_leave_out_is_told() -> None:
    """Both halves: not in the table, and no key for what is in it."""
    gateway = with_settings("openai", {"generic_openai": {"base_url": "http://h", "models": ["llama3"]}}, **OPENAI)
    said = await refusal(gateway)
    assert said == "No provider registered for model 'gpt-4o-mini'; add `providers.openai` to the settings"
    gateway = with_settings("openai", {"openai": {"api_key_env": "TEAM_KEY"}}, **OPENAI)
    assert "set TEAM_KEY to use `openai`" in await refusal(gateway)


def test_order_models_and_fallback_from_the_settings() -> None:
    """Priority, fallback, models and aliases do what they say."""
    server = {"base_url": "http://h"}
    settings = {
        "a": {**server, "fallback": True},
        "b": {**server, "priority": 50},
        "c": {**server, "models": ["gpt-4*"]},
        "d": {**server, "models": [], "model_aliases": {"gpt-4o-mini": "llama3"}},
        "openai": {},
    }
    gateway = with_settings("openai", settings, **OPENAI)
    assert names(gateway) == ["openai", "c", "d", "b", "a"]
    assert names(gateway, "llama3") == ["b", "a"]
    assert names(with_settings("b", settings, **OPENAI)) == ["b", "c", "d", "openai", "a"]
    assert names(with_settings("a", settings, **OPENAI)) == ["a", "c", "d", "openai", "b"]


async def test_an_own_name_is_an_openai_compatible_server() -> None:
    """With a key of its own, needed once it is named."""
    with WireServer() as server:
        settings = {"lab": {"base_url": server.url, "api_key_env": "LAB_KEY", "model_aliases": {"fast": "gpt-4o-mini"}}}
        gateway = with_settings("lab", settings, LAB_KEY=KEY)
        response = await gateway.complete(ask("fast"))
        await gateway.close()
    assert (response.provider, response.content) == ("lab", REPLY)
    assert server.requests[0].json["model"] == "gpt-4o-mini"
    assert "set LAB_KEY to use `lab`" in await refusal(with_settings("lab", settings))


async def test_the_address_of_the_environment_holds_unless_the_settings_have_one() -> None:
    """`OPENAI_BASE_URL` with `providers.openai`."""
    with WireServer() as server:
        gateway = with_settings("openai", {"openai": {}}, OPENAI_BASE_URL=server.url, **OPENAI)
        await gateway.complete(ask())
        await gateway.close()
        settings = {"openai": {"base_url": server.url}}
        gateway = with_settings("openai", settings, OPENAI_BASE_URL="http://127.0.0.1:1", **OPENAI)
        await gateway.complete(ask())
        await gateway.close()
    assert len(server.requests) == 2


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"openai": {"base_url": 5}}, "`providers.openai.base_url` must be a text"),
    ({"openai": {"base_url": ""}}, "`providers.openai.base_url` must be a text"),
    ({"openai": {"api_key_env": ["X"]}}, "`providers.openai.api_key_env` must be a text"),
    ({"openai": {"fallback": "yes"}}, "`providers.openai.fallback` must be true or false"),
    ({"openai": {"priority": 1.5}}, "`providers.openai.priority` must be a whole number from 1 up"),
    ({"openai": {"priority": True}}, "`providers.openai.priority` must be a whole number from 1 up"),
    ({"openai": {"priority": 0}}, "`providers.openai.priority` must be a whole number from 1 up"),
    ({"openai": {"models": "gpt-4o"}}, "`providers.openai.models` must be a list of texts"),
    ({"openai": {"model_aliases": {"a": 1}}}, "`providers.openai.model_aliases` must be a table of texts"),
    ({"openai": {"max_rpm": 0}}, "`providers.openai.max_rpm` must be a whole number from 1 up"),
    (
        {"openai": {"max_concurrent": True}},
        "`providers.openai.max_concurrent` must be a whole number from 1 up",
    ),
    ({"openai": {"base_url": "host"}}, "`providers.openai.base_url` must be an address such as `https://host/v1`"),
    ({"mock": {}}, "`providers.mock` can't be set up in the settings; choose it with `provider: mock`"),
    ({"opnai": {}, "openai": {}}, "unknown provider `opnai` in the settings; did you mean `openai`?"),
    (
        {"zzz": {}, "openai": {}},
        "unknown provider `zzz` in the settings; an OpenAI-compatible server needs a `base_url`",
    ),
]


@pytest.mark.parametrize(("settings", "fault"), WRONG)
def test_settings_that_cannot_be_used(settings: dict[str, Any], fault: str) -> None:
    """Each field says what it wants."""
    with pytest.raises(UsageError) as caught:
        with_settings("openai", settings, **OPENAI)
    assert str(caught.value) == fault


# ── mock ──


async def test_mock_stands_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever keys and settings there are, a mock run asks nobody else."""
    path = tmp_path / "responses.json"
    path.write_text(json.dumps({"_version": 2, "a": {"content": "recorded"}}), encoding="utf-8")
    with caplog.at_level(logging.DEBUG):
        gateway = gateway_for(
            "mock", {**OPENAI, **GENERIC, "OPENAI_BASE_URL": "nonsense"}, {"openai": {}}, responses=path
        )
    assert gateway.providers == ("mock",)
    assert (await gateway.complete(ask())).content == "recorded"
    assert (await gateway_for("mock", {}).complete(ask())).content == "Mock response"
    assert caplog.messages == []


def test_a_responses_file_that_is_missing_is_a_load_error(tmp_path: Path) -> None:
    """Before anything runs."""
    with pytest.raises(WorkflowError, match=r"responses file `.*none\.json` does not exist"):
        gateway_for("mock", {}, responses=tmp_path / "none.json")


# ── secrets and cost of import ──


@pytest.mark.parametrize("environ", [OPENAI, {**OPENAI, "OPENAI_BASE_URL": "nonsense"}, {**OPENAI, **GENERIC}])
async def test_keys_are_nowhere_to_be_seen(environ: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    """Neither in logs nor in errors nor in what a debugger would print."""
    shown = ""
    with caplog.at_level(logging.DEBUG):
        try:
            gateway = gateway_for("openai", environ)
            shown = f"{gateway!r} {gateway.candidates('gpt-4o')!r} {gateway._registered!r}"
        except AgentLoomError as error:
            shown = f"{error} {error!r} {vars(error)!r}"
    assert shown
    assert KEY not in shown + caplog.text


def test_a_mock_run_imports_no_http() -> None:
    """The start of the command line stays quick; analysis may ask for models and providers."""
    code = (
        "import sys, agentloom.providers.gateway, agentloom.providers.setup, agentloom.providers.catalogue\n"
        "agentloom.providers.setup.gateway_for('mock', {'OPENAI_API_KEY': 'x'})\n"
        "agentloom.providers.catalogue.known_models()\n"
        "heavy = {'httpx', 'httpcore', 'pydantic', 'ssl', 'asyncio', 'ruamel', 'email'} & set(sys.modules)\n"
        "sys.exit(f'imported: {sorted(heavy)}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
