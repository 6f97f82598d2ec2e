"""``agentloom info``: versions, extras, and which keys are set. Never a key, nor a part of one."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import click

from agentloom import __version__
from agentloom.analysis.context import context_for
from agentloom.analysis.rules.registry import settings_problems
from agentloom.analysis.settings import find_settings
from agentloom.cli.tables import columns

LIBRARIES = (
    "pydantic",
    "ruamel.yaml",
    "ruamel.yaml.clib",
    "httpx",
    "anyio",
    "click",
    "rich",
    "jsonschema",
    "pygls",
    "lsprotocol",
)
EXTRAS = (("durable runs", "dbos"),)
"""What an extra brings, and the package that tells whether it is installed."""

KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GENERIC_OPENAI_API_KEY")
ADDRESSES = (
    "OPENAI_BASE_URL",
    "ANTHROPIC_BASE_URL",
    "GOOGLE_BASE_URL",
    "OLLAMA_BASE_URL",
    "GENERIC_OPENAI_BASE_URL",
)


@click.command()
def command() -> None:
    """Show versions, extras and which keys are set (never a key, nor a part of one)."""
    for line in report(Path.cwd()):
        print(line)


def report(folder: Path) -> Iterator[str]:
    """Yield the lines of output; ``folder`` is where settings are looked for."""
    yield f"agentloom {__version__}"
    yield f"Python {platform.python_version()} on {platform.platform()}"
    yield from ("", "Libraries")
    yield from columns([(name, _version(name)) for name in LIBRARIES])
    yield from ("", "Extras")
    yield from columns([(name, "installed" if find_spec(package) else "not installed") for name, package in EXTRAS])
    yield from ("", "Keys")
    yield from columns([(name, _set(name)) for name in KEYS])
    yield from ("", "Addresses")
    yield from columns([(name, _set(name)) for name in ADDRESSES])
    settings = find_settings(folder / "workflow.yaml")
    yield from ("", "Settings for files in this folder", f"  {settings.path or 'none: the defaults hold'}")
    for problem in settings_problems(context_for(settings).settings):
        yield f"  problem: {problem}"


def _set(name: str) -> str:
    return "set" if os.environ.get(name) else "not set"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
