"""Events of a YAML text, from the C parser or, where it is missing, from the pure one.

Both see a text in which what they read otherwise than YAML 1.2 is masked, character by character, so offsets stay: line
separators that YAML 1.1 took for line breaks, and `:` and `?` inside plain text in flow style, which the C parser refuses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

CParser: Any
try:
    from ruamel.yaml import cyaml

    CParser = cyaml.CParser  # type: ignore[attr-defined]
except (ImportError, AttributeError, ValueError):  # no compiled parser on this platform
    CParser = None

HAS_C = CParser is not None
"""Whether the compiled parser is there."""

__all__ = [
    "BAD_CHARACTER",
    "HAS_C",
    "MOST_TABS",
    "AliasEvent",
    "Event",
    "Failure",
    "MappingEndEvent",
    "MappingStartEvent",
    "Masked",
    "ScalarEvent",
    "SequenceEndEvent",
    "SequenceStartEvent",
    "YAMLError",
    "failure_of",
    "mask",
    "open_events",
    "parses",
    "with_line_feeds",
]


class Failure(NamedTuple):
    """Why a text could not be composed: the parser's own words and places. Never shown to users as it is."""

    problem: str
    at: int
    context: str = ""
    context_at: int = -1
    flow_at: int = -1
    """Where the outermost open `[` or `{` stands, if there is one."""

    @property
    def may_be_flow_text(self) -> bool:
        """Whether masking what is text in flow style may cure it."""
        return "flow" in self.context or "unexpected ':'" in self.problem


class Masked(NamedTuple):
    """A text fit for the parser, of the same length; ``back`` maps stand-ins to the characters they stand for."""

    text: str
    back: dict[int, str]
    odd: bool = True
    """Whether there may be something else in it than common characters."""

    def restore(self, value: str) -> str:
        """Return ``value`` with the stand-ins replaced."""
        return value.translate(self.back) if self.back else value


BAD_CHARACTER = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]|(?:(?<=[\r\n])|\\A)\ufeff"
"""What YAML does not allow, and byte order marks that begin a line; the one that leads a file is no part of what is composed."""

MOST_TABS = 100
"""Tabs that are masked, one by one, because a parser does not know that YAML allows them."""

_ODD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
"""Everything that `mask` deals with is among these."""

_NOTHING: dict[int, str] = {}
_SEPARATORS = "\x85\u2028\u2029"
_LONE_CR = r"\r(?!\n)"

# In flow style, YAML 1.2 takes a `:` before a non-blank, and a `?` in the middle, for text; tags and quoted keys keep theirs.
_FLOW_TEXT = r"""(?x)
    ![^\s,\[\]{}]*                       # a tag: leave it alone
    | (?<=[^\s"'\[\]{},]):(?=[^\s,\[\]{}])   # a:b
    | \?(?=[^\s]) | (?<=[^\s,\[{?:-])[ \t]*\?(?=\s|$)   # what? and `what ?`
    """


def _stand_ins(text: str, wanted: str) -> dict[str, str]:
    """Return a private-use character for each of ``wanted`` that ``text`` does not use."""
    free = (chr(code) for code in range(0xE000, 0xF8FF) if chr(code) not in text)
    return {char: next(free) for char in wanted}


def mask(text: str, flow: bool = False) -> Masked:
    """Return ``text`` with everything masked that the parser would read otherwise than YAML 1.2.

    ``flow`` also masks `:` and `?` inside plain text in flow style: only worth it after the parser refused the text.
    """
    if not flow and _ODD.search(text) is None:
        return Masked(text, _NOTHING, False)
    back: dict[int, str] = {}
    text = re.sub(BAD_CHARACTER, "\ufffd", text)
    text = with_line_feeds(text)
    if not text.isascii() and any(char in text for char in _SEPARATORS):
        masks = _stand_ins(text, _SEPARATORS)
        back = {ord(stand_in): char for char, stand_in in masks.items()}
        text = text.translate({ord(char): stand_in for char, stand_in in masks.items()})
    if flow and ("{" in text or "[" in text):
        masks = _stand_ins(text, ":?")
        changed = re.sub(_FLOW_TEXT, lambda m: _masked_flow(m.group(), masks), text)
        if changed != text:
            text = changed
            back |= {ord(stand_in): char for char, stand_in in masks.items()}
    return Masked(text, back)


