"""Rules about tools and agents that are called."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agentloom.analysis.agents import called_by, find_agent, looks_like_path
from agentloom.analysis.document import Facts, Step, WorkflowDocument
from agentloom.analysis.effort import mapping
from agentloom.analysis.graph import find_cycles
from agentloom.analysis.rules.places import key_at, node_at, renamed, span_at
from agentloom.analysis.symbols import Occurrence
from agentloom.analysis.values import suggest, undefined, valid_values
from agentloom.diagnostics import Edit, Finding, Fix, Related
from agentloom.language.paths import format_path
from agentloom.similar import closest, slip_of
from agentloom.syntax.values import find, find_key

# The fields of steps in which tools and agents are named; other steps are passed over.
_NAMING = {"tool": frozenset(("tool_name", "tools", "tool_choice")), "agent": frozenset(("agent",))}


def unknown_tool(document: WorkflowDocument) -> Iterator[Finding]:
    """A step names a tool that isn't known.

    A `tool` step would fail for good, and a model's call can't succeed. Tools of one's own are those of the modules that the settings name; a Python program may register more.
    Each unknown name is told once. Where a module can't be used, only slips of the pen are told.

    Correct the name, or name the module under `tools` in the settings.
    """
    known = document.context.tools
    if not known:
        return  # nobody knows which tools there are
    told: set[str] = set()
    for facts, base, place in _named(document, "tool"):
        if place.name in known or not place.name or _told_as_no_choice(facts, place):
            continue
        near = slip_of(place.name, known)
        if near is not None:
            yield Finding(
                "AL604",
                place.span.shift(base),
                f"tool `{place.name}` is not known; did you mean `{near}`?",
                fixes=renamed(find(facts.node, _path(place.key)), near, base),
            )
        elif document.context.tools_complete and place.name not in told:
            told.add(place.name)
            cure = "correct the name, or name the module that registers it under `tools` in the settings"
            yield Finding("AL604", place.span.shift(base), f"tool `{place.name}` is not known; {cure}")


def _told_as_no_choice(facts: Facts, place: Occurrence) -> bool:
    """Tell whether a step's `tool_choice` names none of its `tools`, which AL109 says."""
    tools = facts.data.get("tools")
    return place.key == "tool_choice.name" and all(
        mapping(tool).get("name") != place.name for tool in (tools if isinstance(tools, list) else ())
    )


def _named(document: WorkflowDocument, kind: str) -> Iterator[tuple[Facts, int, Occurrence]]:
    """Yield where things of a kind are named, in the head and in the steps."""
    holders = [(document.head, document.base)]
    holders.extend(
        (step.facts, step.base) for step in document.steps if not _NAMING[kind].isdisjoint(step.facts.fields)
    )
    for facts, base in holders:
        for place in facts.occurrences:
            if place.kind == kind and place.role == "refer":
                yield facts, base, place


def _path(key: str) -> tuple[str | int, ...]:
    return tuple(int(part) if part.isdigit() else part for part in key.split("."))


def bad_tool_arguments(document: WorkflowDocument) -> Iterator[Finding]:
    """A tool gets arguments that it doesn't take, or doesn't get one that it needs.

    The step would fail for good. Only what stands in the file is looked at; a template may become anything.

    Correct the arguments as the message says.
    """
    if not document.context.tools_complete:
        return  # a module that isn't known may put another tool in the place of one that is
    for step in document.steps:
        tool = document.context.tools.get(step.facts.text("tool_name") or "") if step.type == "tool" else None
        args = step.facts.data.get("tool_args")
        if tool is None or (args is not None and not isinstance(args, dict)) or step.facts.findings:
            continue  # what is wrong with its shape comes first
        yield from _arguments(step, tool.name, args or {}, tool.parameters)


def _arguments(step: Step, tool: str, args: dict[str, Any], schema: Any) -> Iterator[Finding]:
    facts = step.facts
    known = schema.get("properties", {})
    unknown = [name for name in args if name not in known] if schema.get("additionalProperties") is False else []
    missing = [name for name in schema.get("required", ()) if name not in args]
    for name in unknown:
        near = closest(name, [other for other in known if other not in args])
        cure = f"did you mean `{near}`?" if near else "it takes " + ", ".join(f"`{other}`" for other in known)
        located = facts.fields.get("tool_args")
        key = find_key(located.value, (name,)) if located is not None else None
        fixes: tuple[Fix, ...] = ()
        if near is not None and key is not None:
            fixes = (Fix(f"change to `{near}`", (Edit(key.span.shift(step.base), near),), safe=False),)
            missing = [other for other in missing if other != near]
        yield Finding(
            "AL605", step.place(key_at(facts, "tool_args", name)), f"`{tool}` takes no `{name}`; {cure}", fixes=fixes
        )
    if missing:
        where = facts.key_span("tool_args") if "tool_args" in facts.fields else facts.span_of("tool_name")
        names = ", ".join(f"`{name}`" for name in missing)
        yield Finding(
            "AL605", step.place(where), f"`{tool}` needs {names}; add {'it' if len(missing) == 1 else 'them'}"
        )
    if _only_texts(known) and all(isinstance(value, str) for value in args.values()):
        return
    from agentloom.analysis.rules.fitting import misfits  # only where more than texts are asked for or given

    for name, value in args.items():
        for path, words in misfits(value, known.get(name), schema):
            node = node_at(facts, "tool_args", name, *path)
            choices = [choice for choice in known[name].get("enum", ()) if isinstance(choice, str)]
            near = closest(value, choices) if isinstance(value, str) and choices else None
            shown = format_path([name, *path])
            yield Finding(
                "AL605",
                step.place(span_at(facts, "tool_args", name, *path)),
                f"`{shown}` of `{tool}` {words}",
                fixes=renamed(node, near, step.base),
            )


