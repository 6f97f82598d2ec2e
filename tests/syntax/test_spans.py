"""Where each kind of node lies in the text, with both parsers and every line end."""

from __future__ import annotations

import pytest

from agentloom.syntax.compose import Composed, compose
from agentloom.syntax.nodes import Alias, Mapping, Node, Scalar, Sequence
from tests.syntax.support import whole


def sources(text: str, node: Node | None) -> object:
    """Return a tree of the pieces of source that nodes cover: scalars as they stand, collections as (source, parts)."""
    assert node is not None
    source = text[slice(*node.span)]
    if isinstance(node, Scalar | Alias):
        return source
    parts = node.items if isinstance(node, Sequence) else [part for e in node.entries for part in (e.key, e.value)]
    return source, *[sources(text, part) for part in parts]


# A text, and what each of its nodes covers.
CASES: dict[str, tuple[str, object]] = {
    "plain": ("a: b c  # d\n", ("a: b c", "a", "b c")),
    "plain over lines": ("a: b\n  c\n\n  d  \nz: 1\n", ("a: b\n  c\n\n  d  \nz: 1", "a", "b\n  c\n\n  d", "z", "1")),
    "single quoted": ("a: 'it''s'   \n", ("a: 'it''s'", "a", "'it''s'")),
    "double quoted over lines": ('a: "b \\\n  c"\n', ('a: "b \\\n  c"', "a", '"b \\\n  c"')),
    "literal": ("a: |  # why\n  b\n\n   c  \n\n\nz: 1\n", ("a: |  # why\n  b\n\n   c  \n\n\nz: 1", "a", "|  # why\n  b\n\n   c  ", "z", "1")),
    "literal without text": ("a: |-\n\n\nz: 1\n", ("a: |-\n\n\nz: 1", "a", "|-", "z", "1")),
    "folded, kept": ("a: >+\n  b\n\n", ("a: >+\n  b", "a", ">+\n  b")),
    "missing values": ("a:\nb:   # c\n  # d\nz: 1\n", ("a:\nb:   # c\n  # d\nz: 1", "a", "", "b", "", "z", "1")),
    "missing items": ("- \n-  # c\n- x\n", ("- \n-  # c\n- x", "", "", "x")),
    "missing values in braces": ("{a: , b:  # c\n, d, 'e': }\n", ("{a: , b:  # c\n, d, 'e': }", "a", "", "b", "", "d", "", "'e'", "")),
    "brackets": ("a: [ b , {c: d} ]  \n", ("a: [ b , {c: d} ]", "a", ("[ b , {c: d} ]", "b", ("{c: d}", "c", "d")))),
    "a pair in brackets": ("[a, b: c, d]\n", ("[a, b: c, d]", "a", ("b: c", "b", "c"), "d")),
    "block list": ("a:\n  - b\n  - - c\n    - d\n\nz: 1\n", ("a:\n  - b\n  - - c\n    - d\n\nz: 1", "a", ("- b\n  - - c\n    - d", "b", ("- c\n    - d", "c", "d")), "z", "1")),
    "list at its key's column": ("a:\n- b\n- c: d\n  e: f\n", ("a:\n- b\n- c: d\n  e: f", "a", ("- b\n- c: d\n  e: f", "b", ("c: d\n  e: f", "c", "d", "e", "f")))),
    "anchors and tags": ("a: &x !!str b\nc: !t\n  &y d: e\nf: &z\n  # g\n  - h\ni: *x\n", (
        "a: &x !!str b\nc: !t\n  &y d: e\nf: &z\n  # g\n  - h\ni: *x", "a", "b", "c", ("&y d: e", "d", "e"), "f", ("- h", "h"), "i", "*x")),
    "an anchor and nothing": ("a: &x\nb: !!str  # c\n", ("a: &x\nb: !!str", "a", "", "b", "")),
    "keys of all kinds": ("'a': 1\n\"b\": 2\n? c\n: 3\n? - d\n: 4\n[e, f]: 5\n", (
        "'a': 1\n\"b\": 2\n? c\n: 3\n? - d\n: 4\n[e, f]: 5", "'a'", "1", '"b"', "2", "c", "3", ("- d", "d"), "4", ("[e, f]", "e", "f"), "5")),
    "flow text with colons and question marks": ("a: {url: https://x.y/?q=1, b: why?, c: a:b}\n", (
        "a: {url: https://x.y/?q=1, b: why?, c: a:b}", "a", ("{url: https://x.y/?q=1, b: why?, c: a:b}", "url", "https://x.y/?q=1", "b", "why?", "c", "a:b"))),
    "emoji": ("😀: '😀' # 😀\né: [ü]\n", ("😀: '😀' # 😀\né: [ü]", "😀", "'😀'", "é", ("[ü]", "ü"))),
    "separators are text": ("a: 'b\u2028c'\nd: e\x85f\n", ("a: 'b\u2028c'\nd: e\x85f", "a", "'b\u2028c'", "d", "e\x85f")),
    "tabs that YAML allows": ("a:\tb\tc\t# d\n\t\n\t# e\nf: [\t1\t]\n", ("a:\tb\tc\t# d\n\t\n\t# e\nf: [\t1\t]", "a", "b\tc", "f", ("[\t1\t]", "1"))),
    "only a scalar": ("hello\n", "hello"),
}  # fmt: skip


