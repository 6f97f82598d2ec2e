"""What routers refuse in a tree that could be read: names, attributes and calls outside the lists."""

from __future__ import annotations

from typing import Final

from agentloom.language.cursor import FOREIGN, MAX_DEPTH
from agentloom.language.faults import Fault
from agentloom.language.functions import FUNCTIONS, METHOD_NAMES, TYPES, arity
from agentloom.language.tree import (
    Attribute,
    Conditional,
    Constant,
    Display,
    FunctionCall,
    Logic,
    MethodCall,
    Name,
    Node,
    Slice,
    Subscript,
    Sum,
    children,
)
from agentloom.similar import closest
from agentloom.text import Span

ROOTS: Final = ("state", "steps")
"""The names that stand for data."""

_REFUSED_ATTRIBUTES = frozenset({"mro", "format_map"})
_BUILTINS = frozenset({
    "type", "eval", "exec", "compile", "open", "getattr", "setattr", "delattr", "hasattr", "vars", "dir", "globals", "locals",
    "object", "super", "input", "print", "id", "hash", "repr", "format", "callable", "iter", "next", "map", "filter", "range",
    "zip", "sorted", "reversed", "enumerate", "sum", "any", "all", "round", "pow", "divmod", "set", "frozenset", "bytes",
    "bytearray", "complex", "chr", "ord", "slice", "memoryview", "property", "staticmethod", "classmethod", "breakpoint", "help",
    "list", "dict", "tuple",
})  # fmt: skip
_SPELLED = {"true": "True", "false": "False", "null": "None", "none": "None", "nil": "None", "undefined": "None"}


def check_tree(tree: Node, faults: list[Fault], value: str, names: tuple[str, ...] = ()) -> list[Node]:
    """Add the faults of ``tree`` to ``faults``; return its nodes, from left to right, or none if it nests too deep.

    ``names`` are allowed besides ``ROOTS``.
    """
    nodes: list[Node] = []
    todo: list[tuple[Node, int]] = [(tree, 1)]
    expected: set[int] = set()
    while todo:
        node, depth = todo.pop()
        if depth > MAX_DEPTH:
            message = f"the condition nests deeper than {MAX_DEPTH} levels"
            faults.append(Fault("syntax", Span(node.span.start, min(node.span.end, node.span.start + 1)), message))
            return []
        nodes.append(node)
        match node:
            case Name() if id(node) not in expected:
                if node.name not in names:
                    _check_name(node, faults)
            case Attribute():
                _check_attribute(node, faults)
            case Subscript(key=key, key_span=span) if isinstance(key, str):
                _check_key(key, span, faults)
            case Sum():
                expected.update(_check_sum(node, faults, value))
            case FunctionCall():
                expected.update(_check_function(node, faults))
            case MethodCall():
                _check_method(node, faults)
        todo.extend((child, depth + 1) for child in reversed(children(node)))
    return nodes


def _forbid(faults: list[Fault], span: Span, message: str) -> None:
    faults.append(Fault("forbidden", span, message))


def _check_name(node: Name, faults: list[Fault]) -> None:
    name = node.name
    if name in ROOTS:
        return
    if name in FUNCTIONS:
        _forbid(faults, node.span, f"`{name}` is a function; call it: `{FUNCTIONS[name].signature}`")
    elif name.startswith("_"):
        _forbid(faults, node.span, f"`{name}` is not allowed; names can't start with an underscore")
    elif name in _BUILTINS:
        _forbid(faults, node.span, f"`{name}` is not allowed in a condition")
    elif name in _SPELLED:
        right = _SPELLED[name]
        faults.append(
            Fault("unknown-name", node.span, f"`{name}` is written `{right}` here", right, f"write `{right}`")
        )
    elif name not in FOREIGN:
        close = next((root for root in ROOTS if _one_slip(name, root)), None)
        cure = close or f"state.{name}"
        message = f"`{name}` is not defined; " + (
            f"did you mean `{cure}`?" if close else f"write `{cure}`, or `'{name}'` for a text"
        )
        faults.append(Fault("unknown-name", node.span, message, cure, f"write `{cure}`"))


def _one_slip(word: str, meant: str) -> bool:
    """Tell whether one letter is missing, too much, wrong or swapped with its neighbour; `status` is not `state`."""
    if abs(len(word) - len(meant)) > 1 or word == meant:
        return False
    at = next((n for n, (a, b) in enumerate(zip(word, meant, strict=False)) if a != b), min(len(word), len(meant)))
    rest, wanted = word[at:], meant[at:]
    swapped = rest[:2] == wanted[1::-1] and rest[2:] == wanted[2:] and len(rest) > 1
    return swapped or rest[1:] == wanted or rest == wanted[1:] or rest[1:] == wanted[1:]


