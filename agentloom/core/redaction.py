"""Redaction: values of secret state keys replaced wherever the state leaves memory. In memory it stays as it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import Any

from agentloom.core.results import JSON
from agentloom.language.paths import MISSING, Part
from agentloom.providers.table import HIDDEN_KEY
from agentloom.records import record

ENVIRONMENT = "AGENTLOOM_REDACT_STATE_KEYS"
_BEGIN, _END = "<REDACTED:sha256=", ">"
CYCLE = "<cycle>"
STEPS = "steps"


@record()
class Redaction:
    """The patterns (`password`, `user.*`) that name secret keys: each is held against a key and against its dotted path.

    ``keys`` are the keys of providers: texts that are replaced wherever they stand, also inside others.
    """

    patterns: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.patterns or self.keys)

    def text(self, text: str) -> str:
        """Return a text without keys."""
        for key in self.keys:
            if key in text:
                text = text.replace(key, HIDDEN_KEY)
        return text

    def names(self, path: Sequence[Part]) -> bool:
        """Tell whether a path, or one that it lies below, is secret."""
        return any(self._is_secret([str(part) for part in path[:end]]) for end in range(1, len(path) + 1))

    def state(self, state: Mapping[str, JSON], outputs: Mapping[str, Sequence[Part]]) -> dict[str, JSON]:
        """Return a state without secrets; ``outputs`` is where steps write, since `steps.<id>.output` holds the same."""
        if not self:
            return dict(state)
        found: dict[str, JSON] = {}
        for key, value in state.items():
            if key == STEPS and isinstance(value, Mapping):
                found[key] = {name: self._step(entry, outputs.get(name)) for name, entry in value.items()}
            else:
                found[key] = self.value(value, (key,))
        return found

    def output(self, value: JSON, path: Sequence[Part] | None) -> JSON:
        """Return a step's output without secrets; ``path`` is where the step writes it, if it does."""
        if not self:
            return value
        if path is not None and self.names(path):
            return sentinel(value)
        return self.value(value, tuple(path or ()))

    def value(self, value: JSON, path: Sequence[Part] = ()) -> JSON:
        """Return a value that stands at a path, without the secrets in it."""
        if not self:
            return value
        return self._walk(value, [str(part) for part in path], set())

    def of_steps(self, outputs: Mapping[str, Sequence[Part]]) -> Iterator[str]:
        """Yield patterns for the secrets in `steps`, where each step's output stands once more."""
        for name, path in outputs.items():
            if self.names(path):
                yield f"{STEPS}.{name}.output"
            begin = ".".join(str(part) for part in path) + "."
            for pattern in self.patterns:
                if pattern.startswith(begin):
                    yield f"{STEPS}.{name}.output.{pattern[len(begin) :]}"

    def secret_keys(self, state: Mapping[str, JSON]) -> list[str]:
        """Return the dotted paths of the values in a state that are sentinels already; a mapping or list of nothing else has one."""
        return [name for key, value in state.items() if key != STEPS for name in _names(str(key), value)[0]]

    def _step(self, entry: JSON, path: Sequence[Part] | None) -> JSON:
        if not isinstance(entry, Mapping):
            return entry
        return {**entry, "output": self.output(entry.get("output"), path)}

    def _walk(self, value: JSON, path: list[str], within: set[int]) -> JSON:
        if path and self._is_secret(path):
            return sentinel(value)
        if isinstance(value, Mapping | list):
            if id(value) in within:
                return CYCLE
            within = within | {id(value)}
        if isinstance(value, Mapping):
            return {str(key): self._walk(item, [*path, str(key)], within) for key, item in value.items()}
        if isinstance(value, list):
            return [self._walk(item, [*path, str(at)], within) for at, item in enumerate(value)]
        return self.text(value) if isinstance(value, str) else value

    def _is_secret(self, path: list[str]) -> bool:
        dotted = ".".join(path)
        return any(fnmatchcase(path[-1], pattern) or fnmatchcase(dotted, pattern) for pattern in self.patterns)


