"""Rules about what steps read of the state: keys that nobody writes, that are written too late, or only on some routes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from agentloom.analysis import edits
from agentloom.analysis.dataflow import Flow, Reach, Read
from agentloom.analysis.dataflow.tables import bits
from agentloom.analysis.document import Step, WorkflowDocument
from agentloom.analysis.rules.reading import Doubtful, doubtful, files_below, listing, walk
from agentloom.analysis.rules.spaced import spaced
from agentloom.analysis.rules.twice import conversations_twice, state_twice
from agentloom.analysis.rules.waiting import wait_for
from agentloom.analysis.values import nearest
from agentloom.diagnostics import Edit, Finding, Fix, Related, Severity
from agentloom.language.paths import Part, format_path, get, is_name
from agentloom.language.rendering import kind_of
from agentloom.similar import slip_of
from agentloom.syntax.nodes import Mapping, Scalar
from agentloom.text import Span, newline_of

RESULTS = "steps"
MOST_NAMES = 30_000
"""Names that are looked through for typing mistakes, over all keys: where more is unknown, to compare all with all takes too long."""


def unknown_state_key(document: WorkflowDocument) -> Iterator[Finding]:
    """A state key is read that nothing sets: no step writes it, and it stands neither in `state` nor in the settings.

    A template renders it as an empty text, so a typing mistake becomes a gap in a prompt. Keys that are given with `--state` are
    declared by a comment, `# agentloom: state[question, lang]`, by `known_state` in the settings, or with a value to begin with in
    `state`; those that aren't are told once in a file. An `output`, `inputs` and a `conversation` begin below `state`: `output: state.reply` writes `state.state.reply`.

    Correct the name, or declare the key.
    """
    undeclared: dict[str, list[Doubtful]] = {}
    left = MOST_NAMES
    for one in doubtful(document):
        if one.reaching.certainty != "never" or one.parts[0] == RESULTS:
            continue
        depth, known = _known_part(one, left > 0)
        left -= len(one.flow.tables.steps)
        if depth == 0 and one.reaching.later:
            known = []  # the step writes it itself, so its name is right
        name = one.parts[depth]
        near = slip_of(name, known) if isinstance(name, str) else None
        outer = one.flow.outer
        if (found := state_twice(one) or spaced(one, depth)) is not None:
            yield found
        elif near is None and depth == 0 and outer is not None and outer.isolated:
            yield _not_handed(one, str(name))
        elif near is None and depth == 0 and (found := _set_inside(one, str(name))) is not None:
            yield found
        elif near is None and depth == 0:
            undeclared.setdefault(str(name), []).append(one)
        else:
            yield _unknown(one, depth, near)
    if undeclared:
        yield _undeclared(document, undeclared)
    yield from conversations_twice(document)
    for flow, step, reads in files_below(document, "never", isolated=True):
        yield _file_not_handed(flow, step, reads)


def _known_part(one: Doubtful, with_names: bool) -> tuple[int, list[str]]:
    """Return which part of a path is the first that nothing sets, and the names that are there in its place, if they are wanted."""
    flow, parts = one.flow, one.parts
    for depth in range(len(parts)):
        if depth and not isinstance(parts[depth], str):
            return depth, []
        reaching = flow.reaching(one.step, parts[: depth + 1])
        if reaching.certainty == "never" or depth == len(parts) - 1:
            return depth, _names_below(flow, one, parts[:depth]) if with_names else []
    return 0, []


def _names_below(flow: Flow, one: Doubtful, parts: tuple[Part, ...]) -> list[str]:
    names: dict[str, None] = {}
    for offer in flow.in_scope(one.step):
        if len(offer.parts) > len(parts) and offer.parts[: len(parts)] == parts:
            names[str(offer.parts[len(parts)])] = None
    for writer in flow.writers(parts) if parts else ():
        child = flow.child(writer.step)
        below = parts[len(writer.parts) :]
        if child is not None and parts[: len(writer.parts)] == writer.parts and not below:
            keys = writer.step.facts.data.get("return_keys")
            if isinstance(keys, list):
                names.update(dict.fromkeys(key for key in keys if isinstance(key, str)))
            else:
                names.update(dict.fromkeys(str(w.parts[0]) for s in child.tables.steps for w in s.facts.writes))
    return list(names)


def _unknown(one: Doubtful, depth: int, near: str | None) -> Finding:
    place = one.read.occurrence
    name = format_path(one.parts[: depth + 1])
    above = one.parts[:depth]
    if near is not None:
        cure = f"did you mean `{near}`?"
    elif above and not isinstance(value := get(one.flow.declared.values, above), dict) and value in _texts(value):
        cure = f"`{format_path(above)}` is {kind_of(value)}"
    elif above:
        cure = f"`{format_path(above)}` has no such key"
    else:
        cure = "declare it or correct the name"
    span = place.part_spans[depth].shift(one.read.base) if depth < len(place.parts_inside) else one.read.span
    what = "so this step fails" if one.strict else "so it is empty here"
    if one.asks:
        what = "so it is None here"
    fixes: tuple[Fix, ...] = ()
    if near is not None and is_name(near) and depth < len(place.parts_inside):
        edit = edits.replace_inside(place.node, *place.parts_inside[depth], near)
        moved = tuple(Edit(e.span.shift(one.read.base), e.text) for e in edit)
        fixes = (Fix(f"change to `{near}`", moved, safe=False),) if edit else ()
    return Finding("AL401", span, f"nothing sets `{name}`, {what}; {cure}", fixes=fixes)


def _set_inside(one: Doubtful, name: str) -> Finding | None:
    """Return the finding for a key that only a workflow below writes: its state comes back as a whole, under the step's output."""
    flow = one.flow
    for at in bits(flow.tables.children):
        step = flow.tables.steps[at]
        child = flow.child(step)
        if child is None or step is one.step or not child.writers((name,)):
            continue
        output = next((write.name for write in step.facts.writes if write.key == "output"), None)
        path = f"{output}.{name}" if output else f"steps.{step.id}.output.{name}"
        place = one.read.occurrence
        edit = edits.replace_inside(place.node, *place.parts_inside[0], path) if place.form != "value" else ()
        moved = tuple(Edit(e.span.shift(one.read.base), e.text) for e in edit)
        given = flow.returned(step, (name,)).certainty in ("always", "declared", "sometimes")
        return Finding(
            "AL401",
            one.read.span,
            f"`{name}` is set inside the workflow of `{step.id}`, whose state isn't this one's; "
            + (
                f"read `state.{path}`"
                if given
                else f"add it to the `return_keys` of `{step.id}` and read `state.{path}`"
            ),
            fixes=(Fix(f"read `{path}`", moved, safe=False),) if moved and given else (),
        )
    return None


