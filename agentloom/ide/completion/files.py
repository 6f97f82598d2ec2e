"""Completion of files, folder by folder, relative to the file in which the path stands. Only names; nothing is read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from agentloom.ide.completion.items import Item, spell
from agentloom.ide.completion.marks import mark_of
from agentloom.ide.completion.where import Where
from agentloom.ide.results import Project

MOST_NAMES = 2_000
"""Names of one folder that are looked at."""

_WORKFLOWS = (".loom.yaml", ".loom.yml", ".agentloom.yaml", ".agentloom.yml")
_AGENTS = (".agent.yaml", ".agent.yml")
_YAML = (".yaml", ".yml")
# What each kind of file is called: the likely names first, then the others that can be one.
_SUFFIXES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "workflow": (_WORKFLOWS, _YAML),
    "agent": (_AGENTS, _YAML),
    "recording": ((".json",), ()),
    "attachment": ((), ("",)),
    "any": ((), ("",)),
}
# Names that tell that a file is of another kind.
_OTHERS = {"workflow": _AGENTS, "agent": _WORKFLOWS}


def applies(where: Where) -> bool:
    """Tell whether a path is being typed."""
    return where.kind in ("value", "item") and mark_of(where.shape, "file") is not None and where.style not in _BLOCKS


_BLOCKS = ("literal", "folded")


def items(where: Where, project: Project | None) -> Iterator[Item]:
    """Yield the files and folders in the folder that is typed so far."""
    mark = mark_of(where.shape, "file")
    home = where.document.path
    typed = where.before
    if mark is None or home is None or "{" in where.text.value or "://" in typed or typed.startswith(("data:", "~")):
        return
    if typed.startswith("/") or "\\" in typed:
        return
    folder, cut, last = typed.rpartition("/")
    base = Path(os.path.normpath(Path(os.path.abspath(home)).parent / folder))
    likely, possible = _SUFFIXES.get(mark.of, ((), ("",)))
    context = where.document.context
    if not typed.strip("./"):
        above = typed.rstrip(".") + "../"
        yield Item(above, "folder", spell(where, above), "", rank=8, filter=above, retrigger=True)
    for name in sorted(context.list_folder(base))[:MOST_NAMES]:
        if (name.startswith(".") and not last.startswith(".")) or "\n" in name:
            continue
        lower = name.lower()
        written = folder + cut + name
        if context.is_folder(base / name):
            yield Item(
                f"{name}/", "folder", spell(where, written + "/"), "", rank=6, filter=written + "/", retrigger=True
            )
        elif lower.endswith(likely) and likely:
            if not (mark.of == "workflow" and base / name == Path(os.path.abspath(home))):
                yield Item(name, "file", spell(where, written), "", rank=4, filter=written)
        elif possible and lower.endswith(possible) and not lower.endswith(_OTHERS.get(mark.of, ())):
            yield Item(name, "file", spell(where, written), "", rank=5, filter=written)
