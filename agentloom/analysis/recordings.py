"""Which recording belongs to a workflow."""

from __future__ import annotations

from pathlib import Path

from agentloom.analysis.document import WorkflowDocument

FOLDER = "recordings"
_ENDINGS = (".loom.yaml", ".loom.yml", ".agentloom.yaml", ".agentloom.yml", ".yaml", ".yml", ".json")


def default_recording(document: WorkflowDocument) -> Path | None:
    """Return the recording of a workflow: the one that its `config.responses_file` names, else `recordings/<name>.json` beside it.

    None when there is no such file, or the text lives in none.
    """
    return next((path for path in recording_places(document) if path.is_file()), None)


def recording_places(document: WorkflowDocument) -> list[Path]:
    """Return where the recording of a workflow is looked for, in order, whether or not it is there."""
    config = document.head.data.get("config") if isinstance(document.head.data, dict) else None
    named = config.get("responses_file") if isinstance(config, dict) else None
    found: list[Path] = []
    if isinstance(named, str) and named and (document.path is not None or Path(named).is_absolute()):
        found.append(Path(named) if document.path is None else document.path.parent / named)
    if document.path is not None:
        name = document.path.name
        ending = next((end for end in _ENDINGS if name.lower().endswith(end)), "")
        found.append(document.path.parent / FOLDER / f"{name.removesuffix(name[len(name) - len(ending) :])}.json")
    return found