def _only_texts(known: Any) -> bool:
    return all(
        isinstance(about, dict) and about.get("type") == "string" and "enum" not in about for about in known.values()
    )


def unknown_agent(document: WorkflowDocument) -> Iterator[Finding]:
    """A step, or another agent, names an agent that isn't defined.

    Agents stand under `agents`, or in files of their own, which are named by their path.

    Correct the name, or define the agent.
    """
    if document.kind != "workflow":
        return
    known = set(valid_values(document, "agent"))
    for facts, base, place in _named(document, "agent"):
        name = place.name
        if name in known or not name or looks_like_path(name):
            continue
        near = suggest(document, "agent", name)
        message = undefined("agent", name, near, "define it under `agents`, or name a file")
        node = find(facts.node, _path(place.key))
        yield Finding("AL608", place.span.shift(base), message, fixes=renamed(node, near, base))
    for facts, base, place in _agent_references(document):
        child = document.agents[place.name]
        for name in called_by(child.document.head.data) if child.document is not None and not child.loop else ():
            if name not in known and not looks_like_path(name):
                node = find(facts.node, _path(place.key))
                span = (node.span if node is not None else facts.first).shift(base)
                text = f"`{place.name}` calls agent `{name}`, which is not defined; define it under `agents`"
                yield Finding("AL608", span, text)


def agent_cycle(document: WorkflowDocument) -> Iterator[Finding]:
    """Agents call each other as tools in a ring.

    Each would start the next one, without end.

    Take one of the calls out.
    """
    yield from _file_cycles(document)
    agents = document.head.data.get("agents")
    if not isinstance(agents, dict) or document.kind != "workflow":
        return
    calls: dict[str, list[str]] = {name: [] for name in agents}
    places: dict[tuple[str, str], Occurrence] = {}
    for place in document.head.occurrences:
        words = place.key.split(".")
        if (
            place.kind == "agent"
            and place.role == "refer"
            and len(words) > 2
            and words[1] in calls
            and place.name in calls
        ):
            calls[words[1]].append(place.name)
            places.setdefault((words[1], place.name), place)
    itself = [(name,) for name, called in calls.items() if name in called]
    for loop in [*itself, *find_cycles(calls)]:
        edges = list(zip(loop, (*loop[1:], loop[0]), strict=True))
        closing = places[edges[-1]]
        shown = " -> ".join((*loop, loop[0]))
        yield Finding(
            "AL609",
            closing.span.shift(document.base),
            f"agents call each other in a ring: `{shown}`; take one of the calls out",
            related=tuple(
                Related(places[edge].span.shift(document.base), f"`{edge[0]}` calls `{edge[1]}`") for edge in edges[:-1]
            ),
        )


def _file_cycles(document: WorkflowDocument) -> Iterator[Finding]:
    """Yield the rings that lead through agent files: told where this document names the first of them."""
    told: set[str] = set()
    for facts, base, place in _agent_references(document):
        child = document.agents.get(place.name)
        if document.kind == "workflow":
            ring = _ring_from(document, place.name)
        else:
            ring = [path.name for path in child.loop] if child is not None else []
        if ring and place.name not in told:
            told.add(place.name)
            node = find(facts.node, _path(place.key))
            span = (node.span if node is not None else facts.first).shift(base)
            shown = " -> ".join(ring)
            yield Finding("AL609", span, f"agents call each other in a ring: `{shown}`; take one of the calls out")


def _agent_references(document: WorkflowDocument) -> Iterator[tuple[Facts, int, Occurrence]]:
    for facts, base in ((document.head, document.base), *((step.facts, step.base) for step in document.steps)):
        for place in facts.files:
            if place.name in document.agents:
                yield facts, base, place


def _ring_from(document: WorkflowDocument, name: str) -> list[str]:
    """Return the ring that agents from here run into, by their names; nothing if there is none, or none of its agents is a file."""
    first = find_agent(document, name, document)
    done: set[str] = set()
    trail: list[str] = []
    todo = [(first, False)]
    while todo:
        found, leaving = todo.pop()
        if leaving:
            done.add(trail.pop())
        elif found is not None and found.id in trail:
            ring = [*trail[trail.index(found.id) :], found.id]
            if any(looks_like_path(id_) for id_ in ring):
                return [id_.replace("\\", "/").rpartition("/")[2] for id_ in ring]
        elif found is not None and found.id not in done:
            trail.append(found.id)
            todo.append((found, True))
            todo.extend((find_agent(document, other, found.holder), False) for other in called_by(found.data))
    return []
