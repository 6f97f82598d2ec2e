"""Whether the files alone decide about a name, so that changing it in all of them changes nothing else."""

from __future__ import annotations

from agentloom.analysis.dataflow.declared import commented
from agentloom.ide.names.index import DEFINING
from agentloom.ide.names.scope import OF_STEPS, STEPS, Mention, Name, Place
from agentloom.ide.names.world import World
from agentloom.ide.results import Refusal
from agentloom.language.paths import format_path, is_hidden
from agentloom.tools.catalogue import BUILTIN_TOOLS

OTHERS = {
    "model": "models are named by those who offer them; choose another one where it stands",
    "provider": "providers are named by agentloom; choose another one where it stands",
    "file": "this is the path of a file; rename the file, and the editor changes every path to it",
}


def check_origin(world: World, place: Place, names: list[Name]) -> None:
    """Refuse names that are given elsewhere: by agentloom, by a program, by the value that a step writes."""
    name = place.name
    if name.kind in OTHERS:
        raise Refusal(OTHERS[name.kind])
    if name.kind == "tool":
        if name.word in BUILTIN_TOOLS:
            raise Refusal(f"the tool `{name.word}` is built in; it can't be renamed")
        raise Refusal(f"the tool `{name.word}` is named where it is registered, in Python; rename it there")
    if name.kind == "anchor" and name.path[1] == "-1":
        raise Refusal(f"no `&{name.word}` stands before `*{name.word}`; there is nothing to rename")
    if name.kind in ("step", "agent") and not any(world.at_home(other, DEFINING) for other in names):
        shown = " ".join(name.word.split())
        raise Refusal(f"{name.kind} `{shown}` is not defined; there is nothing to rename")
    if name.kind == "state":
        for other in names:
            _check_state(world, other)


def _check_state(world: World, name: Name) -> None:
    path, word = name.path, name.word
    if path[0] in OF_STEPS and len(path) < 4:
        raise Refusal(f"`{word}` is what the engine calls this part of the state; it can't be renamed")
    if is_hidden(word):
        raise Refusal(f"`{word}` is reserved: names with two underscores in front are never read")
    index = world.index(name.scope.file) if name.scope is not None else None
    if index is None or name.scope is None:
        return
    declared = index.document.context.settings.known_state
    dotted = format_path(tuple(part if part is not None else 0 for part in path))
    if dotted in declared or (len(path) == 1 and word in declared):
        settings = index.document.context.settings.path
        file = settings.name if settings is not None else "the settings"
        raise Refusal(f"`{dotted}` is declared in `{file}`, since a program sets it; rename it there")
    given = commented(index.document)
    if dotted in given or (len(path) == 1 and any(word == key.split(".")[0] for key in given)):
        raise Refusal(f"`{dotted}` is given with `--state`, as a comment in this file says; rename it there first")
    if path[0] == STEPS:
        step = path[1] or ""
        if not _child_is_known(world, name, step):
            raise Refusal(f"`{word}` is part of what step `{step}` gives; its name isn't given in this file")
        return
    for length in range(1, len(path)):
        held = format_path(tuple(part if part is not None else 0 for part in path[:length]))
        for mention in index.mentions(Name("state", name.scope, path[:length])):
            if mention.parts != path[:length] or mention.scope != name.scope or mention.where.step is None:
                continue
            step_id = mention.where.step.id
            if mention.role == "write" and not (step_id and _child_is_known(world, name, step_id)):
                raise Refusal(
                    f"`{word}` is part of what step `{step_id}` writes to `{held}`; its name isn't given in this file"
                )
            if mention.role == "read" and _is_argument(mention):
                raise Refusal(
                    f"`{word}` goes to the tool of step `{step_id}` as part of `{held}`; its name means something there"
                )


def _is_argument(mention: Mention) -> bool:
    """Tell whether a path stands in the arguments of a tool, which sees the keys below it."""
    marks = (leaf.shape.mark("template_deep") for leaf in mention.where.facts.leaves if leaf.node is mention.node)
    return any(mark is not None and mark.of == "tool_argument" for mark in marks)


def _child_is_known(world: World, name: Name, step: str) -> bool:
    """Tell whether a step runs a workflow that can be read."""
    if name.scope is None:
        return False
    for call in world.calls_from(name.scope):
        if call.step == step and not call.agent:
            index = world.index(call.child.file)
            return index is not None and call.child in index.scopes
    return False
