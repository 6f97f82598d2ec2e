"""The value of a router expression on a state: a walk over the tree that touches plain data only, within bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agentloom.errors import ExpressionError
from agentloom.language.functions import (
    FUNCTIONS,
    METHODS,
    Refusal,
    Work,
    receiver_of,
    refuse_long_list,
    refuse_long_text,
)
from agentloom.language.rendering import kind_of
from agentloom.language.tree import (
    Attribute,
    Compare,
    Conditional,
    Constant,
    Display,
    FunctionCall,
    Logic,
    MethodCall,
    Name,
    Node,
    Pairs,
    Refused,
    Slice,
    Subscript,
    Sum,
    Unary,
)

_FAILURES = (TypeError, ValueError, OverflowError, KeyError, IndexError, RecursionError, MemoryError)


def evaluate_tree(tree: Node, value: str, state: Mapping[str, Any], names: Mapping[str, Any] | None = None) -> Any:
    """Return what ``tree``, read from the text ``value``, gives on ``state``; tuples become lists. ``names`` are known besides.

    Raises ``ExpressionError`` with the place that failed. The state is only read, never changed.
    """
    return _as_json(_Walk(value, state, names or {}).visit(tree))


def _as_json(value: Any) -> Any:
    if isinstance(value, tuple) or (isinstance(value, list) and any(isinstance(item, tuple) for item in value)):
        return [_as_json(item) for item in value]
    return value


class _Walk:
    """One evaluation: the state, and the work that is left."""

    __slots__ = ("names", "state", "text", "work")

    def __init__(self, text: str, state: Mapping[str, Any], names: Mapping[str, Any]) -> None:
        self.text = text
        self.state = state
        self.names = names
        self.work = Work()

    def visit(self, node: Node) -> Any:
        """Return the value of a node."""
        try:
            self.work.spend(0)
            return _VISITORS[type(node)](self, node)
        except Refusal as refusal:
            raise self._failed(node, str(refusal)) from None
        except _FAILURES as error:
            raise self._failed(node, f"`{self._shown(node)}` can't be worked out") from error

    def _failed(self, node: Node, message: str) -> ExpressionError:
        return ExpressionError(message, start=node.span.start, end=node.span.end)

    def _shown(self, node: Node) -> str:
        text = " ".join(self.text[node.span.start : node.span.end].split())
        return text if len(text) <= 40 else text[:37] + "…"

    def _constant(self, node: Constant) -> Any:
        return node.value

    def _name(self, node: Name) -> Any:
        if node.name == "state":
            return self.state
        if node.name == "steps":
            return _plain(self.state.get("steps", {}))
        if node.name in self.names:
            return _plain(self.names[node.name])
        raise Refusal(f"`{node.name}` is not defined; conditions know `state` and `steps`")

    def _attribute(self, node: Attribute) -> Any:
        target = self.visit(node.target)
        if isinstance(target, Mapping):
            return _plain(target.get(node.name))
        if target is None and names_a_step(node.target):
            return None
        raise Refusal(f"`{node.name}` can't be read from `{self._shown(node.target)}`, which is {kind_of(target)}")

    def _subscript(self, node: Subscript) -> Any:
        target = self.visit(node.target)
        key = node.key
        if isinstance(target, Mapping):
            return _plain(target.get(key) if isinstance(key, str) else None)
        if isinstance(key, int) and isinstance(target, str | list | tuple):
            if -len(target) <= key < len(target):
                return _plain(target[key])
            raise Refusal(f"`{self._shown(node.target)}` has no item {key}; its length is {len(target)}")
        if target is None and names_a_step(node.target):
            return None
        raise Refusal(f"`{key}` can't be read from `{self._shown(node.target)}`, which is {kind_of(target)}")

    def _slice(self, node: Slice) -> Any:
        target = self.visit(node.target)
        if not isinstance(target, str | list | tuple):
            raise Refusal(f"`{self._shown(node.target)}` can't be sliced; it is {kind_of(target)}")
        wanted = slice(node.start, node.stop, node.step)
        length = len(range(*wanted.indices(len(target))))
        if isinstance(target, str):
            refuse_long_text(length)
        else:
            refuse_long_list(length)
        self.work.spend(length)
        return target[wanted]

    def _function(self, node: FunctionCall) -> Any:
        called = FUNCTIONS.get(node.name)
        if called is None:
            raise Refusal(f"`{node.name}` is no function of conditions")
        if node.name == "isinstance" and len(node.arguments) == 2:
            return called.run(self.work, self.visit(node.arguments[0]), type_names(node.arguments[1]))
        arguments = [self.visit(argument) for argument in node.arguments]
        if not called.least <= len(arguments) <= called.most:
            raise Refusal(f"`{node.name}` is called with {len(arguments)} arguments")
        return called.run(self.work, *arguments)

    def _method(self, node: MethodCall) -> Any:
        target = self.visit(node.target)
        receiver = receiver_of(target)
        called = METHODS[receiver].get(node.name) if receiver else None
        if called is None:
            raise Refusal(f"`{self._shown(node.target)}` is {kind_of(target)} and has no method `{node.name}`")
        arguments = [self.visit(argument) for argument in node.arguments]
        if not called.least <= len(arguments) <= called.most:
            raise Refusal(f"`{node.name}` is called with {len(arguments)} arguments")
        self.work.spend(len(target) if receiver == "text" else 0)
        for argument in arguments:
            self.work.spend(len(argument) if isinstance(argument, str) else 0)
        return _plain(called.run(self.work, target, *arguments))

    def _unary(self, node: Unary) -> Any:
        operand = self.visit(node.operand)
        if node.operator == "not":
            return not operand
        if not isinstance(operand, int | float):
            raise Refusal(f"`{node.operator}` needs a number, not {kind_of(operand)}")
        return -operand if node.operator == "-" else +operand

    def _sum(self, node: Sum) -> Any:
        total = self.visit(node.first)
        for operator, term in node.rest:
            value = self.visit(term)
            if isinstance(total, int | float) and isinstance(value, int | float):
                total = total + value if operator == "+" else total - value
            elif operator == "-":
                raise Refusal(f"`-` needs two numbers, not {kind_of(total)} and {kind_of(value)}")
            elif _addable(total, value):
                length = len(total) + len(value)
                if isinstance(total, str):
                    refuse_long_text(length)
                else:
                    refuse_long_list(length)
                self.work.spend(length)
                total = total + value
            else:
                raise Refusal(f"`+` can't add {kind_of(value)} to {kind_of(total)}")
        return total

    def _logic(self, node: Logic) -> Any:
        stop_at = node.operator == "or"
        value: Any = None
        for part in node.values:
            value = self.visit(part)
            if bool(value) is stop_at:
                break
        return value

    def _compare(self, node: Compare) -> Any:
        left = self.visit(node.first)
        result: Any = True
        for operator, part in node.rest:
            right = self.visit(part)
            try:
                result = _COMPARISONS[operator](self.work, left, right)
            except TypeError:
                raise Refusal(f"`{operator}` can't compare {kind_of(left)} with {kind_of(right)}") from None
            if not result:
                break
            left = right
        return result

    def _conditional(self, node: Conditional) -> Any:
        return self.visit(node.then if self.visit(node.test) else node.otherwise)

    def _display(self, node: Display) -> Any:
        items = [self.visit(item) for item in node.items]
        return tuple(items) if node.kind == "tuple" else items

    def _pairs(self, node: Pairs) -> Any:
        pairs: dict[Any, Any] = {}
        for key, value in node.entries:
            found = self.visit(key)
            if not isinstance(found, str | int | float | None):
                raise Refusal(f"a key must be a text or a number, not {kind_of(found)}")
            pairs[found] = self.visit(value)
        return pairs

    def _refused(self, node: Refused) -> Any:
        raise Refusal("the condition has a fault here")


_VISITORS: dict[type[Any], Callable[[_Walk, Any], Any]] = {
    Constant: _Walk._constant,
    Name: _Walk._name,
    Attribute: _Walk._attribute,
    Subscript: _Walk._subscript,
    Slice: _Walk._slice,
    FunctionCall: _Walk._function,
    MethodCall: _Walk._method,
    Unary: _Walk._unary,
    Sum: _Walk._sum,
    Logic: _Walk._logic,
    Compare: _Walk._compare,
    Conditional: _Walk._conditional,
    Display: _Walk._display,
    Pairs: _Walk._pairs,
    Refused: _Walk._refused,
}


def names_a_step(node: Node) -> bool:
    """Tell whether a node is ``steps.x`` or ``state.steps.x``: read from one that didn't run, everything is None."""
    if not isinstance(node, Attribute | Subscript):
        return False
    steps = node.target
    if isinstance(steps, Name):
        return steps.name == "steps"
    key = steps.name if isinstance(steps, Attribute) else steps.key if isinstance(steps, Subscript) else None
    return (
        key == "steps"
        and isinstance(steps, Attribute | Subscript)
        and isinstance(steps.target, Name)
        and steps.target.name == "state"
    )


