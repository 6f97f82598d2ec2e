"""What can be wrong with a value: its type, a choice, a bound, the form of a name. AL011, AL103 to AL107."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import Any

from agentloom.analysis import edits
from agentloom.analysis.document import word_span
from agentloom.analysis.lower.kinds import FOUND_WORDS, fits, is_empty, kind_of, type_of, wanted_words
from agentloom.analysis.lower.words import bounds, choice_words, listing, short, value_words
from agentloom.diagnostics import Finding, Fix
from agentloom.language.paths import PathFault, is_name, parse_output_path, parse_path
from agentloom.model.catalogue import Shape, catalogue
from agentloom.similar import ranking
from agentloom.syntax.nodes import Mapping, Node, Scalar, Sequence
from agentloom.syntax.resolve import resolve_plain
from agentloom.text import Span

LARGEST = 1.7976931348623157e308
"""The largest number that a float holds."""

MOST_CHOICES_OFFERED = 10
"""Fixes offered for a word that is like none of the choices."""

_TRUE = ("true", "yes", "on", "y", "1")
_FALSE = ("false", "no", "off", "n", "0")
_TIME = r"([0-9]+(?:\.[0-9]+)?) ?(ms|s|m|h)[a-z]*\Z"
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}
_MONEY = r"(?:USD ?|\$ ?)?([0-9]+(?:\.[0-9]+)?)(?: ?USD| ?\$)?\Z"


def wrong_type(node: Node, value: Any, shape: Shape, name: str, item: bool, key: Scalar | None, text: str) -> Finding:
    """Return the finding for a value whose type doesn't fit its shape; ``key`` is the key that it stands at, if there is one."""
    kind = kind_of(node)
    words = wanted_words(shape)
    called = value_words(name, item)
    if is_empty(node):
        said = f"{called} is empty" if item else f"{called} has no value yet"
        return Finding(
            "AL105", key.span if key is not None else dash_before(text, node.span), f"{said}; give it {words}"
        )
    if isinstance(node, Scalar):
        told = "an empty text" if kind == "string" else "null"
        if kind != "null" and node.value.strip():
            told = f"`{short(node.value)}`, {FOUND_WORDS[kind]}"
        fixes = tuple(_conversions(node, value, kind, shape))
        return Finding("AL105", node.span, f"{called} is {told}; it must be {words}", fixes=fixes)
    return Finding(
        "AL105",
        collection_span(node, key, text),
        f"{called} is {FOUND_WORDS[kind]}; it must be {words}",
        fixes=tuple(_wrappings(node, kind, shape)),
    )


def collection_span(node: Node, key: Scalar | None, text: str) -> Span:
    """Return where a fault of a whole list or mapping is shown: itself on one line, else at its key."""
    one_line = (
        text.find("\n", node.span.start, node.span.end) < 0 and text.find("\r", node.span.start, node.span.end) < 0
    )
    return node.span if key is None or (one_line and isinstance(node, (Mapping, Sequence)) and node.flow) else key.span


def dash_before(text: str, span: Span) -> Span:
    """Return the span of the dash that an empty list item stands behind; the span itself when there is none."""
    at = len(text[max(0, span.start - 200) : span.start].rstrip())
    dash = max(0, span.start - 200) + at - 1
    return Span(dash, dash + 1) if text[dash : dash + 1] == "-" else span


