"""Where a cursor is in half-typed text."""

from __future__ import annotations

import pytest

from agentloom.ide.completion.where import Where, where
from agentloom.ide.hits import hit_at
from agentloom.syntax.lines import line_end
from agentloom.syntax.nodes import Scalar
from agentloom.syntax.scalars import value_offset
from tests.analysis.checking import check
from tests.house.corpus import files
from tests.ide.marked import opened

HEAD = "name: w\nsteps:\n"
STEP = "  - id: a\n    type: llm_call\n    prompt: hi\n"
INLINE = "  - id: s\n    type: subworkflow\n    workflow_inline:\n      name: k\n      steps:\n        - id: q\n"


def at(marked: str) -> Where:
    """Return where the mark of a text is."""
    return where(*opened(marked))


@pytest.mark.parametrize(
    ("marked", "path", "block", "keys", "word"),
    [
        ("¦", (), "workflow", [], ""),
        ("¦\n" + HEAD, (), "workflow", ["name", "steps"], ""),
        ("{}¦", (), "workflow", [], "{}"),
        ("{¦}", (), "workflow", [], ""),
        ("\ufeff¦", (), "workflow", [], ""),
        ("---\n¦", (), "workflow", [], ""),
        ("%YAML 1.2\n---\nna¦", (), "workflow", [], "na"),
        ("na¦", (), "workflow", [], "na"),
        (HEAD + STEP + "¦", (), "workflow", ["name", "steps"], ""),
        (HEAD + STEP + "    ¦", (), "llm_call_step", ["id", "type", "prompt"], ""),
        (HEAD + STEP + "    dep¦\n", (), "llm_call_step", ["id", "type", "prompt"], "dep"),
        (HEAD + "  - id: a\n    ty¦\n    type: llm_call\n", (), "llm_call_step", ["id", "type"], "ty"),
        (HEAD + "  - ty¦\n    type: llm_call\n", (), "llm_call_step", ["type"], "ty"),
        (HEAD + '  - id: a\n    "ty¦\n    prompt: x\n', (), "step", ["id", "prompt"], "ty"),
        (HEAD + "  - id: a\n    ¦\n", (), "step", ["id"], ""),
        (HEAD + "  - {id: a, dep¦}\n", (), "step", ["id"], "dep"),
        (HEAD + "  - {id: a, ¦\n    type: tool}\n", (), "tool_step", ["id", "type"], ""),
        (HEAD + "  - {id: a, type: tool, ¦\n" + STEP, (), "tool_step", ["id", "type"], ""),
        (HEAD + "  - &b\n    id: a\n    ¦\n", (), "step", ["id"], ""),
        (HEAD + "  - &b {id: a, ¦}\n", (), "step", ["id"], ""),
        (HEAD + STEP + "    retry:\n      ¦\n", ("retry",), "retry", [], ""),
        (HEAD + STEP + "    retry:\n      ma¦\n      jitter: true\n", ("retry",), "retry", ["jitter"], "ma"),
        (HEAD + STEP + "    retry:\n¦\n      jitter: true\n", ("retry",), "retry", ["jitter"], ""),
        (HEAD + STEP + "    retry: {¦", ("retry",), "retry", [], ""),
        (
            HEAD + STEP + "    attachments:\n    - source: x\n      ¦\n",
            ("attachments", 0),
            "attachment",
            ["source"],
            "",
        ),
        (HEAD + INLINE + "          type: tool\n          ¦", (), "tool_step", ["id", "type"], ""),
        (HEAD + INLINE + "      ¦", (), "workflow", ["name", "steps"], ""),
        ("agents:\n  r: {¦}\n", ("agents", "r"), "agent", [], ""),
        ("x: &d {type: tool}\n" + HEAD + "  - <<: *d\n    id: a\n    ¦\n", (), "tool_step", ["<<", "id"], ""),
        ("state:\n  x: {a: 1, ¦}\n" + HEAD, ("state", "x"), None, ["a"], ""),
        ("config:\n  ¦\n" + HEAD, ("config",), "config", [], ""),
    ],
)
def test_keys(marked: str, path: tuple[object, ...], block: str | None, keys: list[str], word: str) -> None:
    """A key: the mapping it is for, what that has above and below, and the word typed so far; with LF and with CRLF."""
    for text in (marked, marked.replace("\n", "\r\n")):
        found = at(text)
        assert (found.kind, found.path) == ("key", path)
        assert (found.block and found.block.name, list(found.keys)) == (block, keys)
        assert found.source[found.span.start : found.span.end] == word


