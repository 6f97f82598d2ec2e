"""What follows a value in a router expression: attributes, subscripts, slices and calls, and what is refused among them."""

from __future__ import annotations

from abc import abstractmethod

from agentloom.language.cursor import Cursor
from agentloom.language.tokens import Token
from agentloom.language.tree import (
    Attribute,
    Constant,
    Display,
    FunctionCall,
    MethodCall,
    Name,
    Node,
    Refused,
    Slice,
    Subscript,
    Unary,
)
from agentloom.text import Span


class Trailers(Cursor):
    """The part of the parser that reads behind a value. It asks the rest for whole expressions."""

    @abstractmethod
    def _expression(self) -> Node:
        """Read an expression."""

    @abstractmethod
    def _tuple(self, first: Node) -> Display:
        """Read what follows the first item of a tuple."""

    @abstractmethod
    def _comprehension(self) -> Refused:
        """Refuse a comprehension."""

    def attribute_of(self, target: Node, dot: Token) -> Node:
        """Read `.name` behind a value."""
        token = self.token
        if token.kind not in ("name", "keyword"):
            self.stop(dot.span, "a name must follow the dot")
            return Attribute(Span(target.span.start, dot.span.end), target, "", Span(dot.span.end, dot.span.end))
        if token.kind == "keyword":
            cure = f"['{token.text}']"
            span = Span(dot.span.start, token.span.end)
            self.stop(span, f"`{token.text}` is a word of the language; write `{cure}` for a key", cure)
            return target
        self.advance()
        return Attribute(Span(target.span.start, token.span.end), target, token.text, token.span)

    def subscript_of(self, target: Node, opened: Token) -> Node:
        """Read an index, a key or a slice behind a value."""
        start = target.span.start
        bounds: list[Node | None] = [None]
        colons = 0
        while not self.is_operator("]") and self.token.kind != "end":
            if self.take(":"):
                colons += 1
                bounds.append(None)
                continue
            if bounds[-1] is not None:
                break
            bounds[-1] = self._expression()
        if not colons and bounds[0] is None and self.is_operator("]"):
            self.stop(Span(opened.span.start, self.token.span.end), "`[]` is empty; write a number or a key in it")
            return Refused(target.span, (target,))
        if self.is_operator(","):
            bounds[-1] = self._tuple(bounds[-1] or Refused(self.token.span))
        end = self.close(opened)
        span = Span(start, end)
        if self.stopped:
            return Refused(span, (target, *(bound for bound in bounds if bound is not None)))
        inside = Span(opened.span.start, end)
        if colons > 2:
            self.stop(inside, "a slice has at most two colons")
            return Refused(span, (target,))
        if not colons:
            node = bounds[0]
            if isinstance(node, Constant) and isinstance(node.value, str):
                return Subscript(span, target, node.value, node.inner)
            index = _whole_number(node)
            if node is not None and index is not None:
                return Subscript(span, target, index, node.span)
            self.forbid(inside, "a subscript must be a number or a text written out")
            return Refused(span, (target,) if node is None else (target, node))
        if any(bound is not None and _whole_number(bound) is None for bound in bounds):
            self.forbid(inside, "the bounds of a slice must be numbers written out")
            return Refused(span, (target, *(bound for bound in bounds if bound is not None)))
        first, second, third = (*(_whole_number(bound) for bound in bounds), None)[:3]
        if third == 0:
            self.forbid(inside, "the step of a slice can't be 0")
        return Slice(span, target, first, second, third)

    def call_of(self, callee: Node, opened: Token) -> Node:
        """Read the arguments of a call, and say what is called."""
        arguments = self._arguments()
        end = self.close(opened)
        span = Span(callee.span.start, end)
        match callee:
            case Name(span=name_span, name=name):
                return FunctionCall(span, name, name_span, arguments)
            case Attribute(target=target, name=name, name_span=name_span):
                return MethodCall(span, target, name, name_span, arguments)
            case Refused():
                return Refused(span, (callee, *arguments))
        self.forbid(callee.span, "only functions and methods can be called in a condition")
        return Refused(span, (callee, *arguments))

    def _arguments(self) -> tuple[Node, ...]:
        arguments: list[Node] = []
        while self.token.kind != "end" and not self.is_operator(")"):
            following = self.tokens[self.index + 1] if self.token.kind == "name" else None
            if following is not None and following.kind == "operator" and following.text == "=":
                self.forbid(
                    Span(self.token.span.start, following.span.end), "keyword arguments are not allowed in a condition"
                )
                self.advance()
                self.advance()
                arguments.append(Refused(self.token.span, (self._expression(),)))
            else:
                arguments.append(self._expression())
                if self.is_at("keyword", "for") or self.is_at("keyword", "async"):
                    arguments[-1] = self._comprehension()
            if not self.take(","):
                break
        return tuple(arguments)


def _whole_number(node: Node | None) -> int | None:
    """Return the number that ``3``, ``-3`` or ``+3`` writes out."""
    sign = 1
    if isinstance(node, Unary) and node.operator != "not":
        sign = -1 if node.operator == "-" else 1
        node = node.operand
    if isinstance(node, Constant) and isinstance(node.value, int) and not isinstance(node.value, bool):
        return sign * node.value
    return None
