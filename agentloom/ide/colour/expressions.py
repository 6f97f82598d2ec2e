"""Tokens of router expressions, read off their words, so that one which is half typed keeps its colours."""

from __future__ import annotations

from agentloom.ide.colour.tokens import Pen, TokenKind
from agentloom.language.functions import FUNCTIONS
from agentloom.language.tokens import Token as Word
from agentloom.language.tokens import tokenize
from agentloom.syntax.nodes import Scalar

ROOTS = frozenset({"state", "steps", "reply"})
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_PUNCTUATION = _OPENING | _CLOSING | frozenset(",.:;")


def put_expression(pen: Pen, node: Scalar) -> None:
    """Put down the tokens of an expression."""
    words, _ = tokenize(node.value)
    chain = _Chain()
    for number, word in enumerate(words):
        before = words[number - 1].text if number else ""
        after = words[number + 1].text if number + 1 < len(words) else ""
        kind = chain.kind(word, before, after)
        if kind is None:
            continue
        if word.kind == "text" and kind != "text":
            pen.put(node, word.inner.start, word.inner.end, kind)
        else:
            pen.put(node, word.span.start, word.span.end, kind)


class _Chain:
    """Follows ``state.a["b"].c``: knows at each word how deep below which root it stands."""

    def __init__(self) -> None:
        self.root = ""
        self.depth = 0
        self.outer: list[tuple[str, int]] = []
        """Where the chains stood that open brackets interrupt; no root where what is in them is no key."""

    def kind(self, word: Word, before: str, after: str) -> TokenKind | None:
        """Return what a word is, and go on."""
        if word.kind == "name":
            return self._name(word.text, before, after)
        if word.kind == "keyword":
            self.root = ""
            return "keyword"
        if word.kind == "text":
            is_key = before in ("[", "(") and after in ("]", ")", ",") and bool(self.outer and self.outer[-1][0])
            return self._part(*self.outer[-1]) if is_key else "text"
        if word.kind == "operator":
            return self._operator(word.text)
        return "number" if word.kind == "number" else None

    def _operator(self, text: str) -> TokenKind | None:
        if text in _OPENING:
            self.outer.append((self.root, self.depth))
            self.root = ""
        elif text in _CLOSING:
            self.root, self.depth = self.outer.pop() if self.outer else ("", 0)
            self.depth += 1
        elif text != ".":
            self.root = ""
        return None if text in _PUNCTUATION else "operator"

    def _name(self, name: str, before: str, after: str) -> TokenKind | None:
        if before == ".":
            if after == "(":
                if name != "get":
                    self.root = ""  # its arguments are no keys
                return "method"
            if (self.root, self.depth, name) == ("state", 0, "steps"):
                self.root = "steps"
                return "root"
            kind = self._part(self.root, self.depth)
            self.depth += 1
            return kind
        self.root, self.depth = "", 0
        if after == "(":
            return "function" if name in FUNCTIONS else None
        if name in ROOTS:
            self.root = name
            return "root"
        return None

    @staticmethod
    def _part(root: str, depth: int) -> TokenKind:
        if depth == 0 and root == "state":
            return "state"
        return "step" if depth == 0 and root == "steps" else "property"