def _names(name: str, value: JSON) -> tuple[list[str], bool]:
    """Return the paths of the sentinels in a value that is called ``name``, and whether there is anything else in it."""
    if is_sentinel(value):
        return [name], False
    if isinstance(value, Mapping):
        below = [_names(f"{name}.{key}", item) for key, item in value.items()]
    elif isinstance(value, list):
        below = [_names(f"{name}[{at}]", item) for at, item in enumerate(value)]
    else:
        return [], True
    found = [each for names, _ in below for each in names]
    others = any(more for _, more in below)
    whole = not others and (isinstance(value, list) or len(found) > 1)
    return [name] if found and whole else found, others


def redaction_of(
    schema: Mapping[str, Any],
    environ: Mapping[str, str],
    inherited: Redaction | None = None,
    below: Iterable[str] = (),
    keys: tuple[str, ...] = (),
) -> Redaction:
    """Return the redaction of a workflow: its `state_schema`, the environment's list, and its parent's.

    ``keys`` are those of providers. ``below`` are the patterns of the workflows below it: their final states become part of its own, at some path.
    """
    own = secret_names(schema)
    children = [pattern for name in below for pattern in (name, f"*.{name}")]
    listed = [word.strip() for word in environ.get(ENVIRONMENT, "").split(",") if word.strip()]
    above: Iterable[str] = inherited.patterns if inherited is not None else ()
    hidden = inherited.keys if inherited is not None else keys
    return Redaction(tuple(dict.fromkeys([*above, *own, *listed, *children])), hidden)


def secret_names(schema: Mapping[str, Any]) -> list[str]:
    """Return the patterns that a `state_schema` calls secret."""
    return [name for name, rule in schema.items() if getattr(rule, "redact", False)]


def restored(value: JSON, known: JSON, exact: bool = False) -> JSON:
    """Return ``value`` with the secrets put back that stand in the same places of ``known``.

    ``exact`` puts back only what the sentinel was made of; otherwise what stands there is taken for the secret's new value.
    """
    if is_sentinel(value):
        if known is MISSING or has_sentinel(known) or (exact and sentinel(known) != value):
            return value
        return known
    if isinstance(value, Mapping):
        # A secret mapping is a mapping of sentinels, so entries that are gone from ``known`` stay as they are.
        below = known if isinstance(known, Mapping) else {}
        found = {key: restored(item, below.get(key, MISSING), exact) for key, item in value.items()}
        return found if any(found[key] is not value[key] for key in found) else value
    if isinstance(value, list) and isinstance(known, list) and len(known) == len(value):
        items = [restored(item, other, exact) for item, other in zip(value, known, strict=True)]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return value


def restored_whole(value: JSON, known: JSON) -> JSON:
    """Return what stands for a value that is a secret as a whole: what was given for it since, whatever its shape is, else the value.

    Nothing but what was given has no sentinel in it; an empty list or mapping never has one, and says nothing.
    """
    is_given = known is not MISSING and known not in ([], {}) and not has_sentinel(known)
    return known if is_given and has_sentinel(value) else restored(value, known)


def has_sentinel(value: JSON) -> bool:
    """Tell whether something in a value stands for a secret one."""
    if isinstance(value, Mapping):
        return any(has_sentinel(item) for item in value.values())
    if isinstance(value, list):
        return any(has_sentinel(item) for item in value)
    return is_sentinel(value)


def sentinel(value: JSON, _within: frozenset[int] = frozenset()) -> JSON:
    """Return what stands for a secret value: the hash of its text; of lists and mappings entry by entry. Idempotent."""
    if is_sentinel(value):
        return value
    if isinstance(value, Mapping | list):
        if id(value) in _within:
            return CYCLE
        within = _within | {id(value)}
        if isinstance(value, Mapping):
            return {str(key): sentinel(item, within) for key, item in value.items()}
        return [sentinel(item, within) for item in value]
    text = "" if value is None else str(value)
    return f"{_BEGIN}{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}{_END}"


def is_sentinel(value: JSON) -> bool:
    """Tell whether a value stands for a secret one."""
    return isinstance(value, str) and value.startswith(_BEGIN) and value.endswith(_END)