def _conversions(node: Scalar, value: Any, kind: str, shape: Shape) -> Iterator[Fix]:
    """Yield the ways to write a scalar so that it fits, the likeliest first."""
    wanted = shape.types
    if kind == "null" or node.anchor is not None or node.tag is not None:
        return
    if node.style == "plain" and any(_takes_text(node.raw, option) for option in shape.any_of or (shape,)):
        yield Fix("quote it", edits.quote_source(node), safe=False)
    if kind == "string" and node.style in ("single", "double") and fits(type_of(resolve_plain(node.value)), shape):
        yield Fix("remove the quotes", edits.set_source(node, node.value), safe=False)
    else:
        meant = _meant(value, kind, shape)
        if meant is not None:
            yield Fix(f"write `{meant}`", edits.set_source(node, meant), safe=False)
    if "array" in wanted and shape.item is not None and node.style in ("plain", "single", "double"):
        inner = next((s for s in (shape.item, *shape.item.any_of) if s.types and fits(kind, s)), None)
        if inner is not None:
            yield Fix("make it a list", edits.wrap_in_list(node), safe=False)
    if "object" in wanted and node.style not in ("literal", "folded"):
        only = _short_for(shape, kind)
        if only is not None:
            yield Fix(f"write it as `{only}`", edits.wrap_in_mapping(node, only), safe=False)


def _takes_text(text: str, shape: Shape) -> bool:
    return (
        "string" in shape.types
        and (shape.enum is None or text in shape.enum)
        and (shape.pattern is None or is_well_formed(text, shape))
    )


def _meant(value: Any, kind: str, shape: Shape) -> str | None:
    """Return how a scalar of another type was probably meant: `yes` as true, `30s` as 30, `5.0` as 5."""
    wanted = shape.types
    if kind == "number" and "integer" in wanted and value == value and abs(value) < 1e15 and value == int(value):
        return str(int(value))
    text = str(value).strip() if kind in ("string", "integer") else ""
    if "boolean" in wanted:
        word = text.casefold()
        return "true" if word in _TRUE else "false" if word in _FALSE else None
    if kind == "string" and "number" in wanted:
        duration = shape.mark("duration")
        time = re.match(_TIME, text) if duration else None
        if duration and time:
            seconds = float(time[1]) * _SECONDS[time[2]] * (1000 if duration.of == "milliseconds" else 1)
            return f"{seconds:g}" if seconds < 1e6 else None
        money = re.match(_MONEY, text) if shape.mark("money") else None
        return money[1] if money else None
    return None


def _short_for(shape: Shape, kind: str) -> str | None:
    """Return the key that a lone value stands for where a mapping is meant.

    A text for the only key that is needed (`notify: https://…`), a whole number for the only number (`retry: 3`), true and false
    for `enabled`.
    """
    known = catalogue()
    for block in [known.blocks[s.block] for s in (shape, *shape.any_of) if s.block and s.block in known.blocks]:
        needed = [name for name, described in block.fields.items() if described.required]
        switches = [name for name, described in block.fields.items() if "boolean" in described.shape.types]
        if kind == "boolean" and not needed and switches:
            return "enabled" if "enabled" in switches else switches[0] if len(switches) == 1 else None
        if kind == "integer" and not needed:
            needed = [name for name, described in block.fields.items() if "integer" in described.shape.types]
        if len(needed) == 1 and kind in block.fields[needed[0]].shape.types:
            return needed[0]
    return None


def _wrappings(node: Node, kind: str, shape: Shape) -> Iterator[Fix]:
    items = [s for s in (shape.item, *shape.item.any_of) if s.types] if shape.item is not None else []
    if "array" in shape.types and isinstance(node, Mapping) and node.flow and any(fits(kind, s) for s in items):
        yield Fix("make it a list", edits.wrap_in_list(node), safe=False)


def unquoted_template(node: Mapping, text: str) -> Finding:
    """Return the finding for a template that YAML reads as a mapping."""
    source = text[node.span.start : node.span.end]
    said = f"`{short(source)}` is a mapping to YAML, not a template; put quotes around it"
    name = source.strip("{} ")
    quotable = not set(name) & set('"\\') and node.anchor is None and node.tag is None
    fixes = (Fix("quote it", edits.set_source(node, f'"{{{name}}}"'), safe=False),) if quotable else ()
    return Finding("AL011", node.span, said, fixes=fixes)