def type_names(node: Node) -> str | tuple[str, ...]:
    """Return the type names in the second argument of ``isinstance``."""
    if isinstance(node, Name):
        return node.name
    if isinstance(node, Display):
        return tuple(item.name for item in node.items if isinstance(item, Name))
    return ()


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float | Mapping | list | tuple):
        return value
    raise Refusal("the state holds something here that is no plain data")


def _addable(left: Any, right: Any) -> bool:
    return any(isinstance(left, kind) and isinstance(right, kind) for kind in (str, list, tuple))


def _pay_for_both(work: Work, left: Any, right: Any) -> None:
    """Pay for comparing two values: for the shorter text, or for everything in one of two containers."""
    if isinstance(left, str):
        work.spend(min(len(left), len(right)) if isinstance(right, str) else 0)
    elif isinstance(left, Mapping | list | tuple) and isinstance(right, Mapping | list | tuple):
        work.weigh(left)


def _equal(work: Work, left: Any, right: Any) -> bool:
    if (
        isinstance(left, Mapping | list | tuple)
        and isinstance(right, Mapping | list | tuple)
        and len(left) != len(right)
    ):
        return False
    _pay_for_both(work, left, right)
    return bool(left == right)


def _ordered(compare: Callable[[Any, Any], Any]) -> Callable[[Work, Any, Any], bool]:
    def run(work: Work, left: Any, right: Any) -> bool:
        _pay_for_both(work, left, right)
        return bool(compare(left, right))

    return run


