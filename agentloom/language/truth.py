"""What can be said of a router expression without a state: that it is always true, that two say the same."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from agentloom.errors import ExpressionError
from agentloom.language.evaluation import evaluate_tree
from agentloom.language.tree import (
    Attribute,
    Compare,
    CompareOperator,
    Conditional,
    Constant,
    Display,
    FunctionCall,
    Logic,
    MethodCall,
    Name,
    Node,
    Pairs,
    Slice,
    Subscript,
    Sum,
    Unary,
    children,
)

_OPPOSITE: Mapping[CompareOperator, CompareOperator] = {
    "==": "!=",
    "!=": "==",
    "<": ">=",
    ">=": "<",
    ">": "<=",
    "<=": ">",
    "in": "not in",
    "not in": "in",
    "is": "is not",
    "is not": "is",
}


def is_true(tree: Node) -> bool:
    """Tell whether an expression is just `True`."""
    return isinstance(tree, Constant) and tree.value is True


def constant_truth(tree: Node, value: str) -> bool | None:
    """Return whether an expression is always true or always false, where it gives a value at all; else None.

    ``state.x == 'a' or 'b'`` is always true: the text ``'b'`` is.
    """
    match tree:
        case Constant(value=constant):
            return bool(constant)
        case Display(items=items):
            return bool(items)
        case Pairs(entries=entries):
            return bool(entries)
        case Unary(operator="not", operand=operand):
            truth = constant_truth(operand, value)
            return None if truth is None else not truth
        case Logic(operator=operator, values=values):
            truths = {constant_truth(part, value) for part in values}
            decisive = operator == "or"
            if decisive in truths:
                return decisive
            return None if None in truths else not decisive
        case Conditional(test=test, then=then, otherwise=otherwise):
            chosen = constant_truth(test, value)
            if chosen is not None:
                return constant_truth(then if chosen else otherwise, value)
            first, second = constant_truth(then, value), constant_truth(otherwise, value)
            return first if first is second else None
    if _reads_state(tree):
        return None
    try:
        return bool(evaluate_tree(tree, value, {}))
    except ExpressionError:
        return None


def _reads_state(tree: Node) -> bool:
    todo = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, Name) and node.name in ("state", "steps"):
            return True
        todo.extend(children(node))
    return False


@lru_cache(maxsize=2048)
def opposites(tree: Node) -> tuple[str, ...]:
    """Return the canonical texts of expressions that are true whenever this one is false."""
    found = [canonical_text(Unary(tree.span, "not", tree))]
    if isinstance(tree, Unary) and tree.operator == "not":
        found.append(canonical_text(tree.operand))
    elif isinstance(tree, Compare) and len(tree.rest) == 1:
        operator, second = tree.rest[0]
        found.append(canonical_text(Compare(tree.span, tree.first, ((_OPPOSITE[operator], second),))))
    return tuple(found)


def canonical_text(node: Node) -> str:
    """Return an expression in one spelling: ``state.a``, ``state["a"]`` and ``state.get('a')`` come out alike."""
    match node:
        case Constant(value=value):
            return repr(value)
        case Name(name=name):
            return name
        case Attribute(target=target, name=name):
            return f"{canonical_text(target)}[{name!r}]"
        case Subscript(target=target, key=key):
            return f"{canonical_text(target)}[{key!r}]"
        case Slice(target=target, start=start, stop=stop, step=step):
            return f"{canonical_text(target)}[{start}:{stop}:{step}]"
        case FunctionCall(name=name, arguments=arguments):
            return f"{name}({', '.join(map(canonical_text, arguments))})"
        case MethodCall(target=target, name="get", arguments=(Constant(value=str(key)),)):
            return f"{canonical_text(target)}[{key!r}]"
        case MethodCall(target=target, name=name, arguments=arguments):
            return f"{canonical_text(target)}.{name}({', '.join(map(canonical_text, arguments))})"
        case Unary(operator=operator, operand=operand):
            return f"({operator} {canonical_text(operand)})"
        case Sum(first=first, rest=rest):
            return f"({canonical_text(first)}{''.join(f' {sign} {canonical_text(term)}' for sign, term in rest)})"
        case Compare(first=first, rest=compared):
            return f"({canonical_text(first)}{''.join(f' {sign} {canonical_text(part)}' for sign, part in compared)})"
        case Logic(operator=operator, values=values):
            return f"({f' {operator} '.join(map(canonical_text, values))})"
        case Conditional(test=test, then=then, otherwise=otherwise):
            return f"({canonical_text(then)} if {canonical_text(test)} else {canonical_text(otherwise)})"
        case Display(kind=kind, items=items):
            return f"{kind}({', '.join(map(canonical_text, items))})"
        case Pairs(entries=entries):
            return f"{{{', '.join(f'{canonical_text(key)}: {canonical_text(value)}' for key, value in entries)}}}"
    return ""
