"""What `state_schema` says of keys by pattern: a renamed key must neither lose nor gain it, or a secret would show."""

from __future__ import annotations

from fnmatch import fnmatchcase

from agentloom.ide.names.keys import GLOB, patterns
from agentloom.ide.names.scope import Name, Parts
from agentloom.ide.names.world import World
from agentloom.ide.results import Refusal


def check_patterns(world: World, names: list[Name], word: str) -> None:
    """Refuse a new name that other patterns cover than cover the old one."""
    for name in names:
        index = world.index(name.scope.file) if name.kind == "state" and name.scope is not None else None
        if index is None or name.scope is None or name.scope not in index.scopes:
            continue
        for pattern in patterns(index.head(name.scope)):
            is_pattern = not GLOB.isdisjoint(pattern)
            if not is_pattern and _dotted(name.path) == pattern:
                continue  # renamed with the rest
            old, new = _covers(pattern, name.path), _covers(pattern, (*name.path[:-1], word))
            if old and not new:
                raise Refusal(
                    f"`{pattern}` in `state_schema` covers `{name.word}`, but not `{word}`; change it there first"
                )
            if new and not old:
                raise Refusal(f"`{pattern}` in `state_schema` would cover `{word}`; choose another name")


def _covers(pattern: str, path: Parts) -> bool:
    return fnmatchcase(path[-1] or "", pattern) or fnmatchcase(_dotted(path), pattern)


def _dotted(path: Parts) -> str:
    return ".".join(part for part in path if part is not None)
