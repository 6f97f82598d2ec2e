"""Prices: the bundled table, the user's own, and the small reader of their YAML (PX-1, PX-2)."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from agentloom.errors import UsageError
from agentloom.providers.base import Usage
from agentloom.providers.catalogue import known_models
from agentloom.providers.pricing import (
    BUNDLED,
    Price,
    PriceTable,
    bundled_prices,
    cost,
    load_prices,
    prices_for,
    read_prices,
)


def full_yaml(text: str) -> object:
    return YAML(typ="safe", pure=True).load(text)


# ── the bundled table ──


def test_the_bundled_table_is_the_yaml_it_seems_to_be() -> None:
    """Our small reader and a full YAML reader see the same."""
    table = full_yaml(BUNDLED.read_text(encoding="utf-8"))
    assert isinstance(table, dict)
    assert table == {
        name: {"input": price.input, "output": price.output} for name, price in bundled_prices().prices.items()
    }
    assert list(table) == list(bundled_prices().prices)


def test_the_bundled_table_says_when_it_was_made_and_holds_several_dozen_models() -> None:
    """PX-2: three vendors with prices, embeddings too; the fourth, Ollama, is free."""
    found = re.search(r"^# Made on (\d{4}-\d\d-\d\d)", BUNDLED.read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None
    assert date.fromisoformat(found[1]) >= date(2026, 11, 30)
    models = known_models()
    assert len(models) == len(bundled_prices().prices) >= 80, "every entry belongs to a vendor"
    counts = {(model.provider, model.kind) for model in models}
    assert counts == {(v, "chat") for v in ("openai", "anthropic", "google")} | {
        ("openai", "embedding"),
        ("google", "embedding"),
    }


def test_the_bundled_prices_are_sane() -> None:
    """Per 1,000 tokens, not per million; output is never cheaper than input, but for embeddings."""
    for model in known_models():
        assert 0 < model.price.input <= 0.2, model.name
        if model.kind == "embedding":
            assert model.price.output == 0, model.name
        else:
            assert model.price.input < model.price.output <= 1, model.name


@pytest.mark.parametrize(
    ("model", "entry"),
    [
        ("gpt-4o-mini", "gpt-4o-mini"),
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-05-13"),
        ("gpt-4.1-nano-2025-04-14", "gpt-4.1-nano"),
        ("gpt-4-0613", "gpt-4"),
        ("o3-2025-04-16", "o3"),
        ("claude-sonnet-4-20250514", "claude-sonnet-4"),
        ("claude-opus-4-5-20251101", "claude-opus-4-5"),
        ("gemini-2.5-flash-lite-preview-09-2025", "gemini-2.5-flash-lite"),
        ("ft:gpt-4o-mini-2024-07-18:acme::abc", "ft:gpt-4o-mini"),
    ],
)
def test_the_longest_entry_that_a_name_starts_with_counts(model: str, entry: str) -> None:
    """PX-1: a dated name takes its family's price."""
    table = bundled_prices()
    assert table.find(model) == table.prices[entry]


def test_cost() -> None:
    """USD per 1,000 tokens; reasoning tokens are part of the completion."""
    assert cost("gpt-4o-mini", Usage(1000, 1000, 2000, 400)) == pytest.approx(0.00015 + 0.0006)
    assert cost("text-embedding-3-small", Usage(1_000_000, 0, 1_000_000)) == pytest.approx(0.02)
    for unknown in ("llama3.2", "mistral", "", "GPT-4o", "my-gpt-4o"):
        assert cost(unknown, Usage(1000, 1000, 2000)) == 0.0


def test_the_first_name_that_has_a_price_counts() -> None:
    """The requested name, else the one that the server reports."""
    table = PriceTable({"a": Price(1, 1), "b": Price(2, 2)})
    assert table.cost(("a", "b"), Usage(1000)) == 1
    assert table.cost(("x", "b-2024"), Usage(1000)) == 2
    assert table.cost((None, "x"), Usage(1000)) == 0


# ── the user's own table ──


def test_a_table_of_ones_own_replaces_the_whole(tmp_path: Path) -> None:
    """`AGENTLOOM_PRICING_FILE`."""
    path = tmp_path / "prices.yaml"
    path.write_text("my-finetuned-model:\n  input: 0.0008\n  output: 0.0032\n", encoding="utf-8")
    assert prices_for({"AGENTLOOM_PRICING_FILE": str(path)}).prices == {"my-finetuned-model": Price(0.0008, 0.0032)}
    assert prices_for({"AGENTLOOM_PRICING_FILE": " "}) is prices_for({}) is bundled_prices()


GOOD = """\
\ufeff---
# a comment

gpt-x:            # trailing
  input: 0.1
  output: .2      # more

  # between
'single''s': {input: 1, output: 2.}
"double # no comment": { "output": 2e-3, 'input': +1E2 }   # yes
plain#hash:
    output: 0
    input: 0
ns:model:7b: {input: 1, output: 1,}
name with spaces :   {input: 1, output: 1}
""".replace("\n", "\r\n")


def test_what_the_reader_takes(tmp_path: Path) -> None:
    """Comments, quotes, braces, any order, CRLF, a byte order mark."""
    path = tmp_path / "prices.yaml"
    path.write_bytes(GOOD.encode())
    found = load_prices(path).prices
    assert found == {
        "gpt-x": Price(0.1, 0.2),
        "single's": Price(1, 2),
        "double # no comment": Price(100, 0.002),
        "plain#hash": Price(0, 0),
        "ns:model:7b": Price(1, 1),
        "name with spaces": Price(1, 1),
    }
    table = full_yaml(GOOD.replace("\ufeff", ""))
    assert isinstance(table, dict)
    assert {
        str(name): Price(float(fields["input"]), float(fields["output"])) for name, fields in table.items()
    } == found