def _check_attribute(node: Attribute, faults: list[Fault]) -> None:
    if node.name in _REFUSED_ATTRIBUTES:
        _forbid(faults, node.name_span, f"`{node.name}` is not allowed in a condition")
    else:
        _check_key(node.name, node.name_span, faults)


def _check_key(key: str, span: Span, faults: list[Fault]) -> None:
    if key.startswith("_"):
        _forbid(faults, span, f"`{key}` is not allowed; names can't start with an underscore")


def _check_sum(node: Sum, faults: list[Fault], value: str) -> list[int]:
    """Explain ``state.a-b``, which is a subtraction; return the names that this spoke about."""
    spoken: list[int] = []
    left, at = node.first, 0
    while at < len(node.rest):
        start, names = at, list[Name]()
        end = left.span.end
        while at < len(node.rest) and isinstance(left, Attribute):
            operator, term = node.rest[at]
            if not isinstance(term, Name) or term.name in (*ROOTS, *FUNCTIONS) or operator != "-":
                break
            if value[end : term.span.start] != "-":
                break
            names.append(term)
            end = term.span.end
            at += 1
        if names and isinstance(left, Attribute):
            cure = f"['{'-'.join((left.name, *(name.name for name in names)))}']"
            message = f"`{names[0].name}` is not defined; a key with a hyphen stands in brackets: `{cure}`"
            span = Span(left.name_span.start - 1, end)
            faults.append(Fault("unknown-name", span, message, cure, "put the key in brackets"))
            spoken.extend(id(name) for name in names)
        if at == start:
            left = node.rest[at][1]
            at += 1
        else:
            left = names[-1]
    return spoken


def _check_function(node: FunctionCall, faults: list[Fault]) -> list[int]:
    """Check a call; return the names among its arguments that are types and need no other check."""
    called = FUNCTIONS.get(node.name)
    if called is None:
        name = Name(node.name_span, node.name)
        if node.name in ROOTS:
            _forbid(faults, node.name_span, f"`{node.name}` can't be called")
        elif node.name.startswith("_") or node.name in _BUILTINS:
            _check_name(name, faults)
        else:
            cure = closest(node.name, FUNCTIONS)
            known = ", ".join(f"`{name}`" for name in FUNCTIONS)
            tail = f"did you mean `{cure}`?" if cure else f"there are {known}"
            message = f"`{node.name}` is no function of conditions; {tail}"
            faults.append(Fault("unknown-name", node.name_span, message, cure, f"write `{cure}`" if cure else ""))
        return []
    if not called.least <= len(node.arguments) <= called.most:
        _forbid(faults, node.span, f"`{node.name}` takes {arity(called)}: `{called.signature}`")
        return []
    if node.name != "isinstance":
        return []
    kinds = node.arguments[1]
    items = kinds.items if isinstance(kinds, Display) and kinds.kind == "tuple" else (kinds,)
    if items and all(isinstance(item, Name) and item.name in TYPES for item in items):
        return [id(item) for item in items]
    known = ", ".join(f"`{name}`" for name in TYPES)
    _forbid(faults, kinds.span, f"`isinstance` knows {known}, alone or in brackets")
    return [id(item) for item in items]


def _check_method(node: MethodCall, faults: list[Fault]) -> None:
    name = node.name
    if not name:
        return
    if name.startswith("_"):
        _check_key(name, node.name_span, faults)
    elif name not in METHOD_NAMES:
        near = closest(name, sorted(METHOD_NAMES))
        tail = f"; did you mean `{near}`?" if near else ""
        _forbid(faults, node.name_span, f"method `{name}` is not allowed in a condition{tail}")
    elif not _rooted(node.target):
        _forbid(
            faults,
            node.target.span,
            f"`{name}` can't be called on a value written out; call it on what the state holds",
        )
    elif name == "get" and node.arguments:
        key = node.arguments[0]
        if isinstance(key, Constant) and isinstance(key.value, str):
            _check_key(key.value, key.inner, faults)


def _rooted(node: Node) -> bool:
    """Tell whether a value comes from a name, at least in part, and isn't all written out."""
    todo = [node]
    while todo:
        match todo.pop():
            case Attribute(target=target) | Subscript(target=target) | Slice(target=target) | MethodCall(target=target):
                todo.append(target)
            case Name() | FunctionCall():
                return True
            case Logic(values=values):
                todo.extend(values)
            case Conditional(then=then, otherwise=otherwise):
                todo.extend((then, otherwise))
            case Sum(first=first, rest=rest):
                todo.extend((first, *(term for _, term in rest)))
    return False
