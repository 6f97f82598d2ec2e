"""Tokens of a router expression to its tree, with every construct that routers refuse named where it stands.

Operator precedence as in Python. A syntax fault ends the reading, what was read so far stays; a refused construct is
reported and reading goes on behind it, so that one pass finds them all.
"""

from __future__ import annotations

from typing import Final, Literal, cast

from agentloom.language.cursor import shortened
from agentloom.language.faults import Fault
from agentloom.language.tokens import Token, tokenize
from agentloom.language.trailers import Trailers
from agentloom.language.tree import (
    Attribute,
    Compare,
    CompareOperator,
    Conditional,
    Constant,
    Display,
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
from agentloom.text import Span

MAX_LENGTH: Final = 10_000
"""The longest expression, in characters."""

_OR, _AND, _NOT, _COMPARE, _SUM, _PREFIX, _POWER = 1, 2, 3, 4, 9, 11, 12
_REFUSED_OPERATORS = {
    "|": (5, "bitwise or"), "^": (6, "bitwise xor"), "&": (7, "bitwise and"),
    "<<": (8, "shifting"), ">>": (8, "shifting"),
    "*": (10, "multiplication"), "/": (10, "division"), "//": (10, "division"), "%": (10, "the remainder"),
    "@": (10, "matrix multiplication"), "**": (_POWER, "raising to a power"),
}  # fmt: skip
_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_FIXED = {"True": True, "False": False, "None": None}


def parse_tree(value: str) -> tuple[Node, list[Fault], list[Token]]:
    """Return the tree of an expression, its faults in the order they were met, and its tokens. Never raises."""
    whole = Span(0, len(value))
    if len(value) > MAX_LENGTH:
        fault = Fault("syntax", Span(0, min(40, len(value))), f"the condition is longer than {MAX_LENGTH} characters")
        return Refused(whole), [fault], []
    tokens, faults = tokenize(value)
    stopped = any(fault.kind == "syntax" for fault in faults)
    if len(tokens) == 1 and not faults:
        fault = Fault("syntax", whole, "the condition is empty; write one such as `state.category == 'billing'`")
        return Refused(whole), [fault], tokens
    parser = _Parser(value, tokens, faults, stopped)
    return parser.parse(), faults, tokens


class _Parser(Trailers):
    """One reading of one list of tokens."""

    def parse(self) -> Node:
        """Read everything."""
        node = self._expression()
        if self.is_at("operator", ","):
            node = self._tuple(node)
        if self.token.kind != "end":
            self.unexpected()
        return node

    # Expressions, from the loosest binding to the tightest

    def _expression(self) -> Node:
        """``a if b else c``, and what binds tighter."""
        if not self.deeper():
            return Refused(self.token.span)
        node: Node = self._binary(_OR)
        if self.is_at("keyword", "if"):
            self.advance()
            test = self._binary(_OR)
            if self.is_at("keyword", "else"):
                self.advance()
                otherwise = self._expression()
                node = Conditional(Span(node.span.start, otherwise.span.end), test, node, otherwise)
            else:
                self.stop(self.tokens[self.index - 1].span, "`if` needs an `else` in a condition: `a if b else c`")
                node = Refused(node.span, (node, test))
        if self.is_operator(":="):
            self.forbid(self.advance().span, "assignment with `:=` is not allowed in a condition")
            node = Refused(node.span, (self._expression(),))
        self.depth -= 1
        return node

    def _skip(self, message: str) -> Refused:
        """Refuse what starts here, and skip it: up to a comma or the end of the brackets around it."""
        first = self.token
        self.forbid(first.span, message)
        level = 0
        while self.token.kind != "end":
            text = self.token.text if self.token.kind == "operator" else ""
            if text and text in "([{":
                level += 1
            elif text and text in ")]}":
                if level == 0:
                    break
                level -= 1
            self.advance()
        return Refused(first.span)

    def _binary(self, least: int) -> Node:
        """Operators that bind at least as tight as ``least``."""
        if not self.deeper():
            return Refused(self.token.span)
        left = self._prefix(least)
        while True:
            token = self.token
            text = token.text
            if token.kind == "keyword":
                if text == "or" and least <= _OR:
                    left = self._logic(left, "or", _AND)
                elif text == "and" and least <= _AND:
                    left = self._logic(left, "and", _NOT)
                elif text in ("in", "is", "not") and least <= _COMPARE:
                    left = self._compare(left)
                else:
                    break
                if self.stopped:
                    break
            elif token.kind == "operator":
                if text in _COMPARISONS and least <= _COMPARE:
                    left = self._compare(left)
                elif text in ("+", "-") and least <= _SUM:
                    left = self._sum(left)
                elif (refused := _REFUSED_OPERATORS.get(text)) is not None and least <= refused[0]:
                    self.advance()
                    self.forbid(token.span, f"{refused[1]} (`{text}`) is not allowed in a condition")
                    right = self._binary(_PREFIX if text == "**" else refused[0] + 1)
                    left = Refused(Span(left.span.start, right.span.end), (left, right))
                else:
                    break
            else:
                break
        self.depth -= 1
        return left

    def _prefix(self, least: int) -> Node:
        token = self.token
        if token.kind == "keyword" and token.text == "not":
            if least > _NOT:
                return self.stop(token.span, "`not` can't stand behind an operator; put it in brackets: `(not …)`")
            self.advance()
            operand = self._binary(_NOT)
            return Unary(Span(token.span.start, operand.span.end), "not", operand)
        if token.kind == "operator":
            if token.text in ("+", "-"):
                self.advance()
                operand = self._binary(_PREFIX)
                sign: Literal["+", "-"] = "-" if token.text == "-" else "+"
                return Unary(Span(token.span.start, operand.span.end), sign, operand)
            if token.text in ("~", "*", "**"):
                self.advance()
                what = "bitwise inversion (`~`)" if token.text == "~" else f"a starred value (`{token.text}`)"
                self.forbid(token.span, f"{what} is not allowed in a condition")
                return Refused(token.span, (self._binary(_PREFIX),))
        if token.kind == "keyword" and token.text == "lambda":
            return self._skip("lambda is not allowed in a condition")
        if token.kind == "keyword" and token.text in ("await", "yield"):
            self.advance()
            self.forbid(token.span, f"`{token.text}` is not allowed in a condition")
            if self.token.kind == "end" or self.token.text in (")", "]", "}"):
                return Refused(token.span)
            return Refused(token.span, (self._binary(_PREFIX),))
        return self._primary()

    def _logic(self, first: Node, operator: Literal["and", "or"], tighter: int) -> Node:
        values = [first]
        while self.is_at("keyword", operator):
            self.advance()
            values.append(self._binary(tighter))
        return Logic(Span(first.span.start, values[-1].span.end), operator, tuple(values))

    def _compare(self, first: Node) -> Node:
        rest: list[tuple[CompareOperator, Node]] = []
        while (operator := self._comparison()) is not None:
            rest.append((operator, self._binary(_COMPARE + 1)))
        if not rest:
            self.unexpected()
            return first
        return Compare(Span(first.span.start, rest[-1][1].span.end), first, tuple(rest))

    def _comparison(self) -> CompareOperator | None:
        """Take a comparison operator, if one stands here."""
        token = self.token
        if token.kind == "operator" and token.text in _COMPARISONS:
            self.advance()
            return cast(CompareOperator, token.text)
        if token.kind != "keyword" or token.text not in ("in", "is", "not"):
            return None
        if token.text == "not":
            following = self.tokens[self.index + 1]
            if following.kind != "keyword" or following.text != "in":
                return None
            self.advance()
            self.advance()
            return "not in"
        self.advance()
        if token.text == "is" and self.is_at("keyword", "not"):
            self.advance()
            return "is not"
        return "in" if token.text == "in" else "is"

    def _sum(self, first: Node) -> Node:
        rest: list[tuple[Literal["+", "-"], Node]] = []
        while self.token.kind == "operator" and self.token.text in ("+", "-"):
            sign: Literal["+", "-"] = "-" if self.advance().text == "-" else "+"
            rest.append((sign, self._binary(_SUM + 1)))
        return Sum(Span(first.span.start, rest[-1][1].span.end), first, tuple(rest))

    # Values

    def _primary(self) -> Node:
        node = self._atom()
        while self.token.kind == "operator" and self.token.text in (".", "[", "("):
            opened = self.advance()
            if opened.text == ".":
                node = self.attribute_of(node, opened)
            elif opened.text == "[":
                node = self.subscript_of(node, opened)
            else:
                node = self.call_of(node, opened)
        return node

    def _atom(self) -> Node:
        token = self.token
        match token.kind:
            case "name":
                self.advance()
                return Name(token.span, token.text)
            case "number":
                self.advance()
                return Constant(token.span, token.value, token.span)
            case "text":
                return self._text()
            case "refused":
                self.advance()
                while self.token.kind in ("text", "refused"):
                    self.advance()
                return Refused(token.span)
            case "keyword" if token.text in _FIXED:
                self.advance()
                return Constant(token.span, _FIXED[token.text], token.span)
            case "operator":
                if token.text == "(":
                    return self._brackets()
                if token.text == "[":
                    return self._list()
                if token.text == "{":
                    return self._braces()
                if token.text == "...":
                    self.advance()
                    self.forbid(token.span, "`...` is not allowed in a condition")
                    return Refused(token.span)
        return self.unexpected()

    def _text(self) -> Node:
        first = self.advance()
        if self.token.kind not in ("text", "refused"):
            return Constant(first.span, first.value, first.inner)
        values = [str(first.value)]
        last = first
        while self.token.kind in ("text", "refused"):
            last = self.advance()
            if last.kind == "refused":
                return Refused(Span(first.span.start, last.span.end))
            values.append(str(last.value))
        return Constant(Span(first.span.start, last.span.end), "".join(values), Span(first.inner.start, last.inner.end))

    def _brackets(self) -> Node:
        opened = self.advance()
        end = self.token.span.end
        if self.take(")"):
            return Display(Span(opened.span.start, end), "tuple", ())
        node = self._expression()
        if self.is_at("keyword", "for") or self.is_at("keyword", "async"):
            node = self._comprehension()
        elif self.is_operator(","):
            node = self._tuple(node)
            end = self.close(opened)
            node.span = Span(opened.span.start, end)
            return node
        self.close(opened)
        return node

    def _tuple(self, first: Node) -> Display:
        items = [first]
        end = first.span.end
        while self.is_operator(","):
            end = self.advance().span.end
            if self.token.kind in ("end", "operator") and self.token.text in ("", ")", "]", "}"):
                break
            items.append(self._expression())
            end = items[-1].span.end
        return Display(Span(first.span.start, end), "tuple", tuple(items))

    def _items(self, closing: str) -> list[Node]:
        """Read expressions up to a closing bracket, a trailing comma allowed."""
        items: list[Node] = []
        while self.token.kind != "end" and not self.is_operator(closing):
            items.append(self._expression())
            if self.is_at("keyword", "for") or self.is_at("keyword", "async"):
                items[-1] = self._comprehension()
            if not self.take(","):
                break
        return items

    def _list(self) -> Node:
        opened = self.advance()
        items = self._items("]")
        return Display(Span(opened.span.start, self.close(opened)), "list", tuple(items))

    def _comprehension(self) -> Refused:
        return self._skip("comprehensions are not allowed in a condition")

    def _braces(self) -> Node:
        opened = self.advance()
        keys: list[Node] = []
        values: list[Node] = []
        is_set = False
        while self.token.kind != "end" and not self.is_operator("}"):
            keys.append(self._expression())
            if self.take(":"):
                values.append(self._expression())
            elif not (isinstance(keys[-1], Refused) and self.stopped):
                is_set = True
            if self.is_at("keyword", "for") or self.is_at("keyword", "async"):
                self._comprehension()
                end = self.close(opened)
                return Refused(Span(opened.span.start, end))
            if not self.take(","):
                break
        span = Span(opened.span.start, self.close(opened))
        if is_set and not self.stopped:
            starred = any(isinstance(key, Refused) for key in keys)
            if len(keys) == 1 and not starred and _rooted_in_state(keys[0]):
                inner = self.value[span.start + 1 : span.end - 1].strip()
                self.forbid(span, f"a condition reads the state without braces; write `{shortened(inner)}`", inner)
            elif not starred:
                self.forbid(span, "sets are not allowed in a condition; write a list: `[…]`")
        if is_set or self.stopped:
            return Refused(span, (*keys, *values))
        return Pairs(span, tuple(zip(keys, values, strict=True)))


def _rooted_in_state(node: Node) -> bool:
    while isinstance(node, Attribute | Subscript | Slice | MethodCall):
        node = node.target
    return isinstance(node, Name) and node.name in ("state", "steps")