@pytest.mark.parametrize(
    ("marked", "kind", "path", "style", "before", "after"),
    [
        (HEAD + "  - {id: a, type: ¦}\n", "value", ("type",), "plain", "", ""),
        (HEAD + "  - {id: a, type: llm¦", "value", ("type",), "plain", "llm", ""),
        (HEAD + '  - type: "ll¦\n    id: a\n', "value", ("type",), "double", "ll", ""),
        (HEAD + STEP + "    retry:¦\n", "value", ("retry",), "plain", "", ""),
        (HEAD + "  - id: a\n    type:ll¦\n", "value", ("type",), "plain", "ll", ""),
        (HEAD + STEP + "    depends_on: [a, ¦\n    output: x\n", "item", ("depends_on", 1), "plain", "", ""),
        (HEAD + STEP + "    depends_on:\n      - b\n      - ¦\n", "item", ("depends_on", 1), "plain", "", ""),
        (HEAD + STEP + "    depends_on:\n      ¦\n", "item", ("depends_on", 0), "plain", "", ""),
        (HEAD + "  - ¦", "item", (), "plain", "", ""),
        (HEAD + "  -¦", "item", (), "plain", "", ""),
        (HEAD + "  - na¦\n", "item", (), "plain", "na", ""),
        (HEAD + STEP + "  ¦\n" + STEP, "item", (), "plain", "", ""),
        (HEAD + STEP + "¦\n" + STEP, "item", (), "plain", "", ""),
        (HEAD + "  ¦", "item", (), "plain", "", ""),
        (
            HEAD + STEP.replace("hi", "|\n      é\n      {state.¦\n      b"),
            "value",
            ("prompt",),
            "literal",
            "é\n{state.",
            "\nb\n",
        ),
        (HEAD + STEP.replace("hi", "|\n      a\n¦\n      b"), "value", ("prompt",), "literal", "a\n", "\nb\n"),
        (HEAD + STEP.replace("hi", "|\n      ¦"), "value", ("prompt",), "literal", "", ""),
        (
            HEAD + STEP.replace("hi", ">-\n      one\n      {sta¦te}"),
            "value",
            ("prompt",),
            "folded",
            "one {sta",
            "te}\n",
        ),
        (HEAD + STEP.replace("hi", '"\\u00e9\\n {state.¦x}"'), "value", ("prompt",), "double", "é\n {state.", "x}"),
        (HEAD + STEP.replace("hi", '"hi {state.¦') + STEP, "value", ("prompt",), "double", "hi {state.", ""),
        (HEAD + STEP.replace("hi", "'it''s {state.¦'"), "value", ("prompt",), "single", "it's {state.", ""),
        (HEAD + STEP.replace("hi", "one\n      {state.¦\n      b"), "value", ("prompt",), "plain", "one {state.", " b"),
        (HEAD + STEP.replace("hi", "{state.¦}"), "value", ("prompt",), "plain", "{state.", "}"),
        (HEAD + "  - {id: t, type: tool, tool_args: {u: {state.¦", "value", ("tool_args", "u"), "plain", "{state.", ""),
        ("# 😀\n" + HEAD + STEP.replace("hi", "😀 ¦"), "value", ("prompt",), "plain", "😀 ", ""),
        (HEAD + STEP + "    retry: &r ¦\n", "value", ("retry",), "plain", "", ""),
    ],
)
def test_values(marked: str, kind: str, path: tuple[object, ...], style: str, before: str, after: str) -> None:
    """A value or an item: its field, how it is quoted, and what YAML reads before and behind the cursor."""
    for text in (marked, marked.replace("\n", "\r\n")):
        found = at(text)
        assert (found.kind, found.path, found.style) == (kind, path, style)
        assert (found.before, found.after.rstrip("\n")) == (before, after.rstrip("\n"))