BAD: list[tuple[str, int, str]] = [
    ("", 1, "the table holds no prices; write `model: {input: 0.1, output: 0.2}`"),
    ("# nothing\n", 1, "the table holds no prices; write `model: {input: 0.1, output: 0.2}`"),
    ("a: {input: 1, output: 1}\nb:\n  input: 1\n", 2, "`b` has no `output`"),
    ("a:\n  input: 1\nb: {input: 1, output: 1}\n", 1, "`a` has no `output`"),
    ("a: {input: 1}\n", 1, "`a` has no `output`"),
    ("a: {}\n", 1, "`a` has no `input`"),
    ("a:\n", 1, "`a` has no `input`"),
    ("a: {input: 1, output: 1}\na: {input: 1, output: 1}\n", 2, "`a` has a price already"),
    ("a:\n  input: 1\n  output: 1\na:\n", 4, "`a` has a price already"),
    ("a:\n  input: 1\n  input: 2\n", 3, "`a` has `input` twice"),
    ("a:\n  inptu: 1\n", 2, "unknown field `inptu`; did you mean `input`?"),
    ("a: {input: 1, output: 1, cached: 1}\n", 1, "unknown field `cached`; a model has `input` and `output`"),
    ("a:\n  input: cheap\n", 2, "`a.input` must be a number from 0 up, in US dollars per 1,000 tokens"),
    ("a:\n  input: -1\n", 2, "`a.input` must be a number from 0 up, in US dollars per 1,000 tokens"),
    ("a:\n  input: .inf\n", 2, "`a.input` must be a number from 0 up, in US dollars per 1,000 tokens"),
    ("a:\n  input: 1e999\n", 2, "`a.input` must be a number from 0 up, in US dollars per 1,000 tokens"),
    ('a:\n  input: "1"\n', 2, "`a.input` must be a number from 0 up, in US dollars per 1,000 tokens"),
    ("a:\n  input:\n", 2, "`a.input` must be a number from 0 up, in US dollars per 1,000 tokens"),
    ("a:\n  input: 1\n   output: 1\n", 3, "this line is not indented like the other fields of `a`"),
    ("a:\n\tinput: 1\n", 2, "a tab indents this line; use spaces"),
    ("  input: 1\n", 1, "this line is indented, but stands under no model"),
    ("a: 0.5\n", 1, "`a` must have `input` and `output`: `{input: 0.1, output: 0.2}` on one line"),
    ("a: {input: 1,\n  output: 1}\n", 1, "`a` must have `input` and `output`: `{input: 0.1, output: 0.2}` on one line"),
    ("- a\n", 1, "`- a` is no `model:` and no `input: …`; write `model: {input: 0.1, output: 0.2}`"),
    ("- a: 1\n", 1, "`- a` is no model's name here; quote it"),
    ("<<: *base\n", 1, "`<<` must have `input` and `output`: `{input: 0.1, output: 0.2}` on one line"),
    ("&x a: {input: 1, output: 1}\n", 1, "`&x a` is no model's name here; quote it"),
    ('"a: {input: 1, output: 1}\n', 1, "a quoted name must be closed, without escapes, and followed by a colon"),
    ('"a" {input: 1, output: 1}\n', 1, "a quoted name must be closed, without escapes, and followed by a colon"),
    ('{"a": {"input": 1, "output": 1}}\n', 1, '`{"a"` is no model\'s name here; quote it'),
    ('"a\\x41": {input: 1, output: 1}\n', 1, "a quoted name must be closed, without escapes, and followed by a colon"),
    ("just words\n", 1, "`just words` is no `model:` and no `input: …`; write `model: {input: 0.1, output: 0.2}`"),
]


@pytest.mark.parametrize(("text", "line", "fault"), BAD)
def test_what_is_wrong_and_where(tmp_path: Path, text: str, line: int, fault: str) -> None:
    """File, line and cure."""
    path = tmp_path / "prices.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        load_prices(path)
    assert str(caught.value) == f"price table `{path}:{line}`: {fault}"


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """Missing, a folder, binary, an impossible name."""
    with pytest.raises(UsageError, match="does not exist"):
        load_prices(tmp_path / "no.yaml")
    with pytest.raises(UsageError, match="can't be read"):
        load_prices(tmp_path)
    with pytest.raises(UsageError, match="can't be read"):
        load_prices(Path("a\0b"))
    (tmp_path / "x.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="is not UTF-8 text"):
        load_prices(tmp_path / "x.yaml")


@given(st.text(alphabet=st.sampled_from("ab:{}, \n#\"'01.-inputo"), max_size=60))
def test_any_text_is_prices_or_a_clear_word(text: str) -> None:
    """Never another exception; and what is read, a full YAML reader reads the same."""
    try:
        found = read_prices(text)
    except UsageError:
        return
    assert full_yaml(text) == {name: {"input": price.input, "output": price.output} for name, price in found.items()}


NAMES = st.text(alphabet=st.sampled_from("abcgpt-4o.:/ "), min_size=1, max_size=12).filter(
    lambda name: name == name.strip()
)
NUMBERS = st.floats(0, 1000, allow_nan=False).map(lambda value: round(value, 6))


@given(st.dictionaries(NAMES, st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=5), st.booleans())
def test_what_was_written_is_read(prices: dict[str, tuple[float, float]], flow: bool) -> None:
    """Both shapes, names quoted."""
    shape = '"{}": {{input: {:f}, output: {:f}}}' if flow else '"{}":\n  input: {:f}\n  output: {:f}'
    text = "\n".join(shape.format(name, *price) for name, price in prices.items())
    assert read_prices(text) == {name: Price(*price) for name, price in prices.items()}
