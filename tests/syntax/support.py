"""Helpers of the reader's tests: nodes as text to compare, and generated YAML."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from agentloom.diagnostics import Finding
from agentloom.syntax.compose import Composed, compose
from agentloom.syntax.nodes import Alias, Mapping, Node, Scalar, Sequence
from agentloom.syntax.tree import Tree

H = "name: w\nsteps:\n"
A = "  - id: a\n    type: llm_call\n    prompt: hi\n"


def drawn(node: Node | None, targets: dict[int, int] | None = None) -> str:
    """Return a node as one line that shows all there is to it: values, styles, tags, every place, what aliases point to."""
    if targets is None:
        targets = {}
    if node is None:
        return "nothing"
    targets[id(node)] = len(targets)
    place = f"@{node.span.start}-{node.span.end}"
    if isinstance(node, Alias):
        return f"*{node.name}->{targets.get(id(node.target))}{place}"
    extra = (f"!{node.tag}" if node.tag else "") + (f"&{node.anchor.start}-{node.anchor.end}" if node.anchor else "")
    if isinstance(node, Scalar):
        return f"{node.style}:{node.value!r}:{node.raw!r}:{node.indent}{place}{extra}"
    if isinstance(node, Sequence):
        body = ", ".join([drawn(item, targets) for item in node.items])
    else:
        body = ", ".join([f"{drawn(e.key, targets)}: {drawn(e.value, targets)}" for e in node.entries])
    kind = "map" if isinstance(node, Mapping) else "list"
    return f"{kind}{'~' if node.flow else ''}({body}){place}{extra}"


def whole(text: str, pure: bool = False) -> Composed:
    """Return what composing a valid text in one go gives."""
    composed = compose(text, pure)
    assert isinstance(composed, Composed), (text, composed)
    return composed


def said(tree: Tree) -> list[tuple[str, str]]:
    """Return the findings of a tree as (code, text they stand on)."""
    return [(f.code, tree.text[f.span.start : f.span.end]) for f in tree.findings]


def check_ranges(text: str, finding: Finding) -> None:
    """Hold a finding to a range inside the text, on one line, and its edits to ranges inside the text."""
    start, end = finding.span
    assert 0 <= start <= end <= len(text), finding
    assert "\n" not in text[start:end], finding
    assert "\r" not in text[start:end], finding
    for fix in finding.fixes:
        for edit in fix.edits:
            assert 0 <= edit.span.start <= edit.span.end <= len(text), finding


WORDS = [
    "a",
    "b",
    "hello",
    "two words",
    "it's",
    "{state.x}",
    "héllo",
    "😀 ok",
    "1",
    "1.5",
    "true",
    "null",
    "http://x.y/z",
    "a#b",
    "-x",
    "x - y",
]
_PLAIN = st.sampled_from([w for w in WORDS if not w.startswith("{")])
_FLOW_PLAIN = st.sampled_from(
    ["a", "b", "two words", "1", "true", "http://x.y/z?q=1", "why?", "a:b", "'it''s'", '"x, y"', "''", "~"]
)
_COMMENT = st.sampled_from(["", "", "", "", " # why", "\t# tab", "  "])


@st.composite
def flows(draw: DrawFn, depth: int = 2) -> str:
    """A value in flow style, on one line or over several."""
    if depth == 0 or draw(st.integers(0, 2)) == 0:
        return draw(_FLOW_PLAIN)
    separator = draw(st.sampled_from([", ", ",", ",\n   ", " ,  # c\n  "]))
    values = draw(st.lists(flows(depth - 1), max_size=3))
    if draw(st.booleans()):
        return "[" + separator.join(values) + draw(st.sampled_from(["", "", ",", "\n"])) * bool(values) + "]"
    keys = draw(
        st.lists(st.sampled_from(["k", "l", '"q"', "m n"]), min_size=len(values), max_size=len(values), unique=True)
    )
    return "{" + separator.join(f"{key}: {value}" for key, value in zip(keys, values, strict=True)) + "}"


@st.composite
def blocks(draw: DrawFn, column: int, depth: int) -> list[str]:
    """The lines of a block mapping or list, indented by ``column``."""
    if draw(st.integers(0, 3)) == 0:
        return draw(lists(column, depth))
    return draw(mappings(column, depth))


@st.composite
def lists(draw: DrawFn, column: int, depth: int) -> list[str]:
    """The lines of a block list."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.integers(0, 4))
        if kind == 0 and depth:
            nested = draw(mappings(column + 2, depth - 1, top=False))
            lines += [" " * column + "- " + nested[0].lstrip(" "), *nested[1:]]
        elif kind == 1 and depth:
            lines += [" " * column + "-", *draw(blocks(column + draw(st.integers(1, 3)), depth - 1))]
        else:
            lines += [" " * column + "- " + line if at == 0 else line for at, line in enumerate(draw(inline(column)))]
        lines += draw(fillers(column))
    return lines


