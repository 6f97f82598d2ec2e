"""What is said about a state path: who writes it, in which layer and on which route, what it begins as, and where it is declared."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from agentloom.analysis.dataflow import Reaching, dataflow
from agentloom.analysis.dataflow.declared import Origin
from agentloom.analysis.document import Step, WorkflowDocument
from agentloom.ide.around import Around
from agentloom.ide.prose.form import Block, Code, Inline, Items, Prose, excerpt, listed, say
from agentloom.ide.prose.names import KINDS
from agentloom.ide.prose.steps import layer_words, of_step
from agentloom.ide.result_shapes import below, shape_of_write
from agentloom.ide.state_paths import Writer, initial_value, writers_of
from agentloom.language.paths import MISSING, Part, PathFault, format_path, parse_path

MOST_WRITERS = 6
_ORIGINS: Mapping[Origin | None, str] = {
    "settings": "Declared in the settings under `known_state`; its value comes with the run.",
    "comment": "Declared in a comment; its value comes with the run.",
    "state_schema": "Named in `state_schema`; its value comes with the run.",
    "engine": "The engine keeps it.",
}
RESULTS = {
    "output": "What the step gave back, whether or not it has an `output` key.",
    "status": "`success`; of a step that failed or didn't run there is nothing.",
}
"""What each step's result holds."""


def of_path(
    document: WorkflowDocument, step: Step | None, parts: tuple[Part, ...], outer: Around | None = None
) -> Prose:
    """Return what is known of a state path, as seen from a step (None: from the head); ``outer`` is what is around the workflow."""
    if parts[:1] == ("steps",):
        return _of_result(document, parts)
    said: list[Block] = [say("State key ", Code(format_path(parts)))]
    found = writers_of(document, parts, step)
    if found:
        shown = found[:MOST_WRITERS]
        items = [_writer(document, step, writer, parts) for writer in shown]
        if len(found) > len(shown):
            items.append((f"and {len(found) - len(shown)} more",))
        said.append(say("Written by"))
        said.append(Items(tuple(items)))
    value = initial_value(document, parts)
    origin = dataflow(document).declared.origin(parts)
    if value is not MISSING:
        said.extend(_initial(value, bool(found)))
    elif origin in _ORIGINS:
        said.append(say(_ORIGINS[origin]))
    elif not found and outer is not None and parts[0] in outer.given:
        said.append(say("Handed over by `input` of step ", Code(outer.step.id or ""), "."))
    elif not found and outer is not None and not outer.isolated:
        said.append(say("From the workflow around this one:"))
        said.extend(of_path(outer.document, outer.step, parts, outer.around)[1:])
    elif not found:
        said.append(
            say("No step writes it, and `state` doesn't hold it; `--state` may give it, else it reads as empty.")
        )
    if found and step is not None:
        said.extend(_certainty(dataflow(document).reaching(step, parts)))
    return tuple(said)


def _certainty(reaching: Reaching) -> Iterator[Block]:
    """Yield whether a read finds a value."""
    if reaching.certainty == "always":
        yield say("It is there when this step runs.")
    elif reaching.certainty == "excluded":
        yield say("It is only written on routes on which this step doesn't run.")
    elif reaching.certainty == "unordered" and reaching.later:
        yield say("It may be read before it is written; add ", Code(reaching.later[0].id), " to `depends_on`.")
    elif reaching.certainty == "sometimes" and reaching.loss is not None:
        picks: list[Inline] = []
        for pick in reaching.loss.picks:
            picks += [" and " if picks else "It may be missing: if ", Code(pick.router), " chooses ", Code(pick.target)]
        if picks:
            yield say(*picks, ".")
        elif reaching.loss.fails:
            yield say("It may be missing: if ", *listed(reaching.loss.fails), " fails.")


def of_schema_key(document: WorkflowDocument, name: str) -> Prose:
    """Return what an entry of `state_schema` is about: a key, or all that a glob matches."""
    if set(name) & set("*?["):
        return (say("All state keys that ", Code(name), " matches."),)
    path = parse_path(name)
    return of_path(document, None, path.parts) if not isinstance(path, PathFault) else ()


def writer_words(document: WorkflowDocument, writer: Writer) -> str:
    """Return who writes a path and when, in a few words: `fetch, layer 1`."""
    name = writer.step.id or "a step without an id"
    layer = document.graph.layer_of.get(name)
    return name if layer is None else f"{name}, layer {layer + 1}"


def _of_result(document: WorkflowDocument, parts: tuple[Part, ...]) -> Prose:
    if len(parts) == 1:
        return (say("The results of steps that ran: `steps.<id>.output` and `steps.<id>.status`."),)
    step = document.by_id.get(str(parts[1]))
    if step is None:
        return (say("No step is called ", Code(str(parts[1])), "."),)
    if len(parts) == 2:
        return of_step(document, step)
    said: list[Block] = [say("Result of step ", Code(str(parts[1])))]
    if isinstance(parts[2], str) and parts[2] in RESULTS:
        said.append(say(RESULTS[parts[2]]))
    layer = layer_words(document, str(parts[1]))
    if layer:
        said.append(say(f"It runs in {layer}."))
    return tuple(said)


def _writer(
    document: WorkflowDocument, step: Step | None, writer: Writer, parts: tuple[Part, ...]
) -> tuple[Inline, ...]:
    own = writer.step
    said: list[Inline] = [Code(own.id or "a step without an id")]
    layer = layer_words(document, own.id) if own.id is not None else ""
    if layer:
        said.append(f", {layer}")
    if writer.parts != parts:
        said.extend((", as ", Code(format_path(writer.parts))))
    said.extend(_held(document, writer, parts))
    if writer.routes:
        said.extend((", if ", *_routes(writer)))
    if step is not None and own is step:
        said.append("; this step itself, so a later read sees it")
    elif step is not None and not writer.upstream:
        said.append("; not upstream of this step")
    return tuple(said)


def _held(document: WorkflowDocument, writer: Writer, parts: tuple[Part, ...]) -> Iterator[Inline]:
    """Yield what is known of the value at a path that a step writes: its kind, or the names in it."""
    if writer.parts != parts[: len(writer.parts)]:
        return
    shape = shape_of_write(document, writer.step, writer.parts)
    rest = parts[len(writer.parts) :]
    if rest:
        around = below(shape, rest[:-1])
        found = around.get(str(rest[-1])) if not isinstance(rest[-1], int) else None
        if found is None:
            if around:
                yield ", which holds "
                yield from listed(around)
            return
        shape = found
    if shape.names:
        yield ", holds "
        yield from listed(shape.names)
    elif shape.words in KINDS:
        yield f": {KINDS[shape.words]}"


def _routes(writer: Writer) -> Iterator[Inline]:
    for number, (router, target) in enumerate(writer.routes):
        if number:
            yield " and "
        yield Code(router)
        yield " chooses "
        yield Code(target)


def _initial(value: Any, written: bool) -> Iterator[Block]:
    lead = "Begins as" if written else "Set in `state`"
    text = json.dumps(value, ensure_ascii=False, default=str)
    if len(text) <= 60:
        yield say(f"{lead}: ", Code(text if isinstance(value, (dict, list)) else _scalar(value)))
        return
    yield say(f"{lead}:")
    if isinstance(value, str):
        yield excerpt(value)
    else:
        pretty = json.dumps(value, ensure_ascii=False, indent=2, default=str)
        yield excerpt(pretty, "json")


def _scalar(value: Any) -> str:
    return value if isinstance(value, str) and value.strip() else json.dumps(value, ensure_ascii=False, default=str)
