"""Cases seen elsewhere: scalars that are not what they look like, block texts, text lost in YAML, unquoted templates."""

from __future__ import annotations

import pytest

from tests.analysis.checking import A, H, check, codes, cured, only, places


def test_case_a_version_loses_its_zero() -> None:
    """`1.10` is a number to YAML: kept as written here, told because others lose the zero, and quoted from the source text."""
    text = "version: 1.10\n" + H + A
    assert "1.1" in only(text, "AL009").message
    assert cured(text, "AL009").startswith('version: "1.10"\n')
    assert check(text).workflow.version == "1.10"
    assert codes("version: 1.0\n" + H + A) == []


@pytest.mark.parametrize("word", ["yes", "no", "on", "off", "YES", "No", "On", "OFF"])
def test_case_words_that_flip_between_versions(word: str) -> None:
    """They are texts here, for ids and for dependencies alike, in the editor and in the engine; one warning each."""

    def written(name: str) -> str:
        first = f"  - {{id: {name}, type: llm_call, prompt: hi}}\n"
        return H + first + f"  - {{id: b, type: llm_call, prompt: hi, depends_on: [{name}]}}\n"

    assert codes(written(word)) == ["AL009", "AL009"]
    assert [step.id for step in check(written(word)).workflow.steps] == [word, "b"]
    assert codes(written(f'"{word}"')) == []


def test_case_true_and_false_are_never_names() -> None:
    """Those are truth values to every parser."""
    assert codes(H + A.replace("id: a", "id: true")) == ["AL105"]


def test_case_a_number_that_some_read_as_text() -> None:
    """`5319E7` where a text is meant: refused with the fix that quotes the source; in open places a warning."""
    assert 'output: "5319E7"' in cured(H + A + "    output: 5319E7\n", "AL105")
    assert codes("state: {order: 5319E7}\n" + H + A) == ["AL009"]
    assert 'order: "5319E7"' in cured("state: {order: 5319E7}\n" + H + A, "AL009", "quote")


@pytest.mark.parametrize("null", ["", " ~", " null", " Null", " NULL"])
def test_case_all_nulls_are_equal(null: str) -> None:
    """Where null is the default, each of them is fine; where it isn't, each is refused."""
    assert codes(H + A + f"    timeout:{null}\n    retry:{null}\n    depends_on:{null}\n") == []
    assert check(H + A + f"    timeout:{null}\n    retry:{null}\n").workflow.steps[0].timeout is None
    assert codes(H + A.replace("id: a", f"id:{null}")) == ["AL105"]


@pytest.mark.parametrize(
    ("line", "mended"),
    [
        ('budget_usd: "0.5"', "budget_usd: 0.5"),
        ("budget_usd: '0.5'", "budget_usd: 0.5"),
        ('stream: "true"', "stream: true"),
        ("stream: yes", "stream: true"),
        ("model: 4", 'model: "4"'),
        ("model: 1.50", 'model: "1.50"'),
        ("model: true", 'model: "true"'),
        ("max_retries: 3.0", "max_retries: 3"),
        ("timeout: 90s", "timeout: 90"),
        ("timeout: 2 min", "timeout: 120"),
        ("latency_ms: 2s", "latency_ms: 2000"),
    ],
)
def test_case_one_click_both_ways(line: str, mended: str) -> None:
    """From text to value and from value to text, always from the source as it is written."""
    text = f"config:\n  {line}  # note\n" + H + A
    assert codes(text) == ["AL105"]
    after = cured(text, "AL105")
    assert after == text.replace(line, mended)
    assert codes(after) == []


def test_case_dates_are_texts() -> None:
    """`id: 2024-01-01` is a text here, warned about since others make a date of it."""
    text = H + A.replace("id: a", "id: 2024-01-01")
    assert codes(text) == ["AL009"]
    assert 'id: "2024-01-01"' in cured(text, "AL009")


def test_case_the_last_line_break_of_a_block_text() -> None:
    """It changes no condition; where it becomes part of a name or an address there is a warning with `|-` as the fix."""
    router = (
        H
        + "  - id: r\n    type: router\n    conditions:\n      - expression: |\n          state.x == 'a'\n        target: a\n"
        + "    default: a\n"
        + A
        + "    depends_on: [r]\n"
    )
    assert codes(router) == []
    prompt = H + "  - id: a\n    type: llm_call\n    prompt: |\n      hi\n    model: |\n      gpt-4o\n"
    assert places(prompt) == [("AL012", 7, "|")]
    assert "model: |-\n" in cured(prompt, "AL012")


def test_case_text_behind_a_hash_is_lost() -> None:
    """`prompt: Fix ticket #12 now` ends at the `#`; the fix quotes all of it. A real comment is left alone."""
    text = H + "  - id: a\n    type: llm_call\n    prompt: Fix ticket #12 now\n"
    assert places(text) == [("AL010", 5, "#12 now")]
    assert 'prompt: "Fix ticket #12 now"\n' in cured(text, "AL010")
    assert codes(text.replace("#12 now", "# twelve")) == []


def test_case_a_colon_inside_plain_text() -> None:
    """It needs quotes, says so with the fix, and the rest of the file is still checked."""
    text = H + "  - id: a\n    type: llm_call\n    prompt: Answer: {state.x}\n    depends_on: [zz]\n"
    assert codes(text) == ["AL001", "AL202"]
    assert "quotes" in only(text, "AL001").message
    mended = cured(text, "AL001")
    assert codes(mended) == ["AL202"]
    assert check(mended).steps[0].facts.data["prompt"] == "Answer: {state.x}"


def test_case_an_unquoted_template_in_braces() -> None:
    """A mapping to YAML: told as what it is, with quotes as the fix, at any depth."""
    text = (
        H + "  - {id: t, type: tool, tool_name: http_request, tool_args: {url: {state.u}, headers: {X: [{state.t}]}}}\n"
    )
    assert places(text) == [("AL011", 3, "{state.u}"), ("AL011", 3, "{state.t}")]
    block = H + "  - id: a\n    type: llm_call\n    prompt: {state.x}\n"
    assert 'prompt: "{state.x}"\n' in cured(block, "AL011")
    assert codes(cured(block, "AL011")) == []


def test_case_words_inside_prose_are_nobodys_business() -> None:
    """`yes or no` in a prompt is text: nothing is told, so nothing can be rewritten there."""
    text = H + "  - id: a\n    type: llm_call\n    prompt: >-\n      answer yes or no\n      no\n      1_000\n"
    assert codes(text) == []
