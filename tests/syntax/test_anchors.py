"""Anchors, aliases, merge keys and duplicate keys: what is said, and what they give."""

from __future__ import annotations

import pytest

from agentloom.diagnostics import apply_edits
from agentloom.syntax.aliases import walk
from agentloom.syntax.nodes import Alias, Mapping
from agentloom.syntax.reader import Reader, read
from agentloom.syntax.values import entries, find, plain_value
from tests.syntax.support import A, H, drawn, said, whole


@pytest.mark.parametrize(
    ("text", "expected", "cure"),
    [
        ("a: &one 1\nb: *two\n", [("AL003", "*two")], None),
        ("a: &timeout 1\nb: *timeot\n", [("AL003", "*timeot")], "a: &timeout 1\nb: *timeout\n"),
        ("a: *one\nb: &one 1\n", [("AL003", "*one")], None),
        ("a: [*one, &one 1, *one]\n", [("AL003", "*one")], None),
        (H + A + "    <<: *x\n", [("AL003", "*x")], None),
        ("%YAML 1.2\n---\na: *x\n", [("AL003", "*x")], None),
        ("a: &a\n  b: *a\n", [("AL004", "*a")], None),
        ("a: &a [1, [*a]]\n", [("AL004", "*a")], None),
        (H + "  - &a\n    id: a\n    depends_on: *a\n", [("AL004", "*a")], None),
        ("a: &a 1\nb: &a [*a]\n", [("AL004", "*a")], None),
        ("a: &a 1\nb: *a\nc: &a 2\nd: *a\n", [], None),
    ],
)
@pytest.mark.parametrize("pure", [False, True], ids=["c", "pure"])
def test_aliases(text: str, expected: list[tuple[str, str]], cure: str | None, pure: bool) -> None:
    """Undefined and recursive aliases are reported where they stand, with the nearest name where there is one."""
    tree = Reader(pure).read(text)
    assert said(tree) == expected
    fixes = [fix for finding in tree.findings for fix in finding.fixes]
    assert [apply_edits(text, fix.edits) for fix in fixes] == ([cure] if cure else [])


def test_aliases_across_pieces() -> None:
    """Aliases that reach into other pieces find their target; places are those of the whole text."""
    text = "x: &x {timeout: 3, k: &k [1]}\ny: *k\n" + H + "  - id: a\n    <<: *x\n  - &s\n    id: b\n  - *s\n"
    tree = read(text)
    assert tree.whole
    assert tree.findings == ()
    assert drawn(tree.root) == drawn(whole(text).node)
    assert [placed.base for placed in tree.steps] == [0, 0, 0]
    assert plain_value(tree.root) == {
        "x": {"timeout": 3, "k": [1]},
        "y": [1],
        "name": "w",
        "steps": [{"id": "a", "timeout": 3, "k": [1]}, {"id": "b"}, {"id": "b"}],
    }


def test_aliases_across_pieces_in_a_broken_text() -> None:
    """A fault elsewhere does not cost the links."""
    text = "x: &x {timeout: 3}\n" + H + "  - id: a\n    <<: *x\n    pro\n  - id: b\n    <<: *x\n    y: *nope\n"
    tree = read(text)
    assert said(tree) == [("AL001", "pro"), ("AL003", "*nope")]
    value = plain_value(tree.root)
    assert isinstance(value, dict)
    assert value["steps"] == [{"id": "a", "timeout": 3}, {"id": "b", "y": None, "timeout": 3}]


def bomb(levels: int, head: str = "state:\n  ") -> str:
    """Return a text whose aliases expand to 9 to the power of ``levels``."""
    names = "abcdefghijklmnop"
    lines = [f"{head}a: &a [{', '.join(['x'] * 9)}]\n"]
    for at in range(1, levels):
        lines.append(
            f"{' ' * (len(head) - len(head.lstrip()))}  {names[at]}: &{names[at]} [{', '.join([f'*{names[at - 1]}'] * 9)}]\n"
        )
    return "".join(lines)


@pytest.mark.parametrize("levels", [6, 9, 16])
@pytest.mark.parametrize("across", [False, True])
def test_expansion_bombs(levels: int, across: bool) -> None:
    """A text whose aliases grow out of proportion is refused at the first alias too many; what is left is small."""
    text = bomb(levels)
    if across:
        text = text.replace("state:\n  ", "").replace("\n  ", "\n")
    tree = read(text + H + A)
    assert {f.code for f in tree.findings} == {"AL005"}
    assert len(tree.findings) == 1
    assert text[tree.findings[0].span.start] == "*"
    assert expanded(tree.root) < 1_000_000


def expanded(node: object) -> int:
    """Return how many nodes there are with aliases followed."""
    count = 0
    todo = [node]
    while todo:
        found = todo.pop()
        count += 1
        for part in walk(found):  # type: ignore[arg-type]
            if isinstance(part, Alias) and part.target is not None:
                todo.append(part.target)
    return count


