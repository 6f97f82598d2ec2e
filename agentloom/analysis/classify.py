"""Which files are ours: by settings, by name, by a line that says so, or by their looks. Everything else gets silence."""

from __future__ import annotations

import re
from pathlib import Path

from agentloom.analysis.document import FileKind
from agentloom.analysis.settings import Settings, matches_glob

LOOK_AT = 200_000
"""Code points looked at for telling a file by its looks."""

_WORKFLOW_NAMES = (".loom.yaml", ".loom.yml", ".agentloom.yaml", ".agentloom.yml")
_AGENT_NAMES = (".agent.yaml", ".agent.yml")
# Compiled where they are used: files that are named as ours are not looked at.
_MODELINE = r"(?m)^[ \t]*#[ \t]*(?:agentloom\b|(?:yaml-language-server:[ \t]*)?\$schema[:=].*?(?P<kind>workflow|agent)\.schema\.json)"
_STEPS = r"(?m)^steps[ \t]*:(?P<rest>.*)$"
_ITEM = r"^[ \t]*-(?:[ \t]+(?:[&*!]\S+[ \t]+)*(?P<first>.*))?$"
_KEY = r"^\s*(?:[-{,]\s*)*[\"']?(id|type)[\"']?\s*:"
_INLINE_ID = r"[{,]\s*[\"']?id[\"']?\s*:"
_INLINE_TYPE = r"[{,]\s*[\"']?type[\"']?\s*:"
_TYPES = "llm_call|router|tool|subworkflow|approval_gate|embed|agent"
_STEP_TYPE = rf"\btype[\"']?\s*:\s*[\"']?(?:{_TYPES})\b"


def classify(text: str, path: Path | None, settings: Settings, language_id: str | None = None) -> FileKind | None:
    """Return what kind of file a text is, or None when it is none of ours.

    ``language_id`` is the editor's; `agentloom` is ours by declaration.
    """
    if path is not None:
        name = path.name.lower()
        if name.endswith(_AGENT_NAMES):
            return "agent"
        if name.endswith(_WORKFLOW_NAMES):
            return "workflow"
        if matches_glob(path, settings):
            return _by_looks(text) or "workflow"
    if language_id == "agentloom":
        return _by_looks(text) or "workflow"
    said = re.compile(_MODELINE).search(text, 0, LOOK_AT)
    if said:
        if said["kind"]:
            return "agent" if said["kind"] == "agent" else "workflow"
        return _by_looks(text) or "workflow"
    return _by_looks(text)


def _by_looks(text: str) -> FileKind | None:
    steps = re.compile(_STEPS).search(text, 0, LOOK_AT)
    if steps is None:
        if re.search(r"^system_prompt[ \t]*:", text, re.MULTILINE) and re.search(r"^name[ \t]*:", text, re.MULTILINE):
            return "agent"
        if text.lstrip("\ufeff \t\r\n").startswith("{"):
            return _flow_looks(text[:LOOK_AT])
        return None
    rest = steps["rest"].strip()
    if rest and not rest.startswith("#"):
        inline = text[steps.start() : steps.start() + 4_000]
        both = re.search(_INLINE_ID, inline) and re.search(_INLINE_TYPE, inline)
        return "workflow" if both else None
    return "workflow" if _items_look_like_steps(text[steps.end() : LOOK_AT]) else None


def _flow_looks(text: str) -> FileKind | None:
    if re.search(r"[{,]\s*[\"']?steps[\"']?\s*:", text):
        return "workflow" if re.search(_INLINE_ID, text) and re.search(_STEP_TYPE, text) else None
    return None


def _items_look_like_steps(text: str) -> bool:
    """Tell whether a list below ``steps:`` has an item with both `id` and `type`.

    `type` alone is not enough and `id` alone neither: CI files of other tools have lists called `steps` too; one whose items
    carry `id` and `type` with a value that is no step type of ours still counts, since that may be a typing mistake.
    """
    item_of, key_of = re.compile(_ITEM).match, re.compile(_KEY).match
    seen: set[str] = set()
    for count, line in enumerate(text.splitlines()):
        if count > 2_000 or (line and line[0] not in " \t-#\r\n" and line.strip()):
            break
        item = item_of(line)
        if item:
            seen.clear()
            first = item["first"] or ""
            if first.startswith("{"):
                if re.search(_INLINE_ID, first):
                    seen.add("id")
                if re.search(_INLINE_TYPE, first):
                    seen.add("type")
        key = key_of(line)
        if key:
            seen.add(key[1])
        if {"id", "type"} <= seen:
            return True
    return False