@pytest.mark.parametrize("pure", [False, True], ids=["c", "pure"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES.keys())
def test_each_node_covers_its_source(text: str, expected: object, line_end: str, pure: bool) -> None:
    """Spans hold exactly what belongs to the node, whatever ends the lines."""
    text = text.replace("\n", line_end)

    def with_ends(tree: object) -> object:
        return tree.replace("\n", line_end) if isinstance(tree, str) else tuple(map(with_ends, tree))  # type: ignore[call-overload]

    assert sources(text, whole(text, pure).node) == with_ends(expected)


def test_missing_values_stand_behind_their_colon() -> None:
    """Empty spans lie right behind the colon, the dash, or the anchor."""
    text = "a:   # c\nb: &x\nc:\n  - \n  -   # d\n"
    root = whole(text).node
    assert isinstance(root, Mapping)
    assert [entry.value.span.start for entry in root.entries[:2]] == [2, text.index("&x") + 2]
    items = root.entries[2].value
    assert isinstance(items, Sequence)
    assert [item.span.start for item in items.items] == [text.index("- \n") + 1, text.index("-   #") + 1]


def test_anchor_spans() -> None:
    """An anchor's span covers the sign and the name; the node's own span leaves it out."""
    text = "a: &one\n  b: !!str &two 2\n"
    root = whole(text).node
    assert isinstance(root, Mapping)
    inner = root.entries[0].value
    assert isinstance(inner, Mapping)
    value = inner.entries[0].value
    assert isinstance(value, Scalar)
    assert inner.anchor is not None
    assert value.anchor is not None
    assert (text[slice(*inner.anchor)], text[slice(*value.anchor)]) == ("&one", "&two")
    assert text[slice(*value.span)] == "2"


@pytest.mark.parametrize(
    ("header", "lines", "indent"),
    [
        ("|", ["  a"], 2),
        ("|2", ["     a", "    b"], 4),
        (">", ["", "", "      a", "        b"], 6),
        ("|-", ["    a", "", "  "], 4),
        ("|", ["", ""], 0),
    ],
)
def test_indent_of_blocks(header: str, lines: list[str], indent: int) -> None:
    """The columns that are not part of a block's value."""
    text = f"k:\n  a: {header}\n" + "".join(f"{line}\n" for line in lines)
    if header == "|" and lines == ["  a"]:
        text = f"a: {header}\n  a\n"
    found = compose(text)
    assert isinstance(found, Composed)
    node = found.node
    while isinstance(node, Mapping):
        node = node.entries[0].value
    assert isinstance(node, Scalar)
    assert node.indent == indent
