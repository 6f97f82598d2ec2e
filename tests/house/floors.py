"""The floor plan of the house, and the checker that holds the code to it.

`docs/architecture.md` says why. A module imports only from lower floors, never sideways between packages of one floor, never in
a ring. Imports inside functions and under `TYPE_CHECKING` count, and so do `import_module("…")` and `__import__("…")`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# From the bottom up. A name covers the module and everything below it; the longest name that fits wins.
FLOORS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "F0",
        (
            "agentloom",
            "agentloom.text",
            "agentloom.errors",
            "agentloom.files",
            "agentloom.records",
            "agentloom.similar",
            "agentloom.backoff",
        ),
    ),
    ("F1", ("agentloom.diagnostics", "agentloom.drawing")),
    (
        "F2",
        ("agentloom.syntax", "agentloom.language", "agentloom.model", "agentloom.providers", "agentloom.tools"),
    ),
    ("F3", ("agentloom.analysis",)),
    ("F4", ("agentloom.ide",)),
    ("F4a", ("agentloom.core", "agentloom.checkpointing", "agentloom.durable")),
    ("F4b", ("agentloom.steps", "agentloom.core.keeping")),
    ("F4c", ("agentloom.core.engine", "agentloom.core.dsl")),
    ("F4d", ("agentloom.core.adapter",)),
    ("F5", ("agentloom_lsp", "agentloom.callbacks", "agentloom.api", "agentloom.durable.dbos")),
    ("F6", ("agentloom.cli",)),
    ("the door", ("agentloom.__main__",)),
)

# The editor's half of F4 stands beside the runtime: neither knows the other.
APART: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("agentloom.ide", ("agentloom.core", "agentloom.steps", "agentloom.checkpointing", "agentloom.durable")),
)

# The order inside F3, from the bottom up; what is not listed has no place yet.
INNER: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "agentloom.analysis": (
        ("settings",),
        ("context", "symbols", "graph", "labels", "edits"),
        ("document",),
        (
            "agents",
            "lower",
            "values",
            "dataflow",
            "outcomes",
            "asked",
            "effort",
            "classify",
            "children",
            "suppress",
            "recordings",
        ),
        ("rules",),
        ("stamp",),
        ("analyze", "fixing"),
    ),
}

# Third-party packages and the only parts of the house that may import them.
OWNERS: Mapping[str, tuple[str, ...]] = {
    "ruamel": ("agentloom.syntax",),
    "_ruamel_yaml": ("agentloom.syntax",),
    "httpx": ("agentloom.providers", "agentloom.tools"),
    "pygls": ("agentloom_lsp",),
    "lsprotocol": ("agentloom_lsp",),
    "click": ("agentloom.cli",),
    "rich": ("agentloom.cli",),
    "pydantic": ("agentloom.model", "agentloom.tools"),
    "typing_extensions": ("agentloom.tools",),
    "jsonschema": ("agentloom.analysis.rules", "agentloom.tools"),
    "referencing": ("agentloom.tools",),
    "anyio": (
        "agentloom.core",
        "agentloom.steps",
        "agentloom.providers",
        "agentloom.tools",
        "agentloom.callbacks",
        "agentloom.durable.dbos",
        "agentloom.cli",
    ),
    "starlette": ("agentloom.callbacks",),
    "uvicorn": ("agentloom.callbacks",),
    "dbos": ("agentloom.durable.dbos",),
    "psycopg": ("agentloom.durable.dbos",),
    "sqlalchemy": ("agentloom.durable.dbos",),
    "networkx": ("agentloom.core.graph",),
}


@dataclass(frozen=True, slots=True)
class Import:
    """One import: the module it stands in, the line, and the module that it names."""

    module: str
    line: int
    target: str

    def __str__(self) -> str:
        return f"{self.module}:{self.line} imports {self.target}"


def modules_of(roots: Sequence[Path]) -> dict[str, Path]:
    """Return every module under the packages ``roots`` (folders), by dotted name."""
    found: dict[str, Path] = {}
    for root in roots:
        for path in sorted(root.rglob("*.py")):
            parts = path.relative_to(root.parent).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(module: str, path: Path, known: Mapping[str, Path]) -> Iterator[Import]:
    """Yield every import that stands anywhere in a module. ``from a import b`` names `a.b` when that is a module."""
    is_package = path.name == "__init__.py"
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(module, node.lineno, alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".")
                parts = parts[: len(parts) - node.level + is_package]
                base = ".".join([*parts, base] if base else parts)
            for alias in node.names:
                deeper = f"{base}.{alias.name}"
                yield Import(module, node.lineno, deeper if deeper in known else base)
        elif isinstance(node, ast.Call) and node.args:
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            first = node.args[0]
            if name in ("import_module", "__import__") and isinstance(first, ast.Constant):
                yield Import(module, node.lineno, str(first.value))


def covers(name: str, module: str) -> bool:
    """Tell whether ``module`` is ``name`` or stands below it."""
    return module == name or module.startswith(name + ".")


def place_of(module: str) -> tuple[int, str] | None:
    """Return a module's floor as a number, and the name in the plan that covers it; None when the plan has no place for it."""
    best: tuple[int, str] | None = None
    for at, (_, names) in enumerate(FLOORS):
        for name in names:
            # The top package holds only its own `__init__`: a new module there needs a line in the plan.
            fits = module == name if name == "agentloom" else covers(name, module)
            if fits and (best is None or len(name) > len(best[1])):
                best = (at, name)
    return best


