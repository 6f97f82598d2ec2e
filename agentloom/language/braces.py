"""Braces in a text: which belong together, and how to write them so that a template shows them."""

from __future__ import annotations

import re
from typing import Final

BRACE: Final = re.compile(r"[{}]")


def escape_braces(text: str) -> str:
    """Return the template that renders ``text`` as it stands."""
    return text.replace("{", "{{").replace("}", "}}")


class BracePairs:
    """Which braces belong together, found in one pass: ``closing`` of each single ``{``; ``paired`` are doubled already."""

    def __init__(self, value: str) -> None:
        self.closing: dict[int, int] = {}
        self.paired: set[int] = set()
        stack: list[tuple[int, bool]] = []
        skip = -1
        for found in BRACE.finditer(value):
            at = found.start()
            if at == skip:
                continue
            doubled = value[at + 1 : at + 2] == value[at]
            if value[at] == "{":
                stack.append((at, doubled))
                skip = at + 1 if doubled else -1
            elif stack:
                opened, was_doubled = stack.pop()
                if was_doubled and doubled:
                    self.paired.update((opened, opened + 1, at, at + 1))
                    skip = at + 1
                else:
                    self.closing[opened] = at
