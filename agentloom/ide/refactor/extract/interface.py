"""What goes in and comes out: the keys that extracted steps read from outside, and those of theirs that others read."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from agentloom.analysis.document import Step
from agentloom.analysis.graph import build_graph
from agentloom.ide.refactor.accesses import Access, keep_races
from agentloom.ide.refactor.extract.selection import Selection
from agentloom.ide.refactor.rewriting import Change, moved_path
from agentloom.ide.results import Refusal
from agentloom.language.paths import Part, format_path


@dataclass(eq=False, repr=False)
class Interface:
    """The keys that are handed in and given back, in the order in which they were found, and the reads outside that follow.

    ``shared`` tells that the new step works on a copy of the whole state: a key handed over by name has to be there.
    """

    inputs: dict[Part, None] = field(default_factory=dict)
    returned: dict[Part, None] = field(default_factory=dict)
    moved: list[tuple[str, Change]] = field(default_factory=list)
    shared: bool = False


def interface_of(selection: Selection) -> Interface:
    """Return the interface of the chosen steps. Raises ``Refusal`` where others would read something else afterwards."""
    interface = Interface()
    _check_writes(selection)
    _check_races(selection)
    for read in selection.accesses.reads:
        if read.parts[:1] in ((), ("steps",)):
            _check_results(selection, read)
        else:
            _take(selection, interface, read)
    interface.shared = not _all_there(selection, interface)
    _add_results(selection, interface)
    return interface


def _check_writes(selection: Selection) -> None:
    schema = selection.document.head.data.get("state_schema")
    for write in selection.writes:
        text = format_path(write.parts)
        for other in selection.accesses.overlapping(write.parts):
            if other.step not in selection.inside and _unordered(selection, write.step, other.step):
                raise Refusal(f"`{write.step}` and `{other.step}` both write `{text}` in no certain order")
        for pattern in schema if isinstance(schema, dict) else ():
            if fnmatchcase(str(write.parts[0]), str(pattern)) or fnmatchcase(text, str(pattern)):
                raise Refusal(f"`state_schema` says what holds for `{text}`, which would move")


def _take(selection: Selection, interface: Interface, read: Access) -> None:
    """Note what a read needs from the other side of the border."""
    inner, text = read.step in selection.inside, format_path(read.parts)
    seen = selection.accesses.seen(read.step, read.parts)
    racers = [name for name in seen.racing if (name in selection.inside) != inner]
    if racers:
        raise Refusal(f"`{read.step}` reads `{text}`, which `{racers[0]}` writes in no certain order")
    ours = [name for name in seen.writers if name in selection.inside]
    theirs = [name for name in seen.writers if name not in selection.inside]
    if inner:
        if theirs or seen.before:
            interface.inputs[read.parts[0]] = None
        return
    if not ours:
        return
    if read.occurrence is None:
        raise Refusal(f"`{text}` is read by what `{read.step}` runs, and would stand elsewhere")
    if any(
        write.step == read.step and write.parts == read.parts for write in selection.accesses.overlapping(read.parts)
    ):
        # Moved to where it stands now, its own write would move too, away from those who read that.
        raise Refusal(f"`{read.step}` goes on with `{text}`, which would stand elsewhere; choose it as well")
    # Parts that others wrote earlier are in the child's copy; what they write later wouldn't be.
    late = [name for name in theirs if not all(selection.graph.is_upstream(name, own) for own in ours)]
    if seen.racing or late:
        raise Refusal(f"`{read.step}` reads `{text}`, of which `{[*seen.racing, *late][0]}` writes a part, too")
    key = read.parts[0]
    if theirs or (seen.before and selection.accesses.begins_with(key)):
        interface.inputs[key] = None
    interface.returned[key] = None
    interface.moved.append((read.step, moved_path(read.occurrence, 1, (selection.name, key))))


def _add_results(selection: Selection, interface: Interface) -> None:
    """Give back what none of the steps reads: results of the workflow."""
    read = {access.parts for access in selection.accesses.reads if access.step in selection.inside}
    within = {parts[:length] for parts in read for length in range(len(parts))}
    for write in selection.writes:
        above = (write.parts[:length] for length in range(len(write.parts) + 1))
        if write.parts not in within and read.isdisjoint(above):
            interface.returned[write.parts[0]] = None


def _check_races(selection: Selection) -> None:
    """Where only layers decide what comes first, they must go on to say the same."""
    outside = [name for name in selection.graph.dependencies if name not in selection.inside]
    layers = build_graph(selection.expected).layer_of
    keep_races(selection.accesses.races(frozenset(outside)), selection.graph.layer_of, layers)
    inner = {
        name: [need for need in selection.graph.dependencies[name] if need in selection.inside]
        for name in selection.ids
    }
    keep_races(selection.accesses.races(selection.inside), selection.graph.layer_of, build_graph(inner).layer_of)


def _check_results(selection: Selection, read: Access) -> None:
    """Results under `steps` belong to one workflow; the whole state looks different afterwards."""
    inner = read.step in selection.inside
    if len(read.parts) > 1:
        about = read.parts[1]
        if about in selection.document.by_id and inner != (about in selection.inside):
            raise Refusal(f"`{read.step}` reads the result of `{about}`; let it read its `output` instead")
        return
    graph = selection.graph
    below = any(graph.is_upstream(name, read.step) for name in selection.ids)
    above = any(graph.is_upstream(read.step, name) for name in selection.ids)
    if inner or below or not above:
        raise Refusal(f"`{read.step}` reads the whole state, which would look different")


def _unordered(selection: Selection, one: str, other: str) -> bool:
    if selection.accesses.excluded(one, other):
        return False
    return not (selection.graph.is_upstream(one, other) or selection.graph.is_upstream(other, one))


def _all_there(selection: Selection, interface: Interface) -> bool:
    """Tell whether every key is surely there when the steps begin, so that it can be handed over by name."""
    config = selection.document.head.data.get("config")
    goes_on = isinstance(config, dict) and config.get("on_step_failure") == "continue"
    for key in interface.inputs:
        written = not goes_on and any(
            write.parts[0] == key and all(selection.graph.is_upstream(write.step, name) for name in selection.first)
            for write in selection.accesses.overlapping((key,))
            if write.step not in selection.inside
        )
        if not written and not selection.accesses.begins_with(key):
            return False
    return not any(_copies(selection.step(name)) for name in selection.ids)


def _copies(step: Step) -> bool:
    """Tell whether a step hands the whole state on."""
    isolated = step.facts.data.get("isolated_state") is True
    return step.type in ("subworkflow", "agent") and not isolated
