"""Whether all places of a name were read, and whether the new one reads back in each of them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from keyword import iskeyword

from agentloom.analysis.symbols import Leaf, Occurrence, occurrences
from agentloom.ide.names.index import Index
from agentloom.ide.names.mentions import MADE_UP
from agentloom.ide.names.scope import Mention, Place
from agentloom.ide.names.world import World
from agentloom.ide.results import Refusal
from agentloom.language.arguments import parse_argument
from agentloom.language.expression import parse_expression
from agentloom.language.paths import PathFault, parse_path
from agentloom.language.template import parse_template
from agentloom.syntax.aliases import walk
from agentloom.syntax.nodes import Scalar
from agentloom.text import LineTable, Span

BROKEN = frozenset(("AL001", "AL006"))
"""Codes of diagnostics that say that a part of the text can't be read."""


def is_broken(index: Index) -> bool:
    """Tell whether a part of a file can't be read."""
    return any(found.code in BROKEN for found in index.document.tree.findings)


def check_readable(world: World, asked: Place, places: list[Place]) -> None:
    """Refuse when the name stands in a part that can't be read, or a fault of syntax touches one of its places."""
    files = {place.source.uri: place for place in places}
    for uri in files:
        index = next((i for i in world.loaded() if i.document.source.uri == uri), None)
        if index is None or not is_broken(index):
            continue
        lines = index.document.lines
        for found in index.document.tree.findings:
            for place in places:
                touches = place.span.start <= found.span.end and found.span.start <= place.span.end
                if found.code in BROKEN and place.source.uri == uri and touches:
                    line = lines.line_of(found.span.start) + 1
                    raise Refusal(
                        f"line {line} can't be read as it is, and `{asked.name.word}` stands there; mend it first"
                    )
        unread = next(_unread(index, asked.name.word), None)
        if unread is not None:
            line = lines.line_of(unread) + 1
            raise Refusal(f"line {line} can't be read, and `{asked.name.word}` stands there; mend it first")


def _unread(index: Index, word: str) -> Iterator[int]:
    """Yield where a word stands outside of everything that was read, comments left out."""
    document = index.document
    text, tree = document.source.text, document.tree
    spans = list(_read(index))
    spans.extend(comment.span for comment in tree.comments)
    spans.extend(Span(anchored.span.start - 1, anchored.span.end) for anchored in index.anchors)
    spans.sort()
    starts = [span.start for span in spans]
    end = min([found.span.start for found in tree.findings if found.code == "AL007"], default=len(text))
    for found in re.finditer(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text):
        if found.start() >= end:
            return
        at = bisect_right(starts, found.start()) - 1
        if at < 0 or spans[at].end < found.end():
            yield found.start()


def _read(index: Index) -> Iterator[Span]:
    tree = index.document.tree
    for node in walk(tree.top):
        if isinstance(node, Scalar):
            yield node.span
    for placed in tree.steps:
        for node in walk(placed.node):
            if isinstance(node, Scalar):
                yield node.span.shift(placed.base)


def check_spelling(places: list[Place], word: str) -> None:
    """Refuse a word that would be read as something else in one of the places: `class` or `a-b` in an expression."""
    by_node: dict[tuple[str, int, int], list[Place]] = {}
    for place in places:
        mention = place.mention
        if place.source.text[slice(*place.span)] != place.name.word and (
            mention is None or mention.node.style not in ("double", "single")
        ):
            raise Refusal(f"line {_line(place)} can't be read as it is; mend it first")
        if mention is not None and not (_is_simple(word) and mention.form in ("value", "template")):
            by_node.setdefault((place.source.uri, mention.where.base, id(mention.node)), []).append(place)
        if mention is not None and word in MADE_UP and mention.form == "template" and len(place.name.path) == 1:
            raise Refusal(f"`{word}` means something else in the text of a webhook; choose another name")
    for found in by_node.values():
        if not _reads_back(found, word):
            raise Refusal(f"`{word}` would be read as something else in line {_line(found[0])}; choose another name")


def _is_simple(word: str) -> bool:
    return word.isascii() and word.isidentifier() and not iskeyword(word)


def _line(place: Place) -> int:
    return LineTable(place.source.text).line_of(place.span.start) + 1


def _reads_back(places: list[Place], word: str) -> bool:
    mention = places[0].mention
    assert mention is not None
    node = mention.node
    spans = sorted({inside for place in places for inside in _insides(place)})
    value, at = "", 0
    for span in spans:
        value += node.value[at : span.start] + word
        at = span.end
    value += node.value[at:]
    if mention.form == "key":
        path = parse_path(value)
        return not isinstance(path, PathFault) and len(path.parts) >= len(mention.insides) and word in path.parts
    leaves = [leaf for leaf in mention.where.facts.leaves if leaf.node is node]
    fresh = Scalar(Span(0, len(value)), value, "plain", value)
    return all(
        _renamed(list(occurrences([leaf])), spans, word)
        == _paths(occurrences([leaf._replace(node=fresh, value=value)]))
        and _faults(leaf, node.value) == _faults(leaf, value)
        for leaf in leaves
    )


def _insides(place: Place) -> Iterator[Span]:
    """Yield where in the value a place stands."""
    mention: Mention | None = place.mention
    if mention is None:
        return
    at = len(place.name.path) - 1 - (len(mention.parts) - len(mention.insides))
    if mention.kind == "state" and place.name.kind == "step":
        at += 1
    yield mention.insides[at if mention.kind == "state" else 0]


def _paths(found: Iterator[Occurrence]) -> list[tuple[object, ...]]:
    return [(o.kind, o.role, o.parts or (o.name,)) for o in found]


def _renamed(found: list[Occurrence], spans: list[Span], word: str) -> list[tuple[object, ...]]:
    """Return what the occurrences of a scalar should be with the word at some places."""
    expected: list[tuple[object, ...]] = []
    for o in found:
        parts = [
            word if inside in spans else part
            for part, inside in zip(o.parts or (o.name,), o.parts_inside or (o.inside,), strict=True)
        ]
        expected.append((o.kind, o.role, tuple(parts)))
    return expected


def _faults(leaf: Leaf, value: str) -> int:
    shape = leaf.shape
    count = 0
    if shape.mark("template"):
        count += len(parse_template(value).faults) + len(parse_template(value).notes)
    if shape.mark("template_deep"):
        count += len(parse_argument(value).faults) + len(parse_argument(value).notes)
    if shape.mark("expression"):
        count += len(parse_expression(value).faults)
    return count