def _not_handed(one: Doubtful, name: str) -> Finding:
    """Return the finding for a key that an isolated workflow, written in place, isn't handed."""
    outer = one.flow.outer
    assert outer is not None
    fixes = _hand_over(outer.flow, outer.step, name) if is_name(name) else ()
    what = "so this step fails" if one.strict else "so it is None here" if one.asks else "so it is empty here"
    return Finding(
        "AL401",
        one.word,
        f"`{name}` isn't handed to this isolated workflow, {what}; add it to the `input` of `{outer.step.id}`",
        fixes=fixes,
    )


def _file_not_handed(flow: Flow, step: Step, reads: list[Read]) -> Finding:
    """Return the finding for what the isolated workflow of another file reads and isn't handed."""
    child = flow.document.children[step.id or ""]
    names = list(dict.fromkeys(str(read.parts[0]) for read in reads))
    facts = step.facts
    place = "input" if "input" in facts.fields else "isolated_state"
    fixes = _hand_over(flow, step, names[0]) if len(names) == 1 and is_name(names[0]) else ()
    return Finding(
        "AL401",
        step.place(facts.key_span(place)),
        f"`{facts.text('workflow_path')}` reads {listing(names)}, and nothing hands {'it' if len(names) == 1 else 'them'} over; add to `input`",
        related=tuple(Related(read.span, f"`{read.parts[0]}` is read here", str(child.path)) for read in reads[:5]),
        fixes=fixes,
    )


