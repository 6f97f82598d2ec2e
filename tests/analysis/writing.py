"""Plain data written as YAML text in several styles, without a YAML library: only what a test of places needs."""

from __future__ import annotations

import json
from typing import Any

from agentloom.syntax.quoting import quote


def json_text(value: Any) -> str:
    """Return a value as JSON over several lines."""
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def flow_text(value: Any) -> str:
    """Return a value in braces and brackets on one line, texts in quotes only where they need them."""
    return _flow(value) + "\n"


def block_text(value: Any) -> str:
    """Return a value in block style; what is empty or no container stands behind its key."""
    return "\n".join(_block(value, 0)) + "\n"


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{quote(str(key), flow=True)}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return quote(value, flow=True) if isinstance(value, str) else _other(value)


def _other(value: Any) -> str:
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return ".nan" if value != value else ".inf" if value > 0 else "-.inf"
    return json.dumps(value)


def _block(value: Any, indent: int) -> list[str]:
    pad = " " * indent
    lines: list[str] = []
    if isinstance(value, dict) and value:
        for key, item in value.items():
            written = quote(str(key))
            if isinstance(item, dict | list) and item:
                lines.append(f"{pad}{written}:")
                lines.extend(_block(item, indent + 2))
            else:
                lines.append(f"{pad}{written}: {_flow(item)}")
    elif isinstance(value, list) and value:
        for item in value:
            if isinstance(item, dict | list) and item:
                inner = _block(item, indent + 2)
                lines.append(f"{pad}- {inner[0].lstrip(' ')}")
                lines.extend(inner[1:])
            else:
                lines.append(f"{pad}- {_flow(item)}")
    else:
        lines.append(f"{pad}{_flow(value)}")
    return lines
