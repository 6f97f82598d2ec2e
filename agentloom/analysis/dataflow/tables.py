"""What one workflow's steps write and which router choices they need, as sets of bits: bit n is the n-th step of the graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from agentloom.analysis.dataflow.declared import key_of
from agentloom.analysis.document import Facts, Step, WorkflowDocument
from agentloom.language.expression import Expression, parse_expression

BEFORE = "_flow_before"
"""Under this name the driver hands a new version of a document the tables of its last one."""

STEPS = "steps"
"""The state key under which the engine keeps results."""

Key = tuple[str, ...]


class Ways:
    """What a router may do. ``targets`` are the steps it may pick, in order of its conditions, the default last; None where the file
    is too broken to tell. Routers with the same conditions over the same values decide alike: they share a ``group``, and what a
    target means there is the set of bits ``when[target]``, of conditions by number; ``all`` are those that can be true."""

    __slots__ = ("all", "expressions", "group", "targets", "when")

    def __init__(self, targets: list[str] | None, expressions: tuple[Expression, ...], group: int) -> None:
        self.targets = targets
        self.expressions = expressions
        self.group = group
        self.when: dict[str, int] = {}
        self.all = 0
        for at, target in enumerate(targets or ()):
            if at >= len(expressions) or expressions[at].constant is not False:
                self.when[target] = self.when.get(target, 0) | 1 << at
                self.all |= 1 << at


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Tables:
    """One workflow, without regard to what is around it.

    ``upstream`` and ``before`` hold for each step its ancestors, and all steps of earlier layers. ``edges`` are the pairs of a router and a step that waits for
    it; ``needed`` holds for each step the edges (as bits) that the routers above it must take for it to run, ``together`` for each group of
    routers its edges, and ``holders`` those of them that one condition of the group leads over. ``dead`` are steps that never run. ``unsure`` are steps whose place isn't known, since something that
    they wait for, directly or not, isn't there; ``loose`` the keys that such steps write that aren't in the graph at all.
    ``sure`` are facts of steps all of whose reads surely find a value: kept from version to version; ``unread`` is what the
    rule about outputs that nobody reads has found, and in which facts.
    """

    document: WorkflowDocument
    steps: tuple[Step, ...]
    index: dict[str, int]
    layer: list[int]
    upstream: list[int]
    before: list[int]
    goes_on: bool
    exact: dict[Key, int] = field(default_factory=dict)
    below: dict[Key, int] = field(default_factory=dict)
    loose: set[Key] = field(default_factory=set)
    routers: dict[int, Ways] = field(default_factory=dict)
    router_bits: int = 0
    edges: list[tuple[int, str]] = field(default_factory=list)
    needed: list[int] = field(default_factory=list)
    together: dict[int, int] = field(default_factory=dict)
    holders: dict[tuple[int, int], int] = field(default_factory=dict)
    known_rivals: dict[int, int] = field(default_factory=dict)
    dead: int = 0
    unsure: int = 0
    children: int = 0
    spent: int = 0
    sure: dict[int, Facts] = field(default_factory=dict)
    unread: tuple[tuple[Facts, ...], tuple[int, ...]] | None = None

    def writers_of(self, key: Key) -> int:
        """Return the steps that write a path, something above it, or something below it."""
        found = self.below.get(key, 0)
        for length in range(1, len(key) + 1):
            found |= self.exact.get(key[:length], 0)
        return found

    def is_loose(self, key: Key) -> bool:
        """Tell whether a step without a place in the graph may write a path."""
        return any(other[: len(key)] == key[: len(other)] for other in self.loose)

    def hostile(self, edges: int) -> int:
        """Return the edges that can't be taken where all of ``edges`` are."""
        found = 0
        for edge in bits(edges):
            found |= self.rivals(edge)
        return found

    def rivals(self, edge: int) -> int:
        """Return the edges that can't be taken with an edge: those of its routers, but such as a common condition leads over."""
        found = self.known_rivals.get(edge)
        if found is None:
            router, target = self.edges[edge]
            ways = self.routers[router]
            shared = 1 << edge
            for condition in bits(ways.when.get(target, 0)):
                shared |= self.holders[ways.group, condition]
            found = self.known_rivals[edge] = self.together[ways.group] & ~shared
        return found