def _hand_over(flow: Reach, step: Step, name: str) -> tuple[Fix, ...]:
    """Return the fix that adds a key to `input`, where the step has that key itself."""
    node = step.facts.node
    if (
        not isinstance(node, Mapping)
        or step.alias is not None
        or flow.reaching(step, (name,)).certainty not in ("always", "declared")
    ):
        return ()
    text = step.facts.unit.text
    located = step.facts.fields.get("input")
    value = f'"{{state.{name}}}"'
    if located is None:
        added = edits.add_entry(text, node, "input", f"{{{name}: {value}}}", "isolated_state")
    elif isinstance(located.value, Mapping) and located.via is None:
        last = [entry.key.value for entry in located.value.entries[-1:] if isinstance(entry.key, Scalar)]
        added = edits.add_entry(text, located.value, name, value, *last)
    else:
        return ()
    moved = tuple(Edit(edit.span.shift(step.base), edit.text) for edit in added)
    return (Fix(f"hand over `{name}`", moved, safe=False),) if moved else ()


def _texts(value: object) -> tuple[object, ...]:
    return (value,) if isinstance(value, (str, int, float)) else ()


def _undeclared(document: WorkflowDocument, found: dict[str, list[Doubtful]]) -> Finding:
    names = list(found)
    first = [reads[0] for reads in found.values()]
    many = "it" if len(names) == 1 else "them"
    shown = [name for name in names if is_name(name)]
    return Finding(
        "AL401",
        first[0].word,
        f"nothing here sets {listing(names)}; if `--state` gives {many}, say so: `# agentloom: state[{', '.join(names)}]`",
        related=tuple(
            Related(one.read.span, f"`{name}` is read here") for name, one in zip(names[1:6], first[1:6], strict=False)
        ),
        fixes=(_declare(document, shown),) if shown == names else (),
        severity=Severity.INFORMATION,
    )


def _declare(document: WorkflowDocument, names: Iterable[str]) -> Fix:
    """Return the fix that adds the comment: above the first line, or below the comments that begin the file."""
    text = document.source.text
    at = 1 if text.startswith("\ufeff") else 0
    while text.startswith("#", at):
        end = document.lines.line_span(document.lines.line_of(at)).end
        break_ = newline_of(text, at)
        if not text.startswith(break_, end):
            break
        at = end + len(break_)
    line = f"# agentloom: state[{', '.join(names)}]{newline_of(text, at)}"
    return Fix("declare as given with `--state`", (Edit(Span(at, at), line),), safe=False)


def unordered_read(document: WorkflowDocument) -> Iterator[Finding]:
    """A step reads a key that a step of the same or a later layer writes, so the key isn't there yet.

    Only `depends_on` makes order, templates don't. Steps of one layer run at the same time, and see the state as it was when the
    layer began. A writer that just happens to lie in an earlier layer is told as information: if it fails, the reader runs all the same.

    Add the writer to the step's `depends_on`.
    """
    told: set[tuple[str | None, tuple[Part, ...]]] = set()
    for one in doubtful(document):
        if one.parts[0] == RESULTS or (one.step.id, one.parts) in told:
            continue
        found = _too_late(one) if one.reaching.certainty == "unordered" else _by_luck(one)
        if found is not None:
            told.add((one.step.id, one.parts))
            yield found
    for flow, step, reads in files_below(document, "unordered", isolated=False):
        yield _child_too_early(flow, step, reads[0])


