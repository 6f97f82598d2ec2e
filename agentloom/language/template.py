"""Templates: text with ``{state.x}`` and ``{x}`` placeholders, parsed with the place of everything in it.

``parse_template`` never raises: what it returns holds the pieces that can be rendered and every fault. Offsets are code points
of the value (the text as YAML reads it), braces included where the docstring says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias

from agentloom.language.braces import BRACE, BracePairs, escape_braces
from agentloom.language.faults import DOUBLE_BRACES, Fault
from agentloom.language.paths import NAME, Part, scan_segments
from agentloom.text import Span

Root = Literal["state", "flat"]
Conversion = Literal["r", "s"]

MAX_WIDTH: Final = 10_000
"""The widest field and the longest precision a format spec may ask for, in characters."""

_CACHED_LENGTH = 8_000
_STOP = re.compile(r"[{}\n\r]")
_ROOT_END = re.compile(r"[.\[\]!:]")
_STATE = re.compile(r"state[.\[]")
# Compiled where they are used: few templates need them.
_HALF_END = r"[^\w\-.\[\]]"
_WORDS = rf"{NAME.pattern}(?: +{NAME.pattern})*"
_SPEC = r"(?s)(?:.?[<>=^])?[-+ ]?z?#?0?([0-9]+)?[,_]?(?:\.([0-9]+))?[bcdeEfFgGnosxX%]?"
_EMBEDDED = r"\{(?:state[.\[][^{}\n\r]*|[^\W\d][\w\-]*(?:\.[\w\-]+|\[[^\[\]{}\s\"']+\])*)\}"


class Placeholder(NamedTuple):
    """One ``{…}``. ``span`` covers the braces.

    ``parts`` is the path from the top of the state, also for flat ones, and ``spans`` the place of each part. ``name`` is the
    path as written (``state.items[0]``), with its ``name_span``. ``closed`` is false for one that is still being typed.
    """

    span: Span
    root: Root
    parts: tuple[Part, ...]
    spans: tuple[Span, ...]
    name: str
    name_span: Span
    conversion: Conversion | None = None
    spec: str = ""
    closed: bool = True
    bare: bool = False
    """True for a tool argument that is a path without braces: ``state.items[0]``."""

    @property
    def plain(self) -> bool:
        """Whether it has neither a conversion nor a format spec."""
        return self.conversion is None and not self.spec


Piece: TypeAlias = str | Placeholder


class Template(NamedTuple):
    """A parsed template.

    ``pieces`` in order: literal text with doubled braces undone, and placeholders. ``faults`` refuse it; ``notes`` mark
    placeholders that render, but surely not as meant; ``open`` are placeholders whose brace is not closed yet.
    """

    value: str
    pieces: tuple[Piece, ...]
    faults: tuple[Fault, ...] = ()
    notes: tuple[Fault, ...] = ()
    open: tuple[Placeholder, ...] = ()

    @property
    def placeholders(self) -> tuple[Placeholder, ...]:
        """The placeholders, in order, those inside a faulty stretch included."""
        return tuple(piece for piece in self.pieces if not isinstance(piece, str))

    @property
    def names(self) -> tuple[str, ...]:
        """The paths that are read, as written, sorted, each once."""
        return tuple(sorted({piece.name for piece in self.pieces if not isinstance(piece, str)}))


def parse_template(value: str) -> Template:
    """Return the template that ``value`` is. Never raises; short texts are cached."""
    if "{" not in value and "}" not in value:
        return Template(value, (value,) if value else ())
    return _parse_cached(value) if len(value) <= _CACHED_LENGTH else _Parser(value).parse()


@lru_cache(maxsize=2048)
def _parse_cached(value: str) -> Template:
    return _Parser(value).parse()


def lone_reference(value: str, *, bare: bool = False) -> tuple[Part, ...] | None:
    """Return the path if ``value`` is one placeholder and nothing else, without conversion or format spec.

    With ``bare``, a path from ``state`` without braces counts too: ``state.items[0]``.
    """
    if bare and (found := bare_reference(value)) is not None:
        return found.parts
    if not (value.startswith("{") and value.endswith("}")):
        return None
    template = parse_template(value)
    if template.faults or len(template.pieces) != 1 or isinstance(only := template.pieces[0], str) or not only.plain:
        return None
    return only.parts


def bare_reference(value: str) -> Placeholder | None:
    """Return the placeholder that a text such as ``state.items[0]`` stands for; None for any other text."""
    if _STATE.match(value) is None:
        return None
    parts, spans, stop, fault = scan_segments(value, 5, len(value))
    if fault is not None or stop < len(value):
        return None
    if any(isinstance(part, str) and NAME.fullmatch(part) is None for part in parts):
        return None
    whole = Span(0, len(value))
    return Placeholder(whole, "state", tuple(parts), tuple(spans), value, whole, bare=True)


def open_reference(value: str, start: int) -> Placeholder:
    """Return what is typed so far of a path that begins at ``start``; it ends at the first character no path holds."""
    first = NAME.match(value, start)
    end = first.end() if first else start
    is_state = first is not None and first.group() == "state"
    limit = re.compile(_HALF_END).search(value, end)
    parts, spans, reached, fault = scan_segments(value, end, limit.start() if limit else len(value))
    if fault is not None:
        reached = max(reached, fault.span.end)
    if first is not None and not is_state:
        parts.insert(0, first.group())
        spans.insert(0, Span(*first.span()))
    span = Span(start, reached)
    root: Root = "state" if is_state else "flat"
    return Placeholder(span, root, tuple(parts), tuple(spans), value[start:reached], span, closed=False)


def unclosed_reference(value: str, half: Placeholder) -> Fault | None:
    """Return the fault, and its cure, of a whole path of the state that only lacks its closing brace."""
    end = half.span.end
    if half.root != "state" or not half.parts or value[half.spans[-1].end : end] not in ("", "]"):
        return None
    if value[end : end + 1] in (":", "!"):
        return None
    written = "{" + half.name
    return Fault(
        "template", half.span, f"{_shown(written)} is never closed; add `}}`", written + "}", "close the brace"
    )


def read_field(value: str, start: int, end: int) -> Placeholder | Fault:
    """Return the placeholder in ``value[start:end]``, braces included, or what is wrong with it.

    There must be no brace and no line break between the two braces.
    """
    inner, last = start + 1, end - 1
    whole = Span(start, end)
    found = _ROOT_END.search(value, inner, last)
    at = found.start() if found else last
    root = value[inner:at]
    if not value[inner:last].strip():
        return _literal(value, start, end, "empty braces; name a state key, or double the braces")
    if not root:
        return _literal(value, start, end, "no state key is named; double the braces to write them as text")
    is_state = root == "state"
    if not is_state:
        if re.fullmatch(_WORDS, root.strip(" ")) is None:
            shown = _shown(value[start:end])
            return _literal(value, start, end, f"{shown} is no placeholder; double the braces to write them as text")
        if root.isascii() and root.isdigit():
            return _literal(value, start, end, f"`{root}` is no state key; double the braces to write them as text")
        if at < last and value[at] == ":" and value[at + 1 : at + 2].isspace():
            shown = _shown(value[start:end])
            return _literal(value, start, end, f"{shown} is no placeholder; double the braces to write them as text")
    parts, spans, stop, fault = scan_segments(value, at, last)
    if fault is not None:
        return Fault("template", fault.span, fault.message)
    if not is_state:
        parts.insert(0, root)
        spans.insert(0, Span(inner, at))
    conversion: Conversion | None = None
    spec = ""
    rest = stop
    if rest < last and value[rest] == "!":
        written = value[rest + 1 : last].split(":", 1)[0]
        if written == "r":
            conversion = "r"
        elif written == "s":
            conversion = "s"
        else:
            span = Span(rest, rest + 1 + len(written))
            return Fault("template", span, f"`!{written}` is no conversion; write `!r` or `!s`")
        rest += 2
    if rest < last:
        spec = value[rest + 1 : last]
        message = check_spec(spec)
        if message is not None:
            return (
                Fault("template", Span(rest + 1, last), message) if is_state else _literal(value, start, end, message)
            )
    return Placeholder(
        whole,
        "state" if is_state else "flat",
        tuple(parts),
        tuple(spans),
        value[inner:stop],
        Span(inner, stop),
        conversion,
        spec,
    )


def check_spec(spec: str) -> str | None:
    """Return what is wrong with a format spec for any value, or None."""
    found = re.fullmatch(_SPEC, spec)
    if found is None:
        return f"{_shown(spec)} is no format spec; write one such as `.2f`, or double the braces to write them as text"
    for digits in found.groups():
        if digits is not None and (len(digits) > 6 or int(digits) > MAX_WIDTH):
            return f"{_shown(spec)} asks for too many characters; stay within {MAX_WIDTH}"
    return None


class _Parser:
    """One parse of one value: a scan from left to right that keeps what it found so far."""

    def __init__(self, value: str) -> None:
        self.value = value
        self.pieces: list[Piece] = []
        self.faults: list[Fault] = []
        self.notes: list[Fault] = []
        self.open: list[Placeholder] = []
        self._literal: list[str] = []
        self._braces: BracePairs | None = None

    def parse(self) -> Template:
        """Scan the whole value."""
        value = self.value
        at = 0
        while (found := BRACE.search(value, at)) is not None:
            here = found.start()
            if here > at:
                self._literal.append(value[at:here])
            if value[here + 1 : here + 2] == value[here]:
                self._literal.append(value[here])
                at = here + 2
            elif value[here] == "}":
                self.faults.append(
                    Fault(
                        "template",
                        Span(here, here + 1),
                        "stray `}`; write `}}` for a brace in the text",
                        "}}",
                        DOUBLE_BRACES,
                    )
                )
                self._literal.append("}")
                at = here + 1
            else:
                at = self._field(here)
        if at < len(value):
            self._literal.append(value[at:])
        self._flush()
        return Template(value, tuple(self.pieces), tuple(self.faults), tuple(self.notes), tuple(self.open))

    def _flush(self) -> None:
        if self._literal:
            self.pieces.append("".join(self._literal))
            self._literal.clear()

    def _add(self, placeholder: Placeholder) -> None:
        self._flush()
        self.pieces.append(placeholder)
        self.notes.extend(notes_on(placeholder))

    def _field(self, start: int) -> int:
        """Read from the single ``{`` at ``start``; return where to go on."""
        value = self.value
        found = _STOP.search(value, start + 1)
        stop = found.start() if found else len(value)
        if stop < len(value) and value[stop] == "}":
            read = read_field(value, start, stop + 1)
            if isinstance(read, Placeholder):
                self._add(read)
            else:
                self.faults.append(read)
                self._literal.append(value[start : stop + 1])
            return stop + 1
        if _STATE.match(value, start + 1) is None:
            end = self._balance().closing.get(start)
            if end is not None:
                return self._block(start, end + 1)
            return self._unclosed(start, start + 1)
        if stop < len(value) and value[stop] != "{":
            closing = BRACE.search(value, stop)
            if closing is not None and closing.group() == "}":
                message = "a placeholder must stand on one line; close its brace behind the name"
                self.faults.append(Fault("template", Span(start, closing.end()), message))
                self._literal.append(value[start : closing.end()])
                return closing.end()
        return self._unclosed(start, stop)

    def _unclosed(self, start: int, resume: int) -> int:
        half = open_reference(self.value, start + 1)
        half = half._replace(span=Span(start, half.span.end))
        message = "`{` is never closed; add `}`, or write `{{` for a brace in the text"
        self.faults.append(
            unclosed_reference(self.value, half)
            or Fault("template", Span(start, start + 1), message, "{{", DOUBLE_BRACES)
        )
        self.open.append(half)
        self._literal.append(self.value[start:resume])
        return resume

    def _block(self, start: int, end: int) -> int:
        """Report balanced braces that are no placeholder, such as a JSON example; placeholders inside stay alive."""
        value = self.value
        message = f"{_shown(value[start:end])} is no placeholder; double the braces to write them as text"
        paired = self._balance().paired
        cured: list[str] = []
        at = start
        for brace in BRACE.finditer(value, start, end):
            here = brace.start()
            if here < at:
                continue
            cured.append(value[at:here])
            self._literal.append(value[at:here])
            at = here
            if here in paired:
                cured.append(value[here])
                self._literal.append(value[here])
                at = here + 1
                continue
            inside = re.compile(_EMBEDDED).match(value, here, end) if value[here] == "{" and here > start else None
            read = read_field(value, here, inside.end()) if inside else None
            if inside is not None and isinstance(read, Placeholder):
                cured.append(inside.group())
                self._add(read)
                at = inside.end()
            else:
                cured.append(value[here] * 2)
                self._literal.append(value[here])
                at = here + 1
        self.faults.append(Fault("template", Span(start, end), message, "".join(cured), DOUBLE_BRACES))
        return end

    def _balance(self) -> BracePairs:
        if self._braces is None:
            self._braces = BracePairs(self.value)
        return self._braces


def notes_on(placeholder: Placeholder) -> Iterator[Fault]:
    """Yield what looks wrong about a placeholder that renders: spaces, quotes, calls, which are part of a key's name."""
    for part, span in zip(placeholder.parts, placeholder.spans, strict=True):
        if isinstance(part, int) or NAME.fullmatch(part) is not None:
            continue
        trimmed = part.strip()
        unquoted = trimmed.strip("\"'")
        if NAME.fullmatch(trimmed) is not None:
            yield Fault("note", span, f"the space belongs to the name; write `{trimmed}`", trimmed, "remove the space")
        elif unquoted != trimmed and NAME.fullmatch(unquoted) is not None:
            yield Fault("note", span, f"keys stand without quotes; write `{unquoted}`", unquoted, "remove the quotes")
        elif "(" in part:
            yield Fault("note", span, f"`{part}` is no key of the state; templates call nothing")


def _literal(value: str, start: int, end: int, message: str) -> Fault:
    return Fault("template", Span(start, end), message, escape_braces(value[start:end]), DOUBLE_BRACES)


def _shown(text: str) -> str:
    """Return a text for a message, in backticks: on one line, and cut where it is long."""
    flat = " ".join(text.split())
    return f"`{flat}`" if len(flat) <= 40 else f"`{flat[:37]}…`"
