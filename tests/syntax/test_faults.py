"""No sentence of a parser reaches a user: the table of translations covers all that they can say."""

from __future__ import annotations

import inspect
import re

import pytest
from ruamel.yaml import parser as pure_parser
from ruamel.yaml import reader as pure_reader
from ruamel.yaml import scanner as pure_scanner

from agentloom.syntax.backend import Failure
from agentloom.syntax.compose import TOO_DEEP, compose
from agentloom.syntax.faults import OTHER_STRUCTURE, OTHERWISE, PROBLEMS, syntax_error, words_for
from tests.syntax.support import check_ranges

# Every problem text in the scanner and parser of libyaml, as ruamel.yaml.clib 0.2.15 carries it.
LIBYAML = """
block sequence entries are not allowed in this context
control characters are not allowed
could not find expected ':'
could not find expected directive name
did not find URI escaped octet
did not find expected '!'
did not find expected ',' or ']'
did not find expected ',' or '}'
did not find expected '-' indicator
did not find expected <document start>
did not find expected alphabetic or numeric character
did not find expected comment or line break
did not find expected digit or '.' character
did not find expected hexdecimal number
did not find expected key
did not find expected node content
did not find expected tag URI
did not find expected version number
did not find expected whitespace
did not find expected whitespace or line break
did not find the expected '>'
found a tab character that violates indentation
found a tab character where an indentation space is expected
found an indentation indicator equal to 0
found an incorrect leading UTF-8 octet
found an incorrect trailing UTF-8 octet
found character that cannot start any token
found duplicate %TAG directive
found duplicate %YAML directive
found extremely long version number
found incompatible YAML document
found invalid Unicode character escape code
found undefined tag handle
found unexpected ':'
found unexpected document indicator
found unexpected end of stream
found unexpected non-alphabetical character
found unknown directive name
found unknown escape character
invalid Unicode character
mapping keys are not allowed in this context
mapping values are not allowed in this context
unexpected low surrogate area
""".strip().splitlines()

# Those that need bytes that are no UTF-8: the reader gives the parser a text.
NEVER_SEEN = ("octet", "invalid Unicode character", "unexpected low surrogate area")


def pure_problems() -> list[str]:
    """Return the problem texts in the sources of the pure parser."""
    found: set[str] = set()
    for module in (pure_parser, pure_scanner, pure_reader):
        for match in re.finditer(
            r"""f?(['"])((?:found|expected|could|did|mapping|sequence|duplicate|special)\b.*?)\1[,)]""",
            inspect.getsource(module),
        ):
            found.add(match[2].replace("}}", "}"))
    return sorted(found)


@pytest.mark.parametrize("problem", [text for text in LIBYAML if not text.endswith(NEVER_SEEN) or "escape" in text])
def test_what_the_compiled_parser_says(problem: str) -> None:
    """Each problem has words of our own."""
    assert words_for(Failure(problem, 0)) != OTHERWISE


@pytest.mark.parametrize("problem", pure_problems())
def test_what_the_pure_parser_says(problem: str) -> None:
    """Each problem has words of our own."""
    assert words_for(Failure(problem, 0)) != OTHERWISE


def test_the_pure_parser_was_looked_into() -> None:
    """The texts were found in its sources."""
    assert len(pure_problems()) > 20


@pytest.mark.parametrize("words", [words for _, words in PROBLEMS], ids=[said for said, _ in PROBLEMS])
def test_words_are_plain(words: str) -> None:
    """Lower case, no stop at the end, two clauses at most with the cure behind a semicolon, no parser-speak."""
    assert words[0].islower() or words[0] == "`"
    assert not words.endswith(".")
    assert words.count("; ") == 1
    for jargon in ("token", "scalar", "stream", "node", "scanning", "parsing", "indicator", "octet"):
        assert jargon not in words
    assert words != OTHERWISE


@pytest.mark.parametrize(
    "text", ["a: b: c", "a: 'x", "[", "a\nb: c\n", "a: b\n - c", "@", "a: |x\n", "\t", "a: \0", "%A", "", " "]
)
def test_places_are_words(text: str) -> None:
    """Whatever fails, its place is inside the text, on one line, where the fault begins."""
    failure = compose(text)
    for found in (
        failure if isinstance(failure, Failure) else Failure(OTHER_STRUCTURE, 0),
        Failure(TOO_DEEP, len(text)),
    ):
        check_ranges(text, syntax_error(text, found))