def _child_too_early(flow: Flow, step: Step, read: Read) -> Finding:
    """Return the finding for what the workflow of another file reads of its parent's state too early."""
    writer = flow.reaching(step, read.parts).later[0]
    path = str(flow.document.children[step.id or ""].path)
    name = format_path(read.parts)
    return Finding(
        "AL402",
        step.place(step.facts.span_of("workflow_path")),
        f"this workflow reads `{name}`, which `{writer.id}` writes in the same layer or later; add `{writer.id}` to `depends_on`",
        related=(
            Related(writer.span, f"`{writer.id}` writes it here"),
            Related(read.span, f"`{name}` is read here", path),
        ),
        fixes=() if flow.exclusive(step, writer.step) else wait_for(flow.document, step, writer.id),
    )


def _too_late(one: Doubtful) -> Finding:
    """Return the finding for a value, or a result, that is written in the same layer or later."""
    writer = one.reaching.later[0]
    name = format_path(one.parts)
    graph = one.flow.document.graph
    mine = graph.layer_of[one.step.id or ""]
    fixes: tuple[Fix, ...] = ()
    after = graph.is_upstream(one.step.id or "", writer.id)
    if after:
        when, cure = "runs after this step", "nothing sets it before"
    else:
        when = "runs in the same layer" if writer.layer == mine else "runs in a later layer"
        cure = f"add `{writer.id}` to `depends_on`"
        if not one.flow.exclusive(one.step, writer.step):
            fixes = wait_for(one.flow.document, one.step, writer.id)
        else:
            cure = "the two are on different branches"
    result = one.parts[0] == RESULTS
    told = (
        f"`{writer.id}` {when}, so it has no result yet" if result else f"`{writer.id}`, which writes `{name}`, {when}"
    )
    return Finding(
        "AL408" if result else "AL402",
        one.read.span,
        f"{told}; {cure}",
        related=tuple(
            Related(other.span, f"`{other.id}` is here" if result else f"`{other.id}` writes it here")
            for other in one.reaching.later[:5]
        ),
        fixes=fixes,
    )


def _by_luck(one: Doubtful) -> Finding | None:
    """Return the finding for a lone writer in an earlier layer that the step doesn't wait for."""
    loss, writers = one.reaching.loss, one.reaching.writers
    if one.reaching.certainty != "sometimes" or loss is None or loss.picks or loss.child or len(writers) != 1:
        return None
    writer = writers[0]
    if writer.upstream or one.asks:
        return None
    fixes = wait_for(one.flow.document, one.step, writer.id)
    if not fixes or one.flow.exclusive(one.step, writer.step):
        return None
    result = one.parts[0] == RESULTS
    return Finding(
        "AL408" if result else "AL402",
        one.read.span,
        f"this step doesn't wait for `{writer.id}`, it only happens to run in a later layer; add `{writer.id}` to `depends_on`",
        related=(Related(writer.span, f"`{writer.id}` is here" if result else f"`{writer.id}` writes it here"),),
        fixes=fixes,
        severity=Severity.INFORMATION,
    )


def conditional_read(document: WorkflowDocument) -> Iterator[Finding]:
    """A step reads a key that isn't there on every route: a router may pick another branch, or the step that writes it may fail.

    The route is shown with the finding. Reads that a router asks about before are fine, and so are conditions: they take a missing
    value for None. A key that is only written on branches with which the reader never runs is a warning.

    Give the key a value to begin with in `state`, write it on every branch, or ask for it in a router.
    """
    told: set[tuple[str | None, str]] = set()
    for one in doubtful(document):
        loss, certainty = one.reaching.loss, one.reaching.certainty
        if one.asks or one.reaching.guarded:
            continue
        name = format_path(one.parts)
        writers = [writer.id for writer in one.reaching.writers]
        empty = "this step fails" if one.strict else f"`{name}` is empty here"
        places = tuple(Related(w.span, f"`{w.id}` writes it here") for w in one.reaching.writers[:3])
        if certainty == "excluded":
            if one.parts[0] == RESULTS:
                continue
            message = f"only {listing(writers)} {_writes(writers)} `{name}`, and never in a run in which this step runs; write it before the branches part"
            yield Finding("AL403", one.read.span, message, related=places, severity=Severity.WARNING)
        elif certainty != "sometimes" or loss is None:
            continue
        elif loss.picks:
            pick = loss.picks[0]
            where = f" in the workflow of `{loss.child}`" if loss.child else ""
            message = f"{empty} when `{pick.router}`{where} picks `{pick.target}`; write it on every branch, or give it a value in `state`"
            yield Finding("AL403", one.read.span, message, related=(*walk(one.flow, loss), *places))
        elif loss.fails and one.flow.tables.goes_on and any(writer.upstream for writer in one.reaching.writers):
            if (one.step.id, loss.fails[0]) in told:
                continue
            told.add((one.step.id, loss.fails[0]))
            message = f"{empty} when `{loss.fails[0]}` fails, since the run goes on (`on_step_failure: continue`)"
            yield Finding("AL403", one.read.span, message, related=places)


