"""The reader: trees by pieces, units that live on from version to version, documents, comments, odd characters."""

from __future__ import annotations

import pytest

from agentloom.diagnostics import apply_edits
from agentloom.syntax.aliases import walk
from agentloom.syntax.nodes import Mapping, Scalar, Sequence
from agentloom.syntax.reader import Reader, read
from agentloom.syntax.tree import Tree
from agentloom.syntax.values import plain_value
from tests.syntax.support import A, H, drawn, said, whole

THREE = H + "".join(f"  - id: s{at}\n    type: t\n" for at in range(3)) + "tail: 1\n"


def ids(tree: Tree) -> list[object]:
    """Return the `id` of every step, read in the step's own offsets."""
    found: list[object] = []
    for placed in tree.steps:
        value = plain_value(placed.node)
        found.append(value.get("id") if isinstance(value, dict) else value)
        for node in walk(placed.node):
            if isinstance(node, Scalar):
                assert node.raw == placed.unit.text[slice(*node.span)]
                assert node.raw == tree.text[slice(*node.span.shift(placed.base))]
    return found


def test_steps_stand_in_units_of_their_own() -> None:
    """A block list at `steps` is read piece by piece: empty in ``top``, complete in ``steps`` and ``root``."""
    tree = read(THREE)
    assert not tree.whole
    assert ids(tree) == ["s0", "s1", "s2"]
    assert tree.steps_node is not None
    assert tree.steps_node.items == ()
    assert THREE[slice(*tree.steps_node.span)] == THREE[THREE.index("- id") : THREE.index("\ntail")]
    assert drawn(tree.root) == drawn(whole(THREE).node)
    assert {placed.base for placed in tree.steps} == {THREE.index(f"  - id: s{at}") for at in range(3)}


def test_an_edit_keeps_the_other_units() -> None:
    """Units of pieces whose text did not change are the same objects, wherever they moved."""
    reader = Reader()
    before = [placed.unit for placed in reader.read(THREE).steps]
    after = reader.read(THREE.replace("name: w", "name: longer\nstate: {a: 1}").replace("id: s1", "id: other"))
    assert [placed.unit is unit for placed, unit in zip(after.steps, before, strict=True)] == [True, False, True]
    assert ids(after) == ["s0", "other", "s2"]


def test_a_fault_keeps_the_other_units() -> None:
    """A text that breaks and is mended again costs the units of the broken piece only."""
    reader = Reader()
    before = [placed.unit for placed in reader.read(THREE).steps]
    broken = reader.read(THREE.replace("    type: t\n  - id: s1", "    typ\n  - id: s1"))
    assert [placed.unit is unit for placed, unit in zip(broken.steps, before, strict=True)] == [False, True, True]
    assert said(broken) == [("AL001", "typ")]
    again = reader.read(THREE)
    assert [placed.unit is unit for placed, unit in zip(again.steps, before, strict=True)] == [False, True, True]
    assert reader.read(THREE) is again


def test_a_reader_answers_like_a_new_one() -> None:
    """Whatever was read before has no influence on what is said."""
    texts = [
        THREE,
        THREE[:40],
        "",
        THREE.replace("type", "type:"),
        H + "  - {a: [\n",
        "x: *y\n",
        THREE + "z: 'open\n",
        THREE,
    ]
    reader = Reader()
    for text in texts:
        kept, fresh = reader.read(text), read(text)
        assert kept.findings == fresh.findings
        assert drawn(kept.root) == drawn(fresh.root)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("steps: [{id: a}, {id: b}]\n", ["a", "b"]),
        ("{name: w, steps: [{id: a}]}\n", ["a"]),
        ("steps: &all\n  - id: a\n", ["a"]),
        ("'steps':\n- id: a\n- id: b\n", ["a", "b"]),
        ("steps:  # these\n  # here\n\n  - id: a\n  # between\n  - id: b\n", ["a", "b"]),
        ("%YAML 1.2\n---\nsteps:\n  - id: a\n", ["a"]),
        ("--- # first\nsteps:\n  - id: a\n", ["a"]),
        ("steps:\n  - id: a\nsteps:\n  - id: b\n", ["b"]),
        ("steps:\n  - id: a\nsteps: []\n", []),
        ("x: &x {id: a}\nsteps:\n  - *x\n  - <<: *x\n    id: b\n", ["a", "b"]),
        ("steps:\n  a: 1\n", []),
        ("steps:\n", []),
        ("- id: a\n", []),
        ("\ufeffsteps:\n  - id: a\n", ["a"]),
        ('steps:\n  - id: "a\n  - id: b"\n', ["a - id: b"]),
        ('steps:\n  - id: "a\nb: c"\n  - id: d\n', ["a b: c", "d"]),
    ],
)
def test_steps_of_all_shapes(text: str, expected: list[object]) -> None:
    """Whatever the list looks like and however it was read, ``steps`` holds its items."""
    assert ids(read(text)) == expected


