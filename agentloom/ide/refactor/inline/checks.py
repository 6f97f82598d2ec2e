"""What keeps a child workflow where it is: fields of its step, branches, anchors, and who reads its output."""

from __future__ import annotations

from agentloom.ide.refactor.accesses import Access, Parts, overlap
from agentloom.ide.refactor.inline.call import Call
from agentloom.ide.refactor.inline.settings import check_settings
from agentloom.ide.refactor.naming import targets_of
from agentloom.ide.results import Refusal
from agentloom.language.paths import format_path
from agentloom.syntax.aliases import walk
from agentloom.syntax.nodes import Alias, Node
from agentloom.syntax.values import find

HANDLED = frozenset(
    (
        "id",
        "type",
        "depends_on",
        "output",
        "workflow_path",
        "workflow_inline",
        "isolated_state",
        "input",
        "return_keys",
        "retry",
        "timeout",
    )
)
"""Fields of a subworkflow step whose meaning is kept, or whose loss is refused."""


def check(call: Call) -> None:
    """Raise ``Refusal`` where the child's steps can't take the step's place."""
    if not call.document.ok or not call.child.ok:
        raise Refusal("the file or its child has errors; mend them first")
    _check_step(call)
    check_settings(call.document, call.child)
    _check_order(call)
    _check_results(call)
    _check_anchors(call)
    _check_readers(call)
    _check_output(call)


def _check_step(call: Call) -> None:
    data = call.step.facts.data
    if call.step.alias is not None:
        raise Refusal("the step is an alias of another one")
    other = next((name for name in data if name not in HANDLED), None)
    if other is not None:
        raise Refusal(f"`{other}` of the step would be lost")
    if data.get("timeout"):
        raise Refusal("the step has a `timeout` for the whole of the child")
    retry = data.get("retry")
    if isinstance(retry, dict) and retry and retry.get("max_retries") != 0:
        raise Refusal("the step's `retry` runs the whole child again")


def _check_order(call: Call) -> None:
    graph, choices = call.document.graph, call.inner.choices
    routers = [name for name, step in call.document.by_id.items() if call.me in targets_of(step)]
    if routers and len(call.roots) > 1:
        raise Refusal(f"router `{routers[0]}` chooses the step, and the child begins with {len(call.roots)} steps")
    waiting = graph.dependents[call.me]
    if waiting:
        for name in call.sinks:
            if choices.get(name) or call.child.by_id[name].type == "router":
                why = "runs only if a router chooses so" if choices.get(name) else "is a router"
                raise Refusal(f"`{waiting[0]}` waits for the step, and `{name}` at the child's end {why}")


def _check_results(call: Call) -> None:
    """Results under `steps` belong to one workflow."""
    own = call.document.by_id
    for access in call.inner.reads:
        if access.parts[:1] == ("steps",) and len(access.parts) > 1:
            about = access.parts[1]
            if about not in call.ids and about in own:
                raise Refusal(f"`{access.step}` of the child reads the result of `{about}`, which isn't in it")


def _check_anchors(call: Call) -> None:
    """Raise ``Refusal`` where an alias would lose its anchor, or mean another one."""
    if "&" not in call.document.source.text and "&" not in call.child.source.text:
        return
    root = call.document.tree.root
    own = {id(node) for node in walk(find(root, ("steps", call.step.index)))}  # all that is taken out
    carried = {id(node) for chunk in call.chunks.items for node in walk(chunk.node)}
    anchors = {_name_of(call, node) for chunk in call.chunks.items for node in walk(chunk.node) if _anchored(node)}
    for chunk in call.chunks.items:
        for node in walk(chunk.node):
            if not isinstance(node, Alias) or node.target is None or id(node.target) in carried:
                continue
            if call.folder is not None or id(node.target) in own:
                raise Refusal(f"`*{node.name}` has its anchor outside of the child's steps")
    for node in walk(root):
        if isinstance(node, Alias) and node.target is not None and id(node.target) in own:
            if id(node.target) not in carried:
                raise Refusal(f"the anchor of `*{node.name}` would be lost")
        elif call.folder is not None and isinstance(node, Alias) and node.name in anchors:
            raise Refusal(f"both files have an anchor `&{node.name}`")


def _check_readers(call: Call) -> None:
    """Whoever reads the step's output must find the same there."""
    for read in call.outer.reads:
        if read.step == call.me:
            continue
        if read.parts[:2] == ("steps", call.me):
            raise Refusal(f"`{read.step}` reads the result of the step; let it read its `output` instead")
        if read.parts in ((), ("steps",)):
            if not call.document.graph.is_upstream(read.step, call.me):
                raise Refusal(f"`{read.step}` reads the whole state, which would look different")
        elif call.output and overlap(read.parts, call.output) and not call.outer.excluded(read.step, call.me):
            _check_reader(call, read)


def _check_reader(call: Call, read: Access) -> None:
    graph, text = call.document.graph, format_path(read.parts)
    if graph.is_upstream(read.step, call.me):
        return
    if not graph.is_upstream(call.me, read.step):
        raise Refusal(f"`{read.step}` reads `{format_path(call.output)}` without waiting for the step")
    rest = read.parts[len(call.output) :]
    if not rest:
        if not _alone(call):
            raise Refusal(f"`{read.step}` reads the whole of `{format_path(call.output)}`, which would look different")
        return
    if call.places.get(rest[0]) != (*call.output, rest[0]):
        raise Refusal(f"`{read.step}` reads `{text}`, which no step of the child writes")
    if call.given(rest[0]) and not any(_covers(write.parts, rest) for write in call.inner.writes):
        raise Refusal(f"`{read.step}` reads `{text}`, of which the child writes only a part")


def _check_output(call: Call) -> None:
    """Nobody else may write where the output goes: it was replaced as a whole, and grows key by key afterwards."""
    if not call.output:
        return
    for write in call.outer.overlapping(call.output):
        if write.step != call.me and not call.outer.excluded(write.step, call.me):
            raise Refusal(f"`{write.step}` writes `{format_path(write.parts)}`, too")
    if call.outer.begins_with(call.output[0]):
        raise Refusal(f"`state` has a key `{call.output[0]}`, which the step's output replaces")


def _alone(call: Call) -> bool:
    """Tell whether the output is one key that is surely written, so that it looks the same as a whole."""
    if call.returned is None or len(call.returned) != 1:
        return False
    (key,) = call.returned
    return any(write.parts == (key,) and not call.inner.choices.get(write.step) for write in call.inner.writes)


def _covers(one: Parts, other: Parts) -> bool:
    return other[: len(one)] == one


def _name_of(call: Call, node: Node) -> str:
    anchor = None if isinstance(node, Alias) else node.anchor
    return "" if anchor is None else call.child.source.text[anchor.start + 1 : anchor.end]


def _anchored(node: Node) -> bool:
    return not isinstance(node, Alias) and node.anchor is not None
