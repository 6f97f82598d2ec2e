"""The published schema and the rules' fixtures: what is right is right to both, and a fault of shape is one to both."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from agentloom.analysis.document import WorkflowDocument
from agentloom.diagnostics import Severity
from agentloom.model.schema_files import schema_text
from agentloom.syntax.values import plain_value
from tests.rule_fixtures import all_fixtures, analyze_fixture, read_fixture


def name(path: Path) -> str:
    """Return a test's name for a fixture."""
    return f"{path.parent.name}-{path.stem}"


@cache
def validator(kind: str) -> Draft7Validator:
    """Return what checks plain data against the committed schema."""
    return Draft7Validator(json.loads(schema_text(kind)))


def refusals(document: WorkflowDocument) -> list[str]:
    """Return what the schema has against a document as it is written."""
    data: Any = plain_value(document.tree.root)
    return [error.message for error in validator(document.kind or "workflow").iter_errors(data)]


@pytest.mark.parametrize("path", all_fixtures("*.yaml"), ids=name)
def test_a_fixture_is_the_same_to_the_schema(path: Path) -> None:
    """No refusal of what has no error, nor of what only a rule can see; a refusal where every error is one of shape.

    AL109 is about several fields at once, which the schema leaves to the rules: editors couldn't mark a place for it.
    """
    document = analyze_fixture(path, read_fixture(path)[0])
    errors = {found.code for found in document.diagnostics if found.severity is Severity.ERROR}
    refused = refusals(document)
    if not any(code < "AL2" for code in errors):
        assert refused == []
    elif errors - {"AL109"} and all("AL1" < code < "AL2" for code in errors):
        assert refused != []


def test_enough_of_each() -> None:
    """The fixtures hold both kinds."""
    found = [analyze_fixture(path, read_fixture(path)[0]) for path in all_fixtures("*.yaml")]
    refused = [document for document in found if refusals(document)]
    assert 20 < len(refused) < len(found) - 50
