"""What every test gets: golden files with `--update`, a quiet environment, and no way out to the network."""

from __future__ import annotations

import difflib
import ipaddress
import os
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent

# What would let a developer's machine leak into a test (format.md's list of environment variables, and colours).
FOREIGN = ("OPENAI_", "ANTHROPIC_", "GOOGLE_", "GENERIC_OPENAI_", "OLLAMA_", "AGENTLOOM_", "OTEL_")
COLOURS = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "LINES")

_RUNS = TemporaryDirectory(prefix="agentloom-runs-")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Let go of the records that the tests' runs left."""
    _RUNS.cleanup()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--update`: rewrite golden and generated files instead of comparing with them."""
    parser.addoption("--update", action="store_true", help="rewrite golden and generated files")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, clean the environment and shut the network, in every worker."""
    config.addinivalue_line("markers", "golden: compares with a file that `pytest --update` writes")
    for name in list(os.environ):
        if name.startswith(FOREIGN) or name in COLOURS:
            del os.environ[name]
    # Runs leave a record in the working directory, which is the project's own for many tests.
    os.environ["AGENTLOOM_RUNS_DIR"] = _RUNS.name
    sys.addaudithook(_stay_home)
    import agentloom.analysis.analyze as door

    door.RAISE_CRASHES = True


def _stay_home(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse connections to anything but loopback and Unix sockets; an audit hook, so that no library gets around it."""
    if event != "socket.connect":
        return
    address = arguments[1]
    if not isinstance(address, tuple) or address[0] in ("localhost", ""):
        return
    if not ipaddress.ip_address(str(address[0]).split("%")[0]).is_loopback:
        raise PermissionError(f"a test wants to reach {address[0]}; only loopback is open here")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that uses the `golden` fixture, so that `make update` can pick them."""
    for item in items:
        if "golden" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.golden)


Golden = Callable[[Path, str], None]


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Return a function that compares a file with the text it should hold; with `--update` it writes the text instead."""

    def compare(path: Path, text: str) -> None:
        """Fail with a diff unless ``path`` holds ``text``."""
        held = path.read_bytes().decode("utf-8") if path.exists() else ""
        if held == text and path.exists():
            return
        if request.config.getoption("--update"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("utf-8"))
            return
        name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        lines = difflib.unified_diff(
            held.splitlines(keepends=True),
            text.splitlines(keepends=True),
            f"{name} (in the repository)",
            "as it should be",
        )
        shown = "".join(list(lines)[:80])
        pytest.fail(f"{name} is stale; `make update` writes it again\n{shown}", pytrace=False)

    return compare


@pytest.fixture(scope="session")
def root() -> Path:
    """The top folder of the checkout."""
    return ROOT
