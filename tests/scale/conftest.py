"""What takes minutes: `make test-scale`, or `pytest tests/scale`. Plain `pytest` leaves this folder out (`norecursedirs` in pyproject.toml)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.durable.conftest import sqlite as sqlite
from tests.durable.crew import workers as workers
from tests.durable.postgres import new_postgres as new_postgres
from tests.durable.postgres import new_server as new_server
from tests.durable.postgres import server as server
from tests.scale.hosts import far_server as far_server
from tests.scale.hosts import network as network

HERE = Path(__file__).resolve().parent
LIMIT_S = 900.0
"""How long one of these tests may take, in seconds; a mark of its own says otherwise."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests of this folder more time."""
    for item in items:
        if item.path.is_relative_to(HERE) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(LIMIT_S))
