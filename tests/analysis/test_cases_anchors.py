"""Cases seen elsewhere: anchors, aliases, merge keys."""

from __future__ import annotations

from tests.analysis.checking import A, H, check, codes, cured, only, places, told


def test_case_two_merge_keys_in_one_mapping() -> None:
    """One clear message that offers the list form as a fix, not a bare "keys must be unique"."""
    steps = (
        "  - &x {id: x, type: llm_call, prompt: hi, timeout: 3}\n"
        "  - &y {id: y, type: llm_call, prompt: hi, stream: true}\n"
        "  - id: a\n    type: llm_call\n    prompt: hi\n    <<: *x\n    <<: *y\n"
    )
    found = only(H + steps, "AL002")
    assert codes(H + steps) == ["AL002"]
    assert "`<<: [*x, *y]`" in found.message
    mended = cured(H + steps, "AL002")
    assert "    <<: [*x, *y]\n" in mended
    assert codes(mended) == []
    assert check(mended).steps[2].facts.data == {
        "id": "a", "type": "llm_call", "prompt": "hi", "timeout": 3, "stream": True,
    }  # fmt: skip


def test_case_two_merge_keys_of_unknown_keys() -> None:
    """The anchors stand on keys that a workflow doesn't have: those are told besides, each once."""
    text = (
        "x: &x {timeout: 3}\ny: &y {stream: true}\n"
        + H
        + "  - id: a\n    type: llm_call\n    prompt: hi\n    <<: *x\n    <<: *y\n"
    )
    assert places(text) == [("AL102", 1, "x"), ("AL102", 2, "y"), ("AL002", 9, "<<")]


def test_case_the_merge_key_itself_is_never_unknown() -> None:
    """What is checked is the merged mapping; own keys win."""
    text = H + "  - &b {id: a, type: llm_call, prompt: hi}\n  - <<: *b\n    id: b\n"
    document = check(text)
    assert document.diagnostics == ()
    assert [step.id for step in document.steps] == ["a", "b"]
    assert document.steps[1].facts.data["prompt"] == "hi"


def test_case_one_mistake_under_an_anchor_is_told_once() -> None:
    """However often it is aliased; the id that comes along twice is another mistake, told at the alias with the anchor beside it."""
    text = H + "  - &s {id: a, type: llm_call, prompt: hi, foo: 1}\n  - *s\n"
    assert places(text) == [("AL102", 3, "foo"), ("AL201", 4, "*s")]
    first, anchor = only(text, "AL201").related
    assert [text[r.span.start : r.span.end] for r in (first, anchor)] == ["a", "&s"]
    assert "`*s`" in anchor.message
    assert "`&s`" in anchor.message

    many = (
        H
        + "  - &s {id: a, type: llm_call, prompt: hi, foo: 1, timeout: x}\n"
        + "".join(f"  - {{<<: *s, id: b{i}}}\n" for i in range(50))
    )
    assert places(many) == [("AL102", 3, "foo"), ("AL105", 3, "x")]


def test_case_a_value_that_is_right_where_it_is_written() -> None:
    """Wrong where it is aliased: told at the alias, with the anchor beside it, and no fix that would change the other place."""
    text = H + "  - {id: a, type: llm_call, prompt: &p hi}\n  - {id: b, type: llm_call, prompt: *p, timeout: *p}\n"
    found = only(text, "AL105")
    assert places(text) == [("AL105", 4, "*p")]
    assert found.fixes == ()
    assert text[found.related[0].span.start :].startswith("hi}")


def test_case_an_aliased_block_is_checked_and_read() -> None:
    """A block that is written in one step and aliased in the next means the same there."""
    text = (
        H
        + "  - {id: a, type: llm_call, prompt: hi, retry: &r {max_retries: 7}}\n"
        + "  - {id: b, type: llm_call, prompt: hi, retry: *r}\n"
    )
    document = check(text)
    assert document.ok
    assert [step.retry.max_retries for step in document.workflow.steps] == [7, 7]


def test_case_a_list_where_a_block_is_meant_through_an_alias() -> None:
    """Told at the alias, since the mapping is right where it stands."""
    text = H + "  - {id: a, type: llm_call, prompt: hi, retry: &r {max_retries: 7}, tools: *r}\n"
    assert places(text) == [("AL105", 3, "*r")]


def test_case_an_anchor_named_like_a_step() -> None:
    """Dependencies are about ids, not about anchors."""
    text = (
        H
        + "  - &b\n    id: a\n    type: llm_call\n    prompt: hi\n    depends_on: [b]\n"
        + "  - id: b\n    type: llm_call\n    prompt: hi\n"
    )
    document = check(text)
    assert document.diagnostics == ()
    assert document.by_id["b"].index == 1
    assert [t.code for t in told(text.replace("id: b", "id: c"))] == ["AL202"]


def test_case_an_anchor_that_contains_itself() -> None:
    """One diagnostic on the alias; everything else is still checked."""
    text = H + "  - &a\n    id: a\n    depends_on: *a\n"
    assert places(text) == [("AL101", 4, "id"), ("AL004", 5, "*a")]


def test_case_an_alias_bomb() -> None:
    """Nine-fold nested aliases are refused at one alias; the workflow itself is still checked."""
    lines = ["state:", "  a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"  a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)]
    text = "\n".join(lines) + "\n" + H + A + "    depends_on: [zz]\n"
    found = told(text)
    assert [t.code for t in found if t.code != "AL202"] == ["AL005"]
    assert "AL202" in [t.code for t in found]


def test_case_three_thousand_steps_with_one_merged_block() -> None:
    """Many aliases of one block are no bomb: no diagnostic, all steps there."""
    steps = "".join(f"  - {{<<: *d, id: s{i}}}\n" for i in range(3_000))
    document = check(H + "  - &d {id: d, type: llm_call, prompt: hi, retry: {max_retries: 1}}\n" + steps)
    assert document.diagnostics == ()
    assert len(document.steps) == 3_001
