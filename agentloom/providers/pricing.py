"""Prices: US dollars per 1,000 tokens by model, from the table that ships beside this file or from the user's own.

The table is YAML of one simple shape, read here without a YAML library::

    # a comment
    gpt-4o-mini:
      input: 0.00015
      output: 0.0006
    "my:model": {input: 0.1, output: 0.2}
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from math import inf
from pathlib import Path

from agentloom.errors import UsageError
from agentloom.files import read_bytes
from agentloom.providers.base import Usage
from agentloom.similar import closest

BUNDLED = Path(__file__).with_name("pricing.yaml")
PRICING_ENV = "AGENTLOOM_PRICING_FILE"

_FIELDS = ("input", "output")
_NUMBER = re.compile(r"\+?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_QUOTED = re.compile(r"""(?P<name>"[^"\\]*"|'(?:[^']|'')*')\s*:(?=\s|\Z)""")
_COMMENT = re.compile(
    r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|(?!(?<!\S)\#).)*"""
)  # the part of a line before its comment


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per 1,000 tokens."""

    input: float
    output: float


@dataclass(frozen=True, slots=True)
class PriceTable:
    """Prices by model name."""

    prices: Mapping[str, Price] = field(default_factory=dict)

    def find(self, model: str) -> Price | None:
        """Return the price of a model: the entry of its name, else the longest entry that its name starts with."""
        exact = self.prices.get(model)
        if exact is not None:
            return exact
        # Prefixes of the name, longest first: a name is short, the table may be long.
        return next(
            (self.prices[model[:end]] for end in range(len(model) - 1, 0, -1) if model[:end] in self.prices), None
        )

    def cost(self, models: str | Iterable[str | None], usage: Usage) -> float:
        """Return US dollars for one call; of several names of its model, the first that has a price counts. Without one: 0.

        Reasoning tokens are part of ``completion_tokens`` and billed as such.
        """
        names = (models,) if isinstance(models, str) else models
        price = next((found for name in names if name and (found := self.find(name)) is not None), None)
        if price is None:
            return 0.0
        return (usage.prompt_tokens * price.input + usage.completion_tokens * price.output) / 1000


def cost(model: str, usage: Usage) -> float:
    """Return US dollars for one call by the bundled table; 0 for a model without a price."""
    return bundled_prices().cost(model, usage)


@cache
def bundled_prices() -> PriceTable:
    """Return the table that ships with agentloom."""
    return load_prices(BUNDLED)


def prices_for(environ: Mapping[str, str]) -> PriceTable:
    """Return the prices in force: of the file that `AGENTLOOM_PRICING_FILE` names, else the bundled ones."""
    named = environ.get(PRICING_ENV, "").strip()
    return load_prices(Path(named)) if named else bundled_prices()


def load_prices(path: Path) -> PriceTable:
    """Read a price table. Raises ``UsageError`` that names the file, the line and what is wrong."""
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except FileNotFoundError:
        raise UsageError(f"price table `{path}` does not exist") from None
    except UnicodeDecodeError:
        raise UsageError(f"price table `{path}` is not UTF-8 text") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"price table `{path}` can't be read: {reason}") from None
    try:
        return PriceTable(read_prices(text))
    except _Malformed as error:
        raise UsageError(f"price table `{path}:{error.line}`: {error}") from None


def read_prices(text: str) -> dict[str, Price]:
    """Return the prices in a table's text. Raises ``UsageError`` that says what is wrong; it knows the line."""
    found: dict[str, Price] = {}
    open_entry: _Entry | None = None
    for number, line in enumerate(text.split("\n"), 1):
        match = _COMMENT.match(line)
        content = (match.group() if match else line).rstrip()
        if not content or (content == "---" and not found and open_entry is None):
            continue
        indent = len(content) - len(content.lstrip(" "))
        content = content[indent:]
        if content.startswith("\t"):
            raise _Malformed(number, "a tab indents this line; use spaces")
        if indent and open_entry is not None:
            open_entry.take(number, indent, content)
            continue
        if indent:
            raise _Malformed(number, "this line is indented, but stands under no model")
        if open_entry is not None:
            found[open_entry.model] = open_entry.price()
        model, rest = _key(number, content)
        if model in found or (open_entry is not None and model == open_entry.model):
            raise _Malformed(number, f"`{model}` has a price already")
        open_entry = _Entry(number, model)
        if rest:
            _take_flow(open_entry, rest)
            found[model] = open_entry.price()
            open_entry = None
    if open_entry is not None:
        found[open_entry.model] = open_entry.price()
    if not found:
        raise _Malformed(1, "the table holds no prices; write `model: {input: 0.1, output: 0.2}`")
    return found


class _Malformed(UsageError):
    """What is wrong in a price table, and in which line (from 1)."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


class _Entry:
    """One model's entry while it is read."""

    def __init__(self, line: int, model: str) -> None:
        self.line = line
        self.model = model
        self.indent = 0
        self.fields: dict[str, float] = {}

    def take(self, line: int, indent: int, content: str) -> None:
        """Read `input: 0.1`. All fields of an entry are indented alike; ``indent`` 0 stands for braces."""
        self.indent = self.indent or indent
        if indent != self.indent:
            raise _Malformed(line, f"this line is not indented like the other fields of `{self.model}`")
        name, text = _key(line, content)
        if name not in _FIELDS:
            near = closest(name, _FIELDS)
            cure = f"did you mean `{near}`?" if near else "a model has `input` and `output`"
            raise _Malformed(line, f"unknown field `{name}`; {cure}")
        if name in self.fields:
            raise _Malformed(line, f"`{self.model}` has `{name}` twice")
        value = float(text) if _NUMBER.fullmatch(text) else inf
        if value == inf:
            raise _Malformed(line, f"`{self.model}.{name}` must be a number from 0 up, in US dollars per 1,000 tokens")
        self.fields[name] = value

    def price(self) -> Price:
        """Return the finished entry."""
        for name in _FIELDS:
            if name not in self.fields:
                raise _Malformed(self.line, f"`{self.model}` has no `{name}`")
        return Price(self.fields["input"], self.fields["output"])


def _take_flow(entry: _Entry, text: str) -> None:
    """Read `{input: 0.1, output: 0.2}`."""
    if not (text.startswith("{") and text.endswith("}")):
        raise _Malformed(
            entry.line, f"`{entry.model}` must have `input` and `output`: `{{input: 0.1, output: 0.2}}` on one line"
        )
    for pair in text[1:-1].split(","):
        if pair.strip():
            entry.take(entry.line, 0, pair.strip())


def _key(line: int, content: str) -> tuple[str, str]:
    """Return the key at the start of a line, without quotes, and what follows its colon."""
    if content[0] in "\"'":
        quoted = _QUOTED.match(content)
        if quoted is None:
            raise _Malformed(line, "a quoted name must be closed, without escapes, and followed by a colon")
        name = content[1 : quoted.end("name") - 1]
        return name.replace("''", "'") if content[0] == "'" else name, content[quoted.end() :].strip()
    name, colon, rest = content.partition(": ")
    if not colon:
        name, rest = content.removesuffix(":"), ""
        if name == content:
            raise _Malformed(
                line, f"`{content[:40]}` is no `model:` and no `input: …`; write `model: {{input: 0.1, output: 0.2}}`"
            )
    name = name.rstrip()
    if not name or name[0] in "-?&*!|>%@`{}[],":
        raise _Malformed(line, f"`{name[:40]}` is no model's name here; quote it")
    return name, rest.strip()