@st.composite
def inline(draw: DrawFn, column: int) -> list[str]:
    """The lines of a value that begins on its key's line; the first is not indented."""
    deeper = " " * (column + draw(st.integers(1, 3)))
    kind = draw(st.integers(0, 8))
    comment = draw(_COMMENT)
    if kind == 0:
        return [draw(_PLAIN), deeper + draw(_PLAIN), "", deeper + draw(_PLAIN) + comment]
    if kind == 1:
        return ["'one", draw(st.sampled_from(["", deeper])) + "it''s", deeper + "three'" + comment]
    if kind == 2:
        return ['"one \\', deeper + "\\t two", "", deeper + 'three"' + comment]
    if kind in (3, 4):
        header = draw(st.sampled_from(["|", ">", "|-", ">+", "|  # c"]))
        body = [
            deeper + draw(st.sampled_from([*WORDS, "# no comment", " more", "- x: y"]))
            for _ in range(draw(st.integers(0, 3)))
        ]
        body = [line for at, line in enumerate(body) if at or line.lstrip(" ") == line[len(deeper) :]]
        return [header, *body, *[""] * draw(st.integers(0, 2))]
    if kind == 5:
        return (draw(flows()).replace("\n", "\n" + deeper) + comment.replace("#", " #")).split("\n")
    if kind == 6:
        return [draw(st.sampled_from(["!!str 1", "! x", "!t 'y'", "&anchor v", '""', "''"])) + comment]
    if kind == 7:
        return [comment]
    return [draw(_PLAIN) + comment]


@st.composite
def fillers(draw: DrawFn, column: int) -> list[str]:
    """Blank lines and comments between entries."""
    return draw(
        st.sampled_from(
            [[], [], [], [""], ["# at the margin"], [" " * column + "# in line"], ["", "  ", "      # deep"]]
        )
    )


@st.composite
def mappings(draw: DrawFn, column: int, depth: int, top: bool = True) -> list[str]:
    """The lines of a block mapping."""
    lines: list[str] = []
    keys = draw(
        st.lists(
            st.sampled_from(["a", "b", "key", '"q k"', "'s'", "two words", "é", "steps"]),
            min_size=1,
            max_size=4,
            unique=True,
        )
    )
    for key in keys:
        before = " " * column + key + draw(st.sampled_from([":", ":", " :"]))
        if depth and draw(st.integers(0, 2)) == 0:
            shift = draw(st.integers(0, 3))
            nested = draw(blocks(column + shift, depth - 1)) if shift else draw(lists(column, depth - 1))
            lines += [before + draw(_COMMENT), *nested]
        else:
            value = draw(inline(column))
            lines += [before + (" " + value[0] if value[0] else ""), *value[1:]]
        lines += draw(fillers(column))
    return lines


@st.composite
def documents(draw: DrawFn) -> str:
    """A document that mostly is valid YAML, with a list of steps more often than not."""
    lines = draw(fillers(0)) + draw(mappings(0, 2))
    if draw(st.booleans()):
        lines += ["steps:" + draw(_COMMENT), *draw(fillers(0)), *draw(lists(draw(st.integers(0, 4)), 2))]
        lines += draw(st.sampled_from([[], ["tail: 1"], ["tail:", "  - 1"]]))
    text = "\n".join(lines) + draw(st.sampled_from(["\n", "", "\n\n"]))
    text = draw(st.sampled_from(["", "", "", "---\n", "--- # c\n", "# first\n\n---\n"])) + text
    return text + draw(st.sampled_from(["", "", "", "...\n", "\n...\n# end\n"]))


def line_ends() -> SearchStrategy[str]:
    """The line endings that YAML knows."""
    return st.sampled_from(["\n", "\n", "\r\n", "\r"])
