"""AL001 and AL007 in plain words: what the parsers say, translated; characters that YAML does not allow; second documents."""

from __future__ import annotations

import re

from agentloom.diagnostics import Edit, Finding, Fix
from agentloom.syntax.backend import BAD_CHARACTER, Failure
from agentloom.text import Span

MOST_CHARACTERS = 20
"""Findings about bad characters per piece of text; a binary file needs no more."""

OTHER_STRUCTURE = "other structure"
"""The problem of a piece that composes, but to something else than an entry or an item."""

# What the C parser and the pure one say (parts of their texts, more special ones first), and what that means for the writer.
PROBLEMS: tuple[tuple[str, str], ...] = (
    ("nested too deeply", "values are nested more than 100 levels deep here; flatten them"),
    (OTHER_STRUCTURE, "this is not a `key: value` line; add the colon and a value"),
    ("found unexpected end of stream", "the quoted text that begins here is never closed; add the closing quote"),
    ("found unexpected document", "a line that begins with `---` or `...` can't stand inside quoted text; indent it"),
    ("unknown escape character", "no such escape in double quotes; write `\\\\` for a backslash, or use single quotes"),
    ("hexdecimal number", "an escape such as `\\x41` or `\\u00e9` needs hexadecimal digits here; complete it"),
    ("invalid Unicode character escape", "this escape names no character; write the character itself"),
    ("mapping values are not allowed", "`: ` can't stand inside plain text; put the text in quotes"),
    ("mapping keys are not allowed", "`? ` can't begin a value here; put the text in quotes"),
    ("sequence entries are not allowed", "a list item can't begin here; put it on a line of its own"),
    ("could not find expected ':'", "this line has no colon; write `key: value`"),
    ("found unexpected ':'", "`:` can't stand inside plain text in brackets; put the text in quotes"),
    ("',' or ']'", "the list in `[` `]` lacks a comma or its closing bracket before this; add it"),
    ("',' or '}'", "the mapping in `{` `}` lacks a comma or its closing brace before this; add it"),
    ("did not find expected '-'", "this line fits no list item; indent it like the lines around it"),
    ("block collection", "this line fits no list item; indent it like the lines around it"),
    ("did not find expected key", "this line fits no key; indent it like the lines around it"),
    ("block mapping", "this line fits no key; indent it like the lines around it"),
    ("node content", "a value is missing here; write one, or quote the text"),
    ("tab character", "a tab can't indent YAML; use spaces"),
    ("cannot start any token", "no value can begin with this character; put the text in quotes"),
    (
        "alphabetic or numeric",
        "`&` and `*` begin an anchor or an alias, whose names take letters, digits, `_` and `-`; quote other text",
    ),
    ("tag handle", "`!` begins a tag, and this one is not defined; put the text in quotes"),
    ("tag", "`!` begins a tag; put the text in quotes"),
    ("URI", "`!` begins a tag; put the text in quotes"),
    ("expected '>'", "the tag that begins with `!<` lacks its `>`; put the text in quotes if it is no tag"),
    ("expected '!'", "`!` begins a tag; put the text in quotes"),
    ("whitespace", "a tag must be followed by a blank; put the text in quotes if it is no tag"),
    (
        "indentation indicator",
        "the number behind `|` or `>` counts columns, from 1 to 9; leave it out to have them counted",
    ),
    ("comment or line break", "nothing can follow `|` or `>` on its line; begin the text on the next line"),
    ("comment or a line break", "nothing can follow `|` or `>` on its line; begin the text on the next line"),
    ("chomping", "only `-`, `+` or a digit can follow `|` or `>`; begin the text on the next line"),
    ("non-alphabetical", "this line that begins with `%` is no YAML directive; remove it or quote the text"),
    ("expected ' '", "a blank is missing in a `%` line, or behind a tag; add it or quote the text"),
    ("directive", "this line that begins with `%` is no YAML directive; remove it or quote the text"),
    ("version", "the `%YAML` line names no version that can be read; remove it"),
    ("incompatible YAML document", "the `%YAML` line names no version that can be read; remove it"),
    ("digit", "the `%YAML` line names no version that can be read; remove it"),
    ("document start", "nothing can stand here, behind the end of the document's value; remove it"),
    ("block end", "this line fits nothing above it; indent it like the lines around it"),
    ("control characters", "this character can't stand in YAML; remove it"),
    ("special characters", "this character can't stand in YAML; remove it"),
    ("unacceptable", "this character can't stand in YAML; remove it"),
)
OTHERWISE = "this can't be read as YAML; check the quotes, brackets and indentation around it"

