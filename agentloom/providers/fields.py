"""What settings may say of a provider: checked the same by who reads the settings and by who sets providers up.

Importable without any client: analysis and editors ask it too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentloom.errors import UsageError
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


def faults(name: str, table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a provider's table: the key, and a sentence about it. None stands for a key that isn't there.

    A key that is empty stands for the whole: no provider of that name can be set up. A name of one's own is an OpenAI-compatible server.
    """
    for key, wanted in FIELDS.items():
        value = table.get(key)
        if value is not None and not _fits(value, wanted):
            yield key, f"`providers.{name}.{key}` must be {wanted}"
        elif value is not None and key == "base_url":
            try:
                base_url(value, f"providers.{name}.base_url", BY_NAME.get(name, BY_NAME["generic_openai"]).bare_path)
            except UsageError as error:
                yield key, str(error)
    if name == "mock":
        yield "", "`providers.mock` can't be set up in the settings; choose it with `provider: mock`"
    elif name not in BY_NAME and table.get("base_url") is None:
        near = closest(name, PROVIDER_NAMES)
        cure = f"did you mean `{near}`?" if near else "an OpenAI-compatible server needs a `base_url`"
        yield "", f"unknown provider `{name}` in the settings; {cure}"


def base_url(url: str, name: str, bare_path: str = "") -> str:
    """Return a provider's base address as requests use it: no slash at the end, ``bare_path`` added where only a host is given.

    ``name`` is the variable or setting it came from. Raises ``UsageError``, which never repeats the address: it may hold a secret.
    """
    from urllib.parse import urlsplit, urlunsplit

    fault = f"`{name}` must be an address such as `https://host{bare_path}`"
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise UsageError(fault) from None
    if parts.scheme not in ("http", "https") or not host or not url.isprintable() or " " in url:
        raise UsageError(fault)
    if "@" in parts.netloc:
        raise UsageError(f"`{name}` must not hold a user name or a password; keys come from the environment")
    path = parts.path.rstrip("/") or bare_path
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


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