def _inner(package: str, module: str) -> int | None:
    if module == package:
        return -1
    word = module[len(package) + 1 :].split(".")[0]
    return next((at for at, words in enumerate(INNER[package]) if word in words), None)


def _wrong(found: Import) -> str | None:
    here, there = place_of(found.module), place_of(found.target)
    if here is None:
        return None  # said once, by `faults`
    if there is None:
        return f"{found}, which has no place on the floor plan"
    for name, others in APART:
        for one, other in ((found.module, found.target), (found.target, found.module)):
            if covers(name, one) and any(covers(o, other) for o in others):
                return f"{found}: `{name}` and the runtime stand apart"
    if there[0] > here[0]:
        return f"{found}: {FLOORS[here[0]][0]} reaches up to {FLOORS[there[0]][0]}"
    if there[0] == here[0] and there[1] != here[1]:
        return f"{found}: sideways on {FLOORS[here[0]][0]}"
    for package in INNER:
        if covers(package, found.module) and covers(package, found.target):
            low, high = _inner(package, found.module), _inner(package, found.target)
            if low is not None and high is not None and high > low >= 0:
                return f"{found}: against the order inside {package}"
    return None


def _rings(edges: Mapping[str, set[str]]) -> Iterator[tuple[str, ...]]:
    """Yield one loop per tangle: walk forward from each module to itself, over the shortest way."""
    seen: set[str] = set()
    for start in sorted(edges):
        if start in seen:
            continue
        came: dict[str, str] = {}
        todo = [start]
        while todo and start not in came:
            name = todo.pop(0)
            for target in sorted(edges.get(name, ())):
                if target not in came:
                    came[target] = name
                    todo.append(target)
        if start in came:
            loop = [start]
            while (name := came[loop[-1]]) != start:
                loop.append(name)
            seen.update(loop)
            yield (start, *reversed(loop))


def faults(roots: Sequence[Path]) -> list[str]:
    """Return what breaks the plan in the packages ``roots``, a sentence each; empty when all is well."""
    known = modules_of(roots)
    tops = {root.name for root in roots}
    said: list[str] = []
    edges: dict[str, set[str]] = {}
    for module, path in known.items():
        if place_of(module) is None:
            said.append(f"{module} has no place on the floor plan (tests/house/floors.py)")
        for package in INNER:
            if covers(package, module) and _inner(package, module) is None:
                said.append(f"{module} has no place in the order inside {package}")
        for found in imports_of(module, path, known):
            top = found.target.split(".")[0]
            if top in tops:
                target = found.target
                while target not in known and "." in target:
                    target = target.rpartition(".")[0]
                if target != module:
                    edges.setdefault(module, set()).add(target)
                wrong = _wrong(found)
                if wrong:
                    said.append(wrong)
            elif top not in sys.stdlib_module_names:
                owners = OWNERS.get(top)
                if owners is None:
                    said.append(f"{found}, which has no owner")
                elif not any(covers(owner, module) for owner in owners):
                    said.append(f"{found}: only {', '.join(owners)} may")
    said.extend(f"a ring: {' -> '.join(ring)}" for ring in _rings(edges))
    return said