@pytest.mark.parametrize(
    ("marked", "kind"),
    [
        ("name: w # ¦", "comment"),
        ("# ¦\n" + HEAD, "comment"),
        (HEAD + STEP.replace("hi", "hi # ¦"), "comment"),
        (HEAD + STEP + "---\n¦", "nothing"),
        (HEAD + STEP.replace("hi", '"a" ¦'), "nothing"),
        (HEAD + STEP.replace("hi", "¦|\n      x"), "nothing"),
        ("¦  name: w\n", "nothing"),
    ],
)
def test_nothing(marked: str, kind: str) -> None:
    """Comments, other documents, and places where nothing can be typed."""
    assert at(marked).kind == kind


def test_the_other_items_of_a_list() -> None:
    """A list tells what it has besides, above and below, in either style."""
    assert at(HEAD + STEP + "    depends_on:\n      - b\n      - ¦\n      - c\n").items == ("b", "c")
    assert at(HEAD + STEP + "    depends_on: [b, x¦, c]\n").items == ("b", "c")


def test_what_a_merge_key_brings_in() -> None:
    """Keys that only a merge key gives are told apart from a mapping's own."""
    found = at("x: &d {timeout: 3, id: k}\n" + HEAD + "  - <<: *d\n    id: a\n    ¦\n")
    assert found.merged == {"timeout"}


@pytest.mark.parametrize("typed", ["  ¦\n", "  key: {a: 1, ¦}\n", "  x: ¦\n", "  x:\n    y: ¦\n", "¦\n", "  ab¦\n"])
def test_long_blocks_are_as_short_ones(typed: str) -> None:
    """Among hundreds of keys a place is what it is among two."""
    for above in (True, False):
        lines = ("".join(f"  k{n}: 1\n" for n in range(size)) for size in (2, 200))
        short, long = (at("state:\n" + (typed + keys if above else keys + typed) + HEAD) for keys in lines)
        assert (short.kind, short.path, short.column) == (long.kind, long.path, long.column)
        if short.kind == "key" and short.path == ("state",):
            assert (len(short.keys), len(long.keys)) == (2, 200)


def test_a_step_is_found_by_its_place() -> None:
    """The step is the one around the cursor, also in a workflow written in place."""
    outer = at(HEAD + STEP + STEP.replace("id: a", "id: b") + "    ¦")
    inner = at(HEAD + INLINE + "          ¦\n        - id: r\n          type: tool\n")
    assert outer.step is not None
    assert inner.step is not None
    assert (outer.step.id, inner.step.id, inner.document.head.data["name"]) == ("b", "q", "k")


@pytest.mark.parametrize(("newline", "start"), [("\n", 0), ("\r\n", 7)])
def test_what_is_found_without_the_parser_is_what_it_finds(newline: str, start: int) -> None:
    """In correct files, every seventeenth place, if in a key or value: the same path, step and text as those of the parser's nodes."""
    compared = 0
    for path in files("examples", "tests/fixtures/rules"):
        if "rules" in path.parts and not path.stem.startswith("good"):
            continue
        text = path.read_bytes().decode("utf-8").replace("\r\n", "\n").replace("\n", newline)
        document = check(text)
        for offset in range(start, len(text), 17):
            found = where(document, offset)
            assert found.span.start <= offset <= found.span.end
            hit = hit_at(document, offset)
            if hit is None or not isinstance(hit.node, Scalar) or not hit.span.start < offset < hit.span.end:
                continue
            if hit.node.style in ("literal", "folded") and offset <= line_end(text, hit.span.start):
                continue
            compared += 1
            word = text[slice(*found.span)]
            assert (found.step and found.step.id) == (hit.step and hit.step.id)
            assert ((*found.path, word) if hit.is_key else found.path) == hit.path, (path.name, offset)
            if hit.is_key:
                assert found.kind == "key"
            else:
                assert found.text.value.rstrip("\n") == hit.node.value.rstrip("\n")
                assert found.text.at == value_offset(hit.node, offset - hit.base)
    assert compared > 500
