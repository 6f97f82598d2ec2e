"""Where a reading of a router expression stands, and what it says about what can't stand there."""

from __future__ import annotations

from typing import Final

from agentloom.language.faults import Fault
from agentloom.language.tokens import Token
from agentloom.language.tree import Refused
from agentloom.text import Span

MAX_DEPTH: Final = 100
"""How deep an expression may nest: brackets, operators, anything chained."""

FOREIGN = {
    sign: (f"`{sign}` is written `{ours.strip()}` here", ours)
    for sign, ours in (
        ("&&", "and"), ("||", "or"), ("!", "not "), ("===", "=="), ("!==", "!="), ("<>", "!="),
        ("AND", "and"), ("OR", "or"), ("NOT", "not"),
    )
} | {"=": ("`=` doesn't compare; write `==`", "==")}  # fmt: skip
"""What other languages write, with the message about it and the word for it here."""
_STATEMENTS = frozenset({
    "import", "from", "return", "del", "pass", "raise", "assert", "global", "nonlocal", "break", "continue", "class", "def",
    "with", "while", "for", "try", "except", "finally", "async", "elif",
})  # fmt: skip
_CLOSING = {"(": ")", "[": "]", "{": "}"}


class Cursor:
    """A place in a list of tokens that ends with one of kind ``end``, and the faults met so far.

    After a syntax fault it stands at the end, and says nothing more.
    """

    def __init__(self, value: str, tokens: list[Token], faults: list[Fault], stopped: bool) -> None:
        self.value = value
        self.tokens = tokens
        self.faults = faults
        self.index = 0
        self.token = tokens[0]
        self.stopped = stopped
        self.depth = 0

    def advance(self) -> Token:
        """Take the token that stands here."""
        token = self.token
        if token.kind != "end":
            self.index += 1
            self.token = self.tokens[self.index]
        return token

    def is_at(self, kind: str, text: str) -> bool:
        """Tell whether this very token stands here."""
        return self.token.text == text and self.token.kind == kind

    def is_operator(self, text: str) -> bool:
        """Tell whether this operator stands here."""
        return self.token.text == text and self.token.kind == "operator"

    def take(self, text: str) -> bool:
        """Take this operator, if it stands here."""
        if self.token.text == text and self.token.kind == "operator":
            self.advance()
            return True
        return False

    def stop(self, span: Span, message: str, replacement: str | None = None) -> Refused:
        """Report a syntax fault, unless there is one already, and stop reading."""
        if not self.stopped:
            title = f"write `{replacement.strip()}`" if replacement else ""
            self.faults.append(Fault("syntax", span, message, replacement, title))
            self.stopped = True
        self.index = len(self.tokens) - 1
        self.token = self.tokens[self.index]
        return Refused(span)

    def forbid(self, span: Span, message: str, replacement: str | None = None) -> None:
        """Report something that routers refuse; reading goes on."""
        title = f"write `{replacement.strip()}`" if replacement else ""
        self.faults.append(Fault("forbidden", span, message, replacement, title))

    def unexpected(self) -> Refused:
        """Report what stands here as a syntax fault, in the words that fit it best."""
        token = self.token
        if token.kind == "end":
            if not self.index:
                return self.stop(token.span, "the condition is empty")
            before = self.tokens[self.index - 1]
            return self.stop(before.span, f"`{shortened(before.text)}` needs a value behind it")
        if token.text in FOREIGN:
            return self.stop(token.span, *FOREIGN[token.text])
        if token.kind == "keyword" and token.text in _STATEMENTS:
            self.forbid(token.span, f"`{token.text}` is not allowed; a condition is a single expression")
            self.stopped = True
            return self.stop(token.span, "")
        if token.kind == "operator" and token.text in ")]}":
            return self.stop(token.span, f"`{token.text}` closes nothing")
        if token.kind in ("name", "number", "text", "refused", "keyword") and self.index:
            before = self.tokens[self.index - 1]
            if before.text in FOREIGN:
                return self.stop(before.span, *FOREIGN[before.text])
            if token.kind == "number" and token.text.startswith(".") and token.text[1:].isdigit():
                index = f"[{token.text[1:]}]"
                return self.stop(token.span, f"items of a list stand in brackets; write `{index}`", index)
            if before.kind in ("name", "number", "text", "refused") or before.text in (")", "]", "}"):
                return self.stop(
                    token.span, f"`{shortened(token.text)}` can't follow here; an operator is missing before it"
                )
        return self.stop(token.span, f"`{shortened(token.text)}` can't stand here")

    def close(self, opened: Token) -> int:
        """Take the bracket that closes ``opened``; return where it ends."""
        closing = _CLOSING[opened.text]
        end = self.token.span.end
        if self.take(closing):
            return end
        if self.token.kind == "end":
            self.stop(opened.span, f"`{opened.text}` is never closed; add `{closing}`")
        else:
            self.unexpected()
        return self.tokens[self.index].span.end

    def deeper(self) -> bool:
        """Count one level more; False, and a fault, when that is too deep. Callers count down again."""
        self.depth += 1
        if self.depth <= MAX_DEPTH:
            return True
        self.stop(self.token.span, f"the condition nests deeper than {MAX_DEPTH} levels")
        return False


def shortened(text: str) -> str:
    """Return a token's text for a message, cut where it is long."""
    return text if len(text) <= 30 else text[:29] + "…"
