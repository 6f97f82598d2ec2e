"""Plain values, their meaning, their spelling, and ways to nodes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from agentloom.syntax.compose import Composed, compose
from agentloom.syntax.nodes import Mapping, Scalar
from agentloom.syntax.quoting import double, is_plain, quote, requote, single
from agentloom.syntax.reader import read
from agentloom.syntax.resolve import resolve, resolve_plain
from agentloom.syntax.values import find, find_key, plain_value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None), ("~", None), ("null", None), ("Null", None), ("NULL", None), ("nUll", "nUll"),
        ("true", True), ("True", True), ("TRUE", True), ("false", False), ("yes", "yes"), ("on", "on"), ("no", "no"),
        ("0", 0), ("-12", -12), ("+3", 3), ("0o17", 15), ("0x1F", 31), ("0b101", 5), ("017", 17), ("1_000", 1000), ("_", "_"), ("-", "-"), ("+", "+"),
        ("1.5", 1.5), ("-.5", -0.5), ("1.", 1.0), ("1e3", 1000.0), ("5319E7", 5319e7), (".inf", math.inf), ("-.INF", -math.inf), ("1.2.3", "1.2.3"), (".", "."),
        ("2024-01-01", "2024-01-01"), ("1:30", "1:30"), ("0x", "0x"), ("0o9", "0o9"), ("truely", "truely"), ("9" * 5000, "9" * 5000),
    ],
)  # fmt: skip
def test_meaning_of_plain_scalars(text: str, expected: object) -> None:
    """What a plain scalar means."""
    value = resolve_plain(text)
    assert value == expected
    assert type(value) is type(expected)


def test_not_a_number() -> None:
    """`.nan` is a number that equals none."""
    value = resolve_plain(".nan")
    assert isinstance(value, float)
    assert math.isnan(value)


@given(st.text(alphabet="0123456789-+._eExXoObBaAfFtrulsn~:", max_size=8))
def test_meaning_is_that_of_ruamel(text: str) -> None:
    """ruamel.yaml, in its YAML 1.2, gives the same value for every plain scalar (dates aside, which stay texts)."""
    composed = compose(f"[{text}]\n") if text else None
    if not isinstance(composed, Composed) or not is_one_scalar(composed, text):
        return
    try:
        expected = YAML(typ="safe", pure=True).load(f"[{text}]\n")[0]
    except ValueError:
        return  # texts such as `-_` that ruamel takes for numbers and then fails on
    value = resolve_plain(text)
    if type(expected) in (bool, int, float, str, type(None)):
        assert type(value) is type(expected)
        assert value == expected or value != value
    else:
        assert value == text


def is_one_scalar(composed: Composed, text: str) -> bool:
    """Tell whether what was read is a list of this one plain text."""
    items = getattr(composed.node, "items", ())
    return len(items) == 1 and isinstance(items[0], Scalar) and items[0].value == text and items[0].style == "plain"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'1'", "1"), ('"true"', "true"), ("!!str 1", "1"), ("!!int '1'", 1), ("!!float 1", 1.0), ("!!bool 'true'", True), ("!!null ''", None),
        ("!!int x", "x"), ("!!bool 1", "1"), ("!!float x", "x"), ("!!null x", "x"), ("!mine 1", "1"), ("! 1", "1"), ("!<tag:yaml.org,2002:int> 7", 7), ("|\n  1\n", "1\n"),
    ],
)  # fmt: skip
def test_styles_and_tags(text: str, expected: object) -> None:
    """Quotes make texts; YAML's own tags say what is meant; other tags leave a text."""
    node = find(read(f"k: {text}\n").root, ("k",))
    assert isinstance(node, Scalar)
    value = resolve(node)
    assert value == expected
    assert type(value) is type(expected)


TEXTS = st.text(max_size=12) | st.text(alphabet="ab 01:#-?,[]{}'\"\\\n\t|>&*!%@`=~.<_eoxytrn", max_size=10)


