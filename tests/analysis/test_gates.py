"""Gates keep rules from being loaded, never from finding something."""

from __future__ import annotations

from pathlib import Path

import pytest

import agentloom.analysis.analyze as door
from agentloom.analysis.rules import gates
from agentloom.analysis.rules.registry import RULES
from tests.analysis.routes_oracle import joined, workflow
from tests.house.corpus import files
from tests.rule_fixtures import analyze_fixture, read_fixture

ALL = sorted(path for path in files() if path.suffix == ".yaml")


def ungated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take all gates away."""
    for name in ("DOCUMENT_RULES", "STEP_RULES", "MAPPING_RULES"):
        monkeypatch.setattr(door, name, tuple(rule._replace(gate=None) for rule in getattr(door, name)))


@pytest.mark.parametrize("folder", sorted({path.parent for path in ALL}), ids=lambda path: path.name)
def test_without_gates_nothing_more_is_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every fixture, example and file of mistakes, as if the data flow had not been loaded yet, and with no gate at all."""
    monkeypatch.setattr(gates, "_FLOW", "not loaded")
    texts = [(path, read_fixture(path)[0]) for path in ALL if path.parent == folder]
    found = [analyze_fixture(path, text).diagnostics for path, text in texts]
    ungated(monkeypatch)
    assert found == [analyze_fixture(path, text).diagnostics for path, text in texts]


def test_made_up_workflows_without_gates(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The same for random workflows."""
    import json
    from random import Random

    monkeypatch.setattr(gates, "_FLOW", "not loaded")
    texts = [
        json.dumps(make(Random(seed), *size))
        for seed in range(60)
        for make, size in ((workflow, (4, False)), (joined, ()))
    ]
    path = tmp_path / "w.loom.yaml"
    found = [analyze_fixture(path, text).diagnostics for text in texts]
    ungated(monkeypatch)
    assert found == [analyze_fixture(path, text).diagnostics for text in texts]


def test_most_rules_of_rarer_fields_have_a_gate() -> None:
    """Rules that are loaded late have a gate; else they would be loaded at once."""
    assert all(rule.gate is not None for rule in RULES if rule.check is not None and not rule.text)
