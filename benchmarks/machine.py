"""Where figures come from: the machine, the programs and the commit, in words."""

from __future__ import annotations

import datetime
import os
import platform
import re
import subprocess
from pathlib import Path


def described() -> str:
    """Return date, processor, system and Python."""
    today = datetime.date.today()
    about = platform.freedesktop_os_release() if Path("/etc/os-release").exists() else {}
    system = about.get("PRETTY_NAME", platform.system())
    return (
        f"{today.day} {today:%B %Y}, {os.cpu_count()} cores of {_processor()}, {system}, "
        f"CPython {platform.python_version()}"
    )


def commit(root: Path) -> str:
    """Return the commit of a checkout, and whether the files differ from it."""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty=, changed", "--exclude=*"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    return f"agentloom at {done.stdout.strip()}" if done.stdout.strip() else "agentloom without a commit"


def version(program: str) -> str:
    """Return the version that a program prints."""
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    found = re.search(r"\d+(?:\.\d+)+", done.stdout)
    return found.group() if found else done.stdout.strip()


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    text = info.read_text(encoding="utf-8") if info.exists() else ""
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found.group(1).strip() if found else platform.machine()
