"""agentloom 0.4.0 from PyPI, in an environment of its own: the peer to measure against, used only from outside."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

VERSION = "0.4.0"

# Its command line limits the mock provider to 60 calls a minute; its Python API can lift that, which is only fair to it.
DRIVER = """
import asyncio, sys
from agentloom.core.engine import WorkflowEngine
from agentloom.core.parser import WorkflowParser
from agentloom.providers.gateway import ProviderGateway
from agentloom.providers.mock import MockProvider

gateway = ProviderGateway()
gateway.register(MockProvider(), priority=0, max_rpm=10**9, max_tpm=10**12)
result = asyncio.run(WorkflowEngine(WorkflowParser.from_yaml(sys.argv[1]), provider_gateway=gateway).run())
print(result.total_duration_ms)
"""


def install(cache: Path) -> Path:
    """Return the ``bin`` folder of an environment that holds the peer; made on the first call."""
    folder = cache / f"agentloom-{VERSION}"
    done = folder / ".done"
    if not done.exists():
        print(f"Installing agentloom {VERSION} into {folder.name} …", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, f"agentloom=={VERSION}"], check=True)
        done.touch()
    return folder / "bin"
