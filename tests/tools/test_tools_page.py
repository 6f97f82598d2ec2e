"""The page on tools: its module is the one in the project beside it, and its tables are of today's code."""

from __future__ import annotations

import re

from agentloom.model.config import Sandbox
from agentloom.tools.catalogue import BUILTIN_TOOLS
from tests.conftest import ROOT
from tests.house.documents import blocks

PAGE = ROOT / "docs" / "tools.md"
PROJECT = ROOT / "docs" / "own-tools"


def test_the_module_on_the_page_is_the_one_that_runs() -> None:
    """And so are the settings."""
    found = {block.words[0]: block.text for block in blocks(PAGE) if block.words[:1] in (("python",), ("toml",))}
    assert found["python"] == (PROJECT / "shop_tools.py").read_text(encoding="utf-8")
    assert found["toml"] == (PROJECT / "agentloom.toml").read_text(encoding="utf-8")


def test_the_tables_are_whole() -> None:
    """Every built-in tool with its arguments, every key of the sandbox."""
    text = PAGE.read_text(encoding="utf-8")
    for name, info in BUILTIN_TOOLS.items():
        (row,) = re.findall(rf"^\| `{name}` \|.*$", text, re.MULTILINE)
        assert all(f"`{argument}`" in row for argument in info.parameters["properties"])
    for key in set(Sandbox.model_fields) - {"enabled"}:
        assert re.search(rf"^\| `{key}` \|", text, re.MULTILINE), key