def template_for_all(node: Mapping, text: str, name: str) -> Finding:
    """Return the finding for a template where a whole mapping of texts is meant."""
    source = short(text[node.span.start : node.span.end])
    return Finding(
        "AL011", node.span, f"`{source}` is a mapping to YAML, not a template; write each key of `{name}` out"
    )


def no_choice(
    node: Scalar, choices: Collection[str], name: str, item: bool, code: str, likely: Collection[str] = ()
) -> Finding:
    """Return the finding for a word that is none of the choices; ``likely`` ones are offered when no word is near."""
    near = ranking(node.value, choices) if node.value else []
    cure = f"did you mean `{near[0]}`?" if near else f"choose from {listing(choices)}"
    wanted = "step type" if code == "AL103" else choice_words(name, item)
    said = f"`{short(node.value)}` is no {wanted}" if node.value else f"{value_words(name, item)} is empty"
    offered = near or list(likely or choices)[:MOST_CHOICES_OFFERED]
    fixes = tuple(Fix(f"change to `{word}`", edits.replace_value(node, word), safe=False) for word in offered)
    return Finding(code, word_span(node), f"{said}; {cure}", fixes=fixes if node.tag is None else ())


def out_of_bounds(node: Scalar, value: Any, shape: Shape, name: str, item: bool) -> Finding | None:
    """Return what is wrong with the size of a number, or with an empty text; None when it is fine."""
    if isinstance(value, str):
        if shape.min_length is not None and len(value) < shape.min_length:
            return Finding("AL106", node.span, f"{value_words(name, item)} is empty; give it a text")
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    called = value_words(name, item)
    low, high, above = shape.minimum, shape.maximum, shape.exclusive_minimum
    shown = short(node.value)
    if value != value or value in (float("inf"), float("-inf")):
        return Finding("AL106", node.span, f"{called} is `{shown}`; it must be a finite number")
    if (
        (low is not None and value < low)
        or (high is not None and value > high)
        or (above is not None and value <= above)
    ):
        return Finding("AL106", node.span, f"{called} is `{shown}`; it must be {bounds(shape)}")
    if "number" in shape.types and abs(value) > LARGEST:
        return Finding(
            "AL106", node.span, f"{called} is too large a number; it must be a number that a computer can hold"
        )
    return None


def malformed(node: Scalar, value: str, shape: Shape, name: str) -> Finding | None:
    """Return what is wrong with the form of a name or a path; None when it is fine."""
    if is_well_formed(value, shape):
        return None
    written = shape.mark("state_write") is not None
    word = "state key" if written else "step id" if shape.mark("defines") else "state path"
    better = edits.legal_name(value, dotted=written or word == "state path")
    fixes: tuple[Fix, ...] = ()
    cure = "use letters, digits, `_` and `-`"
    if better and better != value and is_well_formed(better, shape) and not re.match(r"steps\b(?!-)", better):
        fixes = (Fix(f"change to `{better}`", edits.replace_value(node, better), safe=False),)
        cure = f"write `{better}`"
    elif word == "state path":
        cure = "use names with dots between them"
    said = f"{word} `{short(value)}` can't be read back by templates" if value else f"`{name}` is empty"
    if word == "state path" and not isinstance(parse_path(value), PathFault):
        said = f"`{name}` can't take `{short(value)}`"
    return Finding("AL107", word_span(node), f"{said}; {cure}", fixes=fixes)


def is_well_formed(value: str, shape: Shape) -> bool:
    """Tell whether a text fits a shape's pattern and can be read back in a template; the pattern is only the coarse half."""
    if not _compiled(shape.pattern or "").fullmatch(value):
        return False
    if shape.mark("defines"):
        return is_name(value)
    inner = value[1:-1] if value.startswith("{") else value
    path = parse_output_path(inner) if shape.mark("state_write") else parse_path(inner)
    return not isinstance(path, PathFault)


@lru_cache(maxsize=32)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
