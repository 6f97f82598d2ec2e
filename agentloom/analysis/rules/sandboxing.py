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
            found = _command(document, args, sandbox)
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


def _command(document: WorkflowDocument, args: dict[str, Any], sandbox: dict[str, Any]) -> tuple[str, str] | None:
    text = _text(args, "command")
    if text is None:
        return None
    from agentloom.tools.command_words import fault_of, words_of  # only for files with commands in a sandbox

    fault = fault_of(text, _listed(sandbox, "allowed_commands"), _listed(sandbox, "danger_opt_in"))
    if fault is not None:
        return "command", fault
    cwd = args.get("cwd", ".")
    if not isinstance(cwd, str) or find_references_deep(cwd):
        return None
    where = "cwd" if "cwd" in args else "command"
    trees = _listed(sandbox, "allowed_paths", "readable_paths")
    if not trees:
        return where, "the sandbox lets commands run nowhere; add their folder to `readable_paths`"
    if not _inside(document, cwd, trees):
        return where, f"the sandbox lets no command run in `{cwd}`; add it to `readable_paths`"
    for word in (words_of(text) or ())[1:]:
        if word.startswith(("/", "../")) and not _inside(document, os.path.join(cwd, word), trees):
            return "command", f"the sandbox doesn't allow reading `{word}`; add its folder to `readable_paths`"
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
    domains = [domain.casefold() for domain in _listed(sandbox, "allowed_domains")]
    if not host or host in domains:
        return None
    if domains:
        return "url", f"the sandbox doesn't allow `{host}`; add it to `allowed_domains`"
    if _is_internal(host):
        return "url", f"the sandbox doesn't allow `{host}`, an internal address; add it to `allowed_domains`"
    return None


def _is_internal(host: str) -> bool:
    """Tell of a host whether it is this machine or in a private network, as far as that stands there plainly."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    from ipaddress import ip_address

    try:
        return not ip_address(host).is_global
    except ValueError:
        return False


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
    if _inside(document, text, allowed):
        return None
    return "path", f"the sandbox doesn't allow {verb} `{text}`; add its folder to `{name}`"


def _inside(document: WorkflowDocument, path: str, trees: list[str]) -> bool:
    """Tell whether a path lies in one of the trees as they are written, or that can't be told."""
    home = document.path
    if home is None or any("{" in tree for tree in trees):
        return True
    folder = Path(os.path.abspath(home)).parent
    try:
        target = Path(os.path.abspath(folder / path))
        return any(target.is_relative_to(os.path.abspath(folder / tree)) for tree in trees)
    except ValueError:
        return True
