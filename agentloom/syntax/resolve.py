"""What a scalar means: nothing, a truth value, a number or a text, by the YAML 1.2 rules that ruamel.yaml follows.

Dates stay texts, since JSON has none.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from agentloom.syntax.nodes import Scalar

Plain: TypeAlias = bool | int | float | str | None

_CORE = "tag:yaml.org,2002:"
_LONGEST_NUMBER = 4_000
"""Python refuses to read longer ones; they stay texts."""

_BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_INT = re.compile(
    r"[-+]?(?:0b[01_]*[01][01_]*|0o[0-7_]*[0-7][0-7_]*|0x[0-9a-fA-F_]*[0-9a-fA-F][0-9a-fA-F_]*|_*[0-9][0-9_]*)\Z"
)
_FLOAT = re.compile(
    r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[0-9][0-9_]*[eE][-+]?[0-9]+|\._*[0-9][0-9_]*(?:[eE][-+][0-9]+)?)\Z"
)
_INFINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)\Z")
_NAN = frozenset((".nan", ".NaN", ".NAN"))
_BASES = {"0b": 2, "0o": 8, "0x": 16}
_MAY_BE_NUMBER = frozenset("0123456789-+.")


def resolve(scalar: Scalar) -> Plain:
    """Return the value of a scalar. Quoted and block scalars are texts, unless a tag says otherwise."""
    tag = scalar.tag
    if tag is None:
        return resolve_plain(scalar.value) if scalar.style == "plain" else scalar.value
    if tag.startswith(_CORE):
        return _tagged(tag[len(_CORE) :], scalar.value)
    return scalar.value


def resolve_plain(value: str) -> Plain:
    """Return what a plain scalar of this text means."""
    if not value:
        return None
    first = value[0]
    if first in _MAY_BE_NUMBER:
        number = _number(value)
        return value if number is None else number
    if first in "tTfF":
        return _BOOLS.get(value, value)
    if first in "~nN" and value in _NULLS:
        return None
    return value


def _number(value: str) -> int | float | None:
    if _INT.match(value):
        return _int(value)
    if _FLOAT.match(value):
        return float(value.replace("_", ""))
    if _INFINITE.match(value):
        return float("-inf") if value[0] == "-" else float("inf")
    return float("nan") if value in _NAN else None


def _int(value: str) -> int | None:
    if len(value) > _LONGEST_NUMBER:
        return None
    digits = value.replace("_", "")
    sign = -1 if digits[0] == "-" else 1
    digits = digits.lstrip("+-")
    base = _BASES.get(digits[:2], 10)
    return sign * int(digits if base == 10 else digits[2:], base)


def _tagged(kind: str, value: str) -> Plain:
    """Return a value under one of YAML's own tags; a text that does not fit the tag stays a text."""
    if kind == "null":
        return None if value in _NULLS else value
    if kind == "bool":
        return _BOOLS.get(value, value)
    if kind == "int":
        number = _int(value) if _INT.match(value) else None
        return value if number is None else number
    if kind == "float":
        found = _number(value)
        return value if found is None else float(found)
    return value
