"""The floors hold; and the checker that says so is shown to fail on houses that are built wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.house.floors import FLOORS, OWNERS, faults, modules_of


def test_the_house_stands(root: Path) -> None:
    """No module reaches up, sideways or round in a ring, and every third-party package stays with its owner."""
    assert faults([root / "agentloom", root / "lsp" / "agentloom_lsp"]) == []


def test_the_plan_names_what_exists(root: Path) -> None:
    """The checker sees the whole house: every floor below the runtime has modules in it."""
    modules = modules_of([root / "agentloom", root / "lsp" / "agentloom_lsp"])
    for floor, names in FLOORS[:4]:
        assert any(m == n or m.startswith(n + ".") for m in modules for n in names), floor
    assert set(OWNERS) >= {"ruamel", "httpx", "pygls", "click", "pydantic"}


def test_the_plan_stands_in_the_documents(root: Path) -> None:
    """The table of `docs/architecture.md` names every part of the plan on its floor."""
    rows = [
        line.split("|")[1:3]
        for line in (root / "docs" / "architecture.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| F")
    ]
    shown = {(floor.strip(), part) for floor, parts in rows for part in re.findall(r"`([\w.]+)`", parts)}
    front_door = {("the door", "agentloom.__main__"), ("F0", "agentloom")}
    assert shown == {(floor, name) for floor, names in FLOORS for name in names} - front_door


# (what is wrong, the files of a made-up house, words of the fault)
BAD = [
    ("up", {"agentloom/text.py": "import agentloom.diagnostics"}, "F0 reaches up to F1"),
    (
        "up, late",
        {"agentloom/analysis/lower.py": "def f():\n    from agentloom.cli import main"},
        "F3 reaches up to F6",
    ),
    (
        "up, for types only",
        {
            "agentloom/syntax/reader.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n"
            "    from agentloom.analysis.document import WorkflowDocument"
        },
        "F2 reaches up to F3",
    ),
    ("up, by a relative import", {"agentloom/model/fields.py": "from ..analysis import graph"}, "F2 reaches up to F3"),
    (
        "up, by name",
        {"agentloom/tools/registry.py": "import importlib\nimportlib.import_module('agentloom.core.events')"},
        "F2 reaches up to F4a",
    ),
    ("sideways", {"agentloom/model/fields.py": "from agentloom.syntax.nodes import Node"}, "sideways on F2"),
    (
        "letters of F4",
        {"agentloom/core/runner.py": "from agentloom.steps.table import EXECUTORS"},
        "F4a reaches up to F4b",
    ),
    (
        "engine from a step",
        {"agentloom/steps/sub.py": "from agentloom.core.engine import WorkflowEngine"},
        "F4b reaches up",
    ),
    ("ide in the runtime", {"agentloom/core/plan.py": "from agentloom.ide import symbols"}, "stand apart"),
    ("runtime in ide", {"agentloom/ide/hover.py": "from agentloom.core.engine import WorkflowEngine"}, "stand apart"),
    (
        "order inside F3",
        {"agentloom/analysis/document.py": "import agentloom.analysis.rules.graph"},
        "against the order",
    ),
    (
        "driver from a rule",
        {"agentloom/analysis/rules/a.py": "from agentloom.analysis.analyze import analyze"},
        "against the order",
    ),
    ("no place in F3", {"agentloom/analysis/extra.py": ""}, "no place in the order"),
    ("no place at all", {"agentloom/helpers.py": ""}, "no place on the floor plan"),
    ("somebody else's package", {"agentloom/model/a.py": "import ruamel.yaml"}, "only agentloom.syntax may"),
    ("late, too", {"agentloom/analysis/values.py": "def f():\n    import httpx"}, "only agentloom.providers"),
    (
        "the server's own",
        {"agentloom/cli/lsp.py": "from pygls.lsp.server import LanguageServer"},
        "only agentloom_lsp may",
    ),
    ("nobody's package", {"agentloom/cli/a.py": "import requests"}, "has no owner"),
    (
        "a ring",
        {
            "agentloom/syntax/a.py": "import agentloom.syntax.b",
            "agentloom/syntax/b.py": "def f():\n    import agentloom.syntax.a",
        },
        "a ring: agentloom.syntax.a -> agentloom.syntax.b -> agentloom.syntax.a",
    ),
    (
        "a ring through a package",
        {
            "agentloom/tools/__init__.py": "from agentloom.tools.a import A",
            "agentloom/tools/a.py": "from agentloom.tools import B",
        },
        "a ring: agentloom.tools -> agentloom.tools.a -> agentloom.tools",
    ),
]


def build(folder: Path, files: dict[str, str]) -> Path:
    """Write a made-up house and return its package folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder / "agentloom"


@pytest.mark.parametrize(("files", "words"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_a_house_built_wrong_is_refused(tmp_path: Path, files: dict[str, str], words: str) -> None:
    """Each kind of fault is found, and is the only one found."""
    found = faults([build(tmp_path, files)])
    assert len(found) == 1, found
    assert words in found[0]


def test_a_house_built_right_is_fine(tmp_path: Path) -> None:
    """Downward imports, late ones too, are no fault."""
    files = {
        "agentloom/__init__.py": "__version__ = '1'",
        "agentloom/text.py": "import re",
        "agentloom/syntax/reader.py": "from ruamel.yaml import YAML\nfrom agentloom.text import Span",
        "agentloom/analysis/document.py": "from . import context\nfrom ..syntax.reader import read",
        "agentloom/analysis/context.py": "",
        "agentloom/core/runner.py": "def f():\n    from agentloom.analysis.analyze import analyze",
        "agentloom/steps/router.py": "from agentloom.core.runner import Runner",
        "agentloom/core/engine.py": "from agentloom.steps import router",
        "agentloom/cli/run.py": "import click\nfrom agentloom import __version__\nfrom agentloom.core.engine import WorkflowEngine",
    }
    assert faults([build(tmp_path, files)]) == []