def _contains(work: Work, left: Any, right: Any) -> bool:
    if isinstance(right, str):
        work.spend(len(right))
        if not isinstance(left, str):
            raise Refusal(f"only a text can be in a text, not {kind_of(left)}")
    elif isinstance(right, Mapping):
        if isinstance(left, Mapping | list):
            raise Refusal(f"only a text or a number can be a key of a mapping, not {kind_of(left)}")
    elif isinstance(right, list | tuple):
        if isinstance(left, Mapping | list | tuple):
            work.weigh(right)
        else:
            work.spend(len(right) * 4)
    else:
        raise Refusal(f"`in` needs a list, a mapping or a text behind it, not {kind_of(right)}")
    return left in right


def _identical(work: Work, left: Any, right: Any) -> bool:
    """``is``: the same value of the same kind; of lists and mappings, the very same one."""
    if isinstance(left, str | int | float) and type(left) is type(right):
        work.spend(len(left) if isinstance(left, str) else 0)
        return bool(left == right)
    return left is right


_COMPARISONS: dict[str, Callable[[Work, Any, Any], bool]] = {
    "==": _equal,
    "!=": lambda work, left, right: not _equal(work, left, right),
    "<": _ordered(lambda left, right: left < right),
    "<=": _ordered(lambda left, right: left <= right),
    ">": _ordered(lambda left, right: left > right),
    ">=": _ordered(lambda left, right: left >= right),
    "in": _contains,
    "not in": lambda work, left, right: not _contains(work, left, right),
    "is": _identical,
    "is not": lambda work, left, right: not _identical(work, left, right),
}
