"""Codes of checks as users write them: ``AL202``, ``unknown-dependency``, or a family such as ``AL4``."""

from __future__ import annotations

from collections.abc import Iterable

from agentloom.analysis.rules.registry import RULE_BY_CODE, RULE_BY_NAME, Rule
from agentloom.errors import UsageError
from agentloom.similar import closest


def parse_codes(option: str, values: Iterable[str]) -> tuple[str, ...]:
    """Return the codes and names in an option's values (each may hold several, with commas between them).

    Raises ``UsageError`` for what names no check.
    """
    found: dict[str, None] = {}
    for value in values:
        for word in value.replace(",", " ").split():
            found[_known(option, word)] = None
    return tuple(found)


def find_rule(word: str) -> Rule | None:
    """Return the rule that a code or a name means, whatever its case; None when there is none."""
    return RULE_BY_CODE.get(word.strip().upper()) or RULE_BY_NAME.get(word.strip().lower())


def unknown_rule(word: str) -> str:
    """Return the sentence about a word that names no rule."""
    near = closest(word, [*RULE_BY_NAME, *RULE_BY_CODE])
    cure = f"did you mean `{near}`?" if near else "`agentloom explain --list` lists them"
    return f"`{word}` is no diagnostic code; {cure}"


def _known(option: str, word: str) -> str:
    rule = find_rule(word)
    if rule is not None:
        return rule.code
    family = word.upper()
    if family.startswith("AL") and any(code.startswith(family) for code in RULE_BY_CODE):
        return family
    raise UsageError(f"{option}: {unknown_rule(word)}")
