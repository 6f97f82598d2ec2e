"""Keys that never show themselves, and texts that never show keys."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_KEY_SHAPED = re.compile(r"\b(sk|rk|pk)-[\w*.-]{6,}")


@dataclass(frozen=True, slots=True)
class Secret:
    """A key. Shows itself neither in ``repr`` nor in a formatted text; whoever needs it asks for ``value``."""

    value: str = field(repr=False)

    def __str__(self) -> str:
        return "<secret>"

    def __format__(self, spec: str) -> str:
        return "<secret>"


def without_keys(text: str, *keys: Secret | None) -> str:
    """Return a text without the given keys, and without anything that looks like one."""
    for key in keys:
        if key is not None and key.value:
            text = text.replace(key.value, "<secret>")
    return _KEY_SHAPED.sub(r"\1-…", text)