def test_many_aliases_of_one_mapping_are_fine() -> None:
    """Three thousand steps that merge the same defaults are an ordinary file."""
    text = "d: &d {timeout: 3, retry: {max_retries: 2}, temperature: 0.5}\n" + H
    text += "".join(f"  - id: s{at}\n    <<: *d\n" for at in range(3_000))
    tree = read(text)
    assert tree.findings == ()
    assert len(tree.steps) == 3_000


def test_chains_of_aliases_end() -> None:
    """Aliases that nest through each other a thousand times are refused, and nobody recurses over them."""
    text = "a0: &a0 [x]\n" + "".join(f"a{at}: &a{at} [*a{at - 1}]\n" for at in range(1, 1_000))
    tree = read(text)
    assert [f.code for f in tree.findings] == ["AL005"]
    assert isinstance(plain_value(tree.root), dict)
    merges = "a0: &a0 {k: 1}\n" + "".join(f"a{at}: &a{at}\n  <<: *a{at - 1}\n" for at in range(1, 1_000))
    assert isinstance(plain_value(read(merges).root), dict)


@pytest.mark.parametrize(
    ("text", "expected", "cured"),
    [
        ("a: 1\nb: 2\na: 3\n", ["a"], "a: 1\nb: 2\n"),
        ("x:\n  a: 1\n  a:\n    - 2\n    - 3 # c\n  b: 4\n", ["a"], "x:\n  a: 1\n  b: 4\n"),
        ("x: {a: 1, b: 2, 'a': 3}\n", ["'a'"], "x: {a: 1, b: 2}\n"),
        ("x: {a: 1, a: 2, b: 3}\n", ["a"], "x: {a: 1, b: 3}\n"),
        ("x:\n  - a: 1\n    a: |\n      text\n\n    b: 2\n", ["a"], "x:\n  - a: 1\n\n    b: 2\n"),
        (H + A + "    prompt: again", ["prompt"], H + A),
        ("a: 1\na: 2\na: 3\n", ["a", "a"], None),
        ("1: a\n'1': b\n", ["'1'"], "1: a\n"),
        ("a: &x {k: 1}\nb:\n  <<: *x\n  k: 2\n", [], None),
        ("x: 1\r\nx: 2\r\ny: 3\r\n", ["x"], "x: 1\r\ny: 3\r\n"),
    ],
)
def test_duplicate_keys(text: str, expected: list[str], cured: str | None) -> None:
    """The second key is reported, points to the first, and can be removed. Merged keys are no duplicates."""
    tree = read(text)
    assert [text[slice(*f.span)] for f in tree.findings] == expected
    for finding in tree.findings:
        assert finding.code == "AL002"
        assert finding.related[0].span < finding.span
    if cured is not None:
        assert apply_edits(text, tree.findings[0].fixes[0].edits) == cured


@pytest.mark.parametrize(
    ("text", "cured"),
    [
        ("<<: *x\n  k: 1\n  <<: *y\n", "<<: [*x, *y]\n  k: 1\n"),
        ("<<: [*x, *y]\n  <<: {b: 2}\n  <<: *x\n", "<<: [*x, *y, {b: 2}, *x]\n"),
        ("<<: *x\n  <<:\n    b: 2\n", None),
    ],
)
def test_two_merge_keys(text: str, cured: str | None) -> None:
    """Two `<<` get one finding that offers the list form, where it can be written so."""
    head = "x: &x {timeout: 3}\ny: &y {stream: true}\nz:\n  "
    tree = read(head + text)
    assert said(tree) == [("AL002", "<<")]
    assert [apply_edits(head + text, fix.edits) for fix in tree.findings[0].fixes] == ([head + cured] if cured else [])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<<: *a\nk: own\n", {"k": "own", "l": 1}),
        ("k: own\n<<: *a\n", {"k": "own", "l": 1}),
        ("<<: [*b, *a]\n", {"k": "b", "m": 2, "l": 1}),
        ("<<: [*a, *b]\n", {"k": "a", "l": 1, "m": 2}),
        ("<<: {n: 3}\n", {"n": 3}),
        ("<<: *c\n", {"o": 4, "k": "a", "l": 1}),
        ("<<: *list\n", {"k": "a", "l": 1, "m": 2}),
        ("'<<': *a\n", {"<<": {"k": "a", "l": 1}}),
        ("<<: 1\n", {}),
        ("<<:\n", {}),
    ],
)
def test_merge_keys(text: str, expected: object) -> None:
    """Own keys win over merged ones, earlier mappings of a list over later ones; merges of merges count."""
    head = "a: &a {k: a, l: 1}\nb: &b {k: b, m: 2}\nc: &c {<<: *a, o: 4}\nlist: &list [*a, *b]\nx:\n"
    tree = read(head + "".join(f"  {line}\n" for line in text.splitlines()))
    node = find(tree.root, ("x",))
    assert isinstance(node, Mapping)
    assert plain_value(node) == expected
    own = {e.key.value for e in node.entries if hasattr(e.key, "value")}
    for key, _, inherited in entries(node):
        assert inherited == (key.value not in own)