def bits(mask: int) -> Iterator[int]:
    """Yield the numbers of the bits that are set, from the lowest."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def tables_of(document: WorkflowDocument) -> Tables:
    """Return a document's tables, made once; those of its last version where what they tell hasn't changed."""
    kept: Tables | None = document.__dict__.get("_flow_tables")
    if kept is None:
        before: Tables | None = document.__dict__.pop(BEFORE, None)
        kept = before if before is not None and _still_true(before, document) else make_tables(document)
        document.__dict__["_flow_tables"] = kept
    return kept


def _still_true(before: Tables, document: WorkflowDocument) -> bool:
    """Tell whether tables of an earlier version hold for a document; if so, they are its own from now on."""
    old = before.document
    if len(old.steps) != len(document.steps) or old.head.data != document.head.data:
        return False
    if old.context.settings is not document.context.settings or old.tree.findings or document.tree.findings:
        return False
    for one, other in zip(old.steps, document.steps, strict=True):
        if one.facts is not other.facts and _meaning(one) != _meaning(other):
            return False
    if len(before.sure) > len(document.steps) + 100:  # facts of texts that are gone
        before.sure = {id(step.facts): step.facts for step in document.steps if id(step.facts) in before.sure}
    before.spent = 0
    before.document = document
    before.steps = tuple(document.by_id.values())
    return True


def _meaning(step: Step) -> tuple[Any, ...]:
    """Return all that the tables take from a step."""
    data = step.facts.data
    ways = (repr(data.get("conditions")), data.get("default")) if step.type == "router" else ()
    return (step.id, step.type, step.needs, [write.parts for write in step.facts.writes], ways)


def make_tables(document: WorkflowDocument) -> Tables:
    """Return the tables of a workflow; costs about as much as its steps, their dependencies and their writes are many."""
    graph = document.graph
    steps = tuple(document.by_id.values())
    index = {name: at for at, name in enumerate(graph.dependencies)}
    config = document.head.data.get("config")
    goes_on = isinstance(config, dict) and config.get("on_step_failure") == "continue"
    before = [0] * len(steps)
    layer = [-1] * len(steps)
    earlier = 0
    for number, names in enumerate(graph.layers):
        members = 0
        for name in names:
            at = index[name]
            before[at], layer[at] = earlier, number
            members |= 1 << at
        earlier |= members
    known = graph.upstream_bits
    upstream = [known.get(name, 0) for name in index]
    tables = Tables(document, steps, index, layer, upstream, before, goes_on)
    _writes(tables)
    _unsure(tables)
    _routers(tables)
    return tables


def _writes(tables: Tables) -> None:
    exact, below = tables.exact, tables.below
    by_id = tables.document.by_id
    at = -1
    for step in tables.document.steps:
        known = step.id is not None and by_id[step.id] is step
        at += known
        if known and step.type == "subworkflow":
            tables.children |= 1 << at
        elif known and step.type == "router":
            tables.router_bits |= 1 << at
        for write in step.facts.writes:
            key = key_of(write.parts)
            if not known or tables.layer[at] < 0:
                tables.loose.add(key)
                continue
            exact[key] = exact.get(key, 0) | 1 << at
            for length in range(1, len(key)):
                below[key[:length]] = below.get(key[:length], 0) | 1 << at


def _unsure(tables: Tables) -> None:
    roots = 0
    for at, step in enumerate(tables.steps):
        for name in step.needs:
            if name not in tables.index:
                roots |= 1 << at
                break
    if roots:
        for at, above in enumerate(tables.upstream):
            if (above | 1 << at) & roots:
                tables.unsure |= 1 << at


def _routers(tables: Tables) -> None:
    """Fill in the routers, their edges, and what the steps behind them need."""
    if not tables.router_bits:
        tables.needed = [0] * len(tables.steps)
        return
    groups: dict[Any, list[int]] = {}
    for at in bits(tables.router_bits):
        targets, expressions, alike = _ways_out(tables.steps[at].facts.data)
        ways = Ways(targets, expressions, at)
        tables.routers[at] = ways
        if alike:
            for other in groups.setdefault(alike, []):
                if _same_values(tables, other, at):
                    ways.group = tables.routers[other].group
                    break
            groups[alike].append(at)
    tables.needed = [0] * len(tables.steps)
    for names in tables.document.graph.layers:
        for name in names:
            at = tables.index[name]
            needed = clash = 0
            for need in tables.document.graph.dependencies[name]:
                above = tables.index[need]
                more = tables.needed[above]
                if tables.dead >> above & 1:
                    clash = 1
                if tables.router_bits >> above & 1:
                    more |= 1 << _edge(tables, above, name)
                    if not _may_pick(tables.routers[above], name):
                        clash = 1
                if more & ~needed:
                    if needed and not clash and tables.hostile(more & ~needed) & (needed | more):
                        clash = 1
                    needed |= more
            tables.needed[at] = needed
            if clash:
                tables.dead |= 1 << at


def _edge(tables: Tables, router: int, target: str) -> int:
    """Note an edge from a router to a step that waits for it; return its number."""
    number = len(tables.edges)
    tables.edges.append((router, target))
    ways = tables.routers[router]
    for condition in bits(ways.when.get(target, 0)):
        tables.holders[ways.group, condition] = tables.holders.get((ways.group, condition), 0) | 1 << number
    tables.together[ways.group] = tables.together.get(ways.group, 0) | 1 << number
    tables.known_rivals.clear()  # those that were asked for are no longer all
    return number


def _may_pick(ways: Ways, name: str) -> bool:
    return ways.targets is None or name in ways.when


def _ways_out(data: Any) -> tuple[list[str] | None, tuple[Expression, ...], Any]:
    """Return the targets of a router in order, its conditions, and a key that is equal for routers with the same conditions."""
    targets: list[str] = []
    expressions: list[Expression] = []
    listed = data.get("conditions") or []
    if not isinstance(listed, list):
        return None, (), None
    for condition in listed:
        text = condition.get("expression") if isinstance(condition, dict) else None
        target = condition.get("target") if isinstance(condition, dict) else None
        if not isinstance(text, str) or not isinstance(target, str):
            return None, (), None
        expression = parse_expression(text)
        if expression.faults:
            return None, (), None
        expressions.append(expression)
        targets.append(target)
        if expression.constant is True:
            break
    else:
        default = data.get("default")
        if isinstance(default, str):
            targets.append(default)
        elif default is not None:
            return None, (), None
    if not targets:
        return None, (), None
    alike = (len(targets), *(expression.canonical for expression in expressions))
    return targets, tuple(expressions), alike


def _same_values(tables: Tables, one: int, other: int) -> bool:
    """Tell whether two routers see the same values: nothing between them writes what their conditions read."""
    first, last = sorted((tables.layer[one], tables.layer[other]))
    if first < 0:
        return False
    if first == last:
        return True
    between = 0
    for number in range(first, last):
        for name in tables.document.graph.layers[number]:
            between |= 1 << tables.index[name]
    for expression in tables.routers[one].expressions:
        for read in expression.reads:
            key = key_of(read.parts)
            if not key or key == (STEPS,):
                return False
            if key[0] == STEPS:
                writer = tables.index.get(key[1])
                if writer is not None and between >> writer & 1:
                    return False
            elif tables.writers_of(key) & between:
                return False
    return True
