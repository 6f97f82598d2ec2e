"""Whether a word may be a name here, and whether it is free."""

from __future__ import annotations

import re
from pathlib import Path

from agentloom.ide.names.scope import OF_STEPS, Name
from agentloom.ide.names.world import World
from agentloom.ide.results import Refusal
from agentloom.language.paths import is_hidden, is_name
from agentloom.syntax.quoting import is_plain
from agentloom.text import LineTable

RESERVED = OF_STEPS | {"state"}
"""State keys that no file may give: the engine's own, and the word that begins a path."""


def check_word(name: Name, word: str) -> None:
    """Refuse what is no legal name of this kind."""
    if not word:
        raise Refusal("the new name is empty; write one")
    if name.kind == "anchor":
        if re.fullmatch(r"[0-9A-Za-z_-]+", word) is None:
            raise Refusal(f"`{_shown(word)}` is no name for an anchor; use letters, digits, `_` and `-`")
        return
    if is_hidden(word):
        raise Refusal(
            f"`{_shown(word)}` is reserved: names with two underscores in front are never read; choose another"
        )
    if "." in word:
        raise Refusal(f"`{_shown(word)}` is a path; rename one key at a time, without dots")
    if not is_name(word):
        raise Refusal(f"`{_shown(word)}` can't be read back by templates; use letters, digits, `_` and `-`")
    if not is_plain(word):
        raise Refusal(f"`{_shown(word)}` isn't a text to every reader of YAML; choose a name that needs no quotes")
    if name.kind == "state" and len(name.path) == 1 and word in RESERVED:
        raise Refusal(f"`{word}` is reserved in the state; choose another name")


def check_free(world: World, name: Name, word: str) -> None:
    """Refuse a word that means something already, where the name stands or in a workflow that shares it."""
    if not world.is_mentioned(name):
        return  # shared with a workflow that doesn't mention it
    taken = Name(name.kind, name.scope, (*name.path[:-1], word))
    if name.kind == "anchor":
        if any(anchored.word == word for anchored in world.own.anchors):
            raise Refusal(f"the anchor `&{word}` is there already; choose another name")
        return
    there = next(iter(world.places((taken,))), None)
    if there is None:
        return
    line = LineTable(there.source.text).line_of(there.span.start) + 1
    where = f"line {line}" if there.source.uri == world.own.document.source.uri else f"`{Path(there.source.uri).name}`"
    if name.kind == "state":
        raise Refusal(f"the state key `{word}` is there already ({where}); choose another name")
    what = "an agent" if name.kind == "agent" else "a step"
    if there.role == "define":
        raise Refusal(f"{what} `{word}` is there already ({where}); choose another name")
    raise Refusal(f"{where} names {what} `{word}`, which would be this one then; choose another name")


def _shown(word: str) -> str:
    return " ".join(word.split())
