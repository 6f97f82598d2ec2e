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
_MODELINE = re.compile(
    r"^[ \t]*#[ \t]*(?:agentloom\b|(?:yaml-language-server:[ \t]*)?\$schema[:=].*?(?P<kind>workflow|agent)\.schema\.json)",
    re.MULTILINE,
)
_STEPS = re.compile(r"^steps[ \t]*:(?P<rest>.*)$", re.MULTILINE)
_ITEM = re.compile(r"^[ \t]*-(?:[ \t]+(?:[&*!]\S+[ \t]+)*(?P<first>.*))?$")
_KEY = re.compile(r"^\s*(?:[-{,]\s*)*[\"']?(id|type)[\"']?\s*:")
_INLINE_ID = re.compile(r"[{,]\s*[\"']?id[\"']?\s*:")
_INLINE_TYPE = re.compile(r"[{,]\s*[\"']?type[\"']?\s*:")
_TYPES = "llm_call|router|tool|subworkflow|approval_gate|embed|agent"
_STEP_TYPE = re.compile(rf"\btype[\"']?\s*:\s*[\"']?(?:{_TYPES})\b")


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
    said = _MODELINE.search(text, 0, LOOK_AT)
    if said:
        if said["kind"]:
            return "agent" if said["kind"] == "agent" else "workflow"
        return _by_looks(text) or "workflow"
    return _by_looks(text)


def _by_looks(text: str) -> FileKind | None:
    steps = _STEPS.search(text, 0, LOOK_AT)
    if steps is None:
        if re.search(r"^system_prompt[ \t]*:", text, re.MULTILINE) and re.search(r"^name[ \t]*:", text, re.MULTILINE):
            return "agent"
        if text.lstrip("\ufeff \t\r\n").startswith("{"):
            return _flow_looks(text[:LOOK_AT])
        return None
    rest = steps["rest"].strip()
    if rest and not rest.startswith("#"):
        inline = text[steps.start() : steps.start() + 4_000]
        both = _INLINE_ID.search(inline) and _INLINE_TYPE.search(inline)
        return "workflow" if both else None
    return "workflow" if _items_look_like_steps(text[steps.end() : LOOK_AT]) else None


def _flow_looks(text: str) -> FileKind | None:
    if re.search(r"[{,]\s*[\"']?steps[\"']?\s*:", text):
        return "workflow" if _INLINE_ID.search(text) and _STEP_TYPE.search(text) else None
    return None


def _items_look_like_steps(text: str) -> bool:
    """Tell whether a list below ``steps:`` has an item with both `id` and `type`.

    `type` alone is not enough and `id` alone neither: CI files of other tools have lists called `steps` too; one whose items
    carry `id` and `type` with a value that is no step type of ours still counts, since that may be a typing mistake.
    """
    seen: set[str] = set()
    for count, line in enumerate(text.splitlines()):
        if count > 2_000 or (line and line[0] not in " \t-#\r\n" and line.strip()):
            break
        item = _ITEM.match(line)
        if item:
            seen.clear()
            first = item["first"] or ""
            if first.startswith("{"):
                if _INLINE_ID.search(first):
                    seen.add("id")
                if _INLINE_TYPE.search(first):
                    seen.add("type")
        key = _KEY.match(line)
        if key:
            seen.add(key[1])
        if {"id", "type"} <= seen:
            return True
    return False