def mask_tab(masked: Masked, failure: Failure, pure: bool) -> Masked | None:
    """Return the text with the tab masked at which a parser stopped although YAML 1.2 allows it; None when it was none.

    That is a tab before a comment or on an empty line, and, for the pure parser, one behind a word. Tabs that indent a
    value, or stand between a dash and its item, are faults.
    """
    text, back, _ = masked
    at = failure.at
    if text[at : at + 1] != "\t" or "block scalar" in failure.context:
        return None
    line = text.rfind("\n", 0, at) + 1
    before = text[line:at]
    end = at + 1
    while text[end : end + 1] in ("\t", " "):
        end += 1
    ends_line = text[end : end + 1] in ("", "\r", "\n", "#")
    if not before.strip(" \t-?"):
        return (
            Masked(text[:at] + " " * (end - at) + text[end:], back) if ends_line and not before.strip(" \t") else None
        )
    if not pure:
        return None
    if ends_line or text[at - 1] in ":-?,[]{}":
        return Masked(text[:at] + " " * (end - at) + text[end:], back)
    stand_in = next((chr(code) for code, char in back.items() if char == "\t"), None) or _stand_ins(text, "\t")["\t"]
    tabs = text[at:end].replace("\t", stand_in)
    return Masked(text[:at] + tabs + text[end:], back | {ord(stand_in): "\t"})


def with_line_feeds(text: str) -> str:
    """Return ``text``, of the same length, with each CR that is no part of a CRLF replaced by LF."""
    if "\r" in text and text.count("\r") != text.count("\r\n"):
        return re.sub(_LONE_CR, "\n", text)
    return text


def _masked_flow(found: str, masks: dict[str, str]) -> str:
    return found if found[0] == "!" else found.replace(":", masks[":"]).replace("?", masks["?"])


def open_events(text: str, pure: bool = False) -> Callable[[], Event | None]:
    """Return a function that gives the next event each time, None at the end. Raises ``YAMLError`` on a fault in the text."""
    if HAS_C and not pure:
        events: Callable[[], Event | None] = CParser(text).get_event
        return events
    return _pure_events(text).__next__


def parses(text: str, pure: bool = False) -> bool:
    """Tell whether a text has no fault that a parser finds. With the C parser some ten times as fast as composing."""
    masked = mask(text)
    failure = _raw_failure(masked.text, pure)
    tabs = 0
    while failure is not None and tabs < MOST_TABS and (mended := mask_tab(masked, failure, pure or not HAS_C)):
        masked = mended
        failure = _raw_failure(masked.text, pure)
        tabs += 1
    if failure is not None and failure.may_be_flow_text:
        flow = mask(text, flow=True)
        return flow.text != masked.text and _raw_failure(flow.text, pure) is None
    return failure is None


def _raw_failure(text: str, pure: bool) -> Failure | None:
    try:
        if HAS_C and not pure:
            CParser(text).raw_parse()
        else:
            get = _pure_events(text).__next__
            while get() is not None:
                pass
    except YAMLError as error:
        return failure_of(error, len(text))
    return None


def _pure_events(text: str) -> Iterator[Event | None]:
    from ruamel.yaml import YAML

    yield from YAML(typ="safe", pure=True).parse(text)
    while True:
        yield None


def failure_of(error: YAMLError, length: int) -> Failure:
    """Return what a parser's exception says; offsets held inside a text of ``length`` code points."""
    if isinstance(error, MarkedYAMLError):
        mark: Any = error.problem_mark or error.context_mark
        at = length if mark is None else min(mark.index, length)
        context: Any = error.context_mark
        return Failure(
            error.problem or "",
            at,
            error.context or "",
            -1 if context is None else min(context.index, length),
        )
    at = getattr(error, "position", 0)  # a ReaderError; the reader masks what leads to one
    return Failure(str(getattr(error, "reason", "") or "unreadable character"), min(int(at), length))
