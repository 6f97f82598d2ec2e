"""Rules about what goes into a subworkflow and comes back, and about gates."""

from __future__ import annotations

from collections.abc import Iterator

from agentloom.analysis import edits
from agentloom.analysis.dataflow import Flow, dataflow
from agentloom.analysis.document import Facts, Step, WorkflowDocument
from agentloom.analysis.effort import mapping
from agentloom.analysis.rules.places import key_at, node_at, renamed, span_at
from agentloom.diagnostics import Finding, Fix
from agentloom.similar import slip_of
from agentloom.syntax.nodes import Mapping

_LOCAL_NAMES = ("localhost", "ip6-localhost", "metadata.google.internal")


def unknown_return_key(document: WorkflowDocument) -> Iterator[Finding]:
    """`return_keys` names a key that the child never writes, or `input` one that it never reads.

    What the child doesn't have is left out of the result without a word; what it doesn't read is lost.

    Correct the name, or remove it.
    """
    for step in document.steps:
        keys, given = step.facts.data.get("return_keys"), mapping(step.facts.data.get("input"))
        if step.type != "subworkflow" or not (keys or given) or document.by_id.get(step.id or "") is not step:
            continue
        child = dataflow(document).child(step)
        if (
            child is None
            or child.broken
            or not child.document.steps
            or (child.document is not document and not _readable(child))
        ):
            continue
        returned = [key for key in keys if isinstance(key, str)] if isinstance(keys, list) else []
        for number, key in enumerate(keys if isinstance(keys, list) else ()):
            if isinstance(key, str) and child.at_end((key,)).certainty in ("never", "unordered"):
                known = [str(write.parts[0]) for inner in child.document.steps for write in inner.facts.writes]
                near = slip_of(key, dict.fromkeys(known)) or (known[0] if len(set(known)) == 1 else None)
                cure = f"did you mean `{near}`?" if near else "correct the name or remove it"
                node = node_at(step.facts, "return_keys", number)
                yield Finding(
                    "AL704",
                    step.place(span_at(step.facts, "return_keys", number)),
                    f"the workflow of `{step.id}` never sets `{key}`; {cure}",
                    fixes=renamed(node, near, step.base),
                )
        if given:
            yield from _unread(child, step, [key for key in given if isinstance(key, str)], returned, keys is None)


def _readable(child: Flow) -> bool:
    return child.document.ok


def _unread(child: Flow, step: Step, given: list[str], returned: list[str], all_back: bool) -> Iterator[Finding]:
    read = _keys_read(child)
    if read is None:
        return
    for key in given:
        if key in read or key in returned:
            continue
        near = slip_of(key, sorted(read - set(given)))
        if near is None and all_back and step.facts.text("output"):
            continue  # it comes back with the whole state
        cure = f"did you mean `{near}`?" if near else "correct the name or remove it"
        yield Finding(
            "AL704",
            step.place(key_at(step.facts, "input", key)),
            f"the workflow of `{step.id}` never reads `{key}`; {cure}",
        )


def _keys_read(flow: Flow, known: dict[int, set[str] | None] | None = None) -> set[str] | None:
    """Return the first parts of all that a workflow, and those below it, read of its state; None when it reads the whole.

    ``known`` has those of workflows that were looked at already: many steps may run the same file.
    """
    known = {} if known is None else known
    if id(flow.document) not in known:
        known[id(flow.document)] = _keys_read_in(flow, known)
    return known[id(flow.document)]


def _keys_read_in(flow: Flow, known: dict[int, set[str] | None]) -> set[str] | None:
    found: set[str] = set()
    for step in flow.document.steps:
        if any(place.kind == "state" and place.role == "read" and not place.parts for place in step.facts.occurrences):
            return None
        found.update(str(read.parts[0]) for read in flow.reads(step))
        if step.type == "agent" and not isinstance(
            mapping(flow.document.head.data.get("agents")).get(step.facts.text("agent") or ""), dict
        ):
            return None  # its prompt stands in another file
        if step.type == "subworkflow":
            below = flow.child(step)
            if below is None:
                return None
            if step.facts.data.get("isolated_state") is not True:
                more = _keys_read(below, known)
                if more is None or (step.facts.data.get("return_keys") is None and step.facts.writes):
                    return None
                found |= more
    return found


def gate_timeout_incomplete(facts: Facts) -> Iterator[Finding]:
    """A gate says what an undecided one becomes, but not after how long.

    `on_timeout` counts from `timeout_seconds` on; without it, or with 0, the gate waits forever.

    Add `timeout_seconds`, or remove `on_timeout`.
    """
    if facts.data.get("type") != "approval_gate" or facts.data.get("on_timeout") is None:
        return
    seconds = facts.data.get("timeout_seconds")
    if seconds not in (None, 0) or isinstance(seconds, bool):
        return
    node = facts.node
    fixes: tuple[Fix, ...] = ()
    if "timeout_seconds" not in facts.fields and isinstance(node, Mapping):
        added = edits.add_entry(facts.unit.text, node, "timeout_seconds", "86400", "type")
        fixes = (Fix("wait a day: `timeout_seconds: 86400`", added, safe=False),) if added else ()
    why = "`timeout_seconds: 0` means no limit" if seconds == 0 else "there is no `timeout_seconds`"
    yield Finding(
        "AL705",
        facts.key_span("on_timeout"),
        f"{why}, so the gate waits forever and this never counts; add one",
        fixes=fixes,
    )


def internal_webhook_target(document: WorkflowDocument) -> Iterator[Finding]:
    """A gate's webhook goes to an address inside the own network, which is refused.

    Webhooks reach public addresses only, unless the sandbox says `allow_internal_webhook_targets: true`. A refused one is logged, and
    the run waits all the same, with nobody told.

    Use a public address, or allow internal ones.
    """
    config = mapping(document.head.data.get("config"))
    if mapping(config.get("sandbox")).get("allow_internal_webhook_targets") is True:
        return
    for step in document.steps:
        url = mapping(step.facts.data.get("notify")).get("url") if step.type == "approval_gate" else None
        host = _host(url) if isinstance(url, str) else None
        if host is not None and _is_internal(host):
            yield Finding(
                "AL706",
                step.place(span_at(step.facts, "notify", "url")),
                f"`{host}` is an internal address, which webhooks don't reach; use a public one or allow it in the sandbox",
            )


def _host(url: str) -> str | None:
    from urllib.parse import urlsplit  # only for gates that tell somebody

    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _is_internal(host: str) -> bool:
    name = host.rstrip(".").casefold()
    if name in _LOCAL_NAMES or name.endswith((".localhost", ".local", ".internal")):
        return True
    from ipaddress import ip_address

    try:
        address = ip_address(name)
    except ValueError:
        return False
    return not address.is_global