_WORD = r"[^\s]+"


def words_for(failure: Failure) -> str:
    """Return the project's own words for what a parser said."""
    for said, meaning in PROBLEMS:
        if said in failure.problem:
            return meaning
    for said, meaning in PROBLEMS:
        if said in failure.context:
            return meaning
    return OTHERWISE


def place_of(text: str, failure: Failure) -> Span:
    """Return the piece of one line that a failure is about: where the fault begins, not where it was noticed."""
    at = failure.at
    noticed_late = "could not find expected ':'" in failure.problem or "end of stream" in failure.problem
    if failure.context_at >= 0 and (noticed_late or at >= len(text.rstrip())):
        at = failure.context_at
    at = min(at, max(0, len(text.rstrip(" \t\r\n")) - 1))
    while at > 0 and text[at] in " \t\r\n":
        at -= 1
    while at > 0 and text[at - 1] not in " \t\r\n" and failure.at > at:
        at -= 1
    word = re.compile(_WORD).match(text, at)
    return Span(at, word.end() if word else min(at + 1, len(text)))


def syntax_error(text: str, failure: Failure) -> Finding:
    """Return the finding for a text that does not compose and about which nothing better is known."""
    code = "AL006" if "tab character" in failure.problem else "AL001"
    return Finding(code, place_of(text, failure), words_for(failure))


def bad_characters(text: str) -> list[Finding]:
    """Return a finding for each character of ``text`` that YAML does not allow, at that character."""
    findings: list[Finding] = []
    for match in re.finditer(BAD_CHARACTER, text):
        span = Span(*match.span())
        findings.append(
            Finding(
                "AL001",
                span,
                f"{_name(match[0])} can't stand in YAML; remove it",
                fixes=(Fix("remove the character", (Edit(span, ""),), safe=False),),
            )
        )
        if len(findings) == MOST_CHARACTERS:
            break
    return findings


def _name(char: str) -> str:
    import unicodedata  # only here

    code = f"U+{ord(char):04X}"
    if char == "\0":
        return f"the null character ({code})"
    if char == "\ufeff":
        return f"a byte order mark ({code}) behind the start of the file"
    if unicodedata.category(char) == "Cs":
        return f"half of a surrogate pair ({code})"
    if unicodedata.category(char) == "Cc":
        return f"the control character {code}"
    return f"the character {code}"


def extra_document(text: str, at: int) -> Finding:
    """Return the finding for a second document that begins at ``at``."""
    marker = text[at : at + 3] in ("---", "...")
    span = Span(at, at + 3) if marker else Span(at, at + 1)
    fixes: tuple[Fix, ...] = ()
    if marker and not text[at + 3 :].strip(" \t\r\n"):
        fixes = (Fix("remove the marker", (Edit(Span(at, len(text)), ""),)),)
    message = "a second document begins here and is not read; remove it or move it to a file of its own"
    return Finding("AL007", span, message, fixes=fixes)


def broken_directive(text: str, failure: Failure) -> Finding:
    """Return the finding for a text that does not compose, with lines of `%` or words behind the marker before it."""
    line = re.compile(r"^%\S*", re.MULTILINE).search(text)
    if line is None or "document start" not in failure.problem:
        return syntax_error(text, failure)
    message = "a line of `%` needs a line of `---` between itself and the document; add it, or remove the line"
    return Finding("AL001", Span(*line.span()), message)