def _writes(writers: list[str]) -> str:
    return "writes" if len(writers) == 1 else "write"


def unknown_step_result(document: WorkflowDocument) -> Iterator[Finding]:
    """`steps.<id>` names a step that doesn't exist, or one that hasn't run yet.

    A step's result is under `steps.<id>.output` once it has succeeded; before that, and for other names, there is nothing. A workflow
    below another doesn't see the results of its parent.

    Correct the name, or add the step to `depends_on`.
    """
    for one in doubtful(document):
        if one.parts[0] != RESULTS or len(one.parts) < 2:
            continue
        certainty = one.reaching.certainty
        if certainty == "unordered":
            yield _too_late(one)
        elif certainty == "sometimes":
            found = _by_luck(one)
            if found is not None:
                yield found
        elif certainty == "never" and (found := _no_result(one)) is not None:
            yield found


def _no_result(one: Doubtful) -> Finding | None:
    place, by_id = one.read.occurrence, one.flow.document.by_id
    name = one.parts[1]
    none = "there is no such result"
    spans = place.part_spans
    if not isinstance(name, str) or len(spans) < 2:
        return None
    if name == one.step.id:
        return Finding(
            "AL408", one.read.span, f"`{name}` is this step, which has no result while it runs; read another step's"
        )
    if name in by_id:
        if len(one.parts) < 3 or not isinstance(one.parts[2], str) or len(spans) < 3:
            return None
        if one.parts[2] in ("output", "status"):
            below = format_path(one.parts[3:])
            return Finding(
                "AL408",
                spans[-1].shift(one.read.base),
                f"the workflow of `{name}` doesn't give back `{below}`; correct the name",
            )
        return _wrong_name(
            one, 2, lambda: ("output", "status"), f"a result has `output` and `status`, no `{one.parts[2]}`"
        )
    outer = one.flow.outer
    if outer is not None and name in outer.flow.document.by_id:
        message = f"`{name}` is a step of the workflow above, whose results aren't seen here; hand it over with `input`"
        return Finding("AL408", spans[1].shift(one.read.base), message)
    if one.flow.broken:
        return None  # the step may be there, in what can't be read
    return _wrong_name(
        one, 1, lambda: (other for other in by_id if other != one.step.id), f"step `{name}` is not defined, {none}"
    )


def _wrong_name(one: Doubtful, at: int, known: Callable[[], Iterable[str]], message: str) -> Finding:
    place = one.read.occurrence
    near = nearest(one.flow.document, str(one.parts[at]), known)
    fixes: tuple[Fix, ...] = ()
    if near is not None:
        edit = edits.replace_inside(place.node, *place.parts_inside[at], near)
        moved = tuple(Edit(e.span.shift(one.read.base), e.text) for e in edit)
        fixes = (Fix(f"change to `{near}`", moved, safe=False),) if edit else ()
    cure = f"did you mean `{near}`?" if near else "correct the name"
    return Finding("AL408", place.part_spans[at].shift(one.read.base), f"{message}; {cure}", fixes=fixes)