@given(TEXTS.filter(lambda text: not any(0xD800 <= ord(char) <= 0xDFFF for char in text)), st.booleans(), st.booleans())
def test_quoted_texts_read_as_themselves(text: str, flow: bool, pure: bool) -> None:
    """Every text survives being written and read, in block and flow style, as value and as key, with both parsers."""
    spelled = quote(text, flow)
    assert "\n" not in spelled
    for whole, path in (
        ((f"k: [a, {spelled}]\n", "item"), (f"k: {{b: {spelled}, c: d}}\n", "value"))
        if flow
        else (
            (f"k: {spelled}\nz: 1\n", "value"),
            (f"k:\n  - {spelled}\n", "item"),
            (f"k: {spelled} # c\n", "value"),
        )
    ):
        composed = compose(whole, pure)
        assert isinstance(composed, Composed), (whole, composed)
        value = plain_value(composed.node)
        assert isinstance(value, dict)
        found = value["k"][-1] if path == "item" else (value["k"]["b"] if flow else value["k"])
        assert found == text


@given(TEXTS.filter(lambda text: text.isprintable()))
def test_plain_texts_are_texts_in_yaml_1_1_too(text: str) -> None:
    """What goes without quotes is a text for YAML 1.1 readers as well."""
    if not is_plain(text):
        return
    reader = YAML(typ="safe", pure=True)
    reader.version = (1, 1)  # type: ignore[assignment]
    assert reader.load(f"- {text}\n") == [text]


@pytest.mark.parametrize(
    ("raw", "style", "new", "expected"),
    [
        ('"a"', "double", "b", '"b"'), ("'a'", "single", "b", "'b'"), ("a", "plain", "b", "b"), ("a", "plain", "yes", "'yes'"),
        ("'a'", "single", "it's", "'it''s'"), ("'a'", "single", "a\nb", '"a\\nb"'), ('"a"', "double", 'say "x"', '"say \\"x\\""'),
        ("|\n a", "literal", "b\nc", '"b\\nc"'), ("a", "plain", "a: b", "'a: b'"),
    ],
)  # fmt: skip
def test_new_values_keep_their_quotes(raw: str, style: str, new: str, expected: str) -> None:
    """A replaced value keeps the kind of quotes it had where they can hold it."""
    assert requote(raw, style, new) == expected  # type: ignore[arg-type]


def test_quotes_of_one_kind() -> None:
    """The two kinds of quotes, asked for by name."""
    assert single("it's") == "'it''s'"
    assert double('a"\\\n\x07é') == '"a\\"\\\\\\n\\aé"'


DOCUMENT = read(
    "a: 1\nb: &b {c: [x, {d: y}], 'q k': z}\ne: *b\nf:\n  <<: *b\n  g: [*b]\n1: one\n? [k]\n: complex\na: again\n"
).root


def test_plain_value() -> None:
    """Aliases are followed, merges applied, of equal keys the last counts, keys become texts, keys that are lists are left out."""
    inner = {"c": ["x", {"d": "y"}], "q k": "z"}
    assert plain_value(DOCUMENT) == {"a": "again", "b": inner, "e": inner, "f": {"g": [inner], **inner}, "1": "one"}
    assert plain_value(None) is None


def test_find() -> None:
    """Nodes are found by path, through aliases and merges; what is not there is None."""
    for path in (("b", "c", 1, "d"), ("e", "c", 1, "d"), ("f", "c", -1, "d"), ("f", "g", 0, "c", 1, "d")):
        node = find(DOCUMENT, path)
        assert isinstance(node, Scalar)
        assert node.value == "y"
    assert isinstance(find(DOCUMENT, ()), Mapping)
    for path in (("x",), ("a", "b"), ("b", "c", 2), ("b", "c", "d"), ("b", 0)):
        assert find(DOCUMENT, path) is None
    key = find_key(DOCUMENT, ("e", "q k"))
    assert key is not None
    assert key.raw == "'q k'"
    assert find_key(DOCUMENT, ("b", "c", 0)) is None
    assert find_key(DOCUMENT, ("nope",)) is None


def test_values_are_bounded() -> None:
    """No call makes values of more nodes than it was allowed."""
    node = read("a: [" + ", ".join(["[x]"] * 500) + "]\n").root
    value = plain_value(node, most=100)
    assert isinstance(value, dict)
    assert isinstance(value["a"], list)
    assert value["a"].count(None) > 300
