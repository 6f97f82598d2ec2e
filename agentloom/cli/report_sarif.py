"""Diagnostics as SARIF 2.1.0, for code scanning: one run, a rule for each code that was found, fixes as replacements."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import quote

from agentloom import __version__
from agentloom.analysis.rules.registry import RULE_BY_CODE, Rule
from agentloom.cli.report_github import from_repository
from agentloom.diagnostics import Severity

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
HOME = "https://github.com/agentloom/agentloom"
LEVELS = {"error": "error", "warning": "warning", "information": "note", "hint": "note"}

Data = dict[str, Any]


def sarif(diagnostics: Sequence[Data], problems: Iterable[str]) -> Data:
    """Return the log. ``diagnostics`` are as in ``report_json``; ``problems`` say what couldn't be checked."""
    codes = sorted({diagnostic["code"] for diagnostic in diagnostics})
    number = {code: at for at, code in enumerate(codes)}
    notes = [{"level": "error", "message": {"text": problem}} for problem in problems]
    invocation: Data = {"executionSuccessful": not notes}
    if notes:
        invocation["toolExecutionNotifications"] = notes
    driver = {
        "name": "agentloom",
        "version": __version__,
        "semanticVersion": __version__,
        "informationUri": HOME,
        "rules": [_rule(RULE_BY_CODE[code]) for code in codes],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [invocation],
        "results": [_result(diagnostic, number[diagnostic["code"]]) for diagnostic in diagnostics],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: Rule) -> Data:
    paragraphs = [" ".join(part.split()) for part in rule.doc.strip().split("\n\n")]
    return {
        "id": rule.code,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": _sentence(rule.summary)},
        "fullDescription": {"text": _sentence(" ".join(paragraphs))},
        "helpUri": rule.url,
        "help": {"text": _sentence("\n\n".join(paragraphs)), "markdown": _sentence("\n\n".join(paragraphs))},
        "defaultConfiguration": {"level": LEVELS[Severity(rule.severity).word]},
        "properties": {"tags": [rule.name]},
    }


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _result(diagnostic: Data, index: int) -> Data:
    result: Data = {
        "ruleId": diagnostic["code"],
        "ruleIndex": index,
        "level": LEVELS[diagnostic["severity"]],
        "message": {"text": diagnostic["message"]},
        "locations": [{"physicalLocation": _physical(diagnostic)}],
    }
    related = list(_related(diagnostic["related"]))
    if related:
        result["relatedLocations"] = related
    fix = diagnostic["fix"]
    if fix is not None:
        replacements = [
            {"deletedRegion": _region(edit), "insertedContent": {"text": edit["text"]}} for edit in fix["edits"]
        ]
        change = {"artifactLocation": artifact(diagnostic["path"]), "replacements": replacements}
        result["fixes"] = [{"description": {"text": fix["title"]}, "artifactChanges": [change]}]
    return result


def _related(related: Iterable[Data]) -> Iterator[Data]:
    for number, place in enumerate(related):
        yield {"id": number, "message": {"text": place["message"]}, "physicalLocation": _physical(place)}


def _physical(place: Data) -> Data:
    return {"artifactLocation": artifact(place["path"]), "region": _region(place)}


def _region(place: Data) -> dict[str, int]:
    return {
        "startLine": place["line"],
        "startColumn": place["column"],
        "endLine": place["end_line"],
        "endColumn": place["end_column"],
    }


def artifact(path: str) -> Data:
    """Return where a file is: from the root of its git repository, as code scanning wants it, or else as the user named it."""
    named = from_repository(path)
    if named.startswith("/"):
        return {"uri": f"file://{_quoted(named)}"}
    if named[1:3] == ":/":  # a drive
        return {"uri": f"file:///{_quoted(named, '/:')}"}
    return {"uri": _quoted(named), "uriBaseId": "%SRCROOT%"}


def _quoted(path: str, safe: str = "/") -> str:
    """Return a path for a URI, byte by byte: file names needn't be text."""
    return quote(os.fsencode(path), safe)