@pytest.mark.parametrize(
    ("text", "findings", "data"),
    [
        (H + A + "---\nfoo: 1\n", [("AL007", "---")], True),
        (H + A + "--- # more\n", [("AL007", "---")], True),
        (H + A + "...\n", [], True),
        (H + A + "...\n# the end\n\n", [], True),
        (H + A + "...\n---\nb: 1\n", [("AL007", "---")], True),
        (H + A + "...\nb: 1\n", [("AL007", "b")], True),
        ("---\n" + H + A, [], True),
        ("# c\n---\n" + H + A + "---\n", [("AL007", "---")], True),
        ("---\n---\n" + H + A, [("AL007", "---")], False),
        ("", [], False),
        ("# only this\n", [], False),
        ("---\n", [], False),
        ("\ufeff", [], False),
    ],
)
def test_documents(text: str, findings: list[tuple[str, str]], data: bool) -> None:
    """The first document is served in full; a second one is reported on its marker; an end mark is fine."""
    tree = read(text)
    assert said(tree) == findings
    assert plain_value(tree.root) == (plain_value(read(H + A).root) if data else None)
    for finding in tree.findings:
        for fix in finding.fixes:
            assert read(apply_edits(text, fix.edits)).findings == ()


def test_comments() -> None:
    """Comments are found everywhere, and nowhere inside of scalars."""
    text = (
        "# top\nname: w # trailing\ntext: a#b '# no'\n"
        "steps: # list\n  # above\n  - id: '# no' # after\n    prompt: |  # header\n      # no\n      x # no\n    # below\n"
        '  - {a: "x # no", # inside\n     b: c}\n# end\n'
    )
    for shown in (text, text.replace("\n", "\r\n"), "\ufeff" + text, "%YAML 1.2\n---\n" + text):
        comments = read(shown).comments
        assert [c.text for c in comments] == [
            "# top", "# trailing", "# list", "# above", "# after", "# header", "# below", "# inside", "# end",
        ]  # fmt: skip
        assert [c.own_line for c in comments] == [True, False, False, True, False, False, True, False, True]
        assert all(shown[slice(*c.span)] == c.text for c in comments)


@pytest.mark.parametrize("char", ["\0", "\x07", "\x0b", "\x0c", "\x1b", "\x7f", "\x80", "\ud800", "\ufffe", "\uffff"])
@pytest.mark.parametrize(
    "place", ["name: w{}x\n", "name: '{}'\n", "# {}\nname: w\n", "{}\nname: w\n", "name: |\n  a{}\n"]
)
def test_characters_that_yaml_forbids(char: str, place: str) -> None:
    """One finding on the character itself, with a cure; everything else is read."""
    text = place.replace("{}", char) + "steps:\n  - id: a\n"
    tree = read(text)
    assert [(f.code, text[slice(*f.span)]) for f in tree.findings if "stand in YAML" in f.message] == [("AL001", char)]
    assert ids(tree) == ["a"]
    assert isinstance(tree.top, Mapping)
    finding = next(f for f in tree.findings if "stand in YAML" in f.message)
    assert not read(apply_edits(text, finding.fixes[0].edits)).findings


def test_separators_and_marks_are_text() -> None:
    """NEL, U+2028 and U+2029 are characters of the text like others, as in editors and YAML 1.2; a mark only leads the file."""
    text = "\ufeffa: x\x85y\nb: 'p\u2028q'\nc: |\n  l\u2029m\n"
    tree = read(text)
    assert tree.findings == ()
    assert plain_value(tree.root) == {"a": "x\x85y", "b": "p\u2028q", "c": "l\u2029m\n"}
    late = read("a: 1\n\ufeffb: 2\n")
    assert said(late) == [("AL001", "\ufeff")]


def test_more_than_one_list_of_steps() -> None:
    """A second `steps` is a duplicate; the complete tree has both."""
    text = "steps:\n  - id: a\nname: w\nsteps:\n  - id: b\n"
    tree = read(text)
    assert said(tree) == [("AL002", "steps")]
    assert isinstance(tree.root, Mapping)
    lists = [entry.value for entry in tree.root.entries if isinstance(entry.value, Sequence)]
    assert [plain_value(node) for node in lists] == [[{"id": "a"}], [{"id": "b"}]]
    fixed = apply_edits(text, tree.findings[0].fixes[0].edits)
    assert fixed == "steps:\n  - id: a\nname: w\n"
