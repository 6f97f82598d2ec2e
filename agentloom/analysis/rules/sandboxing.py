"""The rule about what a file's own sandbox refuses."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentloom.analysis.document import Step, WorkflowDocument
from agentloom.analysis.effort import mapping
from agentloom.analysis.rules.places import span_at
from agentloom.diagnostics import Finding
from agentloom.language.arguments import find_references_deep

# What starts other programs, and so needs a word of its own.
META = frozenset(
    [
        "env",
        "sh",
        "bash",
        "zsh",
        "fish",
        "ksh",
        "dash",
        "xargs",
        "python",
        "python3",
        "node",
        "perl",
        "ruby",
        "php",
        "lua",
        "awk",
        "eval",
        "source",
        ".",
        "exec",
        "nc",
        "ncat",
        "socat",
        "ssh",
    ]
)
_JOINTS = ("$(", "<(", ">(", "|", ";", "&", "`", "\n", "<", ">")


def sandbox_refusal(document: WorkflowDocument) -> Iterator[Finding]:
    """A tool step does what the file's own sandbox refuses: a command, a path or a host that isn't allowed.

    With the sandbox on, only what is listed is allowed; the refusal fails the step for good. Programs that start programs, such as shells,
    need `danger_opt_in` besides. Only what stands in the file is looked at.

    Allow it in `config.sandbox`, or do without it.
    """
    sandbox = mapping(mapping(document.head.data.get("config")).get("sandbox"))
    if sandbox.get("enabled") is not True:
        return
    for step in document.steps:
        args = mapping(step.facts.data.get("tool_args")) if step.type == "tool" else {}
        tool = step.facts.data.get("tool_name")
        found: tuple[str, str] | None = None
        if tool == "shell_command":
            found = _command(_text(args, "command"), sandbox)
        elif tool == "http_request":
            found = _address(_text(args, "url"), sandbox)
        elif tool in ("file_read", "file_write"):
            found = _path(document, _text(args, "path"), sandbox, tool == "file_write")
        if found is not None:
            yield _finding(step, *found)


def _finding(step: Step, name: str, message: str) -> Finding:
    return Finding("AL606", step.place(span_at(step.facts, "tool_args", name)), message)


def _text(args: dict[str, Any], name: str) -> str | None:
    """Return an argument if it is a text that stays as it is."""
    value = args.get(name)
    return value if isinstance(value, str) and value and not find_references_deep(value) else None


def _listed(sandbox: dict[str, Any], *names: str) -> list[str]:
    return [word for name in names for word in sandbox.get(name) or () if isinstance(word, str)]


def _command(text: str | None, sandbox: dict[str, Any]) -> tuple[str, str] | None:
    if text is None:
        return None
    joint = next((sign for sign in _JOINTS if sign in text.strip()), None)
    if joint is not None:
        shown = "a line break" if joint == "\n" else f"`{joint}`" if joint != "`" else "a backtick"
        return "command", f"the sandbox refuses commands with {shown}; run one program"
    program = os.path.basename(text.split()[0]) if text.split() else ""
    if not program:
        return None
    if program not in _listed(sandbox, "allowed_commands"):
        return "command", f"the sandbox doesn't allow `{program}`; add it to `allowed_commands`"
    if program in META and program not in _listed(sandbox, "danger_opt_in"):
        return "command", f"`{program}` starts other programs; the sandbox needs it in `danger_opt_in`, too"
    return None


def _address(url: str | None, sandbox: dict[str, Any]) -> tuple[str, str] | None:
    if url is None:
        return None
    if sandbox.get("allow_network") is False:
        return "url", "the sandbox doesn't allow the network (`allow_network: false`); allow it, or do without"
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return None
    schemes = _listed(sandbox, "allowed_schemes") if sandbox.get("allowed_schemes") else ["http", "https"]
    if parts.scheme and parts.scheme not in schemes:
        return "url", f"the sandbox doesn't allow `{parts.scheme}` addresses; add it to `allowed_schemes`"
    domains = _listed(sandbox, "allowed_domains")
    if host and domains and host not in [domain.casefold() for domain in domains]:
        return "url", f"the sandbox doesn't allow `{host}`; add it to `allowed_domains`"
    return None


def _path(
    document: WorkflowDocument, text: str | None, sandbox: dict[str, Any], writes: bool
) -> tuple[str, str] | None:
    if text is None:
        return None
    name = "writable_paths" if writes else "readable_paths"
    allowed = _listed(sandbox, "allowed_paths", name)
    verb = "writing" if writes else "reading"
    if not allowed:
        return "path", f"the sandbox allows {verb} nowhere; add a folder to `{name}`"
    home = document.path
    if home is None or any("{" in path for path in allowed):
        return None
    folder = Path(os.path.abspath(home)).parent
    try:
        target = os.path.abspath(folder / text)
        inside = any(Path(target).is_relative_to(os.path.abspath(folder / path)) for path in allowed)
    except ValueError:
        return None
    return None if inside else ("path", f"the sandbox doesn't allow {verb} `{text}`; add its folder to `{name}`")
